"""The open end of a Markdown text as a few rows: its cost is bounded, however long the open block is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hypercode.ui.highlight import Highlighter, Run
from hypercode.ui.markdown_blocks import Fence, Scanner, continues, parse_blocks
from hypercode.ui.markdown_elements import Place, Renderer, plain, tree
from hypercode.ui.markdown_text import Inline, fold, paint, wrap

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["Tail"]

SOURCE = 2_000
"""Most characters of source the tail goes back to when it has become longer than three times that."""
PEEK = 400
"""A longer unfinished line of code is shown without colours: it would be lexed again in each frame."""

# A line that may still become a rule, an underline, a list item, a table: it would flash as text.
_MARKERS = re.compile(r"[ \t>]*(?:[-=#*+_|:`~>\s]*|\d{1,9}[.)]?\s*)").fullmatch
_PREFIX = re.compile(r"[ >]*(?:(?:[-+*]|\d{1,9}[.)]) +)?")


class _Parsed:
    """The blocks of some source lines; while only its last line grows the structure stays."""

    def __init__(self, source: list[str], scanner: Scanner) -> None:
        tokens, found = parse_blocks(source, scanner.references)
        self.taken = scanner.taken
        self.references: Mapping[str, Any] = {**found, **scanner.references} if found else scanner.references
        self.nodes = tree(tokens)
        if scanner.list is not None and self.nodes and self.nodes[0].token.type == "ordered_list_open":
            self.nodes[0].token.attrSet("start", scanner.list.number)
        self._above, self._last = source[:-1], source[-1]
        self._leaf = _growing(tokens, len(source))
        if self._leaf is not None:
            stem, _, piece = self._leaf.content.removesuffix("\n").rpartition("\n")
            self._stem = stem + "\n" if _ else ""
            self._column = self._last.rstrip().rfind(piece)
            if not piece.strip() or self._column < 0 or piece[0] == "[":
                self._leaf = None

    def grow(self, source: list[str]) -> bool:
        """Take the source if it is the same but for more text at its end that cannot change the structure."""
        leaf = self._leaf
        if leaf is None or not source[-1].startswith(self._last) or source[:-1] != self._above:
            return False
        self._last = source[-1]
        piece = self._last[self._column :]
        leaf.content = self._stem + (piece.rstrip() if leaf.type == "inline" else piece + "\n")
        return True


def _growing(tokens: Sequence[Token], end: int) -> Token | None:
    """The paragraph or code block whose last line is the last of all. What it is was settled by that line's start."""
    for k in range(len(tokens) - 1, -1, -1):
        token = tokens[k]
        if token.type == "fence" or (token.type == "inline" and tokens[k - 1].type == "paragraph_open"):
            return token if token.map and token.map[1] >= end else None
        if token.nesting >= 0:
            return None
    return None


