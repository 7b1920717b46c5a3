"""Files by descriptor: where a path leads, read without blocking, replaced all or nothing.

Nothing here trusts a path for longer than one system call.  A folder is reached from its root one component at a time
without following links, and what was opened tells its own real path; who swaps a folder for a link in between gets an
error, never a file elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from hypercode.errors import ToolError
from hypercode.safety.pending import Pending

__all__ = [
    "Body",
    "Change",
    "chunks",
    "digest",
    "failure",
    "follow",
    "open_node",
    "read_at",
    "real_path",
    "reason",
    "replace",
]

_LINKS = 40
_CHUNK = 1 << 20
_KINDS = {errno.ENOENT: "missing_file", errno.EISDIR: "is_directory", errno.ENXIO: "not_regular"}
_REASONS = {
    errno.ENOENT: "there is no such file",
    errno.EISDIR: "it is a folder",
    errno.ENXIO: "it is a pipe, socket or device, not a regular file",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ELOOP: "its links lead in a circle, or it was swapped for a link meanwhile",
    errno.ENOSPC: "no space left on the disk; nothing was changed",
    errno.EDQUOT: "no space left in the disk quota; nothing was changed",
    errno.EFBIG: "larger than the file size limit allows; nothing was changed",
    errno.EACCES: "permission denied",
    errno.EPERM: "not permitted",
    errno.EROFS: "the disk is read-only",
    errno.EBUSY: "it is a mount point or in use, and cannot be replaced",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ESTALE: "it was moved or deleted while it was opened; try again",
}


def failure(error: OSError, path: str | Path) -> ToolError:
    """The operating system's error in words for the model; kind `missing_file`, `is_directory`, `not_regular` or `io`."""
    return ToolError(_KINDS.get(error.errno or 0, "io"), f"{path}: {reason(error)}")


def reason(error: OSError) -> str:
    """The operating system's error in plain words."""
    return _REASONS.get(error.errno or 0, error.strerror or str(error))


def digest(data: bytes) -> bytes:
    """The hash by which a file's content is known (SHA-256)."""
    return sha256(data).digest()


@dataclass(frozen=True, slots=True)
class Body:
    """A whole file as it was read, and what a replacement has to keep."""

    path: Path
    data: bytes = field(repr=False)
    status: os.stat_result = field(repr=False)

    @property
    def mode(self) -> int:
        """The permission bits."""
        return stat.S_IMODE(self.status.st_mode)

    @property
    def names(self) -> int:
        """How many names (hard links) the file has."""
        return self.status.st_nlink


@dataclass(frozen=True, slots=True)
class Change:
    """A replacement that took place.  `before` is None for a new file; `notes` say what could not be kept."""

    path: Path
    before: bytes | None = field(repr=False)
    after: bytes = field(repr=False)
    notes: tuple[str, ...] = ()


def follow(path: str, *, forbidden: Callable[[str], bool]) -> str:
    """Where an absolute path leads once its links are followed; what does not exist is taken as it is written.

    Raises OSError for a circle of links, and `not_regular` for a link that `forbidden` knows as the system's own (such
    links lead to descriptors and processes, not to paths).
    """
    done, links = "/", 0
    rest = path.split("/")[::-1]
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        step = os.path.dirname(done) if name == ".." else os.path.join(done, name)
        try:
            is_link = stat.S_ISLNK(os.lstat(step).st_mode)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            is_link = False
        if not is_link:
            done = step
            continue
        if forbidden(step):
            raise ToolError("not_regular", f"{path}: it leads through {step}, a link into a running program")
        links += 1
        if links > _LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(step)
        done = "/" if target.startswith("/") else done
        rest += target.split("/")[::-1]
    return _spelled(done)


