"""What undo keeps: contents by their hash, and the steps of each session, in the program's state folder.

Everything is written all or nothing.  A content is only believed when its hash is right, so a torn or missing one is a
refusal, never a wrong byte.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from hypercode.safety.private_file import private_folder, replace_private

__all__ = ["Delta", "Node", "Step", "Store"]

_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class Node:
    """What lay at a path.  `kind` is file, folder or other (a link, a device); `digest` is the hash of a file's content.

    `why` says why the content is not kept; empty where it is.
    """

    kind: str
    mode: int
    size: int = 0
    digest: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """What a step did to one path; None: nothing lay there.

    `came`: the file is older than the step, so it may have been moved here from where nobody looked.
    """

    path: str
    before: Node | None
    after: Node | None
    came: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What one tool call changed.  `undone` holds the places in `deltas` that were undone; None: it was not undone."""

    number: int
    label: str
    time: float
    deltas: tuple[Delta, ...]
    notes: tuple[str, ...] = ()
    undone: tuple[int, ...] | None = None

    def digests(self) -> Iterator[str]:
        """The contents it needs."""
        return (node.digest for d in self.deltas for node in (d.before, d.after) if node is not None and node.digest)


class Store:
    """The kept contents of a workspace, at most about `limit` bytes, and the steps of one session.

    A process holds a shared lock while it lives; contents are only dropped by one that is alone.  Raises OSError.
    """

    def __init__(self, folder: Path, session: str, *, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self._blobs = folder / "contents"
        self._sessions = folder / "sessions"
        self._steps = self._sessions / session
        self._made: set[str] = set()
        self.written = 0
        """Bytes of contents written since the last trim."""
        private_folder(folder)
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._share()
        for part in (self._blobs, self._sessions, self._steps):
            private_folder(part)

    def _share(self) -> None:
        """Take a share in the lock; who holds it alone does so for a moment only."""
        last = time.monotonic() + _WAIT
        while time.monotonic() < last:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:  # a file system without locks
                return
            else:
                return

    def close(self) -> None:
        """Let go of the lock."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # -- contents ----------------------------------------------------------------

    def put(self, data: bytes) -> str:
        """Keep a content; its hash."""
        digest = sha256(data).hexdigest()
        place = f"{self._blobs}/{digest[:2]}/{digest[2:]}"
        with contextlib.suppress(OSError):
            if os.stat(place).st_size == len(data) and (len(data) < 4096 or self.get(digest) is not None):
                return digest
        if digest[:2] not in self._made:
            private_folder(self._blobs / digest[:2])
            self._made.add(digest[:2])
        self._write(place, data)
        self.written += len(data)
        return digest

    def _write(self, place: str, data: bytes) -> None:
        """Like `replace_private`, without waiting for the disk: a torn content is known by its hash."""
        temp = f"{place}.{secrets.token_hex(4)}"
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(fd, view) :]
            finally:
                os.close(fd)
            os.rename(temp, place)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temp)
            raise

    def get(self, digest: str) -> bytes | None:
        """A kept content; None where it is gone or damaged."""
        try:
            data = self._place(digest).read_bytes()
        except OSError:
            return None
        return data if sha256(data).hexdigest() == digest else None

    def _place(self, digest: str) -> Path:
        return self._blobs / digest[:2] / digest[2:]

    # -- steps -------------------------------------------------------------------

    def save(self, step: Step) -> None:
        """Write a step, over an earlier state of it."""
        replace_private(self._steps / f"{step.number:08}.json", json.dumps(asdict(step)).encode("ascii"))

    def drop(self, step: Step) -> None:
        """Forget a step."""
        with contextlib.suppress(FileNotFoundError):
            (self._steps / f"{step.number:08}.json").unlink()

    def load(self) -> tuple[list[Step], int]:
        """The session's steps, oldest first, and how many cannot be read."""
        paths = sorted(self._steps.glob("*.json"))
        steps = [step for path in paths if (step := _read(path))]
        return steps, len(paths) - len(steps)

    # -- keeping within the limit --------------------------------------------------

    def trim(self, needed: Iterable[str], *, most: int) -> int:
        """Drop contents that nobody needs, and the oldest steps while there is too much; how many steps were dropped.

        `needed` are further contents to keep; `most` is how many steps of all sessions are kept.
        """
        with self._alone() as alone:
            return self._trim(set(needed), most) if alone else 0

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        """Hold the lock for oneself, if no other process has a share in it."""
        alone = True
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            alone = False
        try:
            yield alone
        finally:
            self._share()

    def _trim(self, needed: set[str], most: int) -> int:
        sizes = {path.parent.name + path.name: path.stat().st_size for path in self._blobs.glob("*/*")}
        steps = self._all_steps()
        dropped = 0
        while True:
            wanted = needed.union(*(set(step.digests()) for _, step in steps))
            total = sum(size for digest, size in sizes.items() if digest in wanted)
            if len(steps) <= 1 or (total <= self.limit and len(steps) <= most):
                break
            steps.pop(0)[0].unlink()
            dropped += 1
        for digest in sizes.keys() - wanted:
            self._place(digest).unlink()
        self.written = 0
        for folder in self._sessions.iterdir():
            if folder != self._steps and not any(folder.iterdir()):
                folder.rmdir()
        return dropped

    def _all_steps(self) -> list[tuple[Path, Step]]:
        found = [(path, step) for path in self._sessions.glob("*/*.json") if (step := _read(path))]
        return sorted(found, key=lambda entry: entry[1].time)

    # -- what was set aside for a moment -------------------------------------------

    def note_aside(self, path: Path, temp: str) -> Path:
        """Note that the file at a path has the name `temp` for a moment; the note."""
        note = self.folder / f"aside-{secrets.token_hex(8)}.json"
        replace_private(note, json.dumps([str(path), temp]).encode("ascii"), sync=False)
        return note

    def asides(self) -> Iterator[tuple[Path, Path, str]]:
        """What a killed process had set aside: the note, the path and the name it has now.  Only for who is alone."""
        with self._alone() as alone:
            for note in self.folder.glob("aside-*.json") if alone else ():
                with contextlib.suppress(OSError, ValueError, TypeError):
                    path, temp = json.loads(note.read_bytes())
                    yield note, Path(path), str(temp)


def _read(path: Path) -> Step | None:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        deltas = tuple(
            Delta(d["path"], _node(d["before"]), _node(d["after"]), bool(d["came"])) for d in content["deltas"]
        )
        undone = None if content["undone"] is None else tuple(int(place) for place in content["undone"])
        return Step(
            int(content["number"]),
            str(content["label"]),
            float(content["time"]),
            deltas,
            tuple(map(str, content["notes"])),
            undone,
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _node(content: dict[str, Any] | None) -> Node | None:
    if content is None:
        return None
    return Node(
        str(content["kind"]),
        int(content["mode"]),
        int(content["size"]),
        str(content["digest"]),
        str(content["why"]),
    )
