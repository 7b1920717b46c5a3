"""A second, slow implementation of the edit rules, and random files and edits to compare the real one with."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

from hypercode.errors import ToolError
from hypercode.tools.explain import explain
from hypercode.tools.matching import Edit, apply

BOM = b"\xef\xbb\xbf"


def tokens(data: bytes) -> list[bytes]:
    """Single bytes, but a CRLF is one."""
    found, at = [], 0
    while at < len(data):
        size = 2 if data[at : at + 2] == b"\r\n" else 1
        found.append(data[at : at + size])
        at += size
    return found


def seen(found: list[bytes]) -> list[bytes]:
    return [b"\n" if token == b"\r\n" else token for token in found]


def ending(inside: list[bytes], whole: list[bytes]) -> bytes | None:
    kinds = {token for token in inside if token in (b"\n", b"\r\n")}
    if len(kinds) == 1:
        return kinds.pop()
    ends = [token for token in whole if token in (b"\n", b"\r\n")]
    if not ends:
        return None
    crlf = ends.count(b"\r\n")
    return ends[0] if 2 * crlf == len(ends) else b"\r\n" if 2 * crlf > len(ends) else b"\n"


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def expected(data: bytes, edits: list[Edit]) -> bytes | str:
    """The new content by the rules, or the error kind."""
    head = BOM if data.startswith(BOM) else b""
    whole = tokens(data[len(head) :])
    view = seen(whole)
    spans: list[tuple[int, int, bytes]] = []
    for edit in edits:
        old, new = seen(tokens(edit.old.encode())), tokens(edit.new.encode())
        if not old:
            return "empty_old"
        if old == seen(new):
            return "no_change"
        if not is_utf8(data) and not edit.new.isascii():
            return "encoding"
        starts = [at for at in range(len(view)) if view[at : at + len(old)] == old]
        if edit.replace_all:
            kept: list[int] = []
            for at in starts:
                if not kept or at >= kept[-1] + len(old):
                    kept.append(at)
            starts = kept
        elif len(starts) > 1:
            return "ambiguous"
        if not starts:
            return "not_found" if is_utf8(data) or edit.old.isascii() else "encoding"
        for at in starts:
            end = ending(whole[at : at + len(old)], whole)
            plain = b"".join(new) if end is None else b"".join(end if t == b"\n" else t for t in seen(new))
            spans.append((at, at + len(old), plain))
    spans.sort()
    if any(a[1] > b[0] for a, b in pairwise(spans)):
        return "overlap"
    out, done = [head], 0
    for start, end_at, new_bytes in spans:
        out += [*whole[done:start], new_bytes]
        done = end_at
    return b"".join([*out, *whole[done:]])


def got(data: bytes, edits: list[Edit]) -> bytes | str:
    try:
        return apply(data, edits, explain)[0]
    except ToolError as error:
        return error.kind


@dataclass(frozen=True)
class Sample:
    data: bytes
    edits: list[Edit]


PIECES = [
    "a",
    "b",
    "ab",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "\u00a0",
    "é",
    "e\u0301",
    "😀",
    "\u2028",
    "\x0c",
    "“",
    '"',
    "$1",
    "\\1",
    "中",
]
texts = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    parts = draw(
        st.lists(st.one_of(texts.map(str.encode), st.sampled_from([b"\xe9", b"\xff", b"\xe2\x82"])), max_size=14)
    )
    if draw(st.integers(0, 5)):
        parts = [part for part in parts if part not in (b"\xe9", b"\xff", b"\xe2\x82")]
    data = (BOM if draw(st.booleans()) else b"") + b"".join(parts)
    body = data.removeprefix(BOM).decode("utf-8", "replace")
    edits = []
    for _ in range(draw(st.sampled_from([1, 1, 2, 3]))):
        if body and draw(st.integers(0, 9)):
            start = draw(st.integers(0, len(body) - 1))
            old = body[start : start + draw(st.integers(1, 12))]
            if draw(st.booleans()):
                old = old.replace("\r\n", "\n")
        else:
            old = draw(texts)
        edits.append(Edit(old, draw(texts), draw(st.booleans())))
    return Sample(data, edits)
