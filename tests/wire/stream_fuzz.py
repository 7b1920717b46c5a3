"""Random streams: what a server says, cut into pieces anywhere, broken off anywhere, with bytes changed anywhere."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from hypothesis import strategies as st

from hypercode.errors import ModelError
from hypercode.events import TextDelta
from hypercode.llm.assemble import Assembler
from hypercode.llm.settings import ModelSettings
from hypercode.llm.stream import StreamReader
from hypercode.messages import Reply, check, tool_result, user

# Without "<", which may begin a mark for thinking that is held back, and without what is no character.
TEXT = st.text(st.characters(blacklist_characters="<", blacklist_categories=("Cs",)), min_size=1, max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT, lambda v: st.lists(v, max_size=2), max_leaves=3
)
NAMES = st.sampled_from(["read", "bash", "glob"])


@dataclass
class Sent:
    """A stream: its events as bytes, with the text and the calls that stand in them."""

    events: list[bytes] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)  # one an event, empty for most
    calls: list[tuple[str, dict]] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(self.events)

    def text_within(self, size: int) -> str:
        """The text of the events that lie whole in the first so many bytes."""
        text, end = "", 0
        for event, part in zip(self.events, self.texts, strict=True):
            end += len(event)
            text += part if end <= size else ""
        return text


@st.composite
def streams(draw) -> Sent:
    """Text and thinking, then calls in fragments, with comments between; CR, LF or CR LF; escaped or plain."""
    sent, newline, plain = Sent(), draw(st.sampled_from([b"\n", b"\r\n", b"\r"])), draw(st.booleans())

    def event(value: object, text: str = "") -> None:
        data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=not plain)
        sent.events.append(b"data: " + data.encode() + newline * 2)
        sent.texts.append(text)
        if draw(st.integers(0, 5)) == 0:
            sent.events.append(b": keep-alive" + newline * 2)
            sent.texts.append("")

    def delta(piece: dict, finish: str | None = None, text: str = "") -> None:
        event({"id": "g", "choices": [{"index": 0, "delta": piece, "finish_reason": finish}]}, text)

    delta({"role": "assistant", "content": ""})
    for part in draw(st.lists(st.tuples(st.booleans(), TEXT), max_size=6)):
        delta({"reasoning": part[1]}) if part[0] else delta({"content": part[1]}, text=part[1])
    for place, name in enumerate(draw(st.lists(NAMES, max_size=3))):
        arguments = draw(st.dictionaries(st.sampled_from(["path", "command", "n"]), VALUES, max_size=2))
        sent.calls.append((name, arguments))
        whole, head = json.dumps(arguments, ensure_ascii=not plain), {"id": f"c{place}", "type": "function"}
        cut = draw(st.integers(0, len(whole)))
        for fragment in (
            {**head, "function": {"name": name, "arguments": whole[:cut]}},
            {"function": {"arguments": whole[cut:]}},
        ):
            delta({"tool_calls": [{"index": place, **fragment}]})
    delta({}, "tool_calls" if sent.calls else "stop")
    event({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}})
    event("[DONE]")
    return sent


@st.composite
def pieces(draw, body: bytes) -> list[bytes]:
    """The bytes as they arrive."""
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=12)))
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
    error: ModelError | None

    @property
    def would_run(self) -> list[tuple[str, dict]]:
        if self.error is not None or self.reply.cut:
            return []
        return [(c.name, c.parsed) for c in self.reply.calls if c.parsed is not None and not c.damaged]


def read(parts: list[bytes]) -> Got:
    """Read a body as the client does.  Any exception but a ModelError is a fault."""
    reply, events, error = Reply(), [], None
    assembler = Assembler(reply, events.append, frozenset(["read", "bash", "glob"]), 0.0, "host")
    stream = StreamReader(ModelSettings(), assembler)
    try:
        for part in parts:
            stream.feed(part)
        stream.close("text/event-stream")
    except ModelError as raised:
        error = raised
    assembler.close(complete=error is None)
    return Got(reply, "".join(e.text for e in events if isinstance(e, TextDelta)), error)


def look_at(sent: Sent, parts: list[bytes], *, faithful: int) -> None:
    """Everything that must hold of a stream whose first `faithful` bytes arrived as they were sent."""
    got, whole = read(parts), b"".join(parts)
    said = sent.text_within(faithful)
    assert got.shown.startswith(said), "what had arrived is shown as it was sent"
    assert got.shown == got.reply.text
    if sent.body.startswith(whole):
        everything = "".join(sent.texts)
        assert everything.startswith(got.shown), "and nothing else"
        assert got.would_run in ([], sent.calls), "all calls, or none where the end is missing"
        if len(whole) == len(sent.body):
            assert (got.error, got.shown, got.would_run) == (None, everything, sent.calls)
    assert all(isinstance(arguments, dict) for _, arguments in got.would_run)
    message = got.reply.message(complete=got.error is None)
    history = [user("hi"), *([message] if message else [])]
    history += [tool_result(c["id"], "done") for c in (message or {}).get("tool_calls", ())]
    mended, _ = check([*history, user("on")])
    assert check(mended) == (mended, [])
    json.dumps(mended).encode()
