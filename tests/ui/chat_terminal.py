"""The chat and its preview in real terminals."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyte
from screen_terminal import Terminal, trimmed

sys.path.insert(0, str(Path(__file__).parent.parent / "tools/render"))
sys.path.insert(0, str(Path(__file__).parent.parent / "e2e"))

import mdstream_gen

from hypercode.ui.clean import clean
from hypercode.ui.markdown import render

__all__ = ["BUSY", "FORBIDDEN", "Chat", "Reader", "fed", "mdstream_gen", "preview", "printed", "write_text"]

PROBE = str(Path(__file__).with_name("chat_probe.py"))
HYPERCODE = str(Path(sys.executable).with_name("hypercode"))

FORBIDDEN = re.compile(rb"\x1b\[[23]J|\x1b\[\?(?:1049|47|1047|100[0-6]|1015)h|\x1b\[6n|\x1b\]|\x1bP|\x1bc")
"""What must never be sent: clearing screen or scrollback, the alternate screen, the mouse, questions, OSC and DCS strings."""


BUSY = re.compile(r"connecting|thinking|writing|running|calling|retrying|waiting|starting|reading")
"""What a status line says while something is going on."""


def write_text(folder: Path, text: str) -> Path:
    path = folder / "reply.md"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def preview(path: Path, *options: str, log: Path | None = None) -> list[str]:
    """The command that streams a file; with `log` its writes are noted there."""
    python = [sys.executable, *([PROBE, str(log), "hypercode.ui.preview"] if log else ["-m", "hypercode.ui.preview"])]
    return [*python, str(path), *options]


def fed(data: str, columns: int, rows: int) -> list[str]:
    """The scrollback and screen of a terminal that was sent this."""
    screen = pyte.HistoryScreen(columns, rows, history=100_000, ratio=0.5)
    pyte.Stream(screen).feed(data)
    cells = [*screen.history.top, *(screen.buffer[y] for y in range(rows))]
    return trimmed(["".join(row[x].data for x in range(columns)) for row in cells])


def printed(text: str, columns: int, rows: int) -> list[str]:
    """What a terminal shows of the text when all of it is printed at once."""
    return fed("".join(f"{row}\x1b[0m\r\n" for row in render(clean(text), columns, "256")), columns, rows)


class Reader(Terminal):
    """A terminal that can be read without being drawn, which in Python takes far longer than what is measured."""

    def wait(self, what: str | Callable[[], bool], patience: float = 30.0) -> float:
        """As its parent; a program that has ended shows nothing more."""
        holds = what if callable(what) else lambda: any(what in line for line in self.visible)
        return super().wait(lambda: holds() or self._over(), patience) if not holds() else 0.0

    def _over(self) -> bool:
        if self.process.poll() is None or self.pump(0.1):
            return False
        raise AssertionError("the program has ended\n" + "\n".join(self.visible))

    def reads(self, what: bytes, patience: float = 30.0) -> float:
        """Reads until a piece of output holds this; returns the seconds it took. It is drawn afterwards."""
        start, data = time.monotonic(), b""
        while what not in data:
            assert time.monotonic() - start < patience, f"not read: {what!r}"
            if select.select([self.master], [], [], 0.05)[0]:
                data += os.read(self.master, 65536)
        took = time.monotonic() - start
        self.raw += data
        self._stream.feed(data)
        return took


class Chat(Reader):
    """The installed command, in a stage's workspace, against its scripted server."""

    def __init__(self, stage, *arguments, columns=80, rows=24, log=None, **environment) -> None:  # type: ignore[no-untyped-def]
        drop = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "COLORTERM", "TMUX", "TERM", "LC_ALL", "LANG")
        kept = {k: v for k, v in stage.environment().items() if k not in drop}
        program = [sys.executable, PROBE, str(log), "hypercode"] if log else [HYPERCODE]
        command = ["env", "-C", str(stage.workspace), *program, *arguments]
        super().__init__(
            command, columns, rows, env={**kept, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", **environment}
        )

    def say(self, text: str) -> None:
        """Types a message and sends it."""
        self.send(text + "\r")

    def prompt(self) -> Chat:
        """Waits for the input line."""
        self.wait(lambda: any(line.startswith("> ") or line == ">" for line in self.visible[-4:]))
        return self

    @property
    def status(self) -> str:
        """The status line."""
        return self.visible[-1] if self.visible else ""

    @property
    def draft(self) -> str:
        """The row of the input line, above the status line."""
        return next((line for line in reversed(self.visible[:-1]) if line.startswith(">")), "")

    def shows(self, *texts: str) -> None:
        """Waits until all of these are in the scrollback or on the screen."""
        self.wait(lambda: all(any(text in line for line in self.lines) for text in texts))

    def idle(self) -> None:
        """Waits until the status line says that nothing is going on."""
        self.wait(lambda: " box" in self.status and not BUSY.search(self.status))

    def leave(self) -> int:
        """Ctrl-D on the empty line."""
        self.send("\x04")
        return self.finish()
