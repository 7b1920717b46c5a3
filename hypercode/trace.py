"""Where the time and the tokens of a session went: its spans, made from the events.

::

    session
    └─ invoke_agent hypercode      from a message of the person to the answer
       └─ turn
          ├─ chat MODEL            one model call, its repetitions among it
          └─ execute_tool NAME     a call, from its look-up and approval to its result

Names and attributes are those of OpenTelemetry's semantic conventions for generative AI
(https://github.com/open-telemetry/semantic-conventions-genai), and `hypercode.…` where they have none.  Of what was said,
read and run nothing is recorded, unless `content` asks for it; secrets are taken out of everything.

Each span ends with the event that ends what it stands for; what an abort or a fault left open ends with the turn, the rest
with the session.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hypercode import events
from hypercode.budget import counted
from hypercode.events import Bus
from hypercode.safety.private_file import private_folder
from hypercode.safety.redact import Redactor

__all__ = ["Sink", "Span", "Trace", "TraceFiles"]

log = logging.getLogger("hypercode")


@dataclass(slots=True, eq=False)
class Span:
    """A stretch of time.

    `start` and `end` are UNIX nanoseconds, `kind` is internal or client, `events` are `{name, time, attributes}`.  `error` is
    what the span failed of, in one word, empty for none.
    """

    name: str
    session: str
    start: int
    parent: Span | None = None
    kind: str = "internal"
    trace_id: str = ""
    span_id: str = field(default_factory=lambda: secrets.token_hex(8))
    end: int | None = None
    error: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.trace_id = self.trace_id or (self.parent.trace_id if self.parent else secrets.token_hex(16))

    def as_dict(self) -> dict[str, Any]:
        """The span as one line of a trace file."""
        end = self.start if self.end is None else self.end
        return {
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "parent_id": self.parent.span_id if self.parent else None,
            "name": self.name,
            "kind": self.kind,
            "start_unix_nano": self.start,
            "end_unix_nano": end,
            "seconds": round((end - self.start) / 1e9, 6),
            "status": "error" if self.error else "ok",
            "attributes": self.attributes,
            "events": self.events,
        }


class Sink(Protocol):
    """Where spans go.  What it raises ends it, with one notice."""

    def begin(self, span: Span) -> None:
        """A span begins; the sink may give it the ids that it is known by elsewhere."""

    def finish(self, span: Span) -> None:
        """A span is over; nothing of it changes any more."""

    async def aclose(self) -> None:
        """Nothing more will come."""


class TraceFiles:
    """A file of JSON lines for each session, in a folder, for the user alone; each span is a line when it is over.

    Where the file cannot be written `on_failure` is told once; each further span tries again.
    """

    def __init__(self, folder: Path, on_failure: Callable[[str], object]) -> None:
        self._folder = folder
        self._on_failure = on_failure
        self._told = False
        self._torn = False

    def path_of(self, session: str) -> Path:
        """The file of a session."""
        return self._folder / f"{session}.jsonl"

    def begin(self, span: Span) -> None:
        """Nothing is written before a span is over."""

    def finish(self, span: Span) -> None:
        """Write the span."""
        path = self.path_of(span.session)
        line = json.dumps(span.as_dict(), ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"
        try:
            private_folder(self._folder)
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
            try:
                _write(fd, b"\n" + line if self._torn else line)
                self._torn = False
            finally:
                os.close(fd)
        except OSError as error:
            self._torn = True
            if not self._told:
                self._told = True
                self._on_failure(f"The trace cannot be written to {path} ({error.strerror}); the session goes on.")

    async def aclose(self) -> None:
        """There is nothing to close."""


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Trace:
    """Listens to a session and makes its spans.

    `session` tells the id of the conversation, `model` attributes of the model calls (`gen_ai.request.model` and where it is
    asked): both may change meanwhile.  With `content` the spans say what was said, read and run.
    """

    def __init__(
        self,
        bus: Bus,
        sinks: Sequence[Sink],
        *,
        session: Callable[[], str],
        model: Callable[[], Mapping[str, Any]],
        redactor: Redactor,
        content: bool = False,
    ) -> None:
        self._bus = bus
        self._sinks = list(sinks)
        self._conversation = session
        self._model = model
        self._redactor = redactor
        self._content = content
        self._epoch = time.time_ns() - time.monotonic_ns()
        self._session: Span | None = None
        self._task: Span | None = None
        self._turn: Span | None = None
        self._chat: Span | None = None
        self._tools: dict[str, Span] = {}
        self._calls = 0
        self._asks_for_tools = False
        bus.on(events.SessionStart, self._session_start)
        bus.on(events.UserMessage, self._user_message)
        bus.on(events.TurnStart, self._turn_start)
        bus.on(events.AssistantMessage, self._assistant_message)
        bus.on(events.ToolExecutionStart, self._tool_start)
        bus.on(events.ToolExecutionEnd, self._tool_end)
        bus.on(events.TurnEnd, self._turn_end)
        bus.on(events.Notice, self._notice)
        bus.on(events.SessionEnd, self._session_end)

    async def aclose(self) -> None:
        """End what is open, and close the sinks."""
        self._end_session()
        for sink in self._sinks:
            await sink.aclose()

    # -- events ------------------------------------------------------------------

    def _session_start(self, event: events.SessionStart) -> None:
        self._open_session()["hypercode.version"] = event.version

    def _user_message(self, event: events.UserMessage) -> None:
        attributes = self._open_task()
        if self._content:
            said = [*attributes.get("gen_ai.input.messages", ()), {"role": "user", "content": event.text}]
            attributes["gen_ai.input.messages"] = said

    def _turn_start(self, event: events.TurnStart) -> None:
        self._end_turn("lost")
        self._open_task()
        self._turn = self._begin("turn", self._task, {"hypercode.turn": event.turn})
        about = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": self._turn.session, **self._model()}
        name = f"chat {about.get('gen_ai.request.model', '')}".rstrip()
        self._chat = self._begin(name, self._turn, about, kind="client")
        self._calls, self._asks_for_tools = 0, False

    def _assistant_message(self, event: events.AssistantMessage) -> None:
        self._asks_for_tools = bool(event.message.get("tool_calls"))
        if self._chat is not None:
            self._chat.end = self._now()
            if self._content:
                self._chat.attributes["gen_ai.output.messages"] = [event.message]

    def _tool_start(self, event: events.ToolExecutionStart) -> None:
        self._calls += 1
        about = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.call_id,
        }
        if self._content:
            about["gen_ai.tool.call.arguments"] = event.arguments  # type: ignore[assignment]
        self._tools[event.call_id] = self._begin(f"execute_tool {event.name}", self._turn, about)

    def _tool_end(self, event: events.ToolExecutionEnd) -> None:
        span = self._tools.pop(event.call_id, None)
        if span is not None:
            if self._content:
                span.attributes["gen_ai.tool.call.result"] = event.output
            self._finish(span, (event.kind or "_OTHER") if event.is_error else "")

    def _turn_end(self, event: events.TurnEnd) -> None:
        kind = (event.error or {}).get("kind")
        error = "" if event.outcome == "complete" else str(kind or event.outcome)
        if self._chat is not None:
            self._chat.attributes |= _measured(event)
            if self._content and event.error:
                self._chat.attributes["hypercode.error.message"] = event.error.get("message")
        answered = self._calls > 0 or (event.outcome == "aborted" and event.finish_reason is not None)
        if self._task is not None:
            _add(self._task.attributes, _tokens(event.usage))
        self._end_turn(error, chat="" if answered else error)
        if error or not self._asks_for_tools:
            self._end_task(error)

    def _notice(self, event: events.Notice) -> None:
        answering = self._chat if self._chat is not None and self._chat.end is None else None
        span = answering or self._turn or self._task or self._session
        if span is not None:
            about = {"level": event.level} | ({"text": event.text} if self._content else {})
            span.events.append({"name": "hypercode.notice", "time": self._now(), "attributes": about})

    def _session_end(self, event: events.SessionEnd) -> None:
        about = {"hypercode.outcome": event.outcome, "hypercode.exit_code": event.exit_code}
        self._open_session().update(about)
        self._end_session("" if event.outcome == "complete" else str((event.error or {}).get("kind") or event.outcome))

    # -- spans -------------------------------------------------------------------

    def _now(self) -> int:
        return self._epoch + time.monotonic_ns()

    def _open_session(self) -> dict[str, Any]:
        """The attributes of the session's span; another conversation is another session."""
        name = self._conversation()
        if self._session is not None and self._session.session != name:
            self._end_session()
        if self._session is None:
            self._session = self._begin("session", None, {"gen_ai.conversation.id": name})
        return self._session.attributes

    def _open_task(self) -> dict[str, Any]:
        self._open_session()
        if self._task is None:
            self._epoch = time.time_ns() - time.monotonic_ns()  # the machine may have slept
            about = {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "hypercode",
                "gen_ai.conversation.id": self._conversation(),
            }
            self._task = self._begin("invoke_agent hypercode", self._session, about)
        return self._task.attributes

    def _begin(self, name: str, parent: Span | None, attributes: Mapping[str, Any], *, kind: str = "internal") -> Span:
        session = parent.session if parent else self._conversation()
        span = Span(self._redactor.text(name), session, self._now(), parent, kind, attributes=dict(attributes))
        self._each(lambda sink: sink.begin(span))
        return span

    def _finish(self, span: Span, error: str = "") -> None:
        span.end = max(self._now() if span.end is None else span.end, span.start)
        span.error = error
        if error:
            span.attributes["error.type"] = error
        span.attributes = {key: self._clean(value) for key, value in span.attributes.items() if value is not None}
        for event in span.events:
            event["attributes"] = self._redactor.value(event["attributes"])
        self._each(lambda sink: sink.finish(span))

    def _clean(self, value: Any) -> Any:
        """The value without secrets; one with parts as JSON, as the conventions want it, but for lists of words."""
        clean = self._redactor.value(value)
        if isinstance(clean, dict) or (isinstance(clean, list) and any(not isinstance(v, str) for v in clean)):
            return json.dumps(clean, ensure_ascii=False, default=str)
        return clean

    def _end_turn(self, error: str, *, chat: str | None = None) -> None:
        for span in self._tools.values():
            self._finish(span, error or "lost")
        self._tools.clear()
        chat_span, self._chat = self._chat, None
        if chat_span is not None:
            self._finish(chat_span, error if chat is None else chat)
        turn, self._turn = self._turn, None
        if turn is not None:
            self._finish(turn, error)

    def _end_task(self, error: str) -> None:
        task, self._task = self._task, None
        if task is not None:
            self._finish(task, error)

    def _end_session(self, error: str = "") -> None:
        self._end_turn("lost")
        self._end_task(error)
        session, self._session = self._session, None
        if session is not None:
            self._finish(session, error)

    def _each(self, action: Callable[[Sink], None]) -> None:
        for sink in list(self._sinks):
            try:
                action(sink)
            except Exception:
                log.exception("a trace failed")
                self._sinks.remove(sink)
                self._bus.emit(events.Notice("warning", "A trace failed and ends here; the details are in the log."))


