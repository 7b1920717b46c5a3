"""Measuring in pairs: each figure is a ratio to a baseline of the same run, because machines drift.

A measurement and its baseline are taken alternately, several times; the figure is the median of the pairwise ratios.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).parents[1] / "tools/bench"
BASELINES = TOOLS / "baselines.py"
HYPERCODE = str(Path(sys.executable).with_name("hypercode"))


@dataclass
class Row:
    """A figure with its promise (`limit`, what a failure means) and its goal."""

    name: str
    value: float
    unit: str
    limit: float
    goal: float
    detail: str = ""

    @property
    def kept(self):
        return self.value <= self.limit

    def __str__(self):
        mark = "goal" if self.value <= self.goal else "ok" if self.kept else "TOO SLOW"
        return f"{self.name:<46} {self.value:8.2f} {self.unit:<3} limit {self.limit:<6g} goal {self.goal:<6g} {mark:<9} {self.detail}"


def report(row, capsys):
    """Print the row where a person sees it, keep it for the table, and fail when the promise is broken."""
    with capsys.disabled():
        print("\n" + str(row), end="")
    assert row.kept, str(row)


@contextmanager
def mock_server(tmp_path):
    """The mock model server in a process of its own; yields its base URL."""
    log = tmp_path / "mock.jsonl"
    process = subprocess.Popen(
        [sys.executable, str(TOOLS / "mockllm.py"), "--port", "0", "--log", str(log)], stdout=subprocess.DEVNULL
    )
    try:
        while not (log.exists() and log.read_text().endswith("\n")):
            assert process.poll() is None, "the mock server ended"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{json.loads(log.read_text().split(chr(10))[0])['port']}/v1"
    finally:
        process.terminate()
        process.wait()


def environment(base_url, home):
    """A clean environment in which both hypercode and the baselines find the mock server."""
    unset = (
        "HYPERCODE_",
        "OPENAI_",
        "OPENROUTER_",
        "PYTHONDONTWRITEBYTECODE",
    )  # an installed program has its byte code
    kept = {k: v for k, v in os.environ.items() if not k.startswith(unset)}
    return kept | {
        "HOME": str(home),
        "HYPERCODE_HOME": str(home / "hypercode"),
        "HYPERCODE_BASE_URL": base_url,
        "HYPERCODE_API_KEY": "sk-none",
        "HYPERCODE_MODEL": "mock-1",
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": "sk-none",
    }


@dataclass
class Run:
    """Seconds to the first byte that has the reply's start token, to the end, and of CPU."""

    first: float
    wall: float
    cpu: float
    peak_mib: float
    output: bytes


def run_piped(argv, env, cwd, token=b"zqs"):
    """Run a command with its stdout in a pipe."""
    started = time.monotonic()
    process = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    first, output = 0.0, b""
    while data := os.read(process.stdout.fileno(), 1 << 16):
        output += data
        if not first and token in output:
            first = time.monotonic() - started
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - started
    assert process.returncode == 0, (argv, process.returncode, output[-500:])
    return Run(first, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output)


def pairs(one, other, times):
    """`one` and `other` alternately; the measured values of each."""
    got = [(one(), other()) for _ in range(times)]
    return [a for a, _ in got], [b for _, b in got]


def ratio(ours, theirs):
    """The median of the pairwise ratios."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def seconds(argv, **options):
    """Wall-clock seconds of a command."""
    started = time.monotonic()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, **options)
    return time.monotonic() - started


def children_cpu():
    """CPU seconds of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
