"""README tells the truth."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from readme_run import captured, shown


def test_the_run_in_readme_is_a_real_one():
    assert shown() == captured(), "python tests/e2e/readme_run.py writes it anew"
