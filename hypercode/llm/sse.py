"""Bytes of an event stream → chunks (dicts), tolerant of what servers really send.

Server-sent events as in https://html.spec.whatwg.org/multipage/server-sent-events.html, with these differences, each
of them seen in the wild: a `data:` line that is a whole JSON object is delivered at once, so that servers which separate
their events by one newline (or never send the last empty line) still stream; lines of bare JSON count as data; a field
`error`, as llama.cpp writes it, is an error; data that is not JSON is skipped; lines that belong to no event stream are
kept for `body`, and where they stand in one and may be what is left of a chunk they count as damage.  Only CR and LF end
a line: U+2028 and U+0085 are text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, AnyStr, Final

__all__ = [
    "DAMAGED",
    "DONE",
    "GARBLED",
    "Chunk",
    "SSEReader",
    "decoded",
    "parse_int",
    "parse_object",
    "parse_objects",
    "too_deep",
]

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

GARBLED: Final = _Mark("GARBLED")
"""Up to the next `DAMAGED` come chunks of a line with bytes that are no UTF-8: each of those is U+FFFD in them."""

Item = Chunk | _Mark

_BOM = b"\xef\xbb\xbf"
_OF_A_CHUNK = (b"{", b"}", b'":')  # no sentence of a proxy has them
_LINE_LIMIT = 64 * 1024 * 1024
_BODY_LIMIT = 32 * 1024 * 1024

_DEEPEST = 100
_GREATEST: Final[int] = 10**300
_DIGITS = 300  # more fit neither into a float nor, from 4300 on, through `int`


def parse_int(digits: str) -> int:
    """The whole number; one of more than 300 digits counts as 10 to the power of 300, and is no error."""
    if len(digits) <= _DIGITS:
        return int(digits)
    return -_GREATEST if digits.startswith("-") else _GREATEST


# strict=False: control characters inside strings, which strict parsers refuse, are text
_raw_decode = json.JSONDecoder(strict=False, parse_int=parse_int).raw_decode


def _decode(text: str, position: int = 0) -> tuple[Any, int]:
    """The JSON value at a place of the text, and where it ends.  Raises ValueError, RecursionError where it is too deep."""
    found = _raw_decode(text, position)
    if len(text) > _DEEPEST and text.count("{") + text.count("[") > _DEEPEST and too_deep(found[0]):
        raise RecursionError
    return found


def too_deep(value: object) -> bool:
    """Whether lists and objects lie in each other so deep that no server means it, and not every reader could follow."""
    depth, level = 0, [value]
    while level := [inner for outer in level if isinstance(outer, dict | list) for inner in _inside(outer)]:
        depth += 1
        if depth > _DEEPEST:
            return True
    return False


def _inside(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


class SSEReader:
    """Feed it the bytes as they come, in any pieces.

    `comments` counts keep-alives (comments, pings, empty data).  `body` is what an answer held that was no event stream.
    """

    def __init__(self) -> None:
        self.comments = 0
        self._started = False
        self._streaming = False
        self._torn = False
        self._document = False
        self._skip_newline = False
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._pending: list[tuple[str, bool]] = []
        self._event = ""
        self._stray: list[bytes] = []
        self._stray_size = 0

    @property
    def body(self) -> bytes:
        """Lines that belong to no event stream, as they came: a JSON document, a web page, a sentence.

        In the middle of a stream, too: a server that fails there may write its error as it would have answered with it.
        """
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
            if not self._streaming:
                self._begin(items)
            self._data(line[6:] if line[5:6] == b" " else line[5:], items)
        elif not line:
            self._dispatch(items)
        elif line.startswith((b":", b"event:", b"id:", b"retry:")):
            self._beside(line, items)
        elif line in (b"data", b"id", b"event", b"retry"):
            pass
        elif line.startswith(b"[DONE]"):
            _done(line, b"{", items)
        elif line[:6].lower() == b"error:" and (not self._stray or b"{" in line):
            self._flush(items)
            said = decoded(line[6:])[0].strip()
            if said in ("{", "["):
                self._stray.append(said.encode())  # the rest of it stands on the lines below
                self._document = True
            else:
                _error(said, items)
        elif not (line.startswith(b"{") and self._bare(line, items)):
            self._other(line, items)

    def _begin(self, items: list[Item]) -> None:
        """The first line of an event stream; something of it may have been lost before."""
        self._streaming = True
        if self._torn:
            items.append(DAMAGED)

    def _tear(self, items: list[Item]) -> None:
        """A line that may be what is left of a chunk.  It is damage only in an event stream: elsewhere it is a document."""
        if self._streaming:
            self._flush(items)
            items.append(DAMAGED)
        self._torn = True

    def _beside(self, line: bytes, items: list[Item]) -> None:
        """A comment, or a field that brings no data.  It may have swallowed a chunk whose own field is gone."""
        field, _, rest = line.partition(b":")
        if rest.rstrip().endswith(b"}") and ((value := _whole(decoded(rest)[0])) is None or _telling(value)):
            self._tear(items)
        if not field:
            self.comments += 1
        elif field == b"event":
            self._event = rest.strip().decode("utf-8", "replace")

    def _bare(self, line: bytes, items: list[Item]) -> bool:
        """Whether the line is a chunk without `data:`.  Among lines of a document it may be a part of that."""
        text, clean = decoded(line)
        value = _whole(text)
        if value is None or (self._stray and not _telling(value)):
            return False
        if not self._streaming and "choices" in value:
            self._begin(items)
        self._flush(items)
        _put([value], items, clean=clean)
        return True

    def _other(self, line: bytes, items: list[Item]) -> None:
        """A line as no server should send it: a byte order mark or blanks before the field, or none of a stream's."""
        bare = line.lstrip(b" \t")
        if line.startswith(_BOM):
            self._line(_without_bom(line), items)
        elif bare.startswith((b"data:", b"event:", _BOM)):
            self._line(bare, items)
        else:
            if self._document:
                self._document = line.rstrip() not in (b"}", b"]")
            elif any(sign in line for sign in _OF_A_CHUNK):
                self._tear(items)
            if self._stray_size <= _BODY_LIMIT:
                self._stray.append(line)
                self._stray_size += len(line)

    def _data(self, raw: bytes, items: list[Item]) -> None:
        text, clean = decoded(raw)
        while text.startswith("data:"):  # wrapped twice
            text = text[5:].lstrip(" ")
        if text.startswith("{"):
            try:
                value, end = _raw_decode(text)  # its depth is looked at where it is kept
            except (ValueError, RecursionError):
                value, end = None, 0
            if end == len(text) and (not self._pending or _telling(value)):
                self._flush(items)
                self._deliver(value, items, clean=clean)
                return
        self._pending.append((text, clean))
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
        if len(pending) > 1 and (value := _whole("\n".join(text for text, _ in pending))) is not None:
            self._deliver(value, items, clean=all(clean for _, clean in pending))
            return
        for text, clean in pending:
            self._data_text(text.strip(), items, clean=clean)

    def _data_text(self, text: str, items: list[Item], *, clean: bool) -> None:
        if text.startswith("[DONE]"):
            _done(text, "{", items)
        elif text.startswith("{") or (text.startswith("[") and "{" in text):
            values, whole = _objects(text)
            for value in values:
                self._deliver(value, items, clean=clean)
            if not whole:
                items.append(DAMAGED)
        elif text.startswith('"{') and (wrapped := _wrapped(text)) is not None:
            self._deliver(wrapped, items, clean=clean)
        elif text.startswith("error:") or (self._event == "error" and text):
            _error(text.removeprefix("error:").strip(), items)
        elif "{" in text or "}" in text or '":' in text:
            items.append(DAMAGED)  # the rest of a cut chunk
        else:
            self.comments += 1  # empty, null, a number, a proxy's sentence: nobody's answer

    def _deliver(self, value: Chunk, items: list[Item], *, clean: bool) -> None:
        if not value or ((self._event == "ping" or value.get("type") == "ping") and not _telling(value)):
            self.comments += 1
            return
        _put([{"error": value} if self._event == "error" and not value.get("error") else value], items, clean=clean)


