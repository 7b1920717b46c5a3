"""Files and folders that other programs obey without being asked, anywhere in a workspace: which there are, what is in them.

The names are those that the file tools ask about (`path_rules`), as far as ordinary commands do not make them all the time:
of `*.pth` only those in a `site-packages` count (elsewhere they are somebody's weights), of a virtual environment what a
person or a program starts without looking, and what package managers write anew with every call does not count.
"""

from __future__ import annotations

import os
import re
import stat
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from fnmatch import fnmatchcase, translate
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from hypercode.safety.bounded_read import KERNEL, start_of
from hypercode.safety.path_rules import INSTRUCTS, PINS, RUNS_ALONE, STEERS, UNPACKED

__all__ = [
    "Records",
    "States",
    "came_whole",
    "comes_with_packages",
    "last_change",
    "leads_to_obeyed",
    "must_not_appear",
    "obeyed_names",
    "state_of",
]

_MOST_THINGS, _MOST_ENTRIES, _MOST_IN_ALL, _MOST_BYTES = 500, 1_000, 3_000, 1_000_000
_MOST_RECORD, _MOST_RECORDS = 5_000_000, 50_000_000
_SLACK = 100_000_000  # ns in which a file may change twice without its times telling

_ENVIRONMENT = "pyvenv.cfg"
_ELSEWHERE = {*UNPACKED, *PINS, (".pnp.cjs",)}
_STRONG = [row for row in (*RUNS_ALONE, *INSTRUCTS) if row not in _ELSEWHERE]
_ROWS = [*_STRONG, *(row for row in STEERS if row not in _ELSEWHERE), (".hg", "hgrc*")]
_EXACT = frozenset(row[0] for row in _ROWS if len(row) == 1 and "*" not in row[0])
_PATTERN = re.compile("|".join(translate(row[0]) for row in _ROWS if len(row) == 1 and "*" in row[0]))
_IN_FOLDER = {
    folder: re.compile("|".join(translate(row[1]) for row in _ROWS if len(row) == 2 and row[0] == folder))
    for folder in {row[0] for row in _ROWS if len(row) == 2}
}
_STRONG_FOLDERS = frozenset(row[0] for row in _STRONG if len(row) == 2)
_HARMLESS_LINE = re.compile(
    rb"(?m)^(?:version|version_info|version-info|implementation|command|prompt|uv|virtualenv) *=[^\x00-\x1f]*(?:\n|\Z)"
)
"""Of `pyvenv.cfg` what only says how it was made last; anything else may be what Python obeys, in whatever spelling."""
_PYTHON_PACKAGES = ("site-packages", "dist-packages")
_PACKAGES = frozenset(("node_modules", *_PYTHON_PACKAGES))
_RECORDED = re.compile(rb"(?m)^[^\n]{1,4096},sha256=[\w-]{43}(?=,)")
_STARTED = ("activate", "python")
"""How the names begin of what a shell or an editor starts of a virtual environment without looking."""
_IMPORTED = ("sitecustomize", "usercustomize")


def obeyed_names(folder: str, names: Collection[str], links: Collection[str] = ()) -> tuple[str, ...]:
    """Which of the names in a folder are those of things that programs obey without being asked.

    `links` are those of the names that are links to be looked through (`leads_to_obeyed`): one behind which there is such a
    thing is one itself.
    """
    found = [n for n in names if (low := n.casefold()) in _EXACT or _PATTERN.match(low)]
    found += _by_folder(folder, names)
    if _ENVIRONMENT in names:
        found.append(_ENVIRONMENT)
    found += [link for link in links if _by_folder(f"{folder}/{link}", _listed(f"{folder}/{link}") or ())]
    return tuple(sorted(set(found)))


def leads_to_obeyed(name: str) -> bool:
    """Whether a folder of that name makes programs obey what is in it, so that a link of that name does so elsewhere."""
    low = name.casefold()
    return low in _IN_FOLDER or low in _PYTHON_PACKAGES or low == "bin"


def _by_folder(folder: str, names: Collection[str]) -> list[str]:
    """Which names programs obey because of the folder they are in."""
    parent, _, base = folder.rpartition("/")
    base = base.casefold()
    if (pattern := _IN_FOLDER.get(base)) is not None:
        return [n for n in names if pattern.match(n.casefold())]
    if base in _PYTHON_PACKAGES:
        return [n for n in names if n.endswith(".pth")]
    if base == "bin" and os.path.lexists(f"{parent}/{_ENVIRONMENT}"):
        return [n for n in names if n.casefold().startswith(_STARTED)]
    return []


def must_not_appear(path: str) -> bool:
    """Whether the name is that of settings that run something, or of instructions for assistants."""
    words = path.casefold().split("/")
    if any(all(map(fnmatchcase, words[-len(row) :], row)) for row in _STRONG):
        return True
    return words[-1] in _STRONG_FOLDERS and os.path.islink(path)


