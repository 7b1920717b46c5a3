"""Several turns with one server: the agent, the real SDK, a real socket, and what the second request says."""

import json
import os
from pathlib import Path

import pytest
from compare import _contains as contains
from replay import ReplayServer

from hypercode import events
from hypercode.app import build
from hypercode.config import Config, setting_names

CASES = Path(__file__).parents[1] / "cases/streams"
SCRIPTS = json.loads((CASES / "scripts.json").read_text())


class Play:
    """What became of a script: the events, the requests, and the conversation."""

    def __init__(self, tmp_path, server, name):
        (tmp_path / "work").mkdir()
        for file in ("README.md", "a.py", "b.py", "c.py"):
            (tmp_path / "work" / file).write_text(f"this is {file}\n")
        config = Config(sources=dict.fromkeys(setting_names(), "test"))
        config.base_url, config.model, config.sandbox = server.base_url, f"script/{name}", False
        environ = {"HOME": str(tmp_path), "HYPERCODE_HOME": str(tmp_path / "hypercode"), "PATH": os.environ["PATH"]}
        self.server = server
        self.app = build(config, cwd=tmp_path / "work", environ=environ)
        self.events = []
        self.app.bus.on(None, self.events.append)

    async def run(self, text="go"):
        return await self.app.agent.run(text)

    @property
    def requests(self):
        return [r["body"] for r in self.server.requests]

    def of(self, kind):
        return [e for e in self.events if isinstance(e, kind)]

    def text(self):
        return "".join(e.text for e in self.of(events.TextDelta))


@pytest.fixture
async def play(tmp_path):
    apps = []
    with ReplayServer(CASES) as server:

        def make(name):
            made = Play(tmp_path, server, name)
            apps.append(made.app)
            return made

        yield make
        for app in apps:
            await app.aclose()


def assert_every_call_is_answered(messages):
    waiting = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert waiting == []
        waiting = [c["id"] for c in message.get("tool_calls", [])]
        assert all(isinstance(json.loads(c["function"]["arguments"]), dict) for c in message.get("tool_calls", []))
    assert waiting == []


async def test_read_then_done(play):
    p = play("read-then-done")
    result = await p.run()
    assert (result.outcome, len(p.requests)) == ("complete", 2)
    assert "this is README.md" in p.requests[1]["messages"][-1]["content"]
    assert p.requests[1]["messages"][-2]["content"] == "I will read it."


async def test_a_429_is_waited_out_and_one_answer_is_shown(play):
    p = play("retry-429")
    result = await p.run()
    assert (result.outcome, len(p.requests)) == ("complete", 2)
    assert p.requests[0] == p.requests[1]
    assert p.text() == result.text
    assert any("retrying" in e.text for e in p.of(events.Notice))
    assert len(p.of(events.TurnStart)) == 1


async def test_an_error_before_any_output_is_retried_in_silence_but_for_a_notice(play):
    p = play("retry-first-event-error")
    result = await p.run()
    assert (result.outcome, len(p.requests), p.text()) == ("complete", 2, result.text)


async def test_an_error_after_output_is_not_retried_and_the_text_stays(play):
    p = play("error-after-output")
    result = await p.run()
    assert (result.outcome, len(p.requests)) == ("error", 1)
    shown = p.text()
    assert shown
    assert p.app.agent.messages[-1] == {"role": "assistant", "content": shown}
    again = await p.run("go on")
    assert again.outcome == "complete"
    assert [m["content"] for m in p.requests[1]["messages"] if m["role"] == "assistant"] == [shown]
    assert p.text() == shown + again.text


@pytest.mark.parametrize(
    ("script", "field"), [("signed-reasoning", "reasoning_details"), ("deepseek-thinking", "reasoning_content")]
)
async def test_reasoning_goes_back_as_it_came(play, script, field):
    p = play(script)
    await p.run()
    if len(p.requests) == 1:
        await p.run("next")
    first = p.server.cassettes[SCRIPTS[script]["cassettes"][0]]["expect"]
    sent = next(m for m in p.requests[1]["messages"] if m["role"] == "assistant")
    assert contains(sent[field], first["replay"][field])


@pytest.mark.parametrize("script", ["truncated-call", "bad-arguments", "parallel-same-index", "missing-id"])
async def test_every_call_that_is_sent_back_has_its_result(play, script):
    p = play(script)
    result = await p.run()
    assert (result.outcome, len(p.requests)) == ("complete", 2)
    assert_every_call_is_answered(p.requests[1]["messages"])


async def test_a_truncated_call_does_not_run_and_the_model_is_told(play):
    p = play("truncated-call")
    await p.run()
    assert p.of(events.ToolExecutionStart) == []
    assert "not run" in p.requests[1]["messages"][-1]["content"]


async def test_arguments_that_are_no_json_come_back_as_an_error_for_the_same_call(play):
    p = play("bad-arguments")
    await p.run()
    result = p.requests[1]["messages"][-1]
    assert result["tool_call_id"] == "call_sq"
    assert "bad_arguments" in result["content"]


async def test_three_calls_on_one_index_are_three_calls(play):
    p = play("parallel-same-index")
    await p.run()
    results = [m for m in p.requests[1]["messages"] if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in results] == ["call_s1", "call_s2", "call_s3"]
    assert [f"this is {n}.py" in m["content"] for n, m in zip("abc", results, strict=True)] == [True] * 3


def test_every_script_is_played_here():
    played = Path(__file__).read_text()
    assert all(f'"{name}"' in played for name in SCRIPTS)
