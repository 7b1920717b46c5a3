"""Streams for the Markdown tests."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from hypercode.ui.clean import clean
from hypercode.ui.markdown import MarkdownStream

sys.path.insert(0, str(Path(__file__).parent.parent / "tools/render"))
import mdstream_gen

__all__ = ["LATE", "TRAPS", "bare", "cut", "mdstream_gen", "stream"]

TRAPS = {name: clean(text) for name, text in mdstream_gen.TRAPS.items()}
LATE = "reference_late"  # a link whose definition follows: what is printed stays printed


def bare(rows: list[str]) -> list[str]:
    """The rows without colours."""
    return [re.sub(r"\x1b\[[0-9;]*m", "", row) for row in rows]


def cut(text: str, size: int, seed: int = 3) -> list[str]:
    """Deltas of about `size` characters, the whole text for 0."""
    return [text] if not size else list(text) if size == 1 else mdstream_gen.pieces(text, size, seed)


def stream(text: str, width: int, *, size: int = 4, color: str | None = "standard", tail_rows: int = 12) -> list[str]:
    """All committed rows of a text that arrives in pieces, with a frame after each."""
    one = MarkdownStream(width, color=color)
    rows: list[str] = []
    for delta in cut(text, size):
        one.feed(delta)
        frame = one.frame(tail_rows=tail_rows)
        rows += frame.commit
        assert len(frame.tail) <= tail_rows
    return rows + one.close()
