"""What a session has spent, by its journal: the same for who writes it, who loads it and who lists it."""

import json
from types import SimpleNamespace

import pytest

from hypercode import events
from hypercode.budget import added, billed, counted
from hypercode.llm.fake import Call, script
from hypercode.memory.history import load
from hypercode.memory.journal import Journal
from hypercode.memory.sessions import head
from hypercode.messages import Reply, user
from hypercode.safety.redact import Redactor

SAID = {"role": "assistant", "content": "x"}
USED = {"prompt_tokens": 5, "cost": 0.1}


def figures(path):
    loaded, listed = load(path), head(path)
    assert (listed.turns, listed.cost) == (loaded.turns, loaded.cost)
    return loaded.turns, loaded.cost, (loaded.usage or {}).get("prompt_tokens")


def reply(turn, cost=0.1):
    return "assistant", {"message": SAID, "finish_reason": "stop", "turn": turn, "usage": USED, "cost": cost}


def end(turn, cost=0.1):
    return "turn_end", {"turn": turn, "outcome": "complete", "usage": USED, "cost": cost}


OLD_REPLY = ("assistant", {"message": SAID, "finish_reason": "stop"})
START = ("session", {"cwd": "/w", "model": "m"})
SPENT = ("spent", {"usage": USED, "cost": 0.1})


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([START, reply(1), end(1), reply(2), end(2)], (2, 0.2, 10)),
        ([START, reply(1)], (1, 0.1, 5)),
        ([START, reply(1), START, reply(2), end(2)], (2, 0.2, 10)),
        ([START, reply(1), START, end(2)], (2, 0.2, 10)),
        ([START, reply(1), START, end(1)], (2, 0.2, 10)),
        ([START, end(1), end(2)], (2, 0.2, 10)),
        ([START, reply(1), SPENT, end(1)], (1, 0.2, 10)),
        ([START, SPENT, reply(1, None), end(1, None)], (1, 0.1, 10)),
        ([START, reply(1), reply(2), end(2)], (2, 0.2, 10)),
        ([START, OLD_REPLY, end(1), OLD_REPLY, end(2)], (2, 0.2, 10)),
        ([START, OLD_REPLY, end(1), START, reply(2), end(2), SPENT], (2, 0.3, 15)),
        ([START, OLD_REPLY], (0, None, None)),
    ],
    ids=[
        "whole", "killed in a tool", "gone on with", "then no reply", "then no reply, numbered alike", "no replies",
        "a summary in between", "no cost", "an end is lost", "old", "old, gone on with", "old, killed",
    ],
)  # fmt: skip
def test_each_turn_counts_once(tmp_path, records, expected):
    journal = Journal(tmp_path / "s.jsonl", redactor=Redactor([]), on_failure=pytest.fail)
    journal.append("user", message=user("hi"))
    for kind, fields in records:
        journal.append(kind, **fields)
        figures(journal.path)
    journal.close()
    assert figures(journal.path) == expected


def test_costs_are_shown_without_the_noise_of_binary_fractions(tmp_path):
    assert 0.1 + 0.2 != 0.3
    assert billed(0.1, 0.2) == 0.3
    assert json.dumps(added({"cost": 0.1, "n": 1}, {"cost": 0.2, "n": 2})) == '{"cost": 0.3, "n": 3}'
    journal = Journal(tmp_path / "s.jsonl", redactor=Redactor([]), on_failure=pytest.fail)
    for turn in range(1, 13):
        journal.append("turn_end", turn=turn, outcome="complete", usage={"cost": 0.001}, cost=0.001)
    journal.close()
    assert (head(journal.path).cost, load(journal.path).cost, load(journal.path).usage) == (
        0.012,
        0.012,
        {"cost": 0.012},
    )


def test_an_old_list_entry_is_rounded_too(tmp_path):
    record = {"type": "turn_end", "time": 1.0, "seq": 1, "so_far": {"turns": 12, "cost": 0.011999999999999999}}
    (tmp_path / "s.jsonl").write_text(json.dumps(record) + "\n")
    assert head(tmp_path / "s.jsonl").cost == 0.012


async def test_what_a_reply_cost_is_on_disk_before_its_calls_are_run(harness):
    seen = []
    h = harness([script(Call("ls", {}), usage={"prompt_tokens": 7, "cost": 0.1}), "done"])
    h.app.bus.on(events.ToolExecutionStart, lambda _: seen.append(figures(h.agent.journal.path)))
    await h.run()
    assert seen == [(1, 0.1, 7)]
    assert (h.agent.turns, h.agent.cost) == figures(h.agent.journal.path)[:2] == (2, 0.1)


async def test_what_a_summary_cost_is_on_disk_before_what_it_stands_for_is_gone(harness):
    h = harness(["one"])
    await h.run()
    journal, order = h.agent.journal, []
    h.agent.journal = SimpleNamespace(append=lambda kind, **fields: order.append(kind))
    h.agent.compacted([user("short")], Reply(cost=0.5))
    assert order == ["spent", "compaction"]
    h.agent.journal = journal


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"d": {"n": 5}}, 5),
        ({"d": {"n": 0}}, 0),
        ({"d": {"n": True}}, None),
        ({"d": {"n": "5"}}, None),
        ({"d": [5]}, None),
        ({"d": 5}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_count_that_is_none_is_not_read_as_one(usage, expected):
    assert counted(usage, "d", "n") == expected
