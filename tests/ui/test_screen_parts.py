"""The parts of the screen that need no terminal: colours, the frame pump."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from hypercode.ui.pump import FramePump
from hypercode.ui.screen_output import ColorSystem, TerminalOutput, color_system


@pytest.mark.parametrize(
    ("env", "colors"),
    [
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "xterm"}, "256"),
        ({"TERM": "linux"}, "standard"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "truecolor"),
        ({"TERM": "dumb"}, None),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, "standard"),
        ({"TERM": "xterm", "FORCE_COLOR": "0"}, None),
        ({"TERM": "linux", "FORCE_COLOR": "3"}, "truecolor"),
        ({"TERM": "xterm", "NO_COLOR": "1", "FORCE_COLOR": "3"}, None),
        ({"TERM": "xterm", "NO_COLOR": ""}, "256"),
    ],
)
def test_colors(env: dict[str, str], colors: ColorSystem | None) -> None:
    assert color_system(env) == colors


def test_nothing_is_sent_before_the_frame_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "out"
    with file.open("w", encoding="utf-8") as stream:
        output = TerminalOutput(stream, {})
        with output.held():
            output.write_raw("a")
            output.flush()
            with output.held():
                output.write_raw("b\ud83d")
            assert file.read_text() == ""
        assert file.read_text() == "\x1b[?2026hab?\x1b[?2026l"
        output.flush()
        assert file.read_text() == "\x1b[?2026hab?\x1b[?2026l"


def test_a_terminal_that_is_gone_is_no_error() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        output = TerminalOutput(stream, {})
        os.close(reader)
        for _ in range(2):
            output.write_raw("x")
            output.flush()


async def test_the_first_frame_is_at_once_and_the_next_ones_are_one() -> None:
    frames: list[float] = []
    pump = FramePump(lambda: frames.append(time.monotonic()))
    pump.request()
    assert len(frames) == 1
    for _ in range(5):
        pump.request()
    assert len(frames) == 1
    pump.urgent()
    assert len(frames) == 2
    pump.request()
    await wait_for(lambda: len(frames) == 3)
    assert frames[2] - frames[1] >= 0.039


async def test_dear_frames_come_less_often() -> None:
    frames: list[float] = []

    def render() -> None:
        frames.append(time.monotonic())
        time.sleep(0.03)

    pump = FramePump(render, max_gap=0.1)
    pump.request()
    pump.request()
    await wait_for(lambda: len(frames) == 2)
    assert frames[1] - frames[0] >= 0.129


async def test_a_request_from_within_a_frame_and_a_failing_frame_do_no_harm() -> None:
    calls: list[int] = []

    def render() -> None:
        calls.append(1)
        pump.request()
        pump.urgent()
        if len(calls) == 1:
            raise ValueError("once")

    pump = FramePump(render)
    with pytest.raises(ValueError, match="once"):
        pump.request()
    pump.urgent()
    assert len(calls) == 2
    pump.request()
    pump.cancel()
    await asyncio.sleep(0.1)
    assert len(calls) == 2


async def wait_for(holds) -> None:  # type: ignore[no-untyped-def]
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.002)
