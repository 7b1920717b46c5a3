"""The tool `read`: a window of a text file, with line numbers."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Iterator
from hashlib import sha256

from hypercode.errors import ToolError
from hypercode.safety.facts import MAX_READ_BYTES, is_utf16, looks_binary
from hypercode.safety.files import chunks
from hypercode.tools.base import MAX_RESULT_CHARACTERS, MAX_RESULT_LINES, ToolContext, tool

__all__ = ["read"]

_MAX_LINE = 2_000
_MAX_LINES = MAX_RESULT_LINES - 8  # leaves room for the notes, so that the result is not cut once more
_MAX_CHARACTERS = MAX_RESULT_CHARACTERS - 1_000


@tool("read")
async def read(ctx: ToolContext, path: str, offset: int = 1, limit: int = 2000) -> str:
    """Show a text file, each line after its number and a tab. offset is the first line (counted from 1), limit how many.

    Long files come in parts and say how to go on; a line is cut after 2000 characters. The numbers are not part of the
    file: leave them out of edits. Read a file before you edit or overwrite it. For folders use ls.
    """
    if offset < 1 or limit < 1:
        raise ToolError("bad_arguments", "offset and limit must be at least 1; lines are counted from 1.")
    return await asyncio.to_thread(_read, ctx, path, offset, limit)


def _read(ctx: ToolContext, path: str, offset: int, limit: int) -> str:
    window = _Window(offset, min(limit, _MAX_LINES))
    with ctx.files.open("read", path) as node:
        for piece in chunks(node.fd, MAX_READ_BYTES):
            if not window.size:
                _refuse_binary(piece[:8192], path)
            window.feed(piece)
        window.close()
    if window.size and offset > window.total:
        raise ToolError("bad_arguments", f"offset {offset} is after the end: {path} has {window.total} lines.")
    ctx.ledger.saw(node.path, window.content.digest())
    return "\n".join([*window.lines, *_notes(window)])


def _refuse_binary(head: bytes, path: str) -> None:
    if is_utf16(head):
        raise ToolError("encoding", f"{path} is UTF-16, not UTF-8; convert it first (bash: iconv).")
    if looks_binary(head):
        raise ToolError("binary", f"{path} is not text.")


def _notes(window: _Window) -> Iterator[str]:
    if not window.size:
        yield "[the file is empty]"
        return
    last = window.first + len(window.lines) - 1
    if last < window.total:
        yield f"[lines {window.first}-{last} of {window.total}; go on with offset={last + 1}]"
    elif window.first > 1:
        yield f"[lines {window.first}-{last} of {window.total}: the end of the file]"
    if window.cut:
        numbers = ", ".join(map(str, window.cut[:10])) + (", …" if len(window.cut) > 10 else "")
        yield f"[cut after {_MAX_LINE} characters: line {numbers}; to see more use bash, for example cut -c or grep -o]"
    if window.invalid:
        yield "[not UTF-8: other bytes are shown as \ufffd and stay as they are when other places are edited]"
    if last == window.total and window.partial:
        yield "[no newline at the end of the file]"


class _Window:
    """Takes a file piece by piece, keeps the lines asked for, and counts and hashes all of it in little memory."""

    def __init__(self, first: int, most: int) -> None:
        self.first, self._most = first, most
        self.lines: list[str] = []
        self.cut: list[int] = []
        self.content = sha256()
        self.size = 0
        self.newlines = 0
        self.partial = False
        self.invalid = False
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._line = bytearray()
        self._length = 0
        self._characters = 0
        self._full = False

    @property
    def total(self) -> int:
        """How many lines there are; text after the last newline is one."""
        return self.newlines + self.partial

    def feed(self, piece: bytes) -> None:
        """Take the next piece of the file."""
        self.content.update(piece)
        self._validate(piece)
        at = len(codecs.BOM_UTF8) if not self.size and piece.startswith(codecs.BOM_UTF8) else 0
        self.size += len(piece)
        self.partial = not piece.endswith(b"\n")
        while at < len(piece):
            at = self._skip(piece, at) if self._full or self.newlines + 1 < self.first else self._take(piece, at)

    def close(self) -> None:
        """The file is at its end."""
        self._validate(b"", final=True)
        if self.partial and not self._full and self.newlines + 1 >= self.first:
            self._keep()

    def _skip(self, piece: bytes, at: int) -> int:
        """Pass over lines that are not shown; where the first one to be shown begins, or the end of the piece."""
        left = piece.count(b"\n", at)
        if self._full or left < self.first - self.newlines - 1:
            self.newlines += left
            return len(piece)
        while self.newlines + 1 < self.first:
            at = piece.index(b"\n", at) + 1
            self.newlines += 1
        return at

    def _take(self, piece: bytes, at: int) -> int:
        newline = piece.find(b"\n", at)
        end = newline if newline >= 0 else len(piece)
        self._line += piece[at : min(end, at + max(4 * _MAX_LINE + 4 - len(self._line), 0))]
        self._length += end - at
        if newline < 0:
            return end
        self._keep()
        self.newlines += 1
        return end + 1

    def _keep(self) -> None:
        """Add the line that is complete now, unless there is no room for it."""
        number = self.newlines + 1
        whole = self._length == len(self._line)
        text = bytes(self._line.removesuffix(b"\r") if whole else self._line).decode("utf-8", "replace")
        cut = not whole or len(text) > _MAX_LINE
        shown = f"{number:>6}\t{text[:_MAX_LINE]}" + (f"… [{self._length} bytes]" if cut else "")
        self._line.clear()
        self._length = 0
        self._characters += len(shown) + 1
        if self.lines and self._characters > _MAX_CHARACTERS:
            self._full = True
            return
        self.lines.append(shown)
        if cut:
            self.cut.append(number)
        self._full = len(self.lines) >= self._most

    def _validate(self, piece: bytes, *, final: bool = False) -> None:
        if not self.invalid:
            try:
                self._decoder.decode(piece, final)
            except UnicodeDecodeError:
                self.invalid = True
