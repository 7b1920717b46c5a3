"""Why a text was not found in a file: the nearest lines, and every difference by name.  Pure.

The search for the nearest lines goes from strict to loose: the same but for blanks, quotes, letter case, invisible
characters or Unicode form; then the most similar lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher

from hypercode.tools.matching import Edit, Text

__all__ = ["explain"]

_LONGEST = 4_000_000
_LINES = 5_000
_COMPARED = 400
_SHOWN = 160
_LINE_NUMBER = re.compile(r"^[ \t]*\d+[ \t]*[\t|:\u2192]", re.MULTILINE)
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]"
)
_BLANKS = re.compile(r"[^\S\n]+")
_LOOKALIKES = str.maketrans(
    "\u2018\u2019\u201a\u201b\u2032\u00b4`\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2044\u00d7",
    "'''''''\"\"\"\"\"\"\"-------/x",
)
_CLASSES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("invisible character", lambda c: bool(_INVISIBLE.match(c))),
    ("no-break or other special blank", lambda c: c.isspace() and c not in " \t\n\r"),
    ("tab", lambda c: c == "\t"),
    ("space", lambda c: c == " "),
    ("line break", lambda c: c == "\n"),
    ("carriage return", lambda c: c == "\r"),
    ("quotation mark", lambda c: c in "'\"`" or (c.translate(_LOOKALIKES) in "'\"" and c not in "'\"")),
    ("dash", lambda c: c == "-" or c.translate(_LOOKALIKES) == "-"),
    ("combining mark", lambda c: bool(unicodedata.combining(c))),
)


def explain(text: Text, old: str, edits: Sequence[Edit] = ()) -> str:
    """Why `old` is not in the text, for the model.  `edits` are those of the same call."""
    old = old.replace("\r\n", "\n")
    if not text.view:
        return "The file is empty; use write to fill it."
    if len(text.view) > _LONGEST:
        return f"The file is too long ({len(text.view) / 1e6:.0f} MB) to look for similar lines; read the place again."
    shown = text.shown
    said = [*_notes(shown, old, edits), *_nearest(shown, old)]
    return "\n".join([*(said or ["Nothing in the file is similar."]), "Nothing was written."])


def _notes(shown: str, old: str, edits: Sequence[Edit]) -> Iterator[str]:
    news = [edit.new.replace("\r\n", "\n") for edit in edits if edit.old.replace("\r\n", "\n") == old]
    for new in news:
        if new.strip() and new not in old and (at := shown.find(new)) >= 0:
            yield f"The new text is already there (line {_line(shown, at)}): perhaps the edit was already applied."
    if any(old in edit.new.replace("\r\n", "\n") for edit in edits if edit.old.replace("\r\n", "\n") != old):
        yield "All edits of a call match the text as it was before the call, not what another edit makes of it."
    if old.endswith("\n") and shown.endswith(old.rstrip("\n")) and not shown.endswith("\n"):
        yield "The file has no newline at the end of its last line: leave the final newline out of old."
    elif old.strip("\n") != old and old.strip("\n") and old.strip("\n") in shown:
        yield "It is there without the newlines at the start or end of old: the line breaks around it differ."
    bare = _LINE_NUMBER.sub("", old)
    if bare != old and bare.strip() and bare in shown:
        yield (
            f"Without the line number it is there (line {_line(shown, shown.find(bare))}): the numbers that read shows "
            "are not part of the file."
        )


def _line(shown: str, at: int) -> int:
    return shown.count("\n", 0, at) + 1


def _nearest(shown: str, old: str) -> Iterator[str]:
    lines, wanted = shown.split("\n"), old.split("\n")
    place = _alike(shown, old)
    if place is None:
        place = _similar(lines, wanted)
        if place is None:
            return
    last = min(place + min(len(wanted), 6), len(lines))
    near = "\n".join(f"line {n + 1}: {_short(lines[n])}" for n in range(place, last))
    reasons = _differences(lines[place : place + len(wanted)], wanted, place + 1)
    yield "\n".join([f"The nearest text:\n{near}", *(f"- {reason}" for reason in reasons)])


def _short(line: str) -> str:
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}… ({len(line)} characters)"


def _folded(text: str) -> str:
    text = unicodedata.normalize("NFKD", _INVISIBLE.sub("", text)).translate(_LOOKALIKES).casefold()
    return _BLANKS.sub("", text)


def _alike(shown: str, old: str) -> int | None:
    """In which line, from 0, old stands but for blanks, quotes, dashes, case, invisible characters or Unicode form."""
    wanted = _folded(old)
    have = _folded(shown)
    at = have.find(wanted) if wanted.strip("\n") else -1
    return have.count("\n", 0, at) if at >= 0 else None


def _similar(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Where the most telling of the wanted lines has its best likeness, moved to the start of the wanted text."""
    index = max(range(len(wanted)), key=lambda n: len(wanted[n].strip()))
    telling = wanted[index].strip()[:_COMPARED]
    if len(telling) < 3:
        return None
    numbers: Sequence[int] = range(len(lines))
    if len(lines) > _LINES:
        words = sorted(set(re.findall(r"\w{3,}", telling)), key=len, reverse=True)[:4]
        numbers = [n for n, line in enumerate(lines) if any(word in line for word in words)][:_LINES]
    matcher = SequenceMatcher(None, "", telling, autojunk=False)
    best, found = 0.6, None
    for n in numbers:
        matcher.set_seq1(lines[n].strip()[:_COMPARED])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, found = ratio, n
    return None if found is None else max(found - index, 0)


