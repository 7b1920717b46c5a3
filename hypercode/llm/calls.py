"""Fragments of tool calls → calls.

`index` and `id` are hints that servers use in every possible way; what can be relied on is the order of arrival and that
a call begins with its name.  Arguments that parse are never repaired.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypercode.events import Event, ToolCallDelta, ToolCallStart
from hypercode.llm.sse import parse_int, too_deep
from hypercode.llm.think import SurrogateJoiner
from hypercode.messages import ToolCall, parse_arguments

__all__ = ["CallAssembler", "repair_arguments"]

SENT_BACK = ("extra_content", "provider_specific_fields", "thought_signature")
"""Fields of a call that have to go back with it (signatures of the thinking that led to it)."""

UNNAMED = "unnamed"
"""The name of a call whose own name never came; it is never run."""


@dataclass(slots=True)
class _Open:
    id: str = ""
    name: str = ""
    fragments: list[str] = field(default_factory=list)
    damaged: bool = False
    suspect: bool = False
    announced: int | None = None
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether the arguments are an object already."""
        return self._object() is not None

    @property
    def full(self) -> bool:
        """Whether the arguments are an object with something in it.  An empty one may be the forerunner of the real one."""
        return bool(self._object())

    def _object(self) -> dict[str, Any] | None:
        last = next((f for f in reversed(self.fragments) if not f.isspace()), "")
        return parse_arguments("".join(self.fragments)) if last.rstrip().endswith("}") else None


class CallAssembler:
    """Takes the fragments of one reply's calls in order; `known` are the names of the tools that were offered.

    While `garbled` is set, the fragments hold characters in the place of bytes that were lost.  `pieces` counts the
    fragments that brought something.
    """

    def __init__(self, emit: Callable[[Event], None], known: frozenset[str] = frozenset()) -> None:
        self._emit = emit
        self._known = known
        self._calls: list[_Open] = []
        self._by_index: dict[int, _Open] = {}
        self._announced = 0
        self._lossy = False
        self.garbled = False
        self.pieces = 0

    @property
    def announced(self) -> bool:
        """Whether the name of a call has been shown."""
        return self._announced > 0

    def feed(self, fragment: dict[str, Any]) -> None:
        """Take one entry of `delta.tool_calls`."""
        function = fragment.get("function")
        unreadable = function is not None and not isinstance(function, dict)
        if not isinstance(function, dict):
            function = fragment
        name = function.get("name")
        name = name.strip() if isinstance(name, str) else ""
        arguments = function.get("arguments")
        if arguments is None:
            arguments = ""
        elif not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        ident = fragment.get("id")
        ident = "" if ident is None else str(ident)
        call = self._target(_index(fragment), ident, name, arguments)
        if name or arguments.strip():
            self.pieces += 1
        if self.garbled or unreadable:
            call.damaged = True
        if ident and not call.id:
            call.id = ident
        if name:
            self._name(call, name)
        if arguments:
            if self._lossy and not call.name:
                call.damaged = True  # its name was lost; one that comes later is another call's
            self._arguments(call, arguments)
        for key in SENT_BACK:
            value = fragment.get(key) or (function.get(key) if function is not fragment else None)
            if value:
                call.extra[key] = _merged(call.extra.get(key), value)

    def damage(self) -> None:
        """A line of the stream was lost: mark the calls that it may have belonged to."""
        self._lossy = True
        for call in self._calls:
            if not call.whole:
                call.damaged = True
        if self._calls:
            last = self._calls[-1]
            last.suspect = True
            last.damaged = last.damaged or not last.full

    def finish(self, *, complete: bool = True) -> list[ToolCall]:
        """The calls, arguments parsed or repaired, ids distinct and never empty.

        Where the reply is not `complete`, no arguments (or none but an empty object) are arguments that had not come.
        """
        self._distrust()
        calls: list[ToolCall] = []
        taken = {call.id for call in self._calls}
        used: set[str] = set()
        for call in self._calls:
            if not call.name and not "".join(call.fragments).strip():
                continue
            if not call.name:
                call.name, call.damaged = UNNAMED, True
                self._announce(call)
            if rest := call.joiner.close():
                call.fragments.append(rest)
                call.damaged = True
            ident = call.id
            while not ident or ident in used or (ident != call.id and ident in taken):
                ident = f"call_{os.urandom(12).hex()}"
            used.add(ident)
            text, parsed = repair_arguments(call.fragments)
            if (not parsed and not complete) or too_deep(parsed):
                parsed = None
            extra = {key: value for key, value in call.extra.items() if not too_deep(value)}
            calls.append(ToolCall(ident, call.name, text, parsed, call.damaged, extra))
        return calls

    def _distrust(self) -> None:
        """Where arguments went to the wrong call, to none, or were lost, no call that lacks them is whole.

        Two objects in one call are often the same twice, or begin with an empty one; but not beside a call with nothing.
        """
        texts = [(call, "".join(call.fragments).strip()) for call in self._calls]
        astray = [call for call, text in texts if text and (not call.name or _several(text))]
        broken = any(not call.name or repair_arguments(call.fragments)[1] is None for call in astray)
        lacking = [call for call, text in texts if not text or (broken and not text.strip(" {}"))]
        if astray and lacking:
            for call in astray + lacking:
                call.damaged = True
        if self._lossy:
            for call in lacking:
                call.damaged = True

    def _target(self, index: int | None, ident: str, name: str, arguments: str) -> _Open:
        """The call that a fragment belongs to; a new one where it begins one."""
        if not self._calls:
            return self._new(index)
        last = self._calls[-1]
        known = self._by_index.get(index) if index is not None else None
        same = None
        if ident and (index is None or not name):
            same = known if known is not None and known.id == ident else self._with_id(ident)
        if same is not None:
            current = same
            if index is not None:
                self._by_index[index] = same
        else:
            if index is not None and known is None:
                complete = last.whole or self._lossy  # what was lost may have begun the call that this index means
                if name or ident or (arguments.strip() and complete):
                    return self._new(index)
            current = known or last
        return self._new(index) if self._begins(current, ident, name, arguments) else current

    def _with_id(self, ident: str) -> _Open | None:
        return next((call for call in reversed(self._calls) if call.id == ident), None)

    def _begins(self, current: _Open, ident: str, name: str, arguments: str) -> bool:
        """Whether a fragment that points at a call begins another one."""
        other_id = bool(ident and current.id and ident != current.id)
        if not name:  # an id alone may announce a call whose name is still to come
            more = bool(arguments.strip())
            return other_id and bool(current.name) and current.whole and not (more and current.full)
        if not current.name:
            return other_id and bool(current.fragments)
        if other_id:
            return True
        if name != current.name and {name, current.name} <= self._known and current.name + name not in self._known:
            return True
        if ident and ident == current.id:
            return (
                arguments.strip().endswith("}") and current.whole and _contradict("".join(current.fragments), arguments)
            )
        more = bool(arguments.strip() or name != current.name)
        return more and current.whole and arguments.strip() != "".join(current.fragments).strip()

    def _new(self, index: int | None) -> _Open:
        call = _Open()
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _name(self, call: _Open, name: str) -> None:
        if name == call.name or (call.name and call.fragments):
            return
        if call.name and name.startswith(call.name):
            call.name = name  # the name so far, again
        else:
            call.name += name
        call.name = call.name.removeprefix("functions.") or call.name
        self._announce(call)

    def _announce(self, call: _Open) -> None:
        first = call.announced is None
        if call.announced is None:
            call.announced = self._announced
            self._announced += 1
        self._emit(ToolCallStart(call.announced, call.name))
        if first and call.fragments:
            self._emit(ToolCallDelta(call.announced, "".join(call.fragments)))

    def _arguments(self, call: _Open, arguments: str) -> None:
        if call.suspect:
            call.damaged = True
        arguments = call.joiner.feed(arguments)
        if not arguments:
            return
        call.fragments.append(arguments)
        if call.announced is not None:
            self._emit(ToolCallDelta(call.announced, arguments))