def _spelled(path: str) -> str:
    """The path as the disk spells it, where disks do not mind letter case."""
    if sys.platform == "darwin":
        for known in (Path(path), *Path(path).parents):
            with contextlib.suppress(OSError):
                fd = os.open(known, os.O_EVTONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    return str(real_path(fd) / Path(path).relative_to(known))
                finally:
                    os.close(fd)
    return path


def real_path(fd: int) -> Path:
    """The path under which the kernel knows an open descriptor now.  Raises OSError (ESTALE) where it has none any more."""
    if sys.platform == "darwin":
        import fcntl

        raw = fcntl.fcntl(fd, fcntl.F_GETPATH, b"\0" * 1024)
        return Path(os.fsdecode(raw.split(b"\0", 1)[0]))
    text = os.readlink(f"/proc/self/fd/{fd}")
    if not text.startswith("/") or os.fstat(fd).st_nlink == 0:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), text)
    return Path(text)


def open_node(path: str | Path, *, dir_fd: int | None = None, folder: bool = False) -> int:
    """Open a regular file (or a folder) for reading; never blocks, never follows a link in the last place.

    Raises OSError (EISDIR, ENXIO for pipes and devices, ENOTDIR, …).
    """
    kind = os.O_DIRECTORY if folder else 0
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=dir_fd)
    mode = os.fstat(fd).st_mode
    if folder or stat.S_ISREG(mode):
        return fd
    os.close(fd)
    code = errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO
    raise OSError(code, os.strerror(code), str(path))


def chunks(fd: int, limit: int) -> Iterator[bytes]:
    """A file from its start, piece by piece.  Raises `too_large` past `limit` bytes, before reading where it can."""
    left = limit
    if os.fstat(fd).st_size > limit:
        left = -1
    while left >= 0 and (data := os.read(fd, _CHUNK)):
        left -= len(data)
        yield data
    if left < 0:
        size = max(os.fstat(fd).st_size, limit + 1)
        raise ToolError("too_large", f"the file has a size of {size / 1e6:.0f} MB; the limit is {limit / 1e6:.0f} MB")


def read_at(folder: int, name: str, path: Path, limit: int) -> Body:
    """The file of that name in an open folder; `path` is where it is known to be.  Raises OSError, `too_large`."""
    fd = open_node(name, dir_fd=folder)
    try:
        return Body(path, b"".join(chunks(fd, limit)), os.fstat(fd))
    finally:
        os.close(fd)


def replace(
    root: Path,
    target: Path,
    compute: Callable[[Body | None], bytes],
    *,
    limit: int,
    pending: Pending,
    private: bool = False,
) -> Change:
    """Give the file at `target` (links followed, below `root`) the content that `compute` makes of the old one.

    All or nothing: a 0600 file in the same folder is written, synced and renamed, after the old content was compared once
    more.  Mode, owner and extended attributes are kept; a second name (hard link) keeps the old content, and `notes` say
    so.  Missing folders are made.  `private` makes a new file 0600.

    Raises ToolError of `compute`, `stale`, `not_read` (a file appeared meanwhile), `too_large`, and OSError.
    """
    with _folder(root, target.parent) as reached:
        old = _present(reached, target, limit)
        data = compute(old)
        made: list[tuple[int, str]] = []
        try:
            notes = _put(reached.make(made), target, old, data, limit, pending, private)
        except (OSError, ToolError):
            for fd, name in reversed(made):
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=fd)
            raise
        return Change(target, old.data if old else None, data, notes)


