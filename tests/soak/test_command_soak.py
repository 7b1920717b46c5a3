"""The gate against a real bash, at length: whatever bash would run, the gate has seen."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from shell_fuzz import escapes, seed_from_environment


@pytest.mark.soak
def test_bash_runs_nothing_the_gate_did_not_see(tmp_path):
    assert escapes(tmp_path, seed_from_environment(), 60_000) == []
