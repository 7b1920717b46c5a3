"""The command line of bubblewrap for a policy."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hypercode.safety.sandbox_policy import HOOK_PLACES, Policy, git_folders, secret_places

__all__ = ["find_bwrap", "mounts", "options", "with_limits"]

_SYSTEM = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")
FILE_BLOCKS = 4 * 1024 * 1024
"""The largest file a command may write, in the 512-byte blocks of POSIX `ulimit`: 2 GiB."""
PROCESSES = 1024
"""How many processes and threads a box may have; the kernel does not hold root to it."""

# dash calls the number of processes -p, bash -u.
_LIMITS = f'ulimit -c 0; ulimit -f {FILE_BLOCKS}; ulimit -p {PROCESSES} 2>/dev/null || ulimit -u {PROCESSES}; exec "$@"'


def find_bwrap(path: str, policy: Policy) -> str | None:
    """bubblewrap: the system's own first (rules of the distribution name that path), never one from a writable folder."""
    folders = [Path(folder) for folder in path.split(os.pathsep) if folder.startswith("/")]
    for candidate in [*map(Path, _SYSTEM), *(folder / "bwrap" for folder in folders)]:
        real = Path(os.path.realpath(candidate))
        if os.access(real, os.X_OK) and not policy.inside(real) and not real.is_relative_to(policy.temp):
            return str(candidate)
    return None


def options(network: bool) -> list[str]:
    """What is cut off: every namespace, capabilities, the terminal, and the way back to more namespaces."""
    cut = [
        "--unshare-user",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--disable-userns",
    ]
    alone = ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    return [*cut, *([] if network else ["--unshare-net"]), *alone]


def mounts(policy: Policy, guarded: Iterable[Path], *, git: bool, network: bool) -> list[str]:
    """What is seen and what can be written, in the order in which it is laid over each other; `guarded` stays as it is."""
    secrets = secret_places(policy)
    outer = [path for path in secrets if not policy.inside(path)]
    masks, ends = _masked(outer, policy)
    arguments = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", *_from_run(network)]
    arguments += ["--remount-ro", "/run", "--bind", str(policy.temp), "/tmp", *masks]
    for root in policy.roots:
        arguments += ["--bind", str(root), str(root)]
    arguments += _read_only(policy, guarded)
    if git:
        arguments += _writable_git(policy)
    inner, inner_ends = _masked([path for path in secrets if policy.inside(path)], policy)
    arguments += [*inner, *ends, *inner_ends]
    for name in ("TMPDIR", "TMP", "TEMP"):
        arguments += ["--setenv", name, "/tmp"]
    return [*arguments, "--chdir", str(policy.workspace)]


def _from_run(network: bool) -> list[str]:
    """What must stay of /run: the system itself on NixOS, and the name servers if there is a network."""
    kept = [path for path in ("/run/current-system", "/run/wrappers") if os.path.isdir(path)]
    resolver = os.path.realpath("/etc/resolv.conf")
    if network and resolver.startswith("/run/") and os.path.isfile(resolver):
        kept.append(resolver)
    return [word for path in kept for word in ("--ro-bind", path, path)]


def _masked(paths: Iterable[Path], policy: Policy) -> tuple[list[str], list[str]]:
    """Empty folders and the null device over secrets; what may be read below them; and, last, the folders made read-only."""
    masks: list[str] = []
    ends: list[str] = []
    for path in paths:
        if path.is_dir():
            masks += ["--tmpfs", str(path)]
            ends += ["--remount-ro", str(path)]
            for readable in policy.readable:
                if readable.is_relative_to(path) and readable.is_dir():
                    masks += ["--ro-bind", str(readable), str(readable)]
        else:
            masks += ["--ro-bind", "/dev/null", str(path)]
    return masks, ends


def _read_only(policy: Policy, guarded: Iterable[Path]) -> list[str]:
    real = dict.fromkeys(os.path.realpath(path) for path in guarded if os.path.exists(path))
    gits = dict.fromkeys(str(folder) for root in policy.roots for folder in git_folders(root))
    return [word for path in (real | gits) if policy.inside(Path(path)) for word in ("--ro-bind", path, path)]


def _writable_git(policy: Policy) -> list[str]:
    """The git folders on themselves, writable, but for what git runs; hooks are off."""
    words: list[str] = []
    for git in git_folders(policy.workspace):
        words += ["--bind", str(git), str(git)]
        modules = sorted((git / "modules").glob("**/hooks")) if (git / "modules").is_dir() else []
        places = [*(git / name for name in HOOK_PLACES), *(m.parent / n for m in modules for n in HOOK_PLACES)]
        words += [word for place in places if os.path.exists(place) for word in ("--ro-bind", str(place), str(place))]
    # The third: two stand in every command's environment.
    pairs = {"GIT_CONFIG_COUNT": "3", "GIT_CONFIG_KEY_2": "core.hooksPath", "GIT_CONFIG_VALUE_2": "/dev/null"}
    return [*words, *(word for name, value in pairs.items() for word in ("--setenv", name, value))]


def with_limits(argv: list[str]) -> list[str]:
    """The command with limits on file size, processes and core files, set by a shell that then becomes the command."""
    return ["/bin/sh", "-c", _LIMITS, "sh", *argv]
