"""What the longest hostile lines cost the gate, over an everyday long line in the same run.  `pytest -m bench -s` prints the table."""

import statistics
import time
from pathlib import Path

import pytest
from long_lines import LINES

from hypercode.safety.command import classify
from hypercode.safety.command_work import LONGEST

pytestmark = pytest.mark.bench

EVERYDAY = "git log --oneline -5 | head -3; " * 400


def seconds(line: str) -> float:
    start = time.process_time()
    classify(line, workspace=Path("/home/kim/src/app"), home=Path("/home/kim"))
    return time.process_time() - start


@pytest.mark.parametrize("size", [4_000, 30_000, LONGEST - 100])
def test_no_line_costs_more_than_a_few_long_everyday_ones(size):
    seconds(EVERYDAY)
    base = statistics.median(seconds(EVERYDAY) for _ in range(5))
    costs = {name: min(seconds(make(size)) for _ in range(2)) / base for name, make in LINES.items()}
    print(f"\n{size} characters, over {base * 1000:.0f} ms")
    for name, cost in sorted(costs.items(), key=lambda pair: -pair[1])[:10]:
        print(f"{cost:6.2f}  {name}")
    assert max(costs.values()) < 6
