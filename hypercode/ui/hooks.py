"""What the screen and whoever drives it say to each other; the same for the full and for the plain screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypercode.ui.clean import strip_sgr

__all__ = ["MARKED", "Answer", "Choice", "Hooks", "declining", "matching"]


MARKED = 6
"""Cells before a line that can be picked: the mark, its number and two blanks."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One possible answer to a question. `key` is one character; with `free_text` a line is asked for as well.

    `short` is the label where there is no room for the long one.
    """

    key: str
    label: str
    free_text: bool = False
    short: str = ""

    @property
    def word(self) -> str:
        """The first word of the label, as `yes`, which may be written out instead of the key."""
        return self.label.partition(" ")[0].strip(",:").casefold()


@dataclass(frozen=True, slots=True)
class Answer:
    """The key of the choice taken, and what was typed after it."""

    key: str
    text: str = ""


def _nothing() -> None:
    return None


def _drop(text: str) -> None:
    return None


@dataclass(slots=True, kw_only=True)
class Hooks:
    """Called by the screen, in the event loop. They must return at once: start a task for anything that takes time.

    `submit` gets a message, folded pastes already expanded, never empty. `interrupt` is Ctrl-C, typed or sent. `eof` is
    Ctrl-D on an empty line, or the end of the input. `take_back` gives the last waiting message back, or None.
    """

    submit: Callable[[str], None] = _drop
    interrupt: Callable[[], None] = _nothing
    eof: Callable[[], None] = _nothing
    cycle_mode: Callable[[], None] = _nothing
    expand: Callable[[], None] = _nothing
    take_back: Callable[[], str | None] = _nothing


def declining(choices: Sequence[Choice]) -> Choice:
    """The choice that leaves everything as it is, which Ctrl-D takes: no, where there is a no, else the last one."""
    return next((choice for choice in choices if choice.key == "n"), choices[-1])


def matching(lines: Sequence[str], words: str) -> list[int]:
    """The places of the lines that have all of the words, upper case as lower; a number is the line of that number."""
    wanted = words.casefold().split()
    if len(wanted) == 1 and wanted[0].isdecimal() and 0 < int(wanted[0]) <= len(lines):
        return [int(wanted[0]) - 1]
    plain = [strip_sgr(line).casefold() for line in lines]
    return [place for place, line in enumerate(plain) if all(word in line for word in wanted)]
