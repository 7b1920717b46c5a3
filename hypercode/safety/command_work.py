"""How much the gate may do for one command line: a bound on work, not on time, so that an answer never depends on the machine.

Whatever takes longer for a longer line is counted where it happens, in steps of about a microsecond.  A line that needs more
than the bound is not looked at any further, and then it asks every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["LONGEST", "STEPS", "TooMuch", "Work", "bounded", "spend"]

STEPS = 240_000
"""Steps for one line: some thousand simple commands, or a here-document as long as the system takes one."""

LONGEST = 131_071
"""Bytes of the longest text that Linux hands to a program as one argument; no longer line can run at all."""


class TooMuch(Exception):
    """A line needs more work than the bound allows."""


class Work:
    """The steps done so far, and how many there may be."""

    def __init__(self, limit: int) -> None:
        self.limit, self.done = limit, 0


_WORK: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def bounded(limit: int) -> Iterator[Work]:
    """Count the steps of what runs inside.  `TooMuch` comes out of `spend` once there are more than `limit`."""
    work = Work(limit)
    token = _WORK.set(work)
    try:
        yield work
    finally:
        _WORK.reset(token)


def spend(steps: int) -> None:
    """Count work that is about to be done; free outside of `bounded`.  Raises TooMuch."""
    work = _WORK.get()
    if work is not None:
        work.done += steps
        if work.done > work.limit:
            raise TooMuch
