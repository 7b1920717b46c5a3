"""A model that says what it is told to: for tests, demos and programs that embed hypercode.

::

    model = ScriptedModel(
        [
            script("Let me look.", Call("read", {"path": "notes.md"})),
            script("It has two lines."),
        ]
    )
"""

from __future__ import annotations

import asyncio
import copy
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypercode.errors import ModelError, RequestRejected
from hypercode.events import Event, ReasoningDelta, TextDelta, ToolCallDelta, ToolCallStart
from hypercode.llm.settings import ModelSettings
from hypercode.messages import Message, Reply, ToolCall, parse_arguments

__all__ = ["Call", "Reasoning", "Request", "Script", "ScriptedModel", "script"]


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Thinking that the model shows."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call.  `arguments` may be text, for a call that is not well-formed; without `id` it gets one of its own."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str | None = None


Step = str | Reasoning | Call | asyncio.Event | Event | ModelError
"""Text, thinking, a call, a pause until the event is set, an event to emit as it is, or an error to raise."""


@dataclass(frozen=True, slots=True)
class Script:
    """One reply: its steps in order, and how it ends."""

    steps: tuple[Step, ...]
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def script(
    *steps: Step,
    finish_reason: str | None = None,
    usage: dict[str, Any] | None = None,
    extra: dict[str, Any] | None = None,
) -> Script:
    """A `Script`; without a finish reason it is `tool_calls` where there are calls, else `stop`."""
    return Script(steps, finish_reason, usage, extra or {})


@dataclass(frozen=True, slots=True)
class Request:
    """What the model was asked: copies, so that later changes of the history do not show."""

    messages: list[Message]
    tools: list[dict[str, Any]]


class ScriptedModel:
    """Plays one script per request, in small pieces, and records the requests.  Offers what `Client` offers.

    `scripts` are played in order, and a request after the last one raises `RequestRejected`; or it is a function that gives
    the script for each request.  `piece` is the number of characters in a piece, `delay` the seconds between two of them.
    """

    def __init__(
        self,
        scripts: Iterable[Script | str] | Callable[[Request], Script | str],
        *,
        piece: int = 4,
        delay: float = 0.0,
        model: str = "scripted",
    ) -> None:
        self._next = scripts if callable(scripts) else _in_order(scripts)
        self._piece = max(1, piece)
        self._delay = delay
        self.settings = ModelSettings(model=model)
        self.requests: list[Request] = []
        self.last_sign_of_life: float | None = None
        self.retries = 0

    def warm_up(self) -> None:
        """There is nothing to warm up."""

    async def aclose(self) -> None:
        """There is nothing to close."""

    async def get_json(self, path: str) -> dict[str, Any]:
        """A model list with the one model; nothing else is known."""
        if path != "/models":
            raise RequestRejected(f"The scripted model has no {path}.", status=404)
        return {"object": "list", "data": [{"id": self.settings.model, "object": "model"}]}

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]],
        reply: Reply,
        emit: Callable[[Event], None],
    ) -> None:
        """Stream the next script into `reply`."""
        number = len(self.requests)
        self.requests.append(Request(copy.deepcopy(list(messages)), copy.deepcopy(list(tools))))
        chosen = self._next(self.requests[-1])
        current = script(chosen) if isinstance(chosen, str) else chosen
        started = time.monotonic()
        reply.model = self.settings.model

        def show(event: Event) -> None:
            if not reply.shown and isinstance(event, TextDelta | ReasoningDelta | ToolCallStart):
                reply.shown, reply.ttft = True, time.monotonic() - started
            self.last_sign_of_life = time.monotonic()
            emit(event)

        for step in current.steps:
            await asyncio.sleep(0)
            await self._play(step, f"call_{number}", reply, show)
        reply.finish_reason = current.finish_reason or ("tool_calls" if reply.calls else "stop")
        reply.usage = copy.deepcopy(current.usage)
        reply.cost = (current.usage or {}).get("cost")
        reply.extra |= copy.deepcopy(current.extra)

    async def _play(self, step: Step, prefix: str, reply: Reply, show: Callable[[Event], None]) -> None:
        if isinstance(step, ModelError):
            raise step
        if isinstance(step, asyncio.Event):
            await step.wait()
        elif isinstance(step, Call):
            await self._call(step, f"{prefix}_{len(reply.calls)}", reply, show)
        elif isinstance(step, Reasoning):
            for piece in self._pieces(step.text):
                reply.reasoning_parts.append(piece)
                show(ReasoningDelta(piece))
                await asyncio.sleep(self._delay)
        elif isinstance(step, str):
            for piece in self._pieces(step):
                reply.text_parts.append(piece)
                show(TextDelta(piece))
                await asyncio.sleep(self._delay)
        else:
            show(step)

    async def _call(self, step: Call, ident: str, reply: Reply, show: Callable[[Event], None]) -> None:
        arguments = (
            step.arguments if isinstance(step.arguments, str) else json.dumps(step.arguments, ensure_ascii=False)
        )
        index = len(reply.calls)
        call = ToolCall(step.id or ident, step.name)
        reply.calls.append(call)
        show(ToolCallStart(index, step.name))
        for piece in self._pieces(arguments):
            call.arguments += piece
            show(ToolCallDelta(index, piece))
            await asyncio.sleep(self._delay)
        call.parsed = parse_arguments(arguments)

    def _pieces(self, text: str) -> Iterable[str]:
        return (text[i : i + self._piece] for i in range(0, len(text), self._piece))


def _in_order(scripts: Iterable[Script | str]) -> Callable[[Request], Script | str]:
    """One script after the other, whatever is asked."""
    listed = list(scripts)
    left = iter(listed)

    def following(request: Request) -> Script | str:
        for one in left:
            return one
        raise RequestRejected(f"The script is over after {len(listed)} replies.")

    return following
