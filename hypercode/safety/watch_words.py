"""What is said of the things that were found after a command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["MOST_NAMED", "each", "on_one_line", "some"]

MOST_NAMED = 10
"""How many names one sentence holds, and how many sentences of one kind there are."""


def each(names: Iterable[str], handle: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """What is to be said of each; one that cannot be handled keeps nothing from the others."""
    for name in names:
        try:
            yield from handle(name)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others are looked at
            said = getattr(error, "strerror", None) or str(error) or type(error).__name__
            yield f"{name} could not be looked at after a command ({said}); look at it before you go on."


def on_one_line(report: str) -> str:
    """Without what a name can hold to look like another report: line feeds, escape codes, what changes the direction."""
    if report.isprintable():
        return report
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in report)


def some(names: Sequence[str]) -> str:
    """The first of the names, and how many more there are."""
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{rest}"
