"""Every event, and the bus that carries them.

Events are for watching: what a listener returns is ignored.  Whoever has to *decide* something is a function that the
agent calls.  The names and fields are those of the JSON lines that `hypercode run --output jsonl` prints; `schema()`
describes them.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

__all__ = [
    "SCHEMA_VERSION",
    "AssistantMessage",
    "Bus",
    "Event",
    "Listener",
    "Notice",
    "ReasoningDelta",
    "SessionEnd",
    "SessionStart",
    "TextDelta",
    "ToolCallDelta",
    "ToolCallStart",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolOutput",
    "TurnEnd",
    "TurnStart",
    "UserMessage",
    "event_name",
    "to_dict",
]

SCHEMA_VERSION = 1

Usage = dict[str, Any]
"""The server's own `usage` object; `"estimated": true` where token counts had to be guessed."""

Error = dict[str, Any]
"""`{kind, message, retryable, status, provider}`."""

log = logging.getLogger("hypercode")


@dataclass(frozen=True, slots=True)
class SessionStart:
    """A session begins.  `schema` is the version of this event schema."""

    session: str
    model: str
    cwd: str
    version: str
    schema: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message of the person enters the conversation."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnStart:
    """A model call begins; `turn` counts from 1 over the session."""

    turn: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of what the model shows of its thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """The name of a tool, or its first piece, has arrived; its arguments are still streaming.

    `index` counts the calls of one reply from 0.  A second event with the same `index` corrects the name.  The
    assistant message is the authority.
    """

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A further piece of the arguments of call `index`."""

    index: int
    arguments: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """The whole reply as it goes into the history and onto the wire."""

    message: dict[str, Any]
    finish_reason: str | None


@dataclass(frozen=True, slots=True)
class ToolExecutionStart:
    """A well-formed call of a complete turn is taken up, before look-up and approval."""

    call_id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a running tool shows the person."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolExecutionEnd:
    """The call is over; `output` is what the model reads, `kind` the error's kind or null.

    `seconds` is how long it took, without the time that a person was asked.
    """

    call_id: str
    name: str
    output: str
    is_error: bool
    kind: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The turn is over: `outcome` is complete, error, interrupted or aborted.

    `cost` is what the provider billed in USD, null where it does not say; `ttft` the seconds to the first text,
    reasoning or tool name.
    """

    turn: int
    outcome: str
    finish_reason: str | None
    usage: Usage | None
    cost: float | None
    ttft: float | None
    seconds: float
    error: Error | None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the person should know: `level` is info, warning or error."""

    level: str
    text: str


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """The session is over: `outcome` is that of its last turn, or limit.

    `refused` counts the calls that were refused for want of a person or a permission.
    """

    outcome: str
    exit_code: int
    turns: int
    usage: Usage | None
    cost: float | None
    refused: int
    error: Error | None


Event = (
    SessionStart
    | UserMessage
    | TurnStart
    | TextDelta
    | ReasoningDelta
    | ToolCallStart
    | ToolCallDelta
    | AssistantMessage
    | ToolExecutionStart
    | ToolOutput
    | ToolExecutionEnd
    | TurnEnd
    | Notice
    | SessionEnd
)

Listener = Callable[[Any], object]
E_ = TypeVar("E_")

_QUEUE_LIMIT = 10_000


def event_name(kind: type[Any]) -> str:
    """The `type` of an event in JSON lines: `ToolCallStart` → `tool_call_start`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def to_dict(event: Event) -> dict[str, Any]:
    """The event as a JSON object, `type` first."""
    return {"type": event_name(type(event)), **{f.name: getattr(event, f.name) for f in fields(event)}}


DRAIN_SECONDS = 3.0
"""How long the end of a session waits for slow listeners."""


class Bus:
    """Carries events to listeners, synchronously and in order.

    A listener that raises is isolated: its traceback goes to the log and one `Notice` names it.  `through` makes of each
    event what the listeners get in its place.
    """

    def __init__(self) -> None:
        self.through: Callable[[Event], Sequence[Event]] | None = None
        self._listeners: list[tuple[type[Any] | None, Listener]] = []
        self._routes: dict[type[Any], tuple[Listener, ...]] = {}
        self._broken: set[Listener] = set()
        self._queues: list[_QueuedListener] = []

    def on(
        self, kind: type[E_] | None, listener: Callable[[E_], object], *, queued: bool = False
    ) -> Callable[[], None]:
        """Call `listener` for each event of type `kind` (None: for all) and return the way to unsubscribe.

        With `queued` the listener gets a task of its own behind a bounded queue and may be slow or async; what
        does not fit is dropped, and one `Notice` says so.  Needs a running event loop.
        """
        target: Listener = listener
        if queued:
            queue = _QueuedListener(self, listener)
            self._queues.append(queue)
            target = queue.put
        entry = (kind, target)
        self._listeners.append(entry)
        self._routes.clear()

        def off() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)
                self._routes.clear()

        return off

    def emit(self, event: Event) -> None:
        """Hand the event to every listener, in the order in which they subscribed."""
        if self.through is None:
            self._deliver(event)
            return
        for passed in self.through(event):
            self._deliver(passed)

    def _deliver(self, event: Event) -> None:
        kind = type(event)
        route = self._routes.get(kind)
        if route is None:
            route = tuple(f for k, f in self._listeners if k is None or k is kind)
            self._routes[kind] = route
        for listener in route:
            try:
                listener(event)
            except (Exception, SystemExit):  # noqa: BLE001  a listener must not break the turn, nor end the program
                self._report(listener)

    async def drain(self) -> None:
        """Wait until the queued listeners have seen everything that was emitted so far."""
        for queue in self._queues:
            await queue.drain()

    async def aclose(self) -> None:
        """Drain the queued listeners, for some seconds at most, and end their tasks."""
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await self.drain()
        except TimeoutError:
            log.warning("a queued listener was not done in %g s", DRAIN_SECONDS)
        for queue in self._queues:
            queue.stop()
        self._queues.clear()

    def _report(self, listener: Listener) -> None:
        name = getattr(listener, "__qualname__", None) or repr(listener)
        log.exception("listener %s failed", name)
        if listener not in self._broken:
            self._broken.add(listener)
            self.emit(Notice("error", f"The listener {name} failed; the details are in the log. The session goes on."))


class _QueuedListener:
    """A listener behind a bounded queue, with a task of its own."""

    def __init__(self, bus: Bus, listener: Listener) -> None:
        self._bus = bus
        self._listener = listener
        self._queue: asyncio.Queue[Event] = asyncio.Queue(_QUEUE_LIMIT)
        self._overflowed = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    def put(self, event: Event) -> None:
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            if not self._overflowed:
                self._overflowed = True
                name = getattr(self._listener, "__qualname__", repr(self._listener))
                self._bus.emit(Notice("warning", f"The listener {name} is too slow and misses events."))

    async def drain(self) -> None:
        await self._queue.join()

    def stop(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            event = await self._queue.get()
            try:
                result = self._listener(event)
                if asyncio.iscoroutine(result):
                    await result
            except Exception:  # noqa: BLE001  isolated like any listener
                self._bus._report(self._listener)
            finally:
                self._queue.task_done()