def comes_with_packages(path: str, root: str) -> bool:
    """Whether it lies where package managers unpack what others wrote, or is part of a virtual environment."""
    folder, _, name = path.rpartition("/")
    parent, _, base = folder.rpartition("/")
    if name == _ENVIRONMENT or not _PACKAGES.isdisjoint(parent[len(root) :].split("/")):
        return True
    if base == "bin":
        return name.casefold().startswith(_STARTED) and os.path.lexists(f"{parent}/{_ENVIRONMENT}")
    return base in _PYTHON_PACKAGES and _is_hook(name)


def came_whole(path: str, folders: Container[str], records: Records) -> bool:
    """Whether a package brought it: where it lies there was no folder before, or the package's own list has it as it is.

    `folders` are those that were there; a folder put in the place of another is not new.
    """
    folder = os.path.dirname(path)
    if folder.endswith("/__pycache__"):
        folder = os.path.dirname(folder)
    return folder not in folders or records.hold(path)


class Records:
    """What installed Python packages say that their files are (the `RECORD` of a `.dist-info`); each list is read once.

    Bounded: of lists and of files that are compared with them 50 MB are read in all; what lies beyond is not as recorded.
    """

    def __init__(self) -> None:
        self._left = _MOST_RECORDS
        self._sites: dict[str, frozenset[bytes]] = {}

    def hold(self, path: str) -> bool:
        """Whether a file is as one of the lists says.

        Never for what Python itself runs at each start: whoever writes such a file can write the list as well.
        """
        site = next((str(p) for p in Path(path).parents if p.name in _PYTHON_PACKAGES), None)
        if site is None or _is_hook(os.path.basename(path)):
            return False
        if site not in self._sites:
            self._sites[site] = frozenset(self._lines(site))
        name = path[len(site) + 1 :].encode("utf-8", "surrogateescape")
        digest = urlsafe_b64encode(sha256(self._content(path)).digest()).rstrip(b"=") if self._sites[site] else b""
        return name + b",sha256=" + digest in self._sites[site]

    def _lines(self, site: str) -> Iterator[bytes]:
        """Name and hash of each file."""
        names = (name for name in _listed(site) or () if name.endswith(".dist-info"))
        for found in chain.from_iterable(_RECORDED.finditer(self._content(f"{site}/{name}/RECORD")) for name in names):
            yield found[0]

    def _content(self, path: str) -> bytes:
        data = _read(path, min(_MOST_RECORD, self._left)) if self._left > 0 else b""
        self._left -= len(data)
        return data


def _is_hook(name: str) -> bool:
    """Whether Python runs what has such a name whenever it starts: a `.pth` file, `sitecustomize` in whatever form."""
    return name.endswith(".pth") or name.partition(".")[0].casefold() in _IMPORTED