def _differences(have: Sequence[str], wanted: Sequence[str], first: int) -> list[str]:
    """What differs, line by line, each kind of character named once a line; at most eight differences."""
    found: list[str] = []
    for number, (line, old) in enumerate(zip(have, wanted, strict=False), first):
        edge = (number == first, number == first + len(wanted) - 1)
        found += [f"line {number}: {reason}" for reason in _in_line(line, old, *edge)]
    if len(wanted) > len(have):
        found.append("old goes on after the end of the file")
    return found[:8]


def _in_line(line: str, old: str, starts: bool, ends: bool) -> Iterator[str]:
    if line == old:
        return
    if max(len(line), len(old)) > 2 * _COMPARED:
        yield from _in_long_line(line, old)
        return
    if line.rstrip() != line and line.rstrip() == old.rstrip() and not ends:
        yield f"the file has trailing whitespace: {_named(line[len(line.rstrip()) :])}"
        return
    if old.rstrip() != old and line.rstrip() == old.rstrip():
        yield f"old has trailing whitespace: {_named(old[len(old.rstrip()) :])}, the file {_named(line[len(line.rstrip()) :])}"
        return
    if unicodedata.normalize("NFC", line) == unicodedata.normalize("NFC", old) or _forms(line, old):
        yield f"another Unicode normal form: the file has {_form(line)}, old {_form(old)}"
    seen = set()
    for tag, a, b, c, d in SequenceMatcher(None, line, old, autojunk=False).get_opcodes():
        edge = (starts and a == 0 and c == 0) or (ends and b == len(line) and d == len(old))
        if tag == "equal" or (tag == "delete" and edge):
            continue
        reason = _difference(line[a:b], old[c:d])
        if reason not in seen:
            seen.add(reason)
            yield reason


def _in_long_line(line: str, old: str) -> Iterator[str]:
    """The one stretch in which two long lines differ."""
    start = _common(line, old)
    end = _common(line[start:][::-1], old[start:][::-1])
    mine, other = line[start : len(line) - end], old[start : len(old) - end]
    if max(len(mine), len(other)) <= _SHOWN:
        yield f"column {start + 1}: {_difference(mine, other)}"
    else:
        yield f"it differs from column {start + 1} on"


def _common(one: str, two: str) -> int:
    """The length of the common start."""
    return next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))


def _difference(mine: str, old: str) -> str:
    if mine and len(mine) == len(old) and mine.casefold() == old.casefold():
        return f"letter case: the file has {mine!r}, old {old!r}"
    return f"the file has {_named(mine)}, old {_named(old)}"


def _forms(line: str, old: str) -> bool:
    """Whether a part of the line is old in another Unicode form."""
    others = [unicodedata.normalize("NFC", old), unicodedata.normalize("NFD", old)]
    return any(other != old and other in line for other in others)


def _form(text: str) -> str:
    marked = [c for c in text if ord(c) > 127][:3]
    name = "NFC" if unicodedata.is_normalized("NFC", text) else "NFD"
    return " ".join([name, *map(_code, marked)])


def _named(part: str) -> str:
    """A part of a line with the characters that are hard to see named, and counted where they repeat."""
    if not part:
        return "nothing"
    if part.isascii() and part.isprintable() and part.strip():
        return f"{part[:60]!r}"
    names = []
    for match in re.finditer(r"(.)\1*", part[:60], re.DOTALL):
        char, count = match[1], len(match[0])
        kind = next((name for name, test in _CLASSES if test(char)), "")
        label = f"{kind} {_code(char)}" if kind else f"{char!r} {_code(char)}" if not char.isascii() else repr(match[0])
        names.append(f"{count} × {label}" if count > 1 and (kind or not char.isascii()) else label)
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")


def _code(char: str) -> str:
    name = unicodedata.name(char, "") or {"\t": "TAB", "\n": "NEWLINE", "\r": "CARRIAGE RETURN"}.get(char, "")
    return f"(U+{ord(char):04X}{f' {name}' if name else ''})"
