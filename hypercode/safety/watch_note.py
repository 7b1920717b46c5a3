"""The note of what is watched while a command runs: by it the next start finds what a command did whose program died."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypercode.safety.bounded_read import start_of, whole
from hypercode.safety.private_file import private_folder

__all__ = ["Note", "notes", "read_note"]

_EVERY = 1.0
_SLACK = 3_000_000_000  # ns: how long after its last touch the command may still have run, clocks that lag included
_MOST_BYTES = 100_000_000
_PATTERN = "watching-*.json"


class Note:
    """A file in the quarantine.  It is touched each second while it is held, so that its time says how long the command ran."""

    def __init__(self, quarantine: Path, content: Mapping[str, Any]) -> None:
        """Raises OSError."""
        private_folder(quarantine)
        self.path = quarantine / f"watching-{secrets.token_hex(8)}.json"
        who = {"process": os.getpid(), "began": _state_and_start(os.getpid())[1]}
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            json.dump({**content, **who}, file)
        _held.add(self.path)

    def remove(self) -> None:
        """Raises OSError."""
        _held.remove(self.path)
        self.path.unlink(missing_ok=True)


def notes(quarantine: Path) -> list[Path]:
    """Those that lie in a quarantine, of living programs as well."""
    return sorted(quarantine.glob(_PATTERN))


def read_note(path: Path) -> tuple[dict[str, Any], int] | None:
    """What stands in the note of a program that died, and the time, in ns, after which its command cannot have run.

    None for that of a living program.  Raises OSError, ValueError, KeyError, TypeError for one that cannot be read.
    """
    until = path.stat().st_mtime_ns + _SLACK
    content = json.loads(whole(path, _MOST_BYTES).decode("ascii"))
    if not isinstance(content, dict):
        raise TypeError("no note")
    process, began = int(content.pop("process")), content.pop("began", None)
    return None if _lives(process, began) else (content, until)


class _Held:
    """The notes that are held, and the thread that touches them: one for all, since to start one takes longest; it ends a
    second after the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: set[Path] = set()
        self._thread: threading.Thread | None = None

    def add(self, path: Path) -> None:
        with self._lock:
            self._paths.add(path)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._touch, name="notes of commands", daemon=True)
                self._thread.start()

    def remove(self, path: Path) -> None:
        with self._lock:
            self._paths.discard(path)

    def _touch(self) -> None:
        while True:
            time.sleep(_EVERY)
            with self._lock:
                if not self._paths:
                    self._thread = None
                    return
                paths = tuple(self._paths)
            for path in paths:
                with contextlib.suppress(OSError):
                    os.utime(path)


_held = _Held()


def _lives(process: int, began: int | None) -> bool:
    """Whether the process still runs: a later one of the same number, or one that only waits to be collected, does not."""
    state, start = _state_and_start(process)
    if start is not None:
        return state not in "ZX" and began in (None, start)
    if os.path.exists("/proc/self/stat"):
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _state_and_start(process: int) -> tuple[str, int | None]:
    """The state of a process, and when it began, in ticks since the machine did (proc_pid_stat(5), fields 3 and 22)."""
    try:
        fields = start_of(f"/proc/{process}/stat", 4096).rpartition(b")")[2].split()
        return fields[0].decode("ascii"), int(fields[19])
    except (OSError, ValueError, IndexError):
        return "", None
