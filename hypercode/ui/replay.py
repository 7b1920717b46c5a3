"""A saved session drawn again, by the same transcript that drew it when it ran."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from hypercode import events
from hypercode.events import Bus, Event
from hypercode.memory.export import replay
from hypercode.memory.history import Loaded
from hypercode.memory.records import Record
from hypercode.messages import is_report
from hypercode.ui import render
from hypercode.ui.clean import clean
from hypercode.ui.hooks import Choice, Hooks
from hypercode.ui.plain import PlainScreen
from hypercode.ui.transcript import Transcript

__all__ = ["LONGEST_PAUSE", "draw_last", "scenes", "show"]

LONGEST_PAUSE = 2.0
"""Seconds of a replay that nothing happens for at most: what took longer, a person's thinking say, is cut to this."""

_LAST_EVENTS = 60
_LAST_TEXT = 20_000
_UNKNOWN = "[interrupted: what this call did is not known]"
_NEXT, _ALL, _STOP = Choice("n", "next"), Choice("a", "all the rest"), Choice("q", "stop")


def scenes(loaded: Loaded) -> Iterator[tuple[float, Event]]:
    """The session's events, each with the seconds since its start; what a crash left open is closed.

    Without what was not seen when it ran: a message that was stopped before it was handed over, a call noted as not begun.
    """
    loaded = replace(loaded, records=_seen(loaded.records))
    running: dict[str, str] = {}
    seconds = 0.0
    for seconds, event in replay(loaded):
        if isinstance(event, events.ToolExecutionStart):
            running[event.call_id] = event.name
        elif isinstance(event, events.ToolExecutionEnd):
            running.pop(event.call_id, None)
        elif isinstance(event, events.UserMessage | events.TurnStart):
            yield from _closed(running, seconds)
        yield seconds, event
    yield from _closed(running, seconds)


def _seen(records: list[Record]) -> list[Record]:
    kept = list[Record]()
    waiting: dict[str, Record] = {}  # calls that did not begin, until their results
    for record in records:
        kind, call_id = record["type"], record.get("call_id")
        if kind == "rewind" and (first := _stopped(kept, record.get("to"))) is not None:
            kept[first:] = [r for r in kept[first:] if r["type"] != "user"]
            continue
        if kind == "intent" and record.get("begun") is False and isinstance(call_id, str):
            waiting[call_id] = record
            continue
        if kind == "result" and isinstance(message := record.get("message"), dict):
            noted = waiting.pop(str(message.get("tool_call_id")), None)
            kept += [noted] if noted is not None else []
        kept.append(record)
    return kept


def _stopped(records: list[Record], number: Any) -> int | None:
    """The place of the message with that number if it was never handed over: nothing but notices has come since."""
    for place in range(len(records) - 1, -1, -1):
        record = records[place]
        message = record.get("message")
        said = record["type"] == "user" and isinstance(message, dict) and not is_report(message)
        if said and record.get("seq") == number:
            return place
        if not said and record["type"] != "notice":
            return None
    return None


def _closed(running: dict[str, str], seconds: float) -> Iterator[tuple[float, Event]]:
    for call_id, name in running.items():
        yield seconds, events.ToolExecutionEnd(call_id, name, _UNKNOWN, True, "unknown", 0.0)
    running.clear()


# -- the end of a conversation that goes on -----------------------------------------


def draw_last(loaded: Loaded, transcript: Transcript) -> None:
    """Draw the last exchange of a conversation that goes on: what the person said, and at most the last steps after it."""
    happened = [event for _, event in scenes(replace(loaded, records=loaded.current()))]
    begin = max((n for n, event in enumerate(happened) if isinstance(event, events.UserMessage)), default=None)
    if begin is None:
        return
    said, after = happened[begin], happened[begin + 1 :]
    assert isinstance(said, events.UserMessage)
    bus = Bus()
    transcript.follow(bus)
    dim = transcript.style.dim
    transcript.say([dim(f"── {clean(loaded.name or loaded.session, 'filename')}, the last of it ──")], kind="resumed")
    transcript.say(render.user_lines(transcript.style, _bounded(said.text)), kind="user")
    steps = sum(isinstance(event, events.ToolExecutionEnd) for event in after[:-_LAST_EVENTS])
    if steps:
        transcript.say(
            [dim(f"… {steps} earlier step{'s' * (steps != 1)}; hypercode replay {loaded.session} shows them")],
            kind="left out",
        )
    texts = _LAST_TEXT
    kept = []
    for event in reversed(after[-_LAST_EVENTS:]):
        if isinstance(event, events.TextDelta):
            if texts <= 0:
                continue
            event = events.TextDelta(event.text if len(event.text) <= texts else f"… {event.text[-texts:]}")
            texts -= len(event.text)
        if not isinstance(event, events.Notice | events.ReasoningDelta):
            kept.append(event)
    for event in reversed(kept):
        bus.emit(event)
    transcript.quiet()


