"""Reading what somebody else may have put there: never waits, never reads without end.

A boxed command can leave a named pipe, a link to a device, or a file of gigabytes under any name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import islice

__all__ = ["KERNEL", "is_plain", "names_in", "start_of", "whole"]

KERNEL = ("/proc/", "/sys/", "/dev/")
"""Where also what says that it is a regular file may never end."""


def start_of(path: str | os.PathLike[str], most: int) -> bytes:
    """The first `most` bytes of a regular file, links followed.

    Raises OSError, also for what is no regular file and for a name that no file can have.
    """
    return _read(path, most)[:most]


def whole(path: str | os.PathLike[str], most: int) -> bytes:
    """A regular file of at most `most` bytes, links followed.  Raises OSError as `start_of`, and for a larger one."""
    try:
        status = os.stat(path)
    except ValueError as error:
        raise OSError(str(error)) from None
    _regular(status)
    if status.st_size > most or len(data := _read(path, most)) > most:
        raise OSError("it is too large")
    return data


def is_plain(path: str | os.PathLike[str], most: int) -> bool:
    """Whether another program that opens it will come to an end: nothing is there, a folder, or a file of at most `most` bytes."""
    try:
        status = os.stat(path)
        if os.path.islink(path) and (real := os.path.realpath(path)).startswith(KERNEL):
            return real == os.devnull
    except (OSError, ValueError):
        return True
    return stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_size <= most)


def names_in(folder: str | os.PathLike[str], most: int) -> list[str]:
    """The names in a folder, sorted, `most` + 1 at most: more than `most` says that there are more.  Raises OSError."""
    return sorted(islice(_names(folder), most + 1))


def _names(folder: str | os.PathLike[str]) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry.name
    except ValueError as error:
        raise OSError(str(error)) from None


def _read(path: str | os.PathLike[str], most: int) -> bytes:
    """The beginning, one byte more than `most` where there is more."""
    try:
        _regular(os.stat(path))  # so that no device is opened: some act on that alone
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError as error:
        raise OSError(str(error)) from None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        _regular(os.fstat(descriptor))
        parts, left = list[bytes](), most + 1
        while left > 0 and (part := file.read(min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


def _regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is no regular file")
