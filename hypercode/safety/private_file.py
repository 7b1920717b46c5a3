"""The program's own small files: for the user alone, replaced all or nothing, changed by one process at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Unusable", "lock", "locked", "private_folder", "put_aside", "read_private", "replace_private"]

_WAIT = 5.0
_CLOSED = os.O_NOFOLLOW | os.O_CLOEXEC


class Unusable(Exception):
    """A file that is there but cannot be taken at its word; the text says why, and follows its name in a sentence."""


def private_folder(folder: Path, *, follow: bool = True) -> None:
    """Make a folder and those above it that are missing, for the user alone, whatever the umask; one that is there loses the
    rights of others.  Without `follow` a link is no folder.  Raises OSError."""
    for path in reversed([p for p in (folder, *folder.parents) if not p.exists()]):
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
            path.chmod(0o700)
    info = os.stat(folder, follow_symlinks=follow)
    if not stat.S_ISDIR(info.st_mode):
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if info.st_mode & 0o077 and info.st_uid == os.geteuid():
        folder.chmod(0o700)


def read_private(path: Path, limit: int) -> bytes | None:
    """A file of the program's own; None where there is none.

    Raises Unusable for anything that is not a regular file of at most `limit` bytes that only its owner can write to.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _CLOSED)
    except FileNotFoundError:
        return None
    except OSError as error:
        link = error.errno in (errno.ELOOP, errno.EMLINK)
        raise Unusable("is a link" if link else f"cannot be read ({error.strerror})") from None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise Unusable("is not a regular file")
        if info.st_uid not in (os.geteuid(), 0) or info.st_mode & 0o022:
            raise Unusable("can be written to by others")
        if info.st_size > limit:
            raise Unusable("is too large")
        return os.read(fd, limit)
    except OSError as error:
        raise Unusable(f"cannot be read ({error.strerror})") from None
    finally:
        os.close(fd)


def replace_private(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Give a file of the program's own new content, all or nothing; `sync`: through to the disk.  Raises OSError."""
    temp = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOSED, 0o600)
    try:
        try:
            os.fchmod(fd, 0o600)
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temp, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temp)
        raise


def put_aside(path: Path) -> Path:
    """Move what cannot be used out of the way, beside its place; where it is now.  Raises OSError."""
    place = path.with_name(f"{path.name}.damaged-{secrets.token_hex(4)}")
    os.rename(path, place)
    return place


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, made where it is missing.  Raises OSError, EBUSY where another process does not let go of it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | _CLOSED, 0o600)
    try:
        last = time.monotonic() + _WAIT
        while not lock(fd):
            if time.monotonic() > last:
                raise OSError(errno.EBUSY, "another hypercode holds it", str(path))
            time.sleep(0.01)
        yield
    finally:
        os.close(fd)


def lock(fd: int) -> bool:
    """Take the file's lock; whether nobody else has it.  A file system without locks has no second writer to know of."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
    return True
