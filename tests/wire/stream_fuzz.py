"""Random streams: what a server says, cut into pieces anywhere, broken off anywhere, with bytes changed anywhere."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import call_shapes
from hypothesis import strategies as st

from hypercode.errors import ModelError, StreamInterrupted
from hypercode.events import ReasoningDelta, TextDelta
from hypercode.llm.assemble import Assembler
from hypercode.llm.quirks import encode_body
from hypercode.llm.settings import ModelSettings
from hypercode.llm.stream import StreamReader
from hypercode.messages import Reply, check, tool_result, user, well_formed

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "tools" / "streams"))

from replay import segment_writes  # noqa: E402

TOOLS = ["read", "bash", "glob"]
TEXT = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=12).filter(
    lambda text: "<think>" not in text
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT, lambda v: st.lists(v, max_size=2), max_leaves=3
)
NAMES = st.sampled_from(TOOLS)
ENDS = st.sampled_from(["over", "over", "broken", "aborted"])
ALIVE = [": keep-alive", ": OPENROUTER PROCESSING", "data:", "data: : ping", "event: ping\ndata: {}", "id: 7"]
FAILURES: list[Any] = [
    {"error": {"code": 502, "message": "The worker is gone.", "metadata": {"provider_name": "P", "raw": "gone"}}},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": {"code": 429, "message": "slow down"}}]},
    {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]},
    {"object": "error", "message": "too long", "code": 400},
    {"error": "no"},
    "event: error\ndata: " + json.dumps({"message": "worker crashed", "code": 500}),
    'error: {"code": 500, "message": "as llama.cpp says it"}',
]


@dataclass
class Sent:
    """A stream: its events as bytes, with the text and the calls that stand in them."""

    events: list[bytes] = field(default_factory=list)
    needed: list[int] = field(default_factory=list)  # how many bytes of each event are enough to read it
    texts: list[str] = field(default_factory=list)  # one an event, empty for most; pairs of surrogates may be parted
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    thought: int = 0  # the number of the event that closes thinking in tags; empty lines behind that are no text
    finish: int = 0  # the number of the event with the finish reason, or with the error
    reason: str = "stop"
    shape: str = ""

    @property
    def body(self) -> bytes:
        return b"".join(self.events)

    @property
    def ends(self) -> list[int]:
        """Where each event ends, without its newlines."""
        starts = [0, *accumulate(map(len, self.events))]
        return [start + needed for start, needed in zip(starts, self.needed, strict=False)]

    def text_within(self, size: int, *, whole: bool = True) -> str:
        """The text of the events that lie in the first so many bytes, `whole` with their last newline."""
        ends = accumulate(map(len, self.events)) if whole else self.ends
        text = "".join(part for end, part in zip(ends, self.texts, strict=True) if end <= size)
        return well_formed(text.lstrip("\n") if self.thought else text)

    def within(self, number: int, size: int) -> bool:
        """Whether the first so many bytes hold the event of this number."""
        return self.ends[number] <= size


class Writer:
    """Writes a stream as one of many servers would."""

    def __init__(self, draw: Any) -> None:
        self.sent, self.draw = Sent(), draw
        self.newline = draw(st.sampled_from(["\n", "\r\n", "\r"]))
        self.gap = draw(st.sampled_from([2, 2, 1]))
        self.field = draw(st.sampled_from(["data: ", "data: ", "data:"]))
        self.plain = draw(st.booleans())  # other characters than ASCII as they are, not escaped

    def line(self, text: str, said: str = "") -> None:
        data = text.replace("\n", self.newline).encode()
        self.sent.events.append(data + (self.newline * self.gap).encode())
        self.sent.needed.append(len(data))
        self.sent.texts.append(said)

    def event(self, value: object, said: str = "") -> None:
        self.line(self.field + json.dumps(value, ensure_ascii=not self.plain), said)
        if self.draw(st.integers(0, 5)) == 0:
            alive = self.draw(st.sampled_from(ALIVE))
            self.line(": alive" if self.gap == 1 else alive)

    def delta(self, piece: dict[str, Any], finish: str | None = None, said: str = "") -> None:
        self.event({"id": "g", "choices": [{"index": 0, "delta": piece, "finish_reason": finish}]}, said)

    def say(self, text: str, said: str | None = None) -> None:
        """A piece of the answer, as a string or in parts."""
        parts = self.draw(st.integers(0, 4)) == 0
        content = [{"type": "text", "text": text}] if parts else text
        self.delta({"content": content}, said=text if said is None else said)

    def prose(self) -> None:
        """Thinking, in tags or in a field, and text; some pairs of surrogates come in two halves."""
        draw = self.draw
        if draw(st.integers(0, 5)) == 0:
            self.say("<think>" + draw(st.sampled_from(["", "hm", "\n<b>"])), "")
            self.say("so</thi", "")
            self.sent.thought = len(self.sent.events)
            self.say("nk>\n", "")
        for kind, text in draw(st.lists(st.tuples(st.sampled_from("ttttrcm"), TEXT), max_size=6)):
            if kind == "t" and not self.plain and draw(st.integers(0, 3)) == 0:
                self.say(text + "\ud83d")
                self.say("\ude00")
            elif kind == "t":
                self.say(text)
            elif kind == "m":
                self.delta({"reasoning": "hm", "content": text}, said=text)
            else:
                self.delta({"reasoning" if kind == "r" else "reasoning_content": text})

    def tools(self) -> None:
        draw, calls = self.draw, []
        for place, name in enumerate(draw(st.lists(NAMES, max_size=3))):
            arguments = draw(st.dictionaries(st.sampled_from(["path", "command", "n"]), VALUES, max_size=2))
            text = call_shapes.text_of(arguments, plain=self.plain)
            calls.append(call_shapes.Sent(place, name, arguments, text, draw(st.integers(0, len(text)))))
            self.sent.calls.append((name, arguments))
        if len(calls) == 1 and draw(st.integers(0, 5)) == 0:
            for half in calls[0].halves:
                self.delta({"function_call": {"name": calls[0].name, "arguments": half}})
            return
        self.sent.shape = draw(st.sampled_from(sorted(call_shapes.SHAPES)))
        for fragments in call_shapes.SHAPES[self.sent.shape](calls):
            self.delta({"tool_calls": fragments})

    def end(self) -> None:
        """A finish reason and the usage, or an error."""
        sent, draw = self.sent, self.draw
        sent.finish = len(sent.events)
        if draw(st.integers(0, 4)) == 0:
            sent.reason = "error"
            failure = draw(st.sampled_from(FAILURES))
            self.line(failure) if isinstance(failure, str) else self.event(failure)
        else:
            sent.reason = draw(st.sampled_from(["tool_calls" if sent.calls else "stop", "stop", "length", ""]))
            self.delta({}, sent.reason)
            self.event({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}})
        if not sent.reason:
            sent.finish = len(sent.events)
        self.line(self.field + "[DONE]")


@st.composite
def streams(draw) -> Sent:
    """Text and thinking, then calls in one of the shapes there are, with signs of life between, and an end."""
    writer = Writer(draw)
    writer.delta({"role": "assistant", "content": ""})
    writer.prose()
    writer.tools()
    writer.end()
    return writer.sent


@cache
def recorded() -> list[bytes]:
    """The bodies of the recorded answers, without the very long ones."""
    bodies = []
    for path in sorted((TESTS / "cases/streams").glob("*.json")):
        cassette = json.loads(path.read_bytes())
        if path.name != "scripts.json" and (cassette.get("http") or {}).get("status") == 200:
            bodies.append(b"".join(data for s in cassette["segments"] for _, data in segment_writes(s)))
    return [body for body in bodies if len(body) < 8000]


@st.composite
def pieces(draw, body: bytes) -> list[bytes]:
    """The bytes as they arrive: in a few pieces, often between CR and LF, or one by one."""
    if draw(st.integers(0, 9)) == 0:
        return [bytes([byte]) for byte in body]
    places = st.integers(0, len(body))
    if parted := [place + 1 for place, byte in enumerate(body) if byte == ord("\r")]:
        places |= st.sampled_from(parted)
    cuts = sorted(draw(st.lists(places, max_size=12)))
    return [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]


@st.composite
def damaged(draw, body: bytes) -> tuple[bytes, int]:
    """The bytes with some changed, and where the first of them stands."""
    data, first = bytearray(body), len(body)
    for _ in range(draw(st.integers(1, 4))):
        place, how = draw(st.integers(0, max(len(data) - 1, 0))), draw(st.sampled_from(["put", "drop", "set", "again"]))
        first = min(first, place)
        if how == "put":
            data[place:place] = draw(st.binary(min_size=1, max_size=5))
        elif how == "drop":
            del data[place : place + draw(st.integers(1, 20))]
        elif how == "set":
            data[place : place + 1] = draw(st.binary(min_size=1, max_size=1))
        else:
            data[place:place] = data[place : place + draw(st.integers(1, 60))]
    return bytes(data), first


@dataclass
class Got:
    """What came of a stream: the reply, what was shown while it came, and the error that it ended in."""

    reply: Reply
    shown: str
    thought: str
    error: ModelError | None

    @property
    def would_run(self) -> list[tuple[str, dict[str, Any]]]:
        """The calls that the loop would run: no damaged or unknown one, none of a reply without a whole end."""
        if self.error is not None or self.reply.cut:
            return []
        whole = [c for c in self.reply.calls if c.parsed is not None and not c.damaged]
        return [(c.name, c.parsed) for c in whole if c.name in TOOLS]

    @property
    def told(self) -> tuple[object, ...]:
        """Everything that must not depend on the pieces in which the bytes came; ids may be made up."""
        calls = [(c.name, c.arguments, c.parsed, c.damaged) for c in self.reply.calls]
        error = (type(self.error), str(self.error))
        return (self.shown, self.thought, calls, error, self.reply.finish_reason, self.reply.usage, self.reply.cost)


def read(parts: list[bytes], end: str = "over") -> Got:
    """Read a body as the client does, up to its end or to a connection or a turn that ends.

    Any exception but a ModelError is a fault.
    """
    reply, events, error = Reply(), [], None
    assembler = Assembler(reply, events.append, frozenset(TOOLS), 0.0, "host")
    stream = StreamReader(ModelSettings(), assembler)
    try:
        for part in parts:
            stream.feed(part)
        if end == "over":
            stream.close("text/event-stream")
        elif end == "broken":
            stream.flush()
        if end != "over" and (end == "aborted" or not assembler.finished):
            raise StreamInterrupted(end)
    except ModelError as raised:
        error = raised
    assembler.close(complete=error is None)
    shown, thought = ("".join(e.text for e in events if isinstance(e, kind)) for kind in (TextDelta, ReasoningDelta))
    assert (shown, thought) == (reply.text, reply.reasoning)
    return Got(reply, shown, thought, error)


def look_at_history(got: Got) -> list[Any]:
    """What goes into the history can be sent, and only whole calls are run; returns the calls in the history."""
    assert all(isinstance(arguments, dict) for _, arguments in got.would_run)
    message = got.reply.message(complete=got.error is None)
    calls = (message or {}).get("tool_calls", ())
    ids = [call["id"] for call in calls]
    assert all(ids)
    assert len(ids) == len(set(ids))
    assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)
    history = [user("hi"), *([message] if message else []), *(tool_result(ident, "done") for ident in ids), user("on")]
    assert check(history) == (history, [])
    encode_body({"messages": history})
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


def look_at_cut(sent: Sent, parts: list[bytes], end: str = "over") -> None:
    """Everything that must hold of a stream whose bytes arrived as they were sent, as far as they did."""
    got, size = read(parts, end), sum(map(len, parts))
    arrived = sent.text_within(size, whole=False)
    if sent.thought and not sent.within(sent.thought, size):
        assert got.shown in ("", got.thought), "of thinking whose end is missing nobody knows whether it is the answer"
    elif end != "aborted":
        assert got.shown == arrived, "what had arrived is shown, and nothing else"
    else:
        assert arrived.startswith(got.shown), "a line that nothing ended may be missing"
        assert got.shown.startswith(sent.text_within(size))
    complete = end != "aborted" and sent.within(sent.finish, size) and sent.reason != "error"
    assert (got.error is None) == complete, "a reply is whole exactly where its end has come"
    assert got.would_run == (sent.calls if complete and sent.reason != "length" else []), "all calls or none"
    kept = look_at_history(got)
    if not complete and sent.shape != "empty object first":
        assert all(call in sent.calls for call in kept), "no half call in the history"


def look_at_damaged(sent: Sent, parts: list[bytes], *, faithful: int, end: str = "over") -> None:
    """What must hold of a stream whose first `faithful` bytes arrived as they were sent."""
    got, arrived = read(parts, end), sent.text_within(faithful)
    arrived = arrived.removesuffix("\ufffd")  # half of a pair of surrogates, whose other half may have come or not
    assert got.shown.startswith(arrived), "what came before the damage is shown as it was sent"
    look_at_history(got)


def look_at_unreadable(sent: Sent, parts: list[bytes]) -> None:
    """What must hold where one byte of a chunk is none of any text: a call is run as it was sent, or not at all."""
    got, rest = read(parts), iter(sent.calls)
    assert all(call in rest for call in got.would_run), (got.would_run, sent.calls)
    look_at_history(got)
