"""Rules a person gives for shell commands: the first words of one simple command, nothing more.

`git log` covers `git log --oneline -3`; it does not cover `git logout`, `git log > file`, `FOO=1 git log` or
`git log $(…)`.  As an allow rule it is compared word by word.  As a deny rule it is compared generously: by the
program's base name, past options that stand before a verb, and with flags in any order or spelling.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import normpath

__all__ = ["Rule", "parse_rule"]

_SYNTAX = re.compile(r"[;&|()<>`$\n\r]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_VERSION = re.compile(r"(?<=[a-z+])-?\d+(?:\.\d+)*(?:\.exe)?$")
_EITHER_CASE = {"rm", "cp", "chmod", "chown", "chgrp", "grep", "diff"}
"""Programs to which `-r` and `-R` mean the same."""
_TARGETS = {"make", "gmake", "just", "ninja", "task", "mage", "npm-run-all"}
"""Programs that are given several things to do, in any order."""
_GIT_VALUED = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source", "--super-prefix"}
_LONG = {"r": "--recursive", "R": "--recursive", "f": "--force", "d": "--delete", "D": "--delete", "q": "--quiet"}


@dataclass(frozen=True, slots=True)
class Rule:
    """The first words of a simple command."""

    tokens: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(self.tokens)

    def matches(self, tokens: Sequence[str], *, whole: bool = False) -> bool:
        """Whether a command of these words begins with exactly the words of the rule; with `whole`, has no others."""
        return tuple(tokens if whole else tokens[: len(self.tokens)]) == self.tokens

    def forbids(self, name: str, arguments: Sequence[str], *, glob: bool = False) -> bool:
        """Whether this, as a deny rule, covers a program (with `glob`: a pattern of file names) and its arguments."""
        head, *rest = self.tokens
        name = name.replace("\0", "*") if glob else name
        seen, wanted = _base(name), _base(head)
        if not seen or not (_same_program(seen, wanted) or (glob and _may_name(seen, wanted))):
            joined = seen.split("-", 1)  # git-push, as it lies in git's own folder
            if len(joined) == 1 or joined[0] != wanted or not (rest or wanted == "git"):
                return False
            arguments = [joined[1], *arguments]
        if wanted == "git":
            arguments = _without_values(arguments)
        flags = [t for t in rest if t.startswith("-")]
        if wanted in _TARGETS and set(rest) <= set(arguments):
            return True
        return _follows([t for t in rest if not t.startswith("-")], arguments) and all(
            _has_flag(f, arguments, either_case=wanted in _EITHER_CASE) for f in flags
        )

    def mentioned(self, text: str) -> bool:
        """Whether the words of the rule stand in a text in this order: for commands that cannot be known beforehand."""
        bare = re.sub(r"\\\n|['\"\\]", "", text)
        at = 0
        for token, more in [(_base(self.tokens[0]), r"(?:\d[\d.]*|\.exe)?"), *((t, "") for t in self.tokens[1:])]:
            found = re.compile(rf"(?<![\w.-]){re.escape(token)}{more}(?![\w-])", re.IGNORECASE).search(bare, at)
            if not found:
                return False
            at = found.end()
        return True

    def begins_in(self, text: str) -> bool:
        """Whether the words of the rule stand in a row in a text, where a command may begin in it."""
        tokens = [rf"(?:[\w.~-]*/)*{re.escape(_base(self.tokens[0]))}", *map(re.escape, self.tokens[1:])]
        words = r"['\"]?\s+(?:-\S+\s+)?['\"]?".join(tokens)
        return bool(
            re.search(
                rf"(?:^|[;&|(!:=,{{\n\"'`+]|\b(?:then|do|else|exec)\s)[ \t]*{words}(?![\w-])", text, re.IGNORECASE
            )
        )


def parse_rule(text: str) -> Rule:
    """A rule from its text, such as `git log` or `npm run "build all"`.

    Raises ValueError, with a text for the person, for anything that is not a plain list of words.
    """
    if not text.strip():
        raise ValueError("empty rule: write the first words of a command, such as 'git log'")
    if not text.isprintable():
        raise ValueError(f"rule {text!r} holds line breaks or invisible characters")
    if _SYNTAX.search(text):
        raise ValueError(f"rule {text!r} holds shell syntax; a rule is the first words of one simple command")
    try:
        tokens = tuple(shlex.split(text))
    except ValueError:
        raise ValueError(f"rule {text!r} has a quote that is not closed") from None
    if not tokens or not tokens[0]:
        raise ValueError(f"rule {text!r} names no program")
    if tokens[0] == "*" or tokens[-1] == "*" or tokens[-1].endswith(":*"):
        raise ValueError(f"rule {text!r}: leave the * out, a rule covers everything that begins with its words")
    if _ASSIGNMENT.match(tokens[0]):
        raise ValueError(f"rule {text!r} begins with an assignment; commands with those always ask")
    return Rule(tokens)


def _base(name: str) -> str:
    return name.rstrip("/").rsplit("/", 1)[-1].casefold()


def _same_program(seen: str, wanted: str) -> bool:
    """The same name, or one with a version behind it: `pip3.11` is `pip`, and either may be the other."""
    if seen.removesuffix(".exe") == wanted:
        return True
    stem = _VERSION.sub("", wanted)
    return _VERSION.sub("", seen) == stem and (stem in (seen, wanted) or stem in ("python", "pip"))


def _may_name(pattern: str, name: str) -> bool:
    return len(pattern) > 1000 or fnmatchcase(name, pattern)


def _follows(wanted: Sequence[str], arguments: Sequence[str]) -> bool:
    """The words stand first among the arguments; options, and what may be their values, are passed over.

    Words that name files may stand anywhere behind the others, and be spelled differently.
    """
    files = [w for w in wanted if _names_file(w)]
    wanted = [w for w in wanted if not _names_file(w)]
    if any(not any(_same_file(f, a) for a in arguments) for f in files):
        return False
    if not wanted:
        return True
    reached = {0}
    after_option = False
    for argument in arguments:
        done = {at + 1 for at in reached if at < len(wanted) and _same(wanted[at], argument)}
        option = argument.startswith(("-", "+")) or "=" in argument
        reached = done | (reached if option or after_option else set())
        if len(wanted) in done:
            return True
        if not reached:
            return False
        after_option = argument.startswith(("-", "+"))
    return len(wanted) in reached


def _without_values(arguments: Sequence[str]) -> list[str]:
    """The arguments of git, without the values of the options that stand before its verb, and without its name again."""
    out: list[str] = []
    at = int(arguments[:1] == ["git"])
    while at < len(arguments) and arguments[at].startswith("-"):
        out.append(arguments[at])
        at += 2 if arguments[at] in _GIT_VALUED else 1
    return [*out, *arguments[at:]]


def _names_file(word: str) -> bool:
    return "/" in word or word.startswith(".") or bool(re.search(r"\w\.[A-Za-z]\w*$", word))


def _same_file(wanted: str, argument: str) -> bool:
    return _same(wanted, argument) or (bool(argument) and normpath(argument) == normpath(wanted))


def _same(wanted: str, argument: str) -> bool:
    return (
        argument == wanted
        or argument == "\0"
        or ("\0" in argument and fnmatchcase(wanted, argument.replace("\0", "*")))
    )


def _has_flag(flag: str, arguments: Sequence[str], *, either_case: bool = False) -> bool:
    if either_case and not flag.startswith("--"):
        flag, arguments = flag.replace("R", "r"), [a if a.startswith("--") else a.replace("R", "r") for a in arguments]
    if flag.startswith("--"):
        name = flag.split("=", 1)[0]
        short = {letter for letter, long in _LONG.items() if long == name}
        return any(
            a == flag
            or (a.startswith("--") and len(a) > 3 and flag.startswith(a.split("=", 1)[0]))
            or a.split("=", 1)[0] == name
            for a in arguments
        ) or any(_cluster(a) & short for a in arguments)
    letters = set(flag[1:])
    given = set().union(*(_cluster(a) for a in arguments)) if arguments else set()
    given |= {k for k, long in _LONG.items() for a in arguments if len(a) > 3 and long.startswith(a)}
    return flag in arguments or letters <= given


def _cluster(argument: str) -> set[str]:
    return set(argument[1:]) if argument.startswith("-") and not argument.startswith("--") else set()
