"""Counting the same calls with the same results."""

import pytest

from hypercode.loop_guard import REFUSALS, TIMES, LoopGuard, call_key

CALL, EDIT, BACK = (call_key(name, {"path": name}) for name in ("ls", "edit", "back"))


def seen(guard, call, *results, **about):
    for result in results:
        guard.note(call, result, **about)


@pytest.mark.parametrize(
    ("results", "times"),
    [
        ("", 0),
        ("a", 0),
        ("aa", 0),
        ("aaa", 3),
        ("aaaa", 4),
        ("aab", 0),
        ("abc", 0),
        ("ababa", 3),
        ("abab", 0),
    ],
)
def test_three_times_the_same_result(results, times):
    guard = LoopGuard()
    seen(guard, CALL, *results)
    assert guard.stuck(CALL) == times
    assert guard.stuck(EDIT) == 0


@pytest.mark.parametrize(
    ("results", "times"),
    [
        (["3 failed in 0.03s", "3 failed in 0.05s", "3 failed in 12 seconds"], 3),
        (["at 10:00:01 no", "at 10:00:02 no", "at 10:01:00.5 no"], 3),
        (["<f at 0x7f0012ab>", "<f at 0x7f0012ac>", "<f at 0x7f0012ad>"], 3),
        (["[output-0123456789ab.txt]", "[output-ff23456789ab.txt]", "[output-aa23456789ab.txt]"], 3),
        (["3 failed", "2 failed", "1 failed"], 0),
        (["line 10", "line 11", "line 12"], 0),
        (["took 1 step", "took 2 steps", "took 3 steps"], 0),
    ],
)
def test_what_is_new_each_time_makes_no_difference(results, times):
    guard = LoopGuard()
    seen(guard, CALL, *results)
    assert guard.stuck(CALL) == times


def test_a_yes_lets_three_more_through_and_then_it_asks_again():
    guard = LoopGuard()
    seen(guard, CALL, *"aaa")
    for round in (1, 2):
        assert guard.stuck(CALL) == TIMES * round
        guard.let_through(CALL)
        for _ in range(TIMES):
            assert guard.stuck(CALL) == 0
            seen(guard, CALL, "a")
    assert guard.stuck(CALL) == TIMES * 3


def test_a_yes_to_what_is_not_stuck_changes_nothing():
    guard = LoopGuard()
    guard.let_through(CALL)
    seen(guard, CALL, *"aaa")
    assert guard.stuck(CALL) == 3


def test_a_new_change_of_a_file_is_progress_and_the_same_one_again_is_not():
    guard = LoopGuard()
    seen(guard, CALL, *"aaa")
    seen(guard, EDIT, "done", changed=True)
    assert guard.stuck(CALL) == 0
    seen(guard, CALL, *"aa")
    seen(guard, EDIT, "done", changed=True)
    seen(guard, CALL, "a")
    assert guard.stuck(CALL) == 3


def test_doing_and_undoing_the_same_change_is_noticed():
    guard = LoopGuard()
    rounds = 0
    while not (guard.stuck(EDIT) or guard.stuck(BACK) or guard.stuck(CALL)):
        for call in (EDIT, BACK):
            seen(guard, call, "done", changed=True)
            seen(guard, CALL, "failed")
        rounds += 1
    assert rounds == 2, "the second change began the count of the test anew, and since then it failed three times"


def test_an_edit_that_fails_is_no_progress():
    guard = LoopGuard()
    seen(guard, CALL, *"aa")
    seen(guard, EDIT, "not_found: …", "not_found: …", "not_found: …")
    seen(guard, CALL, "a")
    assert (guard.stuck(CALL), guard.stuck(EDIT)) == (3, 3)


def test_a_long_output_is_the_same_although_the_rest_is_kept_in_another_file():
    guard = LoopGuard()
    seen(guard, CALL, *(f"head\n[the whole is in /c/output-{n:012x}.txt]\ntail" for n in range(3)))
    assert guard.stuck(CALL) == 3


def test_what_makes_two_calls_the_same():
    assert call_key("a", {"x": 1, "y": [2]}) == call_key("a", {"y": [2], "x": 1})
    different = [("a", {"x": 1}), ("a", {"x": "1"}), ("b", {"x": 1}), ("a", {}), ("a", "{}"), ("a", {"x": "\ud800"})]
    assert len({call_key(*one) for one in different}) == len(different)


def test_text_that_is_no_valid_unicode_is_counted_too():
    guard = LoopGuard()
    seen(guard, CALL, *["\ud800"] * 3)
    assert guard.stuck(CALL) == 3


def test_a_reply_counts_once():
    guard = LoopGuard()
    for reply in range(1, REFUSALS + 1):
        guard.next_reply()
        assert not guard.hopeless
        for _ in range(10):
            guard.refuse()
        assert guard.hopeless == (reply == REFUSALS)
    seen(guard, EDIT, "done", changed=True)
    assert not guard.hopeless
