"""Files of sessions: opened without following links, locked, private."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from hypercode.errors import ConfigError
from hypercode.safety.private_file import lock

__all__ = ["APPEND", "is_open", "lock", "open_to_read", "read_all", "sync_folder"]

APPEND = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""How a session's file is opened for writing."""


def open_to_read(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a session's file; a link is not followed, nothing but a regular file is read.  Raises ConfigError."""
    try:
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ConfigError("there is no such session; `hypercode sessions` lists them", file=str(path)) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise ConfigError("is a link, and links are not followed here", file=str(path)) from None
        raise ConfigError(f"cannot be read ({error.strerror})", file=str(path)) from error
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise ConfigError("is not a regular file", file=str(path))


def read_all(fd: int) -> bytes:
    """The file from its start, wherever the descriptor stands."""
    parts, at = [], 0
    while part := os.pread(fd, 1 << 24, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def is_open(path: Path) -> bool:
    """Whether a process has the session open.  Raises ConfigError as `open_to_read` does."""
    fd = open_to_read(path)
    try:
        return not lock(fd)
    finally:
        os.close(fd)


def sync_folder(folder: Path) -> None:
    """The name of a new file is part of what must last."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError:  # not every file system can
        pass
    finally:
        os.close(fd)
