"""How the program itself calls git: so that nothing in a repository can make it run something else."""

from __future__ import annotations

import os

__all__ = ["own_git"]

_GUARDS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.sshCommand=false",
    "protocol.ext.allow=never",
    "safe.bareRepository=explicit",
)
_DRAWS = ("diff", "log", "show")


def own_git(command: str, *arguments: str, program: str = "git") -> list[str]:
    """The argument list of a git call of the program's own, before and after a folder is trusted.

    No file-system monitor, hooks, pager, external diff or text converter, no bare repository that merely lies there, no lock.
    """
    guards = [word for guard in _GUARDS for word in ("-c", guard)]
    drawing = ["--no-ext-diff", "--no-textconv"] if command in _DRAWS else []
    return [program, "--no-optional-locks", "--no-pager", *guards, command, *drawing, *arguments]
