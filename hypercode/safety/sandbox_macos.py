"""The sandbox-exec profile for macOS.  Untested: it has never run on a Mac; its text is compared with a golden file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from hypercode.safety.sandbox_policy import HOOK_PLACES, Policy, git_folders, secret_places

__all__ = ["PROGRAM", "profile"]

PROGRAM = "/usr/bin/sandbox-exec"

_BASE = """\
(version 1)
(deny default)
(allow process-fork process-exec)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.logger"))
(allow ipc-posix-sem ipc-posix-shm)
(allow file-read*)
(allow file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/dtracehelper"))
"""


def profile(policy: Policy, guarded: Iterable[Path], *, git: bool, network: bool) -> str:
    """The profile text; `guarded` stays as it is.  Later rules win; paths are real ones (`/private/...`) and compared without regard to case."""
    lines = [_BASE + "(allow file-write*", *(f"  {_below(path)}" for path in (*policy.roots, policy.temp)), ")"]
    gits = [folder for folder in git_folders(policy.workspace) if git]
    closed = [path for path in guarded if not (git and path.name == ".git")]
    lines += ["(deny file-write*", *(f"  {_below(path)}" for path in closed), ")"]
    if gits:
        lines += ["(allow file-write*", *(f"  {_below(folder)}" for folder in gits), ")"]
        places = [folder / name for folder in gits for name in (*HOOK_PLACES, "commondir")]
        lines += ["(deny file-write*", *(f"  {_below(place)}" for place in places), ")"]
    if hidden := secret_places(policy):
        lines += ["(deny file-read* file-write*", *(f"  {_below(path)}" for path in hidden), ")"]
    if readable := [path for path in policy.readable if os.path.exists(path)]:
        lines += ["(allow file-read*", *(f"  {_below(path)}" for path in readable), ")"]
    if network:
        lines += ["(allow network-outbound (remote ip))", "(allow system-socket)"]
    return "\n".join(lines) + "\n"


def _below(path: Path) -> str:
    """A filter for a path and all below it, as a regular expression: those can be written without regard to case."""
    pattern = "".join(_either_case(character) for character in str(path))
    return f'(regex #"^{pattern}(/|$)")'


def _either_case(character: str) -> str:
    lower, upper = character.lower(), character.upper()
    if lower != upper and len(lower) == len(upper) == 1:
        return f"[{lower}{upper}]"
    if character == '"':
        return "."  # nothing escapes a quote in this kind of string
    return re.escape(character).replace("\\ ", " ")
