"""The conversation as it is drawn: listens to the bus, keeps what is live, hands finished lines to the screen.

Listeners only note what happened; one task draws, at most 25 frames a second, in the order in which things happened.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hypercode import events
from hypercode.events import Bus
from hypercode.ui import render
from hypercode.ui.clean import Cleaner, clean
from hypercode.ui.live import LiveCall, Surface, ending_lines, thought_rows
from hypercode.ui.style import Style

if TYPE_CHECKING:
    from hypercode.ui.markdown import MarkdownStream

__all__ = ["Transcript"]

FRAME_GAP = 0.07
LONGEST_GAP = 0.75
HELD = 2.0  # seconds that lines of our own wait for the end of a code block or list that streams
OUTPUT_ROWS = 5
_KEPT_OUTPUT = 400_000
_PROSE = frozenset({"word", "command", "notice", "greeting"})


class Transcript:
    """Draws a session on a surface.  `activity` says in a word what is going on."""

    def __init__(
        self,
        bus: Bus,
        surface: Surface,
        *,
        plain: bool = False,
        clock: Callable[[], float] = time.monotonic,
        redact: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._clock = clock
        self._redact = redact
        self._surface = surface
        self.style = Style(colours=surface.colors is not None, plain=plain)
        self.plain = plain
        self._plain_surface: Any = surface  # a plain screen also streams, which the other cannot
        self.activity = self.folded = ""
        self.on_activity: Callable[[], None] = lambda: None
        self.activity_since = time.monotonic()
        self._jobs: deque[tuple[str, Any]] = deque()
        self._lines: list[str] = []
        self._last_kind = self._marker = ""
        self._stream: MarkdownStream | None = None
        self._cleaner = Cleaner()
        self._plain_open = False
        self._held: list[tuple[str, list[str]]] = []
        self._thought: list[str] = []
        self._thought_since = self._held_since = 0.0
        self._calls: dict[int, LiveCall] = {}
        self._running: dict[str, LiveCall] = {}
        self._wanted, self._urgent, self._idle = (asyncio.Event() for _ in range(3))
        self._idle.set()
        self._over = False
        self.follow(bus)

    def follow(self, bus: Bus) -> None:
        """Draw what this bus carries as well."""
        for kind, listener in self._listeners().items():
            bus.on(kind, listener)

    def _listeners(self) -> dict[type[Any], Any]:
        return {
            events.UserMessage: self._on_user,
            events.TurnStart: self._on_turn_start,
            events.TextDelta: self._on_text,
            events.ReasoningDelta: self._on_reasoning,
            events.ToolCallStart: self._on_call,
            events.ToolCallDelta: self._on_call_delta,
            events.AssistantMessage: self._on_message,
            events.ToolExecutionStart: self._on_execution,
            events.ToolOutput: self._on_output,
            events.ToolExecutionEnd: self._on_execution_end,
            events.TurnEnd: self._on_turn_end,
            events.Notice: lambda e: self.say(render.notice_line(self.style, e.level, e.text), kind="notice"),
        }

    # -- what others may do ------------------------------------------------------

    def say(self, lines: Sequence[str], *, kind: str = "word") -> None:
        """Draw finished lines of our own behind everything that happened so far; what `redact` takes out is not in them."""
        text = "\n".join(lines)
        if (clear := self._redact(text)) is not text:
            lines = clear.split("\n")
        if kind in _PROSE or (kind in ("user", "end") and not self.plain):
            lines = [part for line in lines for part in render.wrapped(line, self._surface.columns)]
        self._do("lines", (kind, list(lines)))

    def mark_aborted(self) -> None:
        """Show at once that the reply was stopped, however much there is still to be drawn before it."""
        self._marker = self.style.yellow("[aborted]")
        self._surface.set_tail([*self._live_rows(), self._marker])

    async def settled(self) -> None:
        """Wait until everything that happened is drawn."""
        await self._idle.wait()

    def tick(self) -> None:
        """A moment has passed: clocks in the live region move."""
        if self._running or self._thought:
            self._want()

    def quiet(self) -> None:
        """Nothing goes on any more: what is open is closed."""
        self._calls, self._running = {}, {}
        self.now("")
        self._do("close", None)

    async def draw_now(self) -> None:
        """Draw everything that happened, where no task of `draw` does."""
        await self._frame()
        self._idle.set()

    async def draw(self) -> None:
        """Draw for as long as the session lasts; run it as a task."""
        try:
            await self._draw_on()
        finally:  # where nothing can be written any more nobody may wait for it
            self._over = True
            self._idle.set()

    async def _draw_on(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            self._urgent.clear()
            started = time.perf_counter()
            await self._frame()
            cost = time.perf_counter() - started
            if not self._wanted.is_set():
                self._idle.set()
            try:
                await asyncio.wait_for(self._urgent.wait(), min(max(FRAME_GAP, 4 * cost), LONGEST_GAP))
            except TimeoutError:
                pass

    # -- listeners: note what happened -------------------------------------------

    def _do(self, job: str, value: Any, *, urgent: bool = False) -> None:
        self._jobs.append((job, value))
        self._want(urgent=urgent)

    def _want(self, *, urgent: bool = False) -> None:
        if not self._over:
            self._idle.clear()
        self._wanted.set()
        if urgent:
            self._urgent.set()

    def now(self, activity: str) -> None:
        """Say in the status line what is going on."""
        if activity != self.activity:
            self.activity, self.activity_since = activity, time.monotonic()
            self.on_activity()

    def _on_user(self, event: events.UserMessage) -> None:
        if not self.plain:  # a plain terminal shows what was typed anyway
            self.say(render.user_lines(self.style, event.text), kind="user")

    def _on_turn_start(self, event: events.TurnStart) -> None:
        self._calls.clear()
        self._running.clear()
        self._marker = ""
        self.now("connecting")

    def _on_text(self, event: events.TextDelta) -> None:
        self.now("writing")
        if self._jobs and self._jobs[-1][0] == "text":
            self._jobs[-1][1].append(event.text)
            self._want()
        else:
            self._do("text", [event.text], urgent=self._stream is None)  # the first of it is shown at once

    def _on_reasoning(self, event: events.ReasoningDelta) -> None:
        self.now("thinking")
        self._do("thought", event.text, urgent=not self._thought)

    def _on_call(self, event: events.ToolCallStart) -> None:
        self.now(f"calling {clean(event.name, 'filename')}")
        call = self._calls.setdefault(event.index, LiveCall(event.name))
        call.name = event.name
        self._do("close", None, urgent=True)

    def _on_call_delta(self, event: events.ToolCallDelta) -> None:
        if event.index in self._calls:
            self._calls[event.index].pieces.append(event.arguments)
            self._want()

    def _on_message(self, event: events.AssistantMessage) -> None:
        """The message is the authority: names are corrected, ids become known."""
        wire = event.message.get("tool_calls") or []
        live = [self._calls[i] for i in sorted(self._calls)]
        if len(wire) != len(live):
            live = [LiveCall(call["function"]["name"]) for call in wire]
            self._calls = dict(enumerate(live))
        for call, sent in zip(live, wire, strict=True):
            call.name, call.call_id = sent["function"]["name"], sent["id"]
        self._want()

    def _on_execution(self, event: events.ToolExecutionStart) -> None:
        self.now(f"running {clean(event.name, 'filename')}")
        call = next((c for c in self._calls.values() if c.call_id == event.call_id), None) or LiveCall(event.name)
        call.name, call.arguments = event.name, event.arguments
        call.call_id, call.started = event.call_id, time.monotonic()
        self._running[event.call_id] = call
        self._want(urgent=True)

    def waited(self, seconds: float) -> None:
        """The person was waited for: the clocks do not count that."""
        self.activity_since += seconds
        for call in self._running.values():
            call.started = (call.started or 0.0) + seconds

    def _on_output(self, event: events.ToolOutput) -> None:
        call = self._running.get(event.call_id)
        if call is not None:
            call.printed = (call.printed + event.text)[-_KEPT_OUTPUT:]
            self._want()

    def _on_execution_end(self, event: events.ToolExecutionEnd) -> None:
        call = self._running.pop(event.call_id, None) or LiveCall(event.name)
        self._calls = {i: c for i, c in self._calls.items() if c is not call}
        others = [clean(other.name, "filename") for other in self._running.values()]
        self.now(f"running {others[0]}" if others else "")
        self._do("result", (call, event))

    def _on_turn_end(self, event: events.TurnEnd) -> None:
        self.now("")
        self._do("turn_end", (event, [self._calls[i] for i in sorted(self._calls)]), urgent=True)
        self._calls = {}

    # -- drawing -----------------------------------------------------------------

    async def _frame(self) -> None:
        while self._jobs:
            job, value = self._jobs.popleft()
            await getattr(self, f"_draw_{job}")(value)
        tail: list[str] = []
        if self._stream is not None:
            frame = await self._stream.aframe(tail_rows=self._budget())
            self._lines += frame.commit
            tail = frame.tail if not self._interrupt() else (await self._stream.aframe(tail_rows=self._budget())).tail
        rows = [*tail, *self._live_rows(), *([self._marker] if self._marker else [])]
        lines, self._lines = self._lines, []
        if lines:
            self._surface.commit(lines, rows)
        else:
            self._surface.set_tail(rows)

    def _begin(self, kind: str) -> None:
        """A blank line where one kind of thing ends and another begins."""
        if self._last_kind and (kind != self._last_kind or kind == "user"):
            self._lines.append("")
        self._last_kind = "word" if kind == "command" else kind  # its answer stands right below

    async def _draw_lines(self, value: tuple[str, list[str]]) -> None:
        """Lines of our own; while a text streams they wait until they can stand between two of its blocks."""
        if self._stream is not None or self._plain_open:
            self._held_since = self._held_since if self._held else self._clock()
            self._held.append(value)
        else:
            self._put(value)

    def _put(self, value: tuple[str, list[str]]) -> None:
        kind, lines = value
        self._begin(kind)
        self._lines += lines

    def _interrupt(self) -> bool:
        """Put what waits between two blocks of the text; inside of a long one after a while."""
        stream = self._stream
        if stream is None or not self._held or not (stream.between or self._clock() - self._held_since > HELD):
            return False
        if not stream.begun:
            self._last_kind = self._held[0][0]  # the blank line is there
        self._release()
        self._last_kind = "text"
        stream.interrupted()
        return True

    def _release(self) -> None:
        held, self._held = self._held, []
        for value in held:
            self._put(value)

    async def _draw_text(self, pieces: list[str]) -> None:
        self._fold_thought()
        text = self._cleaner.feed("".join(pieces))
        if self.plain:
            self._stream_plain(text)
            return
        if self._stream is None and text:
            from hypercode.ui.markdown import MarkdownStream  # the prompt need not wait for it

            self._begin("text")
            self._stream = MarkdownStream(self._surface.columns, color=self._surface.colors)
        if self._stream is not None:
            self._stream.resize(self._surface.columns)
            self._stream.feed(text)

    def _stream_plain(self, text: str) -> None:
        """Without a live region the text goes out as it comes; what was noted before it goes first."""
        if text and not self._plain_open:
            self._begin("text")
            self._plain_open = True
            self._surface.commit(self._lines)
            self._lines = []
        self._plain_surface.stream(text)

    async def _draw_close(self, _: object) -> None:
        """The open text is over: draw the rest of it."""
        self._fold_thought()
        if self._plain_open:
            self._plain_surface.stream(self._cleaner.close())
            self._plain_surface.end_line()
            self._plain_open = False
        if self._stream is not None:
            self._stream.feed(self._cleaner.close())
            self._lines += await self._stream.aclose()
            self._stream = None
        self._release()

    async def _draw_thought(self, text: str) -> None:
        if not self._thought:
            await self._draw_close(None)
            self._thought_since = self._clock()
        self._thought.append(text)

    def _fold_thought(self) -> None:
        if self._thought:
            self.folded = "".join(self._thought)
            self._thought = []
            spent = render.duration(self._clock() - self._thought_since)
            self._begin("thought")
            words = len(self.folded.split())
            self._lines.append(self.style.dim(f"∴ thought for {spent} · {words} words · Ctrl-O shows them"))

    async def _draw_result(self, value: tuple[LiveCall, events.ToolExecutionEnd]) -> None:
        await self._draw_close(None)
        call, end = value
        self._begin("tool")
        width = self._surface.columns
        colour = "red" if end.is_error else "green"
        after = render.duration(end.seconds) if end.seconds >= 0.1 else ""
        self._lines.append(render.banner(self.style, call.name, call.known(), width=width, after=after, colour=colour))
        self.folded = call.printed or end.output
        self._lines += render.result_lines(
            self.style, end.output, is_error=end.is_error, kind=end.kind, width=width, shown=call.printed
        )

    async def _draw_turn_end(self, value: tuple[events.TurnEnd, list[LiveCall]]) -> None:
        await self._draw_close(None)
        end, left = value
        for call in left:
            self._begin("tool")
            line = render.banner(
                self.style, call.name, call.known(), width=self._surface.columns, after="not run", colour="yellow"
            )
            self._lines.append(line)
        self._marker = ""
        ending = [row for line in ending_lines(self.style, end) for row in render.wrapped(line, self._surface.columns)]
        if ending:
            self._begin("end")
            self._lines += ending

    def _budget(self) -> int:
        return max(1, min(12, self._surface.rows - 4) - len(self._calls))

    def _live_rows(self) -> list[str]:
        """Thinking and tool calls as they stand: one row a call, the running one with its last lines."""
        rows = thought_rows(self.style, self._thought, self._surface.columns)
        width = self._surface.columns
        budget = max(2, min(12, self._surface.rows - 4))
        calls = [self._calls[i] for i in sorted(self._calls)]
        calls += [c for c in self._running.values() if c not in calls]
        for number, call in enumerate(calls):
            if len(rows) >= budget - 1 and number < len(calls) - 1:
                rows.append(self.style.dim(f"  +{len(calls) - number} more"))
                break
            after = render.duration(time.monotonic() - call.started) if call.started is not None else "…"
            rows.append(render.banner(self.style, call.name, call.known(), width=width, mark="○", after=after))
            if call.started is not None and call.printed and len(calls) - number < budget - len(rows):
                room = min(OUTPUT_ROWS, budget - len(rows) - (len(calls) - number - 1))
                lines = clean(call.printed[-4_000:], "tool_output").rstrip("\n").split("\n")[-room:]
                rows += [self.style.dim("  " + render.fit(line.expandtabs(4), width - 2)) for line in lines]
        return rows
