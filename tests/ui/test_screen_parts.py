"""The parts of the screen that need no terminal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
