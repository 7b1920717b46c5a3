"""Ten thousand random edits that are made, and more that are refused: bytes outside the match never change, and all the other rules."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from edit_model import Sample, expected, got, samples


@pytest.mark.soak
def test_random_edits_soak() -> None:
    outcomes: Counter[str] = Counter()

    @settings(max_examples=45_000, deadline=None, database=None)
    @given(samples())
    def agree(sample: Sample) -> None:
        wanted = expected(sample.data, sample.edits)
        outcomes[wanted if isinstance(wanted, str) else "edited"] += 1
        assert got(sample.data, sample.edits) == wanted

    agree()
    assert outcomes["edited"] > 10_000, outcomes
    print(dict(outcomes))
