"""The way of every byte to the terminal: whole frames, one write each."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

__all__ = ["ColorSystem", "TerminalOutput", "color_system"]

ColorSystem = Literal["standard", "256", "truecolor"]

_DEPTH = {
    None: ColorDepth.DEPTH_1_BIT,
    "standard": ColorDepth.DEPTH_4_BIT,
    "256": ColorDepth.DEPTH_8_BIT,
    "truecolor": ColorDepth.DEPTH_24_BIT,
}
_FORCED: dict[str, ColorSystem | None] = {"0": None, "false": None, "1": "standard", "2": "256", "3": "truecolor"}


def color_system(env: Mapping[str, str]) -> ColorSystem | None:
    """Returns the colours to use, by the names Rich has for them; None for none at all.

    NO_COLOR wins (https://no-color.org); FORCE_COLOR may name a level 0..3; else TERM and COLORTERM decide.
    """
    term = env.get("TERM", "").lower()
    if env.get("NO_COLOR"):
        return None
    if forced := env.get("FORCE_COLOR", "").lower():
        return _FORCED.get(forced, "256")
    if term in ("dumb", "unknown"):
        return None
    if env.get("COLORTERM", "").lower() in ("truecolor", "24bit") or term.endswith(("-direct", "-truecolor")):
        return "truecolor"
    return "standard" if term in ("linux", "ansi", "vt100", "vt220", "xterm-color", "eterm-color") else "256"


class TerminalOutput(Vt100_Output):
    """Collects a frame and sends it in one write, between the codes that make the terminal show it at once (mode 2026).

    Differs from its parent where that one would harm the scrollback or send what a terminal answers to: it never asks for the
    cursor's position, never clears from the first cell on, and takes the size from the terminal alone.
    """

    def __init__(self, stdout: TextIO | None = None, env: Mapping[str, str] | None = None) -> None:
        env = os.environ if env is None else env
        out = stdout or sys.stdout
        self.colors = color_system(env)
        super().__init__(out, self._terminal_size, term=env.get("TERM"), default_color_depth=_DEPTH[self.colors], enable_bell=False, enable_cpr=False)  # fmt: skip
        self._hold = 0
        self._gone = False

    def _terminal_size(self) -> Size:
        try:
            columns, rows = os.get_terminal_size(self.stdout.fileno())
        except OSError:
            columns, rows = 0, 0
        return Size(rows=rows or 24, columns=columns or 80)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Makes one frame of all that is flushed inside."""
        self._hold += 1
        try:
            yield
        finally:
            self._hold -= 1
            self.flush()

    def flush(self) -> None:
        if self._hold or not self._buffer:
            return
        frame = "".join(self._buffer)
        self._buffer = []
        if frame and not self._gone:
            self._send(f"\x1b[?2026h{frame}\x1b[?2026l".encode(self.stdout.encoding or "utf-8", "replace"))

    def _send(self, data: bytes) -> None:
        """Writes all of it. A terminal that has gone away is not an error here: its input will end, too."""
        fd = self.stdout.fileno()
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                select.select([], [fd], [])
            except OSError:
                self._gone = True
                return

    def erase_down(self) -> None:
        """Erases from the cursor, which is at the left margin, to the end of the screen, beginning one cell further on.

        `CSI J` at the top-left cell makes tmux move the screen into its history. Going down row by row instead is worse: while
        a window is made lower, the rows below the cursor may already be gone, and what goes down does not come up again right.
        """
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")

    def show_cursor(self) -> None:
        if not self._cursor_visible:
            self._cursor_visible = True
            self.write_raw("\x1b[?25h")

    def reset_cursor_key_mode(self) -> None:
        """Nothing: both modes' arrow keys are understood."""
