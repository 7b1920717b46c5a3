"""The chat without a live region: `--plain`, TERM=dumb, or no terminal at all. Plain lines, not one escape code.

Has the methods of `Screen`; those that only make sense with a region do nothing. Imports nothing but the standard library.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TextIO

from hypercode.ui.clean import clean, strip_sgr
from hypercode.ui.hooks import Answer, Choice, Hooks, declining, matching
from hypercode.ui.interrupts import interrupts
from hypercode.ui.spans import folded

__all__ = ["PlainScreen", "needs_plain"]

_DECLINED = "\x04"  # the line that Ctrl-D at a question stands for


def needs_plain(env: Mapping[str, str]) -> bool:
    """Whether there is no terminal on both sides that could show a live region."""
    return env.get("TERM", "") in ("", "dumb", "unknown") or not (sys.stdin.isatty() and sys.stdout.isatty())


class PlainScreen:
    """Writes lines to `output` and reads messages, one a line, from `input`; a line that ends in a backslash goes on.

    `interactive` is whether a person can be asked, `prompt_first` whether `run` begins with the prompt, unless a message is
    under way by then. What is written while a prompt stands comes below it, and the prompt once more below that. At the end
    of the input `hooks.eof` is called, after all of its lines.
    """

    colors: None = None

    def __init__(
        self,
        hooks: Hooks | None = None,
        *,
        prompt: str = "> ",
        input: TextIO | None = None,
        output: TextIO | None = None,
    ) -> None:
        self.hooks = hooks or Hooks()
        self._prompt = prompt
        self._in = input or sys.stdin
        self._out = output or sys.stdout
        self.interactive = self._in.isatty()
        self.prompt_first = True
        self._left = asyncio.Event()
        self._runs = asyncio.Event()
        self._turn = asyncio.Lock()
        self._answers: asyncio.Queue[str | None] = asyncio.Queue()
        self._begun = ""
        self._ended = False
        self._within_line = False
        self._waits = True  # for a message, as far as is known
        self._standing = ""  # the prompt behind which the cursor is

    async def run(self) -> None:
        """Serves the input until `exit` is called."""
        loop = asyncio.get_running_loop()
        # A thread, because a file cannot be polled; a daemon, because nothing can wake it from its read.
        threading.Thread(target=self._read, args=(loop, self._in.fileno()), name="stdin", daemon=True).start()
        try:
            with interrupts(self.hooks.interrupt):
                self._runs.set()
                if self.prompt_first and self._waits:
                    self.ready()
                await self._left.wait()
        finally:
            self._end()
            if self._standing:
                with contextlib.suppress(OSError):  # the terminal may be gone
                    self._write("\n")
                self._standing = ""

    async def started(self) -> None:
        """Waits until `run` serves the input."""
        await self._runs.wait()

    def exit(self) -> None:
        """Ends `run`."""
        self._left.set()

    @property
    def columns(self) -> int:
        """The terminal's width in cells; 80 where there is none."""
        return self._size().columns

    @property
    def rows(self) -> int:
        """The terminal's height; 24 where there is none."""
        return self._size().lines

    def commit(self, lines: Sequence[str], tail: Sequence[str] | None = None) -> None:
        """Writes finished lines; colours are dropped. Raises BrokenPipeError if the reader has gone away."""
        if lines:
            self.end_line()
            standing, self._standing = self._standing, ""
            rows = "".join(f"{clean(strip_sgr(line))}\n" for line in lines)
            self._write(f"\n{rows}" if standing else rows)
            if not self._ended:
                self._show(standing)

    def stream(self, text: str) -> None:
        """Writes a piece of a text that is still arriving, as it is."""
        if text:
            self._write("\n" * bool(self._standing) + clean(text))
            self._standing = ""
            self._within_line = not text.endswith("\n")

    def end_line(self) -> None:
        """Ends a line that `stream` left open."""
        if self._within_line:
            self._write("\n")
            self._within_line = False

    def set_tail(self, lines: Sequence[str]) -> None:
        """Nothing: unfinished rows are not shown."""

    def set_queued(self, lines: Sequence[str]) -> None:
        """Only notes that a message is under way: the typed lines are on the terminal already."""
        self._waits = self._waits and not lines

    def set_status(self, line: str) -> None:
        """Nothing."""

    def redraw(self) -> None:
        """Nothing."""

    def copy(self, text: str) -> None:
        """Nothing: it would take an escape code."""

    def ring(self) -> None:
        """Nothing."""

    def edit_draft(self) -> None:
        """Only says that there is no input line to edit."""
        self.commit(["! A plain terminal has no message to edit; write it in a file and send @file."])

    def ready(self) -> None:
        """The program waits for a message now: shows the prompt, if a person is there and `run` serves what is typed."""
        self._waits = True
        if self.interactive and self._runs.is_set() and not self._standing:
            self._show(self._prompt)

    def _show(self, prompt: str) -> None:
        """Writes a prompt, behind which what is typed stands."""
        if prompt:
            self.end_line()
        self._write(prompt)
        self._standing = prompt.rpartition("\n")[2]

    @property
    def draft(self) -> str:
        """Always empty: the terminal's own line discipline has what is being typed."""
        return ""

    @draft.setter
    def draft(self, text: str) -> None:
        if text:
            self.commit([f"not sent: {text}"])

    def clear_draft(self) -> bool:
        """Forgets the lines of an unfinished message; returns whether there were any."""
        had, self._begun = bool(self._begun), ""
        return had

    async def ask(self, question: Sequence[str], choices: Sequence[Choice], *, hold: bool = True) -> Answer:
        """Writes the question and waits for a line with a choice's key or label. Raises EOFError when the input ends."""
        async with self._turn:
            parts = [part for line in question for part in line.split("\n")]
            self.commit([row for part in parts for row in folded(part, self.columns, "| ")])
            try:
                return await self._answer(choices)
            finally:
                while not self._answers.empty():
                    if (line := self._answers.get_nowait()) is not None:
                        asyncio.get_running_loop().call_soon(self._take, line)

    async def pick(self, title: str, lines: Sequence[str]) -> int | None:
        """Writes a numbered list and returns the place of the line that was taken, None for none.

        A number takes its line, words leave those that have them, an empty line takes none.  Raises EOFError when the input
        ends.
        """
        async with self._turn:
            places = list(range(len(lines)))
            while True:
                self.commit([title, *(f"{place + 1:>3}  {lines[place]}" for place in places)])
                words = (await self._next("number, words to look for, or an empty line for none\n? ")).strip()
                if words in ("", _DECLINED):
                    return None
                found = matching(lines, words)
                if not found:
                    self.commit(["nothing matches"])
                elif len(found) == 1:
                    return found[0]
                places = found or places

    async def _answer(self, choices: Sequence[Choice]) -> Answer:
        by_word = {word.lower(): c for c in reversed(choices) for word in (c.label, c.word, c.key)}
        menu = "  ".join(f"[{c.key}] {c.label}" for c in choices)
        menu = "\n".join(row.rstrip() for row in folded(menu, self.columns, ""))
        while (choice := by_word.get(line := (await self._next(f"{menu}\n? ")).strip().lower())) is None:
            if line == _DECLINED:
                return Answer(declining(choices).key)
            self.commit([f"please answer with one of: {' '.join(c.key for c in choices)}"])
        text = await self._next(f"{choice.label}: ") if choice.free_text else ""
        return Answer(choice.key, text.strip().removesuffix(_DECLINED))

    async def _next(self, prompt: str) -> str:
        if not self._ended:
            self._show(clean(prompt))
        try:
            if (self._ended and self._answers.empty()) or (line := await self._answers.get()) is None:
                raise EOFError("the input has ended")
            return line
        finally:
            self._standing = ""

    def _take(self, line: str) -> None:
        self._standing = ""
        if self._turn.locked():
            self._answers.put_nowait(line)
        elif line == _DECLINED:
            self.ready()  # the question is gone by now
        elif line.endswith("\\"):
            self._begun += line[:-1] + "\n"
        else:
            text, self._begun = self._begun + line, ""
            if text.strip():
                self.hooks.submit(text)
            else:
                self.ready()

    def _end(self) -> None:
        self._ended = True
        if self._turn.locked():
            self._answers.put_nowait(None)

    def _eof(self) -> None:
        if self._begun:
            self._take("")
        self._end()
        self.hooks.eof()

    def _read(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        """The reading thread. `os.read`, since a thread blocked inside `sys.stdin` would hold its lock at exit."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        rest = ""
        data = b"-"
        try:
            while data:
                try:
                    data = os.read(fd, 65536)
                except OSError:
                    data = b""
                else:
                    if not data and self._turn.locked() and os.isatty(fd):  # Ctrl-D, and the terminal goes on
                        data = b"\n" if rest else f"{_DECLINED}\n".encode()
                *lines, rest = (rest + decoder.decode(data, final=not data)).split("\n")
                if not data and rest:
                    lines.append(rest)
                for line in lines:
                    loop.call_soon_threadsafe(self._take, line.removesuffix("\r"))
            loop.call_soon_threadsafe(self._eof)
        except RuntimeError:  # the loop is closed: nobody is left to read for
            return

    def _size(self) -> os.terminal_size:
        try:
            size = os.get_terminal_size(self._out.fileno())
        except (OSError, ValueError):
            size = os.terminal_size((0, 0))
        return os.terminal_size((size.columns or 80, size.lines or 24))

    def _write(self, text: str) -> None:
        self._out.flush()  # what others wrote; our own goes out unbuffered, so that nothing is left to fail at exit
        view = memoryview(text.encode(self._out.encoding or "utf-8", "replace"))
        while view:
            view = view[os.write(self._out.fileno(), view) :]