def _bounded(text: str) -> str:
    return text if len(text) <= _LAST_TEXT else f"{text[:_LAST_TEXT]} …"


# -- the command ----------------------------------------------------------------------


async def show(
    loaded: Loaded, *, speed: float = 1.0, instant: bool = False, step: bool = False, plain: bool = False
) -> None:
    """Draw the session on the terminal: at its own pace times `speed`, at once, or step by step."""
    playing = _Playing(loaded, plain=plain)
    if instant:
        await playing.at_once()
    else:
        await playing.at_its_pace(speed, step=step)


class _Playing:
    """A replay and its screen."""

    def __init__(self, loaded: Loaded, *, plain: bool) -> None:
        self._loaded = loaded
        self._plain = plain
        self._now = 0.0
        self._bus = Bus()
        self._screen = self._make_screen()
        self._transcript = Transcript(self._bus, self._screen, plain=plain, clock=lambda: self._now)
        self._player: asyncio.Future[None] | None = None

    def _make_screen(self) -> Any:
        if self._plain:
            return PlainScreen(Hooks(interrupt=self._stop), prompt="")
        from hypercode.ui.screen import Screen

        return Screen(Hooks(interrupt=self._stop, eof=self._stop), prompt="")

    def _stop(self) -> None:
        if self._player is not None:
            self._player.cancel()

    def _emit(self, event: Event) -> None:
        if self._plain and isinstance(event, events.UserMessage):  # nobody has typed it on this terminal
            self._transcript.say(render.user_lines(self._transcript.style, event.text), kind="user")
        self._bus.emit(event)

    def _title(self) -> None:
        style, loaded = self._transcript.style, self._loaded
        parts = [loaded.name, loaded.session, loaded.model, loaded.cwd, render.money(loaded.cost)]
        self._transcript.say([style.dim(" · ".join(clean(p, "filename") for p in parts if p))], kind="greeting")
        for notice in loaded.notices:
            self._emit(events.Notice("warning", notice))

    async def at_once(self) -> None:
        """Everything, as fast as it can be drawn."""
        self._title()
        for seconds, event in scenes(self._loaded):
            self._now = seconds
            self._emit(event)
            await self._transcript.draw_now()  # each at its time: how long thinking took is told from when it is drawn
        self._transcript.quiet()
        await self._transcript.draw_now()

    async def at_its_pace(self, speed: float, *, step: bool) -> None:
        """As it went then, long pauses cut, until it is over or the person stops it."""
        helpers = [asyncio.ensure_future(self._transcript.draw()), asyncio.ensure_future(self._tick(speed))]
        screen = asyncio.ensure_future(self._screen.run())
        self._player = asyncio.ensure_future(self._play(list(scenes(self._loaded)), speed, step=step))
        try:
            await asyncio.wait([self._player, screen], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._player.cancel()
            [failure] = await asyncio.gather(self._player, return_exceptions=True)
            self._transcript.quiet()
            await self._transcript.settled()
            self._screen.exit()
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(screen, *helpers, return_exceptions=True)
        if isinstance(failure, Exception) and not isinstance(failure, EOFError):
            raise failure

    async def _tick(self, speed: float) -> None:
        total = max((seconds for seconds, _ in replay(self._loaded)), default=0.0)
        while True:
            done = f"{render.duration(self._now)} of {render.duration(total)}"
            self._screen.set_status(f"replay · {done} · speed {speed:g} · Ctrl-C stops")
            self._transcript.tick()
            await asyncio.sleep(0.25)

    async def _play(self, all_scenes: Iterable[tuple[float, Event]], speed: float, *, step: bool) -> None:
        await self._screen.started()
        self._title()
        behind = time.monotonic()
        for seconds, event in all_scenes:
            if step and isinstance(event, events.UserMessage | events.TurnStart | events.ToolExecutionStart):
                await self._transcript.settled()
                answer = await self._screen.ask([self._coming(event)], [_NEXT, _ALL, _STOP])
                if answer.key == _STOP.key:
                    return
                step = answer.key == _NEXT.key
                behind = time.monotonic()
            elif not step and seconds > self._now:
                behind += min(seconds - self._now, LONGEST_PAUSE) / speed
                await asyncio.sleep(behind - time.monotonic())
            self._now = max(self._now, seconds)
            self._emit(event)
        await self._transcript.settled()

    def _coming(self, event: Event) -> str:
        match event:
            case events.UserMessage():
                what = "what you said"
            case events.ToolExecutionStart():
                what = f"the call of {clean(event.name, 'filename')}"
            case _:
                what = "the reply"
        return f"Next: {what}."
