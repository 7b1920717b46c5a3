"""Ten thousand random streams of each kind: any split, any end, any corruption."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "wire"))

import test_stream_fuzz as dose

pytestmark = pytest.mark.soak
MANY = settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))


@given(st.data())
@MANY
def test_any_split_and_any_end(data):
    dose.any_end(data)


@given(st.data())
@MANY
def test_any_corruption(data):
    dose.any_damage(data)


@given(st.data())
@MANY
def test_any_unreadable_byte(data):
    dose.any_unreadable_byte(data)


@given(st.data())
@MANY
def test_any_recorded_answer_in_any_pieces(data):
    dose.any_recorded(data)
