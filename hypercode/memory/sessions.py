"""The saved conversations: where they lie, what a list says about them, finding and deleting one.

They are `<state>/sessions/<folder-hash>/<session-id>.jsonl`, one folder for each workspace.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypercode.budget import billed
from hypercode.errors import ConfigError
from hypercode.memory.records import Record, scan
from hypercode.memory.session_file import is_open, open_to_read
from hypercode.messages import is_report, spoken, text_of

__all__ = ["Head", "delete", "find", "folder_of", "head", "heads", "ids", "latest", "path_of"]

_BLOCK = 32 * 1024
_WORDS = 100  # characters of the first message
_PART = 3  # characters of an id that are enough to mean it; fewer would be met by chance, "1" is the first of a list
_ID = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Head:
    """What a list says about a session.

    `started` and `last` are seconds since the epoch, `words` the beginning of the first message on one line, `cost` USD (None
    where no provider has said), `turns` model calls, `name` what the person calls it.
    """

    path: Path
    session: str
    started: float
    last: float
    words: str
    model: str | None
    cost: float | None
    turns: int
    cwd: str | None
    name: str | None = None


def folder_of(state: Path, cwd: Path) -> Path:
    """Where the sessions of a workspace lie; `cwd` is resolved first."""
    digest = hashlib.sha256(os.fsencode(cwd.resolve())).hexdigest()
    return state / "sessions" / digest[:16]


def path_of(state: Path, cwd: Path, session: str) -> Path:
    """The file of a session.  Raises ConfigError for an id that is none."""
    if not _ID.fullmatch(session):
        raise ConfigError(f"{session!r} is no session id; `hypercode sessions` lists them")
    return folder_of(state, cwd) / f"{session}.jsonl"


def heads(state: Path, cwd: Path | None) -> list[Head]:
    """The sessions of a workspace (None: of all), the one used last first.  What cannot be read is left out."""
    found = (head(path) for path in _files(state, cwd))
    return sorted((h for h in found if h is not None), key=lambda h: (h.last, h.session), reverse=True)


def ids(state: Path, cwd: Path) -> list[str]:
    """The ids of the sessions of a workspace, the one begun last first; no file is opened."""
    return sorted((path.stem for path in _files(state, cwd) if _ID.fullmatch(path.stem)), reverse=True)


def latest(state: Path, cwd: Path) -> Path:
    """The session of this workspace that was used last and in which something was said.  Raises ConfigError."""
    for found in heads(state, cwd):
        if found.words:
            return found.path
    raise ConfigError(f"there is no saved session in {cwd}; `hypercode sessions --all` lists those of other folders")


def find(state: Path, cwd: Path, name: str) -> Path:
    """The session of that id or name, or the only one whose id begins or ends with it (three characters at least).

    This workspace's come first.  Raises ConfigError where there is none, or more than one.
    """
    for where in (cwd, None):
        paths = _files(state, where)
        exact = [path for path in paths if path.stem == name]
        close = exact or [h.path for h in heads(state, where) if h.name and h.name.casefold() == name.casefold()]
        if not close and len(name) >= _PART and _ID.fullmatch(name):
            close = [path for path in paths if path.stem.startswith(name) or path.stem.endswith(name)]
        if len(close) == 1 or exact:
            return close[0]
        if close:
            ids = ", ".join(sorted(path.stem for path in close)[:5])
            raise ConfigError(f"{name!r} could be {len(close)} sessions: {ids}; give more of the id")
    raise ConfigError(f"there is no session {name!r}; `hypercode sessions --all` lists them")


def delete(path: Path) -> None:
    """Delete a session and what was kept beside it.  Raises ConfigError where it is open, or cannot be deleted."""
    if is_open(path):
        raise ConfigError("is open in another hypercode; leave that one first", file=str(path))
    try:
        path.unlink()
        path.with_suffix(".damaged").unlink(missing_ok=True)
        (path.parents[2] / "traces" / path.name).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot be deleted ({error.strerror})", file=str(path)) from None


def _files(state: Path, cwd: Path | None) -> list[Path]:
    folder = state / "sessions" if cwd is None else folder_of(state, cwd)
    return sorted(folder.glob("*.jsonl" if cwd is not None else "*/*.jsonl"))


def head(path: Path) -> Head | None:
    """What a list says about a session, from the beginning and the end of its file; None where it cannot be read."""
    try:
        fd = open_to_read(path)
    except ConfigError:
        return None
    try:
        info = os.fstat(fd)
        first = _beginning(fd, info.st_size)
        last = first if info.st_size <= _BLOCK else _ending(fd, info.st_size)
    except OSError:
        return None
    finally:
        os.close(fd)
    start: Record = next((r for r in first if r["type"] == "session"), {})
    so_far: dict[str, Any] = next((r["so_far"] for r in reversed(last) if isinstance(r.get("so_far"), dict)), {})
    times = [r["time"] for r in (*first[:1], *last[-1:]) if isinstance(r.get("time"), int | float)]
    cost, turns = so_far.get("cost"), so_far.get("turns")
    return Head(
        path=path,
        session=path.stem,
        started=times[0] if times else info.st_mtime,
        last=times[-1] if times else info.st_mtime,
        words=_first_words(first),
        model=_text(so_far.get("model")) or _text(start.get("model")),
        cost=billed(cost) if isinstance(cost, int | float) else None,
        turns=turns if isinstance(turns, int) else 0,
        cwd=_text(start.get("cwd")),
        name=_name(first, last),
    )


def _beginning(fd: int, size: int) -> list[Record]:
    """The records up to the first message of the person."""
    length = _BLOCK
    while True:
        data = os.pread(fd, length, 0)
        if length < size:
            data = data[: data.rfind(b"\n") + 1]
        records = scan(data).records
        if length >= size or _first_words(records) or length > 1 << 26:
            return records
        length *= 8


def _ending(fd: int, size: int) -> list[Record]:
    """The last records, from before the last end of a turn on."""
    length = _BLOCK
    while True:
        data = os.pread(fd, length, max(size - length, 0))
        if length < size:
            data = data[data.find(b"\n") + 1 :]
        at = data.rfind(b'\n{"type":"turn_end"')
        if at >= 0 or length >= size:
            return scan(data[at + 1 :] if at >= 0 else data).records
        length *= 8


def _name(first: list[Record], last: list[Record]) -> str | None:
    for record in (*reversed(last), *reversed(first)):
        so_far = record.get("so_far")
        name = record.get("name") if record["type"] == "name" else isinstance(so_far, dict) and so_far.get("name")
        if isinstance(name, str):
            return name or None
    return None


def _first_words(records: list[Record]) -> str:
    for record in records:
        message = record.get("message")
        if record["type"] == "user" and isinstance(message, dict) and not is_report(message):
            said = _text(record.get("typed")) or spoken(text_of(message))[1]
            return " ".join(said[: 4 * _WORDS].split())[:_WORDS]
    return ""


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
