"""What asks every time because of a line as a whole: a download that is run, a secret that leaves, a command without end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from hypercode.safety.command_breakers import View, places
from hypercode.safety.command_danger import DECODERS, DOWNLOADERS, NETWORK
from hypercode.safety.command_line import INPUT_RUNNERS, LANGUAGES, Line
from hypercode.safety.command_paths import project_secret, resolve
from hypercode.safety.command_unwrap import SHELLS, base
from hypercode.safety.command_values import names_program
from hypercode.safety.command_words import forms, secret_name
from hypercode.safety.command_work import spend

__all__ = ["whole_breaker"]

_DUMPERS = {"env", "printenv", "set", "export", "declare", "compgen"}
_UNPACKERS = {"tar", "gtar", "bsdtar", "unzip", "7z", "cpio"}
_BY_PREFIX, _INDIRECT = re.compile(r"\$\{!\w+[*@]\}"), re.compile(r"\$\{!\w+\}|\b(?:printenv|declare|eval)\b")
_ENDLESS = re.compile(
    r"(?:\bwhile\s+(?:true|:|\(\(\s*1\s*\)\)|\[+ 1 \]+)|\buntil\s+false|\bfor\s*\(\(\s*;\s*;\s*\)\))\s*[;\n]?\s*do\b"
)
_WAITS = re.compile(r"\b(?:sleep|wait|read|break|exit|inotifywait)\b")
_SEARCHERS = {"grep", "egrep", "fgrep", "rg", "awk", "sed"}


def whole_breaker(line: Line) -> str:
    """What asks every time because of the line as a whole."""
    views = [v for item in line.items for v in line.views(item)]
    spend(sum(2 + len(v.args) for v in views))
    if line.beyond:
        return "more programs inside one another than can be looked at"
    names = {v.name for v in views}
    runs = [v for v in views if _runs_input(v)]
    if names & DOWNLOADERS and (runs or _runs_download(views)):
        return "runs what it downloads"
    if runs and names & DECODERS:
        return "runs what it decodes"
    if names & (DOWNLOADERS | DECODERS) and _runs_fetched(line, views):
        return "runs what it downloads or decodes"
    cloned = any(v.name == "git" and "clone" in {a.text for a in v.args} for v in views)
    if (cloned and _runs_cloned(views)) or (names & DOWNLOADERS and names & _UNPACKERS and _runs_unpacked(views)):
        return "runs what it downloads"
    if _without_end(line.command) or _starts_itself(line):
        return "starts processes without end"
    if _BY_PREFIX.search(line.command) and _INDIRECT.search(line.command):
        return "shows variables by the beginning of their names"
    return _leaks(line, views, names)


def _starts_itself(line: Line) -> bool:
    """Whether a function starts itself in a pipe or in the background."""
    for name, text in line.script.functions.items():
        spend(150 + len(text) // 20)
        body = text.split("{", 1)[-1]
        if name and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", body) and re.search(r"[|&]", body):
            return True
    return False


def _runs_fetched(line: Line, views: list[View]) -> bool:
    """Whether what a program fetched or decoded is the name of a command, or the text of a script."""
    programs = DOWNLOADERS | DECODERS | line.given.written
    fetched = line.given.fetched(programs)
    heads = [i.simple.words[0] for i in line.items if i.simple.words]
    if any(names_program(w, programs) or w.variables & fetched for w in heads):
        return True
    shells = [v for v in views if v.name in SHELLS or v.name in ("eval", "source", ".")]
    spend(sum(len(v.simple.words) for v in shells))
    return any(w.variables & fetched for v in shells for w in (*v.simple.words, *v.simple.stdin))


def _leaks(line: Line, views: list[View], names: set[str]) -> str:
    """A secret, or what a command printed, on its way to the screen or the network."""
    dumps = [
        v for v in views if v.name in _DUMPERS and {a.text for a in v.args} <= {"-p", "-0", "--null", "-x", "-e", "-v"}
    ]
    if names & NETWORK:
        sending = [v for v in views if v.name in NETWORK]
        given = line.given.filled()
        spend(sum(2 * len(v.simple.words) for v in sending))
        if any(map(project_secret, _files(line, views))):
            return "sends project secrets"
        if dumps:
            return "sends the environment"
        if any(given & w.variables for v in sending for w in v.simple.words):
            return "could carry data out"
        if any(v.simple.words and v.simple.words[0].raw in INPUT_RUNNERS for v in sending):
            return "could carry data out"
    searched = [a.text.strip("^=.*") for v in views if v.name in _SEARCHERS for a in v.args]
    return "shows a secret variable" if dumps and any(map(secret_name, searched)) else ""


def _files(line: Line, views: list[View]) -> Iterator[str]:
    """Every path the line names, targets of redirects included."""
    yield from (p for v in views if not v.tail for p in places(v))
    for item in line.items:
        for target in (r.target for r in item.simple.redirects if r.target):
            yield from (p for f in forms(target, item.values, line.home) for p in resolve(f.text, item.folders))


def _runs_input(view: View) -> bool:
    """A shell or interpreter that takes its program from a pipe, a substitution or standard input."""
    if view.name in ("iex", "invoke-expression"):
        return True
    shell = view.name in SHELLS or (not view.name and bool(view.simple.words) and not view.simple.words[0].static)
    if not (shell or view.name in ("eval", "source", ".") or LANGUAGES.fullmatch(view.name)):
        return False
    given = [*view.simple.words, *view.simple.stdin, *(r.target for r in view.simple.redirects if r.target)]
    if any(w.holes & {"command_substitution", "process_substitution", "unknown"} for w in given):
        return True
    if shell and view.simple.words[0].raw in INPUT_RUNNERS:
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


def _runs_cloned(views: list[View]) -> bool:
    """Whether a program is run that lies in a folder the line clones."""
    cloned = {base(a.shortest.removesuffix(".git")) for v in views if v.name == "git" for a in v.args}
    heads = [(v, v.simple.words[0].raw) for v in views if v.simple.words and not v.tail]
    heads += [(v, a.shortest) for v in views if v.name in SHELLS or LANGUAGES.fullmatch(v.name) for a in v.args]
    spend(len(heads))
    for view, head in heads:
        if "/" in head and head.removeprefix("./").split("/", 1)[0] in cloned:
            return True
        if head.startswith("./") and any(base(folder) in cloned for folder in view.folders):
            return True
    return False


def _runs_unpacked(views: list[View]) -> bool:
    """Whether a program is run by a path below the folder, where an archive may just have been unpacked."""
    return any(re.match(r"\.?\w*/", v.simple.words[0].raw) for v in views if v.simple.words and not v.tail)


def _without_end(command: str) -> bool:
    """Whether a loop that never ends starts a process in the background each time round."""
    if "&" not in command or "done" not in command:
        return False
    spend(10 + len(command) // 20)
    bodies = [command[m.end() :].split("done", 1)[0] for m in islice(_ENDLESS.finditer(command), 8)]
    return any(re.search(r"(?<![&>|])&(?![&>\d])", b) and not _WAITS.search(b) for b in bodies)


def _runs_download(views: list[View]) -> bool:
    """A file name that a download mentions is run in the same line."""
    fetched = {
        base(a.shortest)
        for v in views
        if v.name in DOWNLOADERS
        for a in v.args
        if "." in a.text or not a.text.startswith("-")
    }
    fetched |= {name.rsplit(":", 1)[-1] for name in fetched}
    fetched |= {
        base(a.shortest.removeprefix("of=")) for v in views if v.name in ("tee", "dd", "sponge") for a in v.args
    }
    fetched |= {base(r.target.raw) for v in views for r in v.simple.redirects if r.target and ">" in r.op}
    run = {
        base(a.shortest)
        for v in views
        if v.name in SHELLS or v.name in ("source", ".", "chmod") or LANGUAGES.fullmatch(v.name)
        for a in v.args
    }
    run |= {v.name for v in views if v.simple.words and v.simple.words[0].raw.startswith(("./", "/", "~", "$"))}
    return bool((fetched & run) - {"", "-", "/dev/null", "null"})
