"""Repositories below the folders that a boxed command can write to: which there are, and which of them run something.

A repository that a command makes somewhere below is harmless until somebody calls git in it; what its settings name, or its
hooks, is run then, outside the box.  The walk keeps what it saw of each folder: one whose times are as they were is not
listed again, so that looking once more costs a few microseconds a folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path

from hypercode.safety.git_config import looks_bare, runs
from hypercode.safety.sandbox_policy import git_folders

__all__ = ["Repositories", "looking_runs"]

_MOST_FOLDERS, _MOST_TOOL_FOLDERS = 10_000, 1_000
_MOST_PLACES = 500
_SLACK = 100_000_000  # ns in which a folder may change twice without its times telling
_LAST = frozenset(("node_modules", ".venv", "venv", "target", "dist", "build", "__pycache__", ".tox", ".cache"))
"""Large folders that tools fill: of what is below them a little is looked at."""

_Folder = tuple[
    int, int, tuple[str, ...], bool, bool
]  # ctime, inode, folders in it, whether it has .git, whether it is bare


class Repositories:
    """The git folders below some roots.  Bounded: what lies beyond 10 000 folders or 500 repositories is not looked at."""

    def __init__(self, roots: Iterable[Path]) -> None:
        self._roots = [str(root) for root in roots]
        self._folders: dict[str, _Folder] = {}
        self._said: dict[str, tuple[tuple[int, ...], str]] = {}
        self.beyond = False
        """Whether there was more than is looked at."""

    def look(self) -> dict[str, str]:
        """Each git folder (or `.git` file, or folder laid out like one) with what it runs, empty for a harmless one.

        What it runs begins with the words for it and ends, behind a line feed, with a hash of its settings.
        """
        places = [place for place in self.places() if not place.endswith("/.git") or _may_be_one(place)]
        self.beyond |= len(places) > _MOST_PLACES
        del places[_MOST_PLACES:]
        self._said = {place: self._judged(place) for place in places}
        return {place: said for place, (_, said) in self._said.items()}

    def git_folders(self) -> Iterator[Path]:
        """The folders named `.git` below the roots, the nearest first, but for those in folders that tools fill."""
        for place in self.places():
            root = next((root for root in self._roots if place.startswith(f"{root}/")), "")
            if place.endswith("/.git") and _LAST.isdisjoint(place[len(root) :].split("/")):
                yield Path(place)

    def places(self) -> list[str]:
        """The git folders, and what is laid out like one."""
        found: list[str] = []
        seen: dict[str, _Folder] = {}
        self.beyond = False
        self._walk(self._roots, found, seen, _MOST_FOLDERS)
        tools = [f"{path}/{name}" for path, folder in seen.items() for name in folder[2] if name in _LAST]
        self._walk(tools, found, seen, _MOST_TOOL_FOLDERS)
        self._folders = seen
        return found

    def _walk(self, waiting: list[str], found: list[str], seen: dict[str, _Folder], most: int) -> None:
        """Look at folders and those below, the highest first, but not into those that tools fill."""
        known, lstat = self._folders, os.lstat
        while waiting and most > 0:
            below: list[str] = []
            for path in waiting[:most]:
                try:
                    status = lstat(path)
                except OSError:
                    continue
                folder = known.get(path)
                if folder is None or folder[0] != status.st_ctime_ns or folder[1] != status.st_ino:
                    folder = _listed(path, status)
                seen[path] = folder
                if folder[3]:
                    found.append(f"{path}/.git")
                if folder[4]:
                    found.append(path)
                if folder[2]:
                    below += [f"{path}/{name}" for name in folder[2] if name not in _LAST]
            self.beyond |= len(waiting) > most
            most -= len(waiting)
            waiting = below
        self.beyond |= bool(waiting)

    def _judged(self, place: str) -> tuple[tuple[int, ...], str]:
        folder = Path(place)
        settings = [folder / name for name in ("config", "config.worktree", "hooks", "commondir")]
        times = tuple(number for path in (folder, *settings) for number in _times(path))
        known = self._said.get(place)
        if known is not None and known[0] == times and _is_plain(folder, settings):
            return known
        said = runs(folder)
        return times, f"{said}\n{_digest(settings[:2])}" if said else ""


def looking_runs(workspace: Path) -> str:
    """What a git command that only looks (status, diff, log) would run in a folder's repository, its submodules and the
    repositories in it included; empty where it is nothing."""
    git = next(
        (folder / ".git" for folder in (workspace, *workspace.parents) if os.path.lexists(folder / ".git")), None
    )
    if git is None:
        return ""
    modules = (config.parent for folder in git_folders(workspace) for config in (folder / "modules").rglob("config"))
    below = map(Path, Repositories([git.parent]).places())
    return next(
        (found for place in (git, *islice(modules, _MOST_PLACES), *below) if (found := runs(place, reading=True))), ""
    )


def _may_be_one(place: str) -> bool:
    """Whether git could take a `.git` for a repository: a file may point to one, a folder needs a HEAD."""
    return not os.path.isdir(place) or os.path.lexists(f"{place}/HEAD")


def _is_plain(folder: Path, settings: Iterable[Path]) -> bool:
    """Whether the times of a git folder and what is in it say all: nothing leads elsewhere, no hook waits to be armed."""
    if not folder.is_dir() or any(path.is_symlink() for path in (folder, *settings)) or (folder / "commondir").exists():
        return False
    try:
        return all(name.endswith(".sample") for name in os.listdir(folder / "hooks"))
    except OSError:
        return True


def _listed(path: str, status: os.stat_result) -> _Folder:
    """What is in a folder; one that has just been changed is to be listed again the next time."""
    try:
        with os.scandir(path) as entries:
            listed = [(e.name, e.is_dir(follow_symlinks=False)) for e in entries]
    except OSError:
        return 0, 0, (), False, False
    settled = time.time_ns() - status.st_ctime_ns > _SLACK
    names = {name for name, _ in listed}
    below = tuple(name for name, folder in listed if folder and name != ".git")
    return (status.st_ctime_ns if settled else 0), status.st_ino, below, ".git" in names, looks_bare(names)


def _times(path: Path) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except OSError:
        return (0,)
    racy = time.time_ns() - status.st_ctime_ns < _SLACK
    return status.st_ctime_ns, status.st_ino, status.st_size, time.time_ns() if racy else 0


def _digest(paths: Iterable[Path]) -> str:
    hashed = sha256()
    for path in paths:
        try:
            with path.open("rb") as file:
                hashed.update(file.read(1_000_000))
        except OSError:
            pass
    return hashed.hexdigest()
