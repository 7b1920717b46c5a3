"""This process itself: what those of the same account can see of it (environment and memory, and so the key), its output.

A key that is taken out of `os.environ` is still in the block of memory that the kernel shows as `/proc/PID/environ`
(proc(5)), where a command that the program starts would find it.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TextIO

__all__ = ["KEY_VARIABLES", "NO_ROOM", "close_to_others", "silence", "take_environment"]

KEY_VARIABLES = ("OPENROUTER_API_KEY", "HYPERCODE_API_KEY")
"""The variables in which a key may come."""

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The numbers of an OSError by which an output or a file of its own could not be written for want of room."""

_ENV_START, _ENV_END = 47, 48  # fields of proc(5) stat, counted from the state
_PR_SET_DUMPABLE = 4


def take_environment() -> dict[str, str]:
    """The environment of the program; the keys in it are nowhere else from now on."""
    environ = dict(os.environ)
    for name in KEY_VARIABLES:
        os.environ.pop(name, None)
    if sys.platform == "linux":
        try:
            _overwrite([os.fsencode(name) for name in KEY_VARIABLES if environ.get(name)])
        except (OSError, ValueError, IndexError):  # no /proc, or one that cannot be written: `close_to_others` remains
            pass
    return environ


def silence(stream: TextIO) -> None:
    """Let what is still to be written to an output go nowhere, the interpreter's last flush too, instead of failing again."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def close_to_others() -> None:
    """Let no process of the same account read the memory of this one, or trace it; on Linux (prctl(2)).  Root still can."""
    if sys.platform == "linux":
        import ctypes  # 4 ms, so not before the prompt is drawn

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _overwrite(names: Collection[bytes]) -> None:
    """Blank the values of variables in the block that the kernel shows.  Raises OSError, ValueError, IndexError."""
    if not names:
        return
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    at, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
        memory.seek(at)
        block = memory.read(end - at)
        for entry in block.split(b"\0"):
            name, _, value = entry.partition(b"=")
            if name in names and value:
                memory.seek(at + len(name) + 1)
                memory.write(b"x" * len(value))
            at += len(entry) + 1
