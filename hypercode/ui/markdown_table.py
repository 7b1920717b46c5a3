"""Tables in terminal rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hypercode.ui.highlight import Run
from hypercode.ui.markdown_text import paint, restyle, styles, text_width, wrap

__all__ = ["Align", "Row", "table"]

Align = Literal["left", "right", "center"]
Row = Sequence[Sequence[Run]]
"""The cells of a row."""

_BETWEEN = 3  # " │ "
_WORD = 20  # words up to this length are kept whole; if there is no room for that, rows become lists of values


def table(head: Row, rows: Sequence[Row], aligns: Sequence[Align], width: int, *, colour: bool, last: int | None) -> list[str]:  # fmt: skip
    """Rows of the table at most `width` cells wide; with `last` at least that many of the last rows.

    Columns are as wide as their text, the widest give way when there is no room; what cannot be a table is printed as
    `header: value` lines.
    """
    style = styles(colour)
    head = [restyle(cell, style["th"]) for cell in head]
    sizes = [[_size(cell) for cell in row] for row in (head, *rows)]
    wanted = [max(column) for column in zip(*sizes, strict=True)]
    columns = _columns(wanted, [head, *rows], width - _BETWEEN * (len(head) - 1))
    shown = rows if last is None else rows[-last:]
    if columns is None:
        return _pairs(head, shown, width)
    bar = f" {paint([('│', style['bar'])])} "
    above: list[str] = []
    if last is None or len(rows) < last:
        line = "─┼─".join("─" * size for size in columns)
        above = [*_row(head, sizes[0], columns, aligns, bar), paint([(line, style["rule"])])]
    first = len(rows) - len(shown) + 1
    return above + [
        line for row, size in zip(shown, sizes[first:], strict=True) for line in _row(row, size, columns, aligns, bar)
    ]


def _size(cell: Sequence[Run]) -> int:
    return sum([text_width(text) for text, _ in cell])


def _columns(wanted: list[int], rows: Sequence[Row], room: int) -> list[int] | None:
    """Widths of the columns, None if the words do not fit."""
    if sum(wanted) <= room:
        return wanted
    longest = [
        max((text_width(word) for row in rows for word in "".join(text for text, _ in row[k]).split()), default=0)
        for k in range(len(wanted))
    ]
    least = [min(size, max(3, min(word, _WORD))) for size, word in zip(wanted, longest, strict=True)]
    if sum(least) > room:
        return None

    def at(cap: int) -> list[int]:
        return [max(low, min(size, cap)) for low, size in zip(least, wanted, strict=True)]

    cap = next(cap for cap in range(max(wanted), -1, -1) if sum(at(cap)) <= room)
    columns, next_columns = at(cap), at(cap + 1)
    for k, size in enumerate(next_columns):
        if sum(columns) < room and size > columns[k]:
            columns[k] += 1
    return columns


def _row(cells: Row, sizes: list[int], columns: list[int], aligns: Sequence[Align], bar: str) -> list[str]:
    if all(size <= column for size, column in zip(sizes, columns, strict=True)):
        padded = [_pad(*cell) for cell in zip(cells, sizes, columns, aligns, strict=True)]
        return [bar.join(padded).rstrip(" ")]
    wrapped = [wrap(cell, column, words=True) for cell, column in zip(cells, columns, strict=True)]
    lines = []
    for k in range(max(map(len, wrapped))):
        pieces = [cell[k] if k < len(cell) else [] for cell in wrapped]
        padded = [
            _pad(piece, _size(piece), *at) for piece, at in zip(pieces, zip(columns, aligns, strict=True), strict=True)
        ]
        lines.append(bar.join(padded).rstrip(" "))
    return lines


def _pad(cell: Sequence[Run], size: int, column: int, align: Align) -> str:
    free = column - size
    left = {"left": 0, "right": free, "center": free // 2}[align]
    return " " * left + paint(cell) + " " * (free - left)


def _pairs(head: Row, rows: Sequence[Row], width: int) -> list[str]:
    if not rows:
        return [paint(line) for cell in head for line in wrap(cell, width)]
    lines: list[str] = []
    for row in rows:
        if lines:
            lines.append("")
        for name, cell in zip(head, row, strict=True):
            if name or cell:
                lines += [paint(line) for line in wrap([*name, (": " if name else "", ""), *cell], width)]
    return lines
