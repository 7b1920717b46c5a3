"""Chunks → `Reply`: text, reasoning, tool calls, usage.  Pure; errors in the stream are raised.

Works on the raw dicts: no field of a chunk can be relied on to be there or to have its type.  Field names are those of
the chat-completions API and of OpenRouter (https://openrouter.ai/docs), with `reasoning_content` (DeepSeek, vLLM) and
content in parts (Mistral).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from hypercode.events import Event, ReasoningDelta, TextDelta
from hypercode.llm.calls import CallAssembler
from hypercode.llm.error_bodies import is_failure
from hypercode.llm.errors import reported_error
from hypercode.llm.sse import parse_int
from hypercode.llm.think import SurrogateJoiner, ThinkSplitter
from hypercode.messages import Reply

__all__ = ["Assembler", "forget"]

_NO_FINISH = frozenset({"", "null", "none"})


class Assembler:
    """Fills `reply` chunk by chunk and announces what it finds; `started` is the time (`time.monotonic`) of the request,
    `host` the name of the server in errors.

    `done` is true after `[DONE]`, `finished` after a finish reason or `[DONE]`.  `lost` counts lines that could not be
    read.  `whole` is true where the answer came in one piece, as of a server that does not stream.
    """

    def __init__(
        self,
        reply: Reply,
        emit: Callable[[Event], None],
        known_tools: frozenset[str] = frozenset(),
        started: float | None = None,
        host: str | None = None,
    ) -> None:
        self._host = host
        self._reply = reply
        self._emit = emit
        self._started = time.monotonic() if started is None else started
        self._calls = CallAssembler(self._announce, known_tools)
        self._text = SurrogateJoiner()
        self._thinking = SurrogateJoiner()
        self._splitter = ThinkSplitter()
        self._details: list[dict[str, Any]] = []
        self._reasoning_content: list[str] = []
        self._suspicious = False
        self.done = False
        self.lost = 0
        self.whole = False

    @property
    def shown(self) -> bool:
        """Whether anything of the reply was announced."""
        return self._reply.shown

    @property
    def finished(self) -> bool:
        """Whether the turn came to a known end."""
        return self.done or self._reply.finish_reason is not None

    @property
    def provider(self) -> str | None:
        """The provider that the answer named so far."""
        return self._reply.provider

    @property
    def pieces(self) -> int:
        """How many pieces of text, thinking and calls have come."""
        return len(self._reply.text_parts) + len(self._reply.reasoning_parts) + self._calls.pieces

    def apply(self, chunk: dict[str, Any]) -> None:
        """Take one chunk.  Raises the `ModelError` that the server reports in it."""
        choices = chunk.get("choices")
        if choices.__class__ is not list:
            choices = [choices] if isinstance(choices, dict) else []
        for choice in choices:
            if isinstance(choice, dict) and _number(choice.get("index")) == 0:
                self._choice(choice)
        self._rest(chunk)
        if self._suspicious or not choices or chunk.get("error"):
            error = reported_error(chunk, self._reply.provider, self._host)
            if error is not None:
                raise error

    def mark_done(self) -> None:
        """The server said `[DONE]`."""
        self.done = True

    def mark_garbled(self) -> None:
        """What comes up to the next `mark_damaged` holds U+FFFD: a call that a piece of it belongs to must not run."""
        self._calls.garbled = True
        if self._reply.finish_reason is None:
            self.lost += 1

    def mark_damaged(self) -> None:
        """A line was lost, or what it brought is garbled.  After a finish reason no lost line was part of a call."""
        garbled, self._calls.garbled = self._calls.garbled, False
        if self._reply.finish_reason is None:
            self.lost += not garbled
            self._calls.damage()

    def close(self, *, complete: bool) -> None:
        """Settle what was held back, and the calls.  Safe to call after any end."""
        thinking, text = self._splitter.close()
        self._show_reasoning(thinking)
        if complete or not thinking:
            self._show_text(text)
        self._show_text(self._text.close(), joined=True)
        self._show_reasoning(self._thinking.close())
        reply = self._reply
        reply.calls = self._calls.finish()
        if details := self._details_to_return(complete=complete):
            reply.extra["reasoning_details"] = details
        if self._reasoning_content:
            reply.extra["reasoning_content"] = "".join(self._reasoning_content)

    def _announce(self, event: Event) -> None:
        self._first_sign()
        self._emit(event)

    def _first_sign(self) -> None:
        if not self._reply.shown:
            self._reply.shown = True
            self._reply.ttft = time.monotonic() - self._started

    def _choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta")
        if delta.__class__ is not dict or not delta:
            delta = self._whole_message(choice)
        if delta:
            self._delta(delta)
        reason = choice.get("finish_reason")
        if reason.__class__ is str and reason.lower() not in _NO_FINISH:
            self._reply.finish_reason = reason
            self._suspicious = is_failure(reason)
        if choice.get("error") or (delta and delta.get("error")) or "message" in choice:
            self._suspicious = True
        usage = choice.get("usage")
        if usage:
            self._usage(usage)

    def _whole_message(self, choice: dict[str, Any]) -> dict[str, Any] | None:
        """The answer of a server that does not stream, unless it repeats what was streamed."""
        if self._reply.text_parts or self._calls.announced:
            return None
        message = choice.get("message")
        if isinstance(message, dict):
            self.whole = True
            return message
        text = choice.get("text")
        return {"content": text} if isinstance(text, str) else None

    def _delta(self, delta: dict[str, Any]) -> None:
        content = delta.get("content")
        if content.__class__ is str:
            if content and (len(delta) == 1 or (len(delta) == 2 and "role" in delta)):  # by far the most frequent
                self._show_text(content)
                return
        elif content:
            self._parts(content)
            content = ""
        self._reasoning(delta)
        if content:
            self._show_text(content)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._show_text(refusal)
        calls = delta.get("tool_calls")
        for fragment in [calls] if isinstance(calls, dict) else calls if isinstance(calls, list) else ():
            if isinstance(fragment, dict):
                self._calls.feed(fragment)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict) and legacy and not calls:
            self._calls.feed({"index": 0, "function": legacy})
        extra = delta.get("extra_content")
        if isinstance(extra, dict):
            self._reply.extra["extra_content"] = {**self._reply.extra.get("extra_content", {}), **extra}

    def _parts(self, content: object) -> None:
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, str):
                self._show_text(part)
            elif isinstance(part, dict):
                thinking = part.get("thinking", part.get("reasoning"))
                if not thinking and part.get("type") in ("thinking", "reasoning"):
                    thinking = part
                if thinking:
                    self._show_reasoning(_plain(thinking))
                else:
                    self._show_text(_plain(part))

    def _reasoning(self, delta: dict[str, Any]) -> None:
        """Show the thinking once, whatever number of fields it comes in, and keep what has to go back."""
        content = delta.get("reasoning_content")
        if content and isinstance(content, str):
            self._reasoning_content.append(content)
        else:
            content = ""
        shown = delta.get("reasoning")
        shown = shown if isinstance(shown, str) and shown else content
        if not shown:
            others = (delta.get("thinking"), delta.get("reasoning_text"))
            shown = next((o for o in others if isinstance(o, str) and o), "")
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            for detail in details:
                if isinstance(detail, dict):
                    self._detail(detail)
            if not shown:
                pieces = [d.get("text") or d.get("summary") for d in details if isinstance(d, dict)]
                shown = "".join(p for p in pieces if isinstance(p, str))
        if shown:
            self._show_reasoning(shown)

    def _detail(self, piece: dict[str, Any]) -> None:
        """Merge a piece of `reasoning_details`: those of one index and type are one block."""
        for block in reversed(self._details):
            if _same_block(block, piece):
                for key, value in piece.items():
                    if (
                        key in ("text", "summary", "data")
                        and isinstance(value, str)
                        and isinstance(block.get(key), str)
                    ):
                        block[key] += value
                    elif value is not None or key not in block:
                        block[key] = value
                return
        self._details.append(dict(piece))

    def _details_to_return(self, *, complete: bool) -> list[dict[str, Any]]:
        """A thinking block that was cut before its signature would make the next request fail."""
        if complete:
            return self._details
        return [
            d
            for d in self._details
            if d.get("signature") or d.get("type") != "reasoning.text" or "anthropic" not in str(d.get("format"))
        ]

    def _show_text(self, text: str, *, joined: bool = False) -> None:
        if not self._splitter.plain and not joined:
            thinking, text = self._splitter.feed(text)
            if thinking:
                self._show_reasoning(thinking)
        if not joined:
            text = self._text.feed(text)
        if text:
            self._first_sign()
            self._reply.text_parts.append(text)
            self._emit(TextDelta(text))

    def _show_reasoning(self, text: str) -> None:
        text = self._thinking.feed(text)
        if text:
            self._first_sign()
            self._reply.reasoning_parts.append(text)
            self._emit(ReasoningDelta(text))

    def _rest(self, chunk: dict[str, Any]) -> None:
        """What a chunk says beside its choices."""
        reply = self._reply
        if reply.generation_id is None and (ident := chunk.get("id")) and isinstance(ident, str):
            reply.generation_id = ident
        if (model := chunk.get("model")) and model.__class__ is str:
            reply.model = model
        if (provider := chunk.get("provider")) and isinstance(provider, str):
            reply.provider = provider
        if usage := chunk.get("usage"):
            self._usage(usage)
        elif isinstance(groq := chunk.get("x_groq"), dict) and groq.get("usage"):
            self._usage(groq["usage"])

    def _usage(self, usage: object) -> None:
        """The last usage counts, piece by piece; zeros never replace real numbers."""
        if not isinstance(usage, dict):
            return
        new: dict[str, Any] = _finite(usage)
        if self._reply.usage is not None:
            if not any(_number(v) for v in new.values()):
                return
            new = {**self._reply.usage, **{k: v for k, v in new.items() if v is not None}}
        self._reply.usage = new
        cost = new.get("cost")
        if isinstance(cost, int | float) and not isinstance(cost, bool):
            self._reply.cost = float(cost)


def _number(value: object) -> float:
    """A number as it was meant; what is none counts as 0."""
    if isinstance(value, int | float):
        return value
    return parse_int(value) if isinstance(value, str) and value.isdecimal() else 0


def _finite(value: Any) -> Any:
    """The object without NaN and Infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: object) -> str:
    """The text of a part, however it is nested."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_plain(v) for v in value)
    if not isinstance(value, dict):
        return ""
    return _plain(value.get("text") or value.get("content") or value.get("refusal") or "")


def _same_block(block: dict[str, Any], piece: dict[str, Any]) -> bool:
    if block.get("type") != piece.get("type") or block.get("index") != piece.get("index"):
        return False
    if block.get("id") and piece.get("id") and block["id"] != piece["id"]:
        return False
    # without an index only pieces of text are known to belong together, up to the signature
    return piece.get("index") is not None or (piece.get("type") != "reasoning.encrypted" and not block.get("signature"))


def forget(reply: Reply) -> None:
    """Empty a reply of what an answer that was never shown had left in it."""
    fresh = Reply()
    for name in Reply.__slots__:
        setattr(reply, name, getattr(fresh, name))
