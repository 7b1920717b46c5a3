"""What an examination finds: one thing that holds, or does not, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "Level"]

Level = Literal["ok", "warning", "problem"]
"""A `problem` keeps something from working that is needed; a `warning` is worth knowing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`area` is what was looked at (`key`, `sandbox`, …), `text` what was seen, `todo` what to do, empty where nothing is."""

    area: str
    level: Level
    text: str
    todo: str = ""