class Tail:
    """Renders what a scanner holds back. Set `changed` when it may hold something else."""

    def __init__(self, scanner: Scanner, inline: Inline, *, colour: bool) -> None:
        self.changed = True
        self._scanner = scanner
        self._inline = inline
        self._colour = colour
        self._last: tuple[tuple[object, ...], list[str]] = ((), [])
        self._taken = self._from = 0
        self._heads: list[str] = []
        self._parsed: _Parsed | None = None
        self._code: tuple[str, list[str], list[list[Run]], Highlighter] | None = None

    def render(self, rows: int, width: int, *, code: Highlighter | None, gap: bool) -> list[str]:
        """At most `rows` rows; with `gap` a blank row first, if there is room."""
        key = (rows, width, gap, self._scanner.taken, self._scanner.fence)
        if not self.changed and self._last[0] == key:
            return self._last[1]
        self.changed = False
        fence = self._scanner.fence
        if rows < 1:
            lines: list[str] = []
        elif fence is not None and code is not None:
            lines = self._open_code(fence, code, rows, width)
        else:
            lines = self._open_block(rows, width)
        lines = lines[-rows:] if rows > 0 else []
        if gap and 0 < len(lines) < rows:
            lines = ["", *lines]
        self._last = (key, lines)
        return lines

    def _open_code(self, fence: Fence, code: Highlighter, rows: int, width: int) -> list[str]:
        line = fence.content(self._scanner.partial)
        if not line.strip().strip(fence.marker):  # nothing yet, or the fence that closes the block
            return []
        screen = rows * width
        if len(line) > 4 * screen:
            step = width if line.isascii() and "\t" not in line else screen  # rows stay where they are, or nearly
            line = line[(len(line) - 2 * screen) // step * step :]
        blanks = [""] * min(rows, len(self._scanner.blanks))
        runs = code.peek(line) if len(line) <= PEEK else [(line, "")]
        return blanks + [paint(row).rstrip(" ") for row in fold(runs, width)]

    def _open_block(self, rows: int, width: int) -> list[str]:
        scanner = self._scanner
        partial = "" if _MARKERS(scanner.partial) else scanner.partial
        kind = scanner.open_kind if scanner.lines else "paragraph_open"
        if not scanner.lines and not partial:
            return []
        source = self._source(partial, min(SOURCE, 400 + rows * width))
        try:
            if kind == "paragraph_open" and source[-1][:1] != "|" and (not partial or continues(kind, partial)):
                text = "\n".join(source).strip()
                return [paint(row) for row in wrap(self._inline.runs(text, scanner.references), width)]
            return self._blocks(_with_table_rule(source), rows, width)
        except Exception:  # noqa: BLE001 - as everywhere: text that cannot be rendered is shown as it is
            return plain(source[-rows:], width)

    def _blocks(self, source: list[str], rows: int, width: int) -> list[str]:
        parsed = self._parsed
        if parsed is None or parsed.taken != self._scanner.taken or not parsed.grow(source):
            parsed = self._parsed = _Parsed(source, self._scanner)
        renderer = Renderer(self._inline, self._colour, parsed.references, source, 0, True, self._highlight)
        nodes, lines = parsed.nodes, list[str]()
        for node in reversed(nodes):
            if len(lines) >= rows:
                break
            block, _ = renderer.block(node, Place(width), rows - len(lines))
            lines = [*block, "", *lines] if lines and block else block + lines
        return lines

    def _source(self, partial: str, room: int) -> list[str]:
        """The last lines, below those that say what they are inside of. Where they begin changes seldom: rows stay."""
        scanner = self._scanner
        if scanner.taken != self._taken:
            self._taken, self._from, self._heads = scanner.taken, 0, []
        lines = [*self._heads, *scanner.lines[self._from :]]
        if sum([min(len(line), room) for line in lines]) > 3 * room:
            size, at = 0, len(lines)
            while at > len(self._heads) and size < room:
                at -= 1
                size += len(lines[at])
            self._from += at - len(self._heads)
            self._heads = _heads(lines, at, scanner.references)
            lines = [*self._heads, *scanner.lines[self._from :]]
        if partial:
            lines.append(partial)
        return [line if len(line) <= 2 * room else _shortened(line, room) for line in lines]

    def _highlight(self, info: str, lines: list[str]) -> list[list[Run]]:
        """Code inside the open block: only what is new since the last frame is lexed."""
        if not lines:
            return []
        known = self._code
        if known is None or known[0] != info or lines[: len(known[1])] != known[1] or len(known[1]) >= len(lines):
            known = self._code = (info, [], [], Highlighter(info, colour=self._colour))
        _, done, coloured, highlighter = known
        for line in lines[len(done) : -1]:
            done.append(line)
            coloured.append(highlighter.line(line))
        return [*coloured, highlighter.peek(lines[-1])]


def _heads(lines: list[str], at: int, references: Mapping[str, Any]) -> list[str]:
    """The first lines of all that is open at line `at`: items, a fence, a table's head."""
    tokens, _ = parse_blocks(lines, references)
    heads: dict[int, str] = {}
    for token in tokens:
        if token.map and token.map[0] < at < token.map[1] and token.nesting >= 0:
            first = token.map[0]
            if token.type == "list_item_open":
                heads.setdefault(first, lines[first][:200])
            elif token.type in ("fence", "table_open"):
                heads[first] = lines[first]
                if token.type == "table_open" and first + 1 < at:
                    heads[first + 1] = lines[first + 1]
    return [heads[first] for first in sorted(heads)]


def _shortened(line: str, room: int) -> str:
    start = (len(line) // room - 1) * room
    blank = line.find(" ", start, start + 100)
    prefix = _PREFIX.match(line)
    return (prefix[0] if prefix else "") + line[start if blank < 0 else blank + 1 :]


def _with_table_rule(source: list[str]) -> list[str]:
    """Show a table's head as one before its rule has arrived."""
    if not source[-1].startswith("|") or (len(source) > 1 and source[-2].lstrip().startswith("|")):
        return source
    cells = source[-1].rstrip().rstrip("|").count("|") - source[-1].count("\\|")
    return [*source, "|" + "---|" * cells] if cells > 0 else source
