"""The log file: tracebacks always, everything with `--debug`.  Nothing is written before there is something to say."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hypercode.config import Folders
from hypercode.events import Bus

__all__ = ["fault", "log_events", "log_place", "open_log"]

log = logging.getLogger("hypercode")


@contextmanager
def open_log(
    environ: Mapping[str, str], *, debug: bool, redact: Callable[[str], str] = lambda text: text
) -> Iterator[Path]:
    """Send hypercode's log to a file of this process, 0600, and yield its path.

    `redact` takes secrets out of each line, tracebacks included.  Where the state folder cannot be written the log goes nowhere; that must not stop the work.
    """
    path = Folders.of(environ).state / "logs" / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    handler = _LazyFile(path)
    handler.setFormatter(_Redacted(redact))
    log.addHandler(handler)
    log.propagate = False
    log.setLevel(logging.DEBUG if debug else logging.WARNING)
    log.debug("process %d", os.getpid())
    try:
        yield path
    finally:
        log.removeHandler(handler)
        handler.close()


def log_place(path: Path) -> str:
    """Where the log is, for a person, once something has been written."""
    return str(path) if path.exists() else f"none, {path} cannot be written; HYPERCODE_HOME names another place"


def fault(path: Path) -> str:
    """What is said of a fault that has been logged."""
    details = f"the details are in {path}" if path.exists() else f"its details could not be written to {path}"
    return f"a fault of hypercode itself; {details}"


def log_events(bus: Bus) -> None:
    """Write every event to the log, for `--debug`."""
    bus.on(None, lambda event: log.debug("%s", event))


class _Redacted(logging.Formatter):
    """Lines without secrets."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record))


class _LazyFile(logging.FileHandler):
    """A file that is made, private, when the first record comes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8", errors="replace", delay=True)
        self._path = path

    def _open(self):  # type: ignore[no-untyped-def]
        for folder in reversed([p for p in self._path.parents if not p.exists()]):
            folder.mkdir(exist_ok=True, mode=0o700)
        return open(
            self._path,
            "a",
            encoding="utf-8",
            errors="replace",
            opener=lambda p, f: os.open(p, f | os.O_NOFOLLOW, 0o600),
        )

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:
            pass

    def handleError(self, record: logging.LogRecord) -> None:
        """A log that cannot be written must not print to the screen."""
