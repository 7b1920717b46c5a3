"""The large dose: sequences of edits, and kills in the middle of an undo."""

import random
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from undo_kills import kill_once, prepare
from undo_sequences import check, sequences

pytestmark = pytest.mark.soak


@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sequences)
def test_no_sequence_loses_a_strangers_bytes(operations):
    check(operations)


def test_many_kills_leave_old_or_new(tmp_path):
    prepare(tmp_path)
    ended = [kill_once(tmp_path, random.uniform(0.05, 0.4)) for _ in range(100)]
    assert 10 < ended.count(True) < 90  # killed in either direction
