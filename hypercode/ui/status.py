"""The status line: model, mode, box, tokens, cost, time of the reply, and what is going on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from hypercode.app import App
from hypercode.config import is_loopback
from hypercode.ui import render
from hypercode.ui.clean import clean
from hypercode.ui.transcript import Transcript

__all__ = ["ALIVE_AFTER", "ReplyClock", "activity", "fitted", "status_line"]

ALIVE_AFTER = 5.0
"""Seconds of waiting for a first word after which a server's keep-alive is worth a mention."""


_LEAST_MODEL = 10  # cells of a model's name that are worth more than the box


class ReplyClock:
    """How many seconds the reply takes that is going on, or took that was the last; looked at when one begins and ends."""

    def __init__(self) -> None:
        self._began: float | None = None
        self.seconds: float | None = None

    def look(self, *, running: bool) -> float | None:
        """The seconds as of now; None before the first reply."""
        now = time.monotonic()
        if running and self._began is None:
            self._began = now
        if self._began is not None:
            self.seconds = now - self._began
        if not running:
            self._began = None
        return self.seconds


def _box(app: App) -> str:
    """Which sandbox there is; dots while that is being found out."""
    if app.agent.context.box:
        return f"box: {app.agent.context.box.kind}"
    return "no box" if app.box_said else "box …"


def status_line(app: App, transcript: Transcript, *, clock: ReplyClock, going_on: str, width: int = 0) -> str:
    """The parts that have something to say, between dots; no more than fits into `width` cells, where that is given."""
    agent = app.agent
    seconds = clock.look(running=agent.running)
    tokens = (agent.usage or {}).get("total_tokens") or 0
    parts = {
        "model": clean(app.config.model, "filename"),
        "mode": app.gate.mode.value,
        "box": _box(app),
        "context": f"context {app.fit.meter.reading}" if agent.turns else "",
        "tokens": f"{render.count(tokens)} tokens in all" if tokens else "",
        "cost": render.money(agent.cost),
        "elapsed": _elapsed(seconds, going_on) if agent.turns else "",
        "going on": going_on,
    }
    kept = fitted(parts, width) if width else parts
    kept["going on"] = transcript.style.bold(kept["going on"])
    return _SEPARATOR.join(text for text in kept.values() if text)


def fitted(parts: Mapping[str, str], width: int) -> dict[str, str]:
    """The parts of a status line, the least important ones shortened or empty so that it takes at most `width` cells.

    The mode stays whole, and so does what is going on as long as these two have room.
    """
    kept = dict(parts)
    for name, shorter in _LEAST_FIRST:
        if (over := _size(kept) - width) <= 0:
            break
        kept[name] = shorter(kept[name], render.cells(kept[name]) - over)
    if kept["model"]:
        kept["model"] = _end_of(parts["model"], render.cells(kept["model"]) + width - _size(kept))
    return kept


def _size(parts: Mapping[str, str]) -> int:
    said = [render.cells(text) for text in parts.values() if text]
    return sum(said) + len(_SEPARATOR) * (len(said) - 1)


def _end_of(text: str, room: int) -> str:
    """The text cut to `room` cells at its beginning, where a model's name has its maker."""
    if render.cells(text) <= room:
        return text
    while text and render.cells(text) > room - 1:
        text = text[1:]
    return f"…{text}"


def _gone(text: str, room: int) -> str:
    return ""


_SEPARATOR = " · "
_LEAST_FIRST: tuple[tuple[str, Callable[[str, int], str]], ...] = (
    ("tokens", _gone),
    ("elapsed", _gone),
    ("box", lambda text, room: text.split(":")[0]),
    ("context", lambda text, room: text.split(" of ")[0]),
    ("cost", _gone),
    ("context", _gone),
    ("model", lambda text, room: _end_of(text, max(room, _LEAST_MODEL))),
    ("box", _gone),
    ("model", lambda text, room: _end_of(text, room) if room > 3 else ""),
    ("going on", lambda text, room: render.fit(text, room)),
)


def _elapsed(seconds: float | None, going_on: str) -> str:
    """How long the reply takes; nothing where what goes on has gone on for as long."""
    shown = "" if seconds is None else render.duration(seconds)
    return "" if going_on.endswith(f" {shown}") else shown


def activity(transcript: Transcript, client: Any) -> str:
    """What the agent is doing and for how long; while nothing comes, whether the server still gives signs of life.

    A server on this machine that has taken the request reads the prompt, which without a graphics card takes its time.
    """
    if not transcript.activity:
        return ""
    waited = time.monotonic() - transcript.activity_since
    if (left := getattr(client, "retry_at", 0.0) - time.monotonic()) > 0:
        return f"retrying in {math.ceil(left)} s"
    if transcript.activity != "connecting":
        return f"{transcript.activity} {render.duration(waited)}"
    doing, alive = getattr(client, "phase", "") or "connecting", ""
    last = getattr(client, "last_sign_of_life", None)
    if last is not None and is_loopback(client.settings.base_url):
        doing = "reading the prompt"
    elif last is not None and waited > ALIVE_AFTER:
        alive = ", the server is alive" if time.monotonic() - last < ALIVE_AFTER * 3 else ", the server is silent"
    return f"{doing} {render.duration(waited)}{alive}"
