"""The entry point: `hypercode`, or `python -m hypercode`."""

from __future__ import annotations

import gc
import os
import sys

from hypercode import __version__

__all__ = ["main"]


def main() -> None:
    """Run the command line; the version is answered before anything heavy is imported."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"hypercode {__version__}\n")
        return
    gc.set_threshold(100_000, 50, 50)  # a tenth of the time of the imports would go into looking for garbage in them
    from hypercode.cli import main as command_line

    code = command_line(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(code)  # everything is closed by now; taking half a thousand modules apart would take another 50 ms


if __name__ == "__main__":
    main()
