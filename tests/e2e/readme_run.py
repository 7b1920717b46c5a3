"""The run that README shows, made for real: `python tests/e2e/readme_run.py` writes it into README.md.

The model is scripted on a socket of this machine; everything else is the installed command, its tools and its files.
"""

import sys
import tempfile
from pathlib import Path

import pexpect

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tools/streams")]
from readme_block import write  # noqa: E402
from stage import HYPERCODE, Stage, answer, call, text  # noqa: E402

TASK = "greet() crashes without a name; fix it and check"
SOURCE = 'def greet(name=None):\n    return "Hello, " + name\n'
FIXED = 'return "Hello, " + (name or "you")'


def captured():
    """The command line, what it printed, and what it left."""
    check = "python3 -c 'from greet import greet; print(greet())'"
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(
            Path(folder),
            [
                answer(text("I'll look for it first."), call("grep", {"pattern": "def greet"}, "a")),
                answer(call("read", {"path": "greet.py"}, "b")),
                answer(
                    call("edit", {"path": "greet.py", "edits": [{"old": 'return "Hello, " + name', "new": FIXED}]}, "c")
                ),
                answer(call("bash", {"command": check}, "d")),
                answer(text("`greet()` used the missing name as text. It says “Hello, you” now; I ran it to see.")),
            ],
        )
        (stage.workspace / "greet.py").write_text(SOURCE)
        with stage.server:
            shown, status = pexpect.run(
                f"{HYPERCODE} run '{TASK}' --mode edits --allow python3",
                cwd=stage.workspace,
                env=stage.environment(NO_COLOR="1"),
                encoding="utf-8",
                withexitstatus=True,
                timeout=60,
            )
        assert status == 0, shown
        changed = (stage.workspace / "greet.py").read_text()
    assert FIXED in changed
    printed = shown.replace("\r\n", "\n")
    return f'$ hypercode run "{TASK}" --mode edits --allow python3\n{printed}$ cat greet.py\n{changed}'


if __name__ == "__main__":
    write(__file__, captured())
