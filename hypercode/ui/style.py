"""Colours for our own words: SGR codes around text that is already clean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Style"]

_CODES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
_COLOURS = frozenset({"red", "green", "yellow", "blue", "magenta", "cyan"})


@dataclass(frozen=True, slots=True)
class Style:
    """`Style(colours)("text", "bold", "red")`.

    Without `colours` only weight and slant remain (NO_COLOR); with `plain` nothing does.
    """

    colours: bool = True
    plain: bool = False

    def __call__(self, text: str, *names: str) -> str:
        """The text with these styles; empty text stays empty."""
        wanted = [_CODES[n] for n in names if not self.plain and (self.colours or n not in _COLOURS)]
        return f"\x1b[{';'.join(wanted)}m{text}\x1b[0m" if text and wanted else text

    def __getattr__(self, name: str) -> Callable[[str], str]:
        if name not in _CODES:
            raise AttributeError(name)
        return lambda text: self(text, name)
