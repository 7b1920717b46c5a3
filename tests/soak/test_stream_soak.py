"""Ten thousand random streams: any split, any end, any corruption."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "wire"))

from test_stream_fuzz import any_damage, any_end

pytestmark = pytest.mark.soak
MANY = settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))


@given(st.data())
@MANY
def test_any_split_and_any_end(data):
    any_end(data)


@given(st.data())
@MANY
def test_any_corruption(data):
    any_damage(data)