class _Reached:
    """The open folders on the way from a root to a folder, as far as they exist."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        self.missing = list(folder.relative_to(root).parts)[::-1]
        self.open = [open_node(root, folder=True)]

    def walk(self) -> bool:
        """Go down as far as there are folders; whether the end was reached."""
        try:
            while self.missing:
                self.open.append(open_node(self.missing[-1], dir_fd=self.open[-1], folder=True))
                self.missing.pop()
        except FileNotFoundError:
            return False
        return True

    def make(self, made: list[tuple[int, str]]) -> int:
        """The descriptor of the folder, made where it is missing; `made` receives what was made, by parent and name."""
        while not self.walk():
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.missing[-1], dir_fd=self.open[-1])
                made.append((self.open[-1], self.missing[-1]))
        self.check()
        return self.open[-1]

    def check(self) -> None:
        """Raises OSError (ESTALE) if the folder reached is not where it should be."""
        expected = self.folder if not self.missing else self.folder.parents[len(self.missing) - 1]
        if real_path(self.open[-1]) != expected:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(expected))


@contextlib.contextmanager
def _folder(root: Path, folder: Path) -> Iterator[_Reached]:
    reached = _Reached(root, folder)
    try:
        reached.walk()
        reached.check()
        yield reached
    finally:
        for fd in reached.open:
            os.close(fd)


def _present(reached: _Reached, target: Path, limit: int) -> Body | None:
    if reached.missing:
        return None
    try:
        return read_at(reached.open[-1], target.name, target, limit)
    except FileNotFoundError:
        return None


def _put(
    parent: int, target: Path, old: Body | None, data: bytes, limit: int, pending: Pending, private: bool
) -> tuple[str, ...]:
    temp = f".hypercode-{secrets.token_hex(8)}.tmp"
    with pending.record(target.parent / temp):
        mode = 0o600 if old or private else 0o666
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=parent)
        try:
            try:
                _write_all(fd, data)
                notes = _keep(parent, fd, old) if old else ()
                os.fsync(fd)
            finally:
                os.close(fd)
            _swap(parent, temp, target, old, limit)
        except (OSError, ToolError):
            with contextlib.suppress(OSError):
                os.unlink(temp, dir_fd=parent)
            raise
    with contextlib.suppress(OSError):  # not every file system can sync a folder
        os.fsync(parent)
    return notes


def _swap(parent: int, temp: str, target: Path, old: Body | None, limit: int) -> None:
    """Put the finished file in its place, if that is still where and what it was."""
    if real_path(parent) != target.parent:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(target.parent))
    if old is None:
        _settle(parent, temp, target)
        return
    if _hash_at(parent, target.name, limit) != digest(old.data):
        raise ToolError("stale", f"{target} was changed by somebody else at this moment; read it again")
    os.rename(temp, target.name, src_dir_fd=parent, dst_dir_fd=parent)


def _hash_at(parent: int, name: str, limit: int) -> bytes | None:
    try:
        fd = open_node(name, dir_fd=parent)
    except OSError:
        return None
    try:
        content = sha256()
        for piece in chunks(fd, limit):
            content.update(piece)
        return content.digest()
    except (OSError, ToolError):
        return None
    finally:
        os.close(fd)


def _settle(parent: int, temp: str, target: Path) -> None:
    """Give a new file its name, never over one that appeared meanwhile."""
    appeared = ToolError("not_read", f"{target} appeared meanwhile; read it first")
    try:
        os.link(temp, target.name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    except FileExistsError:
        raise appeared from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        try:  # a file system without hard links
            os.lstat(target.name, dir_fd=parent)
        except FileNotFoundError:
            os.rename(temp, target.name, src_dir_fd=parent, dst_dir_fd=parent)
            return
        raise appeared from None
    os.unlink(temp, dir_fd=parent)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view[:_CHUNK]) :]


def _keep(parent: int, fd: int, old: Body) -> tuple[str, ...]:
    """Give the new file the owner, mode and extended attributes of the old one."""
    notes = []
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (old.status.st_uid, old.status.st_gid):
        try:
            os.fchown(fd, old.status.st_uid, old.status.st_gid)
        except OSError:
            notes.append("the file's owner could not be kept")
    if sys.platform == "linux":
        _copy_attributes(parent, old.path.name, fd)
    os.fchmod(fd, old.mode)
    if old.names > 1:
        notes.append(
            f"the file had {old.names} names (hard links): this one was split off, the others keep the old content"
        )
    return tuple(notes)


if sys.platform == "linux":

    def _copy_attributes(parent: int, name: str, fd: int) -> None:
        with contextlib.suppress(OSError):
            source = open_node(name, dir_fd=parent)
            try:
                for attribute in os.listxattr(source):
                    with contextlib.suppress(OSError):
                        os.setxattr(fd, attribute, os.getxattr(source, attribute))
            finally:
                os.close(source)
