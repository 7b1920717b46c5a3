"""What a command prints: read from its pipe, kept within a limit, spilled to a file, shown live."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NO_OUTPUT", "SPILL_BYTES", "Capture", "Printed"]

NO_OUTPUT = "[no output]"
"""What stands for the output of a command that printed nothing."""

SPILL_BYTES = 100_000_000
"""How much of a long output is kept in a file, in bytes."""

_READ = 128 * 1024
_FRAME = 0.03  # seconds between two live pieces
_LIVE = 16 * 1024  # bytes of a live piece; more than a screen can show in a frame
_DRAIN = 0.4  # seconds for what is still in the pipe when the process has ended


@dataclass(frozen=True, slots=True)
class Printed:
    """What a command printed, as valid text.

    Of an output longer than the limit `head` and `tail` are kept, else `head` is all of it.  `total` is its length in bytes
    and `spilled` the file with its first `spilled_bytes` bytes, just as they were printed.
    """

    head: str
    tail: str = ""
    total: int = 0
    truncated: bool = False
    spilled: Path | None = None
    spilled_bytes: int = 0
    spill_error: str = ""

    @property
    def gap(self) -> str:
        """The line that stands for what was left out; empty if nothing was."""
        if not self.truncated:
            return ""
        if self.spilled is None:
            where = f"the rest could not be kept: {self.spill_error}" if self.spill_error else "the rest was not kept"
        elif self.spilled_bytes < self.total:
            where = f"its first {self.spilled_bytes:,} bytes are in {self.spilled}"
            where += f" ({self.spill_error})" if self.spill_error else ""
        else:
            where = f"the whole is in {self.spilled}"
        return f"[... {self.total:,} bytes; left out here: the middle; {where} ...]"

    @property
    def text(self) -> str:
        """Head, gap and tail."""
        return f"{self.head.rstrip(chr(10))}\n{self.gap}\n{self.tail}" if self.truncated else self.head


class Capture:
    """The output of one command.

    Up to `limit` bytes are kept, half of them from the start and half from the end; a longer output goes to a file in the
    folder `spill` as well, its first `SPILL_BYTES` bytes.  `show` gets the output live, as text, and `take` every byte of it
    until it answers False; then `enough` is set and nothing more is read.
    """

    def __init__(
        self,
        limit: int,
        spill: Path | None = None,
        show: Callable[[str], None] | None = None,
        take: Callable[[bytes], bool] | None = None,
    ) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._spill = _Spill(spill) if spill else None
        self._live = _Live(show) if show else None
        self._take = take
        self._reader: int | None = None
        self._end = asyncio.Event()
        self.enough: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def listen(self, reader: int) -> None:
        """Read this pipe from now on; it is closed at its end or by `close`."""
        os.set_blocking(reader, False)
        self._reader = reader
        asyncio.get_running_loop().add_reader(reader, self._readable, reader)

    def _readable(self, reader: int) -> None:
        try:
            data = os.read(reader, _READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._feed(data)
        else:
            self._stop()

    def _feed(self, data: bytes) -> None:
        limit = 2 * self._half
        if self._spill and self._total + len(data) > limit:
            if self._total <= limit:
                self._spill.write(bytes(self._head + self._tail))
            self._spill.write(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > limit + _READ:
            del self._tail[: -self._half]
        self._total += len(data)
        if self._live:
            self._live.feed(data)
        if self._take and not self._take(data):
            self.enough.set_result(None)
            self._stop()

    def _stop(self) -> None:
        if self._reader is not None:
            asyncio.get_running_loop().remove_reader(self._reader)
            os.close(self._reader)
            self._reader = None
        self._end.set()

    async def drain(self) -> None:
        """Wait for the end of the pipe, but not for somebody who holds it open."""
        try:
            async with asyncio.timeout(_DRAIN):
                await self._end.wait()
        except TimeoutError:
            pass

    def close(self) -> None:
        """Stop reading and show what is still unseen; harmless twice."""
        self._stop()
        if self._live:
            self._live.close()
        if self._spill:
            self._spill.close()

    def printed(self) -> Printed:
        """What has come so far."""
        if self._total <= 2 * self._half:
            return Printed(_text(self._head + self._tail), total=self._total)
        return Printed(
            head=_text(_whole_characters(self._head)),
            tail=_text(self._tail[-self._half :].lstrip(_CONTINUATION)),
            total=self._total,
            truncated=True,
            spilled=self._spill.path if self._spill else None,
            spilled_bytes=self._spill.written if self._spill else 0,
            spill_error=self._spill.error if self._spill else "",
        )


_CONTINUATION = bytes(range(0x80, 0xC0))


def _text(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "replace").replace("\0", "\N{SYMBOL FOR NULL}")


def _whole_characters(data: bytes | bytearray) -> bytes:
    """The data without the first bytes of a character that was cut at its end."""
    return re.sub(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z", b"", data)


class _Live:
    """Text for the person who watches: at once after a pause, else once a frame, and never more than can be read."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._pending = bytearray()
        self._skipped = 0
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, data: bytes) -> None:
        self._pending += data
        if len(self._pending) > 4 * _LIVE:
            excess = len(self._pending) - _LIVE
            del self._pending[_LIVE // 2 : _LIVE // 2 + excess]
            self._skipped += excess
        if self._timer is None:
            loop = asyncio.get_running_loop()
            wait = self._last + _FRAME - loop.time()
            if wait <= 0:
                self._flush()
            else:
                self._timer = loop.call_later(wait, self._flush)

    def _flush(self, last: bool = False) -> None:
        self._timer = None
        self._last = asyncio.get_running_loop().time()
        data, self._pending = bytes(self._pending), bytearray()
        if self._skipped:
            head, tail = data[: _LIVE // 2], data[_LIVE // 2 :]
            note = f"\n[... {self._skipped:,} bytes not shown here ...]\n"
            text = _text(_whole_characters(head)) + note
            data, self._skipped = tail.lstrip(_CONTINUATION), 0
        else:
            text = ""
        complete = data if last else _whole_characters(data)
        self._pending += data[len(complete) :]
        text += _text(complete)
        if text:
            self._show(text)

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._flush(last=True)


class _Spill:
    """The file with what is too long for memory; made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None
        self.path: Path | None = None
        self.written = 0
        self.error = ""

    def write(self, data: bytes) -> None:
        data = data[: SPILL_BYTES - self.written]
        if self.error or not data:
            return
        try:
            if self._file is None:
                for folder in reversed([p for p in (self._folder, *self._folder.parents) if not p.exists()]):
                    folder.mkdir(exist_ok=True, mode=0o700)
                path = self._folder / f"output-{secrets.token_hex(6)}.txt"
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                self.path = path
            while data:
                count = os.write(self._file, data)
                self.written += count
                data = data[count:]
        except OSError as error:
            self.error = error.strerror or str(error)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
