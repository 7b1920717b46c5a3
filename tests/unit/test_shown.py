"""What is shown has no known key in it, however it is written and wherever it is cut; everything else is as it was."""

import random
import timeit

import pytest
from key_forms import FORMS, KEY

from hypercode import events
from hypercode.config import Config
from hypercode.events import Bus
from hypercode.parts import keys_of
from hypercode.safety.approval import Answer, Question
from hypercode.safety.decision import Decision
from hypercode.safety.shown import Shown

STREAMS = {
    "text": (events.TextDelta, events.TurnEnd),
    "reasoning": (events.ReasoningDelta, events.AssistantMessage),
    "arguments": (lambda text: events.ToolCallDelta(2, text), events.TurnEnd),
    "output": (lambda text: events.ToolOutput("c1", text), events.ToolExecutionEnd),
}


def ending(kind):
    if kind is events.TurnEnd:
        return events.TurnEnd(1, "complete", "stop", None, None, None, 0.1, None)
    if kind is events.AssistantMessage:
        return events.AssistantMessage({"role": "assistant", "content": "x"}, "stop")
    return events.ToolExecutionEnd("c1", "bash", "x", False, None, 0.1)


def through(shown, sent):
    """What a listener gets."""
    bus, got = Bus(), []
    bus.through = shown
    bus.on(None, got.append)
    for event in sent:
        bus.emit(event)
    return got


