"""The tool `write`: a whole file, new or overwritten."""

from __future__ import annotations

import asyncio
import codecs

from hypercode.errors import ToolError
from hypercode.safety.facts import is_utf16, looks_binary
from hypercode.safety.files import Body, digest
from hypercode.tools.base import Preview, ToolContext, tool
from hypercode.tools.diffs import unified

__all__ = ["write"]


async def _preview(ctx: ToolContext, path: str, content: str) -> Preview:
    return await asyncio.to_thread(_diff, ctx, path, content)


@tool("edit", preview=_preview)
async def write(ctx: ToolContext, path: str, content: str) -> str:
    """Make a file, or overwrite one that you have read, with exactly this content; missing folders are made.

    To change parts of a file use edit. Line endings are written as they are given.
    """
    return await asyncio.to_thread(_write, ctx, path, content)


def _diff(ctx: ToolContext, path: str, content: str) -> Preview:
    with ctx.files.changing:  # another call may have written the file and not yet noted that it is known
        try:
            body = ctx.files.read(path, op="write", peek=True)
        except ToolError as error:
            if error.kind != "missing_file":
                raise
            body = None
        after = _checked(ctx, path, body, content)
    if body is not None and body.data and not after:
        confirm = f"an empty write: {path} has {_size(body.data)} and would have 0 bytes"
        return Preview(unified(body.data, after, path), confirm=confirm)
    return Preview(unified(body.data if body else b"", after, path))


def _write(ctx: ToolContext, path: str, content: str) -> str:
    with ctx.files.changing:
        change = ctx.files.change("write", path, lambda body: _checked(ctx, path, body, content))
        ctx.ledger.saw(change.path, digest(change.after))
    verb = "Made" if change.before is None else "Overwrote"
    return ". ".join(
        [f"{verb} {path}: {_size(change.after)}", *_lost(change.before or b"", change.after), *change.notes]
    )


def _checked(ctx: ToolContext, path: str, body: Body | None, content: str) -> bytes:
    """The content as bytes.  Raises ToolError where it must not be written over what is there."""
    try:
        after = content.encode("utf-8")
    except UnicodeEncodeError as error:
        char = f"U+{ord(content[error.start]):04X}"
        raise ToolError(
            "encoding", f"content holds {char}, half of a surrogate pair, which UTF-8 cannot hold."
        ) from None
    if body is None:
        return after
    known = ctx.ledger.known(body.path)
    if known is None and (is_utf16(body.data[:8192]) or looks_binary(body.data[:8192])):
        raise ToolError(
            "binary", f"{path} exists and is no text; write does not overwrite it. Move it away if you must."
        )
    if known is None:
        raise ToolError("not_read", f"{path} exists and was not read yet; read it before you overwrite it.")
    if known != digest(body.data):
        raise ToolError("stale", f"{path} was changed by somebody else since you last read it; read it again.")
    if body.data == after:
        raise ToolError("no_change", f"{path} already has exactly this content; nothing was written.")
    return after


def _size(data: bytes) -> str:
    lines = data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))
    return f"{lines} {'line' if lines == 1 else 'lines'}, {len(data)} bytes"


def _lost(before: bytes, after: bytes) -> list[str]:
    """What an overwritten file had that models do not see and so leave out."""
    notes = []
    if before.startswith(codecs.BOM_UTF8) and not after.startswith(codecs.BOM_UTF8):
        notes.append("The byte-order mark is gone")
    if b"\r\n" in before and b"\r\n" not in after and b"\n" in after:
        notes.append("The line endings were CRLF and are LF now")
    return notes
