"""The clocks of a stream: one timer that is moved cheaply, since it moves with every event."""

from __future__ import annotations

import asyncio

__all__ = ["Deadline"]

_SECOND_LOOK = 0.05


class Deadline:
    """Cancels the body of an `asyncio.timeout(None)` block, which then raises TimeoutError, when it has passed.

    Moving it later costs an assignment.  Before it strikes, the loop gets one more round: after a long pause of the
    whole process the data may be there already.
    """

    def __init__(self, scope: asyncio.Timeout, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._scope = scope
        self._warned = False
        self._at = self._loop.time() + seconds
        self._timer_at = self._at
        self._timer = self._loop.call_at(self._at, self._look)

    def set(self, seconds: float) -> None:
        """Strike `seconds` from now."""
        self._at = self._loop.time() + seconds
        self._warned = False
        if self._at < self._timer_at:
            self._arm(self._at)

    def stop(self) -> None:
        """Never strike."""
        self._timer.cancel()

    def _arm(self, at: float) -> None:
        self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        if now < self._at:
            self._arm(self._at)
        elif not self._warned:
            self._warned = True
            self._arm(now + _SECOND_LOOK)
        else:
            self._scope.reschedule(now)
