"""The gate for shell commands: a line of shell, read as text, gets one of the four decisions.

The line is split into the simple commands it would run; each must be allowed by itself and the strictest decides.  The
gate asks well, it does not contain: that is the sandbox's work.  It is pure: nothing is run, opened or looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from hypercode.safety.command_breakers import View, breaker, indirect_breaker, redirect_breaker
from hypercode.safety.command_danger import NETWORK
from hypercode.safety.command_deny import forbids, spoken, unknowable, wrapped
from hypercode.safety.command_flags import Reading, check
from hypercode.safety.command_git import check_git
from hypercode.safety.command_line import Item, Line
from hypercode.safety.command_paths import inside, project_secret, resolve, secret
from hypercode.safety.command_script import Simple, crude
from hypercode.safety.command_shown import HARMLESS, construct, patterns, shown, splits, subjects
from hypercode.safety.command_unwrap import SHELLS, base, interprets
from hypercode.safety.command_whole import whole_breaker
from hypercode.safety.command_words import Form, Word, forms
from hypercode.safety.command_work import LONGEST, STEPS, TooMuch, bounded, spend
from hypercode.safety.decision import Decision, strictest
from hypercode.safety.path_rules import secret_name
from hypercode.safety.rules import Rule

__all__ = ["Part", "Verdict", "as_json", "classify"]

_VERBED = {
    "git", "npm", "pnpm", "yarn", "bun", "npx", "cargo", "go", "docker", "podman", "kubectl", "make", "uv", "poetry", "pip", "pip3", "gh",
    "dotnet", "mvn", "gradle", "bundle", "rails", "composer", "brew", "apt", "apt-get", "hatch", "nox", "tox", "just", "terraform",
}  # fmt: skip
_WHOLE = {
    "rm", "mv", "cp", "ln", "dd", "chmod", "chown", "kill", "pkill", "killall", "env", "xargs", "find", "fd", "tee", "truncate", "exec", "eval",
    "source", ".", "command", "builtin", "timeout", "nohup", "nice", "time", "watch", "parallel", "tar", "rsync", "trap", "export", "alias",
}  # fmt: skip
_QUOTED = re.compile(r"\\[\x00-\x7f]|'[^']*'|\"(?:\\.|[^\"\\])*\"", re.S)
_SECRETS, _ALLOWED = "may show secrets", "allow rule"
_TOO_MUCH = "too many commands, words or choices in one line to look at all of them"


@dataclass(frozen=True, slots=True)
class Part:
    """One simple command of the line, its decision, and why, in words."""

    command: str
    decision: Decision
    rule: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on a whole line; `grant` is the narrowest allow rule that would let it pass, if there is one."""

    decision: Decision
    parts: tuple[Part, ...]
    grant: str | None


def classify(
    command: str,
    *,
    workspace: Path,
    home: Path,
    allow: Sequence[Rule] = (),
    deny: Sequence[Rule] = (),
    readers_ask: bool = False,
) -> Verdict:
    """Decide on a shell line that would start in `workspace` (absolute, as is `home`).  Never raises.

    A line that is too long to run, or takes more than the bound on work to look through, asks every time.  With
    `readers_ask` nothing is `auto` but what a rule allows.
    """
    gate = _Gate(str(workspace), str(home), tuple(allow), tuple(deny), readers_ask)
    try:
        with bounded(STEPS):
            if len(command) > LONGEST:
                raise TooMuch
            parts = gate.parts(command)
            decision = strictest(p.decision for p in parts)
            return Verdict(decision, tuple(parts), gate.grant(command) if decision is Decision.ASK else None)
    except TooMuch:
        parts = gate.unfinished(command)
        return Verdict(strictest(p.decision for p in parts), tuple(parts), None)


def as_json(verdict: Verdict) -> dict[str, object]:
    """The verdict as plain data: `{decision, parts: [{command, decision, rule}], grant}`."""
    parts = [{"command": p.command, "decision": p.decision.value, "rule": p.rule} for p in verdict.parts]
    return {"decision": verdict.decision.value, "parts": parts, "grant": verdict.grant}


