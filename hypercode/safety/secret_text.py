"""Secrets that are known by their own looks: tokens with a prefix, passwords in addresses, private keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

__all__ = [
    "Span",
    "address_spans",
    "is_password",
    "is_random",
    "key_block_spans",
    "long_runs",
    "open_key_block",
    "open_token",
    "token_spans",
    "unlike_words",
]

Span = tuple[int, int, str]
"""Start, end and kind of a secret in a text."""


def is_random(text: str) -> bool:
    """Whether it is more like noise than like words: many digits or changes of case, few repeats."""
    length = len(text)
    if len(set(text)) < min(8, length * 2 // 3):
        return False
    if text.isalpha():  # InWordsLikeThese
        return len(_PIECE.findall(text)) * 3 > length or (length >= 8 and unlike_words(text))
    changes, digits, last = 0, 0, ""
    for c in text:
        kind = "0" if c.isdigit() else "A" if c.isupper() else "a" if c.islower() else ""
        digits += kind == "0"
        changes += bool(last and kind and kind != last)
        last = kind
    return changes >= max(3, length * 0.2) or (digits >= 3 and changes >= 3)


_PIECE = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ACRONYMS = frozenset(
    re.findall(
        "[A-Z]+",
        "ID URL URI API JSON XML HTML HTTP HTTPS DB SQL UI IO OK IP JWT SSH SSL TLS AWS GCP CSS PDF CPU CLI OS UTF UUID DNS TCP"
        " UDP VPN RSA AES CSRF SSO LDAP MFA OTP PIN PEM SDK CI CD PWD ENV",
    )
)
# What may follow a letter within the words of most languages that are written without accents.
_FOLLOWING = {
    row[0]: row[1:]
    for row in re.findall(
        "[a-z]+",
        "abcdefgiklmnprstuvwxyz babeijlorsuy caceihklorstuy dadegilmnoruvwys eabcdefgiklmnopqrstuvwxyz faefiloruty gaeghilnorsuy "
        "haeilnortuwy iabcdefgklmnoprstvxz jaeou kaeilnorstwy lacdefiklmopstuvy mabeimnopsuy nabcdefghijklmnopqrstuvwy "
        "oabcdefghiklmnoprstuvwxyz paehilmnoprstuy qu rabcdefghiklmnoprstuvwy sacehiklmnopqstuwy tacefhilmnorstuwy "
        "uabcdefgilmnoprstvxz vaeioy waehiklnorst xacehipty yabcdeilmnopst zaeiloyz",
    )
}


def unlike_words(text: str) -> bool:
    """Whether few of its letters are in words or in names of a program; true also where there is no letter."""
    pieces = _PIECE.findall(text)
    odd = len(pieces) > 1 and any(piece.isupper() and piece not in _ACRONYMS for piece in pieces)
    words = sum(len(piece) for piece in pieces if _is_word(piece.lower()))
    return words <= sum(map(len, pieces)) * (0.75 if odd else 0.5)


def _is_word(piece: str) -> bool:
    if len(piece) < 3 or not any(c in "aeiouy" for c in piece):
        return False
    odd = sum(after not in _FOLLOWING[letter] for letter, after in pairwise(piece))
    return odd <= len(piece) // 8


# -- tokens ------------------------------------------------------------------------

_W = "[A-Za-z0-9]"
_D = "[A-Za-z0-9_-]"
_START = "(?<![A-Za-z0-9])"

# kind; prefix; characters of the body; how many at least.  The prefixes are those that the issuers document.
_TOKENS: tuple[tuple[str, str, str, int], ...] = (
    ("provider key", "sk-(?:or|ant|proj|svcacct|admin)-", _D, 16),
    ("provider key", f"{_START}sk-", _D, 20),
    ("provider key", f"{_START}(?:gsk_|hf_|r8_|pplx-|xai-|nvapi-|csk-|AIza)", _D, 30),
    ("token", "gh[pousr]_", _W, 30),
    ("token", "github_pat_", "[A-Za-z0-9_]", 30),
    ("token", f"{_START}gl(?:pat|dt|rt|ft|soat|ptt|cbt|imt|agent|oas)-", "[A-Za-z0-9_.-]", 20),
    ("token", "xox[a-z]-|xapp-", "[A-Za-z0-9-]", 20),
    ("token", f"{_START}(?:npm_|dckr_pat_|shp(?:at|ca|pa|ss)_|lin_api_|ntn_|glsa_|figd_|PMAK-|tskey-)", _D, 24),
    ("token", f"{_START}(?:pypi-|dop_v1_|doo_v1_|hvs\\.|hvb\\.|sntrys_|ya29\\.|SG\\.|rubygems_)", "[A-Za-z0-9_.-]", 32),
    ("key", f"{_START}(?:[sr]k_(?:live|test|prod)_|whsec_)", _W, 16),
    ("key", f"{_START}(?:AKIA|ASIA|ABIA|ACCA)", "[A-Z0-9]", 16),
    ("private key", "AGE-SECRET-KEY-1", "[A-Z0-9]", 40),
    ("token", f"{_START}AT(?:ATT|CTT|STT)3", "[A-Za-z0-9_=-]", 30),
    ("token", f"{_START}ATBB", _W, 24),
    ("token", f"{_START}eyJ{_D}{{8,}}\\.(?=[A-Za-z0-9_-])", "[A-Za-z0-9_.-]", 16),
)
_CLOSED = tuple((kind, re.compile(f"(?:{prefix})({body}{{{least},}})")) for kind, prefix, body, least in _TOKENS)
_AMBIGUOUS = _CLOSED[1][1]  # `sk-` alone also begins the names of other things
_EXAMPLE = re.compile("(?i)example|xxxx|your|placeholder|dummy|redacted")
_OPEN = re.compile("|".join(f"(?:{prefix}){body}*\\Z" for _, prefix, body, _ in _TOKENS) + f"|{_START}eyJ{_D}*\\Z")
_PREFIXES = (
    "sk-", "gsk_", "hf_", "r8_", "pplx-", "xai-", "nvapi-", "csk-", "AIza", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
    "github_pat_", "gl", "xox", "xapp-", "npm_", "dckr_pat_", "shp", "lin_api_", "ntn_", "figd_", "PMAK-", "tskey-",
    "pypi-", "doo_", "dop_", "hvs.", "hvb.", "sntrys_", "ya29.", "SG.", "rubygems_", "sk_", "rk_", "whsec_", "AKIA",
    "ASIA", "ABIA", "ACCA", "AGE-SECRET-KEY-1", "ATATT3", "ATCTT3", "ATSTT3", "ATBB", "eyJ",
)  # fmt: skip
_CLASSES = bytes(0x61 if chr(i) in "_.-+/=" or (i < 128 and chr(i).isalnum()) else 0x20 for i in range(256))


def long_runs(text: str, plain: bytes, least: int = 20) -> list[tuple[int, int]]:
    """Where the text has `least` or more characters in a row that a token or an encoding could be made of.

    `plain` is the text, one byte a character.  No token is shorter than 20.
    """
    classes = plain.translate(_CLASSES)
    wanted = b"a" * least
    runs = []
    start = classes.find(wanted)
    while start >= 0:
        end = classes.find(b" ", start)
        end = len(text) if end < 0 else end
        runs.append((start, end))
        start = classes.find(wanted, end)
    return runs


def token_spans(text: str, runs: list[tuple[int, int]]) -> list[Span]:
    """Tokens with a known prefix, in the long runs of a text."""
    joined = " ".join([text[start:end] for start, end in runs])
    prefixes = [prefix for prefix in _PREFIXES if prefix in joined]
    if not prefixes:
        return []
    return [
        (*match.span(), kind)
        for start, end in runs
        if (run := text[start:end]) and any(prefix in run for prefix in prefixes)
        for kind, pattern in _CLOSED
        for match in pattern.finditer(text, start, end)
        if is_random(match[1]) or (pattern is not _AMBIGUOUS and _is_made(match[1]))
    ]


def _is_made(body: str) -> bool:
    """Whether what stands behind a prefix that nothing else has is no example: no words, and more than a few characters."""
    code = body.isupper() and not body.isalpha()
    return len(set(body)) >= 6 and (code or unlike_words(body)) and not _EXAMPLE.search(body)


def open_token(text: str) -> int | None:
    """Where a token begins that the end of the text may have cut."""
    match = _OPEN.search(text, max(len(text) - 4096, 0))
    return match.start() if match is not None and len(match.group()) >= 8 else None


# -- addresses ---------------------------------------------------------------------

_USERINFO = re.compile(
    r"""://(?:(?P<user>[^\s/:@"'`<>\\]*):(?P<password>[^\s/"'`<>\\]*)|(?P<token>[^\s/:@"'`<>\\]{16,}))"""
)
_HOOK = re.compile(r"://(?:hooks\.slack\.com/(?:services|workflows)/|[a-z]*\.?discord(?:app)?\.com/api/webhooks/\d+/)")
_HOOK_PATH = re.compile(r"[A-Za-z0-9_/-]{16,}")
_TELEGRAM = re.compile(r"/bot(\d{6,12}:[A-Za-z0-9_-]{30,})")
_SIGNATURE = re.compile(
    r"(?i)(?:[?&;,] ?|\\u0026|%26)(?:sig|(?:x-[a-z]{2,5}-)?signature)(?:=|%3D)([A-Za-z0-9%+/=_~-]*)"
)
_NO_PASSWORD = re.compile(
    r"(?i)[$%<{\[*].*|pass(?:word|wd|phrase)?|pw|pwd|secret|token|user(?:name)?|x-oauth-basic|your.*|my[_-]?pass.*|x+|\.+|…|"
    r".*(?:redacted|placeholder|changeme|example).*|\d{1,5}"
)


