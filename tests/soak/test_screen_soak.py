"""Long and wild use of the screen in real terminals."""

from __future__ import annotations

import random
import re
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "ui"))

from screen_terminal import Terminal, Tmux, driver

pytestmark = pytest.mark.soak

KEYS = [
    "a",
    "字",
    "é",
    " ",
    "\x7f",
    "\x1b[A",
    "\x1b[B",
    "\x1b[D",
    "\x01",
    "\x05",
    "\n",
    "\x0c",
    "\x1b[Z",
    "\x0f",
    "\x12",
    "\t",
    "/",
]
KEYS += ["\x1b[200~one\r\ntwo\x1b[201~", "\x1b[200~" + "x\n" * 20 + "\x1b[201~", "\x1b[27;5;13~", "\x1b", "\x07\x07"]


@pytest.mark.parametrize("seed", range(6))
def test_any_keys_at_any_size_lose_nothing(seed: int) -> None:
    chance = random.Random(seed)
    size = chance.choice([(80, 24), (40, 8), (20, 4), (10, 4), (200, 50), (3, 2)])
    command = driver("--stream", "--lines", "400", "--rate", "400", "--prompt", "> ")
    with Terminal(command, *size, env={"EDITOR": "true", "VISUAL": "true"}) as terminal:
        terminal.wait(lambda: b"M00" in terminal.raw)
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            terminal.send(chance.choice(KEYS))
            terminal.pump(0.02)
        terminal.wait(lambda: "".join(x.strip() for x in terminal.lines).count("[done]") == 1)
        assert terminal.process.poll() is None
        got = [int(m) for m in re.findall(r"M(\d{5})", "".join(terminal.lines))]
        if size[0] >= 10:
            assert got == list(range(1, 401))
        assert terminal.codes() - {"\x1b[H"} == set()
        terminal.send("\x07\x07\x03\x03\x03\x03")
        terminal.finish()
        assert terminal.left_clean()


@pytest.mark.parametrize("seed", range(6))
def test_dragging_for_long_never_loses_a_line(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    command = driver("--stream", "--leave", "--lines", "600", "--rate", "400", "--live", "7")
    with Tmux(tmp_path, command, 80, 24) as tmux:
        tmux.wait("M00010")
        while not tmux.done.exists():
            tmux.resize(chance.randint(24, 100), chance.randint(6, 30))
            time.sleep(chance.choice([0.02, 0.05, 0.4]))
        lines = tmux.lines()
    got = [int(m) for m in re.findall(r"M(\d{5})", "".join(lines))]
    assert sorted(set(got)) == list(range(1, 601))


def test_a_long_session_keeps_nothing_of_what_was_committed() -> None:
    def memory(terminal: Terminal) -> int:
        text = Path(f"/proc/{terminal.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", text)[0])

    with Terminal(driver("--lines", "500", "--rate", "0")) as terminal:
        terminal.ready()
        sizes = []
        for reply in range(20):
            terminal.send("stream\r")
            terminal.wait(lambda: terminal.raw.count(b"[done]") == reply + 1)  # noqa: B023
            sizes.append(memory(terminal))
    assert sizes[-1] - sizes[4] < 2000