_TOKENS = {
    "gen_ai.usage.input_tokens": ("prompt_tokens",),
    "gen_ai.usage.output_tokens": ("completion_tokens",),
    "gen_ai.usage.cache_read.input_tokens": ("prompt_tokens_details", "cached_tokens"),
    "gen_ai.usage.reasoning.output_tokens": ("completion_tokens_details", "reasoning_tokens"),
}


def _tokens(usage: Mapping[str, Any] | None) -> dict[str, int]:
    """The token counts of a `usage` object under the names of the conventions."""
    counts = {}
    for name, keys in _TOKENS.items():
        if (value := counted(usage, *keys)) is not None:
            counts[name] = value
    return counts


def _add(attributes: dict[str, Any], counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        attributes[name] = attributes.get(name, 0) + count


def _measured(event: events.TurnEnd) -> dict[str, Any]:
    """What is known of a model call when its turn is over."""
    return {
        **_tokens(event.usage),
        "gen_ai.response.finish_reasons": [event.finish_reason] if event.finish_reason else None,
        "gen_ai.response.time_to_first_chunk": None if event.ttft is None else round(event.ttft, 6),
        "hypercode.cost_usd": event.cost,
        "hypercode.usage_estimated": True if (event.usage or {}).get("estimated") else None,
        "http.response.status_code": (event.error or {}).get("status"),
    }
