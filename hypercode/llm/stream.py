"""The body of one answer while it is read: bytes in, a filled reply out, and the clocks."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from hypercode.errors import ModelError, ModelUnavailable, StreamInterrupted
from hypercode.llm.assemble import Assembler
from hypercode.llm.clock import Deadline
from hypercode.llm.errors import no_stream_error, reported_error
from hypercode.llm.quirks import host_of
from hypercode.llm.retry import seconds
from hypercode.llm.settings import ModelSettings
from hypercode.llm.sse import DAMAGED, DONE, GARBLED, SSEReader, decoded, parse_objects

__all__ = ["StreamReader"]

_DRAIN_SECONDS = 0.05
_GATHER_SECONDS = 0.02
_NO_NEWS = frozenset(
    {"id", "object", "created", "model", "provider", "system_fingerprint", "service_tier", "choices"}
)  # a chunk of nothing but these says that the connection lives


class StreamReader:
    """Feeds an assembler, and moves the deadline with each event.

    Comments, pings and chunks without a choice or anything else that is news (`{"choices": []}`) are no events: they
    are counted as keep-alives.  A choice is one, even with an empty delta: so some servers tell of thinking they hide.
    After a finish reason only a further piece of the answer moves the deadline.
    """

    def __init__(self, settings: ModelSettings, assembler: Assembler) -> None:
        self._settings = settings
        self._host = host_of(settings.base_url)
        self._assembler = assembler
        self._reader = SSEReader()
        self._chunks = 0
        self._events = 0
        self._comments_before = 0
        self._deadline: Deadline | None = None
        self._ending = -1
        self._gathered = 0.0

    def start(self, scope: asyncio.Timeout) -> None:
        """Start the clock of the first event; it ends the block of `scope`."""
        self._deadline = Deadline(scope, self._settings.first_event_timeout)

    def stop(self) -> None:
        """Stop the clocks."""
        if self._deadline is not None:
            self._deadline.stop()

    async def take(self, data: bytes) -> None:
        """`feed`, and then let small pieces gather for a moment: waking up costs more than reading several at once.

        Nothing waits before the first word is out, nor while pieces that are here already are being read.
        """
        shown = self._assembler.shown
        self.feed(data)
        now = time.monotonic()
        if shown and now - self._gathered > _GATHER_SECONDS and not self._assembler.finished:
            await asyncio.sleep(_GATHER_SECONDS)
            self._gathered = time.monotonic()

    def feed(self, data: bytes) -> None:
        """Take bytes of the body.  Raises the error that the server reports in them."""
        items = self._reader.feed(data)
        if not items:
            return
        if self._assembler.done:
            self._after_done(items)  # it is read, too, so that the connection can be used again
            return
        before = self._events
        self._take(items)
        if self._deadline is not None:
            self._move(self._deadline, new=self._events > before)

    def _move(self, deadline: Deadline, *, new: bool) -> None:
        """Set the deadline after `new` events, or none."""
        assembler = self._assembler
        if assembler.done:
            deadline.set(_DRAIN_SECONDS)
        elif assembler.finished:
            if assembler.pieces != self._ending:
                self._ending = assembler.pieces
                deadline.set(self._settings.finish_grace)
        elif new:
            self._comments_before = self._keep_alives
            deadline.set(self._settings.idle_timeout)

    @property
    def _keep_alives(self) -> int:
        return self._reader.comments + self._chunks - self._events

    def flush(self) -> None:
        """Take what is left of a body that ended in any way: its last line, which needs no newline, and a document.

        Raises the error that the server reports there.
        """
        self._take(self._reader.close())
        body = self._reader.body.strip()
        if not body or self._assembler.done:
            return
        text, clean = decoded(body)
        values = parse_objects(text)
        if not self._chunks and any(value.get("choices") for value in values):
            self._take(values if clean else [GARBLED, *values, DAMAGED])
        for value in values:
            if error := reported_error(value, self._assembler.provider, self._host):
                raise error

    def close(self, content_type: str) -> None:
        """The body is over.  Raises `StreamInterrupted` where the end of the answer is missing."""
        self.flush()
        if not self._chunks and (body := self._reader.body.strip()):
            raise self._no_stream(body, content_type)
        assembler = self._assembler
        if assembler.whole and self._chunks == 1 and content_type.startswith("application/json"):
            assembler.mark_done()  # a document has its end where it ends, whatever its finish reason
        if assembler.finished and self._chunks:
            return
        if not self._events:
            only = " after nothing but keep-alives" if self._keep_alives else ""
            raise StreamInterrupted(f"{self._host} ended the answer before it began{only}. It may pass: try again.")
        raise StreamInterrupted(f"The answer of {self._host} broke off before its end. What came is kept.")

    def silence(self, *, answered: bool) -> ModelError:
        """The error of a clock that ran out; `answered` is whether there were response headers."""
        first, idle = seconds(self._settings.first_event_timeout), seconds(self._settings.idle_timeout)
        if not answered:
            return ModelUnavailable(
                f"{self._host} did not answer within {first}. It may be busy, or loading the model."
            )
        comments = self._keep_alives - self._comments_before
        got = f"only {comments} keep-alive{'s' * (comments > 1)}" if comments else "nothing"
        if not self._events:
            return StreamInterrupted(f"{self._host} took the request and then sent {got} for {first}.")
        return StreamInterrupted(f"The stream of {self._host} fell silent: {got} for {idle}. What came is kept.")

    def _no_stream(self, body: bytes, content_type: str) -> ModelError:
        """The error of a body that is neither a stream nor a reply."""
        if (body.startswith(b"{") or (body.startswith(b"[{") and not body.endswith(b"]"))) and not parse_objects(
            decoded(body)[0]
        ):
            return StreamInterrupted(f"The answer of {self._host} is a JSON document that was cut off.")
        return no_stream_error(body, content_type, self._host)

    def _take(self, items: list[Any]) -> None:
        assembler = self._assembler
        if assembler.done:
            self._after_done(items)
            return
        for item in items:
            if item.__class__ is dict:
                self._chunks += 1
                self._events += _is_event(item)
                try:
                    assembler.apply(item)
                except RecursionError:  # nested beyond any meaning
                    assembler.mark_damaged()
            elif item is DONE:
                assembler.mark_done()
                self._after_done(items[items.index(DONE) + 1 :])
                return
            elif item is DAMAGED:
                assembler.mark_damaged()
            elif item is GARBLED:
                assembler.mark_garbled()

    def _after_done(self, items: list[Any]) -> None:
        """Nothing after `[DONE]` counts; but a piece of the answer there says that it came too early, and is lost."""
        for item in items:
            if item is DAMAGED or (item.__class__ is dict and _brings(item)):
                self._assembler.mark_damaged()


def _brings(chunk: dict[str, Any]) -> bool:
    """Whether a chunk holds a piece of an answer."""
    choices = chunk.get("choices")
    deltas = [c.get("delta") for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []
    return any(value and key != "role" for delta in deltas if isinstance(delta, dict) for key, value in delta.items())


def _is_event(chunk: dict[str, Any]) -> bool:
    return bool(chunk.get("choices")) or any(value for key, value in chunk.items() if key not in _NO_NEWS)
