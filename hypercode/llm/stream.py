"""The body of one answer while it is read: bytes in, a filled reply out, and the clocks."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from hypercode.errors import ModelError, ModelUnavailable, StreamInterrupted
from hypercode.llm.assemble import Assembler
from hypercode.llm.clock import Deadline
from hypercode.llm.errors import no_stream_error
from hypercode.llm.quirks import host_of
from hypercode.llm.retry import seconds
from hypercode.llm.settings import ModelSettings
from hypercode.llm.sse import DAMAGED, DONE, SSEReader, parse_object

__all__ = ["StreamReader"]

_DRAIN_SECONDS = 0.05
_GATHER_SECONDS = 0.02


class StreamReader:
    """Feeds an assembler, and moves the deadline with each event.  Comments are no events."""

    def __init__(self, settings: ModelSettings, assembler: Assembler) -> None:
        self._settings = settings
        self._host = host_of(settings.base_url)
        self._assembler = assembler
        self._reader = SSEReader()
        self._events = 0
        self._comments_before = 0
        self._deadline: Deadline | None = None
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
        before = self._events
        if items:
            self._take(items)
        if self._deadline is None:
            return
        if self._assembler.done:
            self._deadline.set(_DRAIN_SECONDS)
        elif self._events > before:
            self._comments_before = self._reader.comments
            finished = self._assembler.finished
            self._deadline.set(self._settings.finish_grace if finished else self._settings.idle_timeout)

    def flush(self) -> None:
        """Take what is left of a body that ended in any way: its last line needs no newline."""
        self._take(self._reader.close())

    def close(self, content_type: str) -> None:
        """The body is over.  Raises `StreamInterrupted` where the end of the answer is missing."""
        self.flush()
        if not self._events and (body := self._reader.body.strip()):
            self._document(body, content_type)
        if self._assembler.finished and self._events:
            return
        if not self._events:
            only = " after nothing but keep-alives" if self._reader.comments else ""
            raise StreamInterrupted(f"{self._host} ended the answer before it began{only}. It may pass: try again.")
        raise StreamInterrupted(f"The answer of {self._host} broke off before its end. What came is kept.")

    def silence(self, *, answered: bool) -> ModelError:
        """The error of a clock that ran out; `answered` is whether there were response headers."""
        first, idle = seconds(self._settings.first_event_timeout), seconds(self._settings.idle_timeout)
        if not answered:
            return ModelUnavailable(
                f"{self._host} did not answer within {first}. It may be busy, or loading the model."
            )
        comments = self._reader.comments - self._comments_before
        got = f"only {comments} keep-alive{'s' * (comments > 1)}" if comments else "nothing"
        if not self._events:
            return StreamInterrupted(f"{self._host} took the request and then sent {got} for {first}.")
        return StreamInterrupted(f"The stream of {self._host} fell silent: {got} for {idle}. What came is kept.")

    def _document(self, body: bytes, content_type: str) -> None:
        """An answer in one JSON document over several lines; anything else is an error."""
        value = parse_object(body.decode("utf-8", "replace"))
        if value is not None and value.get("choices"):
            self._take([value])
        elif value is None and (body.startswith(b"{") or (body.startswith(b"[{") and not body.endswith(b"]"))):
            raise StreamInterrupted(f"The answer of {self._host} is a JSON document that was cut off.")
        else:
            raise no_stream_error(body, content_type, self._host)

    def _take(self, items: list[Any]) -> None:
        assembler = self._assembler
        if assembler.done:
            return  # nothing after [DONE] counts; it is read so that the connection can be used again
        for item in items:
            if item.__class__ is dict:
                self._events += 1
                assembler.apply(item)
            elif item is DONE:
                assembler.mark_done()
                return
            elif item is DAMAGED:
                assembler.mark_damaged()
