"""The signal that Ctrl-C is where it is no key: sent by another program, or on a terminal that is not in raw mode."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["PATIENCE", "ends_in_order", "interrupts"]

PATIENCE = 3.0
"""Seconds that the orderly end of the program may take before Ctrl-C ends the process at once."""


@contextmanager
def interrupts(interrupt: Callable[[], None]) -> Iterator[None]:
    """SIGINT calls this meanwhile, in the running event loop; afterwards it does what it did before.

    It changes nothing outside the main thread, nor where whoever started the process had SIGINT ignored.
    """
    before = signal.getsignal(signal.SIGINT)
    if not _ours_to_set(before):
        yield
        return
    loop = asyncio.get_running_loop()

    def handler(number: int, frame: FrameType | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(interrupt)

    # The loop's own way, add_signal_handler, forgets what was there before, and has a gap between two handlers.
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if isinstance(before, _Ending):
            before.begin()
        signal.signal(signal.SIGINT, before)


def ends_in_order() -> None:
    """From now on, for good: once `interrupts` is over, SIGINT does nothing for `PATIENCE` seconds, and then ends the process.

    Someone who presses Ctrl-C once too often shall not break off the saving and restoring at the end.  For a program that
    ends after its session; until then SIGINT does what it did before.
    """
    before = signal.getsignal(signal.SIGINT)
    if _ours_to_set(before):
        signal.signal(signal.SIGINT, _Ending(before))


def _ours_to_set(handler: object) -> bool:
    ignored = handler in (signal.SIG_IGN, None)  # None: no Python function, and nothing that could be put back
    return not ignored and threading.current_thread() is threading.main_thread()


class _Ending:
    """The handler of a program that ends after its session."""

    def __init__(self, before: object) -> None:
        self._before = before
        self._begun: float | None = None

    def begin(self) -> None:
        """The session is over."""
        self._begun = time.monotonic()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._begun is None:
            before = self._before if callable(self._before) else signal.default_int_handler
            before(number, frame)
        elif time.monotonic() - self._begun > PATIENCE:
            os._exit(128 + number)
