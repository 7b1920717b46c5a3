"""git: which calls only look, which lose work, publish over others' work, or plant code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from hypercode.safety.command_flags import Reading, Refused, arguments
from hypercode.safety.command_table import GIT
from hypercode.safety.command_words import Form

__all__ = ["check_git", "git_breaker", "git_verb"]

_QUIET = {"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects", "--icase-pathspecs"}
_VALUED = {
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--super-prefix",
    "--config-env",
    "--attr-source",
}
_LISTS = {"branch": {"list", "l", "contains", "no-contains", "merged", "no-merged", "points-at"}, "tag": {"list", "l"}}
_LISTS["tag"] |= _LISTS["branch"]
_READS = {
    "stash": {"list": 0, "show": 9},
    "reflog": {"show": 9},
    "remote": {"get-url": 2},
    "worktree": {"list": 0},
    "submodule": {"status": 9},
    "notes": {"list": 1, "show": 1},
}
_HARMLESS_KEYS = re.compile(
    r"user\.(name|email)|color\..*|pull\.(rebase|ff)|push\.(default|autosetupremote)|init\.defaultbranch|branch\..*\.(merge|remote|rebase)"
    r"|core\.(autocrlf|eol|filemode|ignorecase|quotepath|longpaths|safecrlf|whitespace)|merge\.(conflictstyle|ff)|diff\.(algorithm|renames|colormoved)"
    r"|rerere\.enabled|fetch\.prune|rebase\.(autostash|autosquash)|commit\.gpgsign|advice\..*|column\..*|log\.date|help\.autocorrect"
)
_CONFIG_READS = {"get", "list", "get-all", "get-regexp", "get-urlmatch", "get-color", "l"}
_SCOPES = {
    "global",
    "local",
    "system",
    "worktree",
    "show-origin",
    "show-scope",
    "null",
    "z",
    "name-only",
    "bool",
    "int",
    "path",
}
_SCOPES |= {"bool-or-int", "includes", "no-includes", "type"}
"""Flags of `git config` that say where a value is read and how it is shown."""
_SECRET_KEY = re.compile(r"extraheader|secret|token|pass|helper|insteadof|api-?key|oauth|cookie|\.pat$", re.IGNORECASE)
_SHOWS = {"clean": {"--dry-run"}, "apply": {"--check", "--stat", "--numstat", "--summary"}}
"""What keeps a verb that writes from writing; one of them must be there."""


def git_verb(args: Sequence[Form]) -> tuple[list[Form], str, list[Form]]:
    """The options before git's verb, the verb, and what follows it."""
    at = 0
    while at < len(args) and args[at].text.startswith("-"):
        at += 2 if args[at].text in _VALUED else 1
    return list(args[:at]), args[at].text if at < len(args) else "", list(args[at + 1 :])


def check_git(args: Sequence[Form], at_root: bool) -> Reading | str:
    """What a git call reads, or why it must ask.  `at_root`: the shell stands in the workspace's own folder.

    Another folder asks: a repository planted there runs its own programs on the first `git status`.
    """
    before, verb, rest = git_verb(args)
    odd = [f.text for f in before if f.text not in _QUIET]
    if odd and odd != ["-C", "."]:
        return f"option before the verb: git {odd[0]}" if verb else "not on the list of readers"
    spec = GIT.get(verb)
    if spec is None:
        return f"not on the list of readers: git {verb}".rstrip()
    if not at_root:
        return "git in another folder may belong to another repository"
    try:
        out = arguments(f"git {verb}", spec, _after_verb(verb, rest))
    except Refused as reason:
        return str(reason)
    out.content = [c for c in out.content if not c.startswith("-")]
    return out


def _after_verb(verb: str, rest: list[Form]) -> list[Form]:
    """The arguments to hold against the table.  Raises Refused where an operand makes the verb write."""
    operands = [f.text for f in rest if not f.text.startswith("-")]
    flags = {f.text.lstrip("-").split("=", 1)[0] for f in rest if f.text.startswith("-")}
    if verb in ("config", *_READS) and any(f.glob for f in rest):
        raise Refused(f"file names could change what it does: git {verb}")
    if verb in ("branch", "tag"):
        if operands and not (flags & _LISTS[verb]):
            raise Refused(f"changes the repository: git {verb}")
    elif verb in ("stash", "worktree", "submodule", "notes", "reflog", "remote"):
        reads = _READS[verb]
        first = operands[0] if operands else ""
        bare_reads = verb in ("remote", "reflog", "submodule") or (verb == "notes" and not flags)
        if not operands and not bare_reads:
            raise Refused(f"changes the repository: git {verb}")
        shows = verb == "reflog" and first not in ("expire", "delete", "exists", "drop", "write")
        if operands and not shows and (first not in reads or len(operands) - 1 > reads[first]):
            raise Refused(f"changes the repository or uses the network: git {verb} {first}")
        return [f for f in rest if f.text != first or shows]
    elif verb == "config":
        named = _names_one(rest, operands)
        if not (named or flags & {"get", "get-all"} or operands[:1] == ["get"]) or _SECRET_KEY.search(
            " ".join(operands)
        ):
            raise Refused("git config that may write or show secrets")
    elif verb in _SHOWS:
        options = list(takewhile(lambda t: t != "--", (f.text for f in rest)))
        dry = verb == "clean" and any(re.fullmatch(r"-[dxXq]*n[ndxXq]*", t) for t in options)
        if not dry and not _SHOWS[verb].intersection(options):
            raise Refused(f"changes files: git {verb}")
    return rest


