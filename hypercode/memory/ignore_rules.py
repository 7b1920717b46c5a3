"""What a `.gitignore` says about a path: git's patterns, compiled.

Source of the rules: gitignore(5) and, for the patterns themselves, git's wildmatch with `/` as a border.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["IgnoreRules", "parse_ignore"]

_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@\\[-`{-~", "space": " \\t-\\r", "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}  # fmt: skip


def _bytewise(name: str) -> str:
    return os.fsencode(name).decode("latin-1")


@dataclass(frozen=True, slots=True)
class _Run:
    """Patterns of one polarity that follow each other; each expression may be missing."""

    ignores: bool
    names: re.Pattern[str] | None
    paths: re.Pattern[str] | None
    folder_names: re.Pattern[str] | None
    folder_paths: re.Pattern[str] | None

    def matches(self, path: str, name: str, folder: bool) -> bool:
        if self.names and self.names.fullmatch(name):
            return True
        if self.paths and self.paths.fullmatch(path):
            return True
        if not folder:
            return False
        by_name = self.folder_names is not None and self.folder_names.fullmatch(name) is not None
        return by_name or (self.folder_paths is not None and self.folder_paths.fullmatch(path) is not None)


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The patterns of one file, and its text."""

    text: str
    runs: tuple[_Run, ...]

    def verdict(self, path: str, name: str, folder: bool) -> bool | None:
        """Whether a path, relative to the folder of the file, is ignored; None where no pattern speaks of it."""
        if not path.isascii():
            path, name = _bytewise(path), _bytewise(name)
        for run in self.runs:
            if run.matches(path, name, folder):
                return run.ignores
        return None


@lru_cache(maxsize=256)
def parse_ignore(text: str) -> IgnoreRules | None:
    """The rules in the text of a `.gitignore`, decoded as Latin-1 because git compares bytes; None where there are none."""
    runs: list[_Run] = []
    pending: list[tuple[str, bool, bool]] = []
    polarity = True
    for line in text.split("\n"):
        found = _pattern(line.removesuffix("\r"))
        if found is None:
            continue
        ignores, expression, by_name, folder = found
        if pending and ignores != polarity:
            runs.append(_run(polarity, pending))
            pending = []
        polarity = ignores
        pending.append((expression, by_name, folder))
    if pending:
        runs.append(_run(polarity, pending))
    return IgnoreRules(text, tuple(reversed(runs))) if runs else None


def _run(ignores: bool, patterns: list[tuple[str, bool, bool]]) -> _Run:
    def joined(by_name: bool, folder: bool) -> re.Pattern[str] | None:
        return _joined(e for e, named, only_folder in patterns if (named, only_folder) == (by_name, folder))

    return _Run(ignores, joined(True, False), joined(False, False), joined(True, True), joined(False, True))


def _joined(expressions: Iterable[str]) -> re.Pattern[str] | None:
    wanted = list(dict.fromkeys(expressions))
    return re.compile("|".join(f"(?:{e})" for e in wanted), re.DOTALL) if wanted else None


def _pattern(line: str) -> tuple[bool, str, bool, bool] | None:
    """Whether it ignores, the expression, whether it is about a name alone, whether about folders only."""
    line = _trimmed(line)
    if not line or line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    line = line if ignores else line[1:]
    folder = line.endswith("/")
    line = line.removesuffix("/")
    by_name = "/" not in line
    expression = _translated(line.removeprefix("/"))
    return None if not line or expression is None else (ignores, expression, by_name, folder)


def _trimmed(line: str) -> str:
    """Without blanks at the end, unless a backslash keeps them."""
    bare = line.rstrip(" ")
    slashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if slashes % 2 and len(bare) < len(line) else bare


def _translated(pattern: str) -> str | None:
    """The regular expression of a pattern; None for one that can match nothing.

    Each star takes as little as it can and keeps to it (atomic groups), so that no pattern takes long: the earliest place
    where what follows fits leaves the most for the rest.
    """
    groups: list[list[str]] = [[""]]  # separated by `**/`, and within by `*`
    at = 0
    while at < len(pattern):
        piece, at = _piece(pattern, at)
        if piece is None:
            return None
        if piece == _DEEP:
            if groups[-1] != [""] or len(groups) == 1:
                groups.append([""])
        elif piece == _STAR:
            groups[-1].append("")
        else:
            groups[-1][-1] += piece
    first, *others = map(_one_level, groups)
    if not others:
        return first
    return first + "".join(f"(?>(?:[^/]+/)*?{g})" for g in others[:-1]) + f"(?:[^/]+/)*{others[-1]}"


def _one_level(parts: list[str]) -> str:
    first, *others = parts
    if not others:
        return first
    return first + "".join(f"(?>[^/]*?{part})" for part in others[:-1] if part) + f"[^/]*{others[-1]}"


_STAR, _DEEP = "*", "**/"


def _piece(pattern: str, at: int) -> tuple[str | None, int]:
    """The next piece of an expression, `_STAR` or `_DEEP`, and where it ends; None for what can match nothing."""
    char = pattern[at]
    if char == "*":
        end = at + len(pattern[at:]) - len(pattern[at:].lstrip("*"))
        if end - at == 1 or (at > 0 and pattern[at - 1] != "/"):
            return _STAR, end
        if end == len(pattern):
            return ".+", end
        return (_DEEP, end + 1) if pattern[end] == "/" else (_STAR, end)
    if char == "?":
        return "[^/]", at + 1
    if char == "[":
        return _set(pattern, at) or (None, at)
    if char == "\\":
        return (re.escape(pattern[at + 1]), at + 2) if at + 1 < len(pattern) else (None, at)
    return re.escape(char), at + 1


def _set(pattern: str, at: int) -> tuple[str, int] | None:
    """A bracket expression and where it ends."""
    position = at + 1
    negated = pattern[position : position + 1] in ("!", "^")
    position += negated
    members, first = "", True
    while position < len(pattern) and (pattern[position] != "]" or first):
        first = False
        if named := re.compile(r"\[:(\w*):\]").match(pattern, position):
            if named[1] not in _CLASSES:
                return None
            members, position = members + _CLASSES[named[1]], named.end()
            continue
        low, position = _member(pattern, position)
        members += re.escape(low)
        if pattern[position : position + 1] == "-" and pattern[position + 1 : position + 2] not in ("", "]"):
            high, position = _member(pattern, position + 1)
            members += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
    if position >= len(pattern):
        return None
    inside = f"(?![/])[{'^' if negated else ''}{members}]" if members else ("[^/]" if negated else "(?!)")
    return inside, position + 1


def _member(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "\\" and at + 1 < len(pattern):
        return pattern[at + 1], at + 2
    return pattern[at], at + 1
