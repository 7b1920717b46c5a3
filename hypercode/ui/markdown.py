"""Markdown that is still arriving, as terminal rows: what is final once, what is open as a short tail.

`MarkdownStream` gives every finished block away once, for good, and the last rows of the open block again and again;
`render` prints a whole text. Both give the same rows (link definitions below their use apart: what is printed stays).
Rows are strings with SGR sequences only; nothing here writes to a terminal. Text is expected to be cleaned of control
characters.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hypercode.ui.highlight import Highlighter, find_lexer
from hypercode.ui.markdown_blocks import Part, Scanner, parse_blocks
from hypercode.ui.markdown_elements import Node, Place, Renderer, plain, tree
from hypercode.ui.markdown_tail import Tail
from hypercode.ui.markdown_text import MAX_NESTING, Inline, paint, parser

__all__ = ["Frame", "MarkdownStream", "render", "warm_up"]

SLICE = 2_000
"""Characters of source after which `aframe` lets the event loop go on."""
LARGE = 8_000
"""A block of more characters is rendered in a thread."""

_COMMON = ("python", "bash", "javascript", "typescript", "json", "diff", "yaml", "html", "css", "sql", "rust", "go", "c", "toml")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Frame:
    """`commit`: rows to print for good, above. `tail`: rows that replace the previous tail."""

    commit: list[str]
    tail: list[str]


class MarkdownStream:
    """Incremental renderer of one reply.

    `width` is in cells. `color` is None for no colours (NO_COLOR; weight and slant stay), any other value for the
    terminal's sixteen. Not for use from several threads or tasks at once, but `feed` may be called while `aframe` runs.
    """

    def __init__(self, width: int, *, color: str | None = None) -> None:
        self._width = max(1, width)
        self._colour = color is not None
        self._scanner = Scanner()
        self._inline = Inline(colour=self._colour)
        self._tail = Tail(self._scanner, self._inline, colour=self._colour)
        self._ready: list[str] = []
        self._begun = False  # whether anything was printed: then blocks have a blank line above them
        self._code: Highlighter | None = None
        self._gap = False  # the blank line above a code block comes with its first line

    def feed(self, text: str) -> None:
        """Take the next piece of text; cheap, nothing is parsed."""
        if text:
            self._scanner.feed(text)
            self._tail.changed = True

    @property
    def between(self) -> bool:
        """Whether something else may be printed above the tail: not inside a code block or a list."""
        return self._scanner.fence is None and self._scanner.list is None

    @property
    def begun(self) -> bool:
        """Whether rows of it were printed."""
        return self._begun

    def interrupted(self) -> None:
        """Something else was printed above the tail: what follows has a blank line above it."""
        self._begun = True

    def resize(self, width: int) -> None:
        """Use another width for what is not printed yet."""
        self._width = max(1, width)

    def frame(self, *, tail_rows: int) -> Frame:
        """Everything that became final, and at most `tail_rows` rows of the rest."""
        self._advance()
        return Frame(self._take(), self._live(tail_rows))

    async def aframe(self, *, tail_rows: int) -> Frame:
        """The same without holding up the event loop: much text is rendered in slices, a large block in a thread.

        When cancelled nothing is lost: the next frame, or `close`, has it.
        """
        await self._aadvance()
        return Frame(self._take(), self._live(tail_rows))

    def close(self) -> list[str]:
        """The text has ended (or is broken off): all rows that are left."""
        self._scanner.close()
        self._advance()
        return self._take()

    async def aclose(self) -> list[str]:
        """`close`, without holding up the event loop."""
        self._scanner.close()
        await self._aadvance()
        return self._take()

    def _advance(self) -> None:
        while (part := self._scanner.next()) is not None:
            self._accept(part, self._rendered(part))

    async def _aadvance(self) -> None:
        size = 0
        while (part := self._scanner.next()) is not None:
            if part.kind != "code" and part.size > LARGE:
                rows = await asyncio.to_thread(self._rendered, part)
            else:
                size += part.size
                rows = self._rendered(part)
            self._accept(part, rows)
            if size > SLICE:
                size = 0
                await asyncio.sleep(0)

    def _take(self) -> list[str]:
        rows, self._ready = self._ready, []
        return rows

    def _live(self, rows: int) -> list[str]:
        open_list = self._scanner.list
        if self._scanner.fence is not None:
            gap = self._gap
        else:
            gap = open_list is None or open_list.gap
        return self._tail.render(rows, self._width, code=self._code, gap=gap and self._begun)

    def _rendered(self, part: Part) -> list[str]:
        """The rows of a part. Only code lines depend on what was rendered before, and only they change anything."""
        if part.kind == "code":
            code = self._code or Highlighter("", colour=self._colour)
            return [paint(code.line(line)).rstrip(" \t") for line in part.source]
        if not part.tokens:
            return plain(part.source, self._width)
        renderer = Renderer(self._inline, self._colour, part.references, part.source, part.offset)
        place = Place(self._width)
        try:
            (node,) = tree(part.tokens)
            rows, _ = renderer.item(node, part.number, place) if part.kind == "item" else renderer.block(node, place)
        except Exception:  # noqa: BLE001 - whatever fails in one block: its text is shown, and the reply goes on
            return plain(part.source, self._width)
        return rows

    def _accept(self, part: Part, rows: list[str]) -> None:
        self._scanner.done()
        gap = part.gap
        if part.kind == "fence":
            self._code, self._gap = Highlighter(part.info, colour=self._colour), True
        elif part.kind == "code":
            gap, self._gap = self._gap, False
        if rows:
            self._ready += ["", *rows] if gap and self._begun else rows
            self._begun = True


def render(text: str, width: int, color: str | None = None) -> list[str]:
    """The rows of a whole Markdown text."""
    colour = color is not None
    lines = text.replace("\r", "").replace("\0", "\ufffd").split("\n")
    try:
        tokens, references = parse_blocks(lines, {})
        if any(token.level >= MAX_NESTING - 1 for token in tokens):
            raise ValueError("nested too deeply")
    except Exception:  # noqa: BLE001 - see MarkdownStream._rendered
        return plain(lines, max(1, width))
    renderer = Renderer(Inline(colour=colour), colour, references, lines)
    rows: list[str] = []
    for node in tree(tokens):
        block = _block(renderer, node, max(1, width))
        rows += ["", *block] if rows and block else block
    return rows


def _block(renderer: Renderer, node: Node, width: int) -> list[str]:
    try:
        return renderer.block(node, Place(width))[0]
    except Exception:  # noqa: BLE001 - see MarkdownStream._rendered
        begin, end = node.token.map or (0, 0)
        return plain(renderer.source[begin:end], width)


def warm_up() -> None:
    """Import and use once all that the first reply needs (some 100 ms); meant for a thread."""
    sample = "# A\n\n*b* `c` [d](e)\n\n- f\n\n| g |\n|---|\n| 字 |\n"
    render(sample, 40, "standard")
    parser()
    for name in _COMMON:
        if find_lexer(name) is not None:
            Highlighter(name, colour=True).line('x = "1"  # y')
