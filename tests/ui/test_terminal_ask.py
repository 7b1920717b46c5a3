"""Questions of a one-shot run, on a terminal of their own."""

import asyncio
import fcntl
import os
import struct
import termios

import pytest

from hypercode.safety.approval import Answer, Decision, Question
from hypercode.ui.terminal_ask import TerminalAsker


@pytest.fixture
def terminal():
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    yield master, slave
    os.close(master)
    os.close(slave)


async def asked(terminal, question, keys):
    """What is on the terminal when the question has been answered with these keys, and the answer."""
    master, slave = terminal
    answer = asyncio.create_task(TerminalAsker(slave)(question))
    shown = b""
    while not shown.endswith(b": "):
        shown += await asyncio.to_thread(os.read, master, 65536)
    os.write(master, keys)
    return shown.decode().replace("\r\n", "\n"), await answer


async def test_a_question_is_wrapped_to_the_width(terminal):
    command = "make the whole thing " + "x" * 50 + " again"
    question = Question("bash", "shell", command, "", "it is not known what it does", Decision.ASK, "make")
    shown, answer = await asked(terminal, question, b"n\n")
    assert answer == Answer(False)
    lines = shown.split("\n")
    assert max(map(len, lines)) <= 39
    begin, end = lines.index("Run this command?") + 1, lines.index("(it is not known what it does)")
    assert [line[:2] for line in lines[begin:end]] == ["  "] * (end - begin)
    assert "".join(line[2:] for line in lines[begin:end]) == command


async def test_ctrl_d_is_a_no(terminal):
    question = Question("bash", "shell", "make", "", "why", Decision.ASK, None)
    _, answer = await asked(terminal, question, b"\x04")
    assert answer == Answer(False)