def _index(fragment: dict[str, Any]) -> int | None:
    index = fragment.get("index")
    if isinstance(index, str) and index.isdecimal():
        return parse_int(index)
    if isinstance(index, float) and index.is_integer():
        return int(index)
    return index if isinstance(index, int) and not isinstance(index, bool) else None


def _several(text: str) -> bool:
    """Whether something stands behind the object that the text begins with."""
    if text.count("{") < 2:
        return False
    try:
        return bool(text[_decode(text)[1] :].strip())
    except (ValueError, RecursionError):
        return False


def _contradict(first: str, second: str) -> bool:
    """Whether both texts are whole arguments, and neither is the other one or a beginning of it."""
    one, two = parse_arguments(first), parse_arguments(second)
    if one is None or two is None:
        return False
    return any(key in two and two[key] != value for key, value in one.items()) or not (
        one.keys() <= two.keys() or two.keys() <= one.keys()
    )


def _merged(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{k: _merged(old.get(k), v) for k, v in new.items()}}
    return new


def repair_arguments(fragments: list[str]) -> tuple[str, dict[str, Any] | None]:
    """The arguments as text and as an object, None where they are none.

    The plain join counts if it parses.  Else: text around which the model put a fence, control characters in strings,
    an object inside a string, `{}` before or after the real arguments, the arguments repeated at the end, or each
    fragment repeating all before it.  Two objects that contradict each other are left as they are.
    """
    text = "".join(fragments)
    if not text.strip():
        return "{}", {}
    parsed = parse_arguments(text)
    if parsed is not None:
        return text, parsed
    parsed = _lenient(text)
    if parsed is None and len(fragments) > 1 and fragments[-1].startswith("".join(fragments[:-1])):
        parsed = _lenient(fragments[-1])
    if parsed is None and all(b.startswith(a) for a, b in pairwise(fragments)):
        parsed = _lenient(fragments[-1])
    return (text, None) if parsed is None else (json.dumps(parsed, ensure_ascii=False), parsed)


_decode = json.JSONDecoder(strict=False).raw_decode


def _lenient(text: str) -> dict[str, Any] | None:
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        text = text[text.index("\n") : -3].strip()
    values: list[dict[str, Any]] = []
    while text:
        try:
            value, end = _decode(text)
        except (ValueError, RecursionError):
            return None
        text = text[end:].lstrip()
        if value is None and not text and not values:
            return {}
        if isinstance(value, str) and not text and not values:
            return parse_arguments(value) if value.strip() else None
        if not isinstance(value, dict):
            return None
        values.append(value)
    best = max(values, key=len, default=None)
    if best is None or any(key not in best or best[key] != value for part in values for key, value in part.items()):
        return None
    return best
