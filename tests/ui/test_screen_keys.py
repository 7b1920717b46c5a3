"""The input line: what each key does, and that the terminal is as before whatever way the program ends."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from screen_terminal import Terminal, Tmux, driver

PASTE = "\x1b[200~{}\x1b[201~"


@pytest.mark.parametrize("line_break", ["\n", "\x1b\r", "\\\r"], ids=["ctrl-j", "alt-enter", "backslash"])
def test_a_new_line_in_a_message(line_break: str) -> None:
    with Terminal(driver()) as terminal:
        terminal.ready().send(f"one{line_break}two\r")
        terminal.wait("you: two")
        assert terminal.visible == ["you: one", "you: two", "PROMPT>", "STATUSBAR idle"]


def test_history_is_kept_across_runs_and_searched(tmp_path: Path) -> None:
    command = driver("--history", str(tmp_path / "history"))
    with Terminal(command) as terminal:
        terminal.ready().send("alpha one\rbeta\ntwo\r")
        terminal.wait("you: two")
        terminal.send("\x04")
        assert terminal.finish() == 0
    with Terminal(command) as terminal:
        terminal.ready().send("\x1b[A")
        terminal.wait("PROMPT> beta")
        terminal.send("\x03")
        terminal.wait(lambda: "PROMPT>" in terminal.visible)
        terminal.send("\x12al")
        terminal.wait("backward: al")
        terminal.send("p")
        terminal.wait("PROMPT> alpha one")
        terminal.send("\r\r")
        terminal.wait("you: alpha one")


def test_keys_of_the_caller() -> None:
    with Terminal(driver()) as terminal:
        terminal.ready().send("draft\x1b[Z\x0f\x03\x03")
        terminal.wait("[expand]")
        assert terminal.finish() == 0
        assert terminal.lines == ["[mode]", "[expand]", "left"]


def test_completion_shows_under_the_input_line_and_goes_again() -> None:
    with Terminal(driver()) as terminal:
        terminal.ready().send("/m")
        terminal.wait("/mode")
        assert [line.strip() for line in terminal.visible] == ["PROMPT> /m", "/model", "/mode", "STATUSBAR idle"]
        terminal.send("\t\r")
        terminal.wait("you: /model")
        terminal.wait(lambda: terminal.visible == ["you: /model", "PROMPT>", "STATUSBAR idle"])


def test_a_long_paste_folds_and_is_sent_whole() -> None:
    text = "\r\n".join(f"row {i}" for i in range(1, 21))
    with Terminal(driver()) as terminal:
        terminal.ready().send("see " + PASTE.format(text) + " end" + PASTE.format("short\rone"))
        terminal.wait("one")
        assert terminal.visible == ["PROMPT> see [pasted 20 lines #1] endshort", "        one", "STATUSBAR idle"]
        terminal.send("\r")
        terminal.wait("PROMPT>")
        terminal.wait("you: one")
        want = ["you: see row 1", *(f"you: row {i}" for i in range(2, 20)), "you: row 20 endshort", "you: one"]
        assert terminal.lines == [*want, "PROMPT>", "STATUSBAR idle"]


def test_a_folded_paste_is_deleted_as_a_whole() -> None:
    with Terminal(driver()) as terminal:
        terminal.ready().send("x" + PASTE.format("a\n" * 16))
        terminal.wait("PROMPT> x[pasted 16 lines #1]")
        terminal.send("\x7fy")
        terminal.wait("PROMPT> xy")


def test_pasted_escapes_and_broken_bytes_are_made_harmless() -> None:
    with Terminal(driver()) as terminal:
        terminal.ready().send(PASTE.format("a\x1b]0;title\x07b\x1b[2Jc").encode() + b"\xff\r")
        terminal.wait("you: a␛]0;titleb␛[2Jc�")
        assert terminal.codes() == set()
        assert terminal.screen.title == ""


def test_the_editor_gets_the_draft_with_its_pastes_and_gives_it_back(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text(
        f"#!{sys.executable}\nimport sys\np = sys.argv[1]\nt = open(p).read()\nopen(p, 'w').write(t.replace('a', 'A') + '!\\n')\n"
    )
    editor.chmod(0o755)
    with Terminal(driver(), env={"EDITOR": str(editor)}) as terminal:
        terminal.ready().send("alpha " + PASTE.format("b\n" * 17) + "\x07")
        terminal.wait("!")
        terminal.send("\r")
        terminal.wait("you: !")
        assert terminal.lines[0] == "you: AlphA b"


def test_an_editor_that_fails_leaves_the_draft() -> None:
    with Terminal(driver(), env={"EDITOR": "false", "VISUAL": ""}) as terminal:
        terminal.ready().send("alpha\x07")
        terminal.wait("the draft is unchanged")
        terminal.wait("PROMPT> alpha")


def test_lines_committed_while_an_editor_is_open_come_after_it(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho editor open\nwhile [ ! -e "$0.go" ]; do sleep 0.05; done\n')
    editor.chmod(0o755)
    with Terminal(driver("--stream", "--lines", "30", "--rate", "200"), env={"EDITOR": str(editor)}) as terminal:
        terminal.wait("M00002")
        terminal.send("\x07")
        terminal.wait("editor open")
        seen = len(terminal.raw)
        while terminal.pump(0.3):
            pass
        assert b"M000" not in terminal.raw[seen:]
        Path(f"{editor}.go").touch()
        terminal.wait("[done]")
        text = "\n".join(terminal.lines)
        assert [text.count(f"M{i:05d}") for i in range(1, 31)] == [1] * 30


def test_what_is_typed_before_the_program_is_ready_is_not_lost() -> None:
    with Terminal(driver()) as terminal:
        terminal.send("early bird\rand half a")
        terminal.wait("you: early bird")
        terminal.wait("PROMPT> and half a")


def test_vi_keys_if_wanted() -> None:
    with Terminal(driver("--vi")) as terminal:
        terminal.ready().send("abc")
        terminal.wait("PROMPT> abc")
        terminal.send("\x1b")
        terminal.wait(lambda: terminal.screen.cursor.x == 10)
        terminal.send("x\r")
        terminal.wait("you: ab")


def test_suspending_gives_the_terminal_back_and_the_draft_survives(tmp_path: Path) -> None:
    shell = ["bash", "--norc", "-i"]
    with Tmux(tmp_path, shell, 80, 12) as tmux:
        tmux.wait("$" if os.getuid() else "#")
        tmux.text(" ".join(driver()))
        tmux.keys("Enter")
        tmux.wait("STATUSBAR")
        tmux.text("half a draft")
        tmux.wait("PROMPT> half a draft")
        tmux.keys("C-z")
        tmux.wait("Stopped")
        tmux.text("stty -a | grep -c -e '-echo ' -e '-icanon' -e '-isig'; echo modes")
        tmux.keys("Enter")
        tmux.wait(lambda: tmux.visible().count("modes") == 1)
        assert "0" in tmux.visible()
        tmux.text("fg")
        tmux.keys("Enter")
        tmux.wait("PROMPT> half a draft")
        tmux.wait("STATUSBAR idle")
        tmux.text("!")
        tmux.wait("PROMPT> half a draft!")


@pytest.mark.parametrize("way", ["quit", "ctrl-d", "ctrl-c twice", "SIGTERM", "crash", "while asking"])
def test_the_terminal_is_as_before_whatever_the_end(way: str) -> None:
    with Terminal(driver()) as terminal:
        terminal.ready()
        if way == "SIGTERM":
            terminal.process.send_signal(signal.SIGTERM)
        elif way == "while asking":
            terminal.send("ask\r")
            terminal.wait("yes, once")
            terminal.process.send_signal(signal.SIGTERM)
        else:
            terminal.send(
                {"quit": "quit\r", "ctrl-d": "\x04", "ctrl-c twice": "\x03\x03", "crash": "tail 9\rcrash\r"}[way]
            )
        assert terminal.finish() == (143 if way in ("SIGTERM", "while asking") else 0)
        assert terminal.left_clean()
        assert not any("PROMPT>" in line or "STATUSBAR" in line for line in terminal.lines)


def test_a_terminal_that_goes_away_ends_the_program() -> None:
    terminal = Terminal(driver("--stream", "--lines", "100000"))
    terminal.wait("M00")
    os.close(terminal.slave)
    os.close(terminal.master)
    assert terminal.process.wait(timeout=60) is not None
