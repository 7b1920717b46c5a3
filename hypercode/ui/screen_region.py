"""The live region at the bottom of the chat, and how finished lines get above it.

One prompt_toolkit application for the whole session, in the normal buffer. Each frame is one write: a commit erases the
region, writes the lines and draws the region again before anything is sent.
"""

from __future__ import annotations

import asyncio
import os
import select
import termios
from collections.abc import Sequence

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings, KeyPress
from prompt_toolkit.layout import BufferControl, ConditionalContainer, Dimension, HSplit, Layout, VSplit, Window
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.search import stop_search
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth
from prompt_toolkit.widgets import SearchToolbar

from hypercode.ui.clean import keep_sgr
from hypercode.ui.screen_ask import Question
from hypercode.ui.screen_input import InputWindow
from hypercode.ui.screen_output import TerminalOutput
from hypercode.ui.screen_rows import Rows, fragments, wrap

__all__ = ["Region"]

_TAIL_ROWS = 12
_QUEUE_ROWS = 4
_ROOM = 8  # rows from which a question shows what waits in the input line
_LONGEST = 4000  # characters of a live row that are looked at: no terminal is as wide
_RESIZE_PAUSE = 0.25
_WRITING_PAUSE = 5.0  # seconds without a key after which nobody is taken to be writing
_STYLE = {
    "prompt": "bold",
    "cursor": "reverse",
    "queue": "dim",
    "status": "dim",
    "question.bar": "ansiyellow",
    "question.key": "bold",
    "question.more": "dim",
}


