"""The chat on plain lines: no terminal, TERM=dumb, `--plain`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

import pytest
from rich.cells import cell_len
from screen_terminal import Terminal, clean_env, driver

from hypercode.ui.hooks import Answer, Choice, Hooks
from hypercode.ui.plain import PlainScreen

CHOICES = [Choice("y", "yes"), Choice("n", "no"), Choice("w", "no, and say why", free_text=True)]


@dataclass
class Pipes:
    keys: TextIO
    input: TextIO
    output: TextIO
    shown: TextIO

    def read(self) -> str:
        os.set_blocking(self.shown.fileno(), False)
        try:
            return os.read(self.shown.fileno(), 65536).decode()
        except BlockingIOError:
            return ""


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    read_in, write_in = os.pipe()
    read_out, write_out = os.pipe()
    files = [os.fdopen(write_in, "w"), os.fdopen(read_in), os.fdopen(write_out, "w"), os.fdopen(read_out)]
    yield Pipes(*files)
    for file in files:
        file.close()


async def until(holds) -> None:  # type: ignore[no-untyped-def]
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.002)


async def test_lines_in_lines_out(pipes: Pipes) -> None:
    sent: list[str] = []
    screen = PlainScreen(Hooks(submit=sent.append), input=pipes.input, output=pipes.output)
    screen.hooks.eof = screen.exit
    pipes.keys.write("one\r\n\ntwo\\\nhalf é\nno end")
    pipes.keys.close()
    await screen.run()
    assert sent == ["one", "two\nhalf é", "no end"]
    screen.commit(["\x1b[1mbold\x1b[0m \x1b[2J\u202ex", "", "\ud83d"])
    screen.set_tail(["tail"])
    screen.set_status("status")
    assert pipes.read() == "bold ␛[2J�x\n\n�\n"


async def test_questions(pipes: Pipes) -> None:
    sent: list[str] = []
    screen = PlainScreen(Hooks(submit=sent.append), input=pipes.input, output=pipes.output)
    run = asyncio.create_task(screen.run())
    pipes.keys.write("maybe\nYES\n")
    pipes.keys.flush()
    assert await screen.ask(["rm x\nrm y"], CHOICES) == Answer("y")
    assert pipes.read() == (
        "| rm x\n| rm y\n[y] yes  [n] no  [w] no, and say why\n? please answer with one of: y n w\n"
        "[y] yes  [n] no  [w] no, and say why\n? "
    )
    asked = asyncio.create_task(screen.ask(["again"], CHOICES))
    await until(lambda: "? " in pipes.read())
    pipes.keys.write("w\n too much \n")
    pipes.keys.flush()
    assert await asked == Answer("w", "too much")
    assert sent == []
    pipes.keys.close()
    with pytest.raises(EOFError):
        await screen.ask(["no more"], CHOICES)
    screen.exit()
    await run


async def test_leaving_while_a_question_is_open(pipes: Pipes) -> None:
    screen = PlainScreen(input=pipes.input, output=pipes.output)
    run = asyncio.create_task(screen.run())
    asked = asyncio.create_task(screen.ask(["?"], CHOICES))
    await until(lambda: "?" in pipes.read())
    screen.exit()
    await run
    with pytest.raises(EOFError):
        await asked


def test_a_reader_that_has_gone_away_is_told() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out, pytest.raises(BrokenPipeError):
        PlainScreen(output=out, input=sys.__stdin__).commit(["x"])


def test_piped_there_is_not_one_escape_code() -> None:
    command = driver("--plain", "--lines", "5", "--rate", "0")
    done = subprocess.run(
        command, input=b"hello\nstream\nquit\n", capture_output=True, env=clean_env(), timeout=60, check=True
    )
    assert done.stdout.decode().split("\n")[0] == "you: hello"
    assert b"\x1b" not in done.stdout + done.stderr


def test_on_a_terminal_there_is_a_prompt_and_ctrl_c_and_no_escape_code() -> None:
    with Terminal(driver("--plain"), env={"TERM": "dumb"}) as terminal:
        terminal.wait("PROMPT>")
        terminal.send("hello\n")
        terminal.wait("you: hello")
        terminal.send("\x03")
        terminal.wait("[interrupt]")
        terminal.send("quit\n")
        assert terminal.finish() == 0
        assert b"\x1b" not in terminal.raw


def test_importing_it_costs_no_toolkit() -> None:
    code = (
        "import sys, hypercode.ui.plain; print([m for m in ('prompt_toolkit', 'rich', 'openai') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


async def test_a_question_is_wrapped_to_the_width_and_whole(pipes: Pipes) -> None:
    screen = PlainScreen(input=pipes.input, output=pipes.output)
    screen.exit()
    command = "echo " + "漢字 " * 30 + "a" * 100 + "  two\tblanks \x1b[31mred\x1b[0m"
    choices = [
        Choice("y", "yes, once"),
        Choice("s", "yes, 'a rule of some length' for this session, in all of its words"),
    ]
    asked = asyncio.create_task(screen.ask(["Run this command?", command], choices))
    shown = ""

    def over() -> bool:
        nonlocal shown
        shown += pipes.read()
        return shown.endswith("? ")

    await until(over)
    asked.cancel()
    first, *rows = [line for line in shown.split("\n") if line.startswith("| ")]
    assert first == "| Run this command?"
    assert max(map(cell_len, shown.split("\n"))) <= 80
    assert "".join(row[2:] for row in rows) == ("echo " + "漢字 " * 30 + "a" * 100 + "  two\tblanks red").expandtabs(8)
    assert "\n[y] yes, once  [s] yes, 'a rule of some length' for this session, in all of its\nwords\n? " in shown


def test_ctrl_d_at_a_question_declines_and_the_terminal_goes_on() -> None:
    with Terminal(driver("--plain")) as terminal:
        terminal.wait(">")
        terminal.send("ask\n")
        terminal.wait("[n] no")
        terminal.send("\x04")
        terminal.wait("[answer n '']")
        terminal.send("ask\n")
        terminal.wait(lambda: "\n".join(terminal.lines).count("[n] no") == 2)
        terminal.send("y\x04\x04")  # ends the line, as Enter does
        terminal.wait("[answer y '']")
        terminal.send("still here\n")
        terminal.wait("you: still here")
        terminal.send("quit\n")
        assert terminal.finish() == 0


async def test_what_comes_while_a_prompt_stands_is_below_it_and_the_prompt_once_more(pipes: Pipes) -> None:
    sent: list[str] = []
    screen = PlainScreen(Hooks(submit=sent.append), input=pipes.input, output=pipes.output)
    screen.interactive = True
    screen.ready()
    assert pipes.read() == "", "nothing serves what would be typed yet"
    run = asyncio.create_task(screen.run())
    await screen.started()
    assert pipes.read() == "> "
    screen.ready()
    assert pipes.read() == "", "it stands already"
    screen.commit(["a notice", "of two lines"])
    assert pipes.read() == "\na notice\nof two lines\n> "
    pipes.keys.write("hello\n")
    pipes.keys.flush()
    await until(lambda: sent == ["hello"])
    screen.commit(["● reads"])
    screen.stream("an answer")
    screen.ready()
    screen.commit(["late"])
    assert pipes.read() == "● reads\nan answer\n> \nlate\n> "
    screen.stream("unasked")
    assert pipes.read() == "\nunasked"
    screen.end_line()
    screen.ready()
    asked = asyncio.create_task(screen.ask(["again?"], CHOICES))
    await until(lambda: "? " in pipes.read())
    screen.commit(["meanwhile"])
    assert pipes.read() == "\nmeanwhile\n? "
    pipes.keys.write("y\n")
    pipes.keys.flush()
    assert await asked == Answer("y")
    screen.ready()
    screen.exit()
    await run
    assert pipes.read() == "> \n", "what the shell says next is on a line of its own"
    screen.commit(["goodbye"])
    assert pipes.read() == "goodbye\n"


async def test_there_is_no_prompt_while_the_first_message_is_under_way(pipes: Pipes) -> None:
    screen = PlainScreen(input=pipes.input, output=pipes.output)
    screen.interactive = True
    screen.set_queued(["sent as soon as it can be: hello"])
    screen.set_queued([])
    run = asyncio.create_task(screen.run())
    await screen.started()
    screen.commit(["the answer"])
    assert pipes.read() == "the answer\n"
    screen.ready()
    assert pipes.read() == "> "
    screen.exit()
    await run
