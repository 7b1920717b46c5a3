"""The entry point: `hypercode`, or `python -m hypercode`."""

from __future__ import annotations

import gc
import os
import sys

from hypercode import __version__

__all__ = ["main"]


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    _import_nothing_from_here()
    words = sys.argv[1:]
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started this
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    gc.set_threshold(100_000, 50, 50)  # a tenth of the time of the imports would go into looking for garbage in them
    from hypercode.guard import guarded

    code = guarded(lambda: _work(words))
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(code)  # everything is closed by now; taking half a thousand modules apart would take another 50 ms


def _work(words: list[str]) -> int:
    """What the command line asks for; the version is answered before anything heavy is imported."""
    if words in (["--version"], ["-V"]):
        sys.stdout.write(f"hypercode {__version__}\n")
        return 0
    return _chat(words) if _is_chat(words) else _command_line(words)


def _import_nothing_from_here() -> None:
    """Take the current folder off the path of imports: what lies in it is the model's to change.

    `python -m` puts it there, and so do empty and relative items of PYTHONPATH, which are easily made by mistake.
    """
    try:
        here = os.getcwd()
    except OSError:  # it is gone
        here = ""
    accidents = [here] if sys.path[:1] == [here] and not sys.flags.safe_path else []
    if not sys.flags.ignore_environment and (given := os.environ.get("PYTHONPATH")):
        accidents += [os.path.join(here, item) for item in given.split(os.pathsep) if not os.path.isabs(item)]
    unwanted = {"", *map(os.path.normpath, accidents)}
    sys.path[:] = [item for item in sys.path if item not in unwanted]


def _is_chat(words: list[str]) -> bool:
    """Whether this is the plainest start, a chat without any option: Typer need not be loaded to read that."""
    if "_HYPERCODE_COMPLETE" in os.environ:  # fish asks with its terminal as stdin and stdout
        return False
    message = len(words) == 1 and " " in words[0].strip() and not words[0].startswith("-")
    return (not words or message) and sys.stdin.isatty() and sys.stdout.isatty()


def _chat(words: list[str]) -> int:
    from hypercode.config import current_folder
    from hypercode.parts import configuration
    from hypercode.ui import repl

    cwd = current_folder()
    return repl.run(configuration(os.environ, cwd), " ".join(words), cwd=cwd)


def _command_line(words: list[str]) -> int:
    from hypercode.cli import main as command_line

    return command_line(words)


if __name__ == "__main__":
    main()
