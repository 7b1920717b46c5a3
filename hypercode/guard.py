"""The outermost net: what is wrong with the use is one line, what is wrong with hypercode goes to the log."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable

from hypercode.errors import ConfigError
from hypercode.safety.own_process import KEY_VARIABLES

__all__ = ["guarded"]


def guarded(work: Callable[[], int]) -> int:
    """Do the work and return its exit code; 2 for wrong use or configuration, 1 for a fault, 130 for Ctrl-C, none with a traceback."""
    keys = [os.environ.get(name, "") for name in KEY_VARIABLES]  # the work takes them out of there
    try:
        return work()
    except ConfigError as error:
        sys.stderr.write(f"hypercode: {_without(keys, str(error))}\n")
        return 2
    except KeyboardInterrupt:  # before anything was there that could be stopped in order
        return 130
    except Exception:
        from hypercode.logfile import open_log

        with open_log(os.environ, debug=False, redact=lambda text: _without(keys, text)) as path:
            logging.getLogger("hypercode").exception("hypercode failed")
        sys.stderr.write(f"hypercode: a fault of hypercode itself; the details are in {path}\n")
        return 1


def _without(keys: Iterable[str], text: str) -> str:
    """A message without the keys, and without what looks like one: it may quote a value that is in the wrong place."""
    from hypercode.safety.redact import Redactor

    return Redactor(keys).text(text)
