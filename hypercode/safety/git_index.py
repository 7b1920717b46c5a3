"""Which files git tracks, read from its index without calling git (gitformat-index, versions 2 to 4, split ones too)."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hypercode.safety.bounded_read import whole
from hypercode.safety.git_config import is_repository, object_format, pointed

__all__ = ["Tracked"]

_MOST_BYTES = 100_000_000
"""Of all indexes that are read for one command, and of the names in them."""
_MOST_NAME = 4_096
_HASHES = {"sha1": 20, "sha256": 32}
_HEADER, _BEFORE_HASH, _FLAGS = 12, 40, 2
_EXTENDED = 0x4000
_KNOWN_EXTENSIONS = (b"link", b"sdir")
"""Of those that a reader must understand (`gitformat-index`): the shared index, and folders that stand for what is in them."""


class Tracked:
    """The tracked files of the repositories asked about; each index is read once.

    `made_lately` says of the path of a `.git` whether it was made so lately that a missing index may still be to come.
    """

    def __init__(self, made_lately: Callable[[str], bool] = lambda _: False) -> None:
        self._made_lately = made_lately
        self._names: dict[Path, Sequence[bytes] | None] = {}
        self._left = _MOST_BYTES

    def holds(self, path: Path) -> bool | None:
        """Whether git tracks a file, or something in a folder, in the innermost repository around it.

        None where there is a repository whose index cannot be read or understood, or is being written at this moment: a
        checkout locks it first, and while it goes on nothing is listed.
        """
        found = next(((tree, git) for tree in path.parents if (git := _repository(tree)) is not None), None)
        if found is None or any(part.casefold() == ".git" for part in path.relative_to(found[0]).parts):
            return False  # of its own folder git tracks nothing, whatever an index says
        tree, git = found
        if tree not in self._names:
            self._names[tree] = self._read(tree, git)
        names, name = self._names[tree], os.fsencode(path.relative_to(tree))
        return None if names is None else _in(names, name) or _in(names, name + b"/", begins=True)

    def _read(self, tree: Path, git: Path) -> Sequence[bytes] | None:
        if os.path.lexists(git / "index.lock"):
            return None
        try:
            return sorted(set(self._tracked(git)))
        except FileNotFoundError:
            return None if self._made_lately(f"{tree}/.git") else ()
        except (OSError, ValueError, IndexError, KeyError):
            return None

    def _tracked(self, git: Path) -> list[bytes]:
        """Raises OSError, ValueError, IndexError, KeyError for what is missing, too large or not understood."""
        size = _HASHES[object_format(git)]
        data = self._content(git / "index")
        names, at = self._entries(data, size)
        base, deleted = _shared(data, at, size)
        if base:
            try:
                shared, _ = self._entries(self._content(git / f"sharedindex.{base.hex()}"), size)
            except FileNotFoundError:
                raise ValueError("the shared index is missing") from None
            gone = set(_bits(deleted, len(shared)))
            names += [name for number, name in enumerate(shared) if number not in gone]
        return [name for name in names if name]  # those that replace an entry of the shared index have none

    def _content(self, path: Path) -> bytes:
        data = whole(path, self._left)
        self._left -= len(data)
        return data

    def _entries(self, data: bytes, size: int) -> tuple[list[bytes], int]:
        """The names in an index, and where they end."""
        version, entries = (int.from_bytes(data[at : at + 4], "big") for at in (4, 8))
        if data[:4] != b"DIRC" or version not in (2, 3, 4):
            raise ValueError("no index, or one of a later version")
        at, name, names = _HEADER, b"", list[bytes]()
        for _ in range(entries):
            start = at + _BEFORE_HASH + size + _FLAGS
            flags = int.from_bytes(data[start - _FLAGS : start], "big")
            start += 2 if version > 2 and flags & _EXTENDED else 0
            if version == 4:  # only how a name differs from the one before
                cut, start = _number(data, start)
                end = data.index(b"\0", start, start + _MOST_NAME)
                name = name[: max(len(name) - cut, 0)] + data[start:end]
                at = end + 1
            else:
                end = data.index(b"\0", start, start + _MOST_NAME)
                name = data[start:end]
                at += (end - at) // 8 * 8 + 8
            self._left -= len(name)
            if len(name) > _MOST_NAME or self._left < 0:
                raise ValueError("the names are too long")
            names.append(name)
        if at + size > len(data):
            raise ValueError("it ends early")
        return names, at


def _repository(tree: Path) -> Path | None:
    """The git folder of a work tree, if git takes it for one."""
    git = tree / ".git"
    if not os.path.lexists(git):
        return None
    folder = git if os.path.isdir(git) else pointed(git)
    return folder if folder is not None and is_repository(folder) else None


def _in(names: Sequence[bytes], name: bytes, *, begins: bool = False) -> bool:
    at = bisect_left(names, name)
    return at < len(names) and (names[at].startswith(name) if begins else names[at] == name)


def _shared(data: bytes, at: int, size: int) -> tuple[bytes, bytes]:
    """The hash of the shared index, empty if there is none, and the bitmap of what in it does not count."""
    base, deleted, end = b"", b"", len(data) - size
    while at < end:
        kind, length = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "big")
        content = data[at + 8 : at + 8 + length]
        at += 8 + length
        if at > end or (kind[:1].islower() and kind not in _KNOWN_EXTENSIONS):
            raise ValueError("an extension that is not known")
        if kind == b"link":
            base, deleted = content[:size], content[size:]
            if len(base) < size:
                raise ValueError("it ends early")
    return (base if any(base) else b""), deleted


def _bits(data: bytes, most: int) -> Iterator[int]:
    """Which bits of a bitmap are set, of the first `most` (EWAH, as gitformat-bitmap describes it).

    Raises ValueError where the data ends early.
    """
    end = 8 + 8 * int.from_bytes(data[4:8], "big")
    if data and end > len(data):
        raise ValueError("it ends early")
    words = [int.from_bytes(data[at : at + 8], "big") for at in range(8, end, 8)] if data else []
    at, bit = 0, 0
    while at < len(words) and bit < most:
        run, literals = words[at] >> 1 & 0xFFFFFFFF, words[at] >> 33
        if words[at] & 1:
            yield from range(bit, min(bit + 64 * run, most))
        bit += 64 * run
        for word in words[at + 1 : at + 1 + literals]:
            yield from (bit + n for n in range(64) if word >> n & 1 and bit + n < most)
            bit += 64
        at += 1 + literals


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends; git's own lengths have five bytes at most."""
    value, start = data[at] & 0x7F, at
    while data[at] & 0x80:
        at += 1
        value = (value + 1 << 7) + (data[at] & 0x7F)
        if at - start > 5:
            raise ValueError("a number that is too long")
    return value, at + 1
