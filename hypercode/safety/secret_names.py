"""Names that say "here comes a secret", and values that look like one: `API_KEY=…`, `"password": "…"`, `Bearer …`.

A name alone is no secret, and neither is a placeholder, a label, a digest or a piece of code that reads one; so a value is
only taken for one by its own looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hypercode.safety.secret_text import Span, is_random

__all__ = ["named_spans", "names_a_secret", "secret_kind", "secret_value"]

_NEEDLES = (b"key", b"token", b"secret", b"pass", b"pwd", b"auth", b"credential")
_REACH = 48  # characters of a name before what was found in it

# the rest of the name, what closes it, what stands between, what opens the value
_AFTER = re.compile(
    r"""
    (?P<rest>[A-Za-z0-9_\-]{0,24})
    (?P<close>\\{0,3}["'`])?
    (?P<between>\s{0,8}(?:
        :\s{0,4}[A-Za-z][A-Za-z0-9_.\[\]|]{0,24}\s{0,4}={1,3} | := | => | ={1,3} | :(?!:) | > | ,
    )\s{0,8} | \s{1,4})
    (?P<open>\\{0,3}["'`])?
    (?P<scheme>(?:[Bb]earer|[Bb]asic|[Tt]oken|[Dd]igest|[Bb]ot)\s{1,4})?
    """,
    re.VERBOSE,
)
_QUOTED = re.compile(r"""[^"'`\\\r\n]*""")
_BARE = re.compile(r"""[^\s"'`<>(){}\[\],;\\&]*""")
_LOGIN = re.compile(r"(?:^|\s)(?:machine|login|default)\s+\S+\s+$")
_BEARER = re.compile(r"earer\s{1,4}")

_TAILS = frozenset((
    "value", "text", "plain", "raw", "hex", "base64", "b64", "prod", "dev", "test", "old", "new", "current", "v",
    "live", "default",
))  # fmt: skip
_KEY_OWNERS = frozenset((
    "api", "access", "secret", "private", "auth", "account", "encryption", "signing", "master", "shared", "service",
    "app",
))  # fmt: skip
_OPEN_KEYS = frozenset((
    "public", "primary", "foreign", "sort", "partition", "cache", "idempotency", "site", "publishable", "map", "row",
    "column", "index", "hot", "short", "object", "group", "hash", "dict", "unique", "range", "lookup", "storage",
    "s3", "host", "ssh",
))  # fmt: skip
_CURSORS = frozenset((
    "next", "page", "continuation", "cursor", "eos", "bos", "pad", "unk", "special", "stop", "start", "end", "mask",
    "sync", "resume", "max", "min", "num",
))  # fmt: skip
_JOINED_KEYS = ("apikey", "accesskey", "secretkey", "privatekey", "authkey", "accountkey")
_PASSWORDS = ("password", "passwd", "passphrase", "passcode", "pwd")


def names_a_secret(shape: bytes) -> bool:
    """Whether a text, in lower case and one byte a character, may have such a name in it."""
    return (
        b"key" in shape
        or b"token" in shape
        or b"secret" in shape
        or b"pass" in shape
        or b"auth" in shape
        or b"pwd" in shape
        or b"credential" in shape
        or b"earer " in shape
    )


def secret_kind(name: str) -> tuple[str, bool] | None:
    """What kind of secret a name announces, and whether its value must look random to be one; None for an ordinary name."""
    words = [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]
    while words and (words[-1].isdigit() or words[-1] in _TAILS):
        words.pop()
    if not words:
        return None
    last, before = words[-1], set(words[:-1])
    if last.endswith(_PASSWORDS) or (last == "pass" and before):
        return "password", False
    if last.endswith("secret"):
        return "secret", False
    if last.endswith("token"):
        return None if before & _CURSORS else ("token", False)
    if last.endswith(_JOINED_KEYS):
        return "key", False
    if last == "key":
        if before & _OPEN_KEYS or not before:
            return None
        return "key", not before & _KEY_OWNERS
    if last == "authorization":
        return "header", False
    return ("secret", True) if last in ("auth", "credential", "credentials") else None


_PLACEHOLDER = re.compile(
    r"""(?ix)
    ^[<$%{\[(*] | ^\#[0-9a-f]{3,8}$ | \.\.\.|… | \*\*\* | (?-i:(?:^|[_.-])(?:x{4}|X{4}) | x{5} | X{5} | (?:x{4}|X{4})$) | ^(.)\1*$ | redacted | placeholder | example | changeme | change[_-]me | dummy
    | ^(?:your|my|the|some|enter|insert|replace|put|add)[_\-\s] | [_-]here$
    | (?:^|[._])env(?:iron)?\b | getenv | ^process\. | ^(?:none|null|undefined|true|false|string|secrets?\..*)$
    """
)
_DIGEST = re.compile(r"(?i)(?:sha-?\d{1,3}|md5|blake\w+)[:-]")
_PATH = re.compile(r"(?:~|\.{0,2})/")
_CHAIN = re.compile(r"[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)+")
_CODE_NAME = re.compile(r"[A-Za-z]+(?:[_-][A-Za-z]+)*[_-]?\d{0,2}")
_NAMES_A_SECRET = re.compile(r"(?i)pass|pwd|token|key|secret|auth|cred")
_MACHINE_ID = re.compile(r"(?i)[0-9a-f]+|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def secret_value(value: str, *, quoted: bool, strict: bool = False) -> bool:
    """Whether the value of a secret's name is one.  `quoted`: it is a literal, not perhaps a name in a program."""
    if len(value) < 6 or any(c.isspace() for c in value):
        return False
    if _PLACEHOLDER.search(value) or _DIGEST.match(value) or "://" in value[:16]:
        return False
    looks_random = len(value) >= 16 and is_random(value)
    if strict:
        return len(value) >= 20 and looks_random and not _MACHINE_ID.fullmatch(value) and not _PATH.match(value)
    if looks_random and not _CHAIN.fullmatch(value):
        return True
    if _PATH.match(value) or (_CHAIN.fullmatch(value) and not any(is_random(p) for p in value.split("."))):
        return False
    if _CODE_NAME.fullmatch(value) and _NAMES_A_SECRET.search(value):
        return len(value) >= 8 and is_random(value)
    letters = sum(c.isalpha() for c in value)
    digits = sum(c.isdigit() for c in value)
    if letters and digits:
        return True
    if not letters:
        return quoted and digits >= 6
    signs = any(not c.isalpha() and c not in "_-.:/ " for c in value[:-1])
    return signs or is_random(value)


def named_spans(text: str, shape: bytes) -> Iterator[tuple[Span, bool]]:
    """The values that stand behind a secret's name, and whether each looks like one.

    `shape` is the text in lower case, one byte a character.  A value that does not look like a secret is still given: at
    the end of an unfinished text it may become one.
    """
    for needle in _NEEDLES:
        if needle not in shape:
            continue
        at = shape.find(needle)
        while at >= 0:
            found = _value_after(text, at, at + len(needle))
            if found is not None:
                yield found
            at = shape.find(needle, at + len(needle))
    at = shape.find(b"earer ")
    while at >= 0:
        if match := _BEARER.match(text, at):
            value = _BARE.match(text, match.end())
            if value is not None and value.group():
                yield (*value.span(), "token"), len(value.group()) >= 16 and secret_value(value.group(), quoted=True)
        at = shape.find(b"earer ", at + 6)


def _value_after(text: str, at: int, end: int) -> tuple[Span, bool] | None:
    match = _AFTER.match(text, end)
    if match is None:
        return None
    start = at
    while start > 0 and at - start < _REACH and (text[start - 1].isalnum() or text[start - 1] in "_-"):
        start -= 1
    kind = secret_kind(text[start : match.end("rest")])
    if kind is None or not _connects(text, start, match):
        return None
    quote = match["open"]
    value = (_QUOTED if quote else _BARE).match(text, match.end())
    if value is None or (not value.group() and value.end() < len(text)):
        return None
    between = match["between"].strip()
    strict = (kind[1] or between == ",") and not match["scheme"]
    sound = secret_value(value.group(), quoted=bool(quote or match["scheme"]), strict=strict)
    if not quote and text[value.end() : value.end() + 1] in ("(", "["):
        sound = False  # a call, an index: code
    if between == ">" and text[value.end() : value.end() + 1] != "<":
        sound = False  # not an element, a comparison
    return (*value.span(), kind[0]), sound


def _connects(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether what stands between name and value makes them a pair."""
    between = match["between"].strip()
    if between == ",":
        return bool(match["close"] and match["open"])
    if between:
        return True
    flag = text.startswith("--", start) or text[max(start - 2, 0) : start] == "--"
    return not match["close"] and (flag or _LOGIN.search(text, max(start - 200, 0), start) is not None)
