"""A whole line before it is judged: which folder each command may stand in, which values variables may have, every
command seen through its wrappers, and what only the line as a whole shows (a download that is run, a secret that is sent).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import dropwhile, islice, takewhile

from hypercode.safety.command_breakers import FILTERS, View, places
from hypercode.safety.command_danger import DECODERS, DOWNLOADERS, NETWORK
from hypercode.safety.command_parse import parse
from hypercode.safety.command_paths import project_secret, resolve
from hypercode.safety.command_script import Script, Simple
from hypercode.safety.command_unwrap import SHELLS, base, interprets, literals, runs_any_tail, scripts, tails
from hypercode.safety.command_words import UNKNOWN, Form, Word, decode, forms, secret_name
from hypercode.safety.command_work import spend

__all__ = ["Item", "Line"]

_NEST = 6  # scripts inside scripts that are looked into
_MOST_VIEWS = 300  # programs that one command may start one through the other; looking at each costs its whole length
_LANGUAGES = re.compile(r"(?:python|pypy|perl|ruby|node|nodejs|php|lua|deno|bun|osascript|tclsh)[\d.]*")
_INPUT_RUNNERS = {"xargs", "gxargs", "parallel"}
_STARTS = re.compile(
    r"PROMPT_COMMAND|PS[0-4]|BASH_ENV|ENV|(?:MAN|SYSTEMD_)?(?:PAGER|EDITOR)|VISUAL|BROWSER|LESS(?:OPEN|CLOSE)|GIT_\w+|\w+_(?:COMMAND|ASKPASS)"
)
"""Variables whose text is run as a command sooner or later."""
_MOST_FOLDERS = 32  # folders the shell may stand in; beyond that it may stand anywhere
_LONG_NAME = 1000  # characters of a pattern for a program's name, beyond which it may name any
_LOOP = re.compile(r"\A(?>.*?\b(?:for|while|until|select)\b).*\bdone\b", re.DOTALL)
_SHELL_OUT = re.compile(r"!\s*([^\n\"']+)|(?:^|[;\d$/}\n])[^\S\n]*e\s+([^\n\"']+)")  # of editors, and of sed
_GUESSES = ("rm", "dd", "mv", "chmod")
_DUMPERS = {"env", "printenv", "set", "export", "declare", "compgen"}
_SEARCHERS = {"grep", "egrep", "fgrep", "rg", "awk", "sed"}
_TEXTS = {"echo", "printf", "print"}


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
        self.values = self._values(above or {})
        self.items = self._items()
        self._seen: dict[int, list[View]] = {}
        self.beyond = False  # whether there is more in it than is looked at

    def _values(self, above: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
        """What the line itself gives to variables; a NUL stands for what cannot be known."""
        values = {**above, "HOME": frozenset({self.home}), "PWD": self.start}
        given: dict[str, list[Word]] = {name: list(words) for name, words in self.script.loops.items()}
        for simple in self.script.commands:
            for name, word in simple.assigns:
                given.setdefault(name, []).append(word)
        for name, word in self._positional():
            given.setdefault(name, [decode("$_")]).append(word)
        for _ in range(3 if given else 0):
            for name, words in given.items():
                texts = {f.text for w in words for f in forms(w, values, self.home)}
                unsure = len(texts) > 64 or bool(self.script.problems)
                values[name] = frozenset(sorted(texts)[:64] + ([UNKNOWN] if unsure else []))
        reads = [s for s in self.script.commands if s.words and s.words[0].raw == "read"]
        said = (
            f.text for s in self.script.commands if _says(s) for w in s.words[1:] for f in forms(w, values, self.home)
        )
        handed = frozenset({UNKNOWN, *islice(said, 64)}) if reads else frozenset[str]()
        values.update({w.raw: handed for s in reads for w in s.words[1:] if w.raw.isidentifier()})
        return values

    def _positional(self) -> Iterator[tuple[str, Word]]:
        """What the line hands to its own functions, and by `set`, as `$1`, `$@` and the like."""
        for simple in self.script.commands:
            if simple.words and (simple.words[0].raw in self.script.functions or simple.words[0].raw == "set"):
                spend(3 * len(simple.words))
                first = 2 if len(simple.words) > 1 and simple.words[1].raw == "--" else 1
                for at, word in enumerate(simple.words[first:], 1):
                    yield from ((name, word) for name in ("@", "*", *([str(at)] if at < 10 else [])))

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
        texts: list[str] = []
        seen: set[tuple[str, ...]] = set()
        pending: deque[tuple[list[Form], bool]] = deque()
        self._await(pending, ((flat[i:], False) for i in range(first)))
        if item.simple.recovered:  # where a command begins in it nobody knows
            self._await(pending, ((flat[i:], True) for i in range(first, len(flat))))
        pending += [([Form(n), *flat[1:]], False) for n in _GUESSES if flat and _may_be(flat[0], n)]
        texts += [] if flat else self._started(item)
        while pending and len(views) < _MOST_VIEWS:
            words, covered = pending.popleft()
            spend(2 + len(words) // 8)
            key = tuple(w.text for w in words)
            if not words or key in seen:
                continue
            seen.add(key)
            view = self._view(item, words, tail=bool(views))
            views.append(view)
            texts += self._texts(item, view, covered)
            if covered and runs_any_tail(words):
                continue  # every tail of it is on the list already
            handed = self._handed(item) if view.name in _INPUT_RUNNERS else []
            again = runs_any_tail(words) and not handed
            self._await(pending, (([*t, *handed], again) for t in tails(words)))
        self.beyond |= bool(pending) or (bool(texts) and self.depth >= _NEST)
        for text in dict.fromkeys(texts) if self.depth < _NEST else ():
            inner = Line(text, self.workspace, self.home, item.folders, self.depth + 1, item.values)
            views += [replace(v, tail=False) for i in inner.items for v in inner.views(i)]
            self.beyond |= inner.beyond
        return views

    def _await(self, pending: deque[tuple[list[Form], bool]], more: Iterator[tuple[list[Form], bool]]) -> None:
        """Put more commands on the list, as many as will be looked at."""
        for words, covered in more:
            if len(pending) > _MOST_VIEWS:
                self.beyond = True
                return
            spend(1 + len(words) // 50)
            pending.append((words, covered))

    def _view(self, item: Item, words: list[Form], tail: bool) -> View:
        spend(2)
        name = base(words[0].shortest).lower()
        extra = [Form(w.raw) for w in item.simple.stdin] if interprets(name) else []
        return View(name, (*words[1:], *extra), item.simple, item.folders, self.workspace, self.home, tail=tail)

    def _handed(self, item: Item) -> list[Form]:
        """What `xargs` and its kind may put behind their command."""
        given = [f for w in item.simple.stdin for f in forms(w, item.values, self.home)]
        spend(len(given) + len(self._said) + len(self._found))
        return [*self._said, *self._found, *given]

    @cached_property
    def _said(self) -> list[Form]:
        """What the line's own echo and printf would hand to the next command."""
        return [
            f for s in self.script.commands if _says(s) for w in s.words[1:] for f in forms(w, self.values, self.home)
        ]

    @cached_property
    def _found(self) -> list[Form]:
        """The folders from which the line's own `find` would hand names to the next command."""
        out: list[Form] = []
        for words in ([f for w in s.words for f in forms(w, self.values, self.home)] for s in self.script.commands):
            if words and base(words[0].text) == "find":
                roots = list(takewhile(lambda w: not w.text.startswith(("-", "(", "!")), words[1:])) or [Form(".")]
                narrowed = any(w.text in FILTERS for w in words)
                out += [r for r in roots if not narrowed or resolve(r.text, self.start) != [self.workspace]]
        return out

    def _texts(self, item: Item, view: View, covered: bool) -> Iterator[str]:
        """Shell texts inside one command."""
        yield from scripts([Form(view.name), *view.args], covered)
        yield from self._started(item)
        if view.name in SHELLS:
            yield from (w.raw for w in item.simple.stdin)
            yield from (
                decoded for w in item.simple.stdin for f in forms(w, item.values, self.home) if (decoded := f.text)
            )
        if view.name in SHELLS or view.name in ("source", "."):
            fed = any("process_substitution" in w.holes for w in item.simple.words)
            if (item.simple.piped or fed) and self._said:
                yield " ".join(f.text for f in self._said)
        if interprets(view.name):
            spend(sum(len(a.text) for a in view.args) // 10 + len(view.args))
            for arg in view.args:
                yield from (t for m in _SHELL_OUT.finditer(arg.text) for t in m.groups() if t)
                found = literals(arg.text) if re.search(r"[\s(\"'`{]", arg.text) else []
                yield from (t for t in found if re.search(r"\S\s+\S", t))
                if len(found) > 1:
                    yield " ".join(re.sub(r"([^\w./~-])", r"\\\1", t) for t in found if t)

    def _started(self, item: Item) -> list[str]:
        return [
            f.text for n, w in item.simple.assigns if _STARTS.fullmatch(n) for f in forms(w, item.values, self.home)
        ]

    def breaker(self) -> str:
        """What asks every time because of the line as a whole."""
        views = [v for item in self.items for v in self.views(item)]
        spend(sum(2 + len(v.args) for v in views))
        if self.beyond:
            return "more programs inside one another than can be looked at"
        names = {v.name for v in views}
        runs = [v for v in views if _runs_input(v)]
        if names & DOWNLOADERS and (runs or _runs_download(views)):
            return "runs what it downloads"
        if runs and names & DECODERS:
            return "runs what it decodes"
        for name, text in self.script.functions.items():
            spend(150 + len(text) // 20)
            body = text.split("{", 1)[-1]
            if name and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", body) and re.search(r"[|&]", body):
                return "starts processes without end"
        return self._leaks(views, names)

    def _leaks(self, views: list[View], names: set[str]) -> str:
        """A secret, or what a command printed, on its way to the screen or the network."""
        dumps = [
            v
            for v in views
            if v.name in _DUMPERS and {a.text for a in v.args} <= {"-p", "-0", "--null", "-x", "-e", "-v"}
        ]
        if names & NETWORK:
            sending = [v for v in views if v.name in NETWORK]
            given = self._given_at_run_time()
            spend(sum(2 * len(v.simple.words) for v in sending))
            if any(map(project_secret, self._files(views))):
                return "sends project secrets"
            if dumps:
                return "sends the environment"
            if any(given & w.variables for v in sending for w in v.simple.words):
                return "could carry data out"
            if any(v.simple.words and v.simple.words[0].raw in _INPUT_RUNNERS for v in sending):
                return "could carry data out"
        searched = [a.text.strip("^=.*") for v in views if v.name in _SEARCHERS for a in v.args]
        return "shows a secret variable" if dumps and any(map(secret_name, searched)) else ""

    def _files(self, views: list[View]) -> Iterator[str]:
        """Every path the line names, targets of redirects included."""
        yield from (p for v in views if not v.tail for p in places(v))
        for item in self.items:
            for target in (r.target for r in item.simple.redirects if r.target):
                yield from (p for f in forms(target, item.values, self.home) for p in resolve(f.text, item.folders))

    def _given_at_run_time(self) -> set[str]:
        """Variables filled with what a command prints or what is read."""
        simples = [i.simple for i in self.items]
        read = {w.raw for s in simples if s.words and s.words[0].raw == "read" for w in s.words[1:]}
        return read | {n for s in simples for n, w in s.assigns if w.holes or w.odd}


def _may_be(form: Form, name: str) -> bool:
    """Whether a command name that is a pattern, or unknown, can be this program."""
    pattern = base(form.text.replace(UNKNOWN, "*"))
    if len(pattern) > _LONG_NAME:
        return True
    return bool(re.search(r"[*?\[]", pattern)) and fnmatchcase(name, pattern)


def _says(simple: Simple) -> bool:
    return bool(simple.words) and simple.words[0].raw in _TEXTS


def _runs_input(view: View) -> bool:
    """A shell or interpreter that takes its program from a pipe, a substitution or standard input."""
    shell = view.name in SHELLS
    if not (shell or view.name in ("eval", "source", ".") or _LANGUAGES.fullmatch(view.name)):
        return False
    given = [*view.simple.words, *view.simple.stdin, *(r.target for r in view.simple.redirects if r.target)]
    if any(w.holes & {"command_substitution", "process_substitution", "unknown"} for w in given):
        return True
    if shell and view.simple.words[0].raw in _INPUT_RUNNERS:
        return True
    texts = [a.text for a in view.args]
    operands = [t for t in texts if not t.startswith("-")]
    reads = (
        not operands
        or "/dev/stdin" in operands
        or "/proc/self/fd/0" in operands
        or "-" in texts
        or (shell and any(re.fullmatch(r"-\w*s\w*", t) for t in texts))
    )
    return view.simple.piped and reads and not any(re.fullmatch(r"-[cem]|--version|-V", t) for t in texts)


def _runs_download(views: list[View]) -> bool:
    """A file name that a download mentions is run in the same line."""
    fetched = {
        base(a.shortest)
        for v in views
        if v.name in DOWNLOADERS
        for a in v.args
        if "." in a.text or not a.text.startswith("-")
    }
    fetched |= {base(a.shortest) for v in views if v.name in ("tee", "dd", "sponge") for a in v.args}
    fetched |= {base(r.target.raw) for v in views for r in v.simple.redirects if r.target and ">" in r.op}
    run = {
        base(a.shortest)
        for v in views
        if v.name in SHELLS or v.name in ("source", ".", "chmod") or _LANGUAGES.fullmatch(v.name)
        for a in v.args
    }
    run |= {v.name for v in views if v.simple.words and v.simple.words[0].raw.startswith(("./", "/", "~", "$"))}
    return bool((fetched & run) - {"", "-", "/dev/null", "null"})
