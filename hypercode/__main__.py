"""The entry point: `hypercode`, or `python -m hypercode`."""

from __future__ import annotations

import gc
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

    sys.exit(command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
