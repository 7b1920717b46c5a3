"""What a session has spent, added up from its records; by the reader of a journal as by its writer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypercode.budget import added, billed

__all__ = ["Spending"]


@dataclass(slots=True)
class Spending:
    """The turns, what they and other calls cost in USD (None while no provider has said), and the sum of what was counted.

    A turn counts with the record of its reply, so that what was paid is not lost where the program ends before the turn
    does; with its end where there was no reply, or an older version wrote the record, which does not name its turn.
    """

    turns: int = 0
    cost: float | None = None
    usage: dict[str, Any] | None = None
    _open: int | None = None
    """The turn that was counted with its reply and has not ended yet."""

    def add(self, kind: str, record: Mapping[str, Any]) -> bool:
        """Take a record; whether it tells of something that was spent."""
        turn = record.get("turn")
        if kind == "session":
            self._open = None  # it begins anew, with its turns too
        if kind not in ("turn_end", "spent") and not (kind == "assistant" and isinstance(turn, int)):
            return False
        counted = kind == "turn_end" and self._open is not None and self._open == turn
        if kind != "spent":
            self._open = turn if kind == "assistant" else None
        if counted:
            return True
        self.turns += kind != "spent"
        if isinstance(cost := record.get("cost"), int | float):
            self.cost = billed(self.cost or 0.0, cost)
        if isinstance(usage := record.get("usage"), dict):
            self.usage = added(self.usage or {}, usage)
        return True
