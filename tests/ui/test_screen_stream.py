"""The screen while text streams: whole frames, nothing lost or repeated, the input line always there."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from screen_terminal import BEGIN, END, Terminal, Tmux, driver

sys.path.insert(0, str(Path(__file__).parent.parent / "tools/render"))

from mdstream_gen import check_markers
from measure_prompt import flicker

FORBIDDEN = re.compile(rb"\x1b\[[23]J|\x1b\[\?(?:1049|47|1047|100[0-6]|1015)h|\x1b\[6n|\x1b\]|\x1bP")


def streamed(lines: list[str]) -> list[str]:
    """The stream's own lines, without what was typed."""
    return [line for line in lines if re.match(r"M\d{5}", line)]


def test_every_flush_is_one_whole_frame_and_keeps_input_line_and_bar(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Terminal(driver("--stream", "--leave", "--lines", "60", "--rate", "300", "--log", str(log))) as terminal:
        assert terminal.finish() == 0
        assert check_markers("\n".join(terminal.lines), 60) == []
        assert terminal.left_clean()
        assert terminal.codes() == set()
        assert FORBIDDEN.findall(terminal.raw) == []
    frames = [json.loads(line)[1] for line in log.read_text("utf-8").splitlines()]
    assert [
        f for f in frames if not (f.startswith(BEGIN) and f.endswith(END) and f.count(BEGIN) == f.count(END) == 1)
    ] == []
    flushes, marks = flicker(log, 80, 24, ["PROMPT>", "STATUSBAR"])
    assert flushes > 20
    assert {mark: gone["flushes_without"] <= 3 for mark, gone in marks.items()} == {"PROMPT>": True, "STATUSBAR": True}


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 8), (20, 4), (10, 4)])
def test_typing_all_the_while_loses_and_repeats_nothing(columns: int, rows: int) -> None:
    command = driver("--stream", "--lines", "60", "--rate", "500", "--prompt", "> ")
    with Terminal(command, columns, rows) as terminal:
        terminal.wait("M00")
        for i in range(12):
            terminal.send(f"k{i}")
            if i == 6:
                terminal.send("\r")
            terminal.pump(0.03)
        terminal.wait(lambda: "you: k0k1k2k3k4k5k6" in "".join(terminal.lines))
        assert check_markers("\n".join(terminal.lines), 60) == []
        terminal.wait(lambda: "k11" in "".join(terminal.visible))
        terminal.send("\x15quit\r")
        assert terminal.finish() == 0
        assert terminal.left_clean()
        assert sum("> " in line for line in terminal.lines) == 0
        assert sum("STATUSBAR" in line for line in terminal.lines) == 0


def test_tmux_scrollback_is_the_stream_and_nothing_else(tmp_path: Path) -> None:
    """Also in a fresh pane, whose first row the region touches: no ghost of input line or bar in the history."""
    with Tmux(tmp_path, driver("--stream", "--leave", "--lines", "80", "--rate", "0", "--live", "9"), 80, 12) as tmux:
        tmux.wait(tmux_done(tmux))
        lines = tmux.lines()
    assert streamed(lines) == lines[:80]
    assert check_markers("\n".join(lines), 80) == []
    assert lines[80:] == ["[done]", "left"]


def tmux_done(tmux: Tmux):  # type: ignore[no-untyped-def]
    return tmux.done.exists


def test_the_first_row_of_a_fresh_pane_leaves_no_ghost(tmp_path: Path) -> None:
    with Tmux(tmp_path, driver(), 60, 8) as tmux:
        tmux.wait("STATUSBAR")
        tmux.text("long 30")
        tmux.keys("Enter")  # as high as the pane
        tmux.wait("rows not shown")
        tmux.keys("y")
        tmux.wait("[answer y")
        tmux.keys("C-l")
        tmux.text("tail 20")
        tmux.keys("Enter")
        tmux.wait("live row 19")
        tmux.text("quit")
        tmux.keys("Enter")
        tmux.wait(tmux_done(tmux))
        lines = tmux.lines()
    assert [line for line in lines if line] == ["[answer y '']", "left"]


