"""Run ripgrep, and match paths against globs the way it does."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from hypercode.errors import ToolError
from hypercode.process import Finished, run_group
from hypercode.tools.ignore_files import stuck_above, stuck_below

__all__ = [
    "GLOB_MAGIC",
    "UNFINISHED",
    "compile_glob",
    "passable",
    "readable",
    "ripgrep",
    "run",
    "shown_from",
    "walk_options",
]

LONGEST = 60.0
"""Seconds after which a search is ended and shows what it has."""
UNFINISHED = "The search was ended after a minute and had found nothing by then; narrow the path or the glob."
_PATIENCE = 0.3
"""Seconds after which it is looked whether a search is stuck."""

GLOB_MAGIC = re.compile(r"[*?\[{]")


def ripgrep(environment: Mapping[str, str]) -> str:
    """The path of `rg`: the one installed beside this Python, else the first in an absolute folder of PATH.

    Raises ToolError `no_ripgrep`.
    """
    folders = [str(Path(sys.executable).parent), *environment.get("PATH", os.defpath).split(os.pathsep)]
    for folder in folders:
        program = f"{folder}/rg"
        if folder.startswith("/") and os.access(program, os.X_OK):
            return program
    raise ToolError(
        "no_ripgrep",
        "ripgrep (rg) is not installed here, so grep and glob do not work. "
        "`pip install ripgrep` or the system's package manager brings it.",
    )


def walk_options(hidden: Iterable[str]) -> list[str]:
    """The options with which rg walks a tree: hidden files too, ignore files honoured, secrets never, links never followed."""
    options = ["--no-config", "--no-messages", "--hidden", "--no-require-git", "--no-follow", "--color=never"]
    return options + [f"--iglob=!{pattern}" for pattern in _joined(hidden)]


def _joined(patterns: Iterable[str]) -> list[str]:
    """The same globs in a few large ones: rg needs much longer for hundreds of small ones."""
    names: list[str] = []
    places: list[str] = []
    alone: list[str] = []
    for pattern in patterns:
        body = pattern.removeprefix("**/")
        if re.search(r"[{},\[\]\\!]", body) or ("/" in pattern and body == pattern):
            alone.append(pattern)
        else:
            (names if body == pattern else places).append(body)
    joined = [f"{before}{{{','.join(group)}}}" for before, group in (("", names), ("**/", places)) if group]
    return [*joined, *alone]


def passable(**arguments: str) -> None:
    """Raise ToolError `bad_arguments` for text that cannot be an argument or a path of a program."""
    for name, text in arguments.items():
        try:
            bad = b"\0" in os.fsencode(text)
        except UnicodeEncodeError:
            bad = True
        if bad:
            raise ToolError("bad_arguments", f"{name} holds a NUL character or text that is not valid Unicode.")


def shown_from(folder: Path, workspace: Path) -> str:
    """What stands before a path below the folder: nothing for the workspace itself, the whole path outside it."""
    if folder == workspace:
        return ""
    return f"{folder.relative_to(workspace) if folder.is_relative_to(workspace) else folder}/"


def readable(name: str) -> str:
    """A file name as text; bytes that are no UTF-8 become replacement characters."""
    return os.fsencode(name).decode("utf-8", "replace")


async def run(
    options: Sequence[str], cwd: Path, environment: Mapping[str, str], take: Callable[[bytes], bool]
) -> Finished:
    """Run rg and hand on its output piece by piece until `take` answers False.

    Exit code 0: matches, 1: none, 2: an error, which is then what it printed.  Raises ToolError `io` where it cannot be
    started, or would be stuck.
    """
    argv = [ripgrep(environment), *options]
    _go_on(await asyncio.to_thread(stuck_above, cwd))
    # rg starts no further process, so nothing has to look for what it leaves behind.
    search = asyncio.ensure_future(
        run_group(argv, cwd=cwd, env=environment, timeout=LONGEST, take=take, limit_bytes=4096, contained=True)
    )
    ended = threading.Event()
    try:
        if not (await asyncio.wait([search], timeout=_PATIENCE))[0]:
            looked = asyncio.ensure_future(asyncio.to_thread(stuck_below, cwd, ended))
            await asyncio.wait([search, looked], return_when=asyncio.FIRST_COMPLETED)
            if not search.done():
                _go_on(looked.result())
        return await search
    except OSError as error:
        raise ToolError("io", f"the search could not be started: {error.strerror or error}.") from None
    finally:
        ended.set()
        if not search.done():
            search.cancel()
            await asyncio.wait([search])


def _go_on(place: str | None) -> None:
    if place is not None:
        raise ToolError(
            "io",
            f"the search cannot be finished: {readable(place)!r} is a pipe, a device or far too large, and ripgrep would wait "
            "for its end to know what to leave out. Remove it or put a plain file in its place, then search again.",
        )


@lru_cache(maxsize=64)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """The regular expression of a glob over a path with `/`: `*` and `?` stay within a name, `**` crosses folders.

    `[a-z]`, `[!a]`, `{one,two}` and `\\` work as in a shell; brackets also match themselves, because names like `[id].tsx`
    are common.  Raises ToolError `bad_arguments` for one with unbalanced braces.
    """
    expression = ""
    depth = position = 0
    while token := _TOKEN.match(pattern, position):
        position = token.end()
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        expression += _translated(token, inside=depth > 0)
        if depth < 0:
            break
    try:
        if depth == 0:
            return re.compile(expression + r"\Z", re.DOTALL)
    except re.error:
        pass
    raise ToolError("bad_arguments", f"{pattern!r} is not a valid glob: check its braces and brackets.")


_TOKEN = re.compile(
    r"(?P<folders>(?<![^/])\*\*/+)|(?P<rest>(?<![^/])\*\*\Z)|(?P<star>\*+)|(?P<any>\?)"
    r"|(?P<set>\[[!^]?\]?[^\]/]*\])|(?P<open>\{)|(?P<close>\})|(?P<or>,)|\\(?P<escaped>.)|(?P<plain>.)",
    re.DOTALL,
)
_EXPRESSIONS = {
    "folders": "(?:[^/]+/)*",
    "rest": ".+",
    "star": "[^/]*",
    "any": "[^/]",
    "open": "(?:",
    "close": ")",
}


def _translated(token: re.Match[str], inside: bool) -> str:
    kind = token.lastgroup or "plain"
    if kind in _EXPRESSIONS:
        return _EXPRESSIONS[kind]
    if kind == "or" and inside:
        return "|"
    if kind == "set":
        negated = token[0][1] in "!^"
        members = re.sub(r"([\\\[\]^&~|])", r"\\\1", token[0][2 if negated else 1 : -1])
        return f"(?:[{'^/' if negated else ''}{members}]|{re.escape(token[0])})"
    return re.escape(token[kind])
