"""A dose of random streams; ten thousand more are in tests/soak."""

from hypothesis import given, settings
from hypothesis import strategies as st
from stream_fuzz import damaged, look_at, pieces, streams

DOSE = settings(max_examples=150, deadline=None, derandomize=True)


@given(st.data())
@DOSE
def test_a_stream_in_any_pieces_that_ends_anywhere(data):
    any_end(data)


@given(st.data())
@DOSE
def test_a_stream_with_any_bytes_changed(data):
    any_damage(data)


def any_end(data):
    sent = data.draw(streams())
    end = data.draw(st.sampled_from([len(sent.body)]) | st.integers(0, len(sent.body)))
    look_at(sent, data.draw(pieces(sent.body[:end])), faithful=end)


def any_damage(data):
    sent = data.draw(streams())
    body, first = data.draw(damaged(sent.body))
    look_at(sent, data.draw(pieces(body)), faithful=first)
