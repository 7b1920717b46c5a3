"""Rows of the live region: coloured lines turned into what prompt_toolkit draws, and wrapped where they must be."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.layout.controls import UIContent, UIControl
from prompt_toolkit.utils import get_cwidth

from hypercode.ui.clean import keep_sgr
from hypercode.ui.spans import spans

__all__ = ["Rows", "fragments", "row_width", "wrap"]

_SGR = re.compile(r"(\x1b\[[0-9;]*m)")


@lru_cache(maxsize=512)
def _style(codes: str) -> str:
    return next(iter(ANSI(f"{codes}x").__pt_formatted_text__()))[0] if codes else ""


@lru_cache(maxsize=256)
def _fragments(line: str) -> tuple[tuple[str, str], ...]:
    codes, column, out = "", 0, []
    for i, part in enumerate(_SGR.split(keep_sgr(line))):
        if i % 2:
            codes = "" if part in ("\x1b[m", "\x1b[0m") else codes + part
        elif part:
            text = ""
            for j, piece in enumerate(part.split("\t")):
                blanks = 8 - column % 8 if j else 0
                text += " " * blanks + piece
                column += blanks + get_cwidth(piece)
            out.append((_style(codes), text))
    return tuple(out)


def fragments(line: str) -> StyleAndTextTuples:
    """Returns one line with colour codes as (style, text) pieces; tabs become blanks."""
    return list(_fragments(line))


def row_width(row: StyleAndTextTuples) -> int:
    """Returns the cells a row takes."""
    return sum(get_cwidth(f[1]) for f in row)


def wrap(line: str, width: int) -> list[StyleAndTextTuples]:
    """Returns the rows of at most `width` cells (2 at least) that show all of a line; an empty line is one row.

    They end between words, blanks included; blanks, and a word longer than a row, are cut anywhere.
    """
    pieces = _fragments(line)
    text = "".join(piece for _, piece in pieces)
    rows: list[StyleAndTextTuples] = []
    for start, end in spans(text, max(width, 2), get_cwidth):
        row: StyleAndTextTuples = []
        at = 0
        for style, piece in pieces:
            if part := piece[max(start - at, 0) : max(end - at, 0)]:
                row.append((style, part))
            at += len(piece)
        rows.append(row)
    return rows


class Rows(UIControl):
    """Shows the rows that `rows(width, height)` gives; each is cut at the right margin."""

    def __init__(self, rows: Callable[[int, int], Sequence[StyleAndTextTuples]]) -> None:
        self._rows = rows

    def create_content(self, width: int, height: int) -> UIContent:
        rows = self._rows(width, height)
        return UIContent(rows.__getitem__, len(rows), show_cursor=False)
