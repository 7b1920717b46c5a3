"""A saved session on one line, for lists."""

from __future__ import annotations

import time

from hypercode.memory.sessions import Head
from hypercode.ui import render
from hypercode.ui.clean import clean

__all__ = ["session_line"]


def session_line(head: Head, *, folder: bool = False) -> str:
    """A session on one line: time, name, first words, model, turns, cost, and its folder where asked for."""
    turns = f"{head.turns} turn{'' if head.turns == 1 else 's'}"
    about = [head.model or "", turns, render.money(head.cost), (head.cwd or "?") if folder else ""]
    said = [f"[{head.name}]" if head.name else "", head.words or "(nothing was said)"]
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(head.last))
    return "  ".join(
        [
            when,
            render.fit(clean(" ".join(filter(None, said)), "filename"), 60),
            clean(" · ".join(filter(None, about)), "filename"),
        ]
    )
