"""Exercises the screen without any agent: the program the screen tests run in a terminal.

    python screen_driver.py [--lines N] [--rate R] [--leave] [--ask] [--plain] ...

Enter shows the message; "stream" starts a stream of numbered lines, "ask" asks, "long" asks a long question, "tail N" shows N
live rows, "quit" leaves. While a stream runs, messages wait. Ctrl-C stops the stream, or clears the line; twice, leaves.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import time
from pathlib import Path
from typing import TextIO

from frame_pump import FramePump
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory, InMemoryHistory

from hypercode.ui import screen_region
from hypercode.ui.hooks import Choice, Hooks
from hypercode.ui.plain import PlainScreen
from hypercode.ui.screen import Screen
from hypercode.ui.screen_output import TerminalOutput

CHOICES = [
    Choice("y", "yes, once"),
    Choice("s", "yes, for this session"),
    Choice("a", "always"),
    Choice("n", "no"),
    Choice("w", "no, and say why", free_text=True),
]
WORDS = [
    "the",
    "parser",
    "keeps",
    "a",
    "small",
    "window",
    "of",
    "lines",
    "so",
    "that",
    "every",
    "finished",
    "block",
    "can",
    "be",
    "printed",
    "once",
]


class LoggedOutput(TerminalOutput):
    """Notes each write as one JSON line: seconds, text."""

    def __init__(self, log: TextIO) -> None:
        super().__init__()
        self._log = log
        self._start = time.monotonic()

    def _send(self, data: bytes) -> None:
        super()._send(data)
        self._log.write(json.dumps([round(time.monotonic() - self._start, 4), data.decode("utf-8", "replace")]) + "\n")
        self._log.flush()


class Driver:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.hooks = Hooks(
            submit=self.submit,
            interrupt=self.interrupt,
            eof=self.leave,
            cycle_mode=lambda: self.say("[mode]"),
            expand=lambda: self.say("[expand]"),
            take_back=lambda: self.waiting.pop() if self.waiting else None,
        )
        self.screen = self.plain() if args.plain else self.full()
        self.waiting: list[str] = []
        self.stream: asyncio.Task[None] | None = None
        self.tasks: set[asyncio.Task[None]] = set()
        self.last_interrupt = 0.0
        self.tail = ""

    def plain(self) -> PlainScreen:
        return PlainScreen(self.hooks, prompt=self.args.prompt)

    def full(self) -> Screen:
        args = self.args
        return Screen(
            self.hooks,
            prompt=args.prompt,
            history=FileHistory(args.history) if args.history else InMemoryHistory(),
            completer=WordCompleter(["/help", "/model", "/mode"], sentence=True),
            vi_mode=args.vi,
            output=LoggedOutput(Path(args.log).open("w", encoding="utf-8")) if args.log else TerminalOutput(),
        )

    def say(self, *lines: str) -> None:
        self.screen.commit(lines)

    def leave(self) -> None:
        self.screen.exit()

    def start(self, coroutine) -> asyncio.Task[None]:  # type: ignore[no-untyped-def]
        task = asyncio.create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def submit(self, text: str) -> None:
        if self.stream is not None and text != "quit":
            self.waiting.append(text)
            self.show_waiting()
            return
        first, _, rest = text.partition(" ")
        match first:
            case "quit":
                self.leave()
            case "stream":
                self.stream = self.start(self.run_stream(int(rest or self.args.lines)))
            case "ask":
                self.start(self.ask([f"$ {rest or 'rm -rf build'}"]))
            case "long":
                self.start(self.ask([f"+ question row {i}" for i in range(int(rest or 60))]))
            case "tail":
                self.screen.set_tail([f"\x1b[3{i % 8}mlive row {i}\x1b[0m" for i in range(int(rest))])
            case "crash":
                self.start(self.crash())
            case _:
                self.say(*(f"you: {line}" for line in text.split("\n")))

    def show_waiting(self) -> None:
        self.screen.set_queued([f"waiting: {text}" for text in self.waiting])

    def interrupt(self) -> None:
        now = time.monotonic()
        twice, self.last_interrupt = now - self.last_interrupt < 1.0, now
        if self.stream is not None:
            self.stream.cancel()
        elif twice:
            self.leave()
        elif not self.screen.clear_draft():
            self.say("[interrupt]")

    async def ask(self, question: list[str]) -> None:
        self.screen.set_status("STATUSBAR waiting for you")
        try:
            answer = await self.screen.ask(question, CHOICES)
            self.say(f"[answer {answer.key} {answer.text!r}]")
        except EOFError as error:
            self.say(f"[no answer: {error}]")
        self.screen.set_status("STATUSBAR idle")

    async def crash(self) -> None:
        self.screen.exit()
        raise RuntimeError("as asked")

    async def run_stream(self, count: int) -> None:
        """Marked lines, a word at a time; a line is committed at its end, a bunch of them stays live for a while."""
        done: list[str] = []
        pump = FramePump(lambda: self.frame(done))
        self.screen.set_status("STATUSBAR writing")
        chance = random.Random(3)
        try:
            for k in range(1, count + 1):
                words = [f"M{k:05d}", *chance.choices(WORDS, k=chance.randint(2, 9))]
                for word in words:
                    self.tail += word + " "
                    pump.request()
                    if self.args.rate:
                        await asyncio.sleep(1 / self.args.rate)
                self.tail += "\n"
                if self.tail.count("\n") > self.args.live:
                    first, _, self.tail = self.tail.partition("\n")
                    done.append(first)
            end = "[done]"
        except asyncio.CancelledError:
            end = "[aborted]"
        pump.cancel()
        self.stream = None
        self.screen.commit([*done, *self.tail.split("\n")[: None if self.tail[-1:] != "\n" else -1], end], tail=[])
        self.tail = ""
        self.screen.set_status("STATUSBAR idle")
        waiting, self.waiting[:] = list(self.waiting), []
        self.show_waiting()
        for text in waiting:
            self.submit(text)
        if self.args.leave:
            self.leave()

    def frame(self, done: list[str]) -> None:
        lines = [self.tail[i : i + self.screen.columns] for i in range(0, len(self.tail), self.screen.columns)]
        if self.args.live:
            lines = self.tail.removesuffix("\n").split("\n")
        if done:
            self.screen.commit(done, tail=lines)
            done.clear()
        else:
            self.screen.set_tail(lines)

    async def main(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: main.cancel())
        main = self.start(self.screen.run())
        self.screen.set_status("STATUSBAR idle")
        if self.args.stream:
            await asyncio.sleep(0.05)
            self.submit("stream")
        try:
            await main
        except asyncio.CancelledError:
            sys.exit(143)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=100)
    parser.add_argument("--rate", type=float, default=400.0, help="words a second, 0: as fast as it goes")
    parser.add_argument("--live", type=int, default=3, help="finished lines that stay live")
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--leave", action="store_true")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--vi", action="store_true")
    parser.add_argument("--prompt", default="PROMPT> ")
    parser.add_argument("--history")
    parser.add_argument("--log")
    parser.add_argument("--writing", type=float, default=5.0, help="seconds a draft counts as being written")
    args = parser.parse_args()
    screen_region._WRITING_PAUSE = args.writing
    asyncio.run(Driver(args).main())
    print("left")


if __name__ == "__main__":
    main()