class _Gate:
    """One line, judged."""

    def __init__(
        self, workspace: str, home: str, allow: tuple[Rule, ...], deny: tuple[Rule, ...], readers_ask: bool
    ) -> None:
        self.workspace, self.home, self.allow, self.deny = workspace, home, allow, deny
        self.readers_ask = readers_ask
        self.offers: list[tuple[str, ...] | None] = []
        self.judged: list[Part] = []
        self.subjects: list[str] = []
        self.line: Line | None = None

    def parts(self, command: str) -> list[Part]:
        """Every part of the line, then what is wrong with the line as a whole."""
        found = _odd_characters(command)
        line = self.line or Line(command, self.workspace, self.home)
        self.line, self.judged, self.subjects = line, [], subjects(line.script.commands)
        parts = self.judged
        for item in line.items:
            parts += [p] if (p := self.judge(line, item)) else []
        recovered = [Item(s, line.start, {}) for s in crude(command)] if found and not line.script.problems else []
        parts += [p for item in recovered if (p := self.judge(line, item))]
        parts += [Part(command, Decision.ASK, reason) for reason in [*line.script.problems, *found]]
        if line.script.problems:  # what was not understood may be what a rule forbids
            parts += [Part(command, Decision.DENY, f"deny rule: {r}") for r in self.deny if r.mentioned(command)]
        if whole := whole_breaker(line):
            parts.append(Part(command, Decision.ALWAYS_ASK, whole))
        if any(p.decision is Decision.ASK and p.command is command for p in parts):
            self.offers.append(None)
        said = spoken(command, [i.simple for i in line.items]) if self.deny else ""
        rule = next((r for r in self.deny if r.mentioned(said)), None)
        reads = all(p.decision is Decision.AUTO and not p.rule.startswith(_ALLOWED) for p in parts)
        if rule and not reads and strictest(p.decision for p in parts).rank < Decision.ALWAYS_ASK.rank:
            # by an alias, a file, a wrapper that nobody knows
            parts.append(Part(command, Decision.ALWAYS_ASK, f"it may be what a deny rule forbids: {rule}"))
        return parts

    def grant(self, command: str) -> str | None:
        """The narrowest rule that would let the line, judged before, pass."""
        offers = {g for g in self.offers if g}
        rule = Rule(offers.pop()) if len(offers) == 1 else None
        if rule is None:
            return None
        again = _Gate(self.workspace, self.home, (*self.allow, rule), self.deny, self.readers_ask)
        again.line = self.line
        try:
            passes = strictest(p.decision for p in again.parts(command)) is Decision.AUTO
        except TooMuch:
            return None
        return str(rule) if passes else None

    def unfinished(self, command: str) -> list[Part]:
        """What was found out about a line that is too much, and what holds for the rest of it."""
        parts = [p for p in self.judged if p.decision is Decision.DENY]
        parts += [Part(command, Decision.DENY, f"deny rule: {r}") for r in self.deny if r.mentioned(command)]
        reason = f"longer than a command can be ({LONGEST} characters)" if len(command) > LONGEST else _TOO_MUCH
        return [*parts[:1], Part(command, Decision.ALWAYS_ASK, reason)]

    def judge(self, line: Line, item: Item) -> Part | None:
        """The decision on one simple command; None for recovered text that holds nothing forbidden."""
        simple = item.simple
        spend(4 + len(simple.words))
        reading: Reading | str | None = construct(simple, self.subjects) if simple.construct else self.reads(item)
        reading = None if simple.recovered else reading
        views = line.views(item)
        if isinstance(reading, Reading) and simple.words and simple.words[0].raw not in ("time", "timeout"):
            views = views[:1]
        reads = isinstance(reading, Reading)
        for rule in self.deny:
            unseen = line.beyond or unknowable(views, simple)
            spend(len(views) + (len(line.command) // 20 if unseen else 0))
            handed = not reads and any(wrapped(rule, v) for v in views)
            if handed or any(forbids(rule, v, reads=reads) for v in views) or (unseen and rule.mentioned(line.command)):
                return Part(simple.text, Decision.DENY, f"deny rule: {rule}")
        if why := self.breaks(line, item, views, reading):
            return Part(simple.text, Decision.ALWAYS_ASK, why)
        if self.deny and unknowable(views, simple):
            return Part(simple.text, Decision.ALWAYS_ASK, "what it runs is unknown, and deny rules are set")
        if simple.recovered:
            return None
        if isinstance(reading, Reading):
            if not self.readers_ask:
                return Part(simple.text, Decision.AUTO, reading.rule)
            reading = f"{reading.rule}, but there is no sandbox"
        tokens = _tokens(simple) if all(inside(f, self.workspace) for f in item.folders) else None
        secret = isinstance(reading, str) and reading.startswith(_SECRETS)  # a rule covers them that names them
        rule_ = next((r for r in self.allow if tokens and r.matches(tokens, whole=secret)), None)
        if rule_:
            return Part(simple.text, Decision.AUTO, f"{_ALLOWED}: {rule_}")
        self.offers.append((tokens if secret else _narrowest(tokens)) if tokens else None)
        return Part(simple.text, Decision.ASK, reading or simple.construct or "not understood")

    def breaks(self, line: Line, item: Item, views: list[View], reading: Reading | str | None) -> str:
        """The circuit breaker that holds for any command in it."""
        why = redirect_breaker(item.simple, item.folders, self.workspace, self.home, item.values)
        why = why or indirect_breaker(item.simple, item.values)
        given = frozenset(w.raw for w in item.simple.words)  # to a script as `$1` and so on
        for at, view in enumerate(views):
            known = reading if at == 0 and isinstance(reading, Reading) else None
            why = why or breaker(replace(view, reading=known))
            if view.simple is not item.simple:  # in the script of an inner shell
                why = why or redirect_breaker(view.simple, view.folders, self.workspace, self.home, item.values)
                why = why or indirect_breaker(view.simple, {**item.values, **dict.fromkeys("0123456789", given)})
        names = [n for n, _ in item.simple.assigns] + [w.raw.split("=", 1)[0] for w in item.simple.words[1:]]
        own = any(re.fullmatch(r"(?:HYPERCODE|OPENROUTER)_\w+", n) for n in names)
        return why or ("changes the program's own settings" if own and not isinstance(reading, Reading) else "")

    def reads(self, item: Item) -> Reading | str:
        """What a command reads if it is a plain reader inside the workspace; otherwise why it must ask."""
        simple = item.simple
        if simple.assigns:
            return "sets a variable"
        if why := self.redirects(item):
            return why
        if not simple.words:
            return Reading("read-only: input redirect")
        words = list(simple.words)
        while words and words[0].plain and words[0].raw == "time":
            words = words[2:] if len(words) > 1 and words[1].raw == "-p" else words[1:]
        if len(words) > 2 and words[0].raw == "timeout" and re.fullmatch(r"\d+(?:\.\d+)?[smh]?", words[1].raw):
            words = words[2:]
        if not words:
            return "nothing to time"
        if not words[0].plain or not re.fullmatch(r"[A-Za-z0-9_.:+-]+|\[\[?", words[0].raw):
            return "an unusual way to name a command"
        name = words[0].raw
        if self.line and (name in self.line.given.names or name in self.line.script.functions):
            return "a name that the line itself gives to something"
        held = patterns(words, item.values)
        if splits(words, held):
            return f"a file name could be taken for a flag of {name}"
        places = (p for v in held if v != "PWD" for t in held[v] for p in resolve(t, item.folders | {self.workspace}))
        if outside := next((p for p in places if not inside(p, self.workspace)), ""):
            return f"names files outside the workspace: {outside}"
        words = shown(simple, words, self.line.script.loops if self.line else {})
        looped = sorted({v for w in words for v in w.variables} & set(item.values) - {"HOME", "PWD"})
        choices = [sorted(item.values[v]) for v in looped]
        reading: Reading | str = "not on the list of readers"
        for at, pick in enumerate(product(*choices)):
            spend(20 + len(item.values) // 8 + 2 * len(words))
            values = {**item.values, **{v: frozenset({t}) for v, t in zip(looped, pick, strict=True)}}
            reading = self.reads_one(item, name, [f for w in words[1:] for f in self.spelled(w, values, held)])
            if not isinstance(reading, Reading) or at > 64:
                return reading if isinstance(reading, str) else "too many values"
        return reading

    def spelled(
        self, word: Word, values: Mapping[str, frozenset[str]], held: Mapping[str, Sequence[str]]
    ) -> Iterator[Form]:
        """The forms of a word; what comes out of a variable that holds file names is one of these, quoted or not."""
        named = not word.variables.isdisjoint(held)
        for form in forms(word, values, self.home):
            one = named and not form.glob and re.search(r"[*?\[]", form.text)
            yield replace(form, glob=True, alone=True) if one else form

    def reads_one(self, item: Item, name: str, args: list[Form]) -> Reading | str:
        at_root = item.folders == {self.workspace}
        if name == "cd":
            return (
                Reading("changes the folder", here=False)
                if len(args) < 2
                and all(a.sure and (not a.glob or a.text.endswith("*/") or _one_folder(a)) for a in args)
                else "cd to an unknown place"
            )
        reading = (
            check_git(args, at_root)
            if name == "git" and not (args and args[0].text == "--version")
            else check(name, args)
        )
        if isinstance(reading, str):
            return reading
        for text in [*reading.content, *reading.names]:
            for path in resolve(text, item.folders):
                if not inside(path, self.workspace):
                    return f"reads outside the workspace: {path}"
                if text in reading.content and self.is_secret(path):
                    return f"{_SECRETS}: {text}"
        if reading.here and not all(inside(f, self.workspace) for f in item.folders):
            return "looks outside the workspace"
        return reading

    def is_secret(self, path: str) -> bool:
        """Whether a file usually holds secrets, as the file tools see it; a pattern, whether it singles out such files."""
        named = project_secret(path) if re.search(r"[*?\[]", path) else secret_name(Path(path), Path(self.workspace))
        return named or secret(path, self.workspace, self.home)

    def redirects(self, item: Item) -> str:
        for redirect in item.simple.redirects:
            target = redirect.target
            if redirect.op in (">&", "<&") and target is not None and re.fullmatch(r"\d+-?|-", target.raw):
                continue
            if redirect.op in (">&-", "<&-") and target is None:
                continue
            if (
                target is not None
                and target.raw in ("/dev/null", "/dev/stderr", "/dev/stdout")
                and redirect.op in (">", ">>", "&>", "&>>", ">&", "<", ">|")
            ):
                continue
            if redirect.op != "<" or target is None or not target.static:
                return f"redirect: {redirect.op} {target.raw if target else ''}".rstrip()
            for form in forms(target, item.values, self.home):
                for path in resolve(form.text, item.folders):
                    if form.glob or not inside(path, self.workspace) or self.is_secret(path):
                        return f"reads outside the workspace or secrets: {path}"
        for word in item.simple.stdin:
            if word.odd or word.holes or word.variables - HARMLESS:
                return "a here-document with expansions"
        return ""


def _one_folder(form: Form) -> bool:
    return form.alone and form.text[:1] not in "*?["


def _narrowest(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """The shortest sensible rule for a command: up to its verb, or all of it where the program can do anything."""
    name = base(tokens[0])
    if name in _VERBED:
        verbs = [i for i, t in enumerate(tokens[1:4], 1) if not t.startswith("-")]
        longer = len(verbs) > 1 and tokens[verbs[0]] in ("run", "compose", "exec", "config", "remote", "stash")
        return tokens[: verbs[longer] + 1] if verbs and verbs[0] == 1 else tokens
    if name in SHELLS or interprets(name) or name in NETWORK or name in _WHOLE or "/" in tokens[0]:
        return tokens
    return tokens[:1]


def _tokens(simple: Simple) -> tuple[str, ...] | None:
    """The words an allow rule is compared with; None where anything else stands around them."""
    bare = not (simple.assigns or simple.stdin or simple.construct or simple.recovered)
    quiet = all(
        r.target is None
        or (r.op in (">&", "<&") and re.fullmatch(r"\d+-?|-", r.target.raw))
        or (">" in r.op and r.target.raw == "/dev/null")
        for r in simple.redirects
    )
    if (
        not bare
        or not quiet
        or not simple.words
        or not simple.words[0].plain
        or not all(w.static for w in simple.words)
    ):
        return None
    if simple.words[0].raw == "[" or any(c in simple.words[0].raw for c in "*?[]{}~"):
        return None
    return tuple("".join(p.text for p in w.pieces) for w in simple.words)


def _odd_characters(command: str) -> list[str]:
    spend(len(command) // 10)
    found = []
    bare = _QUOTED.sub("", command)
    if not bare.isascii():
        found.append("a character outside ASCII, outside quotes")
    strange = sorted({f"U+{ord(c):04X}" for c in command if not c.isprintable() and c not in "\n\t"})
    if strange:
        found.append("control or invisible characters: " + ", ".join(strange[:8]))
    return found
