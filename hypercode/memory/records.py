"""The lines of a journal: one JSON object each, with a checksum, and what can still be read of a damaged file.

A record is `{"type", "time", "seq", …, "sum"}`: seconds since the epoch, its number in the session, and the CRC-32 of the
line up to the sum.  A reader keeps what it does not know.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypercode.messages import well_formed

__all__ = ["RESERVED", "Record", "Scan", "decode", "encode", "scan"]

Record = dict[str, Any]

RESERVED = frozenset({"type", "time", "seq", "sum"})
"""Names that a record's own fields cannot have."""

_SUM = b',"sum":"'
_SUMMED = re.compile(rb',"sum":"([0-9a-f]{8})"\}')
_START = b'{"type":'
_STARTS = 64  # how many beginnings are tried for one end

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str).encode


@dataclass(slots=True)
class Scan:
    """What is in a journal.

    `damaged` are the lines, or parts of them, that could not be read; `torn` says that the last line has no end; `changed`
    counts records that can be read but do not match their checksum.  `places` has, for each of `damaged`, how many records
    were read before it.
    """

    records: list[Record] = field(default_factory=list)
    damaged: list[bytes] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    torn: bool = False
    nuls: int = 0
    repeated: int = 0
    changed: int = 0

    def spoil(self, piece: bytes) -> None:
        """Note what could not be read; blanks and NUL bytes are nothing."""
        if piece := piece.strip(b"\0 \t\r"):
            self.damaged.append(piece)
            self.places.append(len(self.records))

    def missing(self) -> list[range]:
        """The numbers of which there is no record, though there is one of a later number, and nothing damaged in its place.

        A reply that replaces pieces of it that never reached the file says which they were (`instead_of`).
        """
        known = {number for record in self.records for number in _numbers(record)}
        gaps: list[range] = []
        last = 0
        for number in sorted(known):
            if number > last + 1:
                gaps.append(range(last + 1, number))
            last = number
        if not gaps or not self.places:
            return gaps
        spoiled = [self._around(place) for place in self.places]
        return [
            gap for gap in gaps if len(gap) > sum(first < gap.start and gap.stop <= then for first, then in spoiled)
        ]

    def _around(self, place: int) -> tuple[int, int]:
        """The numbers of the records before and behind a place."""
        before = next((r["seq"] for r in reversed(self.records[:place]) if _is_number(r.get("seq"))), 0)
        behind = next((r["seq"] for r in self.records[place:] if _is_number(r.get("seq"))), 0)
        return before, behind


def _numbers(record: Record) -> Iterator[int]:
    replaced = record.get("instead_of")
    for number in (record.get("seq"), *(replaced if isinstance(replaced, list) else ())):
        if _is_number(number):
            yield number


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def encode(record: Record) -> bytes:
    """The record as a line: valid JSON in UTF-8, whatever its texts hold."""
    try:
        text = _encode(record)
    except (ValueError, TypeError, RecursionError):
        text = _encode({key: _encodable(value) for key, value in record.items()})
    body = well_formed(text).encode()[:-1]
    return b'%s%s%08x"}\n' % (body, _SUM, zlib.crc32(body))


def _encodable(value: Any) -> Any:
    """The value as JSON can hold it: NaN and infinities become null."""
    try:
        return json.loads(json.dumps(value, default=str, skipkeys=True), parse_constant=lambda _: None)
    except (ValueError, TypeError, RecursionError):
        return f"[not kept: {type(value).__name__} that is no JSON]"


def decode(line: bytes) -> Record | None:
    """The record of a line that matches its checksum, else None."""
    body, mark, tail = line.rpartition(_SUM)
    if not mark or tail != b'%08x"}' % zlib.crc32(body):
        return None
    return _object(line)


def scan(data: bytes) -> Scan:
    """Everything that can be read of a journal, in its order, each record once."""
    result = Scan(torn=bool(data) and not data.endswith(b"\n"), nuls=data.count(b"\0"))
    seen: set[tuple[Any, Any]] = set()
    for raw in data.split(b"\n"):
        line = raw.strip(b"\0 \t\r")
        if not line:
            continue
        record = decode(line)
        for one in (record,) if record is not None else _salvage(line, result):
            mark = (one.get("seq"), one.get("sum"))
            if mark in seen and None not in mark:
                result.repeated += 1
                continue
            seen.add(mark)
            result.records.append(one)
    return result


def _object(line: bytes) -> Record | None:
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("type"), str) else None


def _salvage(line: bytes, result: Scan) -> Iterator[Record]:
    """The records of a line that is not simply one of ours."""
    whole = _object(line)
    if whole is not None:  # a field was added, a letter changed: better read than lost
        result.changed += "sum" in whole
        yield whole
        return
    done = 0
    for end in _SUMMED.finditer(line):
        start = line.find(_START, done, end.start())
        for _ in range(_STARTS):
            if start < 0:
                break
            record = decode(line[start : end.end()])
            if record is not None:
                result.spoil(line[done:start])
                done = end.end()
                yield record
                break
            start = line.find(_START, start + 1, end.start())
    result.spoil(line[done:])
