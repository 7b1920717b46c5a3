"""Secrets that only their line gives away: the values of cookies, and passwords among the options of a command."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hypercode.safety.secret_names import secret_kind, secret_value
from hypercode.safety.secret_text import Span, is_password, is_random

__all__ = ["has_command", "line_spans"]

_LONGEST = 8_000  # characters of a line that are looked at
_QUOTE = r"""(?:\\{0,3}["'])?"""

_HEADER = re.compile(rf"(?i)(?<![a-z0-9])cookie2?{_QUOTE}(?:\s{{0,4}}[:=,]\s{{0,4}}|(?<=--cookie)\s{{1,4}}){_QUOTE}")
_COOKIES = re.compile(r"""(?:[^"'`\\\r\n]|="[^"\r\n]{0,4096}")*""")
_PAIR = re.compile(r"""(?:\A|;)\s{0,4}([!#$%&*+.^_|~\w-]{1,64})="?([^;\s"]*)""")
_ATTRIBUTES = frozenset(("expires", "path", "domain", "max-age", "samesite", "priority", "version"))
_SESSION = re.compile(r"(?i)sess|\Asid|sid\Z|jwt|login|remember|ticket|[cx]srf")

_USER = rf"{_QUOTE}(?P<user>[^\s:\"'\\]{{0,128}}):"
# What a command begins with, and how the option begins that has the password.
_COMMANDS = tuple(
    (name, re.compile(rf"(?<=[\s\"']){option}"))
    for name, option in (
        (b"curl ", rf"(?:-[a-zA-Z]{{0,6}}[uU]\s{{0,4}}|--(?:proxy-)?user[\s=]\s{{0,4}}){_USER}"),
        (b"http ", rf"(?:-a\s{{0,4}}|--auth[\s=]\s{{0,4}}){_USER}"),
        (b"https ", rf"(?:-a\s{{0,4}}|--auth[\s=]\s{{0,4}}){_USER}"),
        (b"sshpass ", rf"-p\s{{0,4}}{_QUOTE}"),
        (b"mysql ", rf"-p{_QUOTE}(?=\S)"),
        (b"mysqldump ", rf"-p{_QUOTE}(?=\S)"),
        (b"mysqladmin ", rf"-p{_QUOTE}(?=\S)"),
        (b"mariadb ", rf"-p{_QUOTE}(?=\S)"),
        (b"mariadb-dump ", rf"-p{_QUOTE}(?=\S)"),
        (b"redis-cli ", rf"-a\s{{1,4}}{_QUOTE}"),
        (b"docker login ", rf"-p\s{{1,4}}{_QUOTE}"),
        (b"podman login ", rf"-p\s{{1,4}}{_QUOTE}"),
        (b"az login ", rf"-p\s{{1,4}}{_QUOTE}"),
    )
)
_NEEDLES = (b"curl ", b"http ", b"https ", b"sshpass ", b"mysql", b"mariadb", b"redis-cli ", b" login ")
_END = re.compile(r"(?<!\\)(?:[\r\n]|\\[nr])|\s(?:\|\|?|&&|;)\s")  # of a command; a line may go on behind a backslash
_BARE = re.compile(r"""[^\s"'`\\]*""")
_QUOTED = re.compile(r"""[^"'`\\\r\n]*""")


def has_command(plain: bytes) -> bool:
    """Whether a text, one byte a character, may have a command in it that takes a password."""
    return any(map(plain.__contains__, _NEEDLES))


def line_spans(text: str, plain: bytes, shape: bytes) -> Iterator[tuple[Span, bool]]:
    """Values of cookies and passwords of commands, and whether each looks like one.

    `plain` is the text, one byte a character, `shape` the same in lower case.  A line that the end of the text has cut is given as a whole, as one that
    does not: what is still to come may be known by its beginning only.
    """
    yield from _cookies(text, shape)
    for name, option in _COMMANDS:
        at = plain.find(name)
        while at >= 0:
            end = _END.search(text, at, at + _LONGEST)
            until = end.start() if end else min(at + _LONGEST, len(text))
            if not text[max(at - 1, 0) : at].isalnum():
                yield from _options(text, option, at + len(name) - 1, until)
                if end is None and until == len(text):
                    yield (at, until, "password"), False
            at = plain.find(name, until)


def _cookies(text: str, shape: bytes) -> Iterator[tuple[Span, bool]]:
    at = shape.find(b"cookie")
    while at >= 0:
        until = at + 6
        if header := _HEADER.match(text, at):
            line = _COOKIES.match(text, header.end(), header.end() + _LONGEST)
            until = max(line.end() if line else 0, until)
            pairs = text[header.end() : until]
            for pair in _PAIR.finditer(pairs):
                start, end = (header.end() + place for place in pair.span(2))
                yield (start, end, "token"), _is_session(pair[1], pair[2])
            if until == len(text) and "=" in pairs:
                yield (at, until, "token"), False
        at = shape.find(b"cookie", until)


def _is_session(name: str, value: str) -> bool:
    """Whether a cookie is worth something to others, and no choice of a language."""
    if name.lower() in _ATTRIBUTES:
        return False
    if _SESSION.search(name) or secret_kind(name):
        return secret_value(value, quoted=True)
    return len(value) >= 16 and is_random(value) and secret_value(value, quoted=True)


def _options(text: str, option: re.Pattern[str], start: int, until: int) -> Iterator[tuple[Span, bool]]:
    for match in option.finditer(text, start, until):
        quoted = not {'"', "'"}.isdisjoint(match.group())
        value = (_QUOTED if quoted else _BARE).match(text, match.end(), until)
        if value is not None and value.group():
            user = match.groupdict().get("user")
            yield (*value.span(), "password"), is_password(value.group(), user)
