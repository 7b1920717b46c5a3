"""The journal of a session: what happened, on disk before it is acted on, in a file that is only ever appended to.

Record types and their fields::

    session    cwd model version        a start, also of each resumption
    user       message                  before the model is asked; with `shell` a command that the person ran, with
                                    `typed` one that the message stands for; `replaces` is the number of the record of
                                    the same message without the files that go with it
    partial    text reasoning           what has arrived of a reply, in increments
    assistant  message finish_reason turn usage cost    the whole reply; replaces the partials before it, and `instead_of`
                                    has the numbers of those that could not be written  (`so_far` as below)
    intent     call_id name arguments begun    before a call is run; where `begun` is false it was not, and this comes
                                    with its result
    result     message seconds is_error kind shown    (`shown`: the text that the person saw, or how much of the message)
    turn_end   turn outcome usage cost  what the reply of that turn has told of usage and cost is not added once more
                                    (`so_far`: turns, cost, model and name of the session, added here)
    model      model                    from here on
    name       name                     what the person calls the session from here on
    notice     level text               what was announced
    spent      usage cost               of a model call that was no turn, as for a summary  (`so_far` as above)
    compaction messages                 the conversation goes on with these in place of what was said before
    rewind     to                       the conversation goes on before the record of that number
    copy       of                       this file goes on with a copy of another session

A session has one writer, who holds a lock on its file.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hypercode.errors import ConfigError
from hypercode.memory.history import Loaded, load, rebuild
from hypercode.memory.records import RESERVED, encode, scan
from hypercode.memory.session_file import APPEND, lock, open_to_read, read_all, sync_folder
from hypercode.memory.spending import Spending
from hypercode.safety.private_file import private_folder
from hypercode.safety.redact import RedactedStream, Redactor

__all__ = ["PARTIAL_SECONDS", "Journal", "Opened", "open_session"]

PARTIAL_SECONDS = 0.25
"""How long a piece of a streaming reply may wait for its record."""


class _Entry(NamedTuple):
    """A record on its way into the file."""

    kind: str
    line: bytes
    seq: int = 0


class Journal:
    """The writing end of a session's file, which is made with the first record.

    Secrets are taken out of every record.  Where the file cannot be written the records wait in memory, `on_failure` is
    told once, and each further record tries again; `saved` says whether everything is on disk.
    """

    def __init__(
        self,
        path: Path,
        *,
        redactor: Redactor,
        on_failure: Callable[[str], object],
        after: Loaded | None = None,
        waiting: Iterable[bytes] = (),
        fd: int | None = None,
    ) -> None:
        self.path = path
        self.seq = after.seq if after else 0
        self._redactor = redactor
        self._on_failure = on_failure
        self._spending = Spending(after.turns, after.cost) if after else Spending()
        self._model = after.model if after else None
        self._name = after.name if after else None
        self._fd = fd
        self._torn = False
        self._told = False
        self._waiting = [_Entry("", line) for line in waiting]
        self._pieces: dict[str, list[str]] = {}
        self._streams: dict[str, RedactedStream] = {}
        self._last_partial = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def session(self) -> str:
        """The session's id."""
        return self.path.stem

    @property
    def saved(self) -> bool:
        """Whether every record so far is on disk."""
        return not self._waiting

    def append(self, kind: str, /, *, sync: bool = True, **fields: Any) -> bool:
        """Write a record, with `sync` through to the disk, and say whether it is there; its number is `seq`.

        A `partial` adds to the texts of the ones before it.  Raises ValueError for a field name that is taken.
        """
        if RESERVED & fields.keys():
            raise ValueError(f"reserved: {sorted(RESERVED & fields.keys())}")
        if kind == "partial":
            return self._increment(fields, sync)
        if kind == "assistant":
            self._forget_partial()
        elif kind == "notice":  # it may come in the middle of a reply
            self.flush()
        else:
            self._end_partial()
        return self._record(kind, self._clean(fields), sync)

    def partial(self, text: str = "", reasoning: str = "") -> None:
        """A piece of the reply that is streaming; its record follows within `PARTIAL_SECONDS`.

        Without a running event loop, at once.
        """
        for name, piece in (("text", text), ("reasoning", reasoning)):
            if piece:
                self._pieces.setdefault(name, []).append(piece)
        if self._timer is not None:
            return
        wait = self._last_partial + PARTIAL_SECONDS - time.monotonic()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            wait = 0
        if wait <= 0:
            self.flush()
        else:
            self._timer = loop.call_later(wait, self.flush)

    def flush(self) -> None:
        """Write the pieces of the reply that still wait."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pieces:
            fields = {name: "".join(pieces) for name, pieces in self._pieces.items()}
            self._pieces.clear()
            self._last_partial = time.monotonic()
            self._increment(fields, sync=False)

    def read(self) -> Loaded:
        """The session as its records have it, those included that are not on disk yet.  Raises ConfigError."""
        self.flush()
        data = b"".join(entry.line for entry in self._waiting)
        try:
            fd = open_to_read(self.path)
        except ConfigError:
            if not self._waiting and self.seq:
                raise
            return rebuild(self.path, scan(data))
        try:
            before = read_all(fd)
        finally:
            os.close(fd)
        return rebuild(self.path, scan(before + b"\n" + data if data else before))

    def close(self) -> None:
        """Write what still waits, and let go of the file.  A later record opens it again."""
        self._end_partial()
        if self._fd is not None or self._waiting:
            self._settle(sync=True)
        self._release()

    # -- records -----------------------------------------------------------------

    def _record(self, kind: str, fields: dict[str, Any], sync: bool) -> bool:
        if kind in ("session", "model"):
            self._model = fields.get("model") or self._model
        elif kind == "name":
            self._name = fields.get("name")
        if self._spending.add(kind, fields):
            fields = {**fields, "so_far": self._so_far()}
        self.seq += 1
        if kind == "assistant" and (dropped := [entry.seq for entry in self._waiting if entry.kind == "partial"]):
            self._waiting = [entry for entry in self._waiting if entry.kind != "partial"]
            fields = {**fields, "instead_of": dropped}
        line = encode({"type": kind, "time": round(time.time(), 3), "seq": self.seq, **fields})
        self._waiting.append(_Entry(kind, line, self.seq))
        return self._settle(sync)

    def _clean(self, fields: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._redactor.value(fields)  # type: ignore[no-any-return]
        except RecursionError:
            return {name: self._clean_one(name, value) for name, value in fields.items()}

    def _clean_one(self, name: str, value: Any) -> Any:
        try:
            return self._redactor.value({name: value})[name]
        except RecursionError:
            return "[not kept: it is nested too deeply]"

    def _so_far(self) -> dict[str, Any]:
        named = {"name": self._name} if self._name else {}
        return {"turns": self._spending.turns, "cost": self._spending.cost, "model": self._model, **named}

    def _increment(self, fields: dict[str, Any], sync: bool) -> bool:
        values = {}
        for name, value in fields.items():
            if isinstance(value, str):
                value = self._streams.setdefault(name, self._redactor.stream()).feed(value)
            if value != "":
                values[name] = self._redactor.value(value) if not isinstance(value, str) else value
        return self._record("partial", values, sync) if values else self.saved

    def _end_partial(self) -> None:
        self.flush()
        rest = {name: text for name, stream in self._streams.items() if (text := stream.close())}
        self._streams.clear()
        if rest:
            self._record("partial", rest, sync=False)

    def _forget_partial(self) -> None:
        """The whole reply has come."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pieces.clear()
        self._streams.clear()

    # -- the file ----------------------------------------------------------------

    def _settle(self, sync: bool) -> bool:
        """Write what waits.  After a failed sync it is written again: who reads takes a record only once."""
        written: list[_Entry] = []
        try:
            fd = self._opened()
            while self._waiting:
                self._put(fd, self._waiting[0].line)
                written.append(self._waiting.pop(0))
            if sync:
                os.fsync(fd)
        except OSError as error:
            if not self._waiting:
                self._waiting = written
            self._fail(error)
            return False
        self._told = False
        return True

    def _opened(self) -> int:
        if self._fd is not None:
            if os.fstat(self._fd).st_nlink:
                return self._fd
            self._release()
            self._on_failure(
                f"The file of this session was deleted: {self.path}. A new one has what comes from now on."
            )
        private_folder(self.path.parent, follow=False)
        fd = os.open(self.path, APPEND | os.O_CREAT, 0o600)
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise OSError(errno.ENXIO, "it is not a regular file", str(self.path))
            if stat.S_IMODE(info.st_mode) != 0o600:
                os.fchmod(fd, 0o600)
            if not lock(fd):
                raise OSError(errno.EBUSY, "another hypercode writes to it", str(self.path))
            if not os.fstat(fd).st_nlink:  # deleted between opening and locking
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(self.path))
            self._torn = info.st_size > 0 and os.pread(fd, 1, info.st_size - 1) != b"\n"
            sync_folder(self.path.parent)
        except OSError:
            os.close(fd)
            raise
        self._fd = fd
        return fd

    def _put(self, fd: int, line: bytes) -> None:
        """One record, one write; of a record that does not fit nothing stays."""
        data = b"\n" + line if self._torn else line
        count = os.write(fd, data)
        if count < len(data):
            try:
                while count < len(data):
                    count += os.write(fd, data[count:])
            except OSError:
                self._take_back(fd, count)
                raise
        self._torn = False

    def _take_back(self, fd: int, count: int) -> None:
        try:
            os.ftruncate(fd, os.fstat(fd).st_size - count)
        except OSError:
            self._torn = True

    def _fail(self, error: OSError) -> None:
        if not self._told:
            self._told = True
            self._on_failure(
                f"This conversation is not being saved: {self.path}: {error.strerror}. "
                "It goes on, and saving is tried again with each step."
            )

    def _release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A session that goes on: where to write, what it was, and what the person should know about the opening.

    `copy_of` is the session that somebody else has open, where this is a copy of it.
    """

    journal: Journal
    loaded: Loaded
    notices: tuple[str, ...]
    copy_of: str | None = None


def open_session(path: Path, *, redactor: Redactor, on_failure: Callable[[str], object], fresh: str) -> Opened:
    """Go on with a saved session.

    A torn end is sealed and damaged lines are copied beside the file; nothing in it is changed.  Where another process
    has the session open this one goes on with a copy, under the id `fresh`.  Raises ConfigError where there is no such
    session or the file is a link.
    """
    try:
        fd = open_to_read(path, APPEND)
    except ConfigError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        loaded = load(path)  # it can be read, but not written: the first record will say so
        journal = Journal(path, redactor=redactor, on_failure=on_failure, after=loaded)
        return Opened(journal, loaded, tuple(loaded.notices))
    try:
        free = lock(fd)
        found = scan(read_all(fd))
        if free:
            kept = _keep_damaged(path, found.damaged)
            if stat.S_IMODE(os.fstat(fd).st_mode) != 0o600:
                os.fchmod(fd, 0o600)
    except OSError as error:
        os.close(fd)
        raise ConfigError(f"cannot be read ({error.strerror})", file=str(path)) from error
    if not free:
        os.close(fd)
        return _copy(rebuild(path, found), redactor, on_failure, fresh)
    loaded = rebuild(path, found, kept)
    journal = Journal(path, redactor=redactor, on_failure=on_failure, after=loaded, fd=fd)
    journal._torn = found.torn
    return Opened(journal, loaded, tuple(loaded.notices))


def _copy(loaded: Loaded, redactor: Redactor, on_failure: Callable[[str], object], fresh: str) -> Opened:
    other = loaded.session
    lines = [encode({k: v for k, v in record.items() if k != "sum"}) for record in loaded.records]
    loaded.path = loaded.path.with_name(f"{fresh}.jsonl")
    journal = Journal(loaded.path, redactor=redactor, on_failure=on_failure, after=loaded, waiting=lines)
    journal.append("copy", of=other)
    notice = f"The session {other} is open in another hypercode; this is a copy of it, {fresh}."
    return Opened(journal, loaded, (notice, *loaded.notices), other)


def _keep_damaged(path: Path, damaged: list[bytes]) -> Path | None:
    """Copy what cannot be read into a file beside the session, once; None where there is nothing or that fails."""
    if not damaged:
        return None
    side = path.with_suffix(".damaged")
    try:
        fd = os.open(side, APPEND | os.O_CREAT, 0o600)
        try:
            known = read_all(fd)
            for line in damaged:
                if line + b"\n" not in known:
                    os.write(fd, line + b"\n")
        finally:
            os.close(fd)
    except OSError:
        return None
    return side
