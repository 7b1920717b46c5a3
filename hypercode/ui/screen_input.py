"""The input line, whose cursor is drawn while the terminal's own has to be somewhere else."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout import Window
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Char, Screen, WritePosition

__all__ = ["InputWindow"]


def _never() -> bool:
    return False


class InputWindow(Window):
    """A window for a buffer.

    While `parked` holds, the terminal's cursor is hidden at the first cell of all that is drawn, and the cell it would be in
    has the style `cursor` instead.  A terminal of another width wraps rows anew or cuts them, and takes its cursor along:
    only from the first cell on what was drawn can then be erased without knowing how many rows have become of it.
    """

    parked: Callable[[], bool] = staticmethod(_never)

    def write_to_screen(
        self,
        screen: Screen,
        mouse_handlers: MouseHandlers,
        write_position: WritePosition,
        parent_style: str,
        erase_bg: bool,
        z_index: int | None,
    ) -> None:
        super().write_to_screen(screen, mouse_handlers, write_position, parent_style, erase_bg, z_index)
        at = screen.cursor_positions.get(self)
        if at is not None and self.parked():
            cell = screen.data_buffer[at.y][at.x]
            screen.data_buffer[at.y][at.x] = Char(cell.char, f"{cell.style} class:cursor")
            screen.set_cursor_position(self, Point(x=0, y=0))
            screen.show_cursor = False
