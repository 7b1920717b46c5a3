"""What a line gives to its variables, to new names for programs, and to the input of its own commands.

Generous: every value that a variable may have at any time counts, in whatever order; a NUL stands for what cannot be
known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice, pairwise, takewhile

from hypercode.safety.command_breakers import narrows
from hypercode.safety.command_script import Script, Simple
from hypercode.safety.command_told import filtered, rows, said
from hypercode.safety.command_unwrap import base
from hypercode.safety.command_words import UNKNOWN, Form, Word, decode, forms
from hypercode.safety.command_work import LONGEST, spend

__all__ = ["Given", "names_program", "positional"]

_MOST = 64  # values of one variable, and texts of one kind, that are looked at
_DECLARERS = {"export", "declare", "local", "readonly", "typeset", "alias"}
_LONGEST = 2000  # characters of words in a row
_TEXTS = {"echo", "printf", "print", "yes"}
_READERS = {"read", "mapfile", "readarray"}
_COPIERS = {"cp", "ln", "mv", "install", "link"}
_TAKERS = {"tee", "dd", "sponge", "touch", *_COPIERS}
_SIEVES = re.compile(r"[ef]?grep|rg|ag|head|tail|awk|sed|fzf|comm")
_FILTERS = {"rev", "base64", "base32", "xxd", "tr"}
_LISTS_ALL = {"-z", "-c", "--cached"}
_ROW = re.compile(r"([A-Za-z_]\w*)\+?=\((.{0,2000})\)", re.S)
_ELEMENT = re.compile(r"(?:\[[^]]*\]=)?((?:'[^']*'|\"[^\"]*\"|[^\s'\"])+)")
_EVALUATED = re.compile(r"(?:^|[;&\s])([A-Za-z_]\w*)=([^\s;&|]*)")
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*):?=")
_EVALUATES = re.compile(r"@P\}|\(\(|\$\[|\[\[|\s-(?:eq|ne|lt|le|gt|ge|v)\s|\b(?:let|declare|typeset|test|unset)\b")
_ALIAS = re.compile(r"alias\.([\w-]+)")

Values = Mapping[str, frozenset[str]]


class Given:
    """What the commands of a script hand to one another; `start` are the folders it may begin in."""

    def __init__(self, script: Script, command: str, start: frozenset[str], home: str, above: Values) -> None:
        self.script, self.command, self.start, self.home = script, command, start, home
        self.values: dict[str, frozenset[str]] = {**above, "HOME": frozenset({home}), "PWD": start}
        spend(len(script.commands) // 8)
        self.values.setdefault("OLDPWD", start | {UNKNOWN})
        self.values.setdefault("SHELL", frozenset({"/bin/sh"}))
        self.values.setdefault("BASH", frozenset({"/bin/bash"}))
        self._assign()
        self.said = list(islice(self._said(), _MOST * 4))
        self.fed = list(islice(self._fed(), _MOST))
        self.found = list(islice(self._found(), _MOST))
        self._read()
        self.names = self._names()
        self.written = self._written()
        self.evaluates = bool(_EVALUATES.search(command))

    def _words(self, simple: Simple) -> list[Form]:
        return [f for w in simple.words for f in forms(w, self.values, self.home)]

    def _assign(self) -> None:
        given: dict[str, list[Word]] = {name: list(words) for name, words in self.script.loops.items()}
        unsure: set[str] = set()
        for name, word in self._assigned():
            given.setdefault(name, []).append(word)
        for name, word in self._declared():
            unsure.add(name)
            given.setdefault(name, []).append(word)
        for name, word in self._positional():
            given.setdefault(name, [decode("$_")]).append(word)
        rows_ = list(islice(self._rows(), _MOST))
        for _ in range(3 if given else 0):
            for name, words in given.items():
                found = {f.text for w in words for f in forms(w, self.values, self.home)}
                texts = {t if len(t) <= LONGEST else UNKNOWN for t in found}
                open_ = len(texts) > _MOST or bool(self.script.problems) or name in unsure
                self.values[name] = frozenset(sorted(texts)[:_MOST] + ([UNKNOWN] if open_ else []))
            for name, words in rows_:
                text = " ".join(f.shortest for w in words for f in forms(w, self.values, self.home)[:1])
                self.values[name] |= {text} if len(text) <= _LONGEST else set()
        if "IFS" in given:  # what it holds parts the values, as blanks do
            apart = str.maketrans({c: " " for v in self.values["IFS"] for c in v if c != UNKNOWN})
            for name in given:
                self.values[name] |= {v.translate(apart) for v in self.values[name]}

    def _assigned(self) -> Iterator[tuple[str, Word]]:
        for simple in self.script.commands:
            for name, word in simple.assigns:
                yield name, word
                if word.holes or word.variables:  # here what an expansion gives does not fall apart
                    yield name, replace(word, pieces=tuple(replace(p, quoted=True) for p in word.pieces))
            if simple.words and simple.words[0].raw == "eval":
                texts = [f.text for w in simple.words[1:] for f in forms(w, self.values, self.home)]
                yield from ((m[1], decode(m[2])) for t in texts for m in islice(_EVALUATED.finditer(t), _MOST))

    def _declared(self) -> Iterator[tuple[str, Word]]:
        """Variables set by a command: `export d=…`, `printf -v d …`, `: ${d:=…}`."""
        for simple in self.script.commands:
            first = simple.words[0].raw if simple.words else ""
            spend(len(simple.words) // 4)
            if first in _DECLARERS:
                yield from (pair for w in simple.words[1:] if (pair := _parted(w)))
                for match in (_ROW.match(w.raw) for w in simple.words[1:]):
                    yield from ((match[1], decode(t)) for t in _ELEMENT.findall(match[2])) if match else ()
            for word in simple.words:
                for match in _DEFAULT.finditer(word.raw) if "=" in word.raw and "${" in word.raw else ():
                    yield from ((match[1], decode(p.alt)) for p in word.pieces if p.text == match[1] and p.alt)
            if first == "printf" and len(simple.words) > 3 and simple.words[1].raw == "-v":
                text = said("printf", [f.text for w in simple.words[3:] for f in forms(w, self.values, self.home)])
                yield simple.words[2].raw, decode("'" + text.replace("'", "") + "'")

    def _rows(self) -> Iterator[tuple[str, list[Word]]]:
        """Names that stand for several words in a row: arrays, and all that a function or `set` is given."""
        for simple in self.script.commands:
            names = {name for name, _ in simple.assigns if f"{name}=(" in simple.text or f"{name}+=(" in simple.text}
            spend(5 * len(names) + len(names) * len(simple.text) // 50)
            yield from ((n, [w for s in self.script.commands for m, w in s.assigns if m == n]) for n in sorted(names))
            if simple.words and (simple.words[0].raw in self.script.functions or simple.words[0].raw == "set"):
                words = [w for w in simple.words[1:] if w.raw != "--"]
                yield from ((name, words) for name in ("@", "*") if len(words) > 1)

    def _positional(self) -> Iterator[tuple[str, Word]]:
        """What the line hands to its own functions, and by `set`, as `$1`, `$@` and the like."""
        shifts = any(s.words and s.words[0].raw == "shift" for s in self.script.commands)
        for simple in self.script.commands:
            if simple.words and (simple.words[0].raw in self.script.functions or simple.words[0].raw == "set"):
                spend(3 * len(simple.words))
                first = 2 if len(simple.words) > 1 and simple.words[1].raw == "--" else 1
                for at, word in enumerate(simple.words[first:], 1):
                    places = range(1, min(at, 9) + 1) if shifts else range(at, at + 1) if at < 10 else ()
                    yield from ((name, word) for name in ("@", "*", *map(str, places)))

    def _said(self) -> Iterator[str]:
        """What the line's own echo and printf print, each as a text of its own."""
        for simple in self.script.commands:
            if simple.words and base(simple.words[0].raw) in _TEXTS:
                words = [f.text for f in self._words(simple)]
                spend(sum(map(len, words)) // 20)
                yield said(base(simple.words[0].raw), words[1:])

    def _fed(self) -> Iterator[str]:
        """The texts of here-documents and here-strings."""
        for simple in self.script.commands:
            for word in simple.stdin:
                spend(5 + len(word.raw) // 20)
                yield from dict.fromkeys([word.raw, *(f.text for f in forms(word, self.values, self.home))])

    def _found(self) -> Iterator[Form]:
        """The places from which the line's own `find` or `ls` would hand names to the next command."""
        heads = [base(s.words[0].raw) if s.words else "" for s in self.script.commands]
        sieved = any(_SIEVES.fullmatch(h) for h in heads)
        for simple, head in zip(self.script.commands, heads, strict=True):
            if head in ("find", "gfind"):
                words = self._words(simple)
                roots = list(takewhile(lambda w: not w.text.startswith(("-", "(", "!")), words[1:])) or [Form(".")]
                narrowed = narrows([w.text for w in words])
                yield from (r for r in roots if not narrowed or r.text.rstrip("/") not in (".", "", *self.start))
            elif head in ("ls", "git") and not sieved:
                words = self._words(simple)[1:]
                operands = [w for w in words if not w.text.startswith("-")]
                flags = {w.text for w in words} - {w.text for w in operands}
                if head == "git" and ([w.text for w in operands] != ["ls-files"] or not flags <= _LISTS_ALL):
                    continue
                yield from operands if head == "ls" and operands else [Form("./*", glob=True)]

    def _read(self) -> None:
        """Variables that `read` fills: with what the line says, or anything."""
        readers = [s for s in self.script.commands if s.words and s.words[0].raw in _READERS]
        if not readers:
            return
        texts = [*self.said, *self.fed]
        signs = {c for v in self.values.get("IFS", ()) for c in v} - {UNKNOWN}
        texts += [t.translate(dict.fromkeys(map(ord, signs), " ")) for t in texts] if signs else []
        handed = frozenset({UNKNOWN, *texts[:_MOST], *rows(texts)[:_MOST], *(f.text for f in self.found)})
        names = {w.raw for s in readers for w in s.words[1:] if w.raw.isidentifier()}
        self.values.update(dict.fromkeys(names | {"REPLY"}, handed))

    def _names(self) -> dict[str, list[list[str]]]:
        """New names for programs, by an alias, a copy or a link: the name, and the words it may stand for."""
        out: dict[str, list[list[str]]] = {}
        for simple in self.script.commands:
            head = base(simple.words[0].raw) if simple.words else ""
            if head not in {"alias", "hash", "git", *_COPIERS}:
                continue
            words = [f.text for f in self._words(simple)][1:]
            operands = [w for w in words if not w.startswith("-")]
            pairs: list[tuple[str, list[str]]] = []
            if head == "alias":
                pairs = [(n, text.split()) for n, _, text in (w.partition("=") for w in words)]
            elif head == "git":
                pairs = [
                    (f"git {m[1]}", ["git", "-c", f"{name}={text}", m[1]])
                    for name, text in pairwise(operands)
                    if (m := _ALIAS.fullmatch(name))
                ]
            elif len(operands) == 2:
                old, new = operands if head != "hash" else (operands[0], operands[1])
                pairs = [(base(new), [base(old)])]
            for name, text in pairs:
                if name and text and text[0] != name:
                    out.setdefault(name.lower(), []).append(text)
        return out

    def stands_for(self, words: Sequence[Form]) -> Iterator[list[Form]]:
        """The words of a command with a new name replaced by what it stands for."""
        if not self.names or not words:
            return
        names = [base(words[0].text).lower()]
        names += [f"git {w.text}" for w in words[1:] if names[0] == "git"]
        for at, name in enumerate(names):
            for text in self.names.get(name, ()):
                spend(5 + len(words) // 8)
                yield [*map(Form, text), *words[at + 1 :]]

    def _written(self) -> frozenset[str]:
        """The base names of the files that the line itself writes."""
        out: set[str] = set()
        for simple in self.script.commands:
            targets: Iterable[Word] = [r.target for r in simple.redirects if r.target and ">" in r.op]
            if simple.words and base(simple.words[0].raw) in _TAKERS:
                targets = [*targets, *simple.words[1:]]
            out |= {base(f.shortest.removeprefix("of=")) for w in targets for f in forms(w, self.values, self.home)}
        return frozenset(out - {"", "-", "null"})

    def texts(self) -> list[str]:
        """What a file written in the line may hold, or a pipe in it carry: all at once, for it to be read as a script."""
        spend(sum(len(t) for t in [*self.said, *self.fed]) // 20)
        parts = ["\n".join(self.said), " ".join(self.said), *self.fed]
        return [p for p in dict.fromkeys([*parts, *self.sieved(parts)]) if p.strip()]

    def sieved(self, texts: Sequence[str]) -> list[str]:
        """What the line's own filters, such as `rev`, make of some texts, one behind the other."""
        parts = [t for t in texts if t]
        start = len(parts)
        filters = (s for s in self.script.commands if s.words and base(s.words[0].raw) in _FILTERS)
        for simple in islice(filters, 16):
            spend(10 + 4 * len(parts[:_MOST]))
            name, *args = [f.text for f in self._words(simple)]
            parts += filtered(parts[:_MOST], base(name), args) or []
        return parts[start:]

    def fetched(self, programs: Set[str]) -> set[str]:
        """Variables filled with what one of these programs prints, or with what is read."""
        pairs = [*self._assigned(), *((name, w) for name, words in self.script.loops.items() for w in words)]
        return self._filled_by_read() | {n for n, w in pairs if w.holes and names_program(w, programs)}

    def _filled_by_read(self) -> set[str]:
        readers = [s for s in self.script.commands if s.words and s.words[0].raw in _READERS]
        return {w.raw for s in readers for w in s.words[1:]} | ({"REPLY"} if readers else set())

    def filled(self) -> set[str]:
        """Variables filled with what a command prints or what is read."""
        pairs = [*self._assigned(), *self._declared()]
        pairs += [(name, w) for name, words in self.script.loops.items() for w in words]
        return self._filled_by_read() | {n for n, w in pairs if w.holes or w.odd}


def names_program(word: Word, programs: Set[str]) -> bool:
    """Whether one of these programs is named in the expansions of a word."""
    texts = [p.alt for p in word.pieces if p.kind == "hole"]
    spend(sum(map(len, texts)) // 20)
    return any(not programs.isdisjoint(re.findall(r"[\w.+-]+", t)) for t in texts)


def _parted(word: Word) -> tuple[str, Word] | None:
    """The two sides of `name=value`."""
    match = re.match(r"([A-Za-z_][\w-]*)\+?=", word.raw)
    if not match or not word.pieces or word.pieces[0].kind != "lit":
        return None
    rest = word.pieces[0].text[len(match[0]) :]
    pieces = (replace(word.pieces[0], text=rest), *word.pieces[1:])
    return match[1], Word(word.raw[len(match[0]) :], pieces, word.odd)


def positional(texts: Sequence[str]) -> dict[str, frozenset[str]]:
    """`$0`, `$1`, `$@` and the like of a script, from the words behind it."""
    out = {str(at): frozenset({text}) for at, text in enumerate(texts[:10])}
    if len(texts) > 1:
        out["@"] = out["*"] = frozenset({" ".join(texts[1:])})
    return out
