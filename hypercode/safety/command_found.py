"""The words, assignments, redirects and here-documents of one simple command, out of its node in the syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from hypercode.safety.command_script import Redirect, document
from hypercode.safety.command_words import Piece, Word, decode
from hypercode.safety.command_work import spend

if TYPE_CHECKING:
    from tree_sitter import Node

    from hypercode.safety.command_parse import Walk

__all__ = ["HOLES", "WORDS", "Found"]

HOLES = {"command_substitution", "process_substitution", "arithmetic_expansion", "expansion"}
WORDS = {
    "word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "simple_expansion",
    "brace_expression", "variable_name", "regex", "extglob_pattern", *HOLES,
}  # fmt: skip


class Found:
    """The words, assignments and redirects of one simple command."""

    def __init__(self, walk: Walk, scope: tuple[int, ...]) -> None:
        self.walk = walk
        self.words: list[Word] = []
        self.assigns: list[tuple[str, Word]] = []
        self.redirects: list[Redirect] = []
        self.stdin: list[Word] = []
        self.holes: list[Node] = []
        self.statements: list[tuple[Node, bool]] = []
        self.construct = ""
        self.spans: list[tuple[int, int]] = []

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
        return bool(self.walk.text(start, end).replace("\\\n", ""))

    def check(self) -> None:
        """Between the pieces of one command there is nothing but blanks; the grammar sometimes reads on over a newline."""
        for (_, end), (start, _) in pairwise(sorted(self.spans)):
            if self.walk.text(end, start).replace("\\\n", "").strip(" \t"):
                self.construct = "not understood as a shell command"
                self.walk.problem("a line break inside a command")

    def flush(self, cluster: list[Node]) -> None:
        if cluster:
            self.words.append(self.take(cluster[0].start_byte, cluster[-1].end_byte, list(cluster)))
            cluster.clear()

    def take(self, start: int, end: int, nodes: list[Node]) -> Word:
        word, holes = self.walk.word(start, end, nodes)
        self.holes += holes
        self.spans.append((start, end))
        return word

    def assign(self, node: Node) -> None:
        if self.walk.text(node.end_byte, node.end_byte + 2) == "\\\n":
            self.walk.problem("an assignment that goes on behind a line break")
        word = self.take(node.start_byte, node.end_byte, [node])
        match = re.match(r"[A-Za-z_]\w*(?=(?:\[[^]]*\])?\+?=)", word.raw)
        value = node.child_by_field_name("value")
        name = match[0] if match else ""
        if value is not None and value.type == "array":
            for part in [c for c in value.children if c.is_named]:
                self.assigns.append((name, self.walk.word(part.start_byte, part.end_byte, [part])[0]))
            self.assigns += [] if value.named_child_count else [(name, decode(""))]
            return
        held = decode("") if value is None else self.walk.word(value.start_byte, value.end_byte, [value])[0]
        if name and word.raw.startswith(f"{name}+="):  # what it held before, and this
            held = replace(held, pieces=(Piece("var", name, True), *held.pieces))
        self.assigns.append((name, held))

    def redirect(self, node: Node) -> None:
        spend(12)
        if node.type == "heredoc_redirect":
            self.heredoc(node)
            return
        targets = [c for c in node.children if c.is_named and c.type not in ("file_descriptor", "ERROR")]
        signs = [c for c in node.children if c.type == "file_descriptor" or not c.is_named]
        self.spans += [(c.start_byte, c.end_byte) for c in signs]
        op = "".join(c.type for c in signs if not c.is_named)
        if (
            self.words
            and self.words[-1].raw.endswith("}")
            and self.walk.text(node.start_byte - 1, node.start_byte) == "}"
        ):
            self.walk.problem("a redirect that sets a variable")
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
            elif child.type in WORDS:
                self.words.append(self.take(child.start_byte, child.end_byte, [child]))
            elif child.is_named and child.type not in ("heredoc_start", "heredoc_end", "file_descriptor"):
                self.construct = "not understood as a shell command"
                self.statements.append((child, False))

    def test(self, node: Node) -> None:
        """`[ … ]` and `[[ … ]]`, cut into words at the blanks outside quotes."""
        self.spans.append((node.start_byte, node.end_byte))
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
