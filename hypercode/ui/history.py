"""What was typed before, kept across runs, one private file per folder."""

from __future__ import annotations

import os
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from hypercode.safety.private_file import private_folder

__all__ = ["history_for"]


def history_for(path: Path) -> History:
    """The history in this file, 0600; in memory only where it cannot be written."""
    try:
        private_folder(path.parent)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
