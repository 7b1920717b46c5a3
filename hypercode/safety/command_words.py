"""One word of a shell command: what its quoting, braces, tilde and variables can make of it.

The syntax tree says where a word begins and where it holds nested commands; what the characters between mean is
decided here, a second time and on its own.  Where the two readings disagree the word is `odd`, and an odd word never
runs unasked.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, product

from hypercode.safety.command_told import altered, printed
from hypercode.safety.command_work import spend

__all__ = ["Form", "Hole", "Piece", "Word", "decode", "forms", "secret_name"]

UNKNOWN = "\0"  # stands in a form for text nobody can know before the command runs
_DEEP = 8  # braces in and behind one another that are expanded
_LIMIT = 256  # forms of one word; more is not looked at, the word is then not sure

_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_RUN, _RUN_DOUBLE = re.compile(r"[^\\'\"$` \t\n;&|()<>]+"), re.compile(r"[^\\\"$`]+")
_EXPANSION = re.compile(r"\$\{([A-Za-z_]\w*|[0-9]+|[@*#?$!-])(\[(?:[@*]|\d+)\])?(?:(:?[-=?+])(.*))?\}", re.DOTALL)
_NAME_IN = {"hole": re.compile(r"\$\{[!#]?([A-Za-z_]\w*)"), "var": re.compile(r"\$\{?([A-Za-z_]\w*)")}
_SECRET = re.compile(
    r"api_?key|(?:^|_)keys?$|token|secret|passw|passphrase|credential|private_?key|access_?key|(?:^|_)pat$|(?:^|_)auth(?:$|_)",
    re.IGNORECASE,
)
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ANSI_CODE = re.compile(r"x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})")


@dataclass(frozen=True, slots=True)
class Hole:
    """A stretch of a word, in characters from its start, that the syntax tree reports as an expansion."""

    start: int
    end: int
    kind: str  # the node's type


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of a word: `lit` text, a `var` by name (`alt`: the default in it), or a `hole` of that kind."""

    kind: str
    text: str
    quoted: bool
    alt: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """A word as written and its pieces; `odd` if the two readings of it differ."""

    raw: str
    pieces: tuple[Piece, ...]
    odd: bool = False

    @property
    def holes(self) -> frozenset[str]:
        """The kinds of expansion in it other than plain variables."""
        return frozenset(p.text for p in self.pieces if p.kind == "hole")

    @property
    def variables(self) -> frozenset[str]:
        """The variables it names."""
        plain = {p.text for p in self.pieces if p.kind == "var"}
        return frozenset(plain | {m for p in self.pieces if p.alt for m in _NAME_IN[p.kind].findall(p.alt)})

    @property
    def static(self) -> bool:
        """Nothing in it depends on anything but the text (globs and the tilde may)."""
        return not self.odd and all(p.kind == "lit" for p in self.pieces)

    @property
    def plain(self) -> bool:
        """Written without any quoting or escape."""
        return self.static and not re.search(r"[\\'\"$`]", self.raw)


@dataclass(frozen=True, slots=True)
class Form:
    """One text a word can become; `text` holds NUL where it is unknown, `glob` if file names replace it.

    `alone`: it is one of these names and no more, out of a loop's variable.  `handed`: it comes from the input of
    `xargs` and its kind.
    """

    text: str
    glob: bool = False
    sure: bool = True
    alone: bool = False
    handed: bool = False

    @property
    def shortest(self) -> str:
        """The text if everything unknown is empty."""
        return self.text.replace(UNKNOWN, "")


def secret_name(name: str) -> bool:
    """Whether a variable of this name usually holds a key or a password."""
    return bool(_SECRET.search(name))


