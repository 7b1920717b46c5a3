"""The scripted model."""

from __future__ import annotations

import asyncio

import pytest

from hypercode.errors import ModelUnavailable, RequestRejected
from hypercode.events import ReasoningDelta, TextDelta, ToolCallDelta, ToolCallStart
from hypercode.llm.fake import Call, Reasoning, ScriptedModel, script
from hypercode.messages import Reply, ToolCall, user


async def test_a_whole_script() -> None:
    model = ScriptedModel(
        [script(Reasoning("hm"), "Hello", Call("read", {"a": 1}), usage={"cost": 0.5}), "Bye"], piece=4
    )
    reply, events = Reply(), []
    history = [user("hi")]
    await model.complete(history, [{"type": "function"}], reply, events.append)
    assert events == [
        ReasoningDelta("hm"),
        TextDelta("Hell"),
        TextDelta("o"),
        ToolCallStart(0, "read"),
        ToolCallDelta(0, '{"a"'),
        ToolCallDelta(0, ": 1}"),
    ]
    assert reply.calls == [ToolCall("call_0_0", "read", '{"a": 1}', {"a": 1})]
    assert (reply.text, reply.reasoning, reply.finish_reason, reply.cost, reply.shown) == (
        "Hello",
        "hm",
        "tool_calls",
        0.5,
        True,
    )
    history[0]["content"] = "changed"
    second = Reply()
    await model.complete(history, [], second, events.append)
    assert (second.text, second.finish_reason) == ("Bye", "stop")
    assert [r.messages[0]["content"] for r in model.requests] == ["hi", "changed"]
    assert model.requests[0].tools == [{"type": "function"}]
    with pytest.raises(RequestRejected, match="over after 2"):
        await model.complete(history, [], Reply(), events.append)


async def test_errors_pauses_and_bad_arguments() -> None:
    gate = asyncio.Event()
    model = ScriptedModel(
        [script("half", ModelUnavailable("gone")), script("a", gate, "b", Call("x", "{'"), finish_reason="length")]
    )
    reply = Reply()
    with pytest.raises(ModelUnavailable, match="gone"):
        await model.complete([], [], reply, lambda e: None)
    assert (reply.text, reply.finish_reason) == ("half", None)
    reply, seen = Reply(), asyncio.Event()
    task = asyncio.create_task(model.complete([], [], reply, lambda e: seen.set()))
    await seen.wait()
    assert reply.text == "a"
    gate.set()
    await task
    assert (reply.text, reply.finish_reason, reply.calls[0].parsed) == ("ab", "length", None)


async def test_cancelling_keeps_what_was_said() -> None:
    model = ScriptedModel([script("said", asyncio.Event())])
    reply, seen = Reply(), asyncio.Event()
    task = asyncio.create_task(model.complete([], [], reply, lambda e: seen.set()))
    await seen.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reply.text == "said"


async def test_a_function_gives_the_script_for_each_request() -> None:
    model = ScriptedModel(lambda request: f"{len(request.messages)} messages, {request.messages[-1]['content']!r} last")
    for messages in ([user("a")], [user("a"), user("b")]):
        await model.complete(messages, [], reply := Reply(), lambda e: None)
        assert reply.text == f"{len(messages)} messages, {messages[-1]['content']!r} last"
    assert len(model.requests) == 2


async def test_it_offers_what_the_client_offers() -> None:
    from hypercode.llm.client import Client

    def offered(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert offered(Client) <= offered(ScriptedModel)
    model = ScriptedModel([])
    assert await model.get_json("/models") == {"object": "list", "data": [{"id": "scripted", "object": "model"}]}
    model.warm_up()
    await model.aclose()
