"""Find files by name."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from pathlib import Path

from hypercode.errors import ToolError
from hypercode.safety.paths import FileGuard
from hypercode.tools.base import ToolContext, tool
from hypercode.tools.ripgrep import (
    GLOB_MAGIC,
    UNFINISHED,
    compile_glob,
    passable,
    readable,
    run,
    shown_from,
    walk_options,
)

__all__ = ["below", "glob"]

SHOWN = 200
"""Paths that the model gets."""


@tool("read")
async def glob(ctx: ToolContext, pattern: str, path: str = ".") -> str:
    """Find files by a glob relative to path: "*.py" in that folder, "**/*.py" at any depth, "src/**/test_*.{ts,tsx}".

    Returns paths, the most recently changed first. Secrets and, unless path names
    their folder, files ignored by git are not listed.
    """
    passable(pattern=pattern, path=path)
    whole = (
        pattern
        if path in (".", "./", "") or pattern.startswith(("/", "~/"))
        else f"{path.rstrip('/') or '/'}/{pattern}"
    )
    names = _Names(compile_glob(below(whole)))
    root = ctx.files.search_root("glob", whole)
    if not root.is_dir():
        return _nothing(pattern, path)
    options = [*walk_options(ctx.files.hidden_globs), "--files", "--null", "--", "./"]
    finished = await run(options, root, ctx.environment, names.take)
    if finished.returncode == 2 and not names.found:
        raise ToolError("io", finished.output.strip().removeprefix("rg: ") or "ripgrep gave no reason.")
    count, shown = await asyncio.to_thread(_newest_first, ctx.files, root, names.found)
    if not shown:
        return UNFINISHED if finished.timed_out and not names.found else _nothing(pattern, path)
    notes = [f"[{SHOWN} of {count:,} files; narrow the pattern to see the others]"] if count > SHOWN else []
    notes += ["[the search was ended after a minute; there may be more]"] if finished.timed_out else []
    place = shown_from(root, ctx.workspace)
    return "\n".join([*(place + readable(name) for name in shown), *notes])


def below(pattern: str) -> str:
    """The glob without the folder it starts in, its components before the first wildcard."""
    parts = pattern.split("/")
    start = next((i for i, part in enumerate(parts) if GLOB_MAGIC.search(part)), len(parts) - 1)
    return "/".join(part for part in parts[start:] if part not in ("", ".")) or "**"


class _Names:
    """The paths rg prints, NUL after each, that match."""

    def __init__(self, wanted: re.Pattern[str]) -> None:
        self.found: list[str] = []
        self._wanted = wanted
        self._rest = b""

    def take(self, data: bytes) -> bool:
        *paths, self._rest = (self._rest + data).split(b"\0")
        names = (os.fsdecode(path.removeprefix(b"./")) for path in paths)
        self.found += [name for name in names if self._wanted.match(name)]
        return True


def _newest_first(files: FileGuard, root: Path, names: list[str]) -> tuple[int, list[str]]:
    """How many of the names are still there, and those to show: the last changed first."""
    times: list[tuple[int, str]] = []
    for name in names:
        with contextlib.suppress(OSError):
            times.append((-os.lstat(f"{root}/{name}").st_mtime_ns, name))
    newest = [name for _, name in sorted(times)[:SHOWN]]
    return len(times), [name for name in newest if not files.hidden(root / name, root)]


def _nothing(pattern: str, path: str) -> str:
    hint = "" if "/" in pattern or pattern.startswith("**") else f"; '**/{pattern}' also looks in the folders below"
    return f"No files match {pattern!r} in {path!r}{hint}."