class States:
    """What is in the things that are obeyed; what has the times it had is not read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Signature, str]] = {}
        self._names: frozenset[str] = frozenset()
        self.beyond = False
        """Whether there was more than is looked at: 500 new ones and 1 000 known ones, 1 000 files in one, 3 000 new files and
        6 000 known ones in all."""
        self.unseen = 0
        """How many of them appeared, in all looks but the first, that could not be looked at."""

    def look(
        self, paths: Iterable[str], skip: Collection[str] = (), is_news: Callable[[str], bool] = lambda _: True
    ) -> dict[str, str]:
        """The state of each that exists, the outermost only; what is in one of `skip` is left out.

        `is_news` says of one that is named for the first time whether it can have appeared since the last look.
        """
        states: dict[str, tuple[_Signature, str]] = {}
        self.beyond = False
        covered = set(skip)
        names = tuple(paths)
        things = {False: _MOST_THINGS, True: 2 * _MOST_THINGS}  # apart, so that new ones hide no change of others
        files = {False: _MOST_IN_ALL, True: 2 * _MOST_IN_ALL}
        for path in names:
            if path in states or any(above in covered for above in _above(path)):
                continue
            known = self._known.get(path)
            kind = known is not None
            if not things[kind] or files[kind] <= 0:
                self.beyond = True
                self.unseen += bool(self._names) and path not in self._names and is_news(path)
                continue
            covered.add(path)
            entries = _entries(path)
            if not entries:
                continue
            things[kind] -= 1
            files[kind] -= len(entries)
            self.beyond |= len(entries) > _MOST_ENTRIES
            signature = _signature(entries)
            if known is None or known[0] != signature or not signature:
                known = signature, _digest(path, entries)
            states[path] = known
        self._known = dict(islice(states.items(), 2 * _MOST_THINGS))  # the others are new ones again, and none is lost
        self._names = frozenset(names)
        return {path: state for path, (_, state) in states.items()}


def state_of(path: str) -> str:
    """What is in a file or folder, as `States` has it; empty if there is nothing."""
    entries = _entries(path)
    return _digest(path, entries) if entries else ""


def last_change(path: str) -> int:
    """When a file or folder, or something in it, was last changed or moved, in ns; 0 if there is nothing."""
    return max((entry.status.st_ctime_ns for entry in _entries(path)), default=0)


class _Entry(NamedTuple):
    """A path: its name below the first one, its status and that of what a link leads to; the names in a folder that is
    entered, None where it cannot be listed."""

    name: str
    status: os.stat_result
    target: os.stat_result | None
    names: list[str] | None

    @property
    def led(self) -> os.stat_result:
        return self.target or self.status


_Signature = tuple[tuple[str, int, int, int, int, int], ...]


def _above(path: str) -> Iterable[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _entries(path: str) -> list[_Entry]:
    """The path itself and what is below, links to folders followed, the highest first and of these the smaller folders.

    Of a link that counts because of what it leads to (`.cargo`) that alone is looked at.
    """
    found: list[_Entry] = []
    entered: set[tuple[int, int]] = set()
    level = [""]
    while level and len(found) <= _MOST_ENTRIES:
        listings: list[list[str]] = []
        for name in level[: _MOST_ENTRIES + 1 - len(found)]:
            place = path + name
            try:
                status = os.lstat(place)
            except OSError:
                continue
            target = _target(place) if stat.S_ISLNK(status.st_mode) else None
            led = target or status
            listed: list[str] | None = []
            node = led.st_dev, led.st_ino
            if (
                stat.S_ISDIR(led.st_mode)
                and node not in entered
                and not (target and name and _is_elsewhere(place, path))
            ):
                entered.add(node)
                listed = _listed(place)
                if listed and target and not name and leads_to_obeyed(os.path.basename(path)):
                    listed = _by_folder(path, listed)  # the rest has always been somewhere else
                listings.append([f"{name}/{below}" for below in listed or ()])
            found.append(_Entry(name, status, target, listed))
        level = [name for names in sorted(listings, key=len) for name in names]
    return found


def _target(place: str) -> os.stat_result | None:
    try:
        return os.stat(place)
    except OSError:
        return None


def _is_elsewhere(link: str, path: str) -> bool:
    """Whether a link leads to a folder that a path lies in, or to what is no stored folder."""
    target = os.path.realpath(link)
    return f"{os.path.realpath(path)}/".startswith(f"{target}/") or f"{target}/".startswith(KERNEL)


def _listed(place: str) -> list[str] | None:
    try:
        return sorted(os.listdir(place))
    except OSError:
        return None


def _signature(entries: Iterable[_Entry]) -> _Signature:
    """By what a change shows; empty where something was changed so lately that a further change need not show."""
    statuses = [(e.name, s) for e in entries for s in (e.status, e.target) if s is not None]
    if time.time_ns() - max(s.st_ctime_ns for _, s in statuses) < _SLACK:
        return ()
    return tuple((n, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_mode) for n, s in statuses)


def _digest(path: str, entries: Iterable[_Entry]) -> str:
    hashed = sha256()
    ordered = sorted(entries, key=lambda entry: entry.name)
    contents = _contents(path, ordered)
    for entry in ordered:
        mode = entry.status.st_mode
        hashed.update(f"{entry.name}\0{stat.S_IFMT(mode)} {mode & 0o111}\0".encode("utf-8", "surrogateescape"))
        if stat.S_ISLNK(mode):
            hashed.update(os.fsencode(_link(path + entry.name)))
        led = entry.led
        if entry.names is None:
            hashed.update(f"\0cannot be listed {led.st_ino}".encode())
        elif entry.names:  # also those that are too many to be looked at
            hashed.update("\0".join(entry.names).encode("utf-8", "surrogateescape"))
        elif stat.S_ISREG(led.st_mode):
            content = contents.get(entry.name, b"")
            late = led.st_ctime_ns if len(content) < led.st_size else 0  # which nobody can set
            if path.endswith(f"/{_ENVIRONMENT}"):
                hashed.update(f"\0{late}\0".encode() + _HARMLESS_LINE.sub(b"", content))
            else:
                hashed.update(f"\0{led.st_size} {late} {led.st_mode & 0o111}\0".encode() + content)
    return hashed.hexdigest()


def _contents(path: str, entries: Iterable[_Entry]) -> dict[str, bytes]:
    """What is in the files, the smaller ones first, as far as it is read: some large ones must not hide the others."""
    contents: dict[str, bytes] = {}
    left = _MOST_BYTES
    for entry in sorted((e for e in entries if stat.S_ISREG(e.led.st_mode)), key=lambda entry: entry.led.st_size):
        if entry.led.st_size > left:
            break
        contents[entry.name] = _read(path + entry.name, left)
        left -= len(contents[entry.name])
    return contents


def _link(place: str) -> str:
    try:
        return os.readlink(place)
    except OSError:
        return ""


def _read(place: str, most: int) -> bytes:
    """The beginning of a regular file; empty if it is none or cannot be read."""
    try:
        return start_of(place, most)
    except OSError:
        return b""
