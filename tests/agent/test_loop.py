"""The loop guard in a run: asked before the fourth try, refused without a person, in every mode; and the other limits."""

import asyncio
import os

import pytest

from hypercode import events
from hypercode.agent import exit_code
from hypercode.llm.fake import Call, script
from hypercode.safety.approval import Answer

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "cost": 0.5}


def again(call, times, ident="c"):
    return [script(Call(*call, f"{ident}{i}")) for i in range(times)]


def kinds(h):
    return [h.results()[e.call_id].kind for e in h.of(events.ToolExecutionStart)]


LOOPS = [
    ("bash", {"command": "echo same; echo x >> tried"}),
    ("read", {"path": "missing.txt"}),
    ("ls", {}),
    ("edit", {"path": "a.txt", "edits": [{"old": "nowhere", "new": "x"}]}),
    ("edit", {"path": "a.txt", "paht": 1}),
    ("reed", {"path": "a.txt"}),
    ("bash", {"command": "cat /etc/passwd > /dev/sda"}),
]


@pytest.mark.parametrize("mode", ["auto", "edits", "ask", "plan"])
@pytest.mark.parametrize("call", LOOPS, ids=lambda call: call[0])
async def test_the_fourth_try_is_refused_without_a_person_in_every_mode(harness, call, mode):
    h = harness([*again(call, 5), "done"], mode=mode, sandbox=False, allow=["echo"])
    (h.workspace / "a.txt").write_text("a\n")
    result = await h.run()
    found = kinds(h)
    assert found[3:] == ["loop", "loop"]
    assert found[0] == found[1] == found[2] != "loop"
    told = h.model.requests[4].messages[-1]["content"]
    assert told.startswith("loop: this call has given the same result 3 times")
    assert "Do something else" in told
    assert result.outcome == "complete"
    assert exit_code(result) == 5
    if found[0] is None and call[0] == "bash":
        assert (h.workspace / "tried").read_text() == "x\n" * 3


async def test_a_run_ends_when_the_model_goes_on_with_what_nobody_allows(harness):
    h = harness([*again(("read", {"path": "missing.txt"}), 4), *again(("ls", {}), 20, "d"), "never"])
    result = await h.run()
    assert kinds(h) == ["missing_file"] * 3 + ["loop"] + [None] * 3 + ["loop"] * 4
    assert (result.outcome, exit_code(result)) == ("limit", 3)
    assert result.error == {
        "kind": "limit_loop",
        "message": "The model went in circles: again and again its calls were refused or could not be run.",
        "retryable": False,
        "status": None,
        "provider": None,
    }


CUT = {"finish_reason": "length"}


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (
            lambda n: script(Call("ls", {}, f"c{n}"), Call("ls", {}, f"d{n}"), **CUT),
            "The reply was cut off (length) in its calls; none was run and the model was told.",
        ),
        (
            lambda n: script(Call("ls", '{"path": "a', f"c{n}")),
            "The arguments of ls are not a JSON object; it was not run and the model was told.",
        ),
    ],
    ids=["cut", "damaged"],
)
async def test_calls_that_cannot_be_run_are_said_and_end_a_run_that_has_nothing_else(harness, made, told):
    h = harness([made(n) for n in range(4)] + [script(Call("ls", {}, "e"))] + [made(n) for n in range(5, 50)])
    result = await h.run()
    assert (result.error["kind"], exit_code(result), len(h.model.requests)) == ("limit_loop", 3, 10)
    assert [e.text for e in h.of(events.Notice)] == [*[told] * 9, result.error["message"]]


async def test_progress_between_refusals_lets_a_run_go_on(harness):
    change = ("write", {"path": "new.txt", "content": "x"})
    scripts = [
        *again(("ls", {"path": "."}), 7),
        *again(change, 1, "e"),
        *again(("read", {"path": "no"}), 7, "d"),
        "done",
    ]
    h = harness(scripts, mode="auto")
    result = await h.run()
    assert kinds(h) == [None] * 3 + ["loop"] * 4 + [None] + ["missing_file"] * 3 + ["loop"] * 4
    assert (result.outcome, exit_code(result)) == ("complete", 5)


async def test_a_person_is_asked_and_a_yes_lets_three_more_through(harness):
    asked = []

    async def ask(question):
        asked.append(question)
        return Answer(len(asked) == 1, "always", reason="enough")

    h = harness([*again(("ls", {}), 8), "done"], ask=ask)
    result = await h.run()
    assert kinds(h) == [None] * 6 + ["loop"] * 2
    assert [(q.tool, q.subject, q.remembers, "3 times" in q.reason) for q in asked[:2]] == [
        ("ls", "{}", False, True),
        ("ls", "{}", False, True),
    ]
    assert "6 times" in asked[1].reason
    assert len(asked) == 3, "a no holds for this once"
    assert "enough" in h.results()["c6"].output
    assert (result.refused, exit_code(result)) == (0, 0), "a person's no is no missing permission"


