"""A shell line as the simple commands it would run, found with the tree-sitter grammar of bash.

Every command is found wherever it stands: lists, pipes, groups, loops, function bodies, substitutions, here-documents.
What is not a simple command but matters (a function definition, a `case`, arithmetic) is reported as a construct.
Text the grammar does not understand is split a second time, crudely and without trust in its quotes, so that nothing
in it can hide from a deny rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from hypercode.safety.command_script import Redirect, Script, Simple, crude, document
from hypercode.safety.command_words import Hole, Word, decode

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

__all__ = ["parse"]

_DEPTH = 60  # nesting of the tree, far above anything a person or a model writes
_HOLES = {"command_substitution", "process_substitution", "arithmetic_expansion", "expansion"}
_WORDS = {
    "word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "simple_expansion",
    "brace_expression", "variable_name", "regex", "extglob_pattern", *_HOLES,
}  # fmt: skip
_BLOCKS = {
    "program", "list", "pipeline", "subshell", "compound_statement", "if_statement", "elif_clause", "else_clause",
    "while_statement", "do_group", "negated_command",
}  # fmt: skip
_CONSTRUCTS = {
    "function_definition": "defines a function",
    "case_statement": "case",
    "case_item": "case",
    "c_style_for_statement": "arithmetic loop",
}
_ATTACHED = re.compile(r"(?:\\\n)*[^\s;&|()<>]")


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse(command: str) -> Script:
    """The commands of a shell line.  Never raises; what could not be understood is in `problems`."""
    script = Script()
    source = command.encode("utf-8", "replace")
    root = _parser().parse(source).root_node
    _Walk(source, script).statement(root, (), False, False)
    if root.has_error:
        script.problems.append("not understood as a shell command")
    if script.problems:
        script.commands += crude(command)
    return script


class _Walk:
    def __init__(self, source: bytes, script: Script) -> None:
        self.source, self.script = source, script
        self.scopes = 0
        self.depth = 0

    def text(self, start: int, end: int) -> str:
        return self.source[start:end].decode("utf-8", "replace")

    def inner(self, scope: tuple[int, ...]) -> tuple[int, ...]:
        self.scopes += 1
        return (*scope, self.scopes)

    def statement(self, node: Node, scope: tuple[int, ...], after_and: bool, piped: bool) -> None:
        self.depth += 1
        if self.depth > _DEPTH:
            self.problem("nested too deeply")
        else:
            self.dispatch(node, scope, after_and, piped)
        self.depth -= 1

    def dispatch(self, node: Node, scope: tuple[int, ...], after_and: bool, piped: bool) -> None:
        kind = node.type
        if kind in ("command", "declaration_command", "unset_command", "test_command", "variable_assignment"):
            self.command(node, node, [], scope, after_and, piped)
        elif kind == "redirected_statement":
            self.redirected(node, scope, after_and, piped)
        elif kind == "for_statement":
            self.loop(node, scope)
        elif kind == "list":
            self.chain(node, scope, after_and, piped)
        elif kind == "pipeline":
            self.pipeline(node, scope, after_and, piped)
        elif kind in ("comment", "heredoc_start", "heredoc_end", "heredoc_content"):
            return
        elif kind == "subshell":
            self.block(node, self.inner(scope), False, piped)
        elif kind in _BLOCKS and not (kind == "compound_statement" and node.children[0].type != "{"):
            self.block(node, scope, after_and, piped)
        elif kind in _HOLES:
            self.hole(node, scope)
        else:
            self.other(node, scope)

    def other(self, node: Node, scope: tuple[int, ...]) -> None:
        text = self.text(node.start_byte, node.end_byte)
        if node.type == "function_definition":
            name = node.child_by_field_name("name")
            self.script.functions[self.text(name.start_byte, name.end_byte) if name else ""] = text
        note = _CONSTRUCTS.get(node.type, "arithmetic" if node.type == "compound_statement" else "")
        if note and node.type != "case_item":
            self.script.commands.append(Simple(text, scope=scope, construct=note))
        if not note and node.type in _WORDS:
            word, holes = self.word(node.start_byte, node.end_byte, [node])
            if not word.static:
                self.script.commands.append(Simple(text, (), scope=scope, construct="an expansion outside a command"))
            self.holes(holes, scope)
            return
        for redirect in (c for c in node.children if c.type == "file_redirect"):
            self.command(node, None, [redirect], scope, False, False)
        self.block(node, scope, False, False)

    def block(self, node: Node, scope: tuple[int, ...], after_and: bool, piped: bool) -> None:
        for child in node.children:
            if not child.is_named:
                after_and = child.type == "&&"
            elif child.type not in ("file_redirect", "variable_name", "test_operator"):
                self.statement(child, scope, after_and, piped)

    def chain(self, node: Node, scope: tuple[int, ...], after_and: bool, piped: bool) -> None:
        """`a && b || c …` hangs to the left in the tree, as deep as it is long."""
        lists = [node]
        while lists[-1].children and lists[-1].children[0].type == "list":
            lists.append(lists[-1].children[0])
        children = [lists[-1].children[0]] + [c for part in reversed(lists) for c in part.children[1:]]
        for child in children:
            if child.is_named:
                self.statement(child, scope, after_and, piped)
            else:
                after_and = child.type == "&&"

    def pipeline(self, node: Node, scope: tuple[int, ...], after_and: bool, piped: bool) -> None:
        for child in node.children:
            if child.is_named:
                self.statement(child, self.inner(scope), after_and, piped)
            else:
                piped, after_and = True, False

    def loop(self, node: Node, scope: tuple[int, ...]) -> None:
        variable = node.child_by_field_name("variable")
        name = self.text(variable.start_byte, variable.end_byte) if variable else ""
        values = [c for c in node.children if c.is_named and c.type in _WORDS and c != variable]
        if node.children[0].type != "for":
            self.script.commands.append(
                Simple(self.text(node.start_byte, node.end_byte), scope=scope, construct="select")
            )
        for value in values:
            word, holes = self.word(value.start_byte, value.end_byte, [value])
            self.script.loops.setdefault(name, []).append(word)
            self.holes(holes, scope)
        if not values:
            self.script.loops.setdefault(name, []).append(decode("$1"))
        for child in node.children:
            if child.is_named and child not in values and child != variable:
                self.statement(child, scope, False, False)

    def redirected(self, node: Node, scope: tuple[int, ...], after_and: bool, piped: bool) -> None:
        body = node.child_by_field_name("body")
        redirects = [c for c in node.children if c.type.endswith("_redirect")]
        if body is None or body.type in ("command", "test_command", "declaration_command", "variable_assignment"):
            self.command(node, body, redirects, scope, after_and, piped)
        elif body.type == "pipeline":
            self.command_of_pipeline(node, body, redirects, scope, after_and, piped)
        else:
            self.command(node, None, redirects, scope, after_and, piped)
            self.statement(body, scope, after_and, piped)
        for child in node.children:
            if child.is_named and child is not body and child != body and child not in redirects:
                self.statement(child, scope, False, False)

    def command_of_pipeline(
        self, node: Node, body: Node, redirects: list[Node], scope: tuple[int, ...], after_and: bool, piped: bool
    ) -> None:
        """The grammar hangs the redirects of the last command on the whole pipe."""
        *first, last = [c for c in body.children if c.is_named]
        for child in first:
            self.statement(child, self.inner(scope), after_and, piped)
            after_and, piped = False, True
        if last.type == "command":
            self.command(node, last, redirects, self.inner(scope), False, piped)
        else:
            self.command(node, None, redirects, scope, False, piped)
            self.statement(last, self.inner(scope), False, piped)

    def command(
        self,
        whole: Node,
        body: Node | None,
        redirects: list[Node],
        scope: tuple[int, ...],
        after_and: bool,
        piped: bool,
    ) -> None:
        start = body.start_byte if body else redirects[0].start_byte
        found = _Found(self, scope)
        if body and body.type == "test_command":
            found.test(body)
        elif body and body.type == "variable_assignment":
            found.assign(body)
        elif body:
            found.children(body)
        for node in redirects:
            found.redirect(node)
        end = max([body.end_byte if body else start, *(r.end_byte for r in redirects)])
        start = min([start, *(r.start_byte for r in redirects)])
        self.script.commands.append(
            Simple(
                self.text(start, end), tuple(found.words), tuple(found.assigns), tuple(found.redirects), scope,
                after_and, piped, tuple(found.stdin), construct=found.construct,
            )
        )  # fmt: skip
        self.holes(found.holes, scope)
        for node, follows_pipe in found.statements:
            self.statement(node, self.inner(scope), False, follows_pipe)

    def hole(self, node: Node, scope: tuple[int, ...]) -> None:
        self.holes([node], scope)

    def holes(self, nodes: list[Node], scope: tuple[int, ...]) -> None:
        for node in nodes:
            fed = node.children[0].type == ">("  # its standard input is what the command around it writes
            for child in node.children:
                if child.is_named and child.type not in ("variable_name", "special_variable_name"):
                    self.nested(child, self.inner(scope), fed)

    def nested(self, node: Node, scope: tuple[int, ...], piped: bool) -> None:
        """Statements inside an expansion; words and operators in it only lead to further ones."""
        if node.type in _WORDS or node.type.endswith("_expression") or node.type in ("subscript", "string_content"):
            self.depth += 1
            if self.depth > _DEPTH:
                self.problem("nested too deeply")
            for child in node.children if self.depth <= _DEPTH else ():
                self.nested(child, self.inner(scope), piped)
            self.depth -= 1
        elif node.type.endswith("_redirect"):
            self.command(node, None, [node], scope, False, False)
        elif node.is_named:
            self.statement(node, scope, False, piped)

    def problem(self, text: str) -> None:
        if text not in self.script.problems:
            self.script.problems.append(text)

    def expansions(self, nodes: list[Node]) -> list[Node]:
        """The outermost expansions in these nodes."""
        found: list[Node] = []
        pending = list(reversed(nodes))
        while pending:
            node = pending.pop()
            if node.type in _HOLES:
                found.append(node)
            else:
                pending.extend(reversed(node.children))
        return found

    def word(self, start: int, end: int, nodes: list[Node]) -> tuple[Word, list[Node]]:
        """The word between two byte offsets and the expansions in it."""
        found = self.expansions(nodes)
        holes = [Hole(len(self.text(start, n.start_byte)), len(self.text(start, n.end_byte)), n.type) for n in found]
        word = decode(self.text(start, end), holes)
        if word.odd:
            self.problem("a word that can be read in two ways")
            self.backquotes(word.raw)
        return word, found

    def backquotes(self, text: str) -> None:
        """Commands in backquotes where the grammar sees only text: in defaults of variables, in here-documents."""
        for inner in re.findall(r"(?<!\\)`((?:\\.|[^`\\])*)`", text, re.S):
            nested = parse(re.sub(r"\\([$`\\])", r"\1", inner))
            self.script.commands += [replace(s, scope=self.inner(())) for s in nested.commands]


class _Found:
    """The words, assignments and redirects of one simple command."""

    def __init__(self, walk: _Walk, scope: tuple[int, ...]) -> None:
        self.walk = walk
        self.words: list[Word] = []
        self.assigns: list[tuple[str, Word]] = []
        self.redirects: list[Redirect] = []
        self.stdin: list[Word] = []
        self.holes: list[Node] = []
        self.statements: list[tuple[Node, bool]] = []
        self.construct = ""

    def children(self, node: Node) -> None:
        """Neighbours without a blank between them are one word, whatever the grammar made of them."""
        cluster: list[Node] = []
        for child in node.children:
            if child.type.endswith("_redirect"):
                self.flush(cluster)
                self.redirect(child)
            elif child.type == "variable_assignment" and not cluster and node.type == "command" and not self.words:
                self.assign(child)
            elif child.type == "subshell" or child.type == "ERROR":
                self.flush(cluster)
                self.construct = "not understood as a shell command"
                self.statements.append((child, False))
            else:
                if cluster and self.gap(cluster[-1].end_byte, child.start_byte):
                    self.flush(cluster)
                cluster.append(child)
        self.flush(cluster)

    def gap(self, start: int, end: int) -> bool:
        between = self.walk.text(start, end).replace("\\\n", "")
        if between.strip(" \t\n"):
            self.construct = "not understood as a shell command"
        return bool(between)

    def flush(self, cluster: list[Node]) -> None:
        if cluster:
            self.words.append(self.take(cluster[0].start_byte, cluster[-1].end_byte, list(cluster)))
            cluster.clear()

    def take(self, start: int, end: int, nodes: list[Node]) -> Word:
        word, holes = self.walk.word(start, end, nodes)
        self.holes += holes
        return word

    def assign(self, node: Node) -> None:
        word = self.take(node.start_byte, node.end_byte, [node])
        match = re.match(r"[A-Za-z_]\w*(?=\+?=)", word.raw)
        value = node.child_by_field_name("value")
        held = decode("") if value is None else self.walk.word(value.start_byte, value.end_byte, [value])[0]
        self.assigns.append((match[0] if match else "", held))

    def redirect(self, node: Node) -> None:
        if node.type == "heredoc_redirect":
            self.heredoc(node)
            return
        targets = [c for c in node.children if c.is_named and c.type not in ("file_descriptor", "ERROR")]
        op = "".join(c.type for c in node.children if not c.is_named)
        if any(c.type in ("ERROR", "subshell") for c in node.children):
            self.construct = "not understood as a shell command"
        words = [self.take(a, b, n) for a, b, n in _clusters(targets)]
        if node.type == "herestring_redirect":
            self.stdin += words[:1]
        else:
            self.redirects.append(Redirect(op, words[0] if words else None))
        self.words += words[1:]

    def heredoc(self, node: Node) -> None:
        for child in node.children:
            if child.type == "heredoc_body":
                start = next((c for c in node.children if c.type == "heredoc_start"), child)
                delimiter = self.walk.text(start.start_byte, start.end_byte)
                text = self.walk.text(child.start_byte, child.end_byte)
                quoted = bool(re.search(r"['\"\\]", delimiter))
                found = self.walk.expansions([child])
                self.holes += found
                self.stdin.append(document(text, quoted, bool(found)))
                if self.stdin[-1].odd:
                    self.walk.backquotes(text)
            elif child.type.endswith("_redirect"):
                self.redirect(child)
            elif child.type in ("pipeline", "list") or child.type in ("command", "subshell", "redirected_statement"):
                self.statements.append((child, True))
            elif child.type in _WORDS:
                self.words.append(self.take(child.start_byte, child.end_byte, [child]))
            elif child.is_named and child.type not in ("heredoc_start", "heredoc_end", "file_descriptor"):
                self.construct = "not understood as a shell command"
                self.statements.append((child, False))

    def test(self, node: Node) -> None:
        """`[ … ]` and `[[ … ]]`, cut into words at the blanks outside quotes."""
        holes = self.walk.expansions([node])
        self.holes += holes
        text = self.walk.text(node.start_byte, node.end_byte)
        if holes:
            self.words = [decode(text[: 2 if text.startswith("[[") else 1]), replace(decode(""), odd=True)]
            return
        words = re.findall(r"(?:\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\s'\"\\])+", text, re.S)
        self.words = [decode(f"'{w}'") if w in ("&&", "||", "(", ")", "<", ">") else decode(w) for w in words]


def _clusters(nodes: list[Node]) -> Iterator[tuple[int, int, list[Node]]]:
    group: list[Node] = []
    for node in nodes:
        if group and group[-1].end_byte != node.start_byte:
            yield group[0].start_byte, group[-1].end_byte, group
            group = []
        group.append(node)
    if group:
        yield group[0].start_byte, group[-1].end_byte, group
