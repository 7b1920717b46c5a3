"""How often the live rows are drawn while a reply streams."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

__all__ = ["FramePump"]


class FramePump:
    """Calls `render` at most 25 times a second, and less often where a frame is dear.

    The first request after a pause is served at once, in the caller's own step; the next one waits until `min_gap` seconds
    or four times the last frame's cost have gone by, at most `max_gap`. Requests in between are one.
    """

    def __init__(self, render: Callable[[], None], *, min_gap: float = 0.04, max_gap: float = 0.75) -> None:
        self._render = render
        self._min_gap = min_gap
        self._max_gap = max_gap
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._busy = False

    def request(self) -> None:
        """Something changed."""
        if self._timer is not None or self._busy:
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._next:
            self._frame()
        else:
            self._timer = loop.call_at(self._next, self._frame)

    def urgent(self) -> None:
        """Something changed that must be seen now: a tool's name, a question, an abort, the end."""
        if not self._busy:
            self._frame()

    def cancel(self) -> None:
        """Forgets what was requested."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _frame(self) -> None:
        self.cancel()
        self._busy = True
        start = time.perf_counter()
        try:
            self._render()
        finally:
            self._busy = False
            cost = time.perf_counter() - start
            self._next = asyncio.get_running_loop().time() + min(max(self._min_gap, 4 * cost), self._max_gap)
