"""`Client` over a real socket: retries, clocks, aborts, errors, fallbacks, what the server gets to see."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hypercode.errors import (
    AuthError,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    QuotaError,
    RequestRejected,
    StreamInterrupted,
)
from hypercode.events import Notice, ReasoningDelta, TextDelta, ToolCallDelta, ToolCallStart
from hypercode.llm.client import Client
from hypercode.llm.settings import ModelSettings
from hypercode.messages import Reply, ToolCall, system, user
from hypercode.testing import FaultServer

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools" / "streams"))

from replay import ReplayServer  # noqa: E402

KEY = "sk-test-not-a-key-0123456789"
FOX = "The quick brown fox jumps over the lazy dog. "
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": "", "parameters": {"type": "object", "properties": {}}},
    }
    for name in ("write", "read")
]


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


class Run:
    """One call of the client: its reply, events and error."""

    def __init__(self, server: FaultServer, model: str, **changes: Any) -> None:
        self.reply = Reply()
        self.events: list[Any] = []
        self.error: ModelError | None = None
        self.client = Client(ModelSettings(base_url=server.base_url, model=model, **{"api_key": KEY, **changes}))
        self._before = len(server.requests)
        self._server = server

    async def go(self, tools: list[dict[str, Any]] | None = None) -> Run:
        try:
            async with asyncio.timeout(30):
                await self.client.complete([user("hi")], tools or [], self.reply, self.events.append)
        except ModelError as error:
            self.error = error
        finally:
            await self.client.aclose()
        return self

    @property
    def notices(self) -> list[str]:
        return [e.text for e in self.events if isinstance(e, Notice)]

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self._server.requests[self._before :]


async def test_a_healthy_answer_whole(server: FaultServer) -> None:
    run = await Run(server, "ok").go()
    reply = run.reply
    assert run.error is None
    assert run.events == [TextDelta(word + " ") for word in FOX.split()]
    assert (reply.text, reply.finish_reason, reply.model, reply.shown) == (FOX, "stop", "test/model", True)
    assert reply.usage == {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
    assert (reply.cost, reply.generation_id, reply.calls, reply.extra) == (None, "gen-test", [], {})
    assert reply.ttft is not None
    assert 0 < reply.ttft < 10


async def test_what_the_server_gets(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "leak-from-environment")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Leak: leak-from-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_LOG", "debug")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    run = await Run(server, "ok", extra_body={"seed": 7}, max_tokens=9, temperature=0.5, headers={"X-Mine": "1"}).go(
        TOOLS
    )
    (request,) = run.requests
    assert run.error is None
    assert "leak" not in repr(request)
    assert list(request["body"].items()) == [
        ("model", "ok"),
        ("tools", [TOOLS[1], TOOLS[0]]),
        ("messages", [{"role": "user", "content": "hi"}]),
        ("stream", True),
        ("stream_options", {"include_usage": True}),
        ("max_tokens", 9),
        ("temperature", 0.5),
        ("seed", 7),
    ]
    headers = request["headers"]
    assert headers["x-mine"] == "1"
    assert not {"openai-organization", "openai-project", "x-openrouter-title", "x-title", "http-referer"} & set(headers)
    assert logging.getLogger("openai").level == logging.NOTSET


async def test_no_key_is_needed_on_this_machine(server: FaultServer) -> None:
    assert (await Run(server, "ok", api_key=None).go()).reply.text == FOX


async def test_connections_are_used_again(server: FaultServer) -> None:
    client = Client(ModelSettings(base_url=server.base_url, model="ok"))
    await client.complete([user("hi")], [], Reply(), lambda event: None)
    first = client._sdk
    for _ in range(3):
        await client.complete([user("hi")], [], Reply(), lambda event: None)
    assert client._sdk is first
    assert server.open == 1
    client.settings = ModelSettings(base_url=server.base_url, model="ok", headers={"X-New": "1"})
    await client.complete([user("hi")], [], Reply(), lambda event: None)
    assert server.requests[-1]["headers"]["x-new"] == "1"
    await client.aclose()


async def test_tool_call_events(server: FaultServer) -> None:
    run = await Run(server, "tool-call").go(TOOLS)
    assert run.events == [
        TextDelta("Let me look. "),
        ToolCallStart(0, "read"),
        ToolCallDelta(0, '{"pa'),
        ToolCallDelta(0, 'th": "READ'),
        ToolCallDelta(0, 'ME.md"}'),
    ]
    assert run.reply.calls == [ToolCall("call_1", "read", '{"path": "README.md"}', {"path": "README.md"})]


@pytest.mark.parametrize(
    ("model", "tries", "least"),
    [
        ("429", 2, 1.0),
        ("429-date", 2, 0.9),
        ("500-twice", 3, 0.5),
        ("error-first", 2, 0.2),
        ("drop-before-headers", 2, 0.2),
    ],
)
async def test_passing_failures_are_repeated(server: FaultServer, model: str, tries: int, least: float) -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    run = await Run(server, f"{model}#repeated").go()
    assert loop.time() - start >= least
    assert (run.error, run.reply.text, len(run.requests), run.client.retries) == (None, FOX, tries, tries - 1)
    assert [n.startswith("retrying in ") for n in run.notices] == [True] * (tries - 1)
    assert run.notices[0].endswith("try 2 of 5")


@pytest.mark.parametrize(
    ("model", "kind", "says", "requests"),
    [
        ("400", RequestRejected, "not an array", 1),
        ("401", AuthError, "Incorrect API key", 1),
        ("402", QuotaError, "Add credits", 1),
        ("403", RequestRejected, "flagged", 1),
        ("404", RequestRejected, "Pick another model", 1),
        ("quota", QuotaError, "quota", 1),
        ("context", ContextOverflow, "/compact", 1),
        ("html", RequestRejected, "base URL", 1),
        ("html-502", ModelUnavailable, "Bad gateway", 3),
        ("redirect-elsewhere", RequestRejected, "elsewhere.invalid", 1),
        ("error-body-hangs", AuthError, "401", 1),
        ("429-long", ModelUnavailable, "Wait 3600 s", 1),
        ("429-forever", ModelUnavailable, "slow down", 3),
        ("empty", StreamInterrupted, "before it began", 3),
        ("cut", StreamInterrupted, "broke in the middle", 1),
        ("cut-in-call", StreamInterrupted, "broke in the middle", 1),
        ("reset", StreamInterrupted, "broke in the middle", 1),
        ("no-end", StreamInterrupted, "before its end", 1),
        ("error-mid-stream", ModelUnavailable, "upstream went away", 1),
    ],
)
async def test_failures(server: FaultServer, model: str, kind: type[ModelError], says: str, requests: int) -> None:
    run = await Run(server, f"{model}#failures", max_retries=2).go()
    assert type(run.error) is kind
    assert says in str(run.error)
    assert KEY not in repr((run.error, run.error.__notes__ if hasattr(run.error, "__notes__") else "", run.notices))
    assert "secret page" not in str(run.error)
    assert len(run.requests) == requests


async def test_silence_before_the_first_event(server: FaultServer) -> None:
    run = await Run(server, "no-answer", first_event_timeout=0.3, max_retries=0).go()
    assert type(run.error) is ModelUnavailable
    assert "did not answer within 0.3 s" in str(run.error)
    run = await Run(server, "comments-only", first_event_timeout=0.5, max_retries=0).go()
    assert type(run.error) is StreamInterrupted
    assert "keep-alive" in str(run.error)
    assert run.client.last_sign_of_life is not None


class SlowStart(Client):
    """A client on a machine where the import of the SDK takes its time."""

    async def _connect(self, settings: ModelSettings) -> Any:
        await asyncio.sleep(2.0)
        return await super()._connect(settings)


async def test_the_import_is_not_the_servers_time(server: FaultServer) -> None:
    client, reply = SlowStart(ModelSettings(base_url=server.base_url, model="ok", first_event_timeout=1.5)), Reply()
    await client.complete([user("hi")], [], reply, lambda event: None)
    await client.aclose()
    assert (reply.text, client.retries) == (FOX, 0)


async def test_silence_in_the_middle_keeps_what_came(server: FaultServer) -> None:
    run = await Run(server, "stall", idle_timeout=0.3).go()
    assert type(run.error) is StreamInterrupted
    assert (run.reply.text, run.reply.finish_reason, len(run.requests), run.notices) == (FOX, None, 1, [])
    run = await Run(server, "stall-in-call", idle_timeout=0.3).go()
    (call,) = run.reply.calls
    assert (call.name, call.arguments, call.parsed) == ("write", '{"path": "a', None)
    assert run.reply.message(complete=False) == {"role": "assistant", "content": "Writing. "}


async def test_silence_after_a_finish_is_a_whole_answer(server: FaultServer) -> None:
    run = await Run(server, "stall-after-finish", finish_grace=0.2).go()
    assert (run.error, run.reply.text, run.reply.finish_reason) == (None, FOX, "stop")


async def test_comments_keep_no_stream_alive_but_slow_events_do(server: FaultServer) -> None:
    run = await Run(server, "slow", idle_timeout=1.0, first_event_timeout=1.0).go()
    assert (run.error, run.reply.text) == (None, FOX)


@pytest.mark.parametrize(
    ("model", "until"),
    [
        ("no-answer", None),
        ("comments-only", None),
        ("stall", TextDelta),
        ("stall-reasoning", ReasoningDelta),
        ("stall-in-call", ToolCallStart),
        ("endless", TextDelta),
        ("429-long#retry", Notice),
    ],
)
async def test_abort(server: FaultServer, model: str, until: type[Any] | None) -> None:
    """At once, nothing left open or running, and the connection is good for the next request."""
    if model.startswith("429"):
        model = "429#abort"
    reply, seen = Reply(), asyncio.Event()
    client = Client(ModelSettings(base_url=server.base_url, model=model))
    before = len(server.requests)
    task = asyncio.create_task(
        client.complete([user("hi")], [], reply, lambda e: seen.set() if until and isinstance(e, until) else None)
    )
    if until:
        await asyncio.wait_for(seen.wait(), 10)
    else:
        while len(server.requests) == before:
            await asyncio.sleep(0.01)
    task.cancel()
    start = asyncio.get_running_loop().time()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.get_running_loop().time() - start < 1.0
    assert asyncio.all_tasks() == {asyncio.current_task()}
    if model.startswith("stall-in"):
        assert [c.name for c in reply.calls] == ["write"]
    client.settings = ModelSettings(base_url=server.base_url, model="ok")
    after = Reply()
    await client.complete([user("again")], [], after, lambda e: None)
    assert after.text == FOX
    await client.aclose()
    for _ in range(500):
        if server.open == 0:
            break
        await asyncio.sleep(0.01)
    assert server.open == 0


async def test_a_refused_field_is_left_out_and_that_is_remembered(server: FaultServer) -> None:
    run = Run(server, "no-stream-options")
    for _ in range(2):
        await run.client.complete([user("hi")], [], Reply(), run.events.append)
    await run.client.aclose()
    assert ["stream_options" in r["body"] for r in run.requests] == [True, False, False]
    assert (len(run.notices), run.client.retries) == (1, 0)


@pytest.mark.parametrize("model", ["strict-roles", "no-system"])
async def test_a_chat_template_that_wants_another_order_gets_it_and_the_conversation_goes_on(
    server: FaultServer, model: str
) -> None:
    run = Run(server, model)
    sent = [system("s"), user("this failed"), user("again")]
    for _ in range(2):
        reply = Reply()
        await run.client.complete(sent, [], reply, run.events.append)
        assert reply.text == FOX
    await run.client.aclose()
    assert [[m["role"] for m in r["body"]["messages"]] for r in run.requests] == [
        ["system", "user", "user"],
        *([["system", "user"] if model == "strict-roles" else ["user", "user"]] * 2),
    ]
    assert (len(run.notices), run.client.retries) == (1, 0)


async def test_a_wait_can_be_watched_and_is_over_when_it_is_stopped(server: FaultServer) -> None:
    run = Run(server, "429#watched")
    waiting, began = asyncio.Event(), time.monotonic()

    def seen(event: Any) -> None:
        if isinstance(event, Notice):
            waiting.set()

    task = asyncio.ensure_future(run.client.complete([user("hi")], [], run.reply, seen))
    await waiting.wait()
    assert began + 1 <= run.client.retry_at <= time.monotonic() + 1.1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await run.client.aclose()
    assert (run.client.retry_at, len(run.requests)) == (0.0, 1)


async def test_the_log_of_everything_has_an_outline_of_each_request(
    server: FaultServer, caplog: pytest.LogCaptureFixture
) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "secret.txt"}'}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "secret"},
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_details": [{"text": "secret"}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "secret\nsecret"},
    ]
    client = Client(ModelSettings(base_url=server.base_url, model="400", temperature=0.5))
    for level in (logging.INFO, logging.DEBUG):
        caplog.set_level(level, logger="hypercode")
        with pytest.raises(RequestRejected):
            await client.complete(messages, TOOLS, Reply(), lambda event: None)
    await client.aclose()
    assert [record.getMessage() for record in caplog.records if record.name == "hypercode"] == [
        "request: model='400', stream=True, stream_options={'include_usage': True}, temperature=0.5, tools=[read, write], "
        "messages=3: system 6; assistant 0 calls read(call_1) with reasoning_details; tool 13 to call_1"
    ]


async def test_fallback_models(server: FaultServer) -> None:
    run = await Run(server, "404", fallbacks=("500-twice#fallback", "ok")).go()
    assert [r["body"]["model"] for r in run.requests] == ["404", "500-twice#fallback", "500-twice#fallback", "ok"]
    assert (run.error, run.reply.text) == (None, FOX)
    first, retry, second = run.notices
    assert first.startswith("404 cannot answer (404 from 127.0.0.1:")
    assert first.endswith("model '404' not found); trying 500-twice#fallback instead.")
    assert "500 from" in retry
    assert retry.endswith("try 2 of 2")
    assert second.endswith("internal error); trying ok instead.")


@pytest.mark.parametrize("model", ["error-mid-stream", "401", "400"])
async def test_no_fallback_after_output_nor_where_it_is_useless(server: FaultServer, model: str) -> None:
    run = await Run(server, model, fallbacks=("ok",)).go()
    assert len(run.requests) == 1
    assert run.error is not None


async def test_no_server_at_all() -> None:
    client = Client(ModelSettings(base_url="http://127.0.0.1:9/v1", model="m", max_retries=0))
    with pytest.raises(
        ModelUnavailable, match=r"^cannot connect to 127\.0\.0\.1:9: connection refused\. Is the server"
    ) as e:
        await client.complete([user("hi")], [], Reply(), lambda e: None)
    assert "Errno" not in str(e.value)
    await client.aclose()


async def test_the_first_retry_already_asks_for_the_server() -> None:
    client = Client(ModelSettings(base_url="http://127.0.0.1:9/v1", model="m", max_retries=1))
    events: list[Any] = []
    with pytest.raises(ModelUnavailable):
        await client.complete([user("hi")], [], Reply(), events.append)
    await client.aclose()
    (text,) = [e.text for e in events]
    assert "(cannot connect to 127.0.0.1:9: connection refused. Is the server running?), try 2 of 2" in text


@pytest.mark.parametrize(
    ("key", "shown"),
    [("k", "k"), ("key", "key"), ("check", "check"), ("provide", "provide"), ("8letters", "[redacted: key]")],
)
async def test_a_short_key_is_no_secret(server: FaultServer, key: str, shown: str) -> None:
    run = await Run(server, "401", api_key=key).go()
    host = server.base_url.split("/")[2]
    advice = (
        "Either the key that was sent is refused, or none was sent: set one with HYPERCODE_API_KEY, or api_key in the"
        " configuration, or start the server without one. A key for openrouter.ai is never sent elsewhere."
    )
    assert str(run.error) == f"{host} (401): Incorrect API key provided: {shown}. {advice}"


@pytest.mark.parametrize("url", ["localhost:1/v1", "ftp://localhost/v1", ""])
async def test_an_odd_base_url_is_explained(url: str) -> None:
    client = Client(ModelSettings(base_url=url, model="m", max_retries=0))
    with pytest.raises(ModelError, match=r"[bB]ase URL"):
        await client.complete([user("hi")], [], Reply(), lambda e: None)
    await client.aclose()


async def test_get_json(server: FaultServer) -> None:
    client = Client(ModelSettings(base_url=server.base_url, model="ok", api_key=KEY))
    names = [m["id"] for m in (await client.get_json("/models"))["data"]]
    assert {"ok", "cut", "stall", "429"} <= set(names)
    with pytest.raises(RequestRejected, match="404"):
        await client.get_json("/nothing")
    await client.aclose()


async def test_warm_up_in_a_thread(server: FaultServer) -> None:
    client = Client(ModelSettings(base_url=server.base_url, model="ok"))
    reply = Reply()
    await asyncio.gather(asyncio.to_thread(client.warm_up), client.complete([user("hi")], [], reply, lambda e: None))
    assert reply.text == FOX
    await client.aclose()


async def test_two_calls_at_once(server: FaultServer) -> None:
    client = Client(ModelSettings(base_url=server.base_url, model="slow"))
    replies = [Reply() for _ in range(4)]
    await asyncio.gather(*(client.complete([user("hi")], [], r, lambda e: None) for r in replies))
    assert [r.text for r in replies] == [FOX] * 4
    await client.aclose()


@pytest.mark.parametrize(
    ("script", "requests", "text", "error"),
    [
        ("retry-429", 2, "All done.", None),
        ("retry-first-event-error", 2, "All done.", None),
        ("error-after-output", 1, "Partial ", ModelUnavailable),
    ],
)
async def test_scripts(script: str, requests: int, text: str, error: type[ModelError] | None) -> None:
    with ReplayServer(ROOT / "cases" / "streams") as replay:
        client = Client(ModelSettings(base_url=replay.base_url, api_key=KEY, model=f"script/{script}"))
        reply, events, raised = Reply(), [], None
        try:
            await client.complete([user("go")], [], reply, events.append)
        except ModelError as failure:
            raised = type(failure)
        await client.aclose()
        shown = "".join(e.text for e in events if isinstance(e, TextDelta))
        assert (len(replay.requests), reply.text, shown, raised) == (requests, text, text, error)