def streamed(got):
    return "".join(getattr(e, "arguments", None) or getattr(e, "text", "") for e in got[:-1])


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("encoding", FORMS)
def test_a_key_that_streams_in_random_pieces(stream, encoding):
    make, end = STREAMS[stream]
    rng = random.Random(f"{stream} {encoding}")
    secret = FORMS[encoding]
    shown = Shown([KEY])
    for _ in range(1000):
        text = f"the key is {secret}, and so on. {secret}"
        places = sorted(rng.choices(range(len(text) + 1), k=rng.randint(1, 30)))
        pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
        got = through(shown, [*map(make, pieces), ending(end)])
        result = streamed(got)
        assert secret[8:] not in result
        assert secret[: len(secret) // 2] not in result
        assert result.startswith("the key is ")
        assert result.count("[redacted: key]") == 2
        assert ", and so on. " in result
        assert got[-1] == ending(end)


def test_streams_do_not_mix():
    half, rest = KEY[:30], KEY[30:]
    sent = [
        events.TextDelta(f"a {half}"),
        events.ReasoningDelta(f"b {half}"),
        events.ToolCallDelta(0, f"c {half}"),
        events.ToolCallDelta(1, f"d {rest}"),
        events.TextDelta(f"{rest} e"),
        events.ReasoningDelta(" f"),
        events.ToolCallDelta(0, f"{rest} g"),
        ending(events.TurnEnd),
    ]
    got = through(Shown([KEY]), sent)
    assert got == [
        events.TextDelta("a "),
        events.ReasoningDelta("b "),
        events.ToolCallDelta(0, "c "),
        sent[3],
        events.TextDelta("[redacted: key] e"),
        events.ReasoningDelta(f"{half} f"),  # the beginning of a key is none
        events.ToolCallDelta(0, "[redacted: key] g"),
        sent[-1],
    ]


def test_what_was_held_back_comes_before_the_end_of_its_message():
    sent = [events.TextDelta(f"see {KEY[:20]}"), events.ToolOutput("c", KEY[:12]), ending(events.AssistantMessage)]
    got = through(Shown([KEY]), [*sent, events.ToolExecutionEnd("c", "bash", "x", False, None, 0.1)])
    assert got[0] == events.TextDelta("see ")
    assert got[1:3] == [events.TextDelta(KEY[:20]), sent[-1]]
    assert got[3:] == [events.ToolOutput("c", KEY[:12]), events.ToolExecutionEnd("c", "bash", "x", False, None, 0.1)]


def test_every_other_field_of_an_event():
    message = {"role": "assistant", "content": f"x {KEY}", "reasoning_details": [{"text": KEY, "signature": f"s{KEY}"}]}
    sent = [
        events.SessionStart("s", f"m/{KEY}", "/w", "1"),
        events.UserMessage(f"my key is {KEY}"),
        events.ToolCallStart(0, KEY),
        events.AssistantMessage(message, "stop"),
        events.ToolExecutionStart("c", "bash", {"command": f"curl -H 'X: {KEY}'", KEY: [KEY]}),
        events.ToolExecutionEnd("c", "bash", f"out {KEY}", False, None, 0.1),
        events.TurnEnd(1, "error", None, {"note": KEY}, None, None, 0.1, {"message": f"401: {KEY}"}),
        events.Notice("error", f"no {KEY}"),
        events.SessionEnd("error", 1, 1, None, None, 0, {"message": f"401: {KEY}"}),
    ]
    got = through(Shown([KEY]), sent)
    assert [type(e) for e in got] == [type(e) for e in sent]
    assert KEY not in repr(got)
    assert repr(got).count("[redacted: key]") == 14
    assert message["content"] == f"x {KEY}", "the conversation itself stays"


def test_what_has_no_key_is_the_same_object():
    sent = [
        events.TextDelta(" word"),
        events.TextDelta("sk-"),
        events.ToolOutput(
            "c", "API_KEY=ghp_0123456789abcdefghijABCDEFGHIJ012345"
        ),  # another's secret is the person's to see
        events.ToolExecutionStart("c", "read", {"path": "a"}),
        ending(events.TurnEnd),
    ]
    got = through(Shown([KEY]), sent)
    assert all(a is b for a, b in zip(got, sent, strict=True))


def test_without_keys_nothing_is_looked_for():
    sent = [events.TextDelta("sk-or-v1-4f0cb2d9e17a65c3840fb21d7e9a06"), events.Notice("info", "short")]
    assert through(Shown(["", "short"]), sent) == sent


async def test_a_question_is_put_without_the_key_and_no_rule_keeps_it():
    asked = []

    async def person(question):
        asked.append(question)
        return Answer(True)

    ask = Shown([KEY]).asker(person)
    answer = await ask(Question("bash", "shell", f"x {KEY}", f"d {KEY}", f"r {KEY}", Decision.ASK, f"x {KEY}"))
    plain = Question("bash", "shell", "x", "d", "r", Decision.ASK, "x")
    await ask(plain)
    gone = "[redacted: key]"
    assert answer == Answer(True)
    assert asked == [Question("bash", "shell", f"x {gone}", f"d {gone}", f"r {gone}", Decision.ASK, None), plain]


def test_the_keys_of_a_session():
    headers = {
        "Authorization": "Bearer abc123def456",
        "X-Title": "hypercode at home",
        "X-Gate": "aZ3kQ9mN2xV7bT4wL8pR5cY1",
    }
    config = Config(api_key="from-the-file", headers=headers, sources={})
    environ = {"OPENROUTER_API_KEY": "one", "HYPERCODE_API_KEY": "two", "OTHER": "no"}
    assert list(keys_of(config, environ)) == [
        *["from-the-file", "one", "two", "Bearer abc123def456", "abc123def456"],
        *["aZ3kQ9mN2xV7bT4wL8pR5cY1"] * 2,
    ]


def test_the_cost_of_a_piece():
    """Ten times what it takes on an idle machine."""
    bus = Bus()
    bus.on(None, lambda event: None)
    bus.through = Shown([KEY])
    pieces = [
        events.TextDelta(word) for word in (" word", "implementation", " of", "s", "中文", " `x_y`", ".\n\n")
    ] * 300
    seconds = min(timeit.repeat(lambda: [bus.emit(piece) for piece in pieces], number=1, repeat=5))
    assert seconds / len(pieces) < 15e-6