def decoded(raw: bytes) -> tuple[str, bool]:
    """The bytes as text, and whether all of them are UTF-8; those that are not become U+FFFD."""
    try:
        return raw.decode(), True
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), False


def _done(line: AnyStr, sign: AnyStr, items: list[Item]) -> None:
    """The marker at the start of a line; a chunk behind it, as its `sign` tells, is lost."""
    items.append(DONE)
    if sign in line:
        items.append(DAMAGED)


def _put(values: list[Chunk], items: list[Item], *, clean: bool) -> None:
    if clean:
        items += values
    else:
        items += [GARBLED, *values, DAMAGED]


def _error(text: str, items: list[Item]) -> None:
    """The error that a line tells in JSON or in words; none where it is empty."""
    value = parse_object(text)
    if value:
        items.append(value if value.get("error") else {"error": value})
    elif value is None and text not in ("", "null", "false"):
        items.append({"error": text})


def _telling(value: Chunk) -> bool:
    """Whether an object can only be a chunk of its own."""
    return "choices" in value or "error" in value


def _wrapped(text: str) -> Chunk | None:
    """The chunk in a JSON string, as a server sends it that encodes twice."""
    try:
        inner, end = _decode(text)
    except (ValueError, RecursionError):
        return None
    value = _whole(inner) if end == len(text) and isinstance(inner, str) else None
    return value if value is not None and _telling(value) else None


def _without_bom(line: bytes) -> bytes:
    """Without the byte order mark, or several: a proxy may add one to the server's."""
    while line.startswith(_BOM):
        line = line.removeprefix(_BOM)
    return line


def parse_object(text: str) -> Chunk | None:
    """The text as one JSON object, also where a list is around it (Google's errors), or None."""
    return _whole(text.strip())


def parse_objects(text: str) -> list[Chunk]:
    """The JSON objects at the first line of the text that begins with one or with a list; none where it is cut off."""
    starts = (0 if text[:1] == sign else text.find(f"\n{sign}") + 1 or len(text) for sign in "{[")
    return _objects(text[min(starts) :])[0]


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
