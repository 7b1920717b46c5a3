"""The tool `ls`: what is in one folder."""

from __future__ import annotations

import asyncio
import os
import stat
from itertools import islice

from hypercode.tools.base import ToolContext, tool

__all__ = ["ls"]

_SHOWN = 1_000
_LOOKED_AT = 50_000


@tool("read")
async def ls(ctx: ToolContext, path: str = ".") -> str:
    """List one folder: sub-folders first, with a slash, then files with their size in bytes, links with where they lead.
    Hidden names are included. To look through sub-folders use glob."""
    return await asyncio.to_thread(_ls, ctx, path)


def _ls(ctx: ToolContext, path: str) -> str:
    with ctx.files.open("ls", path, folder=True) as node:
        with os.scandir(node.fd) as found:
            names = [(not entry.is_dir(follow_symlinks=False), entry.name) for entry in islice(found, _LOOKED_AT)]
        names.sort()
        lines = [_line(node.fd, name) for _, name in names[:_SHOWN]]
    if not names:
        return "[the folder is empty]"
    if len(names) == _LOOKED_AT:
        lines.append(f"[{_SHOWN} of at least {_LOOKED_AT} names are shown; use glob with a pattern]")
    elif len(names) > _SHOWN:
        lines.append(f"[{_SHOWN} of {len(names)} names are shown; use glob with a pattern]")
    return "\n".join(lines)


def _line(folder: int, name: str) -> str:
    shown = _visible(name)
    try:
        status = os.lstat(name, dir_fd=folder)
        if stat.S_ISLNK(status.st_mode):
            return f"{shown} -> {_visible(os.readlink(name, dir_fd=folder))}"
    except OSError:
        return f"{shown}  (gone)"
    if stat.S_ISDIR(status.st_mode):
        return f"{shown}/"
    if stat.S_ISREG(status.st_mode):
        return f"{shown}  {status.st_size}"
    return f"{shown}  ({_special(status.st_mode)})"


def _special(mode: int) -> str:
    return "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"


def _visible(name: str) -> str:
    """The name on one line; one with control characters or bytes that are not UTF-8 is quoted and escaped."""
    return name if name.isprintable() else repr(name)
