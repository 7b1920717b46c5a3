"""The ways in which servers send tool calls in pieces, after those of the recorded answers in tests/cases/streams."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Piece = dict[str, Any]


@dataclass
class Sent:
    """A call as a server has it before it is sent: its arguments as text, and the place where that is cut in two."""

    place: int
    name: str
    arguments: dict[str, Any]
    text: str
    cut: int

    @property
    def ident(self) -> str:
        return f"call_{self.place}"

    @property
    def halves(self) -> tuple[str, str]:
        return self.text[: self.cut], self.text[self.cut :]


def piece(name: str | None, arguments: object, **rest: object) -> Piece:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {**rest, "function": function}


def _two(first: Callable[[Sent], Piece], second: Callable[[Sent], Piece]) -> Callable[[list[Sent]], list[list[Piece]]]:
    return lambda calls: [[make(call)] for call in calls for make in (first, second)]


def _head(call: Sent, **changes: object) -> Piece:
    return {**piece(call.name, call.halves[0], index=call.place, id=call.ident, type="function"), **changes}


def _tail(call: Sent, **changes: object) -> Piece:
    return {**piece(None, call.halves[1], index=call.place), **changes}


def _interleaved(calls: list[Sent]) -> list[list[Piece]]:
    return [[_head(call)] for call in calls] + [[_tail(call)] for call in calls]


def _without(fragment: Piece, *keys: str) -> Piece:
    return {key: value for key, value in fragment.items() if key not in keys}


SHAPES: dict[str, Callable[[list[Sent]], list[list[Piece]]]] = {
    "by index": _two(_head, _tail),
    "index from one": _two(lambda c: _head(c, index=c.place + 1), lambda c: _tail(c, index=c.place + 1)),
    "index as text": _two(lambda c: _head(c, index=str(c.place)), lambda c: _tail(c, index=str(c.place))),
    "index always 0": _two(lambda c: _head(c, index=0), lambda c: _tail(c, index=0)),
    "index null": _two(lambda c: _head(c, index=None), lambda c: _tail(c, index=None, id=c.ident)),
    "no index": _two(lambda c: _without(_head(c), "index"), lambda c: _without(_tail(c), "index")),
    "id again": _two(_head, lambda c: _tail(c, id=c.ident)),
    "id empty later": _two(_head, lambda c: _tail(c, id="")),
    "id changes": _two(_head, lambda c: {**piece("", c.halves[1]), "index": c.place, "id": f"other_{c.place}"}),
    "id late": _two(lambda c: _without(_head(c), "id"), lambda c: _tail(c, id=c.ident)),
    "no id": _two(lambda c: _without(_head(c), "id"), _tail),
    "name again": _two(_head, lambda c: piece(c.name, c.halves[1], index=c.place, id=c.ident)),
    "name in two": _two(
        lambda c: piece(c.name[:2], "", index=c.place, id=c.ident), lambda c: piece(c.name[2:], c.text, index=c.place)
    ),
    "name with its space": _two(lambda c: piece(f"functions.{c.name}", c.halves[0], index=c.place, id=c.ident), _tail),
    "nulls later": _two(
        _head, lambda c: {**_tail(c), "id": None, "function": {"name": None, "arguments": c.halves[1]}}
    ),
    "empty object first": _two(
        lambda c: piece(c.name, "{}", index=c.place, id=c.ident), lambda c: piece(None, c.text, index=c.place)
    ),
    "all so far": _two(_head, lambda c: piece(None, c.text if c.cut else c.halves[1], index=c.place)),
    "whole": lambda calls: [[piece(c.name, c.text, index=c.place, id=c.ident)] for c in calls],
    "whole, at once": lambda calls: [[piece(c.name, c.text, index=c.place, id=c.ident) for c in calls]],
    "an object": lambda calls: [[piece(c.name, c.arguments, index=c.place, id=c.ident)] for c in calls],
    "interleaved": _interleaved,
}
"""Name → the deltas' `tool_calls`, in order."""


def text_of(arguments: dict[str, Any], *, plain: bool) -> str:
    return json.dumps(arguments, ensure_ascii=not plain)
