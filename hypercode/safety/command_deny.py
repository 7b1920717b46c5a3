"""Whether a deny rule covers a command, also where the command is only handed to a program that nobody knows.

A deny rule is held against what may run, not against text: readers, and messages for people, may say what they like.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from hypercode.safety.command_breakers import View
from hypercode.safety.command_script import Simple
from hypercode.safety.command_table import TABLE
from hypercode.safety.command_unwrap import SHELLS, base, interprets
from hypercode.safety.command_words import Word
from hypercode.safety.command_work import spend
from hypercode.safety.rules import Rule

__all__ = ["forbids", "spoken", "unknowable", "wrapped"]

_MESSAGES = {"git", "gh", "glab", "hg", "svn", "jj"}
_CARRIERS = _MESSAGES | {
    "notify-send", "terminal-notifier", "say", "espeak", "logger", "wall", "write", "touch", "mkdir", "curl", "wget",
    "cp", "mv", "rm", "ln", "rmdir", "chmod", "chown", "open", "man", "apropos", "whatis", "info", "tldr", "help",
    "http", "https", "xh", "mail", "mailx", "figlet", "cowsay", "jira", "tea", "ag", "ack",
}  # fmt: skip
"""Programs whose arguments are text for people or other machines; what they do run is looked at elsewhere."""
_MESSAGE = r"message|body|title|description|comment|notes?|text|subject|summary|reason|label|name|grep|filter|search"
_MESSAGE_FLAG = re.compile(rf"--(?:{_MESSAGE})|-[a-zA-Z]*[mbtk]")
_TITLE = re.compile(rf"--(?:{_MESSAGE})")
_AWKS = {"awk", "gawk", "mawk", "nawk"}
_AWK_RUNS = re.compile(r"\b(?:system|getline|extension)\b|[|@]")
_GLUED_MESSAGE = re.compile(rf"--(?:{_MESSAGE})=")
_GIVEN_HERE = re.compile(r"\"?\$\(\s*cat\s+<<-?\s*(['\"])(\w+)\1[ \t]*\n.*?\n[ \t]*\2\s*\)\"?", re.S)


def forbids(rule: Rule, view: View, *, reads: bool = False) -> bool:
    """Whether a rule covers a command as it may run; with `reads` it is known to run nothing that its text names."""
    head = view.simple.words[0] if view.simple.words else None
    glob = bool(re.search(r"[*?\[\x00]", view.name)) or (head is not None and not head.static)
    texts = [a.text + "\0" * a.glob for a in view.args]  # a pattern may name what the rule names, with more behind it
    texts += [r.target.raw for r in view.simple.redirects if r.target is not None and r.op == "<"]
    spend(2 + len(texts) // 2 + (sum(map(len, texts)) // 20 if interprets(view.name) else 0))
    if len(rule.tokens) > 1:
        texts = _relative(texts, view)
    if rule.forbids(view.name, texts, glob=glob):
        return True
    if "" in texts and rule.forbids(view.name, [t for t in texts if t], glob=glob):  # an empty variable leaves no word
        return True
    return not reads and interprets(view.name) and any(rule.mentioned(t) for t in _programs(view.name, texts))


def _programs(name: str, texts: Sequence[str]) -> list[str]:
    """The arguments of an interpreter that may be program text, and may run something."""
    found = [t for before, t in pairwise(["", *texts]) if re.search(r"[\s(\"'`{;]", t) and not _TITLE.fullmatch(before)]
    return [t for t in found if _AWK_RUNS.search(t)] if name in _AWKS else found


def _relative(texts: Sequence[str], view: View) -> list[str]:
    """The arguments, files named from where the shell stands."""
    out = list(texts)
    if any(t.startswith("/") for t in out):
        spend(len(out) * len(view.folders) // 4)
        for folder in {*view.folders, view.workspace}:
            out = [t.removeprefix(folder.rstrip("/") + "/") for t in out]
    return out


def wrapped(rule: Rule, view: View) -> bool:
    """Whether a program that is no plain reader is handed what a rule forbids: words in a row, or in one argument.

    A rule of one word (flags left out) is too common a text for that, unless it stands behind `--`.
    """
    name, texts = view.name, [a.text for a in view.args]
    if (
        name in TABLE
        or name in _AWKS
        or (name in _CARRIERS and not (name in ("gh", "glab") and texts[:1] == ["alias"]))
    ):
        return False
    alone = len([t for t in rule.tokens if not t.startswith("-")]) == 1
    head = base(rule.tokens[0]).casefold()
    spend(2 + len(texts))
    for at, text in enumerate(texts):
        before = texts[at - 1] if at else ""
        if head not in text.casefold():
            continue
        spend(10 + len(texts) // 4 + len(text) // 20)
        if (not alone or before == "--") and rule.forbids(base(text), texts[at + 1 :]):
            return True
        message = _GLUED_MESSAGE.match(text) or _MESSAGE_FLAG.fullmatch(before)
        if not alone and not message and re.search(r"\s", text) and rule.begins_in(text):
            return True
    return False


def spoken(command: str, simples: Sequence[Simple]) -> str:
    """The line without the messages it hands to git and its kind."""
    for simple in simples:
        words = simple.words
        if len(words) < 3 or base(words[0].raw) not in _MESSAGES:
            continue
        spend(len(words) + len(command) // 20)
        for before, word in pairwise(words):
            if _MESSAGE_FLAG.fullmatch(before.raw) and _is_text(word) and command.count(word.raw) == 1:
                command = command.replace(word.raw, " ")
        for word in words[1:]:
            if _GLUED_MESSAGE.match(word.raw) and _is_text(word) and command.count(word.raw) == 1:
                command = command.replace(word.raw, " ")
    return command


def _is_text(word: Word) -> bool:
    return word.static or bool(_GIVEN_HERE.fullmatch(word.raw))


def unknowable(views: Sequence[View], simple: Simple) -> bool:
    """Whether what would run cannot be told from the text."""
    if simple.words and (not simple.words[0].static or simple.words[0].odd):
        return True
    if any(
        v.name in SHELLS and v.simple.piped and not [a for a in v.args if not a.text.startswith("-")] for v in views
    ):
        return True
    runs = [
        v
        for v in views
        if v.name in SHELLS or v.name in ("eval", "source", ".", "xargs", "env", "command", "exec", "builtin")
    ]
    return any(not w.static for v in runs for w in v.simple.words) or bool(simple.construct and simple.recovered)
