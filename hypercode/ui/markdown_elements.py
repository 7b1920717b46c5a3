"""Markdown blocks as terminal rows.

Everything is printed so that it looks the same whether a block is rendered alone or with its neighbours: the width of an
item does not depend on the other items, and blank lines inside lists and quotes are those of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypercode.ui.highlight import Highlighter, Run
from hypercode.ui.markdown_table import Align, Row, table
from hypercode.ui.markdown_text import Inline, fold, paint, styles

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["Node", "Place", "Renderer", "code_lines", "plain", "tree"]

MIN_WIDTH = 20
"""Below this many cells nothing is indented any more."""
RULE = 24

_BULLETS = "•◦▪"

Lines = tuple[list[str], bool]
"""Rows, and whether they are all of the element or only its last ones."""


@dataclass(slots=True)
class Node:
    """A block token with what stands inside it."""

    token: Token
    children: list[Node] = field(default_factory=list)

    @property
    def content(self) -> str:
        """Inline source of a paragraph, heading or cell."""
        return self.children[0].token.content if self.children else ""


def tree(tokens: Sequence[Token]) -> list[Node]:
    """The blocks of a flat token list."""
    top: list[Node] = []
    levels = [top]
    for token in tokens:
        if token.nesting < 0:
            if len(levels) > 1:
                levels.pop()
            continue
        node = Node(token)
        levels[-1].append(node)
        if token.nesting > 0:
            levels.append(node.children)
    return top


def code_lines(content: str) -> list[str]:
    """The lines of a code block that are shown: all but blank ones at its end."""
    lines = content.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def plain(lines: Iterable[str], width: int) -> list[str]:
    """Source lines as they are, cut at the margin; without blank lines at the end."""
    return [
        paint(row)
        for line in code_lines("\n".join(lines))
        for row in (fold([(line.rstrip(), "")], width) if line.strip() else [[]])
    ]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block stands: the cells it may take, and what it is inside of."""

    width: int
    depth: int = 0
    quoted: bool = False


