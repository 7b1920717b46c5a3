"""What the transcript draws on, and a tool call while it is live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hypercode.ui.partial_json import partial_arguments

__all__ = ["LiveCall", "Surface"]


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
