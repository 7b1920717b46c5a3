"""What lies in a workspace, and what is different after a command: a walk with a stat cache.

A file whose size, times, number and mode are as they were is taken as unchanged, unless it was written so shortly before
it was read that its times could not show a further write.  Folders are opened one by one without following links.

Passed over are what `.gitignore` ignores, version control's own folders, links, and folders that tools fill
(`node_modules`).  What is too large or too much is not kept, and said.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from hypercode.memory.ignore_rules import IgnoreRules, parse_ignore
from hypercode.safety import files
from hypercode.safety.path_rules import TEMPORARY, secret_name

__all__ = [
    "CTIME", "DIGEST", "INODE", "MODE", "MTIME", "SECRET", "SIZE", "SLACK", "WHY", "Limits", "Row", "Scan", "scan",
]  # fmt: skip

Row = list[Any]
"""A file, by the places below: size, mtime and ctime in ns, inode, mode, digest, why it is not kept, whether its times may hide a write."""

SIZE, MTIME, CTIME, INODE, MODE, DIGEST, WHY, RACY = range(8)
SLACK = 20_000_000
"""How many ns the clock of a file system may lag behind, so that two writes have the same time."""

SECRET = "it usually holds secrets, which are not copied"
"""Why a file with such a name is not kept."""

_COARSE = 2_000_000_000
_DEPTH = 100
_IGNORE_LIMIT = 1 << 18
_PASSED_OVER = frozenset(
    {".git", ".hg", ".svn", ".jj", ".bzr", "_darcs", "node_modules", "__pycache__", ".venv", ".tox", ".nox"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache"}
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is looked at: files and folders by number, one file's size and all kept contents in bytes."""

    files: int = 20_000
    folders: int = 10_000
    file_bytes: int = 5_000_000
    total_bytes: int = 100_000_000


@dataclass(slots=True)
class Scan:
    """What was found.  `closed` are folders that were not looked into, with the reason.  `started`: when the command began for
    which this is the state before, in ns."""

    files: dict[str, Row] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    closed: dict[str, str] = field(default_factory=dict)
    rules: dict[str, IgnoreRules | None] = field(default_factory=dict)
    started: int = field(default_factory=time.time_ns)
    read: int = 0

    def notes(self, *, without: Container[str] = ()) -> list[str]:
        """What undo does not cover here, in sentences; empty where it covers everything, but for the reasons in `without`."""
        left = [(path, row[WHY]) for path, row in self.files.items() if row[WHY]]
        reasons = dict.fromkeys(why for _, why in left if why not in without)
        notes = [_sentence([path for path, why in left if why == reason], "file", reason) for reason in reasons]
        for reason in dict.fromkeys(self.closed.values()):
            notes.append(_sentence([p for p, why in self.closed.items() if why == reason], "folder", reason))
        return notes


def _sentence(paths: Sequence[str], what: str, reason: str) -> str:
    some = ", ".join(sorted(paths)[:3]) + (", …" if len(paths) > 3 else "")
    return f"Undo does not cover what commands do to {len(paths)} {what}{'s' * (len(paths) != 1)} ({some}): {reason}."


def scan(
    roots: Iterable[Path],
    *,
    known: Scan,
    keep: Callable[[bytes], object],
    limits: Limits,
    skip: Iterable[Path] = (),
    follow_rules: bool = False,
) -> Scan:
    """Look at everything below the roots, which are resolved.

    `known` is an earlier scan, whose rows hold where the stat does.  `keep` gets the content of each file that was read.
    `follow_rules`: folders that `known` knows are judged by the ignore rules it found there, so that what it passed over
    is passed over again.
    """
    walk = _Walk(known, keep, limits, {str(path) for path in skip}, follow_rules)
    for root in _outermost(roots):
        walk.root(root)
    return walk.found


def _outermost(roots: Iterable[Path]) -> list[Path]:
    every = list(dict.fromkeys(roots))
    return [r for r in every if not any(r != other and r.is_relative_to(other) for other in every)]


_Ignores = Callable[[str, str, bool], bool]


