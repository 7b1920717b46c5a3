"""What the settings of a repository name and git runs or reads from elsewhere: hooks, further settings, programs.

A repository may have been told long ago to take its hooks from `tools/hooks`; whoever writes there has git run it without
touching a setting.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from hypercode.safety.bounded_read import names_in, start_of
from hypercode.safety.git_config import common_folder, entries, names_program, pointed, runs_in

__all__ = ["folders_of", "named", "shared"]

_LIMIT = 100_000
_MOST_SETTINGS, _MOST_FILES, _MOST_BASES, _MOST_HOOKS, _MOST_NAMED = 2_000, 20, 8, 300, 200
_MOST_WORDS = 20
_WORD = re.compile(r"[^\s'\"`;|&()<>\0]+")


def folders_of(place: str) -> list[str]:
    """The git folder at a path, or where the file there points, and the common folder of linked work trees."""
    folder: Path | None = Path(place)
    if not os.path.isdir(place):
        folder = pointed(Path(place))
    return [] if folder is None else list(dict.fromkeys((str(folder), str(common_folder(folder)))))


def shared(place: str) -> str:
    """The folder that a linked work tree shares with others, where it knows the `.git` file at this path and all that the file
    makes git run comes from it; empty otherwise."""
    folder = None if os.path.isdir(place) else pointed(Path(place))
    if folder is None or runs_in(folder, Path(place)):
        return ""
    common = os.path.realpath(common_folder(folder))
    try:
        back = start_of(str(folder / "gitdir"), _LIMIT).rstrip(b"\r\n")
    except OSError:
        return ""
    if b"\0" in back or os.path.realpath(folder / os.fsdecode(back)) != os.path.realpath(place):
        return ""
    return common if common != os.path.realpath(folder) else ""


def named(place: str) -> tuple[list[str], list[str]]:
    """The files of settings of a repository, those that they include among them; and its hooks, what the settings name, and
    the settings themselves where they are elsewhere.

    Names may be of what is not there (yet).  At most 20 files are read, 100 kB of each, and 200 names are found.
    """
    gits = folders_of(place)
    settings = [f"{git}/{name}" for git in gits for name in ("config", "config.worktree")]
    found = dict.fromkeys(islice(chain(_own(place, gits), _named(place, gits, settings)), _MOST_NAMED))
    return settings, list(found)


def _named(place: str, gits: list[str], settings: list[str]) -> Iterator[str]:
    """What the settings name; the files that they include are added to these."""
    bases = [os.path.dirname(place), *gits]
    for file in settings:  # grows meanwhile
        for section, _, key, value in _read(file):
            if not value or "\0" in value:
                continue
            if section == "core" and key == "worktree":
                bases = [*bases, *(_joined(git, value) for git in gits)][:_MOST_BASES]
            elif section == "core" and key == "hookspath":
                for base in bases:
                    yield from _hooks(_joined(base, value), place)
            elif section in ("include", "includeif"):
                included = _joined(os.path.dirname(file), value)
                yield included
                if len(settings) < _MOST_FILES and included not in settings:
                    settings.append(included)
            elif names_program(section, key, value, False):
                for base in bases:
                    yield from _programs(base, value)


def _own(place: str, gits: Iterable[str]) -> Iterator[str]:
    """The hooks, and where they are that are links; of a folder elsewhere the settings, too."""
    for git in gits:
        if git != place:
            yield f"{git}/config"
        hooks = f"{git}/hooks"
        try:
            names = [name for name in names_in(hooks, _MOST_HOOKS) if not name.endswith(".sample")]
        except PermissionError:
            names = [""]  # git runs them all the same
        except OSError:
            continue
        if names:
            yield os.path.realpath(hooks)
        yield from (os.path.realpath(f"{hooks}/{name}") for name in names if os.path.islink(f"{hooks}/{name}"))


def _read(file: str) -> Iterator[tuple[str, str, str, str | None]]:
    """The settings of a file, as far as they are written as git writes them."""
    try:
        text = start_of(file, _LIMIT).decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        yield from islice(entries(text), _MOST_SETTINGS)
    except (OSError, ValueError):
        pass


def _joined(base: str, value: str) -> str:
    return os.path.normpath(os.path.join(base, os.path.expanduser(value)))


def _hooks(folder: str, place: str) -> list[str]:
    """The folder of the hooks; where it is one with other things in it, the files there that can be hooks."""
    if not f"{place}/".startswith(f"{folder}/"):
        return [folder]
    try:
        names = names_in(folder, _MOST_HOOKS)
    except OSError:
        return []
    files = (f"{folder}/{name}" for name in names)
    return [file for file in files if os.path.isfile(file) and os.access(file, os.X_OK)]


def _programs(base: str, value: str) -> Iterator[str]:
    """The files that the first words of a command name."""
    for word in islice(_WORD.finditer(value.removeprefix("!")), _MOST_WORDS):
        place = _joined(base, word[0])
        if os.path.isfile(place) or ("/" in word[0] and not os.path.lexists(place)):
            yield place
