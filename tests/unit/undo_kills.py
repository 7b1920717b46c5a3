"""Kill a process in the middle of an undo, and look at what is left."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from undo_help import Bench
from undo_victim import NEW, OLD


def prepare(base):
    bench = Bench(base)
    (base / "new").write_bytes(NEW)
    (bench.ws / "d").mkdir()
    for name in ("a", "b", "d/e"):
        (bench.ws / name).write_bytes(OLD)
    bench.undo.close()


def kill_once(base, seconds):
    """Let the victim work for so long, kill it, check every file, then undo to the end and check again."""
    here = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(here), str(here.parents[1])])}
    victim = subprocess.Popen(
        [sys.executable, str(here / "undo_victim.py"), str(base)], stdout=subprocess.PIPE, env=environment
    )
    assert victim.stdout.readline() == b"ready\n"
    with contextlib.suppress(subprocess.TimeoutExpired):
        victim.wait(seconds)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert victim.returncode == -signal.SIGKILL
    bench = Bench(base)
    bench.guard.sweep()
    contents = {p.relative_to(bench.ws).as_posix(): p.read_bytes() for p in bench.ws.rglob("*") if p.is_file()}
    assert set(contents) <= {"a", "b", "d/e", "n/c"}
    assert {name for name, data in contents.items() if data not in (OLD, NEW)} == set()
    outcome = bench.undo.undo()
    undone = outcome.step is not None
    if not undone and bench.undo.steps():  # killed while it did it again
        assert bench.undo.redo().refused == ()
        outcome = bench.undo.undo()
    assert outcome.refused == ()
    now = {p.relative_to(bench.ws).as_posix(): p.read_bytes() for p in bench.ws.rglob("*") if p.is_file()}
    mode = (bench.base / "new").stat().st_mode
    assert now == {"a": OLD, "b": OLD, "d/e": OLD}
    assert {(bench.ws / name).stat().st_mode for name in now} == {mode}
    bench.undo.close()
    return undone
