"""The outermost net: what is wrong with the use is one line, what is wrong with hypercode goes to the log."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Callable, Iterable

from hypercode.errors import ConfigError
from hypercode.safety.own_process import KEY_VARIABLES, NO_ROOM, silence

__all__ = ["guarded"]


def guarded(work: Callable[[], int]) -> int:
    """Do the work and return its exit code: 2 for wrong use or configuration, 1 for a fault or where there is no room to write,
    130 for Ctrl-C; none with a traceback.  What was printed is written by then."""
    keys = [os.environ.get(name, "") for name in KEY_VARIABLES]  # the work takes them out of there
    try:
        code = work()
        sys.stdout.flush()
        return code
    except ConfigError as error:
        _say(_without(keys, str(error)))
        return 2
    except KeyboardInterrupt:  # before anything was there that could be stopped in order
        return 130
    except Exception as error:
        if isinstance(error, BrokenPipeError):  # the reader of the output is gone, and so is nobody's loss
            silence(sys.stdout)
            return 0
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            _say(_no_room(error))
            return 1
        from hypercode.logfile import fault, open_log

        with open_log(os.environ, debug=False, redact=lambda text: _without(keys, text)) as path:
            logging.getLogger("hypercode").exception("hypercode failed")
        _say(fault(path))
        return 1


def _say(text: str) -> None:
    from hypercode.ui.headless import write_line  # only when it is needed: the start need not wait for it

    write_line(sys.stderr, f"hypercode: {text}")


def _no_room(error: OSError) -> str:
    """Which write failed for want of room, and what to do."""
    why = os.strerror(error.errno or errno.ENOSPC)
    try:
        if not error.filename:  # Python has dropped what it could not write; a further write tells where that was
            os.write(sys.stdout.fileno(), b"\n")
    except (OSError, ValueError):
        silence(sys.stdout)
        return f"the output could not be written: {why}"
    where = f" ({error.filename})" if error.filename else ""
    return f"{why}{where}. Make room, or name another place: TMPDIR for temporary files, HYPERCODE_HOME for hypercode's own"


def _without(keys: Iterable[str], text: str) -> str:
    """A message without the keys, and without what looks like one: it may quote a value that is in the wrong place."""
    from hypercode.safety.redact import Redactor

    return Redactor(keys).text(text)
