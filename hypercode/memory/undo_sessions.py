"""The undo of whichever conversation is going on, and what can be taken back right after a new one began."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypercode.memory.undo import Outcome, Undo

__all__ = ["UndoSessions"]


class UndoSessions:
    """Keeps the `Undo` of one session at a time, made by `make` from the session's id when it is first needed."""

    def __init__(self, make: Callable[[str], Undo]) -> None:
        self._make = make
        self._current: Undo | None = None
        self._session = ""
        self._left = ""

    def of(self, session: str) -> Undo:
        """The undo of this session; that of another one is closed."""
        if self._current is None or self._session != session:
            self.close()
            self._session, self._current = session, self._make(session)
        return self._current

    def leave(self, session: str) -> None:
        """A new conversation begins behind that of this session: as long as it changes nothing, `undo` and `redo` are those
        of the last one that changed something."""
        if self.of(session).steps():
            self._left = session

    def forget(self) -> None:
        """Another conversation is gone on with: it has its own changes, and no others."""
        self._left = ""

    def undo(self, session: str) -> Outcome:
        """Take back the last step of this session, or of the conversation before it where this one has changed nothing."""
        return self._step(session, lambda undo: undo.undo())

    def redo(self, session: str) -> Outcome:
        """Do again what `undo` took back last."""
        return self._step(session, lambda undo: undo.redo())

    def _step(self, session: str, act: Callable[[Undo], Outcome]) -> Outcome:
        own = self.of(session)
        if own.steps() or not self._left:
            return act(own)
        left = self._make(self._left)
        try:
            done = act(left)
        finally:
            left.close()
        if done.step is None:
            return done
        return replace(done, notes=("This was done in the conversation before this one.", *done.notes))

    def close(self) -> None:
        """Let go of what is kept."""
        if self._current is not None:
            self._current.close()
            self._current = None
