"""What an approved command needs beyond the box's usual: the network, or to write the repository's own folder.

A yes to `git push` is of no use in a box without network.  Who approves sees what the command gets; nothing that runs
unasked gets any of it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["Needs", "Passes", "git_words", "needs_of", "reads_widely"]

_NETWORK = frozenset(
    [
        "curl",
        "wget",
        "ssh",
        "scp",
        "sftp",
        "rsync",
        "ftp",
        "nc",
        "ncat",
        "telnet",
        "ping",
        "dig",
        "host",
        "nslookup",
        "gh",
        "glab",
        "hub",
        "svn",
        "hg",
        "apt",
        "apt-get",
        "dnf",
        "yum",
        "apk",
        "brew",
        "pip",
        "pip3",
        "pipx",
        "uvx",
        "npx",
        "pnpx",
        "bunx",
        "docker",
        "podman",
        "kubectl",
        "helm",
        "terraform",
        "aws",
        "gcloud",
        "az",
        "http",
        "https",
        "heroku",
        "fly",
        "vercel",
    ]
)
_NETWORK_WHEN = {
    "git": frozenset(["push", "pull", "fetch", "clone", "ls-remote", "submodule", "remote"]),
    "npm": frozenset(
        ["install", "i", "ci", "add", "update", "publish", "audit", "exec", "view", "info", "outdated", "login"]
    ),
    "pnpm": frozenset(["install", "i", "add", "update", "publish", "dlx", "audit"]),
    "yarn": frozenset(["install", "add", "up", "upgrade", "publish", "dlx", "npm", ""]),
    "bun": frozenset(["install", "add", "update", "publish", "x"]),
    "uv": frozenset(["pip", "add", "sync", "lock", "tool", "run", "publish", "python"]),
    "poetry": frozenset(["install", "add", "update", "lock", "publish"]),
    "cargo": frozenset(["install", "update", "fetch", "publish", "add", "search", "build", "test", "run", "check"]),
    "go": frozenset(["get", "mod", "install", "build", "test", "run"]),
    "gem": frozenset(["install", "update", "push", "fetch"]),
    "bundle": frozenset(["install", "update", "add", ""]),
    "composer": frozenset(["install", "update", "require"]),
    "mvn": frozenset(["install", "package", "verify", "test", "compile", "deploy"]),
    "gradle": frozenset(["build", "test", "assemble"]),
}
_GIT_WRITES = frozenset(
    [
        "add",
        "commit",
        "merge",
        "rebase",
        "checkout",
        "switch",
        "restore",
        "reset",
        "stash",
        "tag",
        "branch",
        "cherry-pick",
        "revert",
        "rm",
        "mv",
        "pull",
        "fetch",
        "am",
        "apply",
        "init",
        "clean",
        "worktree",
        "notes",
        "bisect",
        "update-index",
        "push",
    ]
)
_WRAPPERS = frozenset(["env", "time", "nice", "nohup", "timeout", "stdbuf", "command", "exec", "sudo"])


_WIDE = frozenset(["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "diff"])


@dataclass(frozen=True, slots=True)
class Needs:
    """What a command gets in the box once it is approved; `hidden`: what it does not, the workspace's files of secrets."""

    network: bool = False
    git: bool = False
    hidden: bool = False

    def __str__(self) -> str:
        words = [word for word, on in (("the network", self.network), ("writing .git", self.git)) if on]
        return " and ".join(words)


@dataclass(slots=True)
class Passes:
    """What the gate granted, for the next run of exactly that command."""

    _granted: dict[str, Needs] = field(default_factory=dict)

    def grant(self, command: str, needs: Needs) -> None:
        """The command was approved with these needs."""
        self._granted[command] = needs

    def take(self, command: str) -> Needs:
        """What the command may have; the pass is used up."""
        return self._granted.pop(command, Needs())


def needs_of(commands: Iterable[str]) -> Needs:
    """The needs of the simple commands of a line, told by their first words."""
    found = [_needs(_words(command)) for command in commands]
    return Needs(any(n.network for n in found), any(n.git for n in found))


def reads_widely(command: str) -> bool:
    """Whether a simple command that only reads may read files that it does not name one by one."""
    words = _words(command)
    program = words[0].rpartition("/")[2] if words else ""
    return program in _WIDE or (program == "git" and "grep" in words) or any(c in command for c in "*?[{")


def git_words(command: str) -> list[str]:
    """The words of a simple command that calls git; none of another one."""
    words = _words(command)
    return words if words and words[0].rpartition("/")[2] == "git" else []


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command, comments=False)
    except ValueError:
        words = command.split()
    while words and (words[0] in _WRAPPERS or "=" in words[0] or words[0][:1].isdigit() or words[0].startswith("-")):
        words = words[1:]
    return words


def _needs(words: list[str]) -> Needs:
    if not words:
        return Needs()
    program = words[0].rsplit("/", 1)[-1]
    if program.startswith("python") and words[1:2] == ["-m"]:
        return _needs(words[2:])
    action = next((w for w in words[1:] if not w.startswith("-")), "")
    network = program in _NETWORK or action in _NETWORK_WHEN.get(program, ())
    return Needs(network, program == "git" and action in _GIT_WRITES)
