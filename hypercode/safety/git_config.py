"""What of a repository makes git run something: settings that name a program, and hooks.

Git obeys the settings and hooks of whatever repository it is called in, a `git status` of the person's own included.  The
syntax is that of git-config(1); what cannot be read as git would read it counts as running something.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from hypercode.safety.bounded_read import names_in, start_of, whole

__all__ = [
    "common_folder",
    "entries",
    "is_repository",
    "looks_bare",
    "names_program",
    "object_format",
    "pointed",
    "runs",
    "runs_in",
]

_LIMIT = 300_000
_MOST_LINE, _MOST_HOOKS = 8_192, 1_000
_HEADER = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*)?")
_BOOLEAN = re.compile(r"(?:true|false|yes|no|on|off|[01])?", re.IGNORECASE)

_SECTIONS = frozenset(
    (
        *("alias", "browser", "credential", "difftool", "filter", "guitool", "include", "includeif", "instaweb", "man"),
        *("mergetool", "pager", "protocol", "sendemail"),
    )
)
"""Whatever such a section says, it is about programs, or about further files of settings."""

_KEYS = re.compile(
    r".*(?:command|cmd|program|helper|hook)|gitproxy|askpass|attributesfile|clean|driver|editor|external|extdiff|hookspath|pager"
    r"|process|receivepack|smudge|sshcommand|templatedir|textconv|uploadpack|vcs|worktree|difffilter|path|customtransfer.*"
)
_READING_SECTIONS = frozenset(("filter", "include", "includeif", "protocol"))
_READING_KEYS = re.compile(r"(?!ssh).*command|.*program|clean|external|process|smudge|textconv|uploadpack|vcs|worktree")
_READING_HOOK = "post-index-change"
"""What commands that only look (status, diff, log) obey; the rest they never run, or the environment of children forbids it."""

_RUNNING_VALUE = re.compile(r"\s*!|\w[\w+-]*::|.*\b(?:ext|fd)::")


def runs(git: Path, *, reading: bool = False) -> str:
    """The setting or hook by which a git folder, or the one that a `.git` file points to, runs something; empty if none does.

    `reading`: when a command that only looks is called there.
    """
    folder = git
    if not os.path.isdir(git):
        target = pointed(git)
        if target is None:
            return ""  # git takes no repository from there
        folder = target
    places = dict.fromkeys((folder, common_folder(folder)))
    return next((found for place in places if (found := runs_in(place, git, reading=reading))), "")


def runs_in(folder: Path, git: Path, *, reading: bool = False) -> str:
    """The same for one folder that is meant by the `.git` at a path: what its own settings and hooks run."""
    for name in ("config", "config.worktree"):
        if found := _setting(folder / name, git, reading):
            return found
    return _hook(folder / "hooks", reading)


def looks_bare(names: set[str]) -> bool:
    """Whether a folder with these names in it is a repository to git, whatever it is called."""
    return "HEAD" in names and ({"objects", "refs"} <= names or "commondir" in names)


def is_repository(git: Path) -> bool:
    """Whether git takes a folder for a repository (`is_git_directory`): it has a HEAD, and it or its common folder the rest."""
    common = common_folder(git)
    return os.path.lexists(git / "HEAD") and all(os.path.isdir(common / name) for name in ("objects", "refs"))


def object_format(git: Path) -> str:
    """The name of the hash of a repository, in lower case.  Raises OSError, ValueError where its settings cannot be read."""
    text = whole(common_folder(git) / "config", _LIMIT).decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    found = [value for section, _, key, value in entries(text) if (section, key) == ("extensions", "objectformat")]
    return (found[-1] or "").lower() if found else "sha1"


def pointed(pointer: Path) -> Path | None:
    """The folder to which a `.git` file points; None where there is none."""
    line = _line(pointer)
    if line is None or not line.startswith("gitdir: "):
        return None
    target = pointer.parent / line.removeprefix("gitdir: ")
    return target if os.path.isdir(target) else None


def common_folder(git: Path) -> Path:
    """The folder that a git folder shares with others (`commondir`); itself where it names none."""
    line = _line(git / "commondir")
    return git if line is None else git / line


def _line(path: Path) -> str | None:
    """What git reads of such a file (`read_gitfile`, `get_common_dir`): only line ends at the end of the file are cut off,
    blanks are part of a name, which a NUL ends."""
    try:
        data = start_of(path, _MOST_LINE)
    except OSError:
        return None
    return data.rstrip(b"\r\n").partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _hook(folder: Path, reading: bool) -> str:
    try:
        names = names_in(folder, _MOST_HOOKS)
    except OSError:
        return ""
    if len(names) > _MOST_HOOKS:
        return "hooks, of which there are too many"
    names = [n for n in names if n == _READING_HOOK or not (reading or n.endswith(".sample"))]
    found = next((n for n in names if os.access(folder / n, os.X_OK) and os.path.isfile(folder / n)), "")
    return f"the hook {found}" if found else ""


def _setting(path: Path, git: Path, reading: bool) -> str:
    """The first setting that names a program."""
    try:
        if not os.path.isfile(path):
            return f"{path.name}, which is no file" if os.path.lexists(path) else ""
        data = start_of(path, _LIMIT + 1)
    except OSError:
        return f"{path.name}, which cannot be read"
    if len(data) > _LIMIT:
        return f"{path.name}, which is too large"
    try:
        for section, name, key, value in entries(data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")):
            if names_program(section, key, value, reading):
                if (section, key) == ("core", "worktree") and value and _leads_back(path.parent, value, git):
                    continue  # so git itself sets up a submodule
                return ".".join(part for part in (section, name, key) if part)
    except ValueError:
        return f"{path.name}, which is not written as git writes it"
    return ""


def _leads_back(folder: Path, value: str, git: Path) -> bool:
    """Whether the work tree that a git folder names is the one whose `.git` file points to that folder.

    Of a `.git` file only the tree in which it lies itself; a folder called `.git` has its tree around it and needs to name none.
    """
    tree = os.path.realpath(folder / value) if "\0" not in value else ""
    pointer = Path(tree, ".git")
    if not tree or not os.path.isfile(pointer) or (git.name == ".git" and os.path.realpath(git.parent) != tree):
        return False
    target = pointed(pointer)
    return target is not None and os.path.realpath(target) == os.path.realpath(folder)


def names_program(section: str, key: str, value: str | None, reading: bool) -> bool:
    """Whether a setting names something that git runs; with `reading` only what it runs for harmless commands counts."""
    if section == "core" and key == "fsmonitor":
        return not reading and value is not None and not _BOOLEAN.fullmatch(value)
    if section == "submodule" and key == "path":
        return False
    sections, keys = (_READING_SECTIONS, _READING_KEYS) if reading else (_SECTIONS, _KEYS)
    running = not reading and value is not None and _RUNNING_VALUE.match(value) is not None
    return running or section in sections or keys.fullmatch(key) is not None


def entries(text: str) -> Iterator[tuple[str, str, str, str | None]]:
    """Section, its name, key and value of each setting; sections and keys in lower case.  Raises ValueError."""
    section, name, at = "", "", 0
    text = text.replace("\r\n", "\n")
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] in "#;":
            at = _end_of_line(text, at)
        elif text[at] == "[":
            if (header := _HEADER.match(text, at)) is None:
                raise ValueError(text[at : at + 40])
            section, _, dotted = header[1].lower().partition(".")
            name, at = header[2] or dotted, header.end()
        else:
            if not section or (key := _KEY.match(text, at)) is None:
                raise ValueError(text[at : at + 40])
            if "\n" in key[0]:  # a key alone: true
                at = key.start() + key[0].index("\n")
                yield section, name, key[1].lower(), None
                continue
            value, at = _value(text, key.end())
            yield section, name, key[1].lower(), value


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _value(text: str, at: int) -> tuple[str, int]:
    """A value, which may be quoted, have a comment behind it, and go on in the next line; and where it ends."""
    kept: list[str] = []
    quoted = False
    while at < len(text) and text[at] != "\n":
        c = text[at]
        if c == "\\":
            following = text[at + 1 : at + 2]
            kept.append({"n": "\n", "t": "\t", "b": "\b", "\n": ""}.get(following, following))
            at += 2
            continue
        if c == '"':
            quoted = not quoted
        elif c in "#;" and not quoted:
            at = _end_of_line(text, at)
            break
        else:
            kept.append(c)
        at += 1
    if quoted:
        raise ValueError("an open quote")
    return "".join(kept).strip(), at
