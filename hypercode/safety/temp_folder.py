"""The temporary folder of a session, and those that killed sessions left behind.

Beside each folder lies a file that its session keeps locked: so a folder whose lock can be taken belongs to nobody any more.
It lies beside, because commands can write inside.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from pathlib import Path

from hypercode.safety.private_file import lock, private_folder

__all__ = ["TempFolder", "sweep"]

_LOCK = ".lock"
_MOST = 50
_UNLOCKED_FOR = 86_400  # seconds after which a folder without a lock file counts as left behind


class TempFolder:
    """A folder of this session's own, for the user alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    def claim(self) -> None:
        """Make the folder and lock it; harmless twice.  Where it cannot be made there is none."""
        with contextlib.suppress(OSError):
            private_folder(self.path)
            if self._lock is None:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                self._lock = os.open(self.path.with_name(self.path.name + _LOCK), flags, 0o600)
                lock(self._lock)

    def close(self) -> None:
        """Remove the folder with everything in it, and what killed sessions left beside it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            self.path.with_name(self.path.name + _LOCK).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None
        sweep(self.path.parent)


def sweep(parent: Path) -> list[Path]:
    """Remove what killed sessions left below the folder of all temporary folders; at most 50 of them at a time."""
    removed: list[Path] = []
    try:
        with os.scandir(parent) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return removed
    for name in names:
        if len(removed) < _MOST and _left_behind(parent / name):
            removed.append(parent / name)
    return removed


def _left_behind(folder: Path) -> bool:
    """Whether the folder was nobody's any more, and is gone now."""
    beside = folder.with_name(folder.name + _LOCK)
    try:
        status = folder.lstat()
        if status.st_uid != os.geteuid() or not stat.S_ISDIR(status.st_mode):
            return False
        descriptor = os.open(beside, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        if time.time() - folder.lstat().st_mtime < _UNLOCKED_FOR:
            return False
        shutil.rmtree(folder, ignore_errors=True)
        return True
    except OSError:
        return False
    try:
        if not lock(descriptor):
            return False
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            beside.unlink()
        return True
    finally:
        os.close(descriptor)
