"""Which files git tracks, read from its index without calling git (gitformat-index, versions 2 to 4)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hypercode.safety.sandbox_policy import git_folders

__all__ = ["Tracked"]

_LIMIT = 100_000_000
_HEADER, _ENTRY = 12, 62
_EXTENDED = 0x4000


class Tracked:
    """The tracked files of the repositories asked about; each index is read once."""

    def __init__(self) -> None:
        self._names: dict[Path, frozenset[bytes]] = {}

    def holds(self, path: Path) -> bool:
        """Whether git tracks a file, or something in a folder, in the innermost repository around it."""
        tree = next((folder for folder in path.parents if os.path.lexists(folder / ".git")), None)
        if tree is None:
            return False
        if tree not in self._names:
            self._names[tree] = _with_folders(git_folders(tree))
        return os.fsencode(path.relative_to(tree)) in self._names[tree]


def _with_folders(gits: list[Path]) -> frozenset[bytes]:
    names = set[bytes]()
    try:
        with (gits[0] / "index").open("rb") as file:
            for name in _entries(file.read(_LIMIT)):
                while name and name not in names:
                    names.add(name)
                    name = name.rpartition(b"/")[0]
    except (OSError, ValueError, IndexError):
        pass  # what cannot be read is tracked no further
    return frozenset(names)


def _entries(data: bytes) -> Iterator[bytes]:
    """Raises ValueError, IndexError where the data ends early."""
    version, count = (int.from_bytes(data[at : at + 4], "big") for at in (4, 8))
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        return
    at, name = _HEADER, b""
    for _ in range(count):
        flags = int.from_bytes(data[at + _ENTRY - 2 : at + _ENTRY], "big")
        start = at + _ENTRY + (2 if version > 2 and flags & _EXTENDED else 0)
        if version == 4:  # only how a name differs from the one before
            cut, start = _number(data, start)
            end = data.index(b"\0", start)
            name = name[: len(name) - cut] + data[start:end]
            at = end + 1
        else:
            end = data.index(b"\0", start)
            name = data[start:end]
            at += (end - at) // 8 * 8 + 8
        yield name


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = (value + 1 << 7) + (data[at] & 0x7F)
    return value, at + 1
