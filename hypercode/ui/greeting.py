"""The first lines of a chat, and the last."""

from __future__ import annotations

from hypercode import __version__
from hypercode.ui import render
from hypercode.ui.clean import clean
from hypercode.ui.style import Style

__all__ = ["farewell", "greeting"]


def greeting(style: Style, model: str, folder: str) -> list[str]:
    """What and where this is, and how to find out more."""
    what = f"{style.bold('hypercode')} {__version__} {style.dim('·')} {clean(model, 'filename')}"
    return [
        f"{what} {style.dim('·')} {clean(folder, 'filename')}",
        style.dim("/help shows commands and keys · Ctrl-C stops a reply · Ctrl-D leaves"),
    ]


def farewell(style: Style, turns: int, cost: float | None, *, saved: bool) -> list[str]:
    """What there was, and how to go on with it; nothing where there was nothing."""
    if not turns:
        return []
    totals = ["1 turn" if turns == 1 else f"{turns} turns", render.money(cost), "hypercode -c goes on" if saved else ""]
    unsaved = [] if saved else ["! This conversation was not saved."]
    return ["", *unsaved, style.dim(" · ".join(total for total in totals if total))]
