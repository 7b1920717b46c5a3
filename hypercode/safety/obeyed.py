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
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase, translate
from hashlib import sha256
from pathlib import Path

from hypercode.safety.path_rules import INSTRUCTS, RUNS_ALONE, STEERS

__all__ = ["States", "comes_with_packages", "last_change", "must_not_appear", "obeyed_names", "recorded", "state_of"]

_MOST_THINGS, _MOST_ENTRIES, _MOST_IN_ALL, _MOST_BYTES = 500, 300, 3_000, 1_000_000
_MOST_RECORD = 5_000_000
_SLACK = 100_000_000  # ns in which a file may change twice without its times telling

_ENVIRONMENT = "pyvenv.cfg"
_ELSEWHERE = {("*.pth",), (_ENVIRONMENT,), (".pnp.cjs",), (".venv", "bin"), ("venv", "bin")}
_STRONG = [row for row in (*RUNS_ALONE, *INSTRUCTS) if row not in _ELSEWHERE]
_ROWS = [*_STRONG, *(row for row in STEERS if row not in _ELSEWHERE), (".hg", "hgrc*")]
_EXACT = frozenset(row[0] for row in _ROWS if len(row) == 1 and "*" not in row[0])
_PATTERN = re.compile("|".join(translate(row[0]) for row in _ROWS if len(row) == 1 and "*" in row[0]))
_IN_FOLDER = {
    folder: re.compile("|".join(translate(row[1]) for row in _ROWS if len(row) == 2 and row[0] == folder))
    for folder in {row[0] for row in _ROWS if len(row) == 2}
}
_OBEYED_LINE = re.compile(rb"(?mi)^[ \t]*(?:home|include-system-site-packages)\b.*")
_PYTHON_PACKAGES = ("site-packages", "dist-packages")
_PACKAGES = frozenset(("node_modules", *_PYTHON_PACKAGES))
_STARTED = ("activate", "python")
"""How the names begin of what a shell or an editor starts of a virtual environment without looking."""


def obeyed_names(folder: str, names: Collection[str]) -> tuple[str, ...]:
    """Which of the names in a folder are those of things that programs obey without being asked."""
    parent, _, base = folder.rpartition("/")
    base = base.casefold()
    found = [n for n in names if (low := n.casefold()) in _EXACT or _PATTERN.match(low)]
    if (pattern := _IN_FOLDER.get(base)) is not None:
        found += [n for n in names if pattern.match(n.casefold())]
    elif base in _PYTHON_PACKAGES:
        found += [n for n in names if n.endswith(".pth")]
    elif base == "bin" and os.path.lexists(f"{parent}/{_ENVIRONMENT}"):
        found += [n for n in names if n.casefold().startswith(_STARTED)]
    if _ENVIRONMENT in names:
        found.append(_ENVIRONMENT)
    return tuple(sorted(found))


def must_not_appear(path: str) -> bool:
    """Whether the name is that of settings that run something, or of instructions for assistants."""
    words = path.casefold().split("/")
    return any(all(map(fnmatchcase, words[-len(row) :], row)) for row in _STRONG)


def comes_with_packages(path: str, root: str) -> bool:
    """Whether it lies where package managers unpack what others wrote, or is part of a virtual environment."""
    folder, _, name = path.rpartition("/")
    parent, _, base = folder.rpartition("/")
    if name == _ENVIRONMENT or not _PACKAGES.isdisjoint(parent[len(root) :].split("/")):
        return True
    if base == "bin":
        return name.casefold().startswith(_STARTED) and os.path.lexists(f"{parent}/{_ENVIRONMENT}")
    return base in _PYTHON_PACKAGES and name.endswith((".pth", "customize.py"))


def recorded(path: str) -> bool:
    """Whether a file is as an installed Python package's list of files says (the `RECORD` of its `.dist-info`)."""
    site = next((str(p) for p in Path(path).parents if p.name in _PYTHON_PACKAGES), None)
    if site is None:
        return False
    try:
        digest = urlsafe_b64encode(sha256(_read(path, _MOST_RECORD)).digest()).rstrip(b"=")
        line = f"{path[len(site) + 1 :]},sha256=".encode("utf-8", "surrogateescape") + digest + b","
        records = [f"{site}/{name}/RECORD" for name in os.listdir(site) if name.endswith(".dist-info")]
        return any(b"\n" + line in b"\n" + _read(record, _MOST_RECORD) for record in records)
    except OSError:
        return False


