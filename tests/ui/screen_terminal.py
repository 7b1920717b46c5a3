"""Real terminals for the screen tests: a pty under pyte, and a private tmux server."""

from __future__ import annotations

import fcntl
import os
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyte
import pytest

DRIVER = str(Path(__file__).with_name("screen_driver.py"))
PATIENCE = 60.0

# What a frame may consist of: colours, cursor moves, erasing, and the modes wrap, cursor, paste and synchronised output.
ALLOWED = re.compile(
    r"\x1b\[C\x1b\[J\x1b\[D|\x1b\[[0-9;]*m|\x1b\[[0-9;]*[ABCDGHf]|\x1b\[K|\x1b\[\?(?:7|25|2004|2026)[hl]"
)
BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"


def driver(*args: str) -> list[str]:
    return [sys.executable, DRIVER, *args]


def clean_env(env: Mapping[str, str] | None = None) -> dict[str, str]:
    drop = ("TMUX", "TMUX_PANE", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "COLORTERM")
    return (
        {k: v for k, v in os.environ.items() if k not in drop}
        | {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        | dict(env or {})
    )


def trimmed(lines: list[str]) -> list[str]:
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines


class Terminal:
    """A program in a pty; `lines` is its scrollback and screen."""

    def __init__(
        self, command: list[str], columns: int = 80, rows: int = 24, env: Mapping[str, str] | None = None
    ) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=100_000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.master, self.slave = os.openpty()
        self._set_size(columns, rows)
        self.modes = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            command,
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=clean_env(env),
            preexec_fn=self._control,
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for fd in (self.master, self.slave):
            os.close(fd)

    def _control(self) -> None:
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        self._set_size(columns, rows)
        self.screen.resize(rows, columns)
        self.process.send_signal(signal.SIGWINCH)

    def send(self, keys: str | bytes) -> None:
        os.write(self.master, keys.encode() if isinstance(keys, str) else keys)

    def pump(self, seconds: float = 0.01) -> bool:
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        data = os.read(self.master, 65536)
        self.raw += data
        self._stream.feed(data)
        return True

    @property
    def visible(self) -> list[str]:
        buffer = self.screen.buffer
        return trimmed(
            ["".join(buffer[y][x].data for x in range(self.screen.columns)) for y in range(self.screen.lines)]
        )

    @property
    def lines(self) -> list[str]:
        top = ["".join(line[x].data for x in range(self.screen.columns)).rstrip() for line in self.screen.history.top]
        return trimmed(top + self.visible)

    def wait(self, what: str | Callable[[], bool], patience: float = PATIENCE) -> float:
        """Waits until a text is on the screen, or something holds; returns the seconds it took."""
        holds = what if callable(what) else lambda: any(what in line for line in self.visible)
        start = time.monotonic()
        while not holds():
            if time.monotonic() - start > patience:
                raise AssertionError(f"not seen: {what!r}\n" + "\n".join(self.visible))
            self.pump()
        return time.monotonic() - start

    def ready(self) -> Terminal:
        self.wait("STATUSBAR")
        return self

    def finish(self) -> int:
        """Waits for the program's end; returns its exit status."""
        deadline = time.monotonic() + PATIENCE
        while self.pump(0.02) or self.process.poll() is None:
            assert time.monotonic() < deadline, "did not end\n" + "\n".join(self.visible)
        return self.process.wait()

    def left_clean(self) -> bool:
        """Whether the tty's modes are as before, the cursor is visible, and no mode of ours is left on."""
        text = self.raw.decode("utf-8", "replace")
        off = all(text.rfind(f"\x1b[?{mode}h") <= text.rfind(f"\x1b[?{mode}l") for mode in (2004, 2026))
        on = all(text.rfind(f"\x1b[?{mode}l") <= text.rfind(f"\x1b[?{mode}h") for mode in (7, 25))
        return termios.tcgetattr(self.slave) == self.modes and off and on

    def codes(self) -> set[str]:
        """The escape sequences in the output that a frame should not have."""
        rest = re.sub(r"\x1b[\[?0-9;]*\Z", "", ALLOWED.sub("", self.raw.decode("utf-8", "replace")))
        return set(re.findall(r"\x1b.{0,6}", rest))


class Tmux:
    """A program in a tmux pane, under a server of its own."""

    def __init__(self, folder: Path, command: list[str], columns: int = 80, rows: int = 24) -> None:
        if shutil.which("tmux") is None and not os.environ.get("CI"):
            pytest.skip("tmux is not installed")
        conf, script = folder / "conf", folder / "run.sh"
        self.done = folder / "done"
        conf.write_text(
            "set -g history-limit 100000\nset -g status off\nset -g default-terminal screen-256color\n"
            "set -s escape-time 0\nset -g remain-on-exit on\n"
        )
        script.write_text(f"{shlex.join(command)}\necho $? > {self.done}\nexec sleep 1000\n")
        self._tmux = ["tmux", "-S", str(folder / "s"), "-f", str(conf)]
        self.run("new-session", "-d", "-x", str(columns), "-y", str(rows), "bash", str(script))

    def __enter__(self) -> Tmux:
        return self

    def __exit__(self, *exc: object) -> None:
        self.run("kill-server")

    def run(self, *args: str) -> str:
        return subprocess.run([*self._tmux, *args], env=clean_env(), capture_output=True, text=True, check=False).stdout

    def keys(self, *keys: str) -> None:
        self.run("send-keys", *keys)

    def text(self, text: str) -> None:
        self.run("send-keys", "-l", text)

    def resize(self, columns: int, rows: int) -> None:
        self.run("resize-window", "-x", str(columns), "-y", str(rows))

    def lines(self) -> list[str]:
        return trimmed(self.run("capture-pane", "-p", "-S", "-").split("\n"))

    def visible(self) -> list[str]:
        return trimmed(self.run("capture-pane", "-p").split("\n"))

    def wait(self, what: str | Callable[[], bool], patience: float = PATIENCE) -> None:
        holds = what if callable(what) else lambda: any(what in line for line in self.visible())
        deadline = time.monotonic() + patience
        while not holds():
            assert time.monotonic() < deadline, f"not seen: {what!r}\n" + "\n".join(self.visible())
            select.select([], [], [], 0.02)
