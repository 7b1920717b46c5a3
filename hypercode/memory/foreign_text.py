"""Small texts that a person or a project brings: read without harm, told apart from what is no text, made visible.

`own` and `inside` read a file to a `trust.Item`; `text_of` makes the text of one, with what the person should know of it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from hypercode.errors import ToolError
from hypercode.safety import files
from hypercode.safety.facts import is_utf16, looks_binary
from hypercode.safety.path_rules import secret_name
from hypercode.safety.trust import TEXT_LIMIT, Item

__all__ = ["MOST", "inside", "listed", "one_line", "own", "show_hidden", "text_of"]

MOST = 200
"""How many names in a folder of commands or skills are looked at."""

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_NAMED = 8
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def own(path: Path, kind: str) -> Item | None:
    """A file of the person's own, links followed; None where there is none."""
    return _read(path, kind, None) if os.path.lexists(path) else None


def inside(path: Path, kind: str, top: Path) -> Item | None:
    """A file of a project whose topmost folder is `top` (a real path): links must not lead out, nor to secrets."""
    return _read(path, kind, top) if os.path.lexists(path) else None


def _read(path: Path, kind: str, top: Path | None) -> Item:
    item = Item(path, kind)
    try:
        real = Path(os.path.realpath(path))
        if top is not None and not real.is_relative_to(top):
            return replace(item, error="is a link that leads out of the project")
        if top is not None and secret_name(real, top):
            return replace(item, error="is a link to a file that usually holds secrets")
        fd = files.open_node(real)
        try:
            if top is not None and files.real_path(fd) != real:
                return replace(item, error="was moved while it was read")
            return replace(item, data=b"".join(files.chunks(fd, TEXT_LIMIT)))
        finally:
            os.close(fd)
    except ToolError:
        return replace(item, error=f"is larger than {TEXT_LIMIT >> 10} KiB")
    except OSError as error:
        return replace(item, error=f"cannot be used: {files.reason(error)}")


def listed(folder: Path) -> tuple[list[str], str]:
    """The names in a folder of the person's own, sorted, and what is wrong with it; an absent one is empty."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, MOST + 1))
    except FileNotFoundError:
        return [], ""
    except OSError as error:
        return [], f"{one_line(str(folder))} cannot be used: {files.reason(error)}."
    if len(names) > MOST:
        return [], f"{one_line(str(folder))} holds more than {MOST} names; none of them is used."
    return names, ""


def text_of(item: Item) -> tuple[str, list[str]]:
    """The text of a file, and sentences for the person; empty where it is none.

    What cannot be seen is written as its name (`⟨U+202E⟩`) and flagged, so that a model reads what a person can read.
    """
    where = one_line(str(item.path))
    if item.data is None:
        return "", [f"{where} {item.error or 'cannot be used'}; it is left out."]
    head = item.data[:8192]
    if is_utf16(head):
        return "", [f"{where} is UTF-16, not UTF-8; it is left out."]
    if looks_binary(head) or b"\0" in item.data:
        return "", [f"{where} is binary, not text; it is left out."]
    notices = []
    try:
        text = item.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = item.data.decode("utf-8-sig", "replace")
        notices.append(f"{where} is not UTF-8; other bytes are read as \ufffd.")
    text, found = show_hidden(text)
    if found:
        notices.append(f"{where} holds characters that cannot be seen: {found}. They are shown to the model by name.")
    return text, notices


def show_hidden(text: str) -> tuple[str, str]:
    """The text with invisible and direction-changing characters written as their names, and a list of what was there.

    Joiners inside words of other scripts and between emoji, and the emoji style, are ordinary and stay.
    """
    if text.isascii() and not _HIDDEN.search(text):
        return text, ""
    text = text.replace("\r\n", "\n")
    kinds: Counter[str] = Counter()
    lines: dict[str, int] = {}
    pieces: list[str] = []
    done = 0
    for match in _HIDDEN.finditer(text):
        if _ordinary(text, match.start()):
            continue
        name = f"U+{ord(match[0]):04X}"
        kinds[name] += 1
        if name not in lines and len(lines) < _NAMED:
            lines[name] = text.count("\n", 0, match.start()) + 1
        pieces += [text[done : match.start()], f"⟨{name}⟩"]
        done = match.end()
    pieces.append(text[done:])
    return "".join(pieces), ", ".join(_described(kinds, lines))


def _ordinary(text: str, place: int) -> bool:
    """Whether a joiner or a mark does in its place what it is for."""
    if text[place] not in "\u200c\u200d":
        return False
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    return bool(before and after) and not before.isascii() and not after.isascii()


def _described(kinds: Counter[str], lines: dict[str, int]) -> Iterator[str]:
    for name, line in lines.items():
        kind = " (changes the direction)" if chr(int(name[2:], 16)) in _BIDI else ""
        count = f", {kinds[name]} times, first" if kinds[name] > 1 else ""
        yield f"{name}{kind}{count} in line {line}"
    if len(kinds) > len(lines):
        yield f"{len(kinds) - len(lines)} other kinds"


def one_line(text: str) -> str:
    """The text on one line, with nothing in it that cannot be seen: for names and paths in notices and prompts."""
    return "".join(c if c.isprintable() else f"⟨U+{ord(c):04X}⟩" for c in text)
