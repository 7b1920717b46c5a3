"""The one scale on which everything that might need a person's word is measured."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

__all__ = ["Decision", "strictest"]


class Decision(StrEnum):
    """What happens with a call, a command or a file; weakest first.

    `AUTO` runs without a question.  `ASK` needs a yes, which a stored rule or a mode may give.  `ALWAYS_ASK` needs a
    person's yes every time, in every mode; no stored rule covers it.  `DENY` never runs.
    """

    AUTO = "auto"
    ASK = "ask"
    ALWAYS_ASK = "always_ask"
    DENY = "deny"

    @property
    def rank(self) -> int:
        """The place on the scale, 0 (weakest) to 3."""
        return _ORDER.index(self)


_ORDER = list(Decision)


def strictest(decisions: Iterable[Decision]) -> Decision:
    """The strictest of several decisions; `AUTO` for none at all."""
    return max(decisions, key=lambda d: d.rank, default=Decision.AUTO)
