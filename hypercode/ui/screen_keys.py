"""What each key does in the chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from hypercode.ui.screen import Screen

__all__ = ["key_bindings"]


def key_bindings(screen: Screen) -> KeyBindings:
    """Returns the bindings of the chat; what is not in them is prompt_toolkit's own Emacs or vi editing."""
    keys = KeyBindings()
    _everywhere(keys, screen)
    _typing(keys, screen)
    _answering(keys, screen)
    return keys


def _everywhere(keys: KeyBindings, screen: Screen) -> None:
    @keys.add("c-c", filter=~is_searching, eager=True)
    def _interrupt(event: KeyPressEvent) -> None:
        screen.interrupt()

    @keys.add("c-l", eager=True)
    def _redraw(event: KeyPressEvent) -> None:
        screen.redraw()

    @keys.add("c-z", eager=True)
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("c-o", eager=True)
    def _expand(event: KeyPressEvent) -> None:
        screen.hooks.expand()

    @keys.add("s-tab", filter=~has_completions, eager=True)
    def _mode(event: KeyPressEvent) -> None:
        screen.hooks.cycle_mode()


def _typing(keys: KeyBindings, screen: Screen) -> None:
    draft = screen.editing
    typing = Condition(lambda: not screen.answering and not screen.explaining) & ~is_searching
    empty = Condition(lambda: not draft.buffer.text)

    @keys.add("enter", filter=typing)
    def _enter(event: KeyPressEvent) -> None:
        state = draft.buffer.complete_state
        if state and state.current_completion and not draft.buffer.text.startswith("/"):
            draft.buffer.complete_state = None
        elif not screen.spoken() and not draft.end_with_backslash() and not screen.holding and (text := draft.take()):
            screen.hooks.submit(text)

    @keys.add("c-j", filter=typing)
    @keys.add("escape", "enter", filter=typing)
    def _new_line(event: KeyPressEvent) -> None:
        draft.new_line()

    @keys.add(Keys.BracketedPaste, filter=Condition(lambda: not screen.explaining) & ~is_searching, eager=True)
    def _paste(event: KeyPressEvent) -> None:
        draft.paste(event.data)

    @keys.add("escape", "/", filter=typing)  # else a `/` soon after Esc would be the Emacs key for completion
    def _slash(event: KeyPressEvent) -> None:
        draft.buffer.insert_text("/")

    @keys.add("backspace", filter=typing)
    def _backspace(event: KeyPressEvent) -> None:
        draft.delete_before_cursor()

    @keys.add("up", filter=typing & empty)
    def _up(event: KeyPressEvent) -> None:
        text = screen.hooks.take_back()
        if text is None:
            draft.buffer.auto_up()
        else:
            draft.text = text

    @keys.add("c-d", filter=typing & empty, eager=True)
    def _eof(event: KeyPressEvent) -> None:
        screen.hooks.eof()

    @keys.add("c-g", filter=typing)
    def _editor(event: KeyPressEvent) -> None:
        screen.edit_draft()


def _answering(keys: KeyBindings, screen: Screen) -> None:
    answering = Condition(lambda: screen.answering)
    asked = Condition(lambda: screen.answering or screen.explaining)
    explaining = Condition(lambda: screen.explaining)
    picking = Condition(lambda: screen.picking)

    @keys.add(Keys.Any, filter=answering, eager=True)
    def _key(event: KeyPressEvent) -> None:
        screen.press(event.key_sequence[0])

    @keys.add("pagedown", filter=asked, eager=True)
    @keys.add("down", filter=answering, eager=True)
    def _down(event: KeyPressEvent) -> None:
        screen.scroll(1)

    @keys.add("pageup", filter=asked, eager=True)
    @keys.add("up", filter=answering, eager=True)
    def _up(event: KeyPressEvent) -> None:
        screen.scroll(-1)

    @keys.add("c-d", filter=answering, eager=True)
    @keys.add("c-d", filter=explaining & ~picking & Condition(lambda: not screen.reason), eager=True)
    def _decline(event: KeyPressEvent) -> None:
        screen.decline()

    @keys.add("enter", filter=explaining, eager=True)
    def _explained(event: KeyPressEvent) -> None:
        screen.explained()

    @keys.add("escape", filter=explaining)
    def _back(event: KeyPressEvent) -> None:
        screen.choose_again()

    @keys.add("down", filter=picking, eager=True)
    @keys.add("c-n", filter=picking, eager=True)
    def _next(event: KeyPressEvent) -> None:
        screen.move(1)

    @keys.add("up", filter=picking, eager=True)
    @keys.add("c-p", filter=picking, eager=True)
    def _previous(event: KeyPressEvent) -> None:
        screen.move(-1)

    @keys.add("c-c", filter=picking, eager=True)
    @keys.add("c-d", filter=picking, eager=True)
    @keys.add("escape", filter=picking, eager=True)  # what is typed behind it is no Alt key: nothing here has one
    def _leave_list(event: KeyPressEvent) -> None:
        screen.choose_again()

    @keys.add(Keys.BracketedPaste, filter=explaining, eager=True)
    def _paste(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(" ".join(event.data.split()))
