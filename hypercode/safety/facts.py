"""What lies at a path, as far as it makes an operation impossible or worth a question."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from hypercode.safety import files
from hypercode.safety.decision import Decision
from hypercode.safety.path_rules import HOME_SECRETS, Op, Places

__all__ = [
    "MAX_READ_BYTES",
    "Fact",
    "holds_nul",
    "is_utf16",
    "look",
    "looks_binary",
    "on_read_only_disk",
    "secret_nodes",
]

MAX_READ_BYTES = 100_000_000
"""The largest file of which a window is shown: its whole content is hashed and its lines are counted."""

_SNIFF = 8192
_WALK = 20_000
_MAGIC = (
    b"\x1f\x8b", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"PK\x03\x04", b"PK\x05\x06", b"%PDF-", b"\x7fELF", b"BZh91AY",
    b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"Rar!", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"SQLite format 3",
    b"OggS", b"fLaC", b"ID3", b"wOFF", b"wOF2", b"!<arch>\n", b"\x04\x22\x4d\x18", b"\x1f\x9d",
)  # fmt: skip
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b"))


@dataclass(frozen=True, slots=True)
class Fact:
    """Something about a file that decides; `kind` is the error kind where the decision is `DENY`."""

    decision: Decision
    rule: str
    kind: str = "refused"


def look(op: Op, path: Path, places: Places, limit: int, *, sniff: bool) -> Fact | None:
    """What speaks against an operation on what lies at a real path.  `sniff` allows to open a file to be read."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return _missing(op, path)
    except OSError as error:
        return Fact(Decision.DENY, files.reason(error), "io")
    if op in ("ls", "glob", "grep"):
        return _searched(op, path, status, places)
    if stat.S_ISDIR(status.st_mode):
        return Fact(Decision.DENY, "it is a folder, not a file; ls shows what is in it", "is_directory")
    if not stat.S_ISREG(status.st_mode):
        return Fact(Decision.DENY, "it is a pipe, socket or device, not a regular file", "not_regular")
    if status.st_size > limit:
        rule = f"its size is {status.st_size / 1e6:.1f} MB, the limit is {limit / 1e6:.0f} MB; use grep, or bash with sed -n"
        return Fact(Decision.DENY, rule, "too_large")
    if op == "read":
        return _readable(path, status, places, sniff)
    return _changeable(op, path, status, places, sniff)


def looks_binary(head: bytes) -> bool:
    """Whether the first bytes of a file are not those of a text."""
    if b"\0" in head or head.startswith(_MAGIC):
        return True
    return len(head) - len(head.translate(None, _CONTROLS)) > len(head) // 10


def is_utf16(head: bytes) -> bool:
    """Whether a file says by its first bytes that it is UTF-16 or UTF-32."""
    return head.startswith((b"\xff\xfe", b"\xfe\xff"))


def holds_nul(path: Path) -> bool:
    """Whether a file, not one of UTF-16, begins with text that holds a NUL byte, or has a hole, which reads as NUL bytes.

    Raises OSError.
    """
    fd = files.open_node(path)
    try:
        head = os.read(fd, _SNIFF)
        if b"\0" in head or is_utf16(head):
            return not is_utf16(head)
        with contextlib.suppress(OSError):  # an empty file, or a file system that does not tell
            return os.lseek(fd, 0, os.SEEK_HOLE) < os.fstat(fd).st_size
        return False
    finally:
        os.close(fd)


def _missing(op: Op, path: Path) -> Fact | None:
    if op not in ("write", "edit"):
        return None
    above = next(p for p in path.parents if p.exists())
    if not above.is_dir():
        return Fact(Decision.DENY, f"{above} is a file, not a folder", "io")
    return _repository(path) or (None if op == "edit" else _writable(above) or _environment(path))


def _searched(op: Op, path: Path, status: os.stat_result, places: Places) -> Fact | None:
    if stat.S_ISDIR(status.st_mode):
        return None
    if op == "ls":
        return Fact(Decision.DENY, "it is a file, not a folder; use read", "not_directory")
    if not stat.S_ISREG(status.st_mode):
        return Fact(Decision.DENY, "it is a pipe, socket or device, not a regular file", "not_regular")
    return _other_name(status, places) if op == "grep" else None