@dataclass(slots=True)
class Renderer:
    """Renders blocks of one source. `offset` is the line number of `source[0]` in the tokens' maps.

    In a `live` tail all rows fit the width; printed for good, code outside quotes keeps its lines whole.
    """

    inline: Inline
    colour: bool
    references: Mapping[str, Any]
    source: Sequence[str]
    offset: int = 0
    live: bool = False
    highlight: Callable[[str, list[str]], list[list[Run]]] | None = None

    def block(self, node: Node, place: Place, limit: int | None = None) -> Lines:
        """One block; with a limit only its last rows if it is long, but at least that many."""
        token = node.token
        match token.type:
            case "paragraph_open":
                return self._text(node, place, ""), True
            case "heading_open":
                return self._text(node, place, styles(self.colour)[f"h{min(4, int(token.tag[1]))}"]), True
            case "fence" | "code_block":
                return self._code(token, place, limit)
            case "bullet_list_open" | "ordered_list_open":
                return self._list(node, place, limit)
            case "blockquote_open":
                bar = ("▌ ", styles(self.colour)["bar"])
                return self._inside(node, Place(place.width, place.depth, True), bar, bar, limit)
            case "table_open":
                return self._table(node, place.width, limit)
            case "hr":
                return [paint([("─" * min(place.width, RULE), styles(self.colour)["rule"])])], True
            case _:
                return plain(token.content.split("\n"), place.width), True

    def item(self, node: Node, number: int | None, place: Place, limit: int | None = None) -> Lines:
        """A list item: its number takes two digits at least, so that the tenth does not move the others."""
        marker = f" {_BULLETS[place.depth % len(_BULLETS)]} " if number is None else f"{number:2d}. "
        first = (marker, styles(self.colour)["bullet"])
        return self._inside(
            node, Place(place.width, place.depth + 1, place.quoted), first, (" " * len(marker), ""), limit
        )

    def _list(self, node: Node, place: Place, limit: int | None) -> Lines:
        start = node.token.attrGet("start")
        number = None if node.token.type == "bullet_list_open" else 1 if start is None else int(start)

        def item(k: int, rows: int | None) -> Lines:
            return self.item(node.children[k], None if number is None else number + k, place, rows)

        return self._stack(node.children, item, limit)

    def _inside(self, node: Node, place: Place, first: Run, other: Run, limit: int | None) -> Lines:
        """A container's blocks behind a prefix; where there is no room for one, only its first row has it."""
        inner = place.width - len(first[0])
        if inner < MIN_WIDTH:
            first, other = (first[0].strip() + " ", first[1]), ("", "")
            inner = max(min(place.width, 8), place.width - len(first[0]))
        below = Place(inner, place.depth, place.quoted)
        rows, whole = self._stack(node.children, lambda k, rows: self.block(node.children[k], below, rows), limit)
        prefix, bare = paint([other]), paint([(other[0].rstrip(), other[1])])
        lines = [prefix + row if row else bare for row in rows]
        if whole:
            lines[:1] = [paint([first]) + rows[0] if rows and rows[0] else paint([(first[0].rstrip(), first[1])])]
        return lines, whole

    def _stack(self, nodes: Sequence[Node], render: Callable[[int, int | None], Lines], limit: int | None) -> Lines:
        """Blocks below one another, from the last upwards until there are enough rows."""
        chunks: list[list[str]] = []
        count, whole = 0, True
        for k in range(len(nodes) - 1, -1, -1):
            if not whole or (limit is not None and count >= limit):
                whole = False
                break
            lines, whole = render(k, None if limit is None else limit - count)
            if lines and chunks and self._blank_above(nodes[k + 1]):
                lines = [*lines, ""]
            chunks.append(lines)
            count += len(lines)
        return [line for chunk in reversed(chunks) for line in chunk], whole

    def _blank_above(self, node: Node) -> bool:
        """Whether the source has a blank line (inside quotes: a line of markers) before the block."""
        line = (node.token.map[0] if node.token.map else 0) - self.offset - 1
        return line >= 0 and not self.source[line].strip("> \t")

    def _text(self, node: Node, place: Place, style: str) -> list[str]:
        return self.inline.rows(node.content, self.references, place.width, style, words=place.quoted)

    def _code(self, token: Token, place: Place, limit: int | None) -> Lines:
        lines = code_lines(token.content)
        coloured = (self.highlight or self._highlight)(token.info, lines)
        whole = limit is None or len(coloured) <= limit
        if limit is not None:
            coloured = coloured[-limit:]
        if self.live or place.quoted:
            coloured = [row for runs in coloured for row in fold(runs, place.width)]
        return [paint(runs).rstrip(" \t") for runs in coloured], whole

    def _highlight(self, info: str, lines: list[str]) -> list[list[Run]]:
        highlighter = Highlighter(info, colour=self.colour)
        return [highlighter.line(line) for line in lines]

    def _table(self, node: Node, width: int, limit: int | None) -> Lines:
        head, *rows = [row for part in node.children for row in part.children]
        aligns = [_align(cell.token) for cell in head.children]
        cells = [self._cells(row, len(aligns)) for row in rows]
        lines = table(self._cells(head, 0), cells, aligns, width, colour=self.colour, last=limit)
        return lines, limit is None or len(rows) < limit

    def _cells(self, row: Node, columns: int) -> Row:
        cells = [self.inline.runs(cell.content, self.references) for cell in row.children]
        line = (row.token.map[0] if row.token.map else 0) - self.offset
        if columns and 0 <= line < len(self.source) and self.source[line].count("|") > columns:
            # More cells than the head has (an unescaped | in code, mostly): the parser drops them.
            from markdown_it.rules_block.table import escapedSplit

            parts = escapedSplit(self.source[line].strip(" \t>"))
            parts = parts[parts[0] == "" : len(parts) - (parts[-1] == "")]
            for extra in parts[columns:]:
                cells[-1] = [*cells[-1], (" | ", ""), *self.inline.runs(extra.strip(), self.references)]
        return cells


def _align(token: Token) -> Align:
    style = str(token.attrGet("style") or "")
    return "right" if "right" in style else "center" if "center" in style else "left"
