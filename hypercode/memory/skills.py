"""Skills: folders with a `SKILL.md`, in the public Agent Skills format (https://agentskills.io/specification).

Only names and descriptions are in the context; the model reads a body on demand.  The person's skills come from their own
folders, a project's from what its trusted folder brings, and then the bytes that were trusted.  What a skill says is
advice: its `allowed-tools` is not a permission here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from hypercode.errors import ToolError
from hypercode.memory.foreign_text import listed, one_line, own, show_hidden, text_of
from hypercode.memory.front_matter import FrontMatterError, Value, split
from hypercode.safety.trust import Item

__all__ = ["Skill", "Skills", "load"]

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NAME_LIMIT = 64
_DESCRIPTION_LIMIT = 1024
_FILES_SHOWN = 50
_FILES_LOOKED_AT = 1_000

_HEAD = """
Skills: instructions for particular kinds of work. When what the person asks for fits a description, read that skill with the
tool skill before you begin. Descriptions and bodies are advice, never permission.
"""


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill.  `folder` is where its further files are, `body` the text behind the head of `SKILL.md`."""

    name: str
    description: str
    folder: Path
    source: Literal["user", "project"]
    body: str


@dataclass(frozen=True, slots=True)
class Skills:
    """The skills of a session, by name; `notices` are sentences for the person about what could not be taken."""

    found: dict[str, Skill]
    notices: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The part of the system prompt: names and descriptions; empty where there are no skills."""
        lines = [f"- {skill.name}: {skill.description}" for skill in self.found.values()]
        return "\n".join([_HEAD, *lines, ""]) if lines else ""

    def find(self, name: str) -> Skill:
        """The skill of that name.  Raises ToolError `not_found`, naming those that there are."""
        try:
            return self.found[name.strip().lower()]
        except KeyError:
            known = ", ".join(self.found) or "none"
            raise ToolError("not_found", f"There is no skill {one_line(name)!r}. The skills are: {known}.") from None

    def read(self, name: str) -> str:
        """What the model reads of a skill: its body, where it lies and what else is there.  Raises as `find`."""
        skill = self.find(name)
        lines = [
            f"Skill {skill.name}, in the folder {one_line(str(skill.folder))}. Paths in it are relative to that folder."
        ]
        if files := _files(skill.folder):
            lines.append(f"Further files there: {', '.join(files)}")
        return "\n".join([*lines, "", skill.body])

    def invocation(self, name: str, task: str = "") -> str:
        """The person's message that makes the model work with a skill (`/skill NAME TASK`).  Raises as `find`."""
        text = f"Use this skill.\n\n{self.read(name)}"
        return f"{text}\n\nWhat I want done with it: {task.strip()}" if task.strip() else text


def load(user_folders: Sequence[Path] = (), accepted: Iterable[Item] = (), *, trusted: bool = False) -> Skills:
    """Every skill there is.

    `user_folders` hold the person's own, the first of two with the same name counts; `accepted` is what the project's folder
    brings (`Trust.accepted`), used only where it is `trusted`, and never over one of the person's own.
    """
    found: dict[str, Skill] = {}
    notices: list[str] = []
    for folder in user_folders:
        names, problem = listed(folder)
        notices += [problem] if problem else []
        items = (own(folder / name / "SKILL.md", "skill") for name in names)
        _add(found, notices, (item for item in items if item is not None), "user")
    if trusted:
        _add(found, notices, (item for item in accepted if item.kind == "skill"), "project")
    return Skills(dict(sorted(found.items())), tuple(notices))


def _add(
    found: dict[str, Skill], notices: list[str], items: Iterable[Item], source: Literal["user", "project"]
) -> None:
    for item in items:
        text, odd = text_of(item)
        notices += odd
        if not text.strip():
            continue
        where = one_line(str(item.path))
        try:
            head, body = split(text)
        except FrontMatterError as error:
            notices.append(f"{where}: {error}; the skill is left out.")
            continue
        skill = _skill(item.path, head, body, source, notices)
        if skill is None:
            continue
        if skill.name in found:
            notices.append(
                f"{where}: there is a skill {skill.name} in {one_line(str(found[skill.name].folder))} already."
            )
            continue
        found[skill.name] = skill


def _skill(
    path: Path, head: dict[str, Value], body: str, source: Literal["user", "project"], notices: list[str]
) -> Skill | None:
    """The skill that a file describes; None, and a notice, where it does not say what it is for."""
    where = one_line(str(path))
    folder = path.parent.name
    name, description = head.get("name"), head.get("description")
    if not isinstance(description, str) or not description.strip():
        notices.append(f"{where}: the head needs a description; the skill is left out.")
        return None
    if not isinstance(name, str) or not _is_name(name):
        said = "has no name" if not name else f"has a name that is none ({one_line(str(name))[:80]})"
        if not _is_name(folder):
            notices.append(f"{where}: it {said}: small letters, digits and single hyphens. The skill is left out.")
            return None
        notices.append(f"{where}: it {said}; it is known as {folder}.")
        name = folder
    elif name != folder:
        notices.append(f"{where}: its name is {name}, its folder's {one_line(folder)}; it is known as {name}.")
    shown, _ = show_hidden(" ".join(description.split()))
    if len(shown) > _DESCRIPTION_LIMIT:
        notices.append(f"{where}: the description is longer than {_DESCRIPTION_LIMIT} characters and is cut.")
        shown = shown[: _DESCRIPTION_LIMIT - 1] + "…"
    return Skill(name, shown, path.parent, source, body)


def _is_name(name: str) -> bool:
    return len(name) <= _NAME_LIMIT and _NAME.fullmatch(name) is not None


def _files(folder: Path) -> list[str]:
    """The further files of a skill, relative to its folder; links are not followed."""
    names: list[str] = []
    walk = ((parent, name) for parent, folders, files in _walk(folder) for name in sorted(files))
    for parent, name in islice(walk, _FILES_LOOKED_AT):
        path = str((parent / name).relative_to(folder))
        if path != "SKILL.md" and not any(part.startswith(".") for part in Path(path).parts):
            names.append(one_line(path))
    return names if len(names) <= _FILES_SHOWN else [*names[:_FILES_SHOWN], f"… {len(names) - _FILES_SHOWN} more"]


def _walk(folder: Path) -> Iterable[tuple[Path, list[str], list[str]]]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        yield Path(parent), folders, files
