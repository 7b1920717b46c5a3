"""The outermost net: what is wrong with the use is one line, what is wrong with hypercode goes to the log."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable

from hypercode.errors import ConfigError

__all__ = ["guarded"]


def guarded(work: Callable[[], int]) -> int:
    """Do the work and return its exit code; 2 for wrong use or configuration, 1 for a fault, neither with a traceback."""
    try:
        return work()
    except ConfigError as error:
        sys.stderr.write(f"hypercode: {error}\n")
        return 2
    except Exception:
        from hypercode.logfile import open_log

        with open_log(os.environ, debug=False) as path:
            logging.getLogger("hypercode").exception("hypercode failed")
        sys.stderr.write(f"hypercode: a fault of hypercode itself; the details are in {path}\n")
        return 1
