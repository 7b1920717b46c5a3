"""The tour as README shows it, made for real: `python tests/e2e/demo_screens.py` prints it, and writes it where README has it,
and the whole of it into `tests/cases/demo`.

The installed command in a terminal of 80 columns; the questions are answered with yes.  Durations
are taken out.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "ui"), str(Path(__file__).parent)]
from readme_block import write  # noqa: E402
from screen_terminal import Terminal  # noqa: E402

HYPERCODE = str(Path(sys.executable).with_name("hypercode"))
CASES = Path(__file__).parents[1] / "cases/demo"
STEADY = [(r"thought for \d+\.\d s", "thought"), (r"  \d+(\.\d)? s$", ""), (r"in \d+\.\d+s$", "in 0.000s")]


def steady(lines):
    """The lines without what differs from run to run."""
    for pattern, instead in STEADY:
        lines = [re.sub(pattern, instead, line) for line in lines]
    return lines


def told(lines):
    """The tour without the greeting, which names the folder and the box of this machine."""
    return steady(lines[next(n for n, line in enumerate(lines) if line.startswith("A tour of")) :])


def on_terminal():
    """The screen when the edit is asked about, and all lines of the tour; both questions are answered with yes."""
    with tempfile.TemporaryDirectory() as folder:
        with Terminal([HYPERCODE, "demo", "--speed", "10"], env=_environment(folder)) as terminal:
            terminal.wait(lambda: "edit tea.py?" in "".join(terminal.visible) and "waiting" in terminal.visible[-1])
            asked = terminal.visible
            terminal.send("y")
            terminal.wait("Run this command?")
            terminal.send("y")
            assert terminal.finish() == 0
            lines = terminal.lines
        assert os.listdir(folder) == []
    return steady(asked), told(lines)


def as_pipe():
    """All lines of the tour where there is no terminal."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [HYPERCODE, "demo"],
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
    return told(done.stdout.splitlines())


def _environment(folder):
    own = {"HOME": folder, "HYPERCODE_HOME": f"{folder}/own", "TMPDIR": folder, "LC_ALL": "C.UTF-8"}
    return {**os.environ, **own}


def captured():
    """The command, the screen when the edit is asked about, and what came after the second yes up to the answer."""
    asked, lines = on_terminal()
    question = asked[next(n for n, line in enumerate(asked) if line.startswith("> ")) : -1]  # without the status line
    answer = lines[
        lines.index("Now the tests.") : next(n for n, line in enumerate(lines) if line.startswith("── Ctrl-C"))
    ]
    return "\n".join(["$ hypercode demo", *question, "", *answer]).rstrip("\n") + "\n"


if __name__ == "__main__":
    write(__file__, captured())
    CASES.mkdir(exist_ok=True)
    for name, lines in (("terminal.txt", on_terminal()[1]), ("piped.txt", as_pipe())):
        (CASES / name).write_text("\n".join(lines) + "\n")
