"""What may stay unknown in the words of a reader: text that is only shown or compared, numbers, `<(…)` for a file.

The commands inside an expansion are judged by themselves; here it matters only that their output can be nothing but
text where it stands: not a flag, not the name of a variable, not a pattern for file names beside other text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypercode.safety.command_flags import Reading
from hypercode.safety.command_script import Simple
from hypercode.safety.command_table import GIT, TABLE
from hypercode.safety.command_words import Piece, Word, decode, secret_name
from hypercode.safety.command_work import spend

__all__ = ["HARMLESS", "construct", "patterns", "shown", "splits", "subjects"]

_TEXT = {"echo", "printf", "basename", "dirname"}
"""Commands that show their arguments; a flag among them does nothing, but for the first of `printf`."""
HARMLESS = {
    "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "PATH", "HOSTNAME", "UID", "RANDOM", "SECONDS",
    "LINENO", "?", "#", "$", "!",
}  # fmt: skip
"""Variables that may be shown; the first two have known values."""
_FILES = {"diff", "cat", "head", "tail", "wc", "grep", "comm", "cmp", "join", "paste", "nl", "uniq", "cut", "sort"}
_NUMBERS = {"?", "#", "$"}
_SUM = re.compile(r"\$\(\([\d\s+*/%()<>=&|^~-]*\)\)")
_PART = r"(?:##?|%%?|//?|\^\^?|,,?)[^$`\\(){}\"']*|:[ ]?\d+(?::\d+)?"
_CHANGED = re.compile(rf"\$\{{(\w+)(?:{_PART})\}}|\$\{{#(\w+)\}}")
_OUTPUT = r"\$\((?!\()(?:(?!<<)[^()\"'`\\#$\n]|'[^'\n]*'|\$\w+)*+\)"
_HOLE = re.compile(rf"\"{_OUTPUT}\"|\"\$\{{(\w+)(?::?[-+][\w./ -]*|{_PART})?\}}\"|\"\$\{{#\w+\}}\"")
_TOKEN = re.compile(r"(?:\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\s'\"\\])+", re.S)
_LANGUAGES = {"find", "fd", "fdfind", "sed", "test", "["}
_EQUAL = {"=", "==", "!="}
_SIGNS = {*_EQUAL, "=~", "<", ">"}

_SUBJECT = rf"\"?\$\{{?\w+\}}?\"?|[\w./-]+|\"{_OUTPUT}\""
_PATTERN = r"(?:[\w.*?/+-]+|\"[\w. -]*\"|'[\w. -]*')"
_BODY = r"(?:(?!;;|\b(?:case|esac)\b|<<|;&)(?:[^#\\`()'\"]|'[^']*'|\"(?:[^\"`\\$]|\$\w)*\"))*+"
_ITEM = rf"\(?\s*{_PATTERN}(?:\s*\|\s*{_PATTERN})*+\s*\)"
_CASE = re.compile(rf"case\s+({_SUBJECT})\s+in\s+(?:{_ITEM}{_BODY};;\s*)*+(?:{_ITEM}{_BODY})?esac")
_COUNTS = re.compile(r"\(\([\d\s+*/%()<>=!&|^~-]*\)\)")


def shown(simple: Simple, words: Sequence[Word], loops: Mapping[str, Sequence[Word]]) -> list[Word]:
    """The words with a text in the place of whatever may stay unknown in them.

    `loops` are the variables that loops fill, with the words they are filled with.
    """
    name = words[0].raw
    if name in ("[", "[[") and len(words) == 2 and words[1].odd and not words[1].raw:
        words = _cut_again(simple.text, name) or words
    spend(len(words))
    free = _free(name, words)
    return [words[0], *(_filled(w, name, loops, at in free) for at, w in enumerate(words[1:], 1))]


def _free(name: str, words: Sequence[Word]) -> set[int]:
    """The places of the words that may become anything at all."""
    if name == "printf":  # a first word may be its `-v`, whose value is evaluated; the format may set a variable
        return set(range(3 if len(words) > 1 and words[1].raw == "--" else 2, len(words)))
    if name in _TEXT:
        return set(range(1, len(words)))
    if name == "[[":
        return {at for at in range(1, len(words) - 1) if _compared(words, at)}
    if name in ("test", "["):
        return _tested([w.raw for w in (words[1:-1] if name == "[" else words[1:])])
    return set()


def _compared(words: Sequence[Word], at: int) -> bool:
    """Whether a word of `[[` is only text: alone, compared with another text, or asked for its length."""
    before, after = _unquoted(words[at - 1]), _unquoted(words[at + 1])
    ends = {"]]", "&&", "||", ")"}
    return (before in _SIGNS | {"-n", "-z"} and after in ends) or (
        before in {"[[", "!", "&&", "||", "("} and after in _SIGNS | ends
    )


def _unquoted(word: Word) -> str:
    """The text of a word that may be an operator, which are kept in quotes."""
    return word.raw[1:-1] if word.raw[:1] == "'" else word.raw


def _tested(texts: Sequence[str]) -> set[int]:
    """For `[` and `test`, whose number of arguments decides first: the places that are never taken for an operator."""
    first = 1 if texts[:1] == ["!"] else 0
    rest = texts[first:]
    if len(rest) == 1:
        places = {0}
    elif len(rest) == 2 and rest[0] in ("-n", "-z"):
        places = {1}
    elif len(rest) == 3 and rest[1] in _EQUAL:
        places = {0, 2}
    else:
        return set()
    others = [t for at, t in enumerate(rest) if at not in places or "$" not in t]
    return set() if any(re.search(r"[*?\[{~]", t) for t in others) else {1 + first + at for at in places}


def _filled(word: Word, name: str, loops: Mapping[str, Sequence[Word]], free: bool) -> Word:
    pattern = any(p.kind == "lit" and not p.quoted and re.search(r"[*?\[]", p.text) for p in word.pieces)
    single = name not in ("test", "[") or all(p.quoted for p in word.pieces if p.kind != "lit")
    pieces = tuple(
        Piece("lit", "x", True) if free and single and not pattern and _text(p, name, loops) else _known(p, name)
        for p in word.pieces
    )
    return replace(word, pieces=pieces)


def _text(piece: Piece, name: str, loops: Mapping[str, Sequence[Word]]) -> bool:
    """Whether what an expansion gives is no more than text, and none that should stay hidden."""
    if piece.kind == "hole":
        changed = _CHANGED.fullmatch(piece.alt) if piece.text == "expansion" else None
        told = changed is not None and _may_show(changed[1] or changed[2], loops)
        return told or piece.text == "command_substitution"
    if piece.kind == "lit" or piece.alt:
        return False
    if name in _TEXT:
        return piece.text not in ("HOME", "PWD") and _may_show(piece.text, loops)
    return not secret_name(piece.text)


def _may_show(name: str, loops: Mapping[str, Sequence[Word]], deep: int = 4) -> bool:
    """Whether a variable holds nothing but what the line itself prints, or is one of those that may be shown."""
    if name not in loops or deep == 0:
        return name in HARMLESS
    pieces = [p for w in loops[name] for p in w.pieces]
    spend(len(pieces))
    return not secret_name(name) and all(
        p.kind == "lit"
        or (p.kind == "hole" and p.text == "command_substitution")
        or (p.kind == "var" and not p.alt and p.text != name and _may_show(p.text, loops, deep - 1))
        for p in pieces
    )


def _known(piece: Piece, name: str) -> Piece:
    """A number in the place of one that nobody knows, and a file in the place of `<(…)`."""
    if piece.kind == "hole" and piece.text == "arithmetic_expansion" and _SUM.fullmatch(piece.alt):
        return Piece("lit", "1", True)
    if piece.kind == "var" and piece.text in _NUMBERS and not piece.alt and name in ("test", "[", "[["):
        return Piece("lit", "1", True)
    file = piece.kind == "hole" and piece.text == "process_substitution" and piece.alt.startswith("<(")
    return Piece("lit", "x", True) if file and name in _FILES else piece


def _cut_again(text: str, name: str) -> list[Word]:
    """The words of a test that holds expansions, if each of those is one quoted word of a simple kind; else none."""
    spend(len(text) // 20)

    def replaced(hole: re.Match[str]) -> str:
        return hole[0] if hole[1] and secret_name(hole[1]) else '"$_"'

    if not text.startswith(f"{name} "):
        return []
    text = _HOLE.sub(replaced, text)
    if re.search(r"[`<>]|\$[({\[]", text) or not text.endswith(" ]" if name == "[" else " ]]"):
        return []
    return [decode(f"'{w}'") if w in ("&&", "||", "(", ")") else decode(w) for w in _TOKEN.findall(text)]


def patterns(words: Sequence[Word], values: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    """The variables in the words that may hold file names, with the patterns those come from."""
    names = {v for w in words for v in w.variables} & set(values)
    held = {v: sorted(t for t in values[v] if re.search(r"[*?\[]", t)) for v in sorted(names)}
    return {v: texts for v, texts in held.items() if texts}


def splits(words: Sequence[Word], held: Mapping[str, Sequence[str]]) -> bool:
    """Whether a file name out of an unquoted variable may fall apart into words that are flags, of a command that minds.

    A name such as `a -delete` is one word for the loop and two for the command.
    """
    name = words[0].raw
    spec = GIT.get("status") if name == "git" else TABLE.get(name)
    first = name == "printf"
    if name not in _LANGUAGES and not first and not (spec and (spec.risky or spec.planted)):
        return False
    for word in words[1:2] if first else words[1:]:
        if word.raw == "--" and name not in _LANGUAGES:
            return False
        if any(p.kind == "var" and not p.quoted and p.text in held for p in word.pieces):
            return True
    return False


def construct(simple: Simple, known: Sequence[str]) -> Reading | None:
    """A `case` written plainly, with what it looks at, and sums of plain numbers; the commands inside are judged apart.

    `known` are the texts that the plain ones among the line's `case` look at.
    """
    spend(len(simple.text) // 10)
    if simple.construct == "case" and subjects([simple]):
        return Reading("read-only: case", here=False)
    if simple.construct == "arithmetic" and _COUNTS.fullmatch(simple.text):
        return Reading("read-only: a sum", here=False)
    if simple.construct == "an expansion outside a command" and simple.text in known:
        return Reading("read-only: case", here=False)
    return None


def subjects(simples: Sequence[Simple]) -> list[str]:
    """What every plainly written `case` of a line looks at, those left out that look at a secret variable."""
    matches = (_CASE.fullmatch(s.text) for s in simples if s.construct == "case" and not s.recovered)
    return [m[1] for m in matches if m and not any(map(secret_name, re.findall(r"\$\{?(\w+)", m[1])))]
