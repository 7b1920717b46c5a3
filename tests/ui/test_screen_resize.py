"""A window that gets another width while something is live: what streams stands there once, whatever the terminal does.

tmux wraps all rows anew, pyte cuts them; neither says so.
"""

from __future__ import annotations

import re
import time

import pytest
from chat_terminal import preview, write_text
from mdstream_gen import check_markers
from screen_terminal import Terminal, Tmux, driver


def paragraph(mark: str, words: int) -> str:
    return " ".join(f"{mark}{n:03d}{'x' * (n * 7 % 6)}" for n in range(words))


def paragraphs(lines: list[str]) -> list[list[str]]:
    """The words between blank lines; two blank lines in a row would be a paragraph without words."""
    parts: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            parts[-1] += line.split()
        else:
            parts.append([])
    return parts


def joined(tmux: Tmux) -> list[str]:
    """Scrollback and screen, with the rows that tmux wrapped put together again."""
    return tmux.run("capture-pane", "-J", "-p", "-S", "-").rstrip("\n").split("\n")


REPLY = [paragraph("y", 60), paragraph("a", 30), paragraph("b", 70), paragraph("c", 20)]


@pytest.mark.parametrize(
    ("start", "widths", "gap"),
    [
        (80, [40], 0.0),
        (80, [60], 0.0),
        (80, [120], 0.0),
        (40, [80], 0.0),
        (80, [40, 80, 60, 120], 0.03),  # quicker than the size reaches the program
        (80, [40, 80, 40], 0.4),  # slower than the live rows are hidden for
    ],
)
@pytest.mark.parametrize("moment", ["b015", "b050"])
def test_a_paragraph_that_streams_stands_there_once(start, widths, gap, moment, tmp_path):
    path = write_text(tmp_path, "\n\n".join(REPLY))
    with Tmux(tmp_path, preview(path, "--rate", "100", "--size", "8"), start, 24) as tmux:
        tmux.wait(moment)
        for width in widths:
            tmux.resize(width, 24)
            time.sleep(gap)
        tmux.wait(tmux.done.exists)
        assert paragraphs(joined(tmux)) == [part.split() for part in REPLY]


@pytest.mark.parametrize("wide", ["日本語の長い文章", "e\u0301a\u0308", "👩‍👩‍👧🇩🇪"])
def test_what_a_character_takes_need_not_be_known(wide, tmp_path):
    reply = [paragraph("y", 60), " ".join(f"b{n:03d}{wide}" for n in range(40))]
    path = write_text(tmp_path, "\n\n".join(reply))
    with Tmux(tmp_path, preview(path, "--rate", "60", "--size", "8"), 80, 24) as tmux:
        tmux.wait("b020")
        tmux.resize(50, 24)
        tmux.wait(tmux.done.exists)
        assert re.findall(r"[yb]\d{3}", "".join(joined(tmux))) == re.findall(r"[yb]\d{3}", "".join(reply))


@pytest.mark.parametrize("widths", [[40], [20, 10, 80], [120, 60]])
def test_a_terminal_that_only_cuts_its_rows_loses_and_repeats_nothing(widths):
    command = driver("--stream", "--lines", "60", "--rate", "250", "--live", "8", "--prompt", "> ")
    with Terminal(command) as terminal:
        terminal.wait("M00020")
        for width in widths:
            terminal.resize(width, 24)
            terminal.pump(0.1)
        terminal.wait(lambda: any("[done]" in line for line in terminal.lines))
        terminal.wait("STATUSBAR")
        assert check_markers("\n".join(terminal.lines), 60) == []
        assert [line for line in terminal.lines[:-2] if line.startswith(">") or "STATUS" in line] == []


