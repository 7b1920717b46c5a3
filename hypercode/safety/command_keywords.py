"""Where the grammar takes a keyword of the shell for the name of a program, and how such a line is read again.

After `!`, `time`, `coproc` and the head of a function the grammar expects no `case`, `if`, `for` or `{`: it makes a plain
command of it, and a substitution around a `case` then ends at the `)` of the first pattern.  What stands behind that is
text to the grammar and a command to the shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hypercode.safety.command_words import Word
from hypercode.safety.command_work import spend

__all__ = ["ends_early", "misread", "readings"]

_BEFORE = {"!", "time", "coproc", "-p", "--"}
_OPENERS = "case if for select while until"
_RESERVED = {
    *_OPENERS.split(),
    *["esac", "then", "elif", "else", "fi", "do", "done", "in", "function", "{", "}", ";;", ";&", ";;&"],
}
_OPENER = rf"(?:{_OPENERS.replace(' ', '|')})(?![\w-])"
_NAME = rf"(?!{_OPENER}|(?:time|coproc)\b)\w+"
_PREFIX = re.compile(
    rf"(?<![\w-])(?:(?:!|time|coproc(?:[ \t]+{_NAME})?)(?:[ \t]+(?:-p|--))*[ \t]+){{1,50}}(?=[({{]|\[\[|{_OPENER})"
)
_HEAD = re.compile(
    rf"(?:function[ \t]+[^\s()]+|(?<![\w.:-])[\w.:-]+[ \t]*\([ \t]*\))(?:[ \t]*\([ \t]*\))?\s+(?={_OPENER})"
)
_START = re.compile(
    r"[;&|(){}\n\r\0`]+|(?<![\w$./-])(?:(?:(?:!|time|coproc)\s+)+|(?:if|then|elif|else|while|until|do)\s)"
)
_CASE = re.compile(r"(?<![\w$./-])case\s")
_ESAC = re.compile(r"(?<![\w$./-])esac(?![\w-])")
_MANY = 64  # starts up to which every one is read to the end of the line
_PIECE = 400  # characters read from each beyond that


def misread(words: Sequence[Word]) -> bool:
    """Whether a command begins with a word that begins or ends a compound command, and so is none."""
    names = [w.raw.replace("\\\n", "") for w in words]
    at = next((i for i, n in enumerate(names) if n not in _BEFORE), len(names))
    return not _RESERVED.isdisjoint(names[at : at + (2 if "coproc" in names[:at] else 1)])


def ends_early(source: str, start: int, end: int) -> bool:
    """Whether the text of a substitution begins a `case` that only the text behind the substitution ends."""
    spend((end - start) // 500)
    if source.find("case", start, end) < 0:
        return False
    inside = source[start:end]
    spend((end - start) // 50 + len(source) // 2000)
    return len(_ESAC.findall(inside)) < len(_CASE.findall(inside)) and source.find("esac", end) >= 0


def readings(command: str) -> Iterator[str]:
    """Texts to parse instead of a line whose tree cannot be trusted, the likeliest first.

    The line without what confuses the grammar, then what follows each place where a command may begin.
    """
    spend(len(command) // 20)
    text = re.sub(r"\\\r?\n", "", command)
    text = _HEAD.sub(" ", _PREFIX.sub(" ", text))
    yield text
    ends = [m.end() for m in _START.finditer(text)]
    length = len(text) if len(ends) <= _MANY else _PIECE
    for end in ends:
        if piece := text[end : end + length].strip():
            yield piece
