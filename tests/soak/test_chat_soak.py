"""The chat for long: sizes, traps, seeds and deltas of all kinds; many replies; long streams."""

from __future__ import annotations

import json
import math
import random
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools/bench"))

from chat_terminal import FORBIDDEN, Reader, preview, printed, write_text
from harness import HYPERCODE, environment, mock_server
from mdstream_gen import TRAPS, check_markers, lost_text, marked_text, text_for
from screen_terminal import Terminal, Tmux
from term import Term, cpu_of, rss_of

from hypercode.ui.clean import clean

pytestmark = pytest.mark.soak

SIZES = [(80, 24), (38, 24), (80, 8), (200, 50), (20, 10), (10, 4)]


def streamed(path, *options, columns, rows):
    with Terminal(preview(path, *options), columns, rows) as terminal:
        assert terminal.finish() == 0
        assert terminal.left_clean()
        assert terminal.codes() == set()
        assert FORBIDDEN.findall(terminal.raw) == []
        return terminal.lines


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_every_trap_at_every_size(columns, rows, tmp_path):
    for name, text in TRAPS.items():
        if name == "reference_late":
            continue
        for size in (1, 4, 64, 0):
            got = streamed(
                write_text(tmp_path, text), "--rate", "3000", "--size", str(size), columns=columns, rows=rows
            )
            assert got == printed(text, columns, rows), (name, size)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_random_replies(columns, rows, seed, tmp_path):
    text = text_for(1500, seed + 100)
    got = streamed(
        write_text(tmp_path, text),
        "--rate",
        "1500",
        "--size",
        str(random.Random(seed).choice([1, 3, 9, 70])),
        columns=columns,
        rows=rows,
    )
    assert got == printed(text, columns, rows)
    if columns >= 40:
        assert lost_text(clean(text), "\n".join(got)) == []


@pytest.mark.parametrize("deltas", [1000, 4000])
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (38, 24), (80, 8), (200, 50)])
def test_tmux_agrees(columns, rows, deltas, tmp_path):
    path = write_text(tmp_path, text_for(deltas))
    screens = []
    for options in (["--rate", "1000"], ["--whole"]):
        folder = tmp_path / options[0]
        folder.mkdir()
        with Tmux(folder, preview(path, *options), columns, rows) as tmux:
            tmux.wait(tmux.done.exists)
            screens.append(tmux.lines())
    assert screens[0] == screens[1]


@pytest.mark.parametrize("seed", range(10))
def test_dragging_the_window(seed, tmp_path):
    chance = random.Random(seed)
    path = write_text(tmp_path, marked_text(300, seed))
    with Tmux(tmp_path, preview(path, "--rate", "600"), 80, 24) as tmux:
        tmux.wait("M0000")
        while not tmux.done.exists():
            tmux.resize(chance.randint(30, 100), chance.randint(8, 30))
            time.sleep(chance.choice([0.02, 0.1, 0.4]))
        lines = tmux.lines()
    assert [
        fault for fault in check_markers("\n".join(lines)) if "more than once" not in fault and "order" not in fault
    ] == []
    assert [line for line in lines if line.startswith("> ") or line == "preview"] == []


@pytest.mark.parametrize("seed", range(20))
def test_an_abort_at_any_point(seed, tmp_path):
    """[aborted] within 0.1 s as promised (here: 0.5), what was shown before it stays, and the terminal is left clean."""
    chance = random.Random(seed)
    with Reader(preview(write_text(tmp_path, text_for(4000, seed)), "--rate", "800"), 80, 24) as terminal:
        terminal.wait("STREAMSTART")
        until = time.monotonic() + chance.random() * 4
        while time.monotonic() < until:
            terminal.pump()
        before = [line for line in terminal.lines if line.strip()][:20]
        terminal.send("\x03")
        assert terminal.reads(b"[aborted]") < 0.5
        assert terminal.finish() == 0
        assert terminal.left_clean()
        assert terminal.lines[-1] == "[aborted]"
        assert [line for line in terminal.lines if line.strip()][: len(before) - 5] == before[:-5]


@pytest.fixture
def session(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    with mock_server(tmp_path) as base_url:
        yield dict(environment(base_url, home), TERM="xterm-256color"), tmp_path


class Session:
    """The installed chat, warm; `reply` gives the CPU seconds of one answer."""

    def __init__(self, session):
        env, cwd = session
        self.term = Term([HYPERCODE, "-m", "mock-1"], env, cwd, 40, 120)
        self.replies = 0

    def __enter__(self):
        assert self.term.wait(lambda t: t.before_cursor().endswith("> "), 60)
        self.reply(60)
        return self

    def __exit__(self, *exc):
        self.term.close()

    def reply(self, deltas):
        self.replies += 1
        before, start = cpu_of(self.term.pid), len(self.term.chunks)
        self.term.send(f"kind=markdown deltas={deltas}\r")
        assert self.term.wait_raw(b"zqe%04d" % self.replies, start, 300)
        self.term.settle(0.5, 20)
        self.term.skip_to_tail()
        return cpu_of(self.term.pid) - before


def test_twenty_replies_cost_the_same(session):
    """Neither memory nor CPU of a reply grows with what was committed. The history does grow, by some 10 KB a reply."""
    with Session(session) as chat:
        cpu, memory = [], []
        for _ in range(20):
            cpu.append(chat.reply(2000))
            memory.append(rss_of(chat.term.pid))
    assert sorted(cpu[10:])[5] <= 2 * sorted(cpu[:10])[5]
    assert memory[-1] - memory[4] <= 16  # MiB


def test_cpu_grows_with_the_text(session):
    with Session(session) as chat:
        small = sum(chat.reply(4_000) for _ in range(4)) / 4
        large = chat.reply(64_000)
    print(f"4k: {small:.2f} s, 64k: {large:.2f} s, exponent {math.log(large / small) / math.log(16):.2f}")
    assert math.log(large / small) / math.log(16) <= 1.15


@pytest.mark.parametrize("size", [16, 400])
def test_nothing_holds_up_the_event_loop(size, tmp_path):
    log = tmp_path / "log"
    text = text_for(16_000) + "\n\n| a | b |\n|---|---|\n" + "| x | y |\n" * 800 + "\n" + "w " * 10_000 + "\n"
    with Terminal(
        preview(write_text(tmp_path, text), "--rate", "2000", "--size", str(size), log=log), 80, 24
    ) as terminal:
        assert terminal.finish() == 0
    figures = json.loads(Path(f"{log}.loop").read_text())
    assert figures["step_ms"] <= 100
    assert figures["late_ms"] <= 500  # promised: 100, on a machine that does nothing else