def address_spans(text: str, plain: bytes) -> Iterator[tuple[Span, bool]]:
    """Passwords and tokens in addresses, and whether each is finished and looks like one."""
    at = plain.find(b"://")
    while at >= 0:
        if match := _USERINFO.match(text, at):
            yield from _userinfo(text, match)
        if hook := _HOOK.match(text, at):
            path = _HOOK_PATH.match(text, hook.end())
            if path is not None:
                yield (*path.span(), "token"), True
        elif (telegram := _TELEGRAM.search(text, at, at + 120)) is not None:
            yield (*telegram.span(1), "token"), True
        at = plain.find(b"://", at + 3)
    for match in _SIGNATURE.finditer(text):
        yield (*match.span(1), "key"), len(match[1]) >= 20 and _is_made(match[1])


def _userinfo(text: str, match: re.Match[str]) -> Iterator[tuple[Span, bool]]:
    if match["token"] is not None:
        finished = text[match.end("token") : match.end("token") + 1] == "@"
        yield (*match.span("token"), "token"), finished and is_random(match["token"])
        return
    start, end = match.span("password")
    last = text.rfind("@", start, end)
    if last >= 0:
        yield (start, last, "password"), is_password(text[start:last], match["user"])
    if end == len(text) and not text[start:end].isdigit():
        yield (start, end, "password"), False


