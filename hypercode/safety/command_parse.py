"""A shell line as the simple commands it would run, found with the tree-sitter grammar of bash.

Every command is found wherever it stands: lists, pipes, groups, loops, function bodies, substitutions, here-documents.
What is not a simple command but matters (a function definition, a `case`, arithmetic) is reported as a construct.
A line whose tree cannot be trusted is read again from every place where a command may begin, and split crudely, without
trust in its quotes, so that nothing in it can hide from a deny rule or a circuit breaker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from hypercode.safety.command_found import HOLES, WORDS, Found
from hypercode.safety.command_keywords import ends_early, misread, readings
from hypercode.safety.command_script import Script, Simple, crude
from hypercode.safety.command_words import Hole, Word, decode
from hypercode.safety.command_work import TooMuch, spend

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Point, Tree

__all__ = ["Walk", "parse"]

_DEPTH = 60  # nesting of the tree, far above anything a person or a model writes
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
_LOOPED = re.compile(r"(?!\w*_proxy$|histchars$|auto_resume$)[a-z_][a-z0-9_]*")
"""Names a loop may fill unasked: those that neither the shell nor the programs it starts look at."""
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_CHUNK = 128  # bytes handed to the grammar at a time


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _tree(text: str) -> Tree:
    """The syntax tree.  Here and there the grammar looks ahead to the end of the text for one token, so what it reads counts."""
    # The grammar's scanner asks the C library about characters it has no table for, and crashes on some beyond ASCII.
    # A letter in the place of each also makes offsets in bytes and in characters the same.
    data = _FOREIGN.sub("X", text).encode("ascii")
    over = False

    def used_up(steps: int) -> bool:
        nonlocal over
        try:
            spend(steps)
        except TooMuch:
            over = True
        return over

    def read(offset: int, _point: Point) -> bytes:
        return b"" if used_up(2) else data[offset : offset + _CHUNK]

    def tick(_offset: int, wrong: bool) -> bool:
        return used_up(320 if wrong else 15)

    spend(60 + len(data) // 16)
    try:
        tree = _parser().parse(read, progress_callback=tick)
    except ValueError:
        _parser().reset()  # or it would go on where it stopped
        raise TooMuch from None
    if over:
        raise TooMuch
    return tree


def parse(command: str) -> Script:
    """The commands of a shell line; what could not be understood is in `problems`.  Raises TooMuch."""
    script = _read(command, again=True)
    if script.problems:
        _recover(command, script)
        script.commands += crude(command)
    return script


def _read(command: str, again: bool) -> Script:
    """One reading; with `again`, scripts in it whose tree cannot be trusted are read again themselves."""
    script = Script()
    root = _tree(command).root_node
    Walk(command, script, again).statement(root, (), False, False)
    if root.has_error:
        script.problems.append("not understood as a shell command")
    return script


def _recover(command: str, script: Script) -> None:
    """Add what other readings of the line would run, with what their loops and functions mean."""
    seen: set[tuple[object, ...]] = set()
    for at, text in enumerate(dict.fromkeys(readings(command))):
        other = _read(text, again=False)
        for name, words in other.loops.items():
            known = script.loops.setdefault(name, [])
            spend(len(words) + len(known))
            known[:] = dict.fromkeys([*known, *words])
        script.functions.update({n: t for n, t in other.functions.items() if n not in script.functions})
        for simple in other.commands:
            key = (simple.text, simple.words, simple.redirects, simple.piped, simple.stdin)
            if at == 0 or key not in seen:
                seen.add(key)
                script.commands.append(replace(simple, scope=(-1 - at, *simple.scope), recovered=True))


class Walk:
    """One pass over a syntax tree that fills a script."""

    def __init__(self, source: str, script: Script, again: bool = True) -> None:
        self.source, self.script, self.again = source, script, again
        self.scopes = 0
        self.depth = 0

    def text(self, start: int, end: int) -> str:
        return self.source[start:end]

    def inner(self, scope: tuple[int, ...]) -> tuple[int, ...]:
        self.scopes += 1
        return (*scope, self.scopes)

    def statement(self, node: Node, scope: tuple[int, ...], after_and: bool, piped: bool) -> None:
        spend(2)
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
        elif kind in HOLES:
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
        if not note and node.type in WORDS:
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

    def chain(
        self, node: Node, scope: tuple[int, ...], after_and: bool, piped: bool, redirects: Sequence[Node] = ()
    ) -> None:
        """`a && b || c …` hangs to the left in the tree, as deep as it is long.

        The grammar hangs the redirects of its last command on all of it.
        """
        lists = [node]
        while lists[-1].children and lists[-1].children[0].type == "list":
            lists.append(lists[-1].children[0])
        children = [lists[-1].children[0]] + [c for part in reversed(lists) for c in part.children[1:]]
        for child in children:
            if child.is_named and redirects and child == children[-1]:
                self.tied(node, child, list(redirects), scope, after_and, piped)
            elif child.is_named:
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
        values = [c for c in node.children if c.is_named and c.type in WORDS and c != variable]
        passed = {c.id for c in values} | ({variable.id} if variable else set())
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
        if not _LOOPED.fullmatch(name):
            assigns = tuple((name, w) for w in self.script.loops[name])
            self.script.commands.append(Simple(f"{node.children[0].type} {name}", assigns=assigns, scope=scope))
        for child in node.children:
            if child.is_named and child.id not in passed:
                self.statement(child, scope, False, False)

    def redirected(self, node: Node, scope: tuple[int, ...], after_and: bool, piped: bool) -> None:
        body = node.child_by_field_name("body")
        redirects = [c for c in node.children if c.type.endswith("_redirect")]
        self.tied(node, body, redirects, scope, after_and, piped)
        passed = {c.id for c in redirects} | ({body.id} if body else set())
        for child in node.children:
            if child.is_named and child.id not in passed:
                self.statement(child, scope, False, False)

    def tied(
        self,
        node: Node,
        body: Node | None,
        redirects: list[Node],
        scope: tuple[int, ...],
        after_and: bool,
        piped: bool,
    ) -> None:
        """A statement with the redirects that belong to it."""
        if body is None or body.type in ("command", "test_command", "declaration_command", "variable_assignment"):
            self.command(node, body, redirects, scope, after_and, piped)
        elif body.type == "pipeline":
            self.command_of_pipeline(node, body, redirects, scope, after_and, piped)
        elif body.type == "list":
            self.chain(body, scope, after_and, piped, redirects)
        else:
            self.command(node, None, redirects, scope, after_and, piped)
            self.statement(body, scope, after_and, piped)

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
        spend(8)
        start = body.start_byte if body else redirects[0].start_byte
        found = Found(self, scope)
        if body and body.type == "test_command":
            found.test(body)
        elif body and body.type == "variable_assignment":
            found.assign(body)
        elif body:
            found.children(body)
        for node in redirects:
            found.redirect(node)
        found.check()
        if misread(found.words):
            self.problem("a keyword of the shell, taken for a program")
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
            shell = self.inner(scope)
            if ends_early(self.source, node.start_byte, node.end_byte):
                self.problem("a substitution that seems to end inside a case")
            if node.type == "arithmetic_expansion" and self.source.find("case", node.start_byte, node.end_byte) >= 0:
                self.problem("arithmetic in which a case may end early")  # then a shell takes it for commands
            for child in node.children:
                if child.is_named and child.type not in ("variable_name", "special_variable_name"):
                    self.nested(child, shell, fed)

    def nested(self, node: Node, scope: tuple[int, ...], piped: bool) -> None:
        """Statements inside an expansion; words and operators in it only lead to further ones."""
        spend(3)
        if node.type == "regex":  # the pattern of ${x#…}, whose substitutions the grammar does not see
            text = self.text(node.start_byte, node.end_byte)
            if "$(" in text or "`" in text:
                self.problem("a pattern with a command in it")
                self.inside(text)
        elif node.type in ("command_substitution", "process_substitution") and self.depth < _DEPTH:
            self.depth += 1
            self.hole(node, scope)
            self.depth -= 1
        elif node.type in WORDS or node.type.endswith("_expression") or node.type in ("subscript", "string_content"):
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
            if node.type in HOLES:
                found.append(node)
            else:
                pending.extend(reversed(node.children))
            spend(1)
        return found

    def word(self, start: int, end: int, nodes: list[Node]) -> tuple[Word, list[Node]]:
        """The word between two byte offsets and the expansions in it."""
        found = self.expansions(nodes)
        holes = [Hole(n.start_byte - start, n.end_byte - start, n.type) for n in found]
        word = decode(self.text(start, end), holes)
        if word.odd:
            self.problem("a word that can be read in two ways")
            self.backquotes(word.raw)
        return word, found

    def backquotes(self, text: str) -> None:
        """Commands in backquotes where the grammar sees only text: in defaults of variables, in here-documents."""
        for inner in re.findall(r"(?<!\\)`((?:\\.|[^`\\])*)`", text, re.S):
            text = re.sub(r"\\([$`\\])", r"\1", inner)
            self.inside(text)

    def inside(self, text: str) -> None:
        """The commands in a text that the grammar took for something else."""
        nested = parse(text) if self.again else _read(text, again=False)
        self.script.commands += [replace(s, scope=self.inner(())) for s in nested.commands]
