"""What a run may use before it stops, and what was used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypercode.errors import LimitReached

__all__ = ["Limits", "added", "billed", "counted"]

_ROUNDING = 1e-9  # USD; sums of decimal fractions are not exact
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop before the next model call: turns and seconds of one `run`, USD of the session.

    What a call will cost is not known before it; it is taken to cost at least as much as the one before.
    """

    turns: int = 50
    cost: float | None = None
    seconds: float | None = None

    def check(self, turns: int, *, spent: float, last: float, hopeless: bool) -> None:
        """Raises LimitReached where no further call may be made.

        `turns` were taken, `spent` is what they cost and `last` what the last one did, in USD; `hopeless` says that the
        model goes round in circles.
        """
        if turns >= self.turns:
            raise LimitReached(
                "turns",
                f"The limit of {self.turns} turn{'s' * (self.turns != 1)} was reached before the task was done.",
            )
        if hopeless:
            raise LimitReached(
                "loop", "The model went in circles: again and again its calls were refused or could not be run."
            )
        if self.cost is not None and not (spent < self.cost and spent + last <= self.cost + _ROUNDING):
            raise LimitReached(
                "cost",
                f"The limit of {self.cost:g} USD stops the next call: {spent:g} USD are spent, {last:g} of them by the "
                "last call.",
            )

    def passed(self, spent: float, last: float) -> str:
        """What is to be said of a call that went past the limit, which nobody could know before; empty where it did not."""
        if self.cost is None or not spent > self.cost + _ROUNDING or spent - last > self.cost + _ROUNDING:
            return ""
        return (
            f"This call cost {last:g} USD; with it {spent:g} USD are spent, more than the limit of {self.cost:g} USD."
        )


def billed(*costs: float) -> float:
    """The sum of costs in USD, without the last digits, which are the binary fractions' own."""
    return round(sum(costs), _DIGITS)


def added(total: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Two usage objects of the API, which may be nested, added number by number."""
    result = dict(total)
    for key, value in more.items():
        old = result.get(key)
        if isinstance(value, dict):
            result[key] = added(old if isinstance(old, dict) else {}, value)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            result[key] = value
        else:
            sum_ = value + (old if isinstance(old, int | float) and not isinstance(old, bool) else 0)
            result[key] = round(sum_, _DIGITS) if isinstance(sum_, float) else sum_
    return result


def counted(usage: Mapping[str, Any] | None, *keys: str) -> int | None:
    """The number of tokens at that place of a usage object; None where the server gives none, or something else there."""
    value: Any = usage
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
