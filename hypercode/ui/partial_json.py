"""Arguments of a tool call while they still arrive."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["partial_arguments"]

_LOOK = 4_000
_OPENERS = {"{": "}", "[": "]"}


def partial_arguments(text: str) -> dict[str, Any]:
    """What the beginning of a JSON object says so far; {} where nothing can be told yet.

    Only the first few thousand characters are looked at: this feeds a one-line banner.
    """
    text = text[:_LOOK]
    for candidate in _closings(text):
        try:
            value = json.loads(candidate, strict=False)
        except ValueError:
            continue
        return value if isinstance(value, dict) else {}
    return {}


def _closings(text: str) -> list[str]:
    """The text made whole in a few ways: as it is, with its string closed, cut back to the last comma."""
    ends, in_string, escaped, last_comma = [], False, False, 0
    comma_ends: list[str] = []
    for position, character in enumerate(text):
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in _OPENERS:
            ends.append(_OPENERS[character])
        elif character in "}]" and ends:
            ends.pop()
        elif character == ",":
            last_comma, comma_ends = position, list(ends)
    closing = "".join(reversed(ends))
    body = text[:-1] if escaped else text
    found = [body + '"' + closing, body.rsplit("\\", 1)[0] + '"' + closing] if in_string else [body + closing]
    if last_comma:
        found.append(text[:last_comma] + "".join(reversed(comma_ends)))
    return found