def _names_one(rest: Sequence[Form], operands: Sequence[str]) -> bool:
    """Whether `git config` is given the name of one value and nothing that makes it write."""
    flags = [f.text for f in rest if f.text.startswith("-")]
    plain = all(t.lstrip("-").split("=", 1)[0] in _SCOPES and t != "--type" for t in flags)
    return plain and len(operands) == 1 and "." in operands[0]


@dataclass(frozen=True, slots=True)
class _Call:
    """What follows git's verb."""

    texts: list[str]

    @property
    def flags(self) -> list[str]:
        return [t for t in self.texts if t.startswith("-")]

    @property
    def letters(self) -> set[str]:
        return {c for t in self.flags if not t.startswith("--") for c in t[1:]}

    @property
    def operands(self) -> list[str]:
        return [t for t in self.texts if not t.startswith("-")]

    def has(self, *longs: str) -> bool:
        """Git takes every unambiguous beginning of a long option."""
        given = [t.split("=", 1)[0] for t in self.flags if len(t) > 2 and t.startswith("--")]
        return any(long.startswith(t) for t in given for long in longs)


def _loses_files(verb: str, call: _Call) -> bool:
    """Uncommitted work, or the only name of a commit."""
    return {
        "reset": call.has("--hard", "--merge", "--keep"),
        "clean": ("f" in call.letters or call.has("--force")) and not ("n" in call.letters or call.has("--dry-run")),
        "checkout": "--" in call.texts
        or bool(call.letters & {"f", "B", "p"})
        or call.has("--force", "--ours", "--theirs", "--pathspec-from-file", "--patch")
        or any(t in (".", "./", ":/", "*") or t.startswith((":", "./", "../", "*")) for t in call.operands)
        or any(re.search(r"\.[A-Za-z]{1,5}$", t) for t in call.operands)
        or len(call.operands) > 1 + 2 * ("b" in call.letters),
        "restore": not (call.has("--staged") or "S" in call.letters) or call.has("--worktree") or "W" in call.letters,
        "stash": call.operands[:1] in (["clear"], ["drop"]),
        "branch": bool(call.letters & {"D", "M", "C", "f"})
        or (bool(call.letters & {"d", "m"}) and call.has("--force"))
        or call.has("--force"),
        "switch": bool(call.letters & {"f", "C"}) or call.has("--force", "--discard-changes", "--force-create"),
        "rm": "f" in call.letters or call.has("--force") or ("r" in call.letters and not call.has("--cached")),
        "worktree": call.operands[:1] == ["remove"] and ("f" in call.letters or call.has("--force")),
        "reflog": call.operands[:1] in (["expire"], ["delete"], ["drop"]),
    }.get(verb, False)


def _loses_history(verb: str, call: _Call) -> bool:
    """What git keeps as a way back."""
    return {
        "gc": call.has("--prune", "--aggressive"),
        "prune": True,
        "update-ref": True,
        "filter-branch": True,
        "filter-repo": True,
        "read-tree": call.has("--reset") or "u" in call.letters,
        "checkout-index": "f" in call.letters or call.has("--force"),
        "submodule": call.operands[:1] == ["deinit"] and ("f" in call.letters or call.has("--force", "--all")),
        "tag": bool(call.letters & {"d", "f"}) or call.has("--delete", "--force"),
        "notes": call.operands[:1] in (["remove"], ["prune"]),
        "replace": True,
    }.get(verb, False)


def git_breaker(args: Sequence[Form]) -> str:
    """Why a git call asks every time: lost work, rewritten published history, planted code.  Empty if it need not."""
    _, verb, rest = git_verb(args)
    if verb == "git":  # a common new name for git itself
        _, verb, rest = git_verb(rest)
    call = _Call([f.shortest for f in rest])
    if any("ext::" in f.text or "fd::" in f.text for f in args):
        return "a git transport that runs a command"

    if _loses_files(verb, call) or _loses_history(verb, call):
        return f"may lose work: git {verb}"
    if verb == "push" and (
        call.letters & {"f", "d"}
        or call.has("--force", "--force-with-lease", "--force-if-includes", "--mirror", "--delete", "--prune")
        or any(t.startswith(("+", ":")) for t in call.operands)
    ):
        return "rewrites or deletes published history: git push"
    if verb == "credential" or (verb.startswith("credential-")):
        return "shows stored passwords: git credential"
    if verb == "config" and not (_names_one(rest, call.operands) and not _SECRET_KEY.search(call.operands[0])):
        return _config(call.texts, call.flags, call.operands)
    return ""


def _config(texts: list[str], flags: list[str], operands: list[str]) -> str:
    if any(t.lstrip("-").split("=", 1)[0] in _CONFIG_READS for t in flags) or operands[:1] in (["get"], ["list"]):
        return ""
    operands = operands[1:] if operands[:1] in (["set"], ["unset"]) else operands
    if not flags and len(operands) < 2 and texts[:1] not in (["unset"], ["edit"], ["set"]):
        return ""
    wide = any(
        t.startswith(("--gl", "--sy", "--wo", "--file", "--edit", "--ren", "--rem")) or t in ("-f", "-e") for t in flags
    )
    if not wide and operands and _HARMLESS_KEYS.fullmatch(operands[0].casefold()):
        return ""
    return "changes git's settings, which can name programs to run: git config"
