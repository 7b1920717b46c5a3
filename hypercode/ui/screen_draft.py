"""The message being written: the edit buffer, folded pastes, the external editor."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from prompt_toolkit.application.run_in_terminal import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, ConditionalCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import History

from hypercode.ui.clean import clean

__all__ = ["Draft"]

_FOLD_LINES = 15
_FOLD_CHARACTERS = 4000
_PLACEHOLDER = re.compile(r"\[pasted \d+ lines? #\d+\]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Draft:
    """The text in the input line. Long pastes stand in it as `[pasted 20 lines #1]` until it is sent."""

    def __init__(self, history: History | None, completer: Completer | None) -> None:
        self._pasted: dict[str, str] = {}
        if completer is not None:
            # prompt_toolkit completes once more after a message was sent, when there is nothing to complete.
            completer = ConditionalCompleter(completer, Condition(lambda: bool(self.buffer.text)))
        self.buffer = Buffer(
            multiline=True, history=history, completer=completer, complete_while_typing=completer is not None
        )

    @property
    def text(self) -> str:
        """The whole text, pastes expanded. Bytes that were not UTF-8 show as U+FFFD: they could be neither saved nor sent."""
        return _SURROGATE.sub("\ufffd", _PLACEHOLDER.sub(lambda m: self._pasted.get(m[0], m[0]), self.buffer.text))

    @text.setter
    def text(self, text: str) -> None:
        self.buffer.document = Document(text, len(text))

    def paste(self, text: str) -> None:
        """Inserts text as the terminal delivered it between the paste marks."""
        text = clean(text)
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines > _FOLD_LINES or len(text) > _FOLD_CHARACTERS:
            placeholder = f"[pasted {lines} line{'s' if lines > 1 else ''} #{len(self._pasted) + 1}]"
            self._pasted[placeholder] = text
            text = placeholder
        self.buffer.insert_text(text)

    def take(self) -> str:
        """Empties the input line, remembers its text in the history and returns it; an empty string if there is nothing."""
        text = self.text
        if not text.strip():
            self.buffer.reset()
            return ""
        self.buffer.text = text
        self.buffer.append_to_history()
        self.buffer.reset()
        return text

    def new_line(self) -> None:
        """Breaks the line at the cursor."""
        self.buffer.insert_text("\n")

    def end_with_backslash(self) -> bool:
        """Whether the text ends in a backslash with the cursor behind it; it becomes a line break then."""
        if not (self.buffer.document.is_cursor_at_the_end and self.buffer.text.endswith("\\")):
            return False
        self.buffer.delete_before_cursor()
        self.new_line()
        return True

    def delete_before_cursor(self) -> None:
        """Backspace: a folded paste goes as a whole, so that half a placeholder cannot lose it."""
        before = self.buffer.document.text_before_cursor
        folded = next((p for p in self._pasted if before.endswith(p)), None)
        self.buffer.delete_before_cursor(len(folded) if folded else 1)

    async def edit(self) -> str | None:
        """Opens $VISUAL, $EDITOR or the first editor there is with the text; returns what went wrong, or None."""
        names = [os.environ.get("VISUAL"), os.environ.get("EDITOR"), "editor", "nano", "vim", "vi"]
        command = next((w for w in map(str.split, filter(None, names)) if shutil.which(w[0])), None)
        if command is None:
            return "no editor found: set EDITOR"
        text = self.text
        try:
            self.text = await run_in_terminal(lambda: _edited(command, text), in_executor=True)
        except (OSError, subprocess.SubprocessError) as error:
            return f"{error}; the draft is unchanged"
        return None


def _edited(command: list[str], text: str) -> str:
    """Runs the editor on a file with the text and returns what is in it afterwards."""
    with tempfile.TemporaryDirectory(prefix="hypercode-") as folder:
        path = Path(folder, "message.md")
        path.write_text(text, "utf-8")
        subprocess.run([*command, str(path)], check=True)
        return clean(path.read_text("utf-8", errors="replace")).removesuffix("\n")
