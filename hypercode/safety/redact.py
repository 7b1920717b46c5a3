"""Secrets out of what is written to disk, and out of what is shown: by value in every usual encoding, and by pattern.

What is taken out is marked `[redacted: kind]`.  Ordinary text comes back as it is, and so do fields that a provider has
signed: one changed character there would make the next request fail.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any
from urllib.parse import quote, quote_plus

from hypercode.safety.secret_lines import has_command, line_spans
from hypercode.safety.secret_names import named_spans, names_a_secret, secret_kind, secret_value
from hypercode.safety.secret_text import (
    Span,
    address_spans,
    key_block_spans,
    long_runs,
    open_key_block,
    open_token,
    token_spans,
)

__all__ = ["RedactedStream", "Redactor"]

_SHORTEST = 8  # characters; a shorter value would be found in ordinary words
_GRIP = 8  # characters of a value that are worth holding back
_CONTEXT = 256  # characters of what was given out that decide about what follows
_WINDOW = 12  # characters of what was given out in which the grip of a value, and a line break in it, may have begun
_HOLD = 8192  # characters that are held back at most, private keys aside
_LINE_BREAK = re.compile(r"[\r\n]|\\[nr]")
_SIGNED = frozenset({"signature", "thought_signature", "extra_content", "provider_specific_fields"})


class Redactor:
    """Takes the given secrets, and what looks like one, out of texts and JSON values.

    A secret of fewer than eight characters is not looked for by value.  Without `patterns` only the given ones are, signed
    fields included: for what is shown, which is to be as it is otherwise and is not sent back.
    """

    def __init__(self, secrets: Iterable[str] = (), *, patterns: bool = True) -> None:
        self._patterns = patterns
        known = {s.strip() for s in secrets}
        forms = {form for secret in known if len(secret) >= _SHORTEST for form in _forms(secret)}
        self._forms = sorted(forms, key=lambda f: (-len(f[0]), f))
        self._longest = max((len(form) for form, _ in forms), default=0)
        self._plain = tuple(form for form, broken in self._forms if not broken)
        self._broken = tuple(dict.fromkeys(n for form, broken in self._forms if broken for n in _needles(form)))
        self._run = min([20, *(len(form) // 2 for form, broken in forms if broken)])

    @cached_property  # these two are large, and most sessions never need the first
    def _values(self) -> re.Pattern[str] | None:
        return re.compile("|".join(_tolerant(*form) for form in self._forms)) if self._forms else None

    @cached_property
    def _grips(self) -> re.Pattern[str] | None:
        beginnings = dict.fromkeys(_tolerant(form[:_GRIP], broken) for form, broken in self._forms)
        return re.compile("|".join(beginnings)) if beginnings else None

    def text(self, text: str) -> str:
        """The text without secrets; the same object where there are none."""
        spans = self.spans(text)
        return _replaced(text, spans) if spans else text

    def value(self, value: Any) -> Any:
        """The JSON value without secrets in its texts and keys; parts without any are the same objects."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._dict(value)
        if isinstance(value, list | tuple):
            items = [self.value(item) for item in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        return value

    def _dict(self, value: dict[Any, Any]) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, item in value.items():
            name = self.text(key) if isinstance(key, str) else key
            while name in result:
                name = f"{name}'"  # two keys that were secrets
            result[name] = item if self._patterns and _is_signed(key, item) else self._item(key, item)
        same = len(result) == len(value) and all(k in value and result[k] is value[k] for k in result)
        return value if same else result

    def _item(self, key: Any, item: Any) -> Any:
        cleaned = self.value(item)
        if not (self._patterns and isinstance(key, str) and isinstance(item, str) and cleaned is item):
            return cleaned
        kind = secret_kind(key)
        if kind is None:
            return cleaned
        scheme, _, rest = item.rpartition(" ")  # Bearer …
        if (scheme and not scheme.isalpha()) or not secret_value(rest, quoted=True, strict=kind[1] and not scheme):
            return cleaned
        return f"{scheme} [redacted: {kind[0]}]".lstrip()

    def stream(self) -> RedactedStream:
        """For a text that arrives in pieces."""
        return RedactedStream(self)

    def spans(self, text: str) -> list[Span]:
        """Where the secrets of a text are, in order and apart from each other."""
        return self._scan(text, [])

    def beginning(self) -> Callable[[str, int], object] | None:
        """What tells whether a secret may stand in a text from a place on, or begin there; None where patterns count."""
        if self._patterns:
            return None
        return self._grips.search if self._grips else lambda text, start: None

    def scan(self, text: str) -> tuple[list[Span], int]:
        """The secrets of an unfinished text, and where one may begin that its end has cut (its length if nowhere)."""
        maybe: list[Span] = []
        spans = self._scan(text, maybe)
        end = len(text)
        starts = [span[0] for span in (*spans, *maybe) if span[1] == end]
        token, block = (open_token(text), open_key_block(text)) if self._patterns else (None, None)
        starts += [start for start in (token, self._open_value(text)) if start is not None]
        cut = max(min(starts, default=end), end - _HOLD)
        return spans, cut if block is None else min(cut, block)

    def _scan(self, text: str, maybe: list[Span]) -> list[Span]:
        """The secrets; `maybe` receives what stands where one would, but does not look like one."""
        plain = text.encode("latin-1", "replace")  # one byte a character
        shape = plain.lower()
        runs = long_runs(text, plain, self._run)
        found: list[Span] = []
        if self._has_value(text, runs) and self._values is not None:
            found += [(*match.span(), "key") for match in self._values.finditer(text)]
        if not self._patterns:
            return _merged(found) if found else found
        if runs:
            found += token_spans(text, runs)
        if names_a_secret(shape):
            for span, sound in named_spans(text, shape):
                (found if sound else maybe).append(span)
        if b"cookie" in shape or has_command(plain):
            for span, sound in line_spans(text, plain, shape):
                (found if sound else maybe).append(span)
        if b"://" in plain or b"sig=" in shape or b"signature" in shape:
            for span, sound in address_spans(text, plain):
                (found if sound else maybe).append(span)
        if b"private key" in shape:
            found += key_block_spans(text)
        return _merged(found) if found else found

    def _has_value(self, text: str, runs: list[tuple[int, int]]) -> bool:
        for form in self._plain:
            if form in text:
                return True
        if not runs:
            return False
        joined = " ".join([text[start:end] for start, end in runs])
        return any(needle in joined for needle in self._broken)

    def _open_value(self, text: str) -> int | None:
        """Where a known value begins that is not whole yet."""
        tail = text[-2 * self._longest :] if self._longest else ""
        squashed = _LINE_BREAK.sub("", tail)
        found = None
        for form, _ in self._forms:
            at = squashed.find(form[:_GRIP])
            while at >= 0:
                if form.startswith(squashed[at:]):
                    start = len(text) - _reach_back(tail, len(squashed) - at)
                    found = start if found is None else min(found, start)
                    break
                at = squashed.find(form[:_GRIP], at + 1)
        return found


class RedactedStream:
    """Redacts a text that arrives in pieces, wherever they are cut.

    What may be the beginning of a secret is held back until it is known; ordinary text passes at once.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._beginning = redactor.beginning()
        self._text = ""  # what was given out lately, and behind it what is held back
        self._given = 0

    def feed(self, piece: str) -> str:
        """Take a piece and give out what is certain; the very piece where nothing in it can be part of a secret."""
        given, text = self._given, self._text + piece
        if (
            self._beginning
            and given == len(self._text)
            and not self._beginning(text, given - _WINDOW if given > _WINDOW else 0)
        ):
            self._text = text if len(text) < 4 * _CONTEXT else text[-_CONTEXT:]
            self._given = len(self._text)
            return piece
        self._text = text
        spans, until = self._redactor.scan(text)
        return self._give(spans, until)

    def close(self) -> str:
        """Give out the rest."""
        return self._give(self._redactor.spans(self._text), len(self._text))

    def _give(self, spans: list[Span], until: int) -> str:
        until = max(until, self._given)
        spans = [
            (max(start, self._given), min(end, until), kind)
            for start, end, kind in spans
            if max(start, self._given) < min(end, until)
        ]
        given = _replaced(self._text, spans, self._given, until)
        keep = max(until - _CONTEXT, 0)
        self._text = self._text[keep:]
        self._given = until - keep
        return given


def _replaced(text: str, spans: list[Span], start: int = 0, end: int | None = None) -> str:
    parts = []
    for span_start, span_end, kind in spans:
        parts += [text[start:span_start], f"[redacted: {kind}]"]
        start = span_end
    parts.append(text[start:end])
    return "".join(parts)


def _merged(spans: list[Span]) -> list[Span]:
    """In order; what overlaps is one, under the name of the first."""
    spans.sort(key=lambda s: (s[0], -s[1]))
    merged = [spans[0]]
    for start, end, kind in spans[1:]:
        last = merged[-1]
        if start < last[1]:
            merged[-1] = (last[0], max(last[1], end), last[2])
        else:
            merged.append((start, end, kind))
    return merged


def _is_signed(key: Any, item: Any) -> bool:
    if key == "reasoning_details" and isinstance(item, list):
        return any(isinstance(d, dict) and (d.get("signature") or d.get("data")) for d in item)
    return key in _SIGNED


# -- the encodings of a value --------------------------------------------------------


def _forms(secret: str) -> Iterator[tuple[str, bool]]:
    """How a secret may be written, and whether the form is one that tools break into lines."""
    data = secret.encode("utf-8", "surrogatepass")
    plain = {secret, secret.replace("/", "\\/")}
    for _ in range(2):  # JSON, and JSON inside JSON
        plain |= {json.dumps(s, ensure_ascii=a)[1:-1] for s in list(plain) for a in (True, False)}
    plain |= {s.replace("/", "\\/") for s in list(plain)}
    for safe in ("", "/", "/:@!$&'()*+,;=~"):
        plain |= {quote(data, safe=safe), quote_plus(data, safe=safe)}
    plain |= {re.sub("%..", lambda m: m.group().lower(), s) for s in list(plain)}
    every = "".join(f"%{byte:02X}" for byte in data)
    yield from ((form, False) for form in plain | {every, every.lower()})
    yield data.hex(), True
    yield data.hex().upper(), True
    for alignment in range(3):
        encoded = base64.b64encode(b"\0" * alignment + data).decode()
        # the first and the last characters also hold bits of what stands around the secret
        core = encoded[(0, 2, 3)[alignment] : len(encoded) - (0, 3, 2)[(alignment + len(data)) % 3]]
        yield core, True
        yield core.replace("+", "-").replace("/", "_"), True


def _needles(form: str) -> list[str]:
    """Pieces of which one is whole wherever an encoder breaks the form into lines."""
    size = max(min(len(form) // 3, 12), 4)
    return [form[at : at + size] for at in range(0, len(form) - size + 1, max((len(form) - size) // 3, 1))][:4]


def _tolerant(form: str, broken: bool) -> str:
    if not broken:
        return re.escape(form)
    return rf"(?:{_LINE_BREAK.pattern})*".join(map(re.escape, form))


def _reach_back(text: str, count: int) -> int:
    """How many characters from the end hold `count` of them, line breaks not counted."""
    pieces = re.findall(rf"{_LINE_BREAK.pattern}|(?s:.)", text)
    reach = 0
    while count:
        piece = pieces.pop()
        reach += len(piece)
        count -= not _LINE_BREAK.fullmatch(piece)
    return reach
