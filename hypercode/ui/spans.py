"""Where the rows of a text begin and end on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hypercode.ui.clean import strip_sgr

__all__ = ["folded", "spans"]


def spans(text: str, width: int, cells: Callable[[str], int]) -> Iterator[tuple[int, int]]:
    """The beginnings and ends of rows of at most `width` cells that show all of a text; an empty one is one row.

    They end between words, blanks included; blanks, and a word longer than a row, are cut anywhere.  `cells` tells how many
    cells a character takes.
    """
    start = used = 0  # of the row
    word = since = 0  # the last word's beginning, and the cells of its row before it
    for i, c in enumerate(text):
        size = 1 if c.isascii() else cells(c)
        if c != " " and i and text[i - 1] == " ":
            word, since = i, used
        while used and used + size > width:
            # A word moves on with the blank behind it: else the next row would begin with that blank.
            cut = word if start < word and text[i - 1 : i + 1] != "  " else i
            yield start, cut
            used -= since if cut == word else used
            start = cut
        used += size
    yield start, len(text)


def folded(line: str, width: int, margin: str) -> list[str]:
    """The rows that show all of a line within `width` cells, without colours, each behind the margin."""
    from rich.cells import cell_len  # a question has time for it, the start has not

    text = strip_sgr(line).expandtabs(8)
    return [margin + text[begin:end] for begin, end in spans(text, max(width - len(margin), 2), cell_len)]