async def test_a_yes_to_the_loop_is_no_yes_to_the_call(harness):
    """What asks each time still asks."""
    asked = []

    async def ask(question):
        asked.append("loop" if "loop" in question.reason else question.subject)
        return Answer(True)

    h = harness([*again(("bash", {"command": "touch x"}), 4), "done"], ask=ask)
    await h.run()
    assert asked == ["touch x"] * 3 + ["loop", "touch x"]


async def test_the_same_calls_in_one_reply_are_counted_one_after_the_other(harness):
    h = harness([script(*[Call("ls", {}, f"c{i}") for i in range(5)]), "done"])
    await h.run()
    assert kinds(h) == [None] * 3 + ["loop"] * 2


async def test_another_result_or_another_task_begins_anew(harness):
    scripts = [*again(("read", {"path": "a.txt"}), 3), "one", *again(("read", {"path": "a.txt"}), 3, "d"), "two"]
    h = harness(scripts)
    (h.workspace / "a.txt").write_text("a\n")
    await h.run()
    await h.run()
    assert kinds(h) == [None] * 6
    h = harness([*again(("bash", {"command": "echo x >> n; wc -l n"}), 6), "done"], mode="auto", sandbox=False)
    await h.run()
    assert kinds(h) == [None] * 6


async def test_looking_after_each_new_change_by_the_shell_is_no_loop(harness):
    rounds = [[("bash", {"command": f"echo {n} >> notes"}), ("ls", {})] for n in range(8)]
    h = harness([*[s for n, r in enumerate(rounds) for s in again(r[0], 1, f"b{n}") + again(r[1], 1, f"l{n}")], "done"],
                mode="auto", sandbox=False)  # fmt: skip
    result = await h.run()
    assert kinds(h) == [None] * 16
    assert (result.outcome, exit_code(result)) == ("complete", 0)


async def test_testing_after_each_new_edit_is_no_loop(harness):
    work = [
        step
        for i in range(5)
        for step in (
            script(Call("write", {"path": f"f{i}.txt", "content": f"{i}\n"}, f"w{i}")),
            script(Call("bash", {"command": "echo failed"}, f"t{i}")),
        )
    ]
    h = harness([*work, "done"], mode="edits")
    result = await h.run()
    assert kinds(h) == [None] * 10
    assert exit_code(result) == 0


async def test_an_abort_while_the_question_stands_is_an_abort(harness):
    async def ask(question):
        h.agent.abort()
        await asyncio.Event().wait()

    h = harness([*again(("ls", {}), 4), "never"], ask=ask)
    result = await h.run()
    assert result.outcome == "aborted"
    assert kinds(h) == [None] * 3 + ["aborted"]


async def test_an_approver_that_cannot_ask_refuses(harness):
    async def approve(tool, effect, arguments, *, detail="", confirm=None):
        return None

    h = harness([*again(("ls", {}), 4), "done"])
    h.agent.approve = approve
    await h.run()
    assert kinds(h) == [None] * 3 + ["loop"]


@pytest.mark.parametrize(
    ("settings", "reason", "asked"),
    [
        ({"max_turns": 2}, "limit_turns", 2),
        ({"max_cost": 1.0}, "limit_cost", 2),
        ({"timeout": 0.3}, "limit_time", None),
    ],
)
async def test_each_limit_has_its_own_reason_and_mode_auto_none_less(harness, settings, reason, asked):
    scripts = [script(Call("bash", {"command": f"sleep 0.2; echo {i}"}, f"c{i}"), usage=USAGE) for i in range(9)]
    h = harness(scripts, mode="auto", sandbox=False, **settings)
    result = await h.run()
    assert (result.outcome, result.error["kind"], exit_code(result)) == ("limit", reason, 3)
    assert len(h.model.requests) < 9
    assert asked in (None, len(h.model.requests))


@pytest.mark.parametrize("times", [8, 32, 40])
async def test_the_same_call_often_in_one_reply_ends_nothing_before_the_model_has_read_why(harness, times):
    h = harness([script(*[Call("ls", {}, f"c{i}") for i in range(times)]), "Here is the answer."])
    result = await h.run()
    assert (result.outcome, result.text, len(h.model.requests)) == ("complete", "Here is the answer.", 2)
    assert kinds(h) == ([None] * 3 + ["loop"] * 29)[:times] + ["too_many_calls"] * (times - 32)


@pytest.mark.parametrize(
    ("name", "kind"), [("data.bin", "binary"), ("pipe", "not_regular"), ("sub", "is_directory"), ("no", "missing_file")]
)
async def test_what_nobody_could_allow_is_no_refusal(harness, name, kind):
    h = harness([script(Call("read", {"path": name}, "c")), "done"])
    (h.workspace / "data.bin").write_bytes(b"\0\1\2\3" * 100)
    os.mkfifo(h.workspace / "pipe")
    (h.workspace / "sub").mkdir()
    result = await h.run()
    assert (kinds(h), exit_code(result), h.of(events.Notice)) == ([kind], 0, [])
    assert h.results()["c"].output.startswith(f"{kind}: ")
    assert "not allowed" not in h.results()["c"].output
