"""Moving away what must not stay in a workspace, and making anew what was there, never over a link on the way.

A command may have put a link in place of a folder, and another one may do so at this moment: what is moved or made is
named from a folder that is open and lies where it should.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

__all__ = ["make_link", "make_text", "put_away"]

_MOST_COPIED, _MOST_BYTES = 1_000, 20_000_000
"""Files and bytes that are copied to a quarantine on another device; more is only renamed where it is."""


def put_away(name: str, quarantine: Path) -> str:
    """Move something to a place of its own in the quarantine, or rename it where that is not possible; a sentence about it."""
    base = os.path.basename(name)
    place = quarantine / secrets.token_hex(8) / base
    try:
        with _folder_of(name) as folder:
            try:
                _moved(folder, base, place)
            except (OSError, shutil.Error, RecursionError) as error:
                renamed = f"{base}.put-away-{secrets.token_hex(4)}"
                os.rename(base, renamed, src_dir_fd=folder, dst_dir_fd=folder)
                why = getattr(error, "strerror", None) or error
                return f"It was renamed to {renamed}, since it could not be moved to the quarantine ({why})."
    except (OSError, ValueError) as error:
        return f"It could NOT be moved away ({getattr(error, 'strerror', None) or error}); look at it before you go on."
    return f"It was moved to {place}."


def make_link(name: str, target: str) -> bool:
    """Whether the link could be made, where nothing is."""
    try:
        with _folder_of(name) as folder:
            os.symlink(target, os.path.basename(name), dir_fd=folder)
    except (OSError, ValueError):
        return False
    return True


def make_text(name: str, text: bytes) -> bool:
    """Whether the file could be written, where nothing is."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with (
            _folder_of(name) as folder,
            os.fdopen(os.open(os.path.basename(name), flags, 0o644, dir_fd=folder), "wb") as f,
        ):
            f.write(text)
    except (OSError, ValueError):
        return False
    return True


@contextlib.contextmanager
def _folder_of(name: str) -> Iterator[int]:
    """The open folder in which something lies.  Raises OSError, also where a link leads there."""
    folder = os.path.dirname(name)
    readable = getattr(os, "O_PATH", os.O_RDONLY)  # with O_PATH its mode does not matter
    descriptor = os.open(folder, readable | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if _real(descriptor, folder) != folder:
            raise OSError(errno.ELOOP, "it lies behind a link")
        yield descriptor
    finally:
        os.close(descriptor)


def _real(descriptor: int, folder: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return os.path.realpath(folder)


def _moved(folder: int, base: str, place: Path) -> None:
    place.parent.mkdir(parents=True, mode=0o700)
    try:
        os.rename(base, place, src_dir_fd=folder)
    except OSError as error:
        if error.errno == errno.EXDEV and not _is_small(folder, base):
            raise OSError(errno.EXDEV, "it is too large or too special to be copied to another device") from None
        if error.errno != errno.EXDEV:
            raise
        shutil.move(f"/proc/self/fd/{folder}/{base}", place)


def _is_small(folder: int, base: str) -> bool:
    """Whether it is soon copied, and has nothing in it that cannot be."""
    waiting, number, size = [f"/proc/self/fd/{folder}/{base}"], 0, 0
    while waiting:
        path = waiting.pop()
        status = os.lstat(path)
        number, size = number + 1, size + status.st_size
        kind = stat.S_IFMT(status.st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK) or number > _MOST_COPIED or size > _MOST_BYTES:
            return False
        if kind == stat.S_IFDIR:
            waiting += [f"{path}/{below}" for below in os.listdir(path)]
    return True
