"""A question in the live region: all of it can be read before it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from prompt_toolkit.formatted_text import StyleAndTextTuples

from hypercode.ui.hooks import Answer, Choice, declining
from hypercode.ui.screen_rows import row_width, wrap

__all__ = ["Question"]

# Foreign text can imitate a question, but not this bar in front of each of its rows.
_BAR = ("class:question.bar", "│ ")


class Question:
    """The text, the choices, how far it is scrolled, and the answer to come.

    A text higher than its window shows head and tail and how much is between; PgDn and PgUp go through all of it.
    """

    def __init__(self, lines: Sequence[str], choices: Sequence[Choice]) -> None:
        if not choices:
            raise ValueError("a question needs choices")
        self._lines = [part for line in lines for part in line.split("\n")]
        self._rows: tuple[int, list[StyleAndTextTuples]] = (0, [])
        self._top: int | None = None
        self._height = 1
        self.choices = tuple(choices)
        self.chosen: Choice | None = None
        self.armed = True
        self.fresh = False
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def rows(self, width: int) -> list[StyleAndTextTuples]:
        """Returns every row of the text, wrapped to `width` cells, the bar included."""
        if self._rows[0] != width:
            self._rows = (width, [[_BAR, *row] for line in self._lines for row in wrap(line, width - 2)])
        return self._rows[1]

    def view(self, width: int, height: int) -> list[StyleAndTextTuples]:
        """Returns the rows to show in a window of that size."""
        rows = self.rows(width)
        self._height = height
        if len(rows) <= height:
            return rows
        if height < 2:
            top = min(self._top or 0, len(rows) - 1)
            return rows[top : top + 1]
        if self._top is None:
            head = height // 2
            tail = height - 1 - head
            hidden = f"··· {len(rows) - head - tail} of {len(rows)} rows not shown, PgDn reads on ···"
            if len(hidden) > width - 2:
                hidden = f"··· {len(rows) - head - tail} rows hidden: PgDn ···"
            return [*rows[:head], [_BAR, ("class:question.more", hidden)], *rows[len(rows) - tail :]]
        self._top = min(self._top, len(rows) - height + 1)
        where = f"··· rows {self._top + 1} to {self._top + height - 1} of {len(rows)}, PgUp PgDn ···"
        return [*rows[self._top : self._top + height - 1], [_BAR, ("class:question.more", where)]]

    def scroll(self, pages: int) -> None:
        """Moves the window by whole pages; at the top it shows head and tail again."""
        step = max(1, self._height - 1)
        if self._top is None:
            # The head is on the screen already: the first page down goes on where it ends.
            self._top = None if pages < 0 else max(1, self._height // 2)
        elif self._top + pages * step <= 0:
            self._top = None
        else:
            self._top += pages * step

    def choice_rows(self, width: int, limit: int) -> list[StyleAndTextTuples]:
        """Returns the choices as at most `limit` rows: with their labels if they fit, else with short ones, else the keys."""
        for labels in ([c.label for c in self.choices], [c.short or c.label for c in self.choices]):
            rows = self._legend(labels, width)
            if len(rows) <= limit:
                return rows
        return self._legend([""] * len(self.choices), width)[:limit]

    def _legend(self, labels: Sequence[str], width: int) -> list[StyleAndTextTuples]:
        """As many choices a row as there is room for; a label longer than a row goes on below its beginning."""
        rows: list[StyleAndTextTuples] = []
        between, open_row = "  " if any(labels) else " ", False
        for choice, label in zip(self.choices, labels, strict=True):
            first, *more = (_text(row) for row in wrap(label, width - 2))
            item: StyleAndTextTuples = [("class:question.key", choice.key)]
            if first:
                item.append(("class:question.label", f" {first}"))
            if open_row and not more and row_width(rows[-1]) + len(between) + row_width(item) <= width:
                rows[-1] += [("", between), *item]
            else:
                rows.append(item)
                rows.extend([("class:question.label", f"  {text}")] for text in more)
            open_row = not more
        return rows

    def choice(self, key: str) -> Choice | None:
        """What a key stands for; upper case counts as lower where only that is offered."""
        return next((c for k in (key, key.lower()) for c in self.choices if c.key == k), None)

    def named(self, word: str) -> Choice | None:
        """The choice whose label begins with a word, as `yes` and `no`."""
        wanted = word.strip().rstrip(".!").casefold()
        return next((c for c in self.choices if len(wanted) > 1 and c.word == wanted), None)

    def press(self, key: str) -> None:
        """Takes one key. An unknown one is ignored."""
        choice = self.choice(key)
        if choice is None:
            return
        if choice.free_text:
            self.chosen = choice
        else:
            self.resolve(Answer(choice.key))

    def decline(self) -> None:
        """Takes the choice that leaves everything as it is."""
        self.resolve(Answer(declining(self.choices).key))

    def accept(self, text: str) -> Answer:
        """Returns the answer that Enter gives after this text; `n` and then `o` is a no without a reason."""
        if self.chosen is None:
            return Answer("", text)
        return Answer(self.chosen.key, "" if self.chosen.key + text == self.chosen.word else text)

    def resolve(self, answer: Answer) -> None:
        """Gives the answer, once."""
        if not self.answer.done():
            self.answer.set_result(answer)


def _text(row: StyleAndTextTuples) -> str:
    return "".join(piece[1] for piece in row).rstrip()
