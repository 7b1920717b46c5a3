"""The status line: model, mode, box, tokens, cost, time, and what is going on."""

from __future__ import annotations

import time
from typing import Any

from hypercode.app import App
from hypercode.config import is_loopback
from hypercode.ui import render
from hypercode.ui.clean import clean
from hypercode.ui.transcript import Transcript

__all__ = ["ALIVE_AFTER", "activity", "status_line"]

ALIVE_AFTER = 5.0
"""Seconds of waiting for a first word after which a server's keep-alive is worth a mention."""


def status_line(app: App, transcript: Transcript, *, started: float, going_on: str) -> str:
    """The parts that have something to say, between dots."""
    agent = app.agent
    tokens = (agent.usage or {}).get("total_tokens") or 0
    parts = [
        clean(app.config.model, "filename"),
        app.gate.mode.value,
        f"box: {app.agent.context.box.kind}" if app.agent.context.box else "no box",
        f"context {app.fit.meter.reading}" if agent.turns else "",
        f"{render.count(tokens)} tokens" if tokens else "",
        render.money(agent.cost),
        render.duration(time.monotonic() - started) if agent.turns else "",
        transcript.style.bold(going_on),
    ]
    return " · ".join(part for part in parts if part)


def activity(transcript: Transcript, client: Any) -> str:
    """What the agent is doing and for how long; while nothing comes, whether the server still gives signs of life.

    A server on this machine that has taken the request reads the prompt, which without a graphics card takes its time.
    """
    if not transcript.activity:
        return ""
    waited = time.monotonic() - transcript.activity_since
    if transcript.activity != "connecting":
        return f"{transcript.activity} {render.duration(waited)}"
    doing, alive = getattr(client, "phase", "") or "connecting", ""
    last = getattr(client, "last_sign_of_life", None)
    if last is not None and is_loopback(client.settings.base_url):
        doing = "reading the prompt"
    elif last is not None and waited > ALIVE_AFTER:
        alive = ", the server is alive" if time.monotonic() - last < ALIVE_AFTER * 3 else ", the server is silent"
    return f"{doing} {render.duration(waited)}{alive}"
