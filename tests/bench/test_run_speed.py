"""Speed of `hypercode run`, each figure against a baseline in the same run.  `pytest -m bench -n 0 -s` prints the table."""

import asyncio
import subprocess
import sys
import time

import pytest
from harness import BASELINES, HYPERCODE, Row, environment, mock_server, pairs, ratio, report, run_piped, seconds

from hypercode.tools.base import Toolbox

pytestmark = pytest.mark.bench


@pytest.fixture
def bench(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    with mock_server(tmp_path) as base_url:
        yield environment(base_url, home), tmp_path


def hypercode(task):
    return [HYPERCODE, "run", task, "-m", "mock-1"]


def sdk_script(task):
    return [sys.executable, str(BASELINES), "print", task]


def measure(bench, task, times):
    env, cwd = bench
    run_piped(hypercode(task), env, cwd)  # byte code and page cache
    run_piped(sdk_script(task), env, cwd)
    return pairs(lambda: run_piped(hypercode(task), env, cwd), lambda: run_piped(sdk_script(task), env, cwd), times)


def test_version(capsys):
    ours, theirs = pairs(lambda: seconds([HYPERCODE, "--version"]), lambda: seconds([sys.executable, "-c", "pass"]), 9)
    report(Row("--version over python -c pass", ratio(ours, theirs), "x", 12, 3, f"{min(ours) * 1000:.0f} ms"), capsys)


def test_cold_start_to_first_token(bench, capsys):
    ours, theirs = measure(bench, "kind=plain deltas=100", 7)
    value = ratio([r.first for r in ours], [r.first for r in theirs])
    detail = f"{min(r.first for r in ours) * 1000:.0f} / {min(r.first for r in theirs) * 1000:.0f} ms"
    report(Row("run: cold start to first token over SDK script", value, "x", 1.25, 1.0, detail), capsys)


def test_piped_cpu(bench, capsys):
    """CPU of the whole process less its start, for 16 000 deltas."""
    short, long = "kind=markdown deltas=2", "kind=markdown deltas=16000"
    ours0, theirs0 = measure(bench, short, 3)
    ours, theirs = measure(bench, long, 3)
    start, start_theirs = min(r.cpu for r in ours0), min(r.cpu for r in theirs0)
    value = ratio([r.cpu - start for r in ours], [r.cpu - start_theirs for r in theirs])
    assert all(b"zqe" in r.output for r in ours + theirs)
    detail = f"{(min(r.cpu for r in ours) - start) * 1e6 / 16000:.0f} us a delta"
    report(Row("run piped: CPU, 16k deltas, over SDK script", value, "x", 0.6, 0.2, detail), capsys)


def test_whole_process(bench, capsys):
    ours, theirs = measure(bench, "kind=plain deltas=100", 5)
    value = ratio([r.wall for r in ours], [r.wall for r in theirs])
    report(Row("run: whole process over SDK script", value, "x", 1.1, 0.8), capsys)


def test_grep(tmp_path, capsys):
    """The grep tool over 50 000 files against rg itself."""
    from hypercode.process import child_environment
    from hypercode.safety.paths import FileGuard
    from hypercode.tools.base import ToolContext
    from hypercode.tools.ripgrep import ripgrep

    tree = tmp_path / "tree"
    for folder in range(500):
        (tree / f"d{folder}").mkdir(parents=True)
        for number in range(100):
            (tree / f"d{folder}/f{number}.py").write_text(
                f"def f{number}():\n    return 'needle {number}'\n" if number == 7 else "x = 1\n" * 20
            )
    context = ToolContext(FileGuard(tree, home=tmp_path), tmp_path / "spill", child_environment({}, temp=tmp_path))
    tool = Toolbox.discover().find("grep")

    def ours():
        started = time.monotonic()
        found = asyncio.run(tool.call(context, tool.validate({"pattern": "needle"})))
        assert "f7.py" in found
        return time.monotonic() - started

    def theirs():
        started = time.monotonic()
        subprocess.run([ripgrep({}), "-n", "needle", str(tree)], check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - started

    ours()
    mine, rg = pairs(ours, theirs, 7)
    detail = f"{min(mine) * 1000:.0f} / {min(rg) * 1000:.0f} ms"
    report(Row("grep over 50 000 files, over rg", ratio(mine, rg), "x", 1.5, 1.1, detail), capsys)
