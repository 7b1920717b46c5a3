"""SIGINT while a session serves the keys, and before and after it."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys

import pytest

from hypercode.ui.interrupts import ends_in_order, interrupts


@pytest.fixture(autouse=True)
def before():
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


async def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(5):
        await asyncio.sleep(0)


def test_the_handler_of_the_program_around_is_there_again():
    heard = []
    mine = lambda *_: heard.append("host")  # noqa: E731
    signal.signal(signal.SIGINT, mine)

    async def session():
        with interrupts(lambda: heard.append("session")):
            await interrupted()
        await interrupted()

    asyncio.run(session())
    assert signal.getsignal(signal.SIGINT) is mine
    assert heard == ["session", "host"]


def test_a_nested_use_gives_back_to_the_one_around_it_also_where_it_fails():
    heard = []

    async def session():
        with interrupts(lambda: heard.append("outer")):
            with contextlib.suppress(RuntimeError), interrupts(lambda: heard.append("inner")):
                await interrupted()
                raise RuntimeError
            await interrupted()

    asyncio.run(session())
    assert heard == ["inner", "outer"]


def test_what_was_ignored_stays_ignored():
    heard = []
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def session():
        ends_in_order()
        with interrupts(lambda: heard.append("session")):
            await interrupted()

    asyncio.run(session())
    assert (heard, signal.getsignal(signal.SIGINT)) == ([], signal.SIG_IGN)


def test_outside_the_main_thread_nothing_is_changed():
    async def session():
        ends_in_order()
        with interrupts(lambda: None):
            return signal.getsignal(signal.SIGINT)

    async def main():
        return await asyncio.to_thread(lambda: asyncio.run(session())), signal.getsignal(signal.SIGINT)

    inside, outside = asyncio.run(main())
    assert inside is outside


PROGRAM = """
import asyncio, os, signal, sys, time
from hypercode.ui import interrupts

interrupts.PATIENCE = float(sys.argv[2])

async def session():
    interrupts.ends_in_order()
    if sys.argv[1] == "before":
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(5)
    with interrupts.interrupts(lambda: print("stop", flush=True)):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
    print("saved", flush=True)

asyncio.run(session())
os.kill(os.getpid(), signal.SIGINT)
print("end", flush=True)
"""


@pytest.mark.parametrize(
    ("when", "patience", "printed", "code"),
    [("after", "60", "stop\nsaved\nend\n", 0), ("after", "-1", "stop\n", 130), ("before", "60", "", None)],
)
def test_a_program_that_ends_after_its_session_ends_in_order(when, patience, printed, code):
    run = [sys.executable, "-c", PROGRAM, when, patience]
    done = subprocess.run(run, capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout == printed
    assert code is None or (done.returncode, done.stderr) == (code, "")
    assert ("KeyboardInterrupt" in done.stderr) == (when == "before")
