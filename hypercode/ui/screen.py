"""The terminal during the chat: finished lines above, a small live region below, one writer for both.

Everything stays in the normal buffer: what is committed belongs to the terminal's own scrollback and is never touched again.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence

from prompt_toolkit.completion import Completer
from prompt_toolkit.history import History
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from hypercode.ui.hooks import Answer, Choice, Hooks
from hypercode.ui.interrupts import interrupts
from hypercode.ui.screen_ask import Question
from hypercode.ui.screen_draft import Draft
from hypercode.ui.screen_keys import key_bindings
from hypercode.ui.screen_output import ColorSystem, TerminalOutput
from hypercode.ui.screen_pick import Pick
from hypercode.ui.screen_region import Region
from hypercode.ui.screen_rows import fragments

__all__ = ["Screen"]

# A person who types when a question appears goes on typing for a moment. This long a pause, and keys are answers.
_TYPING_PAUSE = 0.6
# A letter that answers counts after this long a pause: one with another letter right behind it began a sentence.
_ANSWER_PAUSE = 0.25
# Keys this close behind an Escape belong to a sequence nobody here knows: they are no answers.
_ESCAPE_BURST = 0.05


class Screen:
    """Owns the terminal from `run` to `exit`. All methods are to be called in the event loop's thread.

    Lines handed over are finished: at most colour codes in them, foreign text already cleaned, wrapped to `columns` where
    wrapping matters. A completer that is slow belongs into a `ThreadedCompleter`.
    """

    def __init__(
        self,
        hooks: Hooks | None = None,
        *,
        prompt: str = "> ",
        history: History | None = None,
        completer: Completer | None = None,
        vi_mode: bool = False,
        input: Input | None = None,
        output: TerminalOutput | None = None,
    ) -> None:
        self.hooks = hooks or Hooks()
        self.editing = Draft(history, completer)
        self._terminal = output or TerminalOutput()
        self._region = Region(
            self._terminal, self.editing.buffer, prompt, key_bindings(self), input or create_input(), vi_mode
        )
        self._turn = asyncio.Lock()
        self._runs = asyncio.Event()
        self.prompt_first = True  # the input line is always there
        self._deaf_until = 0.0
        self._pending: tuple[str, asyncio.TimerHandle] | None = None
        self.holding = False

    # ------------------------------------------------------------ running

    async def run(self) -> None:
        """Draws the region and serves the keys until `exit` is called or the terminal is gone; then restores the terminal."""
        try:
            self._region.take_early_lines()
            with interrupts(self.interrupt):
                await self._region.run_async(self._runs.set, set_exception_handler=False, handle_sigint=False)
        except EOFError:
            self.hooks.eof()
        finally:
            asked = self._region.question
            if asked is not None and not asked.answer.done():
                asked.answer.set_exception(EOFError("the screen was closed"))
            self._region.paint()

    async def started(self) -> None:
        """Waits until `run` serves the keys, so that something can be asked."""
        await self._runs.wait()

    def exit(self) -> None:
        """Ends `run`. The region disappears, what was committed stays."""
        if self._region.is_running and not self._region.is_done:
            self._region.exit()

    # ------------------------------------------------------------ output

    @property
    def columns(self) -> int:
        """The terminal's width in cells, as it is now."""
        return self._terminal.get_size().columns

    @property
    def rows(self) -> int:
        """The terminal's height, as it is now."""
        return self._terminal.get_size().rows

    @property
    def colors(self) -> ColorSystem | None:
        """The colours lines may use, by Rich's names; None: no colours."""
        return self._terminal.colors

    def commit(self, lines: Sequence[str], tail: Sequence[str] | None = None) -> None:
        """Writes finished lines above the region for good, and changes the live rows in the same frame (None: as they are).

        While another program has the terminal (an editor, the shell after Ctrl-Z) the lines wait.
        """
        self._region.commit(lines, tail)

    def set_tail(self, lines: Sequence[str]) -> None:
        """Shows the last of these rows (at most 12, and 4 less than the terminal has) above the input line, drawn at once."""
        self._region.set_tail(lines)

    def set_queued(self, lines: Sequence[str]) -> None:
        """Shows the messages that wait, one row each."""
        self._region.queued = [fragments(" ".join(line.split("\n"))) for line in lines]
        self._region.invalidate()

    def set_status(self, line: str) -> None:
        """Shows the status line."""
        status = [fragments(" ".join(line.split("\n")))]
        if status != self._region.status:
            self._region.status = status
            self._region.invalidate()

    def redraw(self) -> None:
        """Draws the region again at the top of the screen; what stood above it is in the scrollback, nothing is cleared."""
        if self._region.is_running:
            self._region.redraw_at_top()

    def copy(self, text: str) -> None:
        """Puts a text into the clipboard, where the terminal allows it (OSC 52)."""
        code = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
        self._terminal.write_raw(f"\x1b]52;c;{code}\x07")
        self._terminal.flush()

    def ring(self) -> None:
        """Rings the terminal's bell."""
        self._terminal.write_raw("\a")
        self._terminal.flush()

    def ready(self) -> None:
        """The program waits for a message now. Nothing to do: the input line is always there."""

    # ------------------------------------------------------------ input

    @property
    def draft(self) -> str:
        """The message being written. Setting it replaces it and puts the cursor at its end."""
        return self.editing.text

    @draft.setter
    def draft(self, text: str) -> None:
        self.editing.text = text
        self._region.invalidate()

    def clear_draft(self) -> bool:
        """Empties the input line, what was in it is in the history; returns whether there was anything."""
        had = bool(self.editing.buffer.text)
        self.editing.take()
        self._region.invalidate()
        return had

    def edit_draft(self) -> None:
        """Opens the person's editor with the message being written."""

        async def edit() -> None:
            if error := await self.editing.edit():
                self.commit([error])

        self._region.create_background_task(edit())

    def interrupt(self) -> None:
        """Ctrl-C, typed or sent. It is not ours while an editor has the terminal."""
        if not self._region.lent:
            self.hooks.interrupt()

    # ------------------------------------------------------------ questions

    @property
    def answering(self) -> bool:
        """Whether the next key answers a question."""
        return (q := self._region.question) is not None and q.armed and q.chosen is None

    @property
    def explaining(self) -> bool:
        """Whether a line of text for the answer is being typed."""
        return (q := self._region.question) is not None and q.chosen is not None

    @property
    def reason(self) -> str:
        """What has been typed of that text."""
        return self._region.reason_buffer.text

    async def ask(self, question: Sequence[str], choices: Sequence[Choice], *, hold: bool = True) -> Answer:
        """Shows a question in place of the input line and returns the answer; the message being written is kept.

        Raises EOFError if the screen is closed meanwhile. Keys typed before the question was there do not answer it: while a
        message is being written, they go on into it until the typing pauses.  What is no answer, or is typed like a word,
        goes into the message, too; with `hold` Enter does not send that before the answer is there.
        """
        async with self._turn:
            if not self._region.is_running:
                raise EOFError("the screen is not running")
            self._region.read_ahead()
            self._region.question = asked = Question(question, choices)
            self.holding, asked.fresh = hold, not self.editing.buffer.text
            if self.editing.buffer.text and self._region.idle < _TYPING_PAUSE:
                asked.armed = False
                self._arm(asked)
            self._region.focus_message()
            self._region.paint()
            try:
                return await asked.answer
            finally:
                self._take_pending()
                self._region.question, self.holding = None, False
                self._region.focus_message()
                self._region.paint()

    @property
    def picking(self) -> bool:
        """Whether a line is being taken out of a list."""
        return isinstance(self._region.question, Pick)

    async def pick(self, title: str, lines: Sequence[str]) -> int | None:
        """Shows a list in place of the input line and returns the place of the line that was taken, None for none.

        Raises EOFError if the screen is closed meanwhile.
        """
        async with self._turn:
            if not self._region.is_running:
                raise EOFError("the screen is not running")
            self._region.question = asked = Pick(title, lines)
            buffer = self._region.reason_buffer
            buffer.reset()

            def search(_: object) -> None:
                asked.search(buffer.text)

            buffer.on_text_changed += search
            self._region.layout.focus(self._region.reason)
            self._region.paint()
            try:
                answer = await asked.answer
            finally:
                buffer.on_text_changed -= search
                buffer.reset()
                self._region.question = None
                self._region.focus_message()
                self._region.paint()
            return int(answer.text) if answer.text else None

    def move(self, lines: int) -> None:
        """Moves the mark in a list."""
        if isinstance(asked := self._region.question, Pick):
            asked.move(lines)

    def press(self, key: KeyPress) -> None:
        """A key while a question is open."""
        loop, asked, first = asyncio.get_running_loop(), self._region.question, self._take_pending()
        name = str(key.key.value if isinstance(key.key, Keys) else key.key)
        if key.key == Keys.Escape or loop.time() < self._deaf_until:
            self._deaf_until = loop.time() + _ESCAPE_BURST
            if key.key == Keys.Escape:  # alone, as the pause will tell
                self._pending = "", loop.call_later(_ANSWER_PAUSE, self.decline)
            return
        if asked is None:
            return
        letter = name if len(name) == 1 and name.isprintable() else ""
        choice = asked.choice(name)
        if name == "c-m" and (first or self.spoken()):
            asked.press(first)
        elif first or (choice is None and letter.strip()):
            self._typed(asked, first + letter)
        elif choice is not None and not choice.free_text:
            self._pending = name, loop.call_later(_ANSWER_PAUSE, self._answer)
        elif choice is not None:
            asked.press(name)
            self._region.layout.focus(self._region.reason)

    def spoken(self) -> bool:
        """Whether all that was typed at a question is the word of an answer, as `yes`; then it is that answer."""
        asked = self._region.question
        if asked is None or not asked.fresh or (choice := asked.named(self.editing.buffer.text)) is None:
            return False
        self.editing.buffer.reset()
        asked.resolve(Answer(choice.key))
        return True

    def _take_pending(self) -> str:
        """The letter that is about to count as an answer, which it no longer is; empty where there is none, or an Esc."""
        if self._pending is None:
            return ""
        (letter, timer), self._pending = self._pending, None
        timer.cancel()
        return letter

    def _answer(self) -> None:
        letter = self._take_pending()
        if self._region.question is not None:
            self._region.question.press(letter)

    def _typed(self, asked: Question, text: str) -> None:
        """Somebody writes a message: it is kept, and until the typing pauses nothing is an answer."""
        self.editing.buffer.insert_text(text)
        asked.armed = False
        self._arm(asked)
        self._region.paint()

    def decline(self) -> None:
        """Esc or Ctrl-D at a question."""
        if self._region.question is not None:
            self._region.question.decline()

    def scroll(self, pages: int) -> None:
        """Moves a long question."""
        if self._region.question is not None:
            self._region.question.scroll(pages)

    def explained(self) -> None:
        """Enter after the text of an answer."""
        if (asked := self._region.question) is not None and asked.chosen is not None:
            buffer = self._region.current_buffer
            asked.resolve(asked.accept(buffer.text.strip()))
            buffer.reset()

    def choose_again(self) -> None:
        """Escape from the text of an answer back to the choices, or from a list."""
        if isinstance(asked := self._region.question, Pick):
            asked.resolve(Answer(""))
        elif self._region.question is not None:
            self._region.question.chosen = None
            self._region.focus_message()

    def _arm(self, asked: Question) -> None:
        if self._region.idle >= _TYPING_PAUSE:
            asked.armed = True
            self._region.invalidate()
        elif not asked.answer.done():
            asyncio.get_running_loop().call_later(_TYPING_PAUSE - self._region.idle + 0.01, self._arm, asked)
