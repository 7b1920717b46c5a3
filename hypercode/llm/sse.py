"""Bytes of an event stream → chunks (dicts), tolerant of what servers really send.

Server-sent events as in https://html.spec.whatwg.org/multipage/server-sent-events.html, with these differences, each
of them seen in the wild: a `data:` line that is a whole JSON object is delivered at once, so that servers which separate
their events by one newline (or never send the last empty line) still stream; lines of bare JSON count as data; data that
is not JSON is skipped; an answer that is no event stream at all is kept for `body`.  Only CR and LF end a line: U+2028
and U+0085 are text.
"""

from __future__ import annotations

import json
from typing import Any, Final

__all__ = ["DAMAGED", "DONE", "Chunk", "SSEReader", "parse_int", "parse_object"]

Chunk = dict[str, Any]
"""A parsed chunk.  The data of an event named `error` are under its key `error`."""


class _Mark:
    """A sign in the stream that is no chunk."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


DONE: Final = _Mark("DONE")
"""The marker `[DONE]`."""

DAMAGED: Final = _Mark("DAMAGED")
"""A line that was meant as a chunk could not be read: something is missing here."""

Item = Chunk | _Mark

_BOM = b"\xef\xbb\xbf"
_LINE_LIMIT = 64 * 1024 * 1024
_BODY_LIMIT = 32 * 1024 * 1024

_GREATEST: Final[int] = 10**300
_DIGITS = 300  # more fit neither into a float nor, from 4300 on, through `int`


def parse_int(digits: str) -> int:
    """The whole number; one of more than 300 digits counts as 10 to the power of 300, and is no error."""
    if len(digits) <= _DIGITS:
        return int(digits)
    return -_GREATEST if digits.startswith("-") else _GREATEST


# strict=False: control characters inside strings, which strict parsers refuse, are text
_decode = json.JSONDecoder(strict=False, parse_int=parse_int).raw_decode


class SSEReader:
    """Feed it the bytes as they come, in any pieces.

    `comments` counts keep-alives (comments, pings, empty data).  `body` is what an answer held that was no event stream.
    """

    def __init__(self) -> None:
        self.comments = 0
        self._started = False
        self._skip_newline = False
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._pending: list[str] = []
        self._event = ""
        self._stray: list[bytes] = []
        self._stray_size = 0

    @property
    def body(self) -> bytes:
        """Lines that belong to no event stream, as they came: a JSON document, a web page, a sentence."""
        return b"\n".join(self._stray)

    def feed(self, data: bytes) -> list[Item]:
        """The chunks and marks that are whole with these bytes."""
        if self._skip_newline or b"\r" in data:
            data = self._unify_newlines(data)
        if b"\n" not in data:
            self._keep_partial(data)
            return []
        lines = data.split(b"\n")
        if self._partial:
            self._partial.append(lines[0])
            lines[0] = b"".join(self._partial)
            self._partial.clear()
            self._partial_size = 0
        self._keep_partial(lines.pop())
        if not self._started:
            self._started = True
            lines[0] = _without_bom(lines[0])
        items: list[Item] = []
        for line in lines:
            self._line(line, items)
        return items

    def close(self) -> list[Item]:
        """What is left when the body ends: the last line and the last event need no newline after them."""
        items: list[Item] = []
        rest = b"".join(self._partial)
        self._partial.clear()
        if rest:
            self._line(rest if self._started else _without_bom(rest), items)
        self._dispatch(items)
        return items

    def _unify_newlines(self, data: bytes) -> bytes:
        if self._skip_newline and data:
            data = data.removeprefix(b"\n")
            self._skip_newline = False
        if data.endswith(b"\r"):
            self._skip_newline = True
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _keep_partial(self, data: bytes) -> None:
        if data and self._partial_size <= _LINE_LIMIT:
            self._partial.append(data)
            self._partial_size += len(data)

    def _line(self, line: bytes, items: list[Item]) -> None:
        if line.startswith(b"data:"):
            self._data(line[6:] if line[5:6] == b" " else line[5:], items)
        elif not line:
            self._dispatch(items)
        elif line.startswith(b":"):
            self.comments += 1
        elif line.startswith(b"event:"):
            self._event = line[6:].strip().decode("utf-8", "replace")
        elif line.startswith((b"id:", b"retry:")) or line in (b"data", b"id", b"event", b"retry"):
            pass
        elif line.startswith(b"[DONE]"):
            items.append(DONE)
        elif (
            line.startswith(b"{") and not self._stray and (value := _whole(line.decode("utf-8", "replace"))) is not None
        ):
            self._flush(items)
            items.append(value)
        elif self._stray_size <= _BODY_LIMIT:
            self._stray.append(line)
            self._stray_size += len(line)

    def _data(self, raw: bytes, items: list[Item]) -> None:
        clean = True
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = raw.decode("utf-8", "replace")
            clean = False
        if text.startswith("{"):
            try:
                value, end = _decode(text)
            except (ValueError, RecursionError):
                value, end = None, 0
            if end == len(text) and (not self._pending or "choices" in value or "error" in value):
                self._flush(items)
                self._deliver(value, items)
                if not clean:
                    items.append(DAMAGED)
                return
        self._pending.append(text)
        if text.startswith("[DONE]"):
            self._dispatch(items)

    def _dispatch(self, items: list[Item]) -> None:
        """An event is over."""
        self._flush(items)
        self._event = ""

    def _flush(self, items: list[Item]) -> None:
        """Deliver the data lines that were no whole objects by themselves: joined, else one by one."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        if len(pending) > 1 and (value := _whole("\n".join(pending))) is not None:
            self._deliver(value, items)
            return
        for text in pending:
            self._data_text(text.strip(), items)

    def _data_text(self, text: str, items: list[Item]) -> None:
        if text.startswith("[DONE]"):
            items.append(DONE)
        elif text.startswith("{") or (text.startswith("[") and "{" in text):
            values, whole = _objects(text)
            for value in values:
                self._deliver(value, items)
            if not whole:
                items.append(DAMAGED)
        elif self._event == "error" and text:
            items.append({"error": text})
        elif "{" in text or '":' in text:
            items.append(DAMAGED)  # the rest of a cut chunk
        else:
            self.comments += 1  # empty, null, a number, a proxy's sentence: nobody's answer

    def _deliver(self, value: Chunk, items: list[Item]) -> None:
        if not value or self._event == "ping" or value.get("type") == "ping":
            self.comments += 1
            return
        items.append({"error": value} if self._event == "error" and not value.get("error") else value)


def _without_bom(line: bytes) -> bytes:
    """Without the byte order mark, or several: a proxy may add one to the server's."""
    while line.startswith(_BOM):
        line = line.removeprefix(_BOM)
    return line


def parse_object(text: str) -> Chunk | None:
    """The text as one JSON object, also where a list is around it (Google's errors), or None."""
    return _whole(text.strip())


def _whole(text: str) -> Chunk | None:
    values, whole = _objects(text)
    return values[0] if whole and len(values) == 1 else None


def _objects(text: str) -> tuple[list[Chunk], bool]:
    """The JSON objects that stand one after the other in the text, or in lists, and whether there is nothing else."""
    values: list[Chunk] = []
    position, length = 0, len(text)
    while position < length:
        if text[position] in " \t\n":
            position += 1
            continue
        try:
            value, position = _decode(text, position)
        except (ValueError, RecursionError):
            return values, False
        found = value if isinstance(value, list) else [value]
        if not found or not all(isinstance(item, dict) for item in found):
            return values, False
        values += found
    return values, bool(values)
