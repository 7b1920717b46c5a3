"""The loop: whole event lists, whole histories, whole requests."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from hypercode import events, execution
from hypercode.agent import exit_code
from hypercode.errors import AuthError, ModelUnavailable, RequestRejected, StreamInterrupted
from hypercode.execution import MAX_CALLS
from hypercode.llm.fake import Call, Reasoning, script
from hypercode.messages import check
from hypercode.safety.approval import Answer

USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, "cost": 0.5, "details": {"cached": 1}}


def call_message(*calls, content=None):
    wire = [{"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in calls]
    return {"role": "assistant", "content": content, "tool_calls": wire}


async def test_an_answer(harness):
    h = harness([script(Reasoning("hm"), "Hello", usage=USAGE)])
    result = await h.run("hi")
    assert (result.outcome, result.text, result.finish_reason, exit_code(result)) == ("complete", "Hello", "stop", 0)
    end = h.events[-1]
    assert h.events[:-1] == [
        events.UserMessage("hi"),
        events.TurnStart(1),
        events.ReasoningDelta("hm"),
        events.TextDelta("Hello"),
        events.AssistantMessage({"role": "assistant", "content": "Hello"}, "stop"),
    ]
    assert end == events.TurnEnd(1, "complete", "stop", USAGE, 0.5, end.ttft, end.seconds, None)
    assert 0 <= end.ttft <= end.seconds
    assert h.agent.messages == [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello"}]


async def test_text_and_calls_and_results_over_two_turns(harness):
    h = harness([script("Looking. ", Call("read", {"path": "n.md"}, "c1"), usage=USAGE), script("Two.", usage=USAGE)])
    (h.workspace / "n.md").write_text("alpha\nbeta\n")
    await h.run("what is in n.md?")
    assert h.kinds() == [
        *["UserMessage", "TurnStart", "TextDelta", "ToolCallStart", "ToolCallDelta", "AssistantMessage"],
        *["ToolExecutionStart", "ToolExecutionEnd", "TurnEnd"],
        *["TurnStart", "TextDelta", "AssistantMessage", "TurnEnd"],
    ]
    end = h.results()["c1"]
    assert (end.name, end.is_error, end.kind) == ("read", False, None)
    assert "beta" in end.output
    history = [
        {"role": "user", "content": "what is in n.md?"},
        call_message(("c1", "read", {"path": "n.md"}), content="Looking. "),
        {"role": "tool", "tool_call_id": "c1", "content": end.output},
        {"role": "assistant", "content": "Two."},
    ]
    assert h.agent.messages == history
    assert h.model.requests[1].messages[1:] == history[:3]
    assert h.model.requests[1].messages[0]["role"] == "system"
    assert h.agent.usage == {
        "prompt_tokens": 20,
        "completion_tokens": 4,
        "total_tokens": 24,
        "cost": 1.0,
        "details": {"cached": 2},
    }
    assert h.agent.cost == 1.0


async def test_the_conversation_lives_over_many_runs(harness):
    h = harness([f"answer {i}" for i in range(3)])
    for i in range(3):
        await h.run(f"question {i}")
    said = [m["content"] for m in h.model.requests[2].messages[1:]]
    assert said == ["question 0", "answer 0", "question 1", "answer 1", "question 2"]
    assert [e.turn for e in h.of(events.TurnStart)] == [1, 2, 3]


async def test_parallel_reads_run_side_by_side_and_results_keep_their_order(harness):
    h = harness(
        [script(Call("bash", {"command": "echo one"}, "s"), *[Call("ls", {}, f"l{i}") for i in range(3)]), "ok"]
    )
    await h.run()
    started = [e.call_id for e in h.events if isinstance(e, events.ToolExecutionStart)]
    assert started == ["s", "l0", "l1", "l2"]
    assert [m["tool_call_id"] for m in h.agent.messages if m["role"] == "tool"] == ["s", "l0", "l1", "l2"]
    order = [(type(e).__name__, e.call_id) for e in h.events if type(e).__name__.startswith("ToolExecution")]
    assert order.index(("ToolExecutionEnd", "s")) < order.index(("ToolExecutionStart", "l0"))


async def test_an_unknown_tool_and_bad_arguments_are_told_to_the_model(harness):
    h = harness([script(Call("reed", {}, "a"), Call("read", {"paht": "x"}, "b"), Call("read", "{'path'}", "c")), "ok"])
    result = await h.run()
    ends = h.results()
    assert ends["a"].kind == "unknown_tool"
    assert "bash, edit, glob, grep, ls, read, write" in ends["a"].output
    assert ends["b"].kind == "bad_arguments"
    assert "paht" in ends["b"].output
    assert set(ends) == {"a", "b"}, "a call that is not well-formed has no execution events"
    told = {m["tool_call_id"]: m["content"] for m in h.agent.messages if m["role"] == "tool"}
    assert told["c"].startswith("bad_arguments: ")
    assert "{'path'}" in told["c"]
    assert any("read" in e.text for e in h.of(events.Notice))
    assert result.outcome == "complete"


async def test_at_most_so_many_calls_of_a_reply_are_run(harness):
    h = harness([script(*[Call("glob", {"pattern": f"{i}*"}, f"c{i}") for i in range(MAX_CALLS + 2)]), "ok"])
    await h.run()
    kinds = [e.kind for _, e in sorted(h.results().items(), key=lambda item: int(item[0][1:]))]
    assert kinds == [None] * MAX_CALLS + ["too_many_calls"] * 2


@pytest.mark.parametrize("reason", ["length", "content_filter", "MAX_TOKENS", "Safety", "recitation", "SPII"])
async def test_a_cut_reply_runs_no_call_and_the_model_is_told(harness, reason):
    h = harness([script(Call("bash", {"command": "touch x"}, "c"), finish_reason=reason), "ok"], mode="edits")
    await h.run()
    assert h.results() == {}
    assert not (h.workspace / "x").exists()
    assert reason in h.model.requests[1].messages[-1]["content"]


@pytest.mark.parametrize("reason", ["length", "MAX_TOKENS", "SAFETY"])
async def test_a_cut_answer_is_complete_and_exits_4(harness, reason):
    result = await harness([script("half", finish_reason=reason)]).run()
    assert (result.outcome, result.finish_reason, exit_code(result)) == ("complete", reason, 4)


@pytest.mark.parametrize(
    ("error", "outcome", "code"),
    [
        (AuthError("no", status=401), "error", 1),
        (ModelUnavailable("busy", status=503, provider="X"), "error", 1),
        (StreamInterrupted("gone"), "interrupted", 4),
    ],
)
async def test_a_failed_turn_keeps_what_was_shown(harness, error, outcome, code):
    h = harness([script("partial", Call("bash", {"command": "touch x"}, "c"), error), "again"])
    result = await h.run("hi")
    assert (result.outcome, result.text, result.error, exit_code(result)) == (outcome, "partial", error.as_dict(), code)
    end = h.events[-1]
    assert (end.outcome, end.error) == (outcome, error.as_dict())
    assert not (h.workspace / "x").exists()
    assert h.results() == {}
    assert h.agent.messages[1:] == [
        call_message(("c", "bash", {"command": "touch x"}), content="partial"),
        {"role": "tool", "tool_call_id": "c", "content": h.agent.messages[2]["content"]},
    ]
    assert h.agent.messages[2]["content"].startswith("[not run")
    await h.run("go on")
    assert "broken off" in h.model.requests[1].messages[-1]["content"]
    assert h.model.requests[1].messages[-1]["content"].endswith("go on")
    assert h.of(events.UserMessage)[-1] == events.UserMessage("go on")


async def test_a_failure_before_anything_was_shown_leaves_only_the_question(harness):
    h = harness([script(AuthError("no")), "fine"])
    await h.run("hi")
    assert h.agent.messages == [{"role": "user", "content": "hi"}]
    await h.run(None)
    assert h.model.requests[1].messages[1:] == [{"role": "user", "content": "hi"}]


async def test_a_half_call_of_a_broken_turn_is_left_out(harness):
    h = harness([script("text", Call("read", '{"path": "a', "c"), StreamInterrupted("gone"))])
    await h.run("hi")
    assert h.agent.messages[1:] == [{"role": "assistant", "content": "text"}]


async def test_an_empty_answer_is_said(harness):
    h = harness([script()])
    result = await h.run("hi")
    assert result.outcome == "complete"
    assert h.agent.messages == [{"role": "user", "content": "hi"}]
    assert [e.level for e in h.of(events.Notice)] == ["warning"]


async def test_max_turns_runs_the_tools_of_the_last_turn_and_stops(harness):
    scripts = [script(Call("ls", {}, f"c{i}")) for i in range(5)]
    h = harness(scripts, max_turns=2)
    result = await h.run()
    assert (result.outcome, exit_code(result), result.error["kind"]) == ("limit", 3, "limit_turns")
    assert len(h.model.requests) == 2
    assert list(h.results()) == ["c0", "c1"]
    assert check(h.agent.messages)[1] == []


async def test_an_answer_in_the_last_turn_is_no_limit(harness):
    result = await harness([script(Call("ls", {}, "c")), "done"], max_turns=2).run()
    assert result.outcome == "complete"


@pytest.mark.parametrize(("max_cost", "calls"), [(0.3, 1), (0.5, 1), (0.9, 1), (1.0, 2), (1.4, 2), (1.5, 3)])
async def test_max_cost_stops_before_it_is_passed(harness, max_cost, calls):
    h = harness([script(Call("ls", {}, f"c{i}"), usage={**USAGE, "cost": 0.5}) for i in range(5)], max_cost=max_cost)
    result = await h.run()
    assert (result.outcome, result.error["kind"], len(h.model.requests)) == ("limit", "limit_cost", calls)
    h.agent.post("more")
    assert (await h.agent.run()).outcome == "limit"
    assert h.agent.withdraw() == ["more"], "a message that was not sent is not lost"


async def test_a_call_that_went_past_the_limit_is_said_once(harness):
    h = harness(
        [script("done", usage={**USAGE, "cost": 0.25}), script("more", usage={**USAGE, "cost": 0.25})], max_cost=0.1
    )
    assert (await h.run()).outcome == "complete"
    h.agent.post("more")
    assert (await h.agent.run()).error["kind"] == "limit_cost"
    told = [event for event in h.events if isinstance(event, events.Notice)]
    assert [(n.level, n.text) for n in told][:-1] == [
        ("warning", "This call cost 0.25 USD; with it 0.25 USD are spent, more than the limit of 0.1 USD.")
    ]


async def test_max_cost_is_not_stopped_by_rounding(harness):
    h = harness([script(Call("ls", {}, f"c{i}"), usage={**USAGE, "cost": 0.1}) for i in range(5)], max_cost=0.3)
    result = await h.run()
    assert (len(h.model.requests), result.error["message"]) == (
        3,
        "The limit of 0.3 USD stops the next call: 0.3 USD are spent, 0.1 of them by the last call.",
    )


async def test_the_time_limit_ends_a_silent_model(harness):
    h = harness([script("begun", asyncio.Event())], timeout=0.05)
    result = await h.run()
    assert (result.outcome, result.error["kind"]) == ("limit", "limit_time")
    assert h.of(events.TurnEnd)[0].outcome == "aborted"
    assert h.agent.messages[-1] == {"role": "assistant", "content": "begun"}


async def test_messages_posted_during_a_run_are_taken_before_the_next_call(harness):
    h = harness([script(Call("ls", {}, "c")), "first", "second"])
    h.app.bus.on(events.ToolExecutionStart, lambda e: h.agent.post("also this"))
    h.app.bus.on(events.AssistantMessage, lambda e: e.message["content"] == "first" and h.agent.post("and that"))
    await h.run("begin")
    said = [m["content"] for m in h.agent.messages if m["role"] == "user"]
    assert said == ["begin", "also this", "and that"]
    assert [m["role"] for m in h.model.requests[1].messages[1:]] == ["user", "assistant", "tool", "user"]
    assert h.agent.messages[-1]["content"] == "second"


async def test_only_one_run_at_a_time(harness):
    gate = asyncio.Event()
    h = harness([script(gate, "x")])
    first = asyncio.create_task(h.run())
    while not h.model.requests:
        await asyncio.sleep(0)
    with pytest.raises(RuntimeError):
        await h.agent.run("second")
    gate.set()
    assert (await first).outcome == "complete"


async def test_a_cancelled_caller_gets_its_cancellation_and_the_history_is_in_order(harness):
    h = harness([script("par", "tial", asyncio.Event())], piece=3)
    task = asyncio.create_task(h.run("hi"))
    while not h.of(events.TextDelta):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert h.events[-1].outcome == "aborted"
    assert not h.agent.running
    assert check(h.agent.messages)[1] == []


async def test_a_broken_tool_is_a_result_not_an_end(harness, monkeypatch):
    h = harness([script(Call("ls", {}, "c")), "ok"])
    tool = h.agent.tools.find("ls")

    async def broken(ctx, path: str = "."):
        raise ZeroDivisionError("inside")

    monkeypatch.setitem(h.agent.tools._tools, "ls", type(tool)("ls", "read", broken))
    result = await h.run()
    assert result.outcome == "complete"
    assert h.results()["c"].kind == "internal_error"
    assert "ZeroDivisionError" in h.results()["c"].output
    assert [e.level for e in h.of(events.Notice)] == ["error"]


async def test_every_start_event_has_its_end(harness):
    h = harness([script("a", Call("ls", {}, "x"), Call("nope", {}, "y")), script("b", StreamInterrupted("gone"))])
    await h.run()
    assert len(h.of(events.TurnStart)) == len(h.of(events.TurnEnd)) == 2
    starts = [e.call_id for e in h.of(events.ToolExecutionStart)]
    assert sorted(starts) == sorted(h.results()) == ["x", "y"]


# -- approval --------------------------------------------------------------------


async def test_without_a_person_a_question_is_a_refusal_and_the_run_goes_on(harness):
    h = harness(
        [script(Call("write", {"path": "a.txt", "content": "x"}, "w"), Call("bash", {"command": "touch b"}, "b")), "ok"]
    )
    result = await h.run()
    assert [e.kind for e in h.results().values()] == ["refused", "refused"]
    assert list(h.workspace.iterdir()) == []
    assert (result.outcome, result.refused, exit_code(result)) == ("complete", 2, 5)
    notices = [e.text for e in h.of(events.Notice)]
    assert "--mode edits" in notices[0]
    assert "--allow 'touch'" in notices[1]


async def test_a_person_is_asked_with_a_diff_and_answers(harness):
    asked = []
    answers = [Answer(True), Answer(False, reason="use tabs"), Answer(True, "session")]

    async def ask(question):
        asked.append(question)
        return answers[len(asked) - 1]

    writes = [Call("write", {"path": f"f{i}.txt", "content": f"line {i}\n"}, f"w{i}") for i in range(4)]
    h = harness([script(*writes), "ok"], ask=ask)
    result = await h.run()
    assert [e.kind for e in h.results().values()] == [None, "refused", None, None]
    assert len(asked) == 3, "yes for this session covers the fourth"
    assert "+line 0" in asked[0].detail
    assert "use tabs" in h.results()["w1"].output
    assert sorted(p.name for p in h.workspace.iterdir()) == ["f0.txt", "f2.txt", "f3.txt"]
    assert (result.refused, exit_code(result)) == (0, 0), "a person's no is no missing permission"


async def test_plan_mode_changes_nothing_and_says_so(harness):
    calls = [
        Call("write", {"path": "a", "content": "x"}, "w"),
        Call("bash", {"command": "touch b"}, "t"),
        Call("bash", {"command": "ls"}, "l"),
    ]
    h = harness([script(*calls), "ok"], mode="plan")
    await h.run()
    assert [e.kind for e in h.results().values()] == ["refused", "refused", None]
    assert "plan mode" in h.results()["w"].output
    assert "plan mode" in h.model.requests[0].messages[0]["content"]
    assert list(h.workspace.iterdir()) == []


async def test_an_empty_write_over_a_file_needs_a_person_in_every_mode(harness):
    h = harness(
        [
            script(Call("read", {"path": "a.txt"}, "r")),
            script(Call("write", {"path": "a.txt", "content": ""}, "w")),
            "ok",
        ],
        mode="auto",
        sandbox=False,
    )
    (h.workspace / "a.txt").write_text("precious")
    await h.run()
    assert h.results()["w"].kind == "needs_confirmation"
    assert (h.workspace / "a.txt").read_text() == "precious"


async def test_refused_requests_do_not_make_the_next_one_longer(harness):
    refused = [script(RequestRejected("no such field: x", status=400)) for _ in range(5)]
    h = harness([*refused, script(Call("ls", {}, "c")), *refused, "done"])
    outcomes = [(await h.run()).outcome, *[(await h.agent.run()).outcome for _ in range(10)]]
    assert outcomes == ["error"] * 10 + ["complete"]
    sent = [request.messages for request in h.model.requests]
    assert [len(messages) for messages in sent] == [2] * 6 + [4] * 6
    assert sent[0] == sent[5]
    assert sent[6] == sent[11]


@pytest.mark.parametrize("yes", [True, False])
async def test_the_time_that_a_person_takes_to_answer_is_not_the_tools(harness, monkeypatch, yes):
    now = 50.0
    monkeypatch.setattr(execution, "time", SimpleNamespace(monotonic=lambda: now))

    async def ask(question):
        nonlocal now
        now += 100
        return Answer(yes)

    h = harness([script(Call("write", {"path": "a", "content": "x"}, "w")), "ok"], ask=ask)
    await h.run()
    assert [end.seconds for end in h.of(events.ToolExecutionEnd)] == [0]
