"""Which half-written files exist, so that those of a killed process are removed at the next start.

One small file a replacement, locked while its writer lives.  A lock dies with its process, so what another running
session has in its hands is never touched.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from hypercode.safety.path_rules import TEMPORARY
from hypercode.safety.private_file import private_folder

__all__ = ["Pending"]


class Pending:
    """The record of half-written files, in a folder of its own; without a folder nothing is recorded."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def record(self, path: Path) -> Iterator[None]:
        """Note a file for as long as it is half written.  That it cannot be noted is no reason not to write it."""
        entry, fd = None, None
        if self._folder is not None:
            with contextlib.suppress(OSError):
                entry, fd = _enter(self._folder, path)
        try:
            yield
        finally:
            if entry is not None and fd is not None:
                with contextlib.suppress(OSError):
                    os.unlink(entry)
                os.close(fd)

    def sweep(self) -> list[Path]:
        """Remove what killed processes left half written; the paths removed."""
        if self._folder is None or not self._folder.is_dir():
            return []
        with contextlib.suppress(OSError):
            return [path for entry in sorted(self._folder.glob("*.path")) if (path := _clear(entry))]
        return []


def _enter(folder: Path, path: Path) -> tuple[Path, int]:
    private_folder(folder)
    name = secrets.token_hex(8)
    new, entry = folder / f"{name}.new", folder / f"{name}.path"
    fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(fd, os.fsencode(path))
        os.rename(new, entry)  # only now can a sweep see it: locked and whole
    except OSError:
        os.close(fd)
        raise
    return entry, fd


def _clear(entry: Path) -> Path | None:
    try:
        fd = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    removed = None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path = Path(os.fsdecode(os.read(fd, 1 << 16)))
        if fnmatchcase(path.name, TEMPORARY) and stat.S_ISREG(path.lstat().st_mode):
            path.unlink()
            removed = path
    except FileNotFoundError:
        pass
    except OSError:
        os.close(fd)
        return None
    with contextlib.suppress(OSError):
        entry.unlink()
    os.close(fd)
    return removed
