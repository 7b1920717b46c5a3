"""The body of a request, for each kind of server."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hypercode.errors import RequestRejected
from hypercode.llm.quirks import (
    attribution,
    encode_body,
    host_of,
    is_loopback,
    is_openrouter,
    refused_field,
    request_body,
)
from hypercode.llm.settings import ModelSettings

CALL = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("url", "loopback", "openrouter"),
    [
        ("http://localhost:11434/v1", True, False),
        ("http://127.0.0.1:1/v1", True, False),
        ("http://127.8.8.8/v1", True, False),
        ("http://[::1]:8/v1", True, False),
        ("http://app.localhost/v1", True, False),
        ("http://192.168.1.2/v1", False, False),
        ("https://localhost.evil.example/v1", False, False),
        ("https://openrouter.ai/api/v1", False, True),
        ("https://eu.openrouter.ai/api/v1", False, True),
        ("https://openrouter.ai.evil.example/api/v1", False, False),
        ("https://evil.example/openrouter.ai", False, False),
        ("", False, False),
    ],
)
def test_hosts(url: str, loopback: bool, openrouter: bool) -> None:
    assert (is_loopback(url), is_openrouter(url), bool(attribution(url))) == (loopback, openrouter, openrouter)


def test_a_host_is_named_without_its_password() -> None:
    assert host_of("https://user:secret@gate.example:8/v1") == "gate.example:8"


def test_openrouter_gets_the_fallbacks_and_needs_no_stream_options() -> None:
    settings = ModelSettings(model="a", fallbacks=("b", "a"), extra_body={"provider": {"sort": "price"}, "model": "z"})
    assert request_body(settings, "a", [], []) == {
        "model": "a",
        "models": ["a", "b"],
        "messages": [],
        "stream": True,
        "provider": {"sort": "price"},
    }


def test_the_same_conversation_begins_with_the_same_bytes() -> None:
    tools = [{"type": "function", "function": {"name": n}} for n in ("b", "a")]
    settings = ModelSettings(base_url="http://localhost/v1")
    messages: list[dict[str, Any]] = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    one = encode_body(request_body(settings, "m", messages, tools))
    two = encode_body(request_body(settings, "m", [*messages, {"role": "user", "content": "v"}], tools[::-1]))
    same = next(i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
    assert one[:same].endswith(b'{"role":"user","content":"u"}')


def test_messages_go_out_as_they_are() -> None:
    message = {"role": "assistant", "content": None, "reasoning_details": [{"type": "x"}], "tool_calls": [CALL]}
    (sent,) = request_body(ModelSettings(), "m", [message], [])["messages"]
    assert sent is message


@pytest.mark.parametrize(
    ("name", "sent"), [("default_api:read", "default_api_read"), ("", "unnamed"), ("x" * 99, "x" * 64)]
)
def test_a_name_that_providers_refuse_does_not_spoil_the_session(name: str, sent: str) -> None:
    call = {**CALL, "function": {"name": name, "arguments": "{}"}}
    body = request_body(ModelSettings(), "m", [{"role": "assistant", "content": None, "tool_calls": [call]}], [])
    assert body["messages"][0]["tool_calls"][0]["function"]["name"] == sent
    assert call["function"]["name"] == name


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
        ("Unsupported parameter: 'max_tokens' is not supported with this model.", "max_tokens"),
        ("property 'reasoning_content' is unsupported", "reasoning_content"),
        ("messages.1.extra_content: Extra inputs are not permitted", "extra_content"),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", None),
        ("Unsupported parameter: 'temperature'", None),
        ("bad", None),
    ],
)
def test_refused_fields(text: str, field: str | None) -> None:
    message = {
        "role": "assistant",
        "content": "x",
        "reasoning_content": "y",
        "tool_calls": [{**CALL, "extra_content": {"a": 1}}],
    }
    settings = ModelSettings(base_url="http://localhost/v1", max_tokens=5)
    body = request_body(settings, "m", [message], [])
    found = refused_field(RequestRejected(text, status=400), body, frozenset())
    assert found == field
    assert refused_field(RequestRejected(text, status=500), body, frozenset()) is None
    if found:
        again = request_body(settings, "m", [message], [], frozenset({found}))
        assert f'"{found}"' not in json.dumps(again)
        assert refused_field(RequestRejected(text, status=400), again, frozenset({found})) is None
        assert ("max_completion_tokens" in again) is (found == "max_tokens")


@pytest.mark.parametrize(
    ("said", "status", "found"),
    [
        ("Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.", 400, True),
        ("Invalid 'messages[2].tool_calls[0].id': string too long. Expected at most 40 characters.", 400, True),
        ("messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", 400, True),
        ("Jinja Exception: Tool call IDs should be alphanumeric strings with length 9!", 500, True),
        ("Invalid 'messages[3].tool_call_id': string too long.", 400, True),
        ("'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.", 400, False),
        ("tool_call_id not found in tool_calls of the message before", 400, False),
    ],
)
def test_ids_that_are_refused_are_replaced_by_such_as_everybody_takes(said: str, status: int, found: bool) -> None:
    conversation = [
        {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": "call_1.a"}, {**CALL, "id": "x" * 60}]},
        {"role": "tool", "tool_call_id": "call_1.a", "content": "r"},
        {"role": "tool", "tool_call_id": "x" * 60, "content": "s"},
    ]
    body = request_body(ModelSettings(), "m", conversation, [])
    field = refused_field(RequestRejected(said, status=status), body, frozenset())
    assert field == ("tool_call_ids" if found else None)
    again = request_body(ModelSettings(), "m", conversation, [], frozenset({"tool_call_ids"}))["messages"]
    ids = [call["id"] for call in again[0]["tool_calls"]]
    assert ids == [message["tool_call_id"] for message in again[1:]]
    assert [re.fullmatch("[a-z0-9]{9}", ident) is not None for ident in ids] == [True, True]
    assert refused_field(RequestRejected(said, status=status), body, frozenset({"tool_call_ids"})) is None


def test_what_json_cannot_carry_is_replaced() -> None:
    body = {"a": ["x\ud83d", "\ud83d\ude80", float("nan"), {"\ude80": float("inf")}], "b": "é"}
    assert json.loads(encode_body(body)) == {"a": ["x\ufffd", "🚀", None, {"\ufffd": None}], "b": "é"}
