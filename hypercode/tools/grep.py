"""Search the content of files."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path

from hypercode.errors import ToolError
from hypercode.safety.facts import holds_nul
from hypercode.safety.files import failure
from hypercode.safety.paths import FileGuard
from hypercode.tools.base import ToolContext, tool
from hypercode.tools.ripgrep import UNFINISHED, compile_glob, passable, readable, run, shown_from, walk_options

__all__ = ["grep"]

SHOWN = 200
"""Matching lines that the model gets."""
COUNTED = 5_000
"""Matching lines after which the search ends."""
COLUMNS = 500
"""Bytes of a line that are shown."""


@tool("read")
async def grep(
    ctx: ToolContext, pattern: str, path: str = ".", glob: str | None = None, ignore_case: bool = False
) -> str:
    """Search file contents with ripgrep: a regular expression in Rust syntax (escape literal brackets and braces).

    path is a folder or a file. glob limits the files: "*.py" at any depth, "src/**/*.ts" from the folder, "!*.min.js" to leave
    out. Returns path:line:text, sorted by path. Binary files, secrets and, unless path names their folder, files ignored by git
    are not searched.
    """
    passable(pattern=pattern, path=path, glob=glob or "")
    if not pattern:
        raise ToolError("bad_arguments", "pattern is empty.")
    root = ctx.files.search_root("grep", path)
    folder, target = (root, "./") if root.is_dir() else (root.parent, f"./{root.name}")
    if target != "./":
        await asyncio.to_thread(_refuse_binary, root, path)
    chosen, wanted = _chosen(glob, folder, ctx.workspace)
    found = _Found(wanted)
    options = [
        *walk_options(ctx.files.hidden_globs),
        *chosen,
        "--line-number",
        "--with-filename",
        "--no-heading",
        "--null",
    ]
    options += [f"--max-columns={COLUMNS}", "--max-columns-preview", *(["--ignore-case"] if ignore_case else [])]
    finished = await run([*options, f"--regexp={pattern}", "--", target], folder, ctx.environment, found.take)
    if not found.lines and finished.returncode == 2:
        raise ToolError("bad_arguments", _reason(finished.output))
    withheld = await asyncio.to_thread(found.leave_out, ctx.files, folder, root)
    shown = sorted(found.lines)[:SHOWN]
    place = shown_from(folder, ctx.workspace)
    notes = _notes(len(found.lines), finished.timed_out, withheld, found.ended)
    if not shown and finished.timed_out and not withheld:
        return UNFINISHED
    if not shown:
        return "\n".join([f"No matches for {pattern!r} in {path!r}.", *notes])
    return "\n".join([*(f"{place}{readable(name)}:{number}:{text}" for name, number, text in shown), *notes])


def _refuse_binary(file: Path, path: str) -> None:
    """Of a file that is named rg would say that there is no match, or read all of its holes."""
    try:
        binary = holds_nul(file)
    except OSError as error:
        raise failure(error, path) from None
    if binary:
        raise ToolError("binary", f"{path} is not text (it holds NUL bytes); grep searches text only.")


def _chosen(glob: str | None, folder: Path, workspace: Path) -> tuple[list[str], Callable[[str], bool]]:
    """The options that make rg search the files of a glob, and a test for the paths where options cannot do it.

    Not rg's own `--glob`: that one overrides ignore files, so that `*.log` would search ignored logs.
    """
    if not glob:
        return [], lambda path: True
    negated, body = glob.startswith("!"), glob.removeprefix("!").removeprefix("./")
    expression = compile_glob(body)
    if not re.search(r"[/:\[]", body):
        return [f"--type-add=wanted:{body}", "--type-not=wanted" if negated else "--type=wanted"], lambda path: True
    if "/" not in body:
        return [], lambda path: bool(expression.match(path.rpartition("/")[2])) is not negated
    places = [shown_from(folder, workspace), "", f"{folder}/"]
    return [], lambda path: any(expression.match(place + path) for place in places) is not negated


_RECORD = re.compile(rb"([^\0]+)\0(\d+):([^\n]*)\n")
_BINARY = re.compile(rb"\A(?:[^\n]*: (?:WARNING: stopped searching binary file|binary file matches) [^\n]*\n)+")


class _Found:
    """Matching lines as rg prints them: path, NUL, number, colon, text.  A path may hold a line feed."""

    def __init__(self, wanted: Callable[[str], bool]) -> None:
        self.lines: list[tuple[str, int, str]] = []
        self.ended = False
        """Whether there were so many that the search was ended."""
        self._wanted = wanted
        self._rest = b""

    def take(self, data: bytes) -> bool:
        data = self._rest + data
        end = 0
        for record in _RECORD.finditer(data):
            end = record.end()
            path = os.fsdecode(_BINARY.sub(b"", record[1]).removeprefix(b"./"))
            if self._wanted(path):
                self.lines.append((path, int(record[2]), record[3].decode("utf-8", "replace").rstrip("\r")))
        self._rest = data[end:]
        self.ended = len(self.lines) >= COUNTED
        return not self.ended

    def leave_out(self, guard: FileGuard, folder: Path, root: Path) -> int:
        """Drop the lines of files that must not be shown; how many of these are other names of files with secrets.

        Nothing is said of the others: they are not searched, and what is said would tell what they hold.  The file that was
        asked for by its name has been decided about.
        """
        paths = {line[0]: folder / line[0] for line in self.lines}
        linked = guard.withheld(paths.values())
        dropped = {
            name for name, path in paths.items() if path in linked or (path != root and guard.hidden(path, root))
        }
        self.lines = [line for line in self.lines if line[0] not in dropped]
        return len(linked)


def _reason(output: str) -> str:
    reason = output.strip().removeprefix("rg: ")
    if reason.startswith("regex parse error"):
        return f"the pattern is not a valid regular expression; escape what is meant literally.\n{reason}"
    return reason or "ripgrep gave no reason."


def _notes(matches: int, timed_out: bool, withheld: int, ended: bool) -> list[str]:
    notes = []
    if withheld:
        files = "1 file is" if withheld == 1 else f"{withheld} files are"
        notes.append(f"[{files} left out: another name (hard link) of a file with passwords or keys]")
    if matches > SHOWN:
        total = f"more than {COUNTED:,}" if ended else f"{matches:,}"
        notes.append(f"[{SHOWN} of {total} matching lines; narrow the pattern, the path or the glob to see the others]")
    if timed_out:
        notes.append("[the search was ended after a minute; there may be more]")
    return notes
