"""What the transcript draws on, a tool call while it is live, and the rows above and below a reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hypercode.events import TurnEnd
from hypercode.messages import cut_by
from hypercode.ui import render
from hypercode.ui.clean import clean
from hypercode.ui.partial_json import partial_arguments
from hypercode.ui.style import Style

__all__ = ["LiveCall", "Surface", "ending_lines", "thought_rows"]

REASONING_ROWS = 3


class Surface(Protocol):
    """What the transcript needs of a screen."""

    @property
    def columns(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def colors(self) -> Any: ...
    def commit(self, lines: Sequence[str], tail: Sequence[str] | None = None) -> None: ...
    def set_tail(self, lines: Sequence[str]) -> None: ...


@dataclass(slots=True)
class LiveCall:
    """A tool call from the first piece of its name to its result."""

    name: str
    pieces: list[str] = field(default_factory=list)
    arguments: dict[str, Any] | None = None
    call_id: str = ""
    started: float | None = None
    printed: str = ""

    def known(self) -> dict[str, Any]:
        """The arguments as far as they are known."""
        return self.arguments if self.arguments is not None else partial_arguments("".join(self.pieces[:500]))


def thought_rows(style: Style, pieces: Sequence[str], columns: int) -> list[str]:
    """The last rows of what the model is thinking."""
    if not pieces:
        return []
    width = max(columns - 2, 8)
    lines = clean("".join(pieces[-400:])[-width * 8 :]).strip().split("\n")
    rows = [line[i : i + width] for line in lines for i in range(0, len(line), width)]
    return [style("∴ " + row, "dim", "italic") for row in rows[-REASONING_ROWS:]]


def ending_lines(style: Style, end: TurnEnd) -> list[str]:
    """What is said below a reply that did not come to its proper end."""
    if end.outcome == "aborted":
        return [style.yellow("[aborted]")]
    if end.error is not None:
        return render.error_lines(style, end.error, shown=end.ttft is not None)
    if why := cut_by(end.finish_reason):
        return [style.yellow(f"! The answer was cut by {why}. /continue goes on.")]
    return []
