"""A unified diff of any two texts in bounded time and length: what a person is shown before a file changes.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff

__all__ = ["unified"]

_CONTEXT = 3
_COMPARED = 3_000
_SHOWN = 400
_WIDTH = 2_000


def unified(before: bytes, after: bytes, name: str) -> str:
    """The difference as a unified diff; head and tail of it where it is long.

    Lines end at newlines only.  A carriage return stays in its line, bytes that are not UTF-8 are replaced.
    """
    old, new = _lines(before), _lines(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    start = max(head - _CONTEXT, 0)
    a = old[start : len(old) - max(tail - _CONTEXT, 0)]
    b = new[start : len(new) - max(tail - _CONTEXT, 0)]
    hunks = (
        _hunks(a, b, start) if len(a) + len(b) <= _COMPARED else _whole(a, b, start, min(tail, _CONTEXT), head - start)
    )
    return "\n".join([f"--- {name}", f"+++ {name}", *_bounded(hunks)])


def _lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1] + ([data.rsplit(b"\n", 1)[-1] + b"\0"] if data and not data.endswith(b"\n") else [])


def _text(line: bytes) -> str:
    body = line.removesuffix(b"\0").decode("utf-8", "replace")
    short = body if len(body) <= _WIDTH else f"{body[:_WIDTH]}… ({len(body)} characters)"
    return f"{short}\n\\ No newline at end of file" if line.endswith(b"\0") else short


def _common(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    count = 0
    for one, two in zip(old, new, strict=False):
        if one != two:
            break
        count += 1
    return count


def _hunks(old: Sequence[bytes], new: Sequence[bytes], start: int) -> list[str]:
    """The hunks of the part from line `start` on, with line numbers of the whole."""
    diff = list(unified_diff([_text(line) for line in old], [_text(line) for line in new], n=_CONTEXT, lineterm=""))[2:]
    return [_moved(line, start) if line.startswith("@@ -") else line for line in diff]


def _moved(header: str, by: int) -> str:
    _, old, new, _ = header.split(" ", 3)
    return f"@@ {_shift(old, by)} {_shift(new, by)} @@"


def _shift(place: str, by: int) -> str:
    first, comma, count = place[1:].partition(",")
    return f"{place[0]}{int(first) + by}{comma}{count}"


def _whole(old: Sequence[bytes], new: Sequence[bytes], start: int, below: int, above: int) -> list[str]:
    """One hunk that replaces everything between the common head and tail: too much to be compared line by line."""
    gone, came = old[above : len(old) - below], new[above : len(new) - below]
    return [
        f"@@ -{start + 1},{len(old)} +{start + 1},{len(new)} @@",
        *(f" {_text(line)}" for line in old[:above]),
        *_bounded([f"-{_text(line)}" for line in gone]),
        *_bounded([f"+{_text(line)}" for line in came]),
        *(f" {_text(line)}" for line in old[len(old) - below :]),
    ]


def _bounded(lines: list[str]) -> list[str]:
    if len(lines) <= _SHOWN:
        return lines
    half = _SHOWN // 2
    return [*lines[:half], f"[… {len(lines) - 2 * half} lines of the diff left out …]", *lines[-half:]]
