"""What is imported while the person types, or while a first message waits: in a thread, in the order of need."""

from __future__ import annotations

import asyncio
import gc

from hypercode.app import App
from hypercode.safety.own_process import close_to_others

__all__ = ["REQUEST_FIRST", "for_reply", "for_request"]

REQUEST_FIRST = 0.2
"""Seconds that a request which waited for its imports has to itself, before a thread imports more."""


def for_request(app: App) -> None:
    """Import what sending needs; blocks for some 0.4 s, so call it in a thread."""
    gc.disable()  # 50 ms would go into looking for garbage among a hundred thousand objects that all stay
    try:
        if app.client is not None:
            app.client.warm_up()
        app.extensions.load()
        app.agent.tools.schemas()
        close_to_others()
    finally:
        gc.freeze()
        gc.enable()


async def for_reply(app: App, *, markdown: bool) -> None:
    """Import what is needed once the reply is there: Markdown, lexers, the shell's grammar."""
    app.extensions.tell()
    if markdown:
        from hypercode.ui.markdown import warm_up

        await asyncio.to_thread(warm_up)
    await asyncio.to_thread(app.gate.classify, "true")