def _readable(path: Path, status: os.stat_result, places: Places, sniff: bool) -> Fact | None:
    return _other_name(status, places) or (_sniffed(path) if sniff else None)


def _other_name(status: os.stat_result, places: Places) -> Fact | None:
    if status.st_nlink > 1 and (status.st_dev, status.st_ino) in secret_nodes(places):
        return Fact(Decision.DENY, "another name of a file with passwords or keys")
    return None


def _changeable(op: Op, path: Path, status: os.stat_result, places: Places, sniff: bool) -> Fact | None:
    found = _repository(path) or _writable(path.parent) or (_sniffed(path) if op == "edit" and sniff else None)
    if found is None and status.st_nlink > 1 and _names_inside(status, places) < status.st_nlink:
        found = Fact(Decision.ASK, "the file has another name (hard link) outside; a change splits them")
    planted = _environment(path)
    return planted if planted and (found is None or found.decision is Decision.ASK) else found


def _environment(path: Path) -> Fact | None:
    """A program of a Python environment, whatever the folder of that is called: shells and editors start some unasked."""
    if path.parent.name.casefold() == "bin" and os.path.lexists(path.parent.parent / "pyvenv.cfg"):
        return Fact(Decision.ALWAYS_ASK, "settings that can run code by themselves")
    return None


def _sniffed(path: Path) -> Fact | None:
    try:
        fd = files.open_node(path)
    except OSError as error:
        return Fact(Decision.DENY, files.reason(error), "io")
    try:
        head = os.read(fd, _SNIFF)
    except OSError as error:
        return Fact(Decision.DENY, files.reason(error), "io")
    finally:
        os.close(fd)
    if is_utf16(head):
        return Fact(Decision.DENY, "it is UTF-16, not UTF-8; convert it first (bash: iconv)", "encoding")
    return Fact(Decision.DENY, "it is binary, not text", "binary") if looks_binary(head) else None


def on_read_only_disk(folder: Path) -> bool:
    """Whether nobody can change anything in a folder, because of how its file system is mounted.  Raises OSError."""
    return hasattr(os, "statvfs") and bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def _writable(folder: Path) -> Fact | None:
    if os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return None
    why = "its file system is read-only" if on_read_only_disk(folder) else "permission denied"
    return Fact(Decision.DENY, f"the folder {folder} is not writable: {why}", "io")


def _repository(path: Path) -> Fact | None:
    """A folder laid out like a repository without `.git` in its name (a bare one): git runs what its files name.

    It is one with this file or it already is; so the order in which its parts are written is of no use.
    """
    for folder in path.parents:
        coming = path.relative_to(folder).parts[0].casefold()
        if any(
            all(name.casefold() == coming or os.path.lexists(folder / name) for name in layout)
            for layout in (("HEAD", "objects", "refs"), ("HEAD", "commondir"))
        ):
            return Fact(Decision.DENY, "version control's own files; they can run code")
    return None


def secret_nodes(places: Places) -> set[tuple[int, int]]:
    """Which files of the home folder hold secrets, by device and number, so that another name does not open them."""
    nodes = set()
    for path in _secret_files(places):
        try:
            status = path.stat()
        except OSError:
            continue
        nodes.add((status.st_dev, status.st_ino))
    return nodes


def _secret_files(places: Places) -> Iterator[Path]:
    for row in HOME_SECRETS:
        for path in places.home.glob("/".join(row).replace("@", " ")):
            yield from islice(path.rglob("*"), 1000) if path.is_dir() else [path]
    for own in places.own:
        yield from islice(own.rglob("*"), 1000) if own.is_dir() else [own]


def _names_inside(status: os.stat_result, places: Places) -> int:
    """How many names of a file are found below the roots, in a walk of bounded length."""
    found, left = 0, _WALK
    waiting = list(places.roots)
    while waiting and left > 0 and found < status.st_nlink:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in islice(entries, left):
                    left -= 1
                    found += entry.inode() == status.st_ino and not entry.is_dir(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
        except OSError:
            continue
    return found
