"""A whole line before it is judged: which folder each command may stand in, which values variables may have, every
command seen through its wrappers, and what only the line as a whole shows (a download that is run, a secret that is sent).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import dropwhile

from hypercode.safety.command_breakers import View
from hypercode.safety.command_folded import folded
from hypercode.safety.command_parse import parse
from hypercode.safety.command_paths import resolve
from hypercode.safety.command_script import Script, Simple
from hypercode.safety.command_told import given_here, rows
from hypercode.safety.command_unwrap import (
    MAKES,
    SHELLS,
    base,
    interprets,
    literals,
    recipes,
    runs_any_tail,
    scripts,
    substituted,
    with_input,
)
from hypercode.safety.command_values import Given, positional
from hypercode.safety.command_words import UNKNOWN, Form, forms
from hypercode.safety.command_work import spend

__all__ = ["INPUT_RUNNERS", "LANGUAGES", "Item", "Line"]

_NEST = 6  # scripts inside scripts that are looked into
_MOST_VIEWS = 300  # programs that one command may start one through the other; looking at each costs its whole length
LANGUAGES = re.compile(r"(?:python|pypy|perl|ruby|node|nodejs|php|lua|deno|bun|osascript|tclsh)[\d.]*")
INPUT_RUNNERS = {"xargs", "gxargs", "parallel"}
_STARTS = re.compile(
    r"PROMPT_COMMAND|PS[0-4]|BASH_ENV|ENV|(?:MAN|SYSTEMD_)?(?:PAGER|EDITOR)|VISUAL|BROWSER|LESS(?:OPEN|CLOSE)|GIT_\w+|\w+_(?:COMMAND|ASKPASS)"
)
"""Variables whose text is run as a command sooner or later."""
_MOST_FOLDERS = 32  # folders the shell may stand in; beyond that it may stand anywhere
_LONG_NAME = 1000  # characters of a pattern for a program's name, beyond which it may name any
_LOOP = re.compile(r"\A(?>.*?\b(?:for|while|until|select)\b).*\bdone\b", re.DOTALL)
_SHELL_OUT = re.compile(r"!\s*([^\n\"']+)|(?:^|[;\d$/}\n])[^\S\n]*e\s+([^\n\"']+)")  # of editors, and of sed
_GUESSES = ("rm", "dd", "mv", "chmod")
_DATABASES = {"psql", "mysql", "mariadb", "sqlite3", "redis-cli", "mongo", "mongosh"}
_STREAMS = {"sed", "gsed"}
_SED_RUNS = re.compile(r"s([^\w\s\\])((?>\\.|(?!\1)[^\\])*+)\1((?>\\.|(?!\1)[^\\])*+)\1[gpiImM\d]*e", re.S)  # s/…/…/e
_SETS = re.compile(r"([A-Za-z_]\w*)=(.*)", re.S)
_MOST_LITERALS, _MOST_CHOICES = 100, 8
_FED = {"source", ".", "parallel", "at", "batch", "crontab", "newgrp", "ssh", "su", "sg", "script"}
"""Other programs that read commands from their input."""
_EVALUATORS = {
    "test",
    "[",
    "[[",
    "printf",
    "unset",
    "read",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "let",
    "mapfile",
    "wait",
}
"""Commands of the shell that look into the subscripts of names they are given."""


@dataclass(frozen=True, slots=True)
class Item:
    """A simple command with the folders the shell may stand in and the values variables may have."""

    simple: Simple
    folders: frozenset[str]
    values: dict[str, frozenset[str]] = field(default_factory=dict)


class Line:
    """One shell line, or a script found inside one (`depth` counts how deep)."""

    def __init__(
        self,
        command: str,
        workspace: str,
        home: str,
        start: frozenset[str] | None = None,
        depth: int = 0,
        above: dict[str, frozenset[str]] | None = None,
    ) -> None:
        self.command, self.workspace, self.home, self.depth = command, workspace, home, depth
        self.start = start or frozenset({workspace})
        self.script: Script = parse(command)
        self.given = Given(self.script, command, self.start, home, above or {})
        self.values = self.given.values
        self.items = self._items()
        self._seen: dict[int, list[View]] = {}
        self.beyond = False  # whether there is more in it than is looked at

    def _items(self) -> list[Item]:
        """Follow `cd` through the line: after `&&` it has happened, after anything else it may have."""
        start = self.start
        if _LOOP.search(self.command):  # a second round begins where the first one ended
            start = start.union(*(here | other for here, other in self._walk(start, [])))
        items: list[Item] = []
        deque(self._walk(start, items), 0)
        return items

    def _walk(self, start: frozenset[str], items: list[Item]) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
        states: dict[tuple[int, ...], tuple[frozenset[str], frozenset[str]]] = {(): (start, frozenset())}
        for simple in self.script.commands:
            scope = simple.scope
            known = next(scope[:n] for n in range(len(scope), -1, -1) if scope[:n] in states)
            here, other = states[known]
            spend(2 + (len(here) + len(other) + len(self.values)) // 8)
            if not simple.after_and:
                here, other = here | other, frozenset[str]()
            if len(here) > _MOST_FOLDERS:
                here = frozenset({"/", self.home, *self.start})
            items.append(Item(simple, here, {**self.values, "PWD": here}))
            states[scope] = self._moved(simple, here, other)
            yield states[scope]

    def _moved(
        self, simple: Simple, here: frozenset[str], other: frozenset[str]
    ) -> tuple[frozenset[str], frozenset[str]]:
        words = [f for w in simple.words for f in forms(w, {**self.values, "PWD": here}, self.home)]
        words = list(dropwhile(lambda w: w.text in ("time", "-p", "--", "!"), words))
        names = [w.text for w in words[:1]]
        if names not in (["cd"], ["pushd"], ["popd"], ["chdir"]):
            if names and base(names[0]) in ("builtin", "command") and any(w.text == "cd" for w in words):
                return frozenset({"/", self.home, *here}), other
            return here, other
        targets = [w for w in words[1:] if w.text not in ("-P", "-L", "--")]
        unknown = any(
            not t.sure or (t.glob and not t.text.endswith("*/")) or t.text.startswith(("-", "+", ".*")) for t in targets
        ) or names == ["popd"]
        if unknown:
            return frozenset({"/", self.home, *here}), other
        there = frozenset(p for t in targets for p in resolve(t.text, here)) if targets else frozenset({self.home})
        return there, other | here

    def views(self, item: Item) -> list[View]:
        """The command and everything it would run through wrappers, nested scripts and one-liners."""
        if id(item) not in self._seen:
            self._seen[id(item)] = self._views(item)
        return self._seen[id(item)]

    def _views(self, item: Item) -> list[View]:
        flat = [f for w in item.simple.words for f in forms(w, item.values, self.home)]
        first = len(forms(item.simple.words[0], item.values, self.home)) if item.simple.words else 0
        views: list[View] = []
        texts: dict[tuple[str, tuple[str, ...]], None] = {}
        seen: set[tuple[str, ...]] = set()
        pending: deque[tuple[list[Form], bool]] = deque()
        self._await(pending, ((flat[i:], False) for i in range(first)))
        if item.simple.recovered:  # where a command begins in it nobody knows
            self._await(pending, ((flat[i:], True) for i in range(first, len(flat))))
        self._await(pending, ((words, False) for words in self._choices(item)))
        pending += [([Form(n), *flat[1:]], False) for n in _GUESSES if flat and _may_be(flat[0], n)]
        texts |= {} if flat else {(t, ()): None for t in self._started(item)}
        while pending and len(views) < _MOST_VIEWS:
            words, covered = pending.popleft()
            spend(2 + len(words) // 8)
            key = tuple(w.text for w in words)
            if not words or key in seen:
                continue
            seen.add(key)
            view = self._view(item, words, tail=bool(views) and not words[-1].handed)
            views.append(view)
            texts |= {(t, _behind(view, t)): None for t in self._texts(item, view, covered)}
            self._await(pending, ((w, False) for w in self.given.stands_for(words)))
            if covered and runs_any_tail(words):
                continue  # every tail of it is on the list already
            handed = self._handed(item) if view.name in INPUT_RUNNERS else []
            again = runs_any_tail(words) and not handed
            self._await(pending, ((t, again) for t in with_input(words, handed)))
        self.beyond |= bool(pending) or (bool(texts) and self.depth >= _NEST)
        for text, behind in texts if self.depth < _NEST else ():
            values = {**item.values, **self._set_before(item), **positional(behind)}
            inner = Line(text, self.workspace, self.home, item.folders, self.depth + 1, values)
            views += [replace(v, tail=False) for i in inner.items for v in inner.views(i)]
            self.beyond |= inner.beyond
        return views

    def _set_before(self, item: Item) -> dict[str, frozenset[str]]:
        """What `env`, and the like, sets for the shell it starts; and its words, if they may be handed to a script."""
        words = [f.text for w in item.simple.words for f in forms(w, item.values, self.home)]
        spend(len(words))
        out = {m[1]: frozenset({m[2]}) for w in words if (m := _SETS.match(w))}
        given = (
            frozenset(w for w in words[1:] if not w.startswith("-")) if item.simple.stdin or self.given.written else ()
        )
        return {**out, **(dict.fromkeys("123456789", frozenset(given)) if given and len(given) < 20 else {})}

    def _choices(self, item: Item) -> Iterator[list[Form]]:
        """The command once for each value of a variable that names the program, or its verb."""
        given = [(n, item.values[n]) for w in item.simple.words[:3] for n in sorted(w.variables) if n in item.values]
        for name, texts in given[:4] if not item.simple.recovered else ():
            for text in sorted(texts)[:_MOST_CHOICES] if len(texts) > 1 else ():
                spend(20 + 2 * len(item.simple.words) + len(item.values) // 8)
                values = {**item.values, name: frozenset({text})}
                yield [f for w in item.simple.words for f in forms(w, values, self.home)]

    def _await(self, pending: deque[tuple[list[Form], bool]], more: Iterator[tuple[list[Form], bool]]) -> None:
        """Put more commands on the list, as many as will be looked at."""
        for words, covered in more:
            if len(pending) > _MOST_VIEWS:
                self.beyond = True
                return
            spend(1 + len(words) // 50)
            pending.append((words, covered))

    def _view(self, item: Item, words: list[Form], tail: bool) -> View:
        spend(1)
        name = base(words[0].shortest).lower()
        extra = [Form(w.raw) for w in item.simple.stdin] if interprets(name) or name in _DATABASES else []
        extra += [f for w in item.simple.stdin for f in forms(w, item.values, self.home)] if extra else []
        if LANGUAGES.fullmatch(name):
            extra += [Form(t) for w in item.simple.words if w.holes for t in given_here(w.raw)]
            extra += [Form(t) for a in [*words[1:], *extra] for t in folded(a.text)]
        if (LANGUAGES.fullmatch(name) or name in _DATABASES) and (
            item.simple.piped or self._runs_written(name, words, item)
        ):
            extra += map(Form, self.given.texts())
        return View(name, (*words[1:], *extra), item.simple, item.folders, self.workspace, self.home, tail=tail)

    def _handed(self, item: Item) -> list[Form]:
        """What `xargs` and its kind may put behind their command."""
        given = [f.text for w in item.simple.stdin for f in forms(w, item.values, self.home)]
        texts = rows([*self.given.said, *given, *self.given.sieved([*self.given.said, *given])])
        spend(len(texts) + len(self.given.found))
        return [*(Form(t, handed=True) for t in texts), *(replace(f, handed=True) for f in self.given.found)]

    def _texts(self, item: Item, view: View, covered: bool) -> Iterator[str]:
        """Shell texts inside one command."""
        yield from scripts([Form(view.name), *view.args], covered)
        yield from self._started(item)
        if view.name in SHELLS or view.name in _FED:
            yield from (w.raw for w in item.simple.stdin)
            yield from (
                decoded for w in item.simple.stdin for f in forms(w, item.values, self.home) if (decoded := f.text)
            )
            if item.simple.piped or any("process_substitution" in w.holes for w in item.simple.words):
                yield from self.given.texts()
        if view.name in SHELLS or view.name in ("eval", "source", "."):
            yield from (t for w in item.simple.words if w.holes for t in given_here(w.raw))
        if view.name in MAKES and (item.simple.piped or item.simple.stdin or self.given.written):
            texts = [
                *self.given.texts(),
                *(f.text for w in item.simple.stdin for f in forms(w, item.values, self.home)),
            ]
            yield from (line for text in texts for line in recipes(text))
        if self._runs_written(
            view.name, [Form(view.simple.words[0].raw if view.simple.words else ""), *view.args], item
        ):
            yield from self.given.texts()
        if view.name in _EVALUATORS:
            yield from (t for a in view.args for t in substituted(a.text))
        if interprets(view.name):
            spend(sum(len(a.text) for a in view.args) // 10 + len(view.args))
            for arg in view.args:
                yield from (t for m in _SHELL_OUT.finditer(arg.text) for t in m.groups() if t)
                found = literals(arg.text) if re.search(r"[\s(\"'`{]", arg.text) else []
                yield from (t for t in found if re.search(r"\S\s+\S", t))
                quoted = [re.sub(r"([^\w./~-])", r"\\\1", t) for t in found[:_MOST_LITERALS] if t]
                yield from (" ".join(quoted[at:]) for at in range(min(len(quoted) - 1, 6)))
            yield from (m[3] for a in view.args if view.name in _STREAMS for m in _SED_RUNS.finditer(a.text[:4000]))

    def _runs_written(self, name: str, words: Sequence[Form], item: Item) -> bool:
        """Whether a command runs a file that the line itself writes."""
        if not self.given.written:
            return False
        spend(len(words) // 4)
        if name in SHELLS or name in ("source", ".") or LANGUAGES.fullmatch(name):
            targets = [r.target.raw for r in item.simple.redirects if r.target and r.op == "<"]
            return any(base(t) in self.given.written for t in [*(w.shortest for w in words[1:]), *targets])
        return "/" in words[0].text and base(words[0].text) in self.given.written

    def _started(self, item: Item) -> list[str]:
        """Texts in variables that are run, or evaluated, sooner or later."""
        out: list[str] = []
        for name, word in item.simple.assigns:
            texts = [f.text for f in forms(word, item.values, self.home)]
            if _STARTS.fullmatch(name):
                out += [*texts, *(self.given.texts() if word.holes else ())]
            elif self.given.evaluates:
                out += [t for text in texts for t in substituted(text)]
        return out


def _behind(view: View, text: str) -> tuple[str, ...]:
    """The words behind a script among the arguments of a shell: its `$0`, `$1` and so on."""
    if view.name not in SHELLS:
        return ()
    at = next((i for i, a in enumerate(view.args) if a.text == text), len(view.args))
    return tuple(a.text for a in view.args[at + 1 : at + 11])


def _may_be(form: Form, name: str) -> bool:
    """Whether a command name that is a pattern, or unknown, can be this program."""
    pattern = base(form.text.replace(UNKNOWN, "*"))
    if len(pattern) > _LONG_NAME:
        return True
    return bool(re.search(r"[*?\[]", pattern)) and fnmatchcase(name, pattern)
