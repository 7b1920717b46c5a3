"""What the program leaves on the disk: for the user alone, and nothing of a session that was killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stage import HYPERCODE, answer, call, text

LONG = {"command": "head -c 200000 /dev/zero | tr '\\0' x; echo made > made.txt; mktemp"}


@pytest.mark.parametrize("umask", [0o000, 0o022])
@pytest.mark.parametrize("box", [["--no-sandbox"], []])
def test_files_and_folders_are_the_user_s_alone(stage, umask, box):
    if not box and not shutil.which("bwrap"):
        pytest.skip("needs bubblewrap")
    s = stage(
        answer(call("bash", LONG, "a")),
        answer(call("write", {"path": "new.txt", "content": "x"}, "b")),
        answer(text("ok")),
    )
    command = [HYPERCODE, "run", "go", "--mode", "auto", "--debug", *box]
    done = subprocess.run(
        command, cwd=s.workspace, env=s.environment(), umask=umask, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    below = sorted((s.home / "hypercode").rglob("*"))
    modes = {str(p.relative_to(s.home)): p.stat().st_mode & 0o777 for p in below}
    wrong = {name: oct(mode) for name, mode in modes.items() if mode & 0o077}
    assert wrong == {}
    assert {p.split("/")[1] for p in modes} >= {"state", "cache"}
    assert [p for p in below if p.name.startswith("output-")], "the long output is kept"
    told = s.requests()[1]["messages"][-1]["content"]
    assert "No such file" not in told, "commands have a temporary folder"


def test_a_killed_session_s_temporary_folder_goes_with_the_next(stage):
    s = stage(
        answer(call("bash", {"command": "echo x > $TMPDIR/kept; touch started; sleep 308"}, "c")), answer(text("ok"))
    )
    command = [HYPERCODE, "run", "go", "--mode", "auto", "--no-sandbox"]
    process = subprocess.Popen(command, cwd=s.workspace, env=s.environment(), stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not (s.workspace / "started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    temp = s.home / "hypercode/cache/temp"
    [left] = [p for p in temp.iterdir() if p.is_dir()]
    assert (left / "kept").exists()
    done = s.run("run", "again", "--output", "json")
    assert json.loads(done.stdout)["text"] == "ok"
    assert list(temp.iterdir()) == []
    assert os.path.isdir(temp)
