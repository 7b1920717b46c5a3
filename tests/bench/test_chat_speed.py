"""Speed of the chat in a terminal, each figure against a baseline in the same run.  `pytest -m bench -s` prints the table."""

import json
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness import BASELINES, HYPERCODE, TOOLS, Row, environment, mock_server, pairs, ratio, report

sys.path.insert(0, str(TOOLS))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from term import Term, cpu_of, now, rss_of

pytestmark = pytest.mark.bench

PROBE = str(Path(__file__).parents[1] / "ui/chat_probe.py")
BARE_PROMPT = "from prompt_toolkit import PromptSession\nPromptSession('> ').prompt()\n"
PATIENCE = 120


@dataclass
class Bench:
    env: dict
    cwd: Path
    log: Path

    def events(self, kind):
        """The server's log lines of a kind, as they stand."""
        return [e for e in map(json.loads, self.log.read_text().splitlines()) if e["ev"] == kind]

    def event(self, kind, count):
        """Waits for the `count`th such line."""
        end = now() + PATIENCE
        while len(got := self.events(kind)) < count:
            assert now() < end, f"no {kind} in the server's log"
            time.sleep(0.002)
        return got[count - 1]


@pytest.fixture
def bench(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    with mock_server(tmp_path) as base_url:
        env = environment(base_url, home) | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        unset = ("NO_COLOR", "COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE")  # an installed program has its byte code
        yield Bench({k: v for k, v in env.items() if k not in unset}, tmp_path, tmp_path / "mock.jsonl")


def hypercode(*arguments):
    return [HYPERCODE, *arguments]


def blocks(*task):
    return [sys.executable, str(BASELINES), "blocks", *task]


def sdk_script(*task):
    return [sys.executable, str(BASELINES), "print", *task]


def at_prompt(term):
    return term.screen.display[term.screen.cursor.y].startswith("> ") and term.screen.cursor.x == 2


class Client:
    """A chat client in a terminal that has shown its prompt and is warm."""

    def __init__(self, bench, argv, rows=40, cols=120):
        self.bench = bench
        self.term = Term(argv, bench.env, bench.cwd, rows, cols)
        assert self.term.wait(at_prompt, PATIENCE), self.term.text()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.term.close()

    @property
    def cpu(self):
        return cpu_of(self.term.pid)

    def say(self, text):
        """Types a message, lets the echo settle, sends it; returns the time of Enter."""
        self.term.send(text)
        self.term.settle(0.15, 3)
        return self.term.send("\r")

    def reply(self, task):
        """Has a task answered to its end; returns CPU seconds, wall seconds and bytes written."""
        self.term.skip_to_tail()
        number = len(self.bench.events("req")) + 1
        self.term.send(task)
        self.term.settle(0.15, 3)
        cpu, written, start = self.cpu, self.term.total, len(self.term.chunks)
        sent = self.term.send("\r")
        assert self.term.wait_raw(b"zqe%04d" % number, start, PATIENCE), self.term.text()
        end = now()
        self.term.settle(0.3, 5)
        return self.cpu - cpu, end - sent, self.term.total - written


def warmed(bench, argv):
    client = Client(bench, argv)
    client.reply("kind=markdown deltas=60")
    return client


def test_prompt_ready(bench, capsys):
    """From the start of the process to an input line that takes keys."""

    def seconds(argv):
        term = Term(argv, bench.env, bench.cwd, 40, 120)
        try:
            begin = term.t0
            assert term.wait(at_prompt, PATIENCE)
            term.send("x")
            shown = term.wait(lambda t: t.before_cursor().endswith("> x"), PATIENCE)
            return shown - begin
        finally:
            term.close()

    bare = [sys.executable, "-c", BARE_PROMPT]
    seconds(hypercode()), seconds(bare)
    ours, theirs = pairs(lambda: seconds(hypercode()), lambda: seconds(bare), 7)
    detail = f"{statistics.median(ours) * 1000:.0f} / {statistics.median(theirs) * 1000:.0f} ms"
    report(Row("chat: prompt ready over a bare prompt", ratio(ours, theirs), "x", 2.0, 1.4, detail), capsys)


def test_cold_start_to_first_token(bench, capsys):
    def seconds(argv):
        term = Term(argv, bench.env, bench.cwd, 40, 120)
        try:
            seen = term.wait_raw(b"zqs", 0, PATIENCE)
            return seen - term.t0
        finally:
            term.close()

    task = "kind=markdown deltas=100"
    seconds(hypercode(task)), seconds(sdk_script(task))
    ours, theirs = pairs(lambda: seconds(hypercode(task)), lambda: seconds(sdk_script(task)), 7)
    detail = f"{statistics.median(ours) * 1000:.0f} / {statistics.median(theirs) * 1000:.0f} ms"
    report(Row("chat: cold start to first token over SDK script", ratio(ours, theirs), "x", 1.25, 1.0, detail), capsys)


def test_first_token(bench, capsys):
    """From the moment the server has sent the first delta to its being on the screen, in a warm session."""
    took = []
    with warmed(bench, hypercode()) as client:
        for _ in range(9):
            number = len(bench.events("req")) + 1
            start = len(client.term.chunks)
            client.say("kind=markdown deltas=50 gap_ms=10")
            seen = client.term.wait_raw(b"zqs%04d" % number, start, PATIENCE)
            took.append((seen - bench.event("first", number)["t"]) * 1000)
            client.term.wait_raw(b"zqe%04d" % number, start, PATIENCE)
            client.term.settle(0.2, 3)
    report(
        Row(
            "chat: first token on screen over server", statistics.median(took), "ms", 15, 5, f"worst {max(took):.1f} ms"
        ),
        capsys,
    )


def small_reply(bench, times=12):
    """CPU seconds of one reply of 1000 deltas: a dozen of them, since the system counts in steps of 10 ms."""
    with warmed(bench, hypercode()) as client:
        return sum(client.reply("kind=markdown deltas=1000")[0] for _ in range(times)) / times


def test_flood_and_growth(bench, capsys):
    """CPU of 16 000 deltas as fast as they come, live Markdown on the screen; and how it grows from 1000."""
    from math import log

    def cpu(argv, deltas):
        with warmed(bench, argv) as client:
            seconds, _, _ = client.reply(f"kind=markdown deltas={deltas}")
            return seconds, rss_of(client.term.pid)

    ours, theirs = pairs(lambda: cpu(hypercode(), 16000), lambda: cpu(blocks(), 16000), 3)
    value = ratio([c for c, _ in ours], [c for c, _ in theirs])
    detail = f"{min(c for c, _ in ours):.2f} / {min(c for c, _ in theirs):.2f} s"
    small = small_reply(bench)
    growth = log(min(c for c, _ in ours) / small) / log(16)
    memory = ratio([m for _, m in ours], [m for _, m in theirs])
    report(
        Row("chat: peak memory after 16k, over blocks", memory, "x", 2.0, 1.5, f"{max(m for _, m in ours):.0f} MiB"),
        capsys,
    )
    report(Row("chat: growth 1k to 16k (log-log)", growth, "", 1.15, 1.05, f"1k: {small * 1000:.0f} ms"), capsys)
    report(Row("chat: flood 16k, CPU, over blocks", value, "x", 1.0, 0.4, detail), capsys)


def test_paced(bench, capsys):
    """CPU while a reply arrives at 200 deltas a second, and the bytes that takes."""
    deltas = 2000
    task = f"kind=markdown deltas={deltas} gap_ms=5"

    def run(argv):
        with warmed(bench, argv) as client:
            return client.reply(task)

    ours, theirs = pairs(lambda: run(hypercode()), lambda: run(blocks()), 3)
    value = ratio([r[0] for r in ours], [r[0] for r in theirs])
    share = statistics.median(r[0] / r[1] for r in ours) * 100
    characters = 4 * deltas
    written = statistics.median(r[2] for r in ours) / characters
    report(Row("chat: bytes per character, paced", written, "", 25, 13), capsys)
    detail = f"{share:.0f} % / {statistics.median(r[0] / r[1] for r in theirs) * 100:.0f} %"
    report(Row("chat: paced, CPU, over blocks", value, "x", 1.3, 0.8, detail), capsys)


def loop_figures(term, path):
    """What the probe wrote when the program ended."""
    end = now() + PATIENCE
    while not path.exists() or not path.read_text():
        assert now() < end, "the program did not end"
        term.pump(0.02)
    return json.loads(path.read_text())


def test_longest_stall(bench, capsys):
    """The longest delay of a 5 ms heartbeat in the chat's event loop during a flood of 16 000 deltas; the best of three."""
    late, steps = [], []
    for number in range(3):
        log = bench.cwd / f"probe{number}"
        with Client(bench, [sys.executable, PROBE, str(log), "hypercode", "-m", "mock-1"]) as client:
            client.reply("kind=markdown deltas=60")
            client.reply("kind=markdown deltas=16000")
            client.term.send("\x04")
            figures = loop_figures(client.term, Path(f"{log}.loop"))
        late.append(figures["late_ms"])
        steps.append(figures["step_ms"])
    detail = f"longest step {min(steps):.0f} ms CPU; all {', '.join(f'{one:.0f}' for one in late)}"
    report(Row("chat: longest event-loop stall, 16k", min(late), "ms", 100, 40, detail), capsys)


def test_tool_name(bench, capsys):
    took = []
    with warmed(bench, hypercode()) as client:
        for _ in range(7):
            count = len(bench.events("name")) + 1
            start = len(client.term.chunks)
            client.say("kind=tool dribble_s=0.5")
            seen = client.term.wait_raw(b"write", start + 1, PATIENCE)
            event = bench.event("name", count)
            took.append((seen - event["t"]) * 1000)
            assert client.term.wait(lambda t: "yes, once" in t.text(), PATIENCE)
            client.term.send("\x03")
            assert client.term.wait(at_prompt, PATIENCE)
            client.term.settle(1.1, 5)
    report(
        Row(
            "chat: tool name on screen after its chunk",
            statistics.median(took),
            "ms",
            50,
            16,
            f"worst {max(took):.1f} ms",
        ),
        capsys,
    )


def test_ctrl_c(bench, capsys):
    """From the key to the hang-up at the server, and to an input line that echoes with nothing going on."""
    server, prompt = [], []
    with warmed(bench, hypercode()) as client:
        for number in range(9):
            start = len(client.term.chunks)
            client.say("kind=slow")
            assert client.term.wait_raw(b"zqs", start, PATIENCE)
            client.term.settle(0.05, 0.4)
            count = len(bench.events("disc")) + 1
            client.term.sync()
            pressed = client.term.send("\x03")
            client.term.send("q")
            usable = client.term.wait(lambda t: t.before_cursor().endswith("> q") and "[aborted]" in t.text() and "writing" not in t.text().split("\n")[t.screen.cursor.y + 1], PATIENCE)  # fmt: skip
            prompt.append((usable - pressed) * 1000)
            server.append((bench.event("disc", count)["t"] - pressed) * 1000)
            client.term.settle(1.2, 5)
            client.term.send("\x03")
            client.term.settle(1.2, 5)
            client.term.send("/new\r")
            client.term.settle(0.3, 5)
            assert number < 9
    report(
        Row("chat: Ctrl-C, server sees it", statistics.median(server), "ms", 50, 5, f"worst {max(server):.1f} ms"),
        capsys,
    )
    report(
        Row("chat: Ctrl-C, prompt usable", statistics.median(prompt), "ms", 100, 10, f"worst {max(prompt):.1f} ms"),
        capsys,
    )
