"""Abort in every phase: the history stays valid, the next request is accepted, nothing is left running."""

import asyncio
import copy
import json
import os
from pathlib import Path

import pytest

from hypercode import events
from hypercode.llm.fake import Call, Reasoning, script
from hypercode.messages import check


def assert_sendable(messages):
    """What providers demand of a request, read independently of the checker."""
    waiting = []
    for m in messages:
        if m["role"] == "tool":
            assert m["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        if m["role"] == "assistant":
            calls = m.get("tool_calls", [])
            assert m["content"] or calls
            waiting = [c["id"] for c in calls]
            assert all(isinstance(json.loads(c["function"]["arguments"]), dict) for c in calls)
    assert not waiting


def scripts():
    return [
        script(Reasoning("think"), "Let me look. ", Call("ls", {}, "a"), Call("bash", {"command": "echo hi"}, "b")),
        script("More. ", Call("read", {"path": "n.md"}, "c")),
        script("The end."),
        script("After the abort."),
        script("After the abort."),
        script("After the abort."),
        script("After the abort."),
    ]


async def run_until(h, count):
    """Run, and abort at the `count`-th event; false when the run ended before."""
    seen = 0

    def look(event):
        nonlocal seen
        seen += 1
        if seen == count:
            h.agent.abort()

    off = h.app.bus.on(None, look)
    result = await h.run("begin")
    off()
    return result, seen >= count


async def test_abort_at_every_event(harness, tmp_path):
    count, aborted = 0, 0
    while True:
        count += 1
        folder = tmp_path / str(count)
        folder.mkdir()
        h = type(harness([]))(folder, scripts(), piece=6)
        (h.workspace / "n.md").write_text("note")
        result, reached = await run_until(h, count)
        if not reached:
            break
        aborted += result.outcome == "aborted"
        assert check(h.agent.messages) == (h.agent.messages, [])
        assert_sendable(h.agent.messages)
        before = copy.deepcopy(h.agent.messages)
        await h.run("next")
        sent = h.model.requests[-1].messages[1:]
        assert_sendable(sent)
        assert sent[: len(before)] == before, "nothing that was kept is lost"
        assert sent[-1]["content"].endswith("next") or h.agent.messages[-1]["content"] == "The end."
        starts = [e.call_id for e in h.of(events.ToolExecutionStart)]
        assert starts == [e.call_id for e in h.of(events.ToolExecutionEnd)]
        assert len(h.of(events.TurnStart)) == len(h.of(events.TurnEnd))
    assert count > 25
    assert aborted > 20


async def test_abort_of_a_running_tool_keeps_what_it_printed_and_kills_its_children(harness):
    nap = f"sleep 300.{os.getpid()}"
    h = harness(
        [script(Call("bash", {"command": f"echo started; {nap} & {nap}"}, "b")), "ok"],
        mode="auto",
        sandbox=False,
    )
    h.app.bus.on(events.ToolOutput, lambda e: "started" in e.text and h.agent.abort())
    result = await h.run()
    assert result.outcome == "aborted"
    end = h.results()["b"]
    assert (end.output, end.is_error, end.kind) == ("started\n[aborted by user]", True, "aborted")
    assert h.agent.messages[-1] == {"role": "tool", "tool_call_id": "b", "content": end.output}
    assert left_running(nap) == []
    await h.run("go on")
    assert "stopped" in h.model.requests[1].messages[-1]["content"]


def left_running(words):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if line.startswith(words):
                found.append(line)
    return found


async def test_abort_with_an_open_question(harness):
    asked = asyncio.Event()

    async def ask(question):
        asked.set()
        await asyncio.Event().wait()

    h = harness([script(Call("bash", {"command": "touch x"}, "b")), "ok"], ask=ask)
    task = asyncio.create_task(h.run())
    await asked.wait()
    h.agent.abort()
    assert (await task).outcome == "aborted"
    assert h.results()["b"].output == "[aborted by user]"
    assert (await h.run("next")).outcome == "complete"


async def test_abort_between_calls_answers_the_rest(harness):
    h = harness([script(*[Call("bash", {"command": f"echo {i}"}, f"c{i}") for i in range(3)]), "ok"])
    h.app.bus.on(events.ToolExecutionEnd, lambda e: h.agent.abort())
    await h.run()
    contents = [m["content"] for m in h.agent.messages if m["role"] == "tool"]
    assert contents[0] == "0\n" or contents[0].startswith("0")
    assert all(c.startswith("[not run") or c == "[aborted by user]" for c in contents[1:])


async def test_abort_without_a_run_does_nothing(harness):
    h = harness(["hi"])
    h.agent.abort()
    assert (await h.run()).outcome == "complete"


async def test_messages_that_wait_at_an_abort_can_be_taken_back(harness):
    h = harness([script("x", asyncio.Event())])
    task = asyncio.create_task(h.run())
    while not h.of(events.TextDelta):
        await asyncio.sleep(0)
    h.agent.post("one")
    h.agent.post("two")
    h.agent.abort()
    await task
    assert h.agent.withdraw() == ["one", "two"]
    assert h.agent.withdraw() == []


@pytest.mark.parametrize("phase", ["silent", "text", "reasoning", "half a call"])
async def test_abort_while_the_model_speaks(harness, phase):
    stuck = asyncio.Event()
    steps = {
        "silent": [stuck],
        "text": ["some text", stuck],
        "reasoning": [Reasoning("hm"), stuck],
        "half a call": ["look", events.ToolCallStart(0, "read"), stuck],
    }[phase]
    h = harness([script(*steps), "ok"])
    task = asyncio.create_task(h.run("hi"))
    while not h.model.requests:
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    h.agent.abort()
    assert (await task).outcome == "aborted"
    kept = {
        "text": [{"role": "assistant", "content": "some text"}],
        "half a call": [{"role": "assistant", "content": "look"}],
    }
    assert h.agent.messages == [{"role": "user", "content": "hi"}, *kept.get(phase, [])]
    await h.run("next")
    note = "stopped" in h.model.requests[1].messages[-1]["content"]
    assert note == (phase != "silent")
