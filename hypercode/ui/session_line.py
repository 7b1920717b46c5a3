"""Saved sessions in lists."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hypercode.memory.sessions import Head
from hypercode.ui import render
from hypercode.ui.clean import clean
from hypercode.ui.hooks import MARKED

__all__ = ["session_line", "session_rows"]

_SAID = 60  # cells of the first words that are shown
_NARROW = 60  # columns
_LEAST_SAID = 16  # cells below which they go on a row of their own


def session_line(head: Head, *, folder: bool = False, width: int = 0) -> str:
    """A session on one line: time, name, first words, model, turns, cost, and its folder where asked for.

    In a picker of a narrow terminal (`width` cells) the words come first, with room for month and time behind them.
    """
    when, said, about = _parts(head, folder=folder)
    if 0 < width < _NARROW:
        when = when.partition("-")[2]
        room = max(_LEAST_SAID, width - len(when) - MARKED - 2)
        said = render.fit(said, room)
        return "  ".join([f"{said}{'':<{room - render.cells(said)}}", when, about])
    return "  ".join([when, render.fit(said, _SAID), about])


def session_rows(heads: Sequence[Head], *, width: int, folder: bool = False) -> list[str]:
    """Sessions as a list for a terminal: what `session_line` says in columns, the id first.

    First words are shortened to what there is room for; where there is none, a session takes rows of its own for them.
    """
    parts = [_parts(head, folder=folder) for head in heads]
    firsts = [f"{head.session}  {when}" for head, (when, _, _) in zip(heads, parts, strict=True)]
    taken = (
        max(map(render.cells, firsts), default=0) + max((render.cells(about) for _, _, about in parts), default=0) + 4
    )
    if (room := width - taken) < _LEAST_SAID:
        listed = zip(firsts, parts, strict=True)
        return [row for first, (_, said, about) in listed for row in (first, *_below(said, about, width))]
    shown = [render.fit(said, min(room, _SAID)) for _, said, _ in parts]
    column = max(map(render.cells, shown), default=0)
    return [
        f"{first}  {said}{'':<{column - render.cells(said)}}  {about}"
        for first, said, (_, _, about) in zip(firsts, shown, parts, strict=True)
    ]


def _below(said: str, about: str, width: int) -> list[str]:
    room = width - render.cells(about) - 4
    if room >= _LEAST_SAID:
        return [f"  {render.fit(said, min(room, _SAID))}  {about}"]
    return [f"  {render.fit(said, width - 2)}", f"  {about}"]


def _parts(head: Head, *, folder: bool) -> tuple[str, str, str]:
    """When it was used, its name and first words, and what else is known of it."""
    turns = f"{head.turns} turn{'' if head.turns == 1 else 's'}"
    about = [head.model or "", turns, render.money(head.cost), (head.cwd or "?") if folder else ""]
    said = [f"[{head.name}]" if head.name else "", head.words or "(nothing was said)"]
    return (
        time.strftime("%Y-%m-%d %H:%M", time.localtime(head.last)),
        clean(" ".join(filter(None, said)), "filename"),
        clean(" · ".join(filter(None, about)), "filename"),
    )
