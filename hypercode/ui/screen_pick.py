"""A list in the live region out of which one line is taken: by arrow keys, by its number, or by words that are in it."""

from __future__ import annotations

from collections.abc import Sequence

from prompt_toolkit.formatted_text import StyleAndTextTuples

from hypercode.ui.hooks import Answer, Choice, matching
from hypercode.ui.screen_ask import Question
from hypercode.ui.screen_rows import fragments

__all__ = ["Pick"]

_SEARCH = Choice("", "search", free_text=True)


class Pick(Question):
    """A question whose answer is the place of a line, as a number; empty where none was taken.

    What is typed searches; the arrow keys move the mark.
    """

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__([title], [_SEARCH])
        self.chosen = _SEARCH
        self._title = title
        self._all = list(lines)
        self._shown = list(range(len(lines)))
        self._mark = 0

    def search(self, words: str) -> None:
        """Show only what matches."""
        self._shown, self._mark = matching(self._all, words), 0

    def scroll(self, pages: int) -> None:
        """Move the mark by a page."""
        self.move(pages * max(1, self._height - 2))

    def move(self, lines: int) -> None:
        """Move the mark."""
        self._mark = max(0, min(self._mark + lines, len(self._shown) - 1))

    def accept(self, text: str) -> Answer:
        """Enter: the marked line."""
        return Answer("", str(self._shown[self._mark]) if self._shown else "")

    def rows(self, width: int) -> list[StyleAndTextTuples]:
        """Returns the title and a row for each line that matches."""
        rows = [
            fragments(f"{'▶' if n == self._mark else ' '}{p + 1:>3}  {self._all[p]}") for n, p in enumerate(self._shown)
        ]
        count = f" ({len(self._shown)} of {len(self._all)})" if len(self._shown) < len(self._all) else ""
        return [[("class:question.bar", self._title + count)], *(rows or [fragments("  nothing matches")])]

    def view(self, width: int, height: int) -> list[StyleAndTextTuples]:
        """Returns the title, if there is room, and the lines around the mark."""
        self._height = height
        title, *rows = self.rows(width)
        room = height - 1 if height > 1 else 1
        first = max(0, min(self._mark - room // 2, len(rows) - room))
        return [*([title] if height > 1 else []), *rows[first : first + room]]