def test_dragging_the_window_repeats_at_most_the_live_rows(tmp_path: Path) -> None:
    command = driver("--stream", "--leave", "--lines", "120", "--rate", "250", "--live", "5")
    with Tmux(tmp_path, command, 80, 24) as tmux:
        tmux.wait("M00010")
        for i in range(20):
            tmux.resize(80 - 2 * (i % 11), 24 - i % 5)
            time.sleep(0.05)
        tmux.resize(80, 24)
        tmux.wait(tmux_done(tmux))
        lines = tmux.lines()
    check_resized(lines, 120)


def test_one_narrowing_repeats_at_most_the_live_rows(tmp_path: Path) -> None:
    command = driver("--stream", "--leave", "--lines", "100", "--rate", "250", "--live", "8")
    with Tmux(tmp_path, command, 80, 24) as tmux:
        tmux.wait("M00020")
        tmux.resize(37, 24)
        tmux.wait(tmux_done(tmux))
        lines = tmux.lines()
    check_resized(lines, 100)


def check_resized(lines: list[str], count: int) -> None:
    got = [int(m) for m in re.findall(r"M(\d{5})", "".join(lines))]
    assert sorted(set(got)) == list(range(1, count + 1))
    assert len(got) - count <= 12
    assert [line for line in lines if "PROMPT>" in line or "STATUSBAR" in line] == []


def test_live_rows_are_at_most_four_less_than_the_terminal_has() -> None:
    with Terminal(driver(), 60, 8) as terminal:
        terminal.ready().send("tail 50\r")
        terminal.wait("live row 49")
        assert terminal.lines == [
            "live row 46",
            "live row 47",
            "live row 48",
            "live row 49",
            "PROMPT>",
            "STATUSBAR idle",
        ]
        terminal.send("tail 2\r")
        terminal.wait("live row 1")
        terminal.send("x\r")
        terminal.wait("you: x")
        assert terminal.lines == ["you: x", "live row 0", "live row 1", "PROMPT>", "STATUSBAR idle"]
        terminal.send("tail 0\r")
        terminal.wait(lambda: terminal.lines == ["you: x", "PROMPT>", "STATUSBAR idle"])


def test_keys_are_echoed_and_ctrl_c_is_served_while_text_floods() -> None:
    with Terminal(driver("--stream", "--lines", "4000", "--rate", "3000")) as terminal:
        terminal.wait("M00")
        delays = []
        for typed in ("a", "ab", "abc", "abcd", "abcde"):
            terminal.send(typed[-1])
            delays.append(terminal.wait(f"PROMPT> {typed}"))
        terminal.send("\x03")
        delays.append(terminal.wait("[aborted]"))
        assert max(delays) < 1.0  # measured: 5..20 ms
        assert "PROMPT> abcde" in terminal.visible  # the draft survives the abort
        got = [int(m) for m in re.findall(r"M(\d{5})", "\n".join(terminal.lines))]
        assert got == list(range(1, len(got) + 1))


def test_a_signal_from_outside_is_ctrl_c() -> None:
    with Terminal(driver("--stream", "--lines", "4000")) as terminal:
        terminal.wait("M00")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.wait("[aborted]") < 1.0
        terminal.wait("STATUSBAR idle")


def test_waiting_messages_are_listed_taken_back_and_sent_at_the_end() -> None:
    with Terminal(driver("--stream", "--lines", "200", "--rate", "300")) as terminal:
        terminal.wait("M00")
        for text in ("first", "second"):
            terminal.send(f"{text}\r")
            terminal.wait(f"waiting: {text}")
        terminal.send("\x1b[A")
        terminal.wait("PROMPT> second")
        terminal.send(" thought")
        terminal.wait("PROMPT> second thought")
        terminal.send("\x03")
        terminal.wait("you: first")
        terminal.wait("PROMPT> second thought")
        assert not any("waiting:" in line for line in terminal.lines[-3:])


def test_the_size_is_the_terminals_own_and_no_color_means_none() -> None:
    env = {"COLUMNS": "40", "LINES": "10", "NO_COLOR": "1"}
    with Terminal(driver(), 80, 24, env) as terminal:
        terminal.ready().send("x" * 60)
        terminal.wait("PROMPT> " + "x" * 60)
        terminal.send("\x15tail 12\r")
        terminal.wait("live row 11")
        terminal.wait("live row 0")
        assert re.findall(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7])[0-9;]*m", terminal.raw) == []
