"""What a shell line consists of: simple commands, their redirects, and what is wrong with it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from hypercode.safety.command_words import Word, decode
from hypercode.safety.command_work import spend

__all__ = ["Redirect", "Script", "Simple", "crude", "document"]


@dataclass(frozen=True, slots=True)
class Redirect:
    """`op` such as `>` or `2>&`, and the word behind it (None where there is none, as in `>&-`)."""

    op: str
    target: Word | None


@dataclass(frozen=True, slots=True)
class Simple:
    """A simple command, or with `construct` set something else that must be asked about.

    `scope` names the subshells around it, outermost first; `after_and`: it runs only if the command before it
    succeeded; `piped`: its standard input is a pipe; `stdin`: the text of a here-document or here-string;
    `recovered`: found in text the grammar refused.
    """

    text: str
    words: tuple[Word, ...] = ()
    assigns: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    scope: tuple[int, ...] = ()
    after_and: bool = False
    piped: bool = False
    stdin: tuple[Word, ...] = ()
    construct: str = ""
    recovered: bool = False


@dataclass(slots=True)
class Script:
    """All of a line: its commands in order, the values loops give to variables, what is wrong with it."""

    commands: list[Simple] = field(default_factory=list)
    loops: dict[str, list[Word]] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def crude(text: str) -> list[Simple]:
    """Everything that might be a command if quotes cannot be trusted; for deny rules and circuit breakers only."""
    spend(len(text) // 5)
    text = re.sub(r"\\\r?\n", "", text)
    pieces = dict.fromkeys(
        part.strip()
        for pattern in (r"[;&|()\n\r\0`]|\$\(|[<>]\(", r"[;&|(){}\n\r\0`'\"<>]|\$\(|[^\x00-\x7f]")
        for part in re.split(pattern, text)
    )
    return [
        Simple(
            piece, tuple(decode(w) for w in re.findall(r"(?:\\.|'[^']*'|\"[^\"]*\"|\S)+", piece, re.S)), recovered=True
        )
        for piece in pieces
        if piece
    ]


def document(text: str, quoted: bool, holes: bool) -> Word:
    """A here-document as a word; unquoted, it may hold what the grammar overlooks (backquotes), which makes it odd."""
    if quoted:
        word = decode("'" + text.replace("'", "") + "'")
        return replace(word, raw=text)
    word = decode('"' + re.sub(r'(?<!\\)"', "", text) + '"')
    return replace(word, raw=text, odd=bool(re.search(r"(?<!\\)`|(?<!\\)\$[({\[]", text)) or holes)
