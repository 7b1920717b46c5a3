"""Cost of the incremental Markdown renderer on a stream: a design for `tests/tools/render/bench_stream.py`.

    PYTHONPATH=tests/bench python tests/tools/render/bench_stream.py run --design bench_markdown:factory --deltas 4096

`factory` paints as a terminal program would: at most 25 frames a second, one write a frame, only rows that changed.
`blocks` is the baseline: Rich's own Markdown, once for each finished block.
"""

from __future__ import annotations

import io
import os
import re
import sys
import time
from collections.abc import Callable

from hypercode.ui.markdown import MarkdownStream, warm_up

Write = Callable[[str], int]


class Painter:
    """Rows of a live region at the cursor; the cursor rests at the start of the row below it."""

    def __init__(self, write: Write) -> None:
        self.write = write
        self.shown: list[str] = []
        self.frames = self.changed = 0

    def paint(self, commit: list[str], tail: list[str]) -> None:
        if not commit and tail == self.shown:
            return
        up = len(self.shown)
        out = ["\x1b[?2026h", f"\x1b[{up}A" if up else ""]
        if commit:
            out += ["\x1b[K\n" * up, f"\x1b[{up}A" if up else ""]
            out += [line + "\r\n" for line in commit]
            self.shown = []
        out.append("\x1b[?7l")
        for k in range(max(len(tail), len(self.shown))):
            new = tail[k] if k < len(tail) else ""
            if k < len(self.shown) and self.shown[k] == new:
                out.append("\n")
                continue
            self.changed += 1
            out.append(f"\x1b[K{new}\r\n" if k < len(self.shown) else f"{new}\r\n")
        extra = max(0, len(self.shown) - len(tail))
        out += [f"\x1b[{extra}A" if extra else "", "\x1b[?7h\x1b[?2026l"]
        self.shown = list(tail)
        self.frames += 1
        self.write("".join(out))


class Live:
    """The renderer as the terminal front end drives it."""

    def __init__(self, write: Write, cols: int, rows: int) -> None:
        warm_up()
        self.stream = MarkdownStream(cols, color="standard")
        self.painter = Painter(write)
        self.rows = min(12, rows - 4)
        self.next, self.pending = -1.0, False

    def feed(self, text: str, now: float) -> None:
        self.stream.feed(text)
        self.pending = True
        if now >= self.next:
            self.tick(now)

    def due(self) -> float | None:
        return self.next if self.pending else None

    def tick(self, now: float) -> None:
        start = time.perf_counter()
        frame = self.stream.frame(tail_rows=self.rows)
        self.painter.paint(frame.commit, frame.tail)
        self.pending = False
        self.next = now + max(0.04, 4 * (time.perf_counter() - start))

    def close(self, now: float) -> None:
        self.painter.paint(self.stream.close(), [])
        if report := os.environ.get("ROWS_REPORT"):
            print(self.painter.frames, self.painter.changed, file=open(report, "w"))  # noqa: PTH123, SIM115


class Blocks:
    """Rich's Markdown, once for each block that a blank line outside fences ends."""

    def __init__(self, write: Write, cols: int, rows: int) -> None:
        self.write, self.cols = write, cols
        self.partial, self.fence = "", ""
        self.lines: list[str] = []

    def feed(self, text: str, now: float) -> None:
        *complete, self.partial = (self.partial + text).split("\n")
        for line in complete:
            self.lines.append(line)
            marker = re.match(r" {0,3}(```+|~~~+)", line)
            if marker and not self.fence:
                self.fence = marker[1]
            elif marker and line.strip() == marker[1] and marker[1].startswith(self.fence):
                self.fence = ""
            if not line.strip() and not self.fence:
                self.show("\n".join(self.lines))
                self.lines = []

    def show(self, text: str) -> None:
        from rich.console import Console
        from rich.markdown import Markdown

        out = io.StringIO()
        Console(file=out, force_terminal=True, width=self.cols, color_system="256").print(Markdown(text))
        self.write(out.getvalue())

    def due(self) -> float | None:
        return None

    def tick(self, now: float) -> None:
        pass

    def close(self, now: float) -> None:
        self.show("\n".join([*self.lines, self.partial]))


factory = Live
blocks = Blocks

if __name__ == "__main__":
    sys.exit(__doc__)
