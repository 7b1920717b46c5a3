"""The person's own slash commands: Markdown files in `commands/`, whose text is a message with places for arguments.

`$ARGUMENTS` stands for everything behind the command, `$1` to `$9` for its words (quotes keep words together), `\\$` for a
dollar sign; a text without any of them gets the arguments at its end.  A head may have `description` and `argument-hint`.
Nothing in a command is run: it is text that goes to the model as if it had been typed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hypercode.memory.foreign_text import listed, one_line, own, show_hidden, text_of
from hypercode.memory.front_matter import FrontMatterError, Value, split
from hypercode.safety.trust import Item

__all__ = ["UserCommand", "UserCommands", "load"]

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_PLACE = re.compile(r"\\\$|\$ARGUMENTS\b|\$([1-9])(?!\d)")
_ABOUT_LIMIT = 100


@dataclass(frozen=True, slots=True)
class UserCommand:
    """One command.  `about` is a line for the list of commands, `hint` what arguments it takes."""

    name: str
    about: str
    hint: str
    path: Path
    source: Literal["user", "project"]
    body: str

    def expand(self, arguments: str = "") -> str:
        """The message: the text with the arguments in their places; what stands in an argument is not a place again."""
        arguments = arguments.strip()
        words = _words(arguments)
        used = False

        def fill(match: re.Match[str]) -> str:
            nonlocal used
            if match[0] == "\\$":
                return "$"
            used = True
            if match[1] is None:
                return arguments
            place = int(match[1]) - 1
            return words[place] if place < len(words) else ""

        text = _PLACE.sub(fill, self.body).strip()
        return f"{text}\n\n{arguments}" if arguments and not used else text


@dataclass(frozen=True, slots=True)
class UserCommands:
    """The commands by name, sorted; `notices` are sentences for the person about what could not be taken."""

    found: dict[str, UserCommand]
    notices: tuple[str, ...] = ()

    @property
    def names(self) -> dict[str, str]:
        """Each command with a line about it."""
        return {name: f"{c.hint} — {c.about}" if c.hint else c.about for name, c in self.found.items()}


def load(
    user_folders: Sequence[Path],
    accepted: Iterable[Item] = (),
    *,
    trusted: bool = False,
    builtin: Collection[str] = (),
) -> UserCommands:
    """Every command there is; a name of `builtin` is refused, with a notice.

    `accepted` is what the project's folder brings (`Trust.accepted`), used only where it is `trusted`, and never over one of
    the person's own.
    """
    found: dict[str, UserCommand] = {}
    notices: list[str] = []
    for folder in user_folders:
        names, problem = listed(folder)
        notices += [problem] if problem else []
        items = (own(folder / name, "command") for name in names if name.endswith(".md"))
        _add(found, notices, (item for item in items if item is not None), "user", builtin)
    if trusted:
        _add(found, notices, (item for item in accepted if item.kind == "command"), "project", builtin)
    return UserCommands(dict(sorted(found.items())), tuple(notices))


def _add(
    found: dict[str, UserCommand],
    notices: list[str],
    items: Iterable[Item],
    source: Literal["user", "project"],
    builtin: Collection[str],
) -> None:
    for item in items:
        where = one_line(str(item.path))
        name = item.path.name.removesuffix(".md")
        text, odd = text_of(item)
        notices += odd
        if not text.strip():
            continue
        if problem := _unusable(name, found, builtin):
            notices.append(f"{where}: {problem}; the command is left out.")
            continue
        try:
            head, body = split(text)
        except FrontMatterError as error:
            notices.append(f"{where}: {error}; the command is left out.")
            continue
        if not body.strip():
            notices.append(f"{where}: there is no text behind its head; the command is left out.")
            continue
        about = _line(head.get("description")) or _line(next(line for line in body.split("\n") if line.strip()))
        found[name] = UserCommand(name, about, _line(head.get("argument-hint")), item.path, source, body)


def _unusable(name: str, found: dict[str, UserCommand], builtin: Collection[str]) -> str:
    if not _NAME.fullmatch(name):
        return f"{one_line(name)[:60]!r} is no name for a command (small letters, digits, - and _, at most 40)"
    if name in builtin:
        return f"/{name} is a command of hypercode itself"
    if name in found:
        return f"there is a command /{name} in {one_line(str(found[name].path.parent))} already"
    return ""


def _line(value: Value | None) -> str:
    """A value of the head on one short line; a list (`[file] [line]` read as one) as it was meant."""
    text = " ".join(f"[{v}]" for v in value) if isinstance(value, list) else value if isinstance(value, str) else ""
    shown, _ = show_hidden(" ".join(text.split()).lstrip("# "))
    return shown if len(shown) <= _ABOUT_LIMIT else shown[: _ABOUT_LIMIT - 1] + "…"


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:  # a quote without its end: an apostrophe
        return arguments.split()
