"""What an examination finds: one thing that holds, or does not, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "Level", "verdict"]

Level = Literal["ok", "warning", "problem"]
"""A `problem` keeps something from working that is needed; a `warning` is worth knowing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`area` is what was looked at (`key`, `sandbox`, …), `text` what was seen, `todo` what to do, empty where nothing is.

    `todo` is one line: several ways that come one a line are set apart by dots.
    """

    area: str
    level: Level
    text: str
    todo: str = ""

    def __post_init__(self) -> None:
        if "\n" in self.todo:
            lines = (line.strip() for line in self.todo.splitlines())
            object.__setattr__(self, "todo", " · ".join(filter(None, lines)))


def verdict(findings: Sequence[Finding]) -> tuple[bool, str]:
    """Whether nothing that is needed is broken, and a sentence that says so."""
    healthy = all(finding.level != "problem" for finding in findings)
    return healthy, "Everything that is needed works." if healthy else "Something that is needed is broken."
