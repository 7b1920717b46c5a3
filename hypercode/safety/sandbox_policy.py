"""What a boxed command may touch: the lists, and what of them exists on this machine.

Nothing here depends on the kind of box.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from hypercode.safety.bounded_read import names_in
from hypercode.safety.git_config import common_folder, pointed
from hypercode.safety.path_rules import HOME_SECRETS

__all__ = ["HOOK_PLACES", "Policy", "git_folders", "protected", "redirects", "secret_places"]

_PROTECTED = (
    *(
        ".hypercode",
        ".vscode",
        ".idea",
        ".fleet",
        ".zed",
        ".cursor",
        ".windsurf",
        ".claude",
        ".codex",
        ".gemini",
        ".kiro",
    ),
    *(
        ".roo",
        ".continue",
        ".devcontainer",
        ".devcontainer.json",
        ".husky",
        ".githooks",
        ".mcp.json",
        ".envrc",
        ".direnv",
    ),
    *(".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".vimrc", ".dir-locals.el", ".gdbinit", ".lldbinit", ".mise.toml"),
    *("AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", ".cursorrules", ".windsurfrules"),
)
"""In a workspace: what editors, shells and assistants obey without being asked."""

_HOME_PROTECTED = (
    *(
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
    ),
    *(".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xinitrc", ".xprofile", ".xsession"),
    *(
        ".pam_environment",
        ".config",
        ".local/bin",
        ".local/share/systemd",
        ".local/share/applications",
        ".gitconfig",
        ".vim",
    ),
    *(".emacs", ".emacs.d", ".screenrc", ".tmux.conf", ".condarc", ".pip", ".wgetrc", ".curlrc", ".rhosts", ".forward"),
    *("Library/LaunchAgents", "Library/Preferences"),
)
"""In a home folder, where it is (part of) the workspace: what runs at the next log-in."""

_MORE_SECRETS = (("etc", "shadow"), ("etc", "gshadow"), ("etc", "sudoers.d"), ("var", "spool", "cron"))

HOOK_PLACES = ("hooks", "config", "config.worktree", "info/attributes")
"""In a git folder: what git runs, or takes the names of programs from."""

_NESTED_MOST = 10
_MOST_TREES = 500


@dataclass(frozen=True, slots=True)
class Policy:
    """The folders of a session; kept with their links followed.

    `roots` are writable, the workspace first; `temp` is the session's own temporary folder; `own` (configuration, state,
    cache of the program) is hidden except what is `readable` (kept outputs, skills); `quarantine` takes what must not stay.
    """

    roots: tuple[Path, ...]
    home: Path
    temp: Path
    quarantine: Path
    own: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        for name in ("home", "temp", "quarantine"):
            object.__setattr__(self, name, _real(getattr(self, name)))
        for name in ("roots", "own", "readable"):
            object.__setattr__(self, name, tuple(dict.fromkeys(map(_real, getattr(self, name)))))

    @property
    def workspace(self) -> Path:
        """The folder commands run in."""
        return self.roots[0]

    def inside(self, path: Path) -> bool:
        """Whether a path lies in one of the writable folders."""
        return any(path.is_relative_to(root) for root in self.roots)

    def steady(self, place: Path) -> bool:
        """Whether a folder that is mounted on itself stays where it is: no command can move one in which it lies."""
        return not any(root != place and root != place.parent and place.is_relative_to(root) for root in self.roots)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def protected(policy: Policy, repositories: Iterable[Path]) -> list[Path]:
    """What must stay as it is or stay away, whether it exists or not.

    `repositories` are the git folders below the roots, the nearest first; a few of them count, since each mount has its cost.
    """
    paths = [root / name for root in policy.roots for name in (".git", *_PROTECTED)]
    paths += islice(repositories, _NESTED_MOST)
    if policy.inside(policy.home):
        paths += [policy.home / name for name in _HOME_PROTECTED]
    return list(dict.fromkeys(paths))


def secret_places(policy: Policy) -> list[Path]:
    """Files and folders that no command may read, as far as they exist, links followed."""
    found = [*_matching(policy.home, HOME_SECRETS), *_matching(Path("/"), _MORE_SECRETS), *policy.own]
    kept = [path for path in set(map(_real, found)) if _open_to_us(path) and not _holds_root(path, policy)]
    return sorted(path for path in kept if not any(other != path and path.is_relative_to(other) for other in kept))


def _open_to_us(path: Path) -> bool:
    """What this process cannot read a command cannot read either."""
    return os.access(path, os.R_OK) or (os.path.isdir(path) and os.access(path, os.X_OK))


def _holds_root(path: Path, policy: Policy) -> bool:
    return any(root.is_relative_to(path) for root in policy.roots)


def _matching(folder: Path, rows: Iterable[Sequence[str]]) -> list[Path]:
    """What of the rows exists below a folder; names are compared without regard to case, `@` stands for a blank."""
    first: dict[str, list[Sequence[str]]] = {}
    for row in rows:
        first.setdefault(row[0].replace("@", " "), []).append(row[1:])
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found: list[Path] = []
    for name in names:
        folded = name.casefold()
        for word, rests in first.items():
            if folded == word or ("*" in word and fnmatchcase(folded, word)):
                found += [folder / name] if () in map(tuple, rests) else _matching(folder / name, rests)
    return found


def git_folders(workspace: Path) -> list[Path]:
    """The git folder of the repository that holds the workspace and, for a linked work tree, the common folder; real paths."""
    for folder in (workspace, *workspace.parents):
        git = folder / ".git"
        if os.path.isdir(git):
            return _with_common(git)
        if os.path.isfile(git):
            target = pointed(git)
            return _with_common(target) if target is not None else []
    return []


def _with_common(git: Path) -> list[Path]:
    common = common_folder(git)
    return list(dict.fromkeys(map(_real, (git, common) if os.path.isdir(common) else (git,))))


def redirects(git: Path) -> list[Path]:
    """The files by which a git folder sends git elsewhere, those of its linked work trees (500 at most) included; they may
    be missing."""
    try:
        trees = [git / "worktrees" / name for name in names_in(git / "worktrees", _MOST_TREES)]
    except OSError:
        trees = []
    return [git / "commondir", git / "gitdir", *(tree / name for tree in trees for name in ("commondir", "gitdir"))]
