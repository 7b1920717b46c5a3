"""Put one path back to what it was, by descriptor, all or nothing, and only where it is what it is expected to be.

No byte leaves the workspace that the store does not hold.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from hypercode.errors import ToolError
from hypercode.memory.undo_store import Node, Store
from hypercode.safety import files
from hypercode.safety.files import Body
from hypercode.safety.paths import MAX_BYTES
from hypercode.safety.pending import Pending

__all__ = ["bring_back", "look", "make_folder", "put_file", "remove_file", "remove_folder", "set_mode"]

_STALE = "it was changed by somebody else since"


@contextlib.contextmanager
def _parent(root: Path, path: Path) -> Iterator[int]:
    """The open folder of a path below a root, reached without following links.  Raises OSError."""
    fd = files.open_node(root, folder=True)
    try:
        for name in path.parent.relative_to(root).parts:
            try:
                inner = files.open_node(name, dir_fd=fd, folder=True)
            except NotADirectoryError:
                if stat.S_ISLNK(os.lstat(name, dir_fd=fd).st_mode):  # behind it is another file than the one meant
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from None
                raise
            os.close(fd)
            fd = inner
        if files.real_path(fd) != path.parent:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path.parent))
        yield fd
    finally:
        os.close(fd)


def look(root: Path, path: Path, *, content: bool = True) -> Node | None:
    """What lies at a path; None where nothing does.  Raises OSError, ToolError `too_large`."""
    try:
        with _parent(root, path) as parent:
            status = os.lstat(path.name, dir_fd=parent)
            mode = stat.S_IMODE(status.st_mode)
            if stat.S_ISDIR(status.st_mode):
                return Node("folder", mode)
            if not stat.S_ISREG(status.st_mode):
                return Node("other", 0)
            if not content:
                return Node("file", mode, status.st_size)
            body = files.read_at(parent, path.name, path, MAX_BYTES)
            return Node("file", mode, len(body.data), files.digest(body.data).hex())
    except (FileNotFoundError, NotADirectoryError):
        return None


def put_file(root: Path, path: Path, expected: str | None, data: bytes, store: Store, pending: Pending) -> list[str]:
    """Give a file its content; `expected` is the hash of what is there now, None: nothing is.  What could not be kept.

    A new file is for the user alone until its mode is set.  Raises OSError, ToolError `stale`, `not_read`.
    """

    def compute(body: Body | None) -> bytes:
        if (None if body is None else files.digest(body.data).hex()) != expected:
            raise ToolError("stale", _STALE)
        if body is not None:
            store.put(body.data)
        return data

    return list(files.replace(root, path, compute, limit=MAX_BYTES, pending=pending, private=True).notes)


def remove_file(root: Path, path: Path, expected: str, store: Store) -> None:
    """Remove a file with that hash.  It is moved aside first and looked at again, so that nobody's change is lost.

    Raises OSError, ToolError `stale`.
    """
    with _parent(root, path) as parent:
        _check(files.read_at(parent, path.name, path, MAX_BYTES), expected, store)
        temp = f".hypercode-{secrets.token_hex(8)}.tmp"
        note = store.note_aside(path, temp)
        os.rename(path.name, temp, src_dir_fd=parent, dst_dir_fd=parent)
        try:
            _check(files.read_at(parent, temp, path, MAX_BYTES), expected, store)
        except (OSError, ToolError):
            _put_back(parent, temp, path.name)
            note.unlink(missing_ok=True)
            raise
        os.unlink(temp, dir_fd=parent)
        note.unlink(missing_ok=True)


def _check(body: Body, expected: str, store: Store) -> None:
    if files.digest(body.data).hex() != expected:
        raise ToolError("stale", _STALE)
    store.put(body.data)


def _put_back(parent: int, temp: str, name: str) -> None:
    """Give a file its name again, never over one that has it now."""
    try:
        os.link(temp, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        try:
            os.lstat(name, dir_fd=parent)
        except FileNotFoundError:
            os.rename(temp, name, src_dir_fd=parent, dst_dir_fd=parent)
            return
        raise
    os.unlink(temp, dir_fd=parent)


def bring_back(store: Store) -> list[str]:
    """Put back what a killed process had set aside; one sentence for each thing that cannot be."""
    problems = []
    for note, path, temp in store.asides():
        try:
            with _parent(Path(path.anchor), path) as parent:
                os.lstat(temp, dir_fd=parent)
                _put_back(parent, temp, path.name)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            problems.append(f"{path.with_name(temp)} was {path.name} and could not be put back ({error.strerror}).")
        note.unlink(missing_ok=True)
    return problems


def make_folder(root: Path, path: Path, mode: int) -> None:
    """Make a folder into which its owner can write; one that is there stays.  Raises OSError."""
    with _parent(root, path) as parent, contextlib.suppress(FileExistsError):
        os.mkdir(path.name, mode | 0o700, dir_fd=parent)


def remove_folder(root: Path, path: Path) -> None:
    """Remove an empty folder.  Raises OSError."""
    with _parent(root, path) as parent:
        os.rmdir(path.name, dir_fd=parent)


def set_mode(root: Path, path: Path, mode: int) -> None:
    """Set the permission bits of a file or folder.  Raises OSError."""
    with _parent(root, path) as parent:
        folder = stat.S_ISDIR(os.lstat(path.name, dir_fd=parent).st_mode)
        fd = files.open_node(path.name, dir_fd=parent, folder=folder)
        try:
            if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
                os.fchmod(fd, mode)
        finally:
            os.close(fd)
