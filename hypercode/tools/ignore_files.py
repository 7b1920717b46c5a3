"""Files that ripgrep reads for what to leave out, and in which it would be stuck: named pipes, devices, files of gigabytes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from hypercode.safety.bounded_read import is_plain, start_of

__all__ = ["stuck_above", "stuck_below"]

_MOST_BYTES = 10_000_000
_MOST_FOLDERS = 100_000
_NAMES = frozenset((".gitignore", ".ignore", ".rgignore", ".git"))


def stuck_above(folder: Path) -> str | None:
    """The first such file in a folder or those above it, all of which are read before a search begins; None if there is none."""
    return next((place for path in (folder, *folder.parents) for place in _stuck(str(path).rstrip("/"), _NAMES)), None)


def stuck_below(folder: Path, stop: threading.Event) -> str | None:
    """The first such file below a folder; None if there is none, or it was told to stop.  Looks at 100 000 folders at most."""
    waiting = [str(folder).rstrip("/")]
    for _ in range(_MOST_FOLDERS):
        if not waiting or stop.is_set():
            return None
        path = waiting.pop()
        names: list[str] = []
        try:
            with os.scandir(path or "/") as entries:
                for entry in entries:
                    if entry.name in _NAMES:
                        names.append(entry.name)
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{path}/{entry.name}")
        except OSError:
            continue
        for place in _stuck(path, names):
            return place
    return None


def _stuck(folder: str, names: Iterable[str]) -> Iterator[str]:
    places = [f"{folder}/{name}" for name in names]
    for git in [place for place in places if place.endswith("/.git")]:
        places += _of_git(git)
    yield from (place for place in places if not is_plain(place, _MOST_BYTES))


def _of_git(git: str) -> list[str]:
    """What is read of a repository; a `.git` file and a `commondir` lead further."""
    if os.path.isdir(git):
        return [f"{git}/info/exclude"]
    try:
        target = os.path.join(os.path.dirname(git), _line(git).removeprefix("gitdir: "))
        common = f"{target}/commondir"
        return (
            [common, os.path.join(target, _line(common), "info/exclude")] if is_plain(common, _MOST_BYTES) else [common]
        )
    except OSError:
        return []


def _line(path: str) -> str:
    return os.fsdecode(start_of(path, 8_192).partition(b"\n")[0].partition(b"\0")[0])
