"""Questions of a one-shot run, put to the terminal in plain lines where there is one."""

from __future__ import annotations

import asyncio
import os
import sys

from hypercode.safety.approval import Answer, Question
from hypercode.ui.clean import clean
from hypercode.ui.spans import folded

__all__ = ["TerminalAsker", "open_terminal"]

_HEAD_AND_TAIL = 40


def open_terminal() -> int | None:
    """A descriptor of the controlling terminal, or None where no person can be reading it."""
    if not (sys.stdin.isatty() or sys.stderr.isatty()):
        return None
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return None


class TerminalAsker:
    """Asks on a terminal, in lines; an end of input is a no."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def __call__(self, question: Question) -> Answer | None:
        """Put one question and wait for its answer."""
        lines = [*_lines(question), _choices(question)]
        self._say("\n".join(row for line in lines for row in _rows(line, self._columns())) + " ")
        return _answer(await self._read_line(), question)

    def _say(self, text: str) -> None:
        os.write(self._descriptor, text.encode("utf-8", "replace"))

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._descriptor).columns or 80
        except OSError:
            return 80

    async def _read_line(self) -> str:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[str] = loop.create_future()

        def read() -> None:
            if not ready.done():
                ready.set_result(os.read(self._descriptor, 4096).decode("utf-8", "replace"))

        loop.add_reader(self._descriptor, read)
        try:
            return await ready
        finally:
            loop.remove_reader(self._descriptor)


def _lines(question: Question) -> list[str]:
    subject = clean(question.subject, "approval")
    lines = [f"{question.tool}: {subject}"] if not question.is_command else ["Run this command?", *_indented(subject)]
    if question.detail:
        lines += _indented(clean(question.detail, "diff"))
    return ["", *lines, f"({question.reason})"]


def _rows(line: str, width: int) -> list[str]:
    """The line within the terminal's width, one cell left for the cursor; what is indented stays so."""
    return folded(line.removeprefix("  "), width - 1, "  " if line.startswith("  ") else "")


def _indented(text: str) -> list[str]:
    lines = text.split("\n")
    if len(lines) > 2 * _HEAD_AND_TAIL + 1:
        left_out = f"… {len(lines) - 2 * _HEAD_AND_TAIL} lines …"
        lines = [*lines[:_HEAD_AND_TAIL], left_out, *lines[-_HEAD_AND_TAIL:]]
    return [f"  {line}" for line in lines]


def _choices(question: Question) -> str:
    choices = ["[y]es"]
    if question.remembers:
        choices.append("yes for this [s]ession")
    if question.rule and question.remembers:
        choices.append(f"[a]lways (saves the rule {question.rule!r})")
    return ", ".join([*choices, "[n]o", "or type why not:"])


def _answer(line: str, question: Question) -> Answer:
    word = line.strip()
    short = word.lower()
    if short in ("y", "yes"):
        return Answer(True)
    if question.remembers and short in ("s", "session"):
        return Answer(True, "session")
    if question.remembers and question.rule and short in ("a", "always"):
        return Answer(True, "always")
    return Answer(False, reason="" if short in ("", "n", "no") else word)