def test_a_message_being_written_loses_nothing(tmp_path):
    """Its cursor is the terminal's own; live rows may then be repeated, but nothing else is."""
    path = write_text(tmp_path, "\n\n".join(REPLY))
    with Tmux(tmp_path, preview(path, "--rate", "100", "--size", "8"), 80, 24) as tmux:
        tmux.wait("a010")
        tmux.text("first line")
        tmux.keys("C-j")
        tmux.text("second line")
        tmux.wait("b030")
        tmux.wait("second line")
        for width in (40, 60):
            tmux.resize(width, 24)
            time.sleep(0.05)
        tmux.wait(lambda: tmux.visible()[-3:] == ["> first line", "  second line", "preview"])
        tmux.wait(tmux.done.exists)
        seen = [word for part in paragraphs(joined(tmux)) for word in part]
        assert {word for part in REPLY for word in part.split()} <= set(seen)
        assert [word for word in seen if word[0] in "yac"] == [w for part in (0, 1, 3) for w in REPLY[part].split()]


def test_a_question_over_live_rows_is_there_once(tmp_path):
    """Finished lines stand above: what tmux moves from the top into its history when rows become more is out of reach."""
    asks = ("stream 9", "[done]"), ("tail 8", "live row 7"), ("ask " + "word " * 30, "yes, for this session")
    with Tmux(tmp_path, driver("--prompt", "> "), 80, 24) as tmux:
        tmux.wait("STATUSBAR")
        for text, shown in asks:
            tmux.text(text)
            tmux.keys("Enter")
            tmux.wait(shown)
        for width in (40, 20, 60):
            tmux.resize(width, 24)
            time.sleep(0.05)
        tmux.wait(lambda: max(map(len, tmux.visible())) > 40)
        screen = "\n".join(tmux.lines())
        assert [screen.count(mark) for mark in ("$ word", "yes, once", "STATUSBAR")] == [1, 1, 1]
        tmux.keys("n")
        tmux.wait("[answer n")
        tmux.wait("live row 7")
        expected = ["[answer n '']", *(f"live row {n}" for n in range(8)), ">", "STATUSBAR idle"]
        tmux.wait(lambda: tmux.lines()[-len(expected) :] == expected)
        assert check_markers("\n".join(joined(tmux)), 9) == []
        assert "\n".join(tmux.lines()).count("live row") == 8


def cursor(terminal: Terminal) -> tuple[bool, int, list[tuple[int, int]]]:
    """Whether the terminal's cursor is hidden, its row, and which cells are drawn in exchanged colours."""
    screen = terminal.screen
    cells = [(y, x) for y in range(screen.lines) for x in range(screen.columns) if screen.buffer[y][x].reverse]
    return screen.cursor.hidden, screen.cursor.y, cells


def test_the_cursor_is_drawn_above_live_rows_and_real_while_one_writes():
    with Terminal(driver("--prompt", "> ")) as terminal:
        terminal.ready()
        terminal.wait(lambda: cursor(terminal) == (False, 0, []))
        terminal.send("tail 3\r")
        terminal.wait(lambda: cursor(terminal) == (True, 0, [(3, 2)]))
        terminal.send("ab")
        terminal.wait(lambda: cursor(terminal) == (False, 3, []) and "> ab" in terminal.visible)
        terminal.send("\x15tail 0\r")
        terminal.wait(lambda: cursor(terminal) == (False, 0, []) and terminal.visible == [">", "STATUSBAR idle"])
        terminal.send("\x04")
        terminal.finish()
        assert terminal.left_clean()


def test_a_draft_nobody_goes_on_with_has_a_drawn_cursor():
    with Terminal(driver("--stream", "--lines", "4000", "--prompt", "> ", "--writing", "0.3")) as terminal:
        terminal.wait("M00")
        terminal.send("a 字")
        terminal.wait(lambda: "> a 字" in " ".join(terminal.visible).replace("字 ", "字"))
        terminal.wait(lambda: cursor(terminal)[0] and [x for _, x in cursor(terminal)[2]] == [6])
        terminal.send("\x1b[D")
        terminal.wait(lambda: not cursor(terminal)[0])
        terminal.wait(lambda: cursor(terminal)[0] and [x for _, x in cursor(terminal)[2]][:1] == [4])