def decode(raw: str, holes: Sequence[Hole] = ()) -> Word:
    """Read one word as the shell does: quoting, escapes, variables; `holes` are skipped as they are."""
    spend(3 + len(raw) // 50)
    return _Reader(raw, {h.start: h for h in holes}).read()


class _Reader:
    def __init__(self, raw: str, holes: Mapping[int, Hole]) -> None:
        self.raw, self.holes = raw, holes
        self.starts = sorted(holes)
        self.pieces: list[Piece] = []
        self.odd = False
        self.at = 0
        self.double = False

    def add(self, kind: str, text: str, quoted: bool, alt: str = "") -> None:
        self.pieces.append(Piece(kind, text, quoted, alt))

    def read(self) -> Word:
        while self.at < len(self.raw):
            hole = self.holes.get(self.at)
            if hole:
                self.hole(hole)
            elif self.raw[self.at] == "$":
                self.dollar()
            elif self.raw[self.at] == "\\":
                self.escape()
            else:
                self.character()
        spend(2 * len(self.pieces))
        return Word(self.raw, tuple(self.merged()), self.odd or self.double)

    def merged(self) -> Iterator[Piece]:
        for (kind, quoted), group in groupby(self.pieces, key=lambda p: (p.kind, p.quoted)):
            if kind == "lit":
                yield Piece("lit", "".join(p.text for p in group), quoted)
            else:
                yield from group

    def hole(self, hole: Hole) -> None:
        text = self.raw[hole.start : hole.end]
        self.at = hole.end
        match = _EXPANSION.fullmatch(text) if hole.kind == "expansion" else None
        if match and not re.search(r"`|\$(?![A-Za-z_{])|\$\{[^}]*[^\w}]|\(", match[4] or ""):
            self.add("var", match[1], self.double and match[2] != "[@]", match[4] or "")
        else:
            self.odd = self.odd or (hole.kind == "expansion" and "`" in text)
            self.add("hole", hole.kind, self.double, text)

    def dollar(self) -> None:
        follows = self.raw[self.at + 1 : self.at + 2]
        name = _NAME.match(self.raw, self.at + 1)
        if follows == "'" and not self.double:
            self.ansi()
        elif follows == '"' and not self.double:
            self.at += 1
        elif name:
            self.add("var", name[0], self.double and name[0] != "@")
            self.at += 1 + len(name[0])
        elif follows in ("(", "{", "["):
            self.unknown()
        else:
            self.add("lit", "$", True)
            self.at += 1

    def unknown(self) -> None:
        self.odd = True
        self.add("hole", "unknown", self.double, self.raw[self.at :])
        self.at = len(self.raw)

    def ansi(self) -> None:
        end, texts = self.at + 2, list[str]()
        while end < len(self.raw) and self.raw[end] != "'":
            if self.raw[end] != "\\":
                texts.append(self.raw[end])
                end += 1
                continue
            code = _ANSI_CODE.match(self.raw, end + 1)
            if code:
                number = int(code[1] or code[2] or code[3], 16) if code.lastindex != 4 else int(code[4], 8)
                texts.append(chr(number) if 0 < number < 0x110000 else UNKNOWN)
                end = code.end()
            else:
                follows = self.raw[end + 1 : end + 2]
                self.odd = self.odd or follows == "c"
                texts.append(_ANSI.get(follows, follows))
                end += 2
        self.odd = self.odd or end >= len(self.raw)
        spend(len(texts) // 2)
        self.add("lit", "".join(texts), True)
        self.at = end + 1

    def escape(self) -> None:
        follows = self.raw[self.at + 1 : self.at + 2]
        self.at += 2
        if not follows:
            self.odd = True
        elif follows != "\n":
            kept = self.double and follows not in '$`"\\'
            self.add("lit", ("\\" if kept else "") + follows, True)

    def character(self) -> None:
        char = self.raw[self.at]
        if char == '"':
            self.double = not self.double
            self.add("lit", "", True)
        elif char == "'" and not self.double:
            end = self.raw.find("'", self.at + 1)
            self.odd = self.odd or end < 0
            end = end if end >= 0 else len(self.raw)
            self.add("lit", self.raw[self.at + 1 : end], True)
            self.at = end
        elif char == "`":
            self.unknown()
            return
        else:
            run = (_RUN_DOUBLE if self.double else _RUN).match(self.raw, self.at, self.stop())
            self.odd = self.odd or (not self.double and not run)
            self.add("lit", run[0] if run else char, self.double)
            self.at = run.end() if run else self.at + 1
            return
        self.at += 1

    def stop(self) -> int:
        place = bisect_right(self.starts, self.at)
        return self.starts[place] if place < len(self.starts) else len(self.raw)


def forms(word: Word, values: Mapping[str, frozenset[str]], home: str) -> list[Form]:
    """Every text the word can become, in order: braces, tilde, the known `values` of variables, splitting.

    An unknown variable leaves a NUL; a known one gives a form per value.  Globs stay as they are, with a mark; the
    glob characters of quoted text are escaped by a bracket, so a form is always a valid pattern.
    """
    out: list[Form] = []
    spend(1 + len(word.raw) // 100)
    for units in _braces(tuple(_units(word))):
        pieces = _tilde(units, home)
        for pick in product(*(_texts(p, values) for p in pieces)):
            spend(1 + len(pick))
            found = _split(pick, word.odd)
            out += (
                [replace(found[0], glob=True, alone=not found[0].glob), *found[1:]]
                if found and _led(pieces, pick)
                else found
            )
            if len(out) > _LIMIT:
                return [*out[:_LIMIT], Form(UNKNOWN, True, False)]
    return out


def _led(pieces: Sequence[Piece], pick: Sequence[tuple[str, bool, bool]]) -> bool:
    """Whether the text begins with a wildcard out of a variable: a loop puts file names there, quotes or not."""
    return next((p.kind == "var" and t[0] in "*?[" for p, (t, _, _) in zip(pieces, pick, strict=True) if t), False)


def _units(word: Word) -> Iterator[Piece]:
    for piece in word.pieces:
        if piece.kind == "lit" and not piece.quoted and re.search(r"[{~]", piece.text):
            yield from (Piece("lit", c, False) for c in piece.text)
        else:
            yield piece


def _braces(units: tuple[Piece, ...], depth: int = 0) -> list[tuple[Piece, ...]]:
    """The word once for each choice its braces leave; past `_DEEP` braces in and behind one another, unknown."""
    spend(1 + len(units))
    for cuts in sorted(_closed(units)):
        inner = [units[a + 1 : b] for a, b in pairwise(cuts)]
        inner = inner[: _LIMIT + 1] if len(inner) > 1 else _sequence(inner[0])
        if inner and depth == _DEEP:
            return [(Piece("hole", "braces", False),)]
        if inner:
            tails = _braces(units[cuts[-1] + 1 :], depth + 1)
            heads = [units[: cuts[0]] + h for part in inner for h in _braces(part, depth + 1)]
            made = min(len(heads) * len(tails), _LIMIT + 1)
            spend(made * (2 + len(units) // 8))
            return [h + t for h in heads for t in tails][: _LIMIT + 1]
    return [units]


def _closed(units: Sequence[Piece]) -> list[list[int]]:
    """For each brace that is closed: where it opens, its own commas, and where it closes."""
    open_: list[list[int]] = []
    closed: list[list[int]] = []
    for at, unit in enumerate(units):
        if _bare(unit, "{"):
            open_.append([at])
        elif open_ and (_bare(unit, ",") or _bare(unit, "}")):
            open_[-1].append(at)
            if _bare(unit, "}"):
                closed.append(open_.pop())
    return closed


def _bare(unit: Piece, char: str) -> bool:
    return unit.kind == "lit" and not unit.quoted and unit.text == char


def _sequence(units: tuple[Piece, ...]) -> list[tuple[Piece, ...]]:
    if len(units) > 50:
        return []
    text = "".join(u.text if u.kind == "lit" else UNKNOWN for u in units)
    match = re.fullmatch(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.-?\d+)?", text)
    if not match:
        return []
    first, last = match[1], match[2]
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        low, high = sorted((int(first), int(last)))
        return [(Piece("lit", str(n), False),) for n in range(low, min(high, low + _LIMIT) + 1)]
    low, high = sorted((ord(first[0]), ord(last[0])))
    return [(Piece("lit", chr(n), False),) for n in range(low, high + 1)]


def _tilde(units: tuple[Piece, ...], home: str) -> tuple[Piece, ...]:
    start = max((i + 1 for i, u in enumerate(units) if _bare(u, "=") or _bare(u, ":")), default=0)
    for at in {0, start}:
        if at < len(units) and _bare(units[at], "~"):
            follows = units[at + 1] if at + 1 < len(units) else None
            if follows is None or _bare(follows, "/"):
                return (*units[:at], Piece("lit", home, True), *units[at + 1 :])
            if _bare(follows, "+"):
                return (*units[:at], Piece("lit", ".", True), *units[at + 2 :])
            return (*units[:at], Piece("lit", "/home/", True), *units[at + 1 :])
    return units


def _texts(piece: Piece, values: Mapping[str, frozenset[str]]) -> list[tuple[str, bool, bool]]:
    """(text, may hold active globs and blanks, known) for each value of a piece."""
    if piece.kind == "lit":
        return [(piece.text, not piece.quoted, True)]
    if piece.kind == "hole":
        told = _told(piece, values)
        return [(t, not piece.quoted, False) for t in ([UNKNOWN] if told is None else told)]
    known = values.get(piece.text)
    if known is None:
        texts = [(UNKNOWN, not piece.quoted, False)]
    else:
        spend(len(known) // 4)
        texts = [(v, not piece.quoted, UNKNOWN not in v) for v in sorted(known)]
    return texts + [(t, not piece.quoted, False) for t in (_within(piece.alt, values) if piece.alt else [])]


def _told(piece: Piece, values: Mapping[str, frozenset[str]]) -> list[str] | None:
    """What an expansion gives if the line tells; a substitution stays a command that runs."""

    def expand(raw: str) -> list[str]:
        whole = re.fullmatch(r"\"?(\$\(.*\))\"?", raw, re.S)
        if whole and len(raw) < len(piece.alt):
            told = printed(whole[1], expand, values)
            return [UNKNOWN] if told is None else told
        return _within(raw, values)

    if piece.text in ("command_substitution", "unknown") and re.fullmatch(r"\$\(.*\)|`[^`]*`", piece.alt, re.S):
        return printed(piece.alt, expand, values)
    return altered(piece.alt, expand, values) if piece.text == "expansion" else None


def _within(raw: str, values: Mapping[str, frozenset[str]]) -> list[str]:
    """The texts of a word inside an expansion."""
    if raw.isspace():
        return [raw]
    texts = [f.text for f in forms(decode(raw), values, next(iter(values.get("HOME", ())), "~"))]
    return [" ".join(texts)] if " " in raw and "'" not in raw and '"' not in raw else texts


def _split(pick: tuple[tuple[str, bool, bool], ...], odd: bool) -> list[Form]:
    sure = not odd and all(known for _, _, known in pick)
    bare = "".join(text if active else "\x01" for text, active, _ in pick)
    escapes = bool(re.search(r"[*?\[]", bare))
    spend(sum(len(text) for text, _, _ in pick) // 100)
    fields: list[list[str]] = [[]]
    for text, active, _ in pick:
        if active and (" " in text or "\n" in text or "\t" in text):
            first, *rest = re.split(r"[ \t\n]+", text)
            fields[-1].append(first)
            fields.extend([part] for part in rest)
            sure = False
        else:
            fields[-1].append(text if active or not escapes else re.sub(r"([*?[])", r"[\1]", text))
    opens = bare.find("[")
    glob = "*" in bare or "?" in bare or (opens >= 0 and bare.find("]", opens) >= 0)
    texts = ["".join(parts) for parts in fields]
    return [Form(text, glob, sure) for text in texts if text or len(texts) == 1]
