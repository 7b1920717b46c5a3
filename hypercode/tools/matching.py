"""Where literal texts stand in a file's bytes, and the file with them replaced.  Pure.

A file is looked at without its byte-order mark and with every CRLF as one newline; what is found is mapped back to the
original bytes, so that nothing outside a match can change.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from hypercode.errors import ToolError

__all__ = ["Edit", "Text", "apply"]

_BOM = b"\xef\xbb\xbf"
_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement: `old` occurs exactly once in the file, or `replace_all` is true."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012  (read by pydantic; not a field)

    old: str
    new: str
    replace_all: bool = False


class Text:
    """A file's bytes as edits see them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.start = len(_BOM) if data.startswith(_BOM) else 0

    @cached_property
    def view(self) -> bytes:
        """The bytes without byte-order mark, CRLF as LF."""
        body = self.data[self.start :]
        return body.replace(b"\r\n", b"\n") if b"\r\n" in body else body

    @cached_property
    def shown(self) -> str:
        """The view as text, for people and models; bytes that are not UTF-8 are replaced."""
        return self.view.decode("utf-8", "replace")

    @cached_property
    def valid(self) -> bool:
        """Whether the file is UTF-8."""
        try:
            self.data.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True

    @cached_property
    def _pairs(self) -> list[int]:
        """Where in the view the newlines stand that are CRLF in the file."""
        return [m.start() - self.start - i for i, m in enumerate(re.finditer(rb"\r\n", self.data))]

    def original(self, position: int) -> int:
        """The offset in the file of a position in the view."""
        return self.start + position + bisect_left(self._pairs, position)

    def line(self, position: int) -> int:
        """The number, from 1, of the line that holds a position in the view."""
        return self.view.count(b"\n", 0, position) + 1

    def ending(self, start: int, end: int) -> bytes:
        """The line ending for text that replaces this part of the view; empty if the file has none to go by."""
        inside = self.view.count(b"\n", start, end)
        crlf = bisect_left(self._pairs, end) - bisect_left(self._pairs, start)
        if inside and crlf in (0, inside):
            return b"\r\n" if crlf else b"\n"
        return self._majority

    @cached_property
    def _majority(self) -> bytes:
        crlf = len(self._pairs)
        lf = self.view.count(b"\n") - crlf
        if crlf == lf:
            first = self.view.find(b"\n")
            return b"" if first < 0 else b"\r\n" if self._pairs[0] == first else b"\n"
        return b"\r\n" if crlf > lf else b"\n"


@dataclass(frozen=True, slots=True)
class _Span:
    """A part of the view, the bytes that take its place, and the number of the edit that says so."""

    start: int
    end: int
    new: bytes
    edit: int


def apply(
    data: bytes, edits: Sequence[Edit], explain: Callable[[Text, str, Sequence[Edit]], str]
) -> tuple[bytes, list[int]]:
    """The file with all edits made, and the numbers of the lines (in the old file) where something was replaced.

    All edits match the original text.  `explain(text, old, edits)` says what a text that was not found differs in.

    Raises ToolError `bad_arguments`, `empty_old`, `no_change`, `not_found`, `ambiguous`, `overlap`, `encoding`; with
    several edits its text begins with the number of the one that failed.
    """
    if not edits:
        raise ToolError("bad_arguments", "edits is empty; give at least one {old, new}")
    text = Text(data)
    spans: list[_Span] = []
    for number, edit in enumerate(edits, 1):
        where = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        spans += _spans(text, edit, number, where, lambda t, old: explain(t, old, edits))
    spans.sort(key=lambda span: (span.start, span.end))
    for one, two in pairwise(spans):
        if two.start < one.end:
            line = text.line(two.start)
            raise ToolError(
                "overlap",
                f"edits {min(one.edit, two.edit)} and {max(one.edit, two.edit)} change the same text in line {line}; "
                "make one edit of them. Nothing was written.",
            )
    return _written(text, spans), _lines(text, spans)


def _spans(text: Text, edit: Edit, number: int, where: str, explain: Callable[[Text, str], str]) -> list[_Span]:
    old, new = _encoded(edit.old, f"{where}old"), _encoded(edit.new, f"{where}new")
    if text.start and old.startswith(_BOM):
        old, new = old.removeprefix(_BOM), new.removeprefix(_BOM)
    old, plain = old.replace(b"\r\n", b"\n"), new.replace(b"\r\n", b"\n")
    if not old:
        raise ToolError(
            "empty_old",
            f"{where}old is empty. Give the text to be replaced; to fill or overwrite a whole file use write.",
        )
    if old == plain:
        raise ToolError("no_change", f"{where}old and new are the same; there is nothing to do.")
    if not text.valid and not new.isascii():
        raise ToolError(
            "encoding",
            f"{where}the file is not UTF-8, so only ASCII text can be put into it; convert it first (bash: iconv).",
        )
    starts = _found(text, old, edit.replace_all, where)
    if not starts:
        if not text.valid and not old.isascii():
            raise ToolError("encoding", f"{where}the file is not UTF-8, so old can only be found if it is plain ASCII.")
        raise ToolError("not_found", f"{where}old was not found. {explain(text, edit.old)}")
    return [_Span(s, s + len(old), _ended(text, s, s + len(old), new, plain), number) for s in starts]


def _encoded(value: str, name: str) -> bytes:
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(
            "encoding",
            f"{name} holds U+{ord(value[error.start]):04X}, half of a surrogate pair, which UTF-8 cannot hold.",
        ) from None


def _found(text: Text, old: bytes, every: bool, where: str) -> list[int]:
    """Where `old` starts in the view: everywhere without overlap, or the one place.  Raises `ambiguous`."""
    if every:
        starts, at = [], 0
        for piece in text.view.split(old)[:-1]:
            starts.append(at + len(piece))
            at = starts[-1] + len(old)
        return starts
    starts = []
    at = text.view.find(old)
    most = max(2, min(_COUNTED, 50_000_000 // len(old)))
    while at >= 0 and len(starts) < most:
        starts.append(at)
        at = text.view.find(old, at + 1)
    if len(starts) > 1:
        more = "at least " if at >= 0 else ""
        lines = list(dict.fromkeys(map(text.line, starts[:8])))
        named = ", ".join(map(str, lines)) + (", …" if text.line(starts[-1]) > lines[-1] else "")
        raise ToolError(
            "ambiguous",
            f"{where}old occurs {more}{len(starts)} times (line {named}). Add lines around it until it is unique, or set "
            "replace_all to change every one.",
        )
    return starts


def _ended(text: Text, start: int, end: int, verbatim: bytes, plain: bytes) -> bytes:
    ending = text.ending(start, end)
    return plain.replace(b"\n", ending) if ending else verbatim


def _written(text: Text, spans: Sequence[_Span]) -> bytes:
    pieces, done = [], 0
    for span in spans:
        pieces += [text.data[done : text.original(span.start)], span.new]
        done = text.original(span.end)
    return b"".join([*pieces, text.data[done:]])


def _lines(text: Text, spans: Sequence[_Span]) -> list[int]:
    lines, at, number = [], 0, 1
    for span in spans:
        number += text.view.count(b"\n", at, span.start)
        at = span.start
        lines.append(number)
    return lines
