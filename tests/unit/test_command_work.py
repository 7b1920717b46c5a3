"""The bound on the gate's work: no line, however it is built, makes it do more than so many steps, and steps mean work."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from long_lines import LINES

from hypercode.safety import command
from hypercode.safety.command import Verdict, classify
from hypercode.safety.command_work import LONGEST, TooMuch, bounded, spend
from hypercode.safety.decision import Decision
from hypercode.safety.rules import parse_rule

WS, HOME = Path("/home/kim/src/app"), Path("/home/kim")
FEW = 20_000  # steps, so that all shapes are through in a few seconds
SIZE = 20_000  # characters of a line, many times what that many steps reach in the costly shapes


def decide(line: str, deny: list[str] | None = None) -> Verdict:
    return classify(line, workspace=WS, home=HOME, deny=[parse_rule(r) for r in deny or []])


def calls(run: Callable[[], object]) -> int:
    """How many functions were called, of Python's and of C's: work counted without a clock."""
    count = 0

    def note(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shape", sorted(LINES))
def test_the_work_for_a_line_is_bounded_whatever_its_shape(shape, monkeypatch):
    monkeypatch.setattr(command, "STEPS", FEW)
    line = LINES[shape](SIZE)
    decide("ls")  # the tables and the grammar are loaded once
    assert calls(lambda: decide(line)) < 12 * FEW


@pytest.mark.parametrize("shape", ["not", "wrappers", "pipes", "braces open", "cd", "closing", "values that double"])
def test_a_line_past_the_bound_asks_every_time_and_says_why(shape, monkeypatch):
    monkeypatch.setattr(command, "STEPS", 2000)
    verdict = decide(LINES[shape](SIZE))
    assert verdict.decision is Decision.ALWAYS_ASK
    assert verdict.grant is None
    assert "too many" in verdict.parts[-1].rule


def test_past_the_bound_a_deny_rule_still_forbids_what_the_line_mentions():
    chain = "true && " * 10_000
    assert decide(chain + "git push --force", deny=["git push"]).decision is Decision.DENY
    assert decide("git push; " + chain + "ls", deny=["git push"]).decision is Decision.DENY
    assert decide(chain + "git pull", deny=["git push"]).decision is Decision.ALWAYS_ASK


def test_a_line_longer_than_the_system_can_run_is_not_read_at_all():
    assert decide("#" * LONGEST).decision is Decision.AUTO
    verdict = decide("#" * (LONGEST + 1))
    assert verdict.decision is Decision.ALWAYS_ASK
    assert str(LONGEST) in verdict.parts[-1].rule


@pytest.mark.parametrize(
    "line",
    [
        "cat > notes.md <<'E'\n" + 'Some text, it\'s "quoted", with `code` and $(more).\n' * 2000 + "E",
        "python - <<'E'\n" + "print('a b', \"c d\")\n" * 300 + "E",
        "pytest -q " + " ".join(f"tests/unit/test_{i}.py" for i in range(200)),
        "set -e\n" + "if [ -f build/x ]; then\n  cp build/x dist/\nfi\n" * 100,
    ],
)
def test_long_lines_of_everyday_work_stay_below_the_bound(line):
    assert decide(line).decision is Decision.ASK


def test_work_is_counted_only_inside_a_bound_and_ends_where_it_is_used_up():
    spend(10**9)
    with bounded(10) as work:
        spend(4)
        spend(6)
        assert work.done == 10
        with pytest.raises(TooMuch):
            spend(1)
    spend(10**9)


def test_the_grammar_reads_the_next_line_from_its_start_after_one_it_gave_up(monkeypatch):
    monkeypatch.setattr(command, "STEPS", 5000)
    assert decide(")" * 20_000).decision is Decision.ALWAYS_ASK
    assert [p.command for p in decide("ls; pwd").parts] == ["ls", "pwd"]
