"""What the sandbox costs a command, over a bare bubblewrap in the same run.  `pytest -m bench -s` prints the table."""

import os
import shutil
import statistics
import subprocess
import time

import pytest
from harness import Row, report

from hypercode.process import child_environment
from hypercode.safety.sandbox import Box, Policy

pytestmark = [pytest.mark.bench, pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")]

TIMES = 40
BARE = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"]


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    """A box around a repository of 500 folders and 5 000 files."""
    base = tmp_path_factory.mktemp("box")
    for outer in range(25):
        for inner in range(20):
            folder = base / f"ws/package{outer}/module{inner}"
            folder.mkdir(parents=True)
            for number in range(10):
                (folder / f"file{number}.py").touch()
    subprocess.run(["git", "init", "-q", base / "ws"], check=True)
    environment = child_environment(os.environ, temp=base / "temp")
    policy = Policy((base / "ws",), home=base / "home", temp=base / "temp", quarantine=base / "quarantine")
    made = Box.probe(policy, environment)
    assert made.full, made.why
    return made, environment


def boxed(box, environment):
    started = time.perf_counter()
    with box.enter(["true"]) as entered:
        done = subprocess.run(entered.argv, env=environment, pass_fds=entered.pass_fds, stdin=subprocess.DEVNULL)
        assert done.returncode == 0
    return time.perf_counter() - started


def bare():
    started = time.perf_counter()
    subprocess.run(BARE, check=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - started


def test_a_command_in_the_box(box, capsys):
    """What is promised is 25 ms; that is three times a bare box on a machine where one takes a little more than 8 ms."""
    made, environment = box
    boxed(made, environment)
    pairs = [(boxed(made, environment), bare()) for _ in range(TIMES)]
    cost, floor = (statistics.median(side) * 1000 for side in zip(*pairs, strict=True))
    detail = f"{cost:.1f} ms over {floor:.1f} ms"
    report(Row("box: a command over bare bubblewrap", cost / floor, "x", 3.0, 1.6, detail), capsys)