class Region(Application[None]):
    """Live rows, waiting messages, input line or question, status line: what is in them, and drawing them."""

    def __init__(
        self, terminal: TerminalOutput, buffer: Buffer, prompt: str, keys: KeyBindings, input: Input, vi_mode: bool
    ) -> None:
        self.terminal = terminal
        self.question: Question | None = None
        self.queued: list[StyleAndTextTuples] = []
        self.status: list[StyleAndTextTuples] = [[]]
        self._prompt = prompt
        self._pending: list[str] = []
        self._tail: list[StyleAndTextTuples] = []
        self._tail_height = 0
        self._tail_hidden: asyncio.TimerHandle | None = None
        self._size = terminal.get_size()
        self._search = SearchToolbar(vi_mode=vi_mode)
        self._draft = buffer
        self._last_key = 0.0
        self.message = self._input_window(buffer)
        self.message.parked = lambda: self._parked
        self.reason_buffer = Buffer(multiline=False)
        self.reason = self._input_window(self.reason_buffer)
        super().__init__(
            layout=Layout(self._rows(), focused_element=self.message),
            style=Style.from_dict(_STYLE),
            include_default_pygments_style=False,
            key_bindings=keys,
            erase_when_done=True,
            editing_mode=EditingMode.VI if vi_mode else EditingMode.EMACS,
            max_render_postpone_time=None,
            terminal_size_polling_interval=None,
            before_render=lambda _: self._make_room(),
            input=input,
            output=terminal,
        )
        self.key_processor.before_key_press += lambda _: self._note_key()
        self.ttimeoutlen = 0.1
        self.timeoutlen = (
            0.5  # Esc and then a key, as Alt and that key; longer would swallow what is typed after an Esc
        )

    # ------------------------------------------------------------ drawing

    @property
    def lent(self) -> bool:
        """Whether another program has the terminal: an editor, or the shell after Ctrl-Z."""
        return self._running_in_terminal

    def commit(self, lines: Sequence[str], tail: Sequence[str] | None) -> None:
        """Writes lines above the region and replaces the live rows (None: keeps them), in one frame."""
        self._pending += [keep_sgr(part) for line in lines for part in line.split("\n")]
        if tail is not None:
            self._tail = [fragments(line[:_LONGEST]) for line in tail[-_TAIL_ROWS:]]
        self._tail_height = len(self._tail)
        self.paint()

    def set_tail(self, lines: Sequence[str]) -> None:
        """Replaces the live rows and draws, if they differ."""
        tail = [fragments(line[:_LONGEST]) for line in lines[-_TAIL_ROWS:]]
        if tail != self._tail:
            # As high as it was until the next commit: else the lines below jump whenever a paragraph gets shorter.
            self._tail_height = max(self._tail_height, len(tail)) if tail else 0
            self._tail = tail
            self.paint()

    def paint(self) -> None:
        """Draws now, not a step later and in a second write as `invalidate` would."""
        if self.is_running:
            self._redraw()
        else:
            self.write_pending()
            self.terminal.flush()

    def redraw_at_top(self) -> None:
        """Draws the region at the top of the screen. What stood there is in the scrollback; nothing is cleared."""
        with self.terminal.held():
            self.renderer.erase(leave_alternate_screen=False)
            self.terminal.write_raw("\n" * (self.terminal.get_size().rows - 1) + "\x1b[H")
            self._redraw()

    def write_pending(self) -> None:
        """Writes the committed lines at the cursor; the region must not be there."""
        if self._pending:
            self.terminal.enable_autowrap()
            for line in self._pending:
                self.terminal.write_raw(f"{line}\x1b[0m\r\n" if "\x1b" in line else f"{line}\r\n")
            self._pending.clear()

    def _redraw(self, render_as_done: bool = False) -> None:
        with self.terminal.held():
            super()._redraw(render_as_done)

    def _on_resize(self) -> None:
        """Live rows are hidden while the window is dragged: the terminal wraps them anew and would leave ghosts of them."""
        if self._tail_hidden is not None:
            self._tail_hidden.cancel()
        self._tail_hidden = asyncio.get_running_loop().call_later(_RESIZE_PAUSE, self._show_tail)
        self._tail_height = len(self._tail)
        with self.terminal.held():
            super()._on_resize()

    def _show_tail(self) -> None:
        self._tail_hidden = None
        self.invalidate()

    def _make_room(self) -> None:
        """Before each drawing: puts pending lines above the region, and lets it shrink, which the renderer does not."""
        size = self._size = self.terminal.get_size()
        drawn = self.renderer.last_rendered_screen
        if self._pending:
            self.renderer.erase(leave_alternate_screen=False)
            self.write_pending()
        elif drawn and self.layout.container.preferred_height(size.columns, size.rows).preferred < drawn.height:
            self.renderer.erase(leave_alternate_screen=False)

    # ------------------------------------------------------------ input

    def take_early_lines(self) -> None:
        """Lines typed before the program was ready: the terminal has made Ctrl-J of their Enter, which it takes back here."""
        fd = self.input.fileno()
        keys: list[KeyPress] = []
        parser = Vt100Parser(keys.append)
        while os.isatty(fd) and termios.tcgetattr(fd)[3] & termios.ICANON and select.select([fd], [], [], 0)[0]:
            if not (data := os.read(fd, 65536)):
                break
            parser.feed(data.decode("utf-8", "replace").replace("\n", "\r"))
        store_typeahead(self.input, keys)

    @property
    def idle(self) -> float:
        """Seconds since the last key."""
        return asyncio.get_running_loop().time() - self._last_key

    def _note_key(self) -> None:
        self._last_key = asyncio.get_running_loop().time()

    def read_ahead(self) -> None:
        """Serves the keys that have arrived but not been read yet."""
        if self.context is not None and not self.lent:
            self.key_processor.feed_multiple(self.input.read_keys())
            self.context.copy().run(self.key_processor.process_keys)

    def focus_message(self) -> None:
        """Gives the keys to the message being written."""
        if self.layout.is_searching and self.context is not None:
            self.context.copy().run(stop_search)
        self.layout.focus(self.message)

    # ------------------------------------------------------------ layout

    def _rows(self) -> HSplit:
        def exact(rows: int, least: int = 0) -> Dimension:
            return Dimension(min=min(least, rows), preferred=rows, max=rows)

        def shown(window: Window, when: Condition) -> ConditionalContainer:
            return ConditionalContainer(window, when)

        asking = Condition(lambda: self.question is not None)
        choosing = Condition(lambda: (q := self.question) is not None and q.armed and q.chosen is None)
        explaining = Condition(lambda: (q := self.question) is not None and q.chosen is not None)
        writing = Condition(lambda: (q := self.question) is None or (not q.armed and q.chosen is None))
        tail = Window(Rows(self._tail_view), height=lambda: exact(self._tail_rows))
        queue = Window(Rows(self._queue_view), height=lambda: exact(self._queue_rows), style="class:queue")
        text = Window(Rows(self._question_view), height=lambda: exact(self._question_rows, 1))
        choices = Window(Rows(self._choice_view), height=lambda: exact(len(self._choice_view(self._columns, 0)), 1))
        status = Window(
            Rows(lambda width, height: self.status), height=lambda: exact(1, self._height > 2), style="class:status"
        )
        menu = VSplit([CompletionsMenu(max_height=8), Window()])
        return HSplit(
            [
                shown(tail, Condition(lambda: self._tail_rows > 0)),
                shown(queue, Condition(lambda: self._queue_rows > 0)),
                shown(text, asking),
                shown(choices, choosing),
                shown(self.message, writing),
                shown(self.reason, explaining),
                ConditionalContainer(menu, writing & has_completions),
                self._search,
                status,
            ]
        )

    def _input_window(self, buffer: Buffer) -> InputWindow:
        def prefix(line: int, wrapped: int) -> StyleAndTextTuples:
            chosen = self.question.chosen if self.question else None
            prompt = f"{chosen.label}: " if chosen else self._prompt
            if get_cwidth(prompt) > self._columns // 2:
                prompt = "> " if self._columns > 4 else ""
            first = line == 0 and wrapped == 0
            return [("class:prompt", prompt if first else " " * get_cwidth(prompt))]

        return InputWindow(
            BufferControl(buffer, search_buffer_control=self._search.control, preview_search=True),
            height=lambda: Dimension(min=1, max=max(1, min(10, self._height // 3))),
            dont_extend_height=True,
            wrap_lines=True,
            get_line_prefix=prefix,
        )

    @property
    def _height(self) -> int:
        return self._size.rows

    @property
    def _columns(self) -> int:
        return self._size.columns

    @property
    def _tail_rows(self) -> int:
        if self.question is not None or self._tail_hidden is not None:
            return 0
        return max(0, min(_TAIL_ROWS, self._height - 4, self._tail_height))

    @property
    def _parked(self) -> bool:
        """Whether the cursor rests at the region's first cell, from where on everything can be erased at any width.

        Only while something lives above the input line, and not while a message is being written: what composes characters
        out of several keys shows them where the terminal's cursor is.
        """
        above = self._tail_height or self._queue_rows
        return bool(above) and (not self._draft.text or self.idle > _WRITING_PAUSE)

    def _tail_view(self, width: int, height: int) -> list[StyleAndTextTuples]:
        return self._tail[-height:]

    @property
    def _queue_rows(self) -> int:
        if self.question is not None and self._height < 12:
            return 0
        return min(len(self.queued), _QUEUE_ROWS, max(1, self._height // 4))

    def _queue_view(self, width: int, height: int) -> list[StyleAndTextTuples]:
        hidden = len(self.queued) - height
        if hidden <= 0:
            return self.queued
        more: StyleAndTextTuples = [("", f"+{hidden + 1} more")]
        return [*self.queued[: height - 1], more]

    @property
    def _question_rows(self) -> int:
        if self.question is None:
            return 0
        others = len(self._choice_view(self._columns, 0)) + self._queue_rows + 1
        return max(1, min(len(self.question.rows(self._columns)), self._height - others))

    def _question_view(self, width: int, height: int) -> list[StyleAndTextTuples]:
        return self.question.view(width, height) if self.question else []

    def _choice_view(self, width: int, height: int) -> list[StyleAndTextTuples]:
        if self.question is None:
            return []
        rows = self.question.choice_rows(width, max(1, (self._height - 1) // 2))
        if (kept := self._draft.text) and self.question.chosen is None and self._height >= _ROOM:
            first = wrap(f"kept in the input line: {' '.join(kept.split())}", width)[0]
            rows = [*rows, [("class:question.more", piece[1]) for piece in first]]
        return rows
