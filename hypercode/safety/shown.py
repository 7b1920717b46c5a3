"""Keeps the keys that the program knows off the screen and out of what it prints.

Everything that is shown or printed of a session goes over the bus, so this stands there (`Bus.through`); the conversation
itself, which goes to the model, stays as it is.  Only known keys are taken out, in every usual encoding: what merely looks
like a secret is the person's own business to see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from hypercode import events
from hypercode.events import Event
from hypercode.safety.approval import Answer, Asker, Question
from hypercode.safety.redact import RedactedStream, Redactor

__all__ = ["Shown"]


class Shown:
    """Takes known keys out of events, questions and lines.

    A text that streams is held back only while a key may have begun at its end, and for no longer than its message, or the
    output of its call.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._redactor = Redactor(secrets, patterns=False)
        self.text = self._redactor.text
        self._text: RedactedStream | None = None
        self._reasoning: RedactedStream | None = None
        self._arguments: dict[int, RedactedStream] = {}
        self._outputs: dict[str, RedactedStream] = {}

    def __call__(self, event: Event) -> Sequence[Event]:
        """What may be announced in place of the event: it, one without keys, nothing yet, or what was held back before it."""
        if type(event) is events.TextDelta:  # there are thousands of these
            stream = self._text
            if stream is None:
                stream = self._text = self._redactor.stream()
            given = stream.feed(event.text)
            return (event,) if given is event.text else (events.TextDelta(given),) if given else ()
        match event:
            case events.ReasoningDelta(text):
                self._reasoning = self._reasoning or self._redactor.stream()
                given = self._reasoning.feed(text)
                return (event,) if given is text else (events.ReasoningDelta(given),) if given else ()
            case events.ToolCallDelta(index, text):
                given = self._stream(self._arguments, index).feed(text)
                return (event,) if given is text else (events.ToolCallDelta(index, given),) if given else ()
            case events.ToolOutput(call_id, text):
                given = self._stream(self._outputs, call_id).feed(text)
                return (event,) if given is text else (events.ToolOutput(call_id, given),) if given else ()
            case events.AssistantMessage() | events.TurnEnd():
                return (*self._message_over(), self._cleaned(event))
            case events.ToolExecutionEnd(call_id):
                return (*self._output_over(call_id), self._cleaned(event))
        return (self._cleaned(event),)

    def asker(self, ask: Asker) -> Asker:
        """The same person, asked without the keys; a rule with one in it is not offered."""

        async def asked(question: Question) -> Answer | None:
            return await ask(self._question(question))

        return asked

    def _question(self, question: Question) -> Question:
        clean = self.text
        rule = question.rule if question.rule is None or clean(question.rule) == question.rule else None
        return replace(
            question,
            rule=rule,
            subject=clean(question.subject),
            detail=clean(question.detail),
            reason=clean(question.reason),
        )

    def _stream(self, streams: dict[Any, RedactedStream], key: object) -> RedactedStream:
        stream = streams.get(key)
        if stream is None:
            stream = streams[key] = self._redactor.stream()
        return stream

    def _message_over(self) -> Iterator[Event]:
        """What was held back of the message that is over."""
        if self._reasoning and (rest := self._reasoning.close()):
            yield events.ReasoningDelta(rest)
        if self._text and (rest := self._text.close()):
            yield events.TextDelta(rest)
        for index, stream in self._arguments.items():
            if rest := stream.close():
                yield events.ToolCallDelta(index, rest)
        self._text = self._reasoning = None
        self._arguments = {}

    def _output_over(self, call_id: str) -> Iterator[Event]:
        stream = self._outputs.pop(call_id, None)
        if stream is not None and (rest := stream.close()):
            yield events.ToolOutput(call_id, rest)

    def _cleaned(self, event: Event) -> Event:
        changed = {}
        for field in fields(event):
            value = getattr(event, field.name)
            clean = self._redactor.value(value)
            if clean is not value:
                changed[field.name] = clean
        return replace(event, **changed) if changed else event
