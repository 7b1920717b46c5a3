"""The signal that Ctrl-C is where it is no key: sent by another program, or on a terminal that is not in raw mode."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["PATIENCE", "interrupts"]

PATIENCE = 3.0
"""Seconds that the orderly end of a session may take before Ctrl-C ends the process at once."""


@contextmanager
def interrupts(interrupt: Callable[[], None]) -> Iterator[None]:
    """SIGINT calls this meanwhile.  Afterwards, until the process ends, it does nothing for `PATIENCE` seconds.

    Someone who presses Ctrl-C once too often shall not break off the saving and restoring at the end.  Not in the main
    thread it changes nothing.
    """
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGINT, interrupt)
    except (ValueError, RuntimeError, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        over = time.monotonic()

        def late(number: int, frame: FrameType | None) -> None:
            if time.monotonic() - over > PATIENCE:
                os._exit(128 + number)

        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, late)