@dataclass(slots=True)
class _Chain:
    """The ignore rules that hold in a folder, outermost first, each with what stands before its relative paths."""

    rules: tuple[tuple[IgnoreRules, int], ...]
    as_known: bool = False
    """Whether they are those of the scan before."""

    def ignores(self, path: str, name: str, folder: bool) -> bool:
        for rules, start in reversed(self.rules):
            verdict = rules.verdict(path[start:], name, folder)
            if verdict is not None:
                return verdict
        return False


class _Walk:
    def __init__(
        self, known: Scan, keep: Callable[[bytes], object], limits: Limits, skip: set[str], follow_rules: bool
    ) -> None:
        self.found = Scan()
        self._known = known
        self._keep = keep
        self._limits = limits
        self._skip = skip
        self._follow = follow_rules
        self._kept = 0
        self._root = Path("/")

    def root(self, root: Path) -> None:
        self._root = root
        try:
            fd = files.open_node(root, folder=True)
        except OSError as error:
            self.found.closed[str(root)] = files.reason(error)
            return
        try:
            self._folder(fd, str(root), self._above(root), 0)
        finally:
            os.close(fd)

    def _above(self, root: Path) -> _Chain:
        """The rules of the repository outside the root, and its private ones."""
        top = next((path for path in (root, *root.parents) if os.path.lexists(path / ".git")), root)
        inside = [path for path in reversed(root.parents) if path.is_relative_to(top)]
        sources = [(top / ".git/info/exclude", top), *((path / ".gitignore", path) for path in inside)]
        found = [(self._rules(str(path), str(path)), len(_prefix(str(base)))) for path, base in sources]
        as_known = all(self.found.rules[str(path)] is self._known.rules.get(str(path)) for path, _ in sources)
        return _Chain(tuple((rules, start) for rules, start in found if rules), as_known)

    def _rules(self, key: str, path: str, dir_fd: int | None = None) -> IgnoreRules | None:
        if self._follow and key in self._known.rules:
            rules = self._known.rules[key]
        else:
            rules = _read_rules(path, dir_fd)
        self.found.rules[key] = rules
        return rules

    def _folder(self, fd: int, path: str, chain: _Chain, depth: int) -> None:
        found = self.found
        try:
            with os.scandir(fd) as entries:
                names = list(entries)
        except OSError as error:
            found.closed[path] = files.reason(error)
            return
        full = len(found.files) + len(names) > self._limits.files or len(found.folders) >= self._limits.folders
        if full and not (self._follow and path in self._known.folders):
            found.closed[path] = f"more than {self._limits.files} files or {self._limits.folders} folders in all"
            return
        prefix = _prefix(path)
        if path in self._known.folders and self._follow:
            rules = self._rules(path, ".gitignore", fd) if path in self._known.rules else None
        else:
            rules = self._rules(path, ".gitignore", fd) if any(e.name == ".gitignore" for e in names) else None
        as_known = chain.as_known and rules is self._known.rules.get(path)
        if rules or not as_known:
            chain = _Chain((*chain.rules, (rules, len(prefix))) if rules else chain.rules, as_known)
        found.folders[path] = os.fstat(fd).st_mode & 0o7777
        for name in self._listed(fd, prefix, names, chain):
            self._below(fd, name, prefix + name, chain, depth)

    def _listed(self, fd: int, prefix: str, names: list[os.DirEntry[str]], chain: _Chain) -> list[str]:
        """Take the files of a folder; the names of the folders to go into."""
        below: list[str] = []
        found, known, follow = self.found.files, self._known.files, self._follow
        ignored = chain.ignores if chain.rules else None
        for entry in names:
            path = prefix + entry.name
            row = known.get(path)
            # what was looked at under the same rules is not ignored now: the rules are not asked for every file
            if row is not None and (chain.as_known or ignored is None or not ignored(path, entry.name, False)):
                try:
                    s = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if (
                    row[MTIME] == s.st_mtime_ns
                    and row[CTIME] == s.st_ctime_ns
                    and row[SIZE] == s.st_size
                    and row[INODE] == s.st_ino
                    and row[MODE] == s.st_mode
                    and not row[RACY]
                ):
                    found[path] = row
                    self._kept += 0 if row[WHY] or follow else row[SIZE]
                    continue
            self._take(fd, entry, path, ignored, below)
        return below

    def _take(self, fd: int, entry: os.DirEntry[str], path: str, ignored: _Ignores | None, below: list[str]) -> None:
        name, folder = entry.name, entry.is_dir(follow_symlinks=False)
        if ignored is not None and ignored(path, name, folder):
            return
        if folder:
            if name not in _PASSED_OVER and path not in self._skip:
                below.append(name)
        elif not entry.is_file(follow_symlinks=False):
            self.found.others.add(path)
        elif name != ".git" and not (name[0] == "." and fnmatchcase(name, TEMPORARY)):
            row = self._read(fd, name, path)
            if row is not None:
                self.found.files[path] = row
                self._kept += row[SIZE] if not row[WHY] else 0

    def _below(self, fd: int, name: str, path: str, chain: _Chain, depth: int) -> None:
        if depth >= _DEPTH:
            self.found.closed[path] = f"more than {_DEPTH} folders deep"
            return
        try:
            inner = files.open_node(name, dir_fd=fd, folder=True)
        except FileNotFoundError:
            return
        except OSError as error:
            self.found.closed[path] = files.reason(error)
            return
        try:
            self._folder(inner, path, chain, depth + 1)
        finally:
            os.close(inner)

    def _secret(self, path: str, name: str) -> bool:
        """As `secret_name`, which is slow for a deep path: no place of secrets is named by more than its last part,
        unless a folder on the way begins with a dot."""
        whole = _secret_folder(Path(path).parent, self._root)
        if whole is None:
            return secret_name(Path(path), self._root)
        return whole or secret_name(Path("/", name), Path("/"))

    def _read(self, fd: int, name: str, path: str) -> Row | None:
        """A file's row, its content kept where it may be; None where it is gone."""
        try:
            s = os.lstat(name, dir_fd=fd)
        except OSError:
            return None
        self.found.read += 1
        why = ""
        if s.st_size > self._limits.file_bytes:
            why = f"larger than {self._limits.file_bytes / 1e6:g} MB"
        elif self._kept + s.st_size > self._limits.total_bytes:
            why = f"beyond the {self._limits.total_bytes / 1e6:g} MB that are kept"
        elif self._secret(path, name):
            why = SECRET
        if why:
            row = _row(s, "", why)
            row[RACY] = row[RACY] or why.startswith("beyond")  # there may be room the next time
            return row
        try:
            inner = files.open_node(name, dir_fd=fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            return _row(s, "", files.reason(error))
        try:
            before = os.fstat(inner)
            data = _content(inner, self._limits.file_bytes)
            row = _row(os.fstat(inner), sha256(data).hexdigest(), "")
            if (before.st_mtime_ns, before.st_size) != (row[MTIME], row[SIZE]) or len(data) != row[SIZE]:
                row[RACY] = True
            self._keep(data)
        except OSError as error:
            return _row(s, "", files.reason(error))
        finally:
            os.close(inner)
        return row


@lru_cache(maxsize=4096)
def _secret_folder(folder: Path, root: Path) -> bool | None:
    """Whether every file in a folder counts as secret; None where it goes by more than a file's own name."""
    kinds = {secret_name(folder / name, root) for name in ("x", "x.py")}
    if len(kinds) > 1:  # a folder of secrets, in which programs may lie as well
        return None
    if True in kinds:
        return True
    return False if all(part[0] != "." for part in folder.relative_to(root).parts) else None


def _prefix(folder: str) -> str:
    return folder if folder.endswith("/") else folder + "/"


def _content(fd: int, limit: int) -> bytes:
    parts, left = [], limit + 1
    while left > 0 and (part := os.read(fd, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _row(s: os.stat_result, digest: str, why: str) -> Row:
    coarse = s.st_ctime_ns % 1_000_000_000 == 0
    racy = time.time_ns() - s.st_ctime_ns < (_COARSE if coarse else SLACK)
    return [s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_mode, digest, why, racy]


def _read_rules(path: str, dir_fd: int | None) -> IgnoreRules | None:
    try:
        fd = files.open_node(path, dir_fd=dir_fd)
    except OSError:
        return None
    try:
        data = _content(fd, _IGNORE_LIMIT)
    except OSError:
        return None
    finally:
        os.close(fd)
    return parse_ignore(data.decode("latin-1")) if len(data) <= _IGNORE_LIMIT else None
