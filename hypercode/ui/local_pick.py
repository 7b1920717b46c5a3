"""The model on this machine in the chat: which one, where there are several, and whether the embedded server came up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypercode.errors import ModelError
from hypercode.ui import render
from hypercode.ui.clean import clean

if TYPE_CHECKING:
    from hypercode.ui.repl import Chat

__all__ = ["choose", "watch"]


async def choose(chat: Chat) -> None:
    """Let the person take one of the models that were found; without an answer it is the first."""
    local = chat.app.local
    if local is None or not local.undecided:
        return
    await chat.transcript.settled()
    try:
        lines = [clean(str(offer), "filename") for offer in local.offers]
        place = await chat.screen.pick("Which model on this machine? (type to search, Enter)", lines)
    except EOFError:
        return
    local.named = True
    chat.app.use_local(local.offers[place or 0])
    chat.refresh()


async def watch(chat: Chat) -> bool:
    """Wait for the embedded server, where there is one, and say so if it does not come up; returns whether there is one."""
    local = chat.app.local
    if local is None or local.client.engine is None:
        return False
    try:
        await local.client.ready()
    except ModelError as error:
        chat.transcript.say(render.error_lines(chat.transcript.style, error.as_dict(), shown=False), kind="end")
    return True
