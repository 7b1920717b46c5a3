"""What is different between two scans of a workspace."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from hypercode.memory.undo_store import Delta, Node
from hypercode.memory.workspace_scan import CTIME, DIGEST, INODE, MODE, MTIME, SECRET, SIZE, WHY, Row, Scan

__all__ = ["compare"]


def compare(before: Scan, after: Scan) -> tuple[list[Delta], list[str]]:
    """What is different, by path, and what has changed that nobody looked at or kept, in sentences."""
    return _Difference(before, after).all()


@dataclass
class _Difference:
    before: Scan
    after: Scan

    def all(self) -> tuple[list[Delta], list[str]]:
        deltas = sorted([*self._files(), *self._folders()], key=lambda delta: delta.path)
        lost = {d.path: node.why for d in deltas for node in (d.before, d.after) if node is not None and node.why}
        secret = [path for path, why in lost.items() if why == SECRET]
        other = [path for path in lost if path not in secret]
        notes = [
            _changed(paths, why) for paths, why in ((other, ""), (secret, ", as it usually holds secrets")) if paths
        ]
        notes += [
            f"What happened in {path} cannot be undone: {why}."
            for path, why in self.after.closed.items()
            if path not in self.before.closed
        ]
        return deltas, notes

    def _files(self) -> Iterator[Delta]:
        old, new = self.before.files, self.after.files
        for path, row in new.items():
            was = old.get(path)
            if was is row or (was is not None and _same(was, row)):
                continue
            before = self._node(self.before, path)
            if before is None and not self._looked_at(path, self.before):
                continue
            yield Delta(path, before, _file(row), before is None and self._came(row))
        for path, row in old.items():
            if path not in new:
                after = self._node(self.after, path)
                if after is not None or (self._looked_at(path, self.after) and not os.path.lexists(path)):
                    yield Delta(path, _file(row), after)

    def _folders(self) -> Iterator[Delta]:
        old, new = self.before.folders, self.after.folders
        for path, mode in new.items():
            if path in self.before.files or old.get(path) == mode or not self._looked_at(path, self.before):
                continue
            yield Delta(path, self._node(self.before, path), Node("folder", mode))
        for path, mode in old.items():
            gone = path not in new and path not in self.after.files
            if gone and self._looked_at(path, self.after) and (os.path.islink(path) or not os.path.isdir(path)):
                yield Delta(path, Node("folder", mode), self._node(self.after, path))

    def _node(self, found: Scan, path: str) -> Node | None:
        if path in found.files:
            return _file(found.files[path])
        if path in found.folders:
            return Node("folder", found.folders[path])
        return Node("other", 0) if path in found.others else None

    def _looked_at(self, path: str, found: Scan) -> bool:
        """Whether the scan would have seen something at the path: no folder on the way was left out."""
        if path in found.closed:
            return False
        parent = os.path.dirname(path)
        while parent not in found.folders:
            if parent in found.closed or parent == "/":
                return False
            parent = os.path.dirname(parent)
        return True

    def _came(self, row: Row) -> bool:
        if min(row[MTIME], row[CTIME]) >= self.before.started:
            return False
        return row[INODE] not in self._inodes

    @cached_property
    def _inodes(self) -> set[int]:
        return {row[INODE] for row in self.before.files.values()}


def _changed(paths: Sequence[str], why: str) -> str:
    some = ", ".join(sorted(paths)[:3]) + (", …" if len(paths) > 3 else "")
    plural = "s" * (len(paths) != 1)
    return f"This cannot be undone for {len(paths)} file{plural} whose content is not kept{why}: {some}."


def _same(one: Row, other: Row) -> bool:
    if one[MODE] != other[MODE]:
        return False
    if one[WHY] or other[WHY]:
        return bool(one[SIZE] == other[SIZE] and one[MTIME] == other[MTIME] and one[INODE] == other[INODE])
    return bool(one[DIGEST] == other[DIGEST])


def _file(row: Row) -> Node:
    return Node("file", stat.S_IMODE(row[MODE]), row[SIZE], row[DIGEST], row[WHY])
