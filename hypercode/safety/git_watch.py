"""What lies below the folders that a boxed command can write to and makes programs do something: repositories, settings.

A repository that a command makes somewhere below is harmless until somebody calls git in it; what its settings name, or its
hooks, is run then, outside the box.  So it is with the settings that editors, shells and assistants obey.  The walk keeps
what it saw of each folder: one whose times are as they were is not listed again, so that looking once more costs a few
microseconds a folder.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from hypercode.safety.bounded_read import start_of
from hypercode.safety.git_config import looks_bare, runs
from hypercode.safety.git_named import folders_of, named
from hypercode.safety.obeyed import States, leads_to_obeyed, obeyed_names
from hypercode.safety.path_rules import VAULTS, secret_name
from hypercode.safety.sandbox_policy import git_folders

__all__ = ["Folder", "Repositories", "looking_runs"]

_MOST_FOLDERS, _MORE_FOLDERS, _MOST_TOOL_FOLDERS = 10_000, 1_000, 1_000
_MOST_PLACES = 500
_CROWD = 500
_SLACK = 100_000_000  # ns in which a folder may change twice without its times telling
_LAST = frozenset((".venv", "venv", "node_modules", "target", "dist", "build", "__pycache__", ".tox", ".cache"))
"""Large folders that tools fill: of what is below them a little is looked at, of each kind by itself."""

_Times = tuple[int, ...]


class Folder(NamedTuple):
    """What was seen of a folder: its times and number, the folders in it, git folders, and what programs obey.

    `inward` are links in it that lead into a git folder, where nobody else looks, `secret` files that usually hold secrets;
    `listable` says whether it can be listed.
    """

    changed: int
    inode: int
    below: tuple[str, ...] = ()
    has_git: bool = False
    is_bare: bool = False
    obeyed: tuple[str, ...] = ()
    inward: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    listable: bool = True


class Repositories:
    """The git folders below some roots, and the settings there that programs obey.

    `linked` are folders elsewhere that a command can write to as well; they count as far as a link below the roots leads there.
    `without` are those that no command can write to, wherever they lie; they are not looked into.

    Bounded: what lies beyond 10 000 folders (20 000 as one looks again), 500 repositories or 500 settings is not looked at,
    nor what lies beyond 1 000 folders of each kind that tools fill.
    """

    def __init__(self, roots: Iterable[Path], linked: Iterable[Path] = (), without: Iterable[Path] = ()) -> None:
        self._roots = [str(root) for root in roots]
        self._without = frozenset(map(str, without)) - frozenset(self._roots)
        self._judged_in: Mapping[str, Folder] = {}
        self._linked = tuple(os.path.realpath(folder) for folder in linked)
        self._folders: dict[str, Folder] = {}
        self._own = 0
        self._found: list[str] = []
        self._bare: list[str] = []
        self._states = States()
        self._said: dict[str, tuple[_Times, str]] = {}
        self._named: dict[str, tuple[list[str], _Times, list[str]]] = {}
        self._unseen = 0
        self.beyond = False
        """Whether there was more than is looked at."""
        self.own_beyond = False
        """Whether there was more even without the folders that tools fill."""

    @property
    def unseen(self) -> int:
        """How many folders and settings, in all looks but the first, were news and could not be looked at (any longer)."""
        return self._unseen + self._states.unseen

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
    def without(self) -> list[str]:
        """The folders that are not looked into."""
        return sorted(self._without)

    @property
    def folders(self) -> Mapping[str, Folder]:
        """The folders of the last walk, by path; the next one makes a new mapping."""
        return self._folders

    def secrets(self) -> list[str]:
        """The files that usually hold secrets, as the last look found them, the highest first."""
        return [f"{path}/{name}" for path, folder in self._folders.items() for name in folder.secret]

    def obeyed(self, skip: Collection[str] = ()) -> dict[str, str]:
        """The settings that the last look found, with the state of each; what is in one of `skip` is left out.

        A folder that cannot be listed counts as one, and so do the hooks of repositories and what their settings name.
        """
        hidden = [path for path, folder in self._folders.items() if not folder.listable]
        names = [f"{path}/{name}" for path, folder in self._folders.items() for name in folder.obeyed]
        bare = [f"{path}/{name}" for path in self._bare for name in ("config", "hooks")]
        before, listings = self._judged_in, dict[str, frozenset[str]]()

        def is_news(path: str) -> bool:
            folder = os.path.dirname(path)
            return folder in before or _is_new(folder, before, listings)

        states = self._states.look((*names, *hidden, *bare, *self._named_inside()), skip, is_news)
        self._judged_in = self._folders
        self.beyond |= self._states.beyond
        self.own_beyond |= self._states.beyond
        return states

    def _named_inside(self) -> list[str]:
        """The hooks of the repositories, and what their settings name, as far as a command can write to it."""
        kept: dict[str, tuple[list[str], _Times, list[str]]] = {}
        for place, (_, said) in self._said.items():
            if said:  # else its settings name nothing
                known = self._named.get(place)
                if known is None or known[1] != tuple(number for file in known[0] for number in _times(file)):
                    files, found = named(place)
                    known = files, tuple(number for file in files for number in _times(file)), found
                kept[place] = known
        self._named = kept
        return [name for _, _, found in kept.values() for name in found if self._is_written(name)]

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
        most = min(max(_MOST_FOLDERS, self._own + _MORE_FOLDERS), 2 * _MOST_FOLDERS)  # so that new ones push none out
        tools = self._walk(self._roots, found, seen, most, self._miss)
        self._own, self.own_beyond = len(seen), self.beyond
        for kind in sorted(_LAST):  # thousands of packages must not hide the few others
            some, most = [path for path in tools if path.endswith(f"/{kind}")], len(seen) + _MOST_TOOL_FOLDERS
            while some and len(seen) < most:
                some = self._walk(some, found, seen, most - len(seen), self._miss_tools)
        self._walk_inward(found, seen)
        self._folders, self._found = seen, list(dict.fromkeys(found))
        return list(self._found)

    def _walk_inward(self, found: list[str], seen: dict[str, Folder]) -> None:
        """Look where links lead into git folders, or out of the roots."""
        links = [f"{path}/{name}" for path, folder in seen.items() for name in folder.inward]
        self._miss(links[_MOST_PLACES:])
        leads = dict.fromkeys(os.path.realpath(link) for link in links[:_MOST_PLACES])
        inward = [path for path in leads if path not in seen and os.path.isdir(path) and self._is_written(path)]
        there: list[str] = []
        self._walk(inward, there, seen, _MOST_TOOL_FOLDERS, self._miss)
        found += (path for path in there if path.endswith("/.git"))
        self._bare = [path for path in there if not path.endswith("/.git")]  # git itself lays out submodules so

    def _below_root(self, path: str) -> str:
        return "" if path in self._roots else path[len(self.root_of(path)) :]

    def _is_written(self, path: str) -> bool:
        """Whether a command can write to a folder."""
        return path in self._roots or bool(self.root_of(path)) or _lies_in(path, self._linked)

    def _walk(
        self,
        waiting: Iterable[str],
        found: list[str],
        seen: dict[str, Folder],
        most: int,
        miss: Callable[[list[str]], None],
    ) -> list[str]:
        """Look at folders and those below, the highest first and those of crowds last, but not into those that tools fill.

        The latter are returned; `miss` is told of what is too much.
        """
        known, without, lstat = self._folders, self._without, os.lstat
        level, crowds, tools = list(waiting), list[str](), list[str]()
        while (level or crowds) and most > 0:
            if not level:
                level, crowds = crowds, []
            if len(level) > most:
                level.sort(key=lambda path: path not in known)
            below: list[str] = []
            for path in level[:most]:
                if path in without:
                    continue
                try:
                    status = lstat(path)
                except OSError as error:
                    if error.errno == errno.ENAMETOOLONG:  # other programs go there step by step
                        miss([path])
                    continue
                folder = known.get(path)
                if folder is None or folder.changed != status.st_ctime_ns or folder.inode != status.st_ino:
                    folder = _listed(path, status, self._linked, inside=_telling(self._below_root(path)))
                seen[path] = folder
                if folder.has_git:
                    found.append(f"{path}/.git")
                if folder.is_bare and not path.endswith("/.git"):
                    found.append(path)
                if folder.below:
                    into = below if len(folder.below) <= _CROWD else crowds
                    into += [f"{path}/{name}" for name in folder.below if name not in _LAST]
                    if not _LAST.isdisjoint(folder.below):
                        tools += [f"{path}/{name}" for name in folder.below if name in _LAST]
            miss(level[most:])
            most -= len(level)
            level = below
        miss(level + crowds)
        return tools

    def _miss(self, paths: list[str]) -> None:
        """Note that folders are not looked at, and how many of them the last look had seen or had not been there then."""
        self.beyond |= bool(paths)
        known, listings = self._folders, dict[str, frozenset[str]]()
        self._unseen += sum(path in known or _is_new(path, known, listings) for path in paths) if known else 0

    def _miss_tools(self, paths: list[str]) -> None:
        """The same for folders that tools fill with thousands at a time; there it is no news."""
        self.beyond |= bool(paths)

    def _judged(self, place: str) -> tuple[_Times, str]:
        folder = Path(place)
        settings = [folder / name for name in ("config", "config.worktree", "hooks", "commondir")]
        times = tuple(number for path in (folder, *settings) for number in _times(path))
        known = self._said.get(place)
        if known is not None and known[0] == times and _is_plain(folder, settings):
            return known
        said = runs(folder) or _hidden_hooks(folders_of(place))
        return times, f"{said}\n{_digest(settings[:2])}" if said else ""


def _is_new(path: str, known: Mapping[str, Folder], listings: dict[str, frozenset[str]]) -> bool:
    """Whether a look at these folders says that a folder was not there; `listings` keeps what is asked for again."""
    folder, _, name = path.rpartition("/")
    while folder and folder not in known:
        folder, _, name = folder.rpartition("/")
    if folder not in known:
        return False
    if folder not in listings:
        listings[folder] = frozenset(known[folder].below)
    return name not in listings[folder]


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
    if not os.path.isdir(folder) or os.path.lexists(folder / "commondir"):
        return False
    if any(os.path.islink(path) for path in (folder, *settings)):
        return False
    try:
        return all(name.endswith(".sample") for name in os.listdir(folder / "hooks"))
    except OSError:
        return not os.path.lexists(folder / "hooks")


def _hidden_hooks(gits: Iterable[str]) -> str:
    """Words for hooks that git finds by their names and nobody else can see; empty if there are none."""
    for git in gits:
        try:
            os.listdir(f"{git}/hooks")
        except PermissionError:
            return "hooks, which cannot be listed"
        except OSError:
            pass
    return ""


def _listed(path: str, status: os.stat_result, linked: Collection[str], inside: str) -> Folder:
    """What is in a folder that lies `inside` of others; one that has just been changed is to be listed again the next time."""
    try:
        with os.scandir(path) as entries:
            listed = [(e.name, e.is_dir(follow_symlinks=False), e.is_symlink()) for e in entries]
    except OSError:
        return Folder(0, 0, listable=False)
    settled = time.time_ns() - status.st_ctime_ns > _SLACK
    names = {name for name, _, _ in listed}
    below = tuple(sorted(name for name, folder, _ in listed if folder and name != ".git"))
    links = [name for name, _, link in listed if link]
    through = [name for name in links if leads_to_obeyed(name)]
    open_ended = through or not all(os.path.exists(f"{path}/{name}") for name in links)  # changes by itself
    return Folder(
        status.st_ctime_ns if settled and not open_ended else 0,
        status.st_ino,
        below,
        ".git" in names,
        looks_bare(names),
        obeyed_names(path, names, through),
        tuple(name for name in links if _leads_inward(f"{path}/{name}", linked)),
        tuple(name for name, folder, link in listed if not folder and not link and _secret(name, inside)),
    )


def _telling(folder: str) -> str:
    """Of the folders on the way those whose names may say that secrets lie below: the last two, hidden ones, vaults."""
    *higher, above, last = ["", "", *folder.strip("/").split("/")]
    kept = [name for name in higher if name.startswith(".") or name.casefold() in VAULTS]
    return "/".join([*kept, above, last]).strip("/")


@lru_cache(maxsize=8192)
def _secret(name: str, folder: str) -> bool:
    """As `secret_name`, which is too slow to ask it again for each folder that has such a name in it."""
    return secret_name(Path("/", folder, name), Path("/"))


def _leads_inward(link: str, linked: Collection[str]) -> bool:
    """Whether a link names a git folder on the way, or leads to one of the folders."""
    try:
        return ".git" in os.readlink(link).casefold().split("/") or (
            bool(linked) and _lies_in(os.path.realpath(link), linked)
        )
    except OSError:
        return False


def _lies_in(path: str, folders: Iterable[str]) -> bool:
    return any(f"{path}/".startswith(f"{folder}/") for folder in folders)


def _times(path: str | Path) -> _Times:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return (0,)
    racy = time.time_ns() - status.st_ctime_ns < _SLACK
    return status.st_ctime_ns, status.st_ino, status.st_size, time.time_ns() if racy else 0


def _digest(settings: Iterable[Path]) -> str:
    """A hash of what is in the files."""
    hashed = sha256()
    for path in settings:
        try:
            hashed.update(start_of(path, 1_000_000))
        except OSError:
            pass
        hashed.update(b"\0")
    return hashed.hexdigest()
