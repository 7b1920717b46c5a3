"""The tool `edit`: literal replacements in one file, together or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hypercode.errors import ToolError
from hypercode.safety.facts import is_utf16, looks_binary
from hypercode.safety.files import Body, digest
from hypercode.tools.base import Preview, ToolContext, tool
from hypercode.tools.diffs import unified
from hypercode.tools.matching import Edit, apply

__all__ = ["Edit", "edit"]


async def _preview(ctx: ToolContext, path: str, edits: list[Edit]) -> Preview:
    return await asyncio.to_thread(_diff, ctx, path, edits)


@tool("edit", preview=_preview)
async def edit(ctx: ToolContext, path: str, edits: list[Edit]) -> str:
    """Replace text in a file that you have read: each edit puts new in the place of old.

    old is the exact text of the file, every blank included and without line numbers, and occurs exactly once: add lines
    around it until it does, or set replace_all. Line endings are kept; write them as plain newlines. All edits of a call
    match the file as it is before the call, must not overlap, and are made together or not at all: put several changes of
    one file into one call. To make a new file use write.
    """
    return await asyncio.to_thread(_edit, ctx, path, edits)


def _diff(ctx: ToolContext, path: str, edits: list[Edit]) -> Preview:
    with ctx.files.changing:  # another call may have written the file and not yet noted that it is known
        body = ctx.files.read(path, op="edit", peek=True)
        after, _ = _made(ctx, path, body, edits)
    confirm = None if after else f"the edit leaves nothing of {path}: it would have 0 bytes"
    return Preview(unified(body.data, after, path), confirm=confirm)


def _edit(ctx: ToolContext, path: str, edits: list[Edit]) -> str:
    lines: list[int] = []
    with ctx.files.changing:
        change = ctx.files.change("edit", path, _maker(ctx, path, edits, lines))
        ctx.ledger.saw(change.path, digest(change.after))
    numbers = ", ".join(map(str, lines[:10])) + (", …" if len(lines) > 10 else "")
    places = "1 place" if len(lines) == 1 else f"{len(lines)} places"
    return ". ".join([f"Edited {path}: {places} changed (line {numbers} of the old text)", *change.notes])


def _maker(ctx: ToolContext, path: str, edits: list[Edit], lines: list[int]) -> Callable[[Body | None], bytes]:
    def compute(body: Body | None) -> bytes:
        after, found = _made(ctx, path, body, edits)
        lines.extend(found)
        return after

    return compute


def _made(ctx: ToolContext, path: str, body: Body | None, edits: list[Edit]) -> tuple[bytes, list[int]]:
    """The new content and the lines that change.  Raises ToolError where the edits cannot be made."""
    if body is None:
        raise ToolError("missing_file", f"{path}: there is no such file; to make one use write.")
    head = body.data[:8192]
    if is_utf16(head):
        raise ToolError("encoding", f"{path} is UTF-16, not UTF-8; convert it first (bash: iconv).")
    if looks_binary(head):
        raise ToolError("binary", f"{path} is binary, not text.")
    known = ctx.ledger.known(body.path)
    if known is None:
        raise ToolError("not_read", f"{path} was not read yet; read it before you edit it.")
    if known != digest(body.data):
        raise ToolError("stale", f"{path} was changed by somebody else since you last read it; read it again.")
    from hypercode.tools.explain import explain  # compares texts; only where one was not found

    return apply(body.data, edits, explain)
