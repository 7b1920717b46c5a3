"""Single faults of a stream, and what must hold of it then: a call is run as it was sent or not at all, a loss is told."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from stream_fuzz import Got, Sent, look_at_history, read

ODD: list[Any] = [
    *(None, True, 0, -1, 1.5, float("nan"), float("inf"), 10**40),
    *("", "x", "7", "null", "\ud800"),
    *([], [[]], [None], [1], ["x"], [{}]),
    *({}, {"a": 1}, {"text": "x"}, {"message": "x"}),
    json.loads('{"a":' * 450 + "1" + "}" * 450),
]
"""Values as they stand in no answer; the last one is too deep to follow, and can still be read."""


ARGUMENTS = re.compile(rb'"arguments": "(?:[^"\\\\]|\\\\")*?([A-Za-z]+)')
"""The first word in the arguments of a call."""


@dataclass
class Fault:
    """A stream with a fault: its bytes, how many of them came before it, and the number of the event that it hit."""

    body: bytes
    faithful: int
    number: int


def _replaced(sent: Sent, number: int, event: bytes) -> Fault:
    before = b"".join(sent.events[:number])
    return Fault(before + event + b"".join(sent.events[number + 1 :]), len(before), number)


@st.composite
def torn(draw, sent: Sent) -> Fault:
    """One chunk before the finish is without its beginning, its end or its field, or has bytes before it."""
    number = draw(st.sampled_from([n for n in range(sent.finish) if sent.chunk(n) is not None]))
    size, event = sent.needed[number], sent.events[number]
    start = event.index(b"{")
    how = draw(st.sampled_from(["beginning", "end", "field", "before"]))
    if how == "beginning":
        event = event[draw(st.integers(1, start) | st.integers(1, size - 1)) :]
    elif how == "end":
        event = event[: draw(st.integers(start + 1, size - 1))] + event[size:]
    elif how == "field":
        event = (
            draw(st.sampled_from([b": ", b"id: ", b"event: ", b"ata: ", b"Data: ", b"dat\xff: ", b" "])) + event[start:]
        )
    else:
        event = draw(st.sampled_from([b"\xff", b"\x00", b"x", b": ping", b"id: 1", b"\xff\xff "])) + event
    return _replaced(sent, number, event)


@st.composite
def unreadable(draw, sent: Sent) -> Fault:
    """One byte of an event is none of any text; often one of the arguments of a call."""
    calls = [number for number, event in enumerate(sent.events) if b'"arguments"' in event]
    number = draw(st.sampled_from(calls or range(len(sent.events))) | st.integers(0, len(sent.events) - 1))
    size, event = sent.needed[number], sent.events[number]
    places = st.integers(0, size - 1)
    if letters := [place for found in ARGUMENTS.finditer(event) for place in range(*found.span(1))]:
        places = st.sampled_from(letters) | places
    place = draw(places)
    return _replaced(sent, number, event[:place] + b"\xff" + event[place + 1 :])


@st.composite
def done_early(draw, sent: Sent) -> Fault:
    """`[DONE]` stands before an event."""
    number = draw(st.integers(1, sent.finish))
    return _replaced(sent, number, b"data: [DONE]\n\n" + sent.events[number])


@st.composite
def of_another_type(draw, sent: Sent) -> Fault:
    """A value anywhere in a chunk is of a type that nobody expects there."""
    number = draw(st.sampled_from([n for n in range(len(sent.events)) if sent.chunk(n) is not None]))
    chunk = sent.chunk(number)
    path = draw(st.sampled_from(list(_paths(chunk))))
    chunk = _with(chunk, path, draw(st.sampled_from(ODD)))
    return _replaced(sent, number, b"data: " + json.dumps(chunk).encode() + b"\n\n")


def _paths(value: Any) -> Any:
    yield ()
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from ((key, *rest) for rest in _paths(inner))


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    inner = _with(value[path[0]], path[1:], new)
    if isinstance(value, dict):
        return {**value, path[0]: inner}
    return [inner if number == path[0] else old for number, old in enumerate(value)]


def look(sent: Sent, parts: list[bytes], fault: Fault) -> Got:
    """What must hold of any of these faults."""
    got, rest = read(parts), iter(sent.calls)
    look_at_history(got)
    assert all(call in rest for call in got.would_run), (got.would_run, sent.calls)
    before = sent.text_within(fault.faithful).removesuffix("\ufffd")  # a half whose other half may have come or not
    assert got.shown.startswith(before), "what came before the fault is shown as it was sent"
    return got


def look_at_torn(sent: Sent, parts: list[bytes], fault: Fault) -> None:
    """A loss is told, and what is shown was sent."""
    got = look(sent, parts, fault)
    assert _whole(got, sent) or got.lost or got.error, "something is missing, and nobody is told"
    if not sent.thought:
        left = iter(sent.text_within(len(sent.body)))
        assert all(character in left for character in got.shown.replace("\ufffd", "")), "this was not sent"


def look_at_done(sent: Sent, parts: list[bytes], fault: Fault) -> None:
    """What stands behind the end is not shown; where it was a part of the answer, that is told."""
    got = look(sent, parts, fault)
    assert got.error is None
    if not sent.thought:
        assert got.shown == sent.text_within(fault.faithful)
    assert _whole(got, sent) or got.lost, "something is missing, and nobody is told"


def _whole(got: Got, sent: Sent) -> bool:
    calls = [(call.name, call.parsed) for call in got.reply.calls if not call.damaged]
    return calls == sent.calls and got.shown == sent.text_within(len(sent.body))
