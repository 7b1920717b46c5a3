"""The full screen of a chat, with its history and completion."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from hypercode.app import App
from hypercode.ui.hooks import Hooks

if TYPE_CHECKING:
    from hypercode.ui.screen import Screen

__all__ = ["full_screen"]


def full_screen(hooks: Hooks, app: App, commands: Callable[[], dict[str, str]]) -> Screen:
    """A screen whose history is the folder's and whose completion knows the commands and files."""
    from hypercode.ui.completion import completions
    from hypercode.ui.history import history_for
    from hypercode.ui.screen import Screen

    workspace = app.agent.context.workspace
    digest = hashlib.sha256(str(workspace).encode()).hexdigest()[:16]
    history = history_for(app.folders.state / "history" / digest)
    return Screen(hooks, history=history, completer=completions(workspace, commands), vi_mode=app.config.vi)