def is_password(text: str, user: str | None) -> bool:
    """Whether what stands where a password belongs is one: not short, not the user's name, no placeholder, no port."""
    return len(text) >= 3 and text != user and not _NO_PASSWORD.fullmatch(text)


# -- private keys ------------------------------------------------------------------

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_CUT_END = re.compile(r"-{0,5}[A-Z0-9 ]{0,60}-{0,5}\Z|\\{0,3}\Z|-[A-Za-z-]{0,20}\Z")
_FOREIGN = re.compile("[\"'`{}<>]")
_BREAK = re.compile(r"(?:[ \t]{0,20}(?:[\r\n]|\\{1,3}[nrt]))+")
_LINE = re.compile(  # behind a line number, a diff sign or a quote sign
    r"[ \t]{0,20}(?:\d{1,7}(?![A-Za-z0-9+/=]))?[ \t]{0,4}(?:[→|:>-]|\+(?=[A-Za-z0-9+/=]{40}))?[ \t]{0,20}(?P<body>[A-Za-z0-9+/=]*)"
)
_HEADER = re.compile(r"[→|:>+ \t\d-]{0,20}[A-Z][A-Za-z-]{2,20}: ?[^\r\n\\\"'`]{0,200}")
_SUBSTANCE = re.compile(r"[A-Za-z0-9+/=]{16,}")
_LINE_LENGTH = 16  # characters of a line of a key, the last one aside
_BLOCK = 100_000  # characters of a key at most


def key_block_spans(text: str) -> Iterator[Span]:
    """Private keys in PEM armour, also without an end, behind line numbers or inside a JSON string."""
    begins = list(_BEGIN.finditer(text))
    for number, begin in enumerate(begins):
        limit = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        end = _whole_block(text, begin.end(), limit) or _cut_block(text, begin.end(), limit)[0]
        if end is not None:
            yield begin.start(), end, "private key"


def open_key_block(text: str) -> int | None:
    """Where a private key begins whose end has not come yet."""
    at = text.rfind("-----BEGIN ")
    begin = _BEGIN.match(text, at) if at >= 0 else None
    if begin is None or len(text) - at > _BLOCK or _whole_block(text, begin.end(), len(text)) is not None:
        return None
    return at if _cut_block(text, begin.end(), len(text))[1] else None


def _whole_block(text: str, start: int, limit: int) -> int | None:
    """The end of a key that has one."""
    at = text.find("-----END ", start, min(limit, start + _BLOCK))
    end = _END.match(text, at) if at >= 0 else None
    if end is None or _FOREIGN.search(text, start, at) or not _SUBSTANCE.search(text, start, at):
        return None
    return end.end()


def _cut_block(text: str, at: int, limit: int) -> tuple[int | None, bool]:
    """The end of a key that stops in the middle (None: it has not begun), and whether it may go on behind the text."""
    end = None
    while (gap := _BREAK.match(text, at, limit)) is not None:
        if end is None and (header := _HEADER.match(text, gap.end(), limit)) is not None:
            at = header.end()
            continue
        line = _LINE.match(text, gap.end(), limit)
        body = line["body"] if line is not None else ""
        if line is None or not body:
            at = gap.end() if line is None or line.end() < len(text) else line.end()
            break
        at = line.end()
        last = at == len(text) or _BREAK.match(text, at) is not None or text[at] in "\"'`"
        if len(body) >= _LINE_LENGTH or (end is not None and last):
            end = at
        if len(body) < _LINE_LENGTH:
            break
    return end, at == len(text) or _CUT_END.match(text, at) is not None
