"""A dose of random streams; ten thousand more of each kind are in tests/soak."""

import call_shapes
import pytest
import stream_faults
import stream_fuzz
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

COMMON = {"deadline": None, "derandomize": True, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
DOSE = settings(max_examples=120, **COMMON)
SMALL = settings(max_examples=14, **COMMON)
each_shape = pytest.mark.parametrize("shape", call_shapes.SHAPES)


@each_shape
@given(st.data())
@SMALL
def test_a_stream_in_any_pieces_that_ends_anywhere(shape, data):
    any_end(data, shape)


@each_shape
@given(st.data())
@SMALL
def test_a_stream_with_a_torn_line(shape, data):
    any_torn_line(data, shape)


@each_shape
@given(st.data())
@SMALL
def test_a_stream_with_an_unreadable_byte(shape, data):
    any_unreadable_byte(data, shape)


@given(st.data())
@DOSE
def test_a_stream_that_is_done_too_early(data):
    any_early_done(data)


@given(st.data())
@DOSE
def test_a_stream_with_a_value_of_another_type(data):
    any_type(data)


@given(st.data())
@DOSE
def test_a_stream_with_any_bytes_changed(data):
    any_damage(data)


@given(st.data())
@DOSE
def test_a_recorded_answer_in_any_pieces_with_any_bytes_changed(data):
    any_recorded(data)


def any_end(data, shape=None):
    sent = data.draw(stream_fuzz.streams(shape))
    ends = st.sampled_from([len(sent.body), *sent.ends])  # the last line of a body often has no newline
    size = data.draw(ends | st.integers(0, len(sent.body)))
    stream_fuzz.look_at_cut(sent, data.draw(stream_fuzz.pieces(sent.body[:size])), data.draw(stream_fuzz.ENDS))


def any_damage(data):
    sent = data.draw(stream_fuzz.streams())
    body, first = data.draw(stream_fuzz.damaged(sent.body))
    parts = data.draw(stream_fuzz.pieces(body))
    stream_fuzz.look_at_damaged(sent, parts, faithful=first, end=data.draw(stream_fuzz.ENDS))


def any_torn_line(data, shape=None):
    sent, fault, parts = faulty(data, stream_faults.torn, shape)
    stream_faults.look_at_torn(sent, parts, fault)


def any_unreadable_byte(data, shape=None):
    sent, fault, parts = faulty(data, stream_faults.unreadable, shape)
    stream_faults.look(sent, parts, fault)


def any_early_done(data):
    sent, fault, parts = faulty(data, stream_faults.done_early)
    stream_faults.look_at_done(sent, parts, fault)


def any_type(data):
    sent, fault, parts = faulty(data, stream_faults.of_another_type)
    stream_fuzz.look_at_damaged(sent, parts, faithful=fault.faithful)


def faulty(data, kind, shape=None):
    sent = data.draw(stream_fuzz.streams(shape))
    fault = data.draw(kind(sent))
    return sent, fault, data.draw(stream_fuzz.pieces(fault.body))


def any_recorded(data):
    body = data.draw(st.sampled_from(stream_fuzz.recorded()))
    if data.draw(st.booleans()):
        body, _ = data.draw(stream_fuzz.damaged(body))
    body = body[: data.draw(st.sampled_from([len(body)]) | st.integers(0, len(body)))]
    end = data.draw(stream_fuzz.ENDS)
    got = stream_fuzz.read(data.draw(stream_fuzz.pieces(body)), end)
    stream_fuzz.look_at_history(got)
    assert got.told == stream_fuzz.read([body], end).told, "the pieces in which it comes make no difference"
