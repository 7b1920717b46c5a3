"""What a watch knows of single paths: what was there in this session, what lies there now, when it came there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from hypercode.safety.bounded_read import whole
from hypercode.safety.obeyed import last_change

__all__ = ["Seen", "content_of", "git_changed_later", "inode_of", "link_of", "moved_later", "node_of"]

_MOST_SEEN = 5_000
_MOST_TEXT = 64_000
_JUDGED_BY = ("", "/HEAD", "/config", "/config.worktree", "/commondir", "/hooks")
"""In a git folder: what decides about what it runs.  The folder itself changes with each git command, so a file counts only."""


class Seen:
    """The name and content of what was obeyed in this session, the last 5 000: what comes back is nothing new.

    `missed` are the places of git folders that were empty at some time, `appeared` those where one appeared while a command
    ran: what is there now is none of the person's from before.
    """

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str], None] = {}
        self.missed: set[str] = set()
        self.appeared: set[str] = set()

    def add(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Note what is there before a command."""
        for pair in pairs:
            self._pairs.pop(pair, None)
            self._pairs[pair] = None
        while len(self._pairs) > _MOST_SEEN:
            del self._pairs[next(iter(self._pairs))]

    def __contains__(self, pair: object) -> bool:
        return pair in self._pairs


def moved_later(name: str, root: str, stood: Mapping[str, int], until: int) -> bool:
    """Whether a folder between a path and its root was put there or changed after a time (ns), or the root is another.

    What lies in a folder keeps its times when the folder is moved.  `stood` has the numbers that the roots had.
    """
    if stood.get(root) not in (None, inode_of(root)):
        return True
    folder = os.path.dirname(name)
    while len(folder) > len(root):
        try:
            if os.lstat(folder).st_ctime_ns > until:
                return True
        except OSError:
            pass  # what is in it is gone as well
        folder = os.path.dirname(folder)
    return False


def git_changed_later(name: str, until: int) -> bool:
    """Whether what decides about what a git folder, or a `.git` file, runs was changed after a time (ns)."""
    judged = [place for file in _JUDGED_BY if os.path.lexists(place := name + file)]
    return any(last_change(place) > until for place in judged if place != name or os.path.isfile(place))


def link_of(name: str) -> str | None:
    """What a link says; None for what is none."""
    try:
        return os.readlink(name)
    except OSError:
        return None


def node_of(name: str) -> tuple[int, int] | None:
    """Device and inode; None if there is nothing."""
    try:
        status = os.lstat(name)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def inode_of(name: str) -> int | None:
    """The number of a file or folder, which stays the same after a start of the machine; None if there is nothing."""
    node = node_of(name)
    return node[1] if node else None


def content_of(name: str) -> str | None:
    """What is in a file of at most 64 000 bytes; a link is none, since what it leads to can change unseen."""
    try:
        return None if os.path.islink(name) else whole(name, _MOST_TEXT).decode("utf-8", "surrogateescape")
    except OSError:
        return None