class States:
    """What is in the things that are obeyed; what has the times it had is not read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Signature, str]] = {}
        self.beyond = False
        """Whether there were more than 500, more than 300 files in one, or more than 3 000 files in all."""

    def look(self, paths: Iterable[str], skip: Collection[str] = ()) -> dict[str, str]:
        """The state of each that exists, the outermost only; `skip` and what is in it is left out."""
        states: dict[str, tuple[_Signature, str]] = {}
        self.beyond = False
        covered = set(skip)
        left = _MOST_IN_ALL
        for path in paths:
            if path in covered or any(above in covered for above in _above(path)):
                continue
            if len(states) == _MOST_THINGS or left <= 0:
                self.beyond = True
                break
            covered.add(path)
            entries = _entries(path)
            left -= len(entries)
            self.beyond |= len(entries) > _MOST_ENTRIES
            if entries:
                signature = _signature(entries)
                known = self._known.get(path)
                if known is None or known[0] != signature or not signature:
                    known = signature, _digest(path, entries)
                states[path] = known
        self._known = states
        return {path: state for path, (_, state) in states.items()}


def state_of(path: str) -> str:
    """What is in a file or folder, as `States` has it; empty if there is nothing."""
    entries = _entries(path)
    return _digest(path, entries) if entries else ""


def last_change(path: str) -> int:
    """When a file or folder, or something in it, was last changed or moved, in ns; 0 if there is nothing."""
    return max((status.st_ctime_ns for _, status, _ in _entries(path)), default=0)


_Entry = tuple[str, os.stat_result, os.stat_result | None]
_Signature = tuple[tuple[str, int, int, int, int, int], ...]


def _above(path: str) -> Iterable[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _entries(path: str) -> list[_Entry]:
    """The path itself and what is below: name, status, and that of what a link leads to; only a link at the top is entered."""
    found: list[_Entry] = []
    waiting = [""]
    while waiting and len(found) <= _MOST_ENTRIES:
        name = waiting.pop()
        place = path + name
        try:
            status = os.lstat(place)
        except OSError:
            continue
        target = _target(place) if stat.S_ISLNK(status.st_mode) else None
        found.append((name, status, target))
        led = status if target is None or name else target
        if stat.S_ISDIR(led.st_mode):
            waiting += [f"{name}/{below}" for below in _listed(place)]
    return found


def _target(place: str) -> os.stat_result | None:
    try:
        return os.stat(place)
    except OSError:
        return None


def _listed(place: str) -> list[str]:
    try:
        return sorted(os.listdir(place))
    except OSError:
        return []


def _signature(entries: Iterable[_Entry]) -> _Signature:
    """By what a change shows; empty where something was changed so lately that a further change need not show."""
    statuses = [(name, s) for name, *both in entries for s in both if s is not None]
    if time.time_ns() - max(s.st_ctime_ns for _, s in statuses) < _SLACK:
        return ()
    return tuple((n, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_mode) for n, s in statuses)


def _digest(path: str, entries: Iterable[_Entry]) -> str:
    hashed = sha256()
    left = _MOST_BYTES
    for name, status, target in sorted(entries, key=lambda entry: entry[0]):
        mode = status.st_mode
        hashed.update(f"{name}\0{stat.S_IFMT(mode)} {mode & 0o111}\0".encode("utf-8", "surrogateescape"))
        if stat.S_ISLNK(mode):
            hashed.update(os.fsencode(_link(path + name)))
        led = target or status
        if stat.S_ISREG(led.st_mode):
            content = _read(path + name, left)
            left -= len(content)
            if path.endswith(_ENVIRONMENT):  # the rest says how it was made last
                hashed.update(b"".join(_OBEYED_LINE.findall(content)))
                continue
            late = led.st_mtime_ns if len(content) < led.st_size else 0
            hashed.update(f"\0{led.st_size} {late} {led.st_mode & 0o111}\0".encode() + content)
    return hashed.hexdigest()


def _link(place: str) -> str:
    try:
        return os.readlink(place)
    except OSError:
        return ""


def _read(place: str, most: int) -> bytes:
    """The beginning of a regular file; empty if it is none or cannot be read."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        with os.fdopen(descriptor, "rb") as file:
            return file.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
