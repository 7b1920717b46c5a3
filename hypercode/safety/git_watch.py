"""What lies below the folders that a boxed command can write to and makes programs do something: repositories, settings.

A repository that a command makes somewhere below is harmless until somebody calls git in it; what its settings name, or its
hooks, is run then, outside the box.  So it is with the settings that editors, shells and assistants obey.  The walk keeps what it saw of each folder: one whose times are as they were is not
listed again, so that looking once more costs a few microseconds a folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from hypercode.safety.git_config import looks_bare, runs
from hypercode.safety.obeyed import States, obeyed_names
from hypercode.safety.sandbox_policy import git_folders

__all__ = ["Folder", "Repositories", "looking_runs"]

_MOST_FOLDERS, _MOST_TOOL_FOLDERS = 10_000, 1_000
_MOST_PLACES = 500
_SLACK = 100_000_000  # ns in which a folder may change twice without its times telling
_ENVIRONMENTS = frozenset((".venv", "venv"))
_LAST = _ENVIRONMENTS | {"node_modules", "target", "dist", "build", "__pycache__", ".tox", ".cache"}
"""Large folders that tools fill: of what is below them a little is looked at."""


class Folder(NamedTuple):
    """What was seen of a folder: its times and number, the folders in it, git folders, and what programs obey."""

    changed: int
    inode: int
    below: tuple[str, ...]
    has_git: bool
    is_bare: bool
    obeyed: tuple[str, ...]


class Repositories:
    """The git folders below some roots, and the settings there that programs obey.

    Bounded: what lies beyond 10 000 folders, 500 repositories or 500 settings is not looked at.
    """

    def __init__(self, roots: Iterable[Path]) -> None:
        self._roots = [str(root) for root in roots]
        self._folders: dict[str, Folder] = {}
        self._found: list[str] = []
        self._states = States()
        self._said: dict[str, tuple[tuple[int, ...], str]] = {}
        self.beyond = False
        """Whether there was more than is looked at."""
        self.own_beyond = False
        """Whether there was more even without the folders that tools fill."""

    def look(self) -> dict[str, str]:
        """Each git folder (or `.git` file, or folder laid out like one) with what it runs, empty for a harmless one.

        What it runs begins with the words for it and ends, behind a line feed, with a hash of its settings.
        """
        places = [place for place in self.places() if not place.endswith("/.git") or _may_be_one(place)]
        self.beyond |= len(places) > _MOST_PLACES
        del places[_MOST_PLACES:]
        self._said = {place: self._judged(place) for place in places}
        return {place: said for place, (_, said) in self._said.items()}

    @property
    def folders(self) -> Mapping[str, Folder]:
        """The folders of the last walk, by path; the next one makes a new mapping."""
        return self._folders

    def obeyed(self, skip: Collection[str] = ()) -> dict[str, str]:
        """The settings that the last walk found, with the state of each; `skip` and what is in it is left out."""
        names = [f"{path}/{name}" for path, folder in self._folders.items() for name in folder.obeyed]
        states = self._states.look(names, skip)
        self.beyond |= self._states.beyond
        self.own_beyond |= self._states.beyond
        return states

    def root_of(self, place: str) -> str:
        """The root in which a path lies; empty if in none."""
        return max((root for root in self._roots if place.startswith(f"{root}/")), key=len, default="")

    def filled_by_tools(self, place: str) -> bool:
        """Whether a path lies in a folder that tools fill."""
        return not _LAST.isdisjoint(place[len(self.root_of(place)) :].split("/"))

    def git_folders(self) -> Iterator[Path]:
        """The folders named `.git` below the roots, the nearest first, but for those in folders that tools fill."""
        self.places()
        return self.seen_git_folders()

    def seen_git_folders(self) -> Iterator[Path]:
        """The same, as the last walk found them."""
        return (Path(p) for p in self._found if p.endswith("/.git") and not self.filled_by_tools(p))

    def places(self) -> list[str]:
        """The git folders, and what is laid out like one."""
        found: list[str] = []
        seen: dict[str, Folder] = {}
        self.beyond = False
        self._walk(self._roots, found, seen, _MOST_FOLDERS)
        self.own_beyond = self.beyond
        tools = [f"{path}/{name}" for path, folder in seen.items() for name in folder.below if name in _LAST]
        for environment in (True, False):  # each kind by itself: thousands of packages must not hide the few others
            some = [path for path in tools if (path.rpartition("/")[2] in _ENVIRONMENTS) == environment]
            self._walk(some, found, seen, _MOST_TOOL_FOLDERS)
        self._folders, self._found = seen, found
        return found

    def _walk(self, waiting: list[str], found: list[str], seen: dict[str, Folder], most: int) -> None:
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
                if folder is None or folder.changed != status.st_ctime_ns or folder.inode != status.st_ino:
                    folder = _listed(path, status)
                seen[path] = folder
                if folder.has_git:
                    found.append(f"{path}/.git")
                if folder.is_bare:
                    found.append(path)
                if folder.below:
                    below += [f"{path}/{name}" for name in folder.below if name not in _LAST]
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


def _listed(path: str, status: os.stat_result) -> Folder:
    """What is in a folder; one that has just been changed is to be listed again the next time."""
    try:
        with os.scandir(path) as entries:
            listed = [(e.name, e.is_dir(follow_symlinks=False)) for e in entries]
    except OSError:
        return Folder(0, 0, (), False, False, ())
    settled = time.time_ns() - status.st_ctime_ns > _SLACK
    names = {name for name, _ in listed}
    below = tuple(sorted(name for name, folder in listed if folder and name != ".git"))
    changed = status.st_ctime_ns if settled else 0
    return Folder(changed, status.st_ino, below, ".git" in names, looks_bare(names), obeyed_names(path, names))


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
