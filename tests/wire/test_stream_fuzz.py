"""A dose of random streams; ten thousand more of each kind are in tests/soak."""

import stream_fuzz
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

DOSE = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@given(st.data())
@DOSE
def test_a_stream_in_any_pieces_that_ends_anywhere(data):
    any_end(data)


@given(st.data())
@DOSE
def test_a_stream_with_any_bytes_changed(data):
    any_damage(data)


@given(st.data())
@DOSE
def test_a_stream_with_an_unreadable_byte(data):
    any_unreadable_byte(data)


@given(st.data())
@DOSE
def test_a_recorded_answer_in_any_pieces_with_any_bytes_changed(data):
    any_recorded(data)


def any_end(data):
    sent = data.draw(stream_fuzz.streams())
    ends = st.sampled_from([len(sent.body), *sent.ends])  # the last line of a body often has no newline
    size = data.draw(ends | st.integers(0, len(sent.body)))
    stream_fuzz.look_at_cut(sent, data.draw(stream_fuzz.pieces(sent.body[:size])), data.draw(stream_fuzz.ENDS))


def any_damage(data):
    sent = data.draw(stream_fuzz.streams())
    body, first = data.draw(stream_fuzz.damaged(sent.body))
    parts = data.draw(stream_fuzz.pieces(body))
    stream_fuzz.look_at_damaged(sent, parts, faithful=first, end=data.draw(stream_fuzz.ENDS))


def any_unreadable_byte(data):
    sent = data.draw(stream_fuzz.streams())
    assume(sent.shape != "empty object first")  # where the object itself is lost, its forerunner passes for the whole
    calls = [number for number, event in enumerate(sent.events) if b'"arguments"' in event]
    number = data.draw(st.sampled_from(calls or range(len(sent.events))) | st.integers(0, len(sent.events) - 1))
    first = max(sent.events[number].find(b'"arguments"'), min(len("data:"), sent.needed[number] - 1))
    place = sum(map(len, sent.events[:number])) + data.draw(st.integers(first, sent.needed[number] - 1))
    body = sent.body[:place] + b"\xff" + sent.body[place + 1 :]
    stream_fuzz.look_at_unreadable(sent, data.draw(stream_fuzz.pieces(body)))


def any_recorded(data):
    body = data.draw(st.sampled_from(stream_fuzz.recorded()))
    if data.draw(st.booleans()):
        body, _ = data.draw(stream_fuzz.damaged(body))
    body = body[: data.draw(st.sampled_from([len(body)]) | st.integers(0, len(body)))]
    end = data.draw(stream_fuzz.ENDS)
    got = stream_fuzz.read(data.draw(stream_fuzz.pieces(body)), end)
    stream_fuzz.look_at_history(got)
    assert got.told == stream_fuzz.read([body], end).told, "the pieces in which it comes make no difference"
