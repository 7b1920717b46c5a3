"""What undo costs before and after a command, over a bare walk in the same run.  `pytest -m bench -s` prints the table."""

import os
import time

import pytest
from harness import Row, pairs, ratio, report

from hypercode.memory.undo import Undo
from hypercode.safety.paths import FileGuard

pytestmark = pytest.mark.bench

FILES = 10_000


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    base = tmp_path_factory.mktemp("undo")
    for outer in range(10):
        for inner in range(10):
            folder = base / f"ws/package{outer}/module{inner}"
            folder.mkdir(parents=True)
            for number in range(FILES // 100):
                (folder / f"file{number}.py").write_text(f"{outer} {inner} {number}\n" * 100)
    (base / "ws/.gitignore").write_text("*.pyc\n/dist\nbuild/\n!keep.pyc\n")
    first = opened(base)
    while first._look().read:
        pass
    first.close()
    return base


def opened(base):
    return Undo(base / "state", FileGuard(base / "ws", home=base / "home"), session="s")


def walk(folder):
    """The least that can be done: the names and the stat of every file."""
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                count += walk(entry.path)
            else:
                entry.stat(follow_symlinks=False)
                count += 1
    return count


def seconds(function, *arguments):
    started = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - started


def start_and_look(base):
    undo = opened(base)
    assert undo._look().read == 0
    undo.close()


def test_ten_thousand_unchanged_files(workspace, capsys):
    undo = opened(workspace)
    undo._look()
    assert walk(workspace / "ws") == FILES + 1
    ours, theirs = pairs(lambda: seconds(undo._look), lambda: seconds(walk, workspace / "ws"), 9)
    undo.close()
    detail = f"{min(ours) * 1000:.0f} / {min(theirs) * 1000:.0f} ms"
    report(Row("undo: 10k unchanged files over a bare walk", ratio(ours, theirs), "x", 3, 2, detail), capsys)


def test_ten_thousand_unchanged_files_with_the_start(workspace, capsys):
    ours, theirs = pairs(lambda: seconds(start_and_look, workspace), lambda: seconds(walk, workspace / "ws"), 9)
    detail = f"{min(ours) * 1000:.0f} / {min(theirs) * 1000:.0f} ms"
    report(Row("undo: the same with the start", ratio(ours, theirs), "x", 5, 3, detail), capsys)
