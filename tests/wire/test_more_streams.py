"""Neighbours of the recorded kinds: framings, redirects, compressed and whole bodies, ends without a newline."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from test_cassettes import ReplayServer, ask

from hypercode.events import Notice

SSE = {"Content-Type": "text/event-stream"}
TEXT = {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": None}]}
STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
CALL = {
    "choices": [
        {
            "index": 0,
            "delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "read", "arguments": '{"a":1}'}}]},
        }
    ]
}
HEAD, TAIL = (
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **piece}]}}]}
    for piece in (
        {"id": "c", "function": {"name": "read", "arguments": ""}},
        {"function": {"arguments": '{"a":1}'}},
    )
)
WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}]}


def data(*chunks: Any) -> str:
    return "".join(f"data: {json.dumps(c)}\n\n" for c in chunks)


def b64(content: bytes) -> dict[str, Any]:
    return {"b64": base64.b64encode(content).decode()}


def case(
    *segments: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    return {"segments": list(segments), "http": {"status": status, "headers": headers or SSE}, **more}


UNFINISHED = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": None}]}
BAD_CALL = [{"index": 0, "id": "c", "function": {"name": "write", "arguments": '{"content":"caf@"}'}}]
GARBLED = data({"choices": [{"index": 0, "delta": {"tool_calls": BAD_CALL}}]}, STOP).encode().replace(b"@", b"\xe9")
WHOLE_CALL = {"choices": [{"index": 0, "message": {"tool_calls": BAD_CALL}, "finish_reason": "tool_calls"}]}

LOCATION = "{base}/cassette/whole/v1/chat/completions"
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "whole": (
        case({"bytes": data(TEXT, STOP) + "data: [DONE]\n\n"}),
        {"text": "Hello.", "outcome": "complete"},
    ),
    "redirect-307": (case(status=307, headers={"Location": LOCATION}), {"text": "Hello.", "outcome": "complete"}),
    "redirect-308": (case(status=308, headers={"Location": LOCATION}), {"text": "Hello.", "outcome": "complete"}),
    "redirect-302": (case(status=302, headers={"Location": LOCATION}), {"outcome": "error", "error": "redirect", "retryable": False}),
    "redirect-loop": (
        case(status=307, headers={"Location": "{base}/cassette/redirect-loop/v1/chat/completions"}),
        {"outcome": "error"},
    ),
    "redirect-nowhere": (case(status=302, headers={"X": "y"}), {"outcome": "error", "error": "302", "retryable": False}),
    "gzip": (
        case(b64(gzip.compress(data(TEXT, STOP).encode())), headers={**SSE, "Content-Encoding": "gzip"}),
        {"text": "Hello.", "outcome": "complete"},
    ),
    "gzip-broken": (
        case(b64(b"\x1f\x8b" + b"x" * 50), headers={**SSE, "Content-Encoding": "gzip"}),
        {"outcome": "interrupted", "retryable": True},
    ),
    "document": (
        case({"bytes": json.dumps(WHOLE, indent=2)}, headers={"Content-Type": "application/json"}),
        {"text": "Hello.", "outcome": "complete"},
    ),
    "document-cut": (
        case({"bytes": json.dumps(WHOLE, indent=2)[:60]}, headers={"Content-Type": "application/json"}),
        {"outcome": "interrupted", "retryable": True},
    ),
    "document-error": (
        case({"bytes": json.dumps({"error": {"code": 401, "message": "no"}}, indent=2)}),
        {"outcome": "error", "error": "no", "retryable": False},
    ),
    "error-in-the-delta": (
        case({"bytes": data({"choices": [{"delta": {"error": {"message": "boom", "code": 502}}}]}) + "data: [DONE]\n\n"}),
        {"outcome": "error", "error": "boom", "retryable": True},
    ),
    "error-in-a-list": (
        case({"bytes": data([{"error": {"code": 503, "message": "overloaded now", "status": "UNAVAILABLE"}}])}),
        {"outcome": "error", "error": "overloaded now", "retryable": True},
    ),
    "document-error-in-a-list": (
        case({"bytes": json.dumps([{"error": {"code": 503, "message": "overloaded now"}}], indent=2)}, headers={"Content-Type": "application/json"}),
        {"outcome": "error", "error": "(503): overloaded now", "retryable": True},
    ),
    "document-error-in-a-list-on-a-line": (
        case({"bytes": json.dumps([{"error": {"code": 400, "message": "bad words"}}])}, headers={"Content-Type": "application/json"}),
        {"outcome": "error", "error": "(400): bad words", "retryable": False},
    ),
    "document-error-in-a-list-cut": (
        case({"bytes": '[{"error": {"co'}, headers={"Content-Type": "application/json"}),
        {"outcome": "interrupted", "retryable": True},
    ),
    "status-429-stream": (
        case({"bytes": data({"error": {"message": "slow down"}})}, status=429),
        {"outcome": "error", "error": "(429): slow down.", "retryable": True},
    ),
    # a chunk without its beginning, and an end that comes too early: what was in there is missing
    "torn-call": (
        case({"bytes": data(HEAD) + data(TAIL)[1:] + data(STOP) + "data: [DONE]\n\n"}),
        {"outcome": "complete", "runnable": [False], "told": "1 unreadable"},
    ),
    "torn-text": (
        case(b64(b"\xff" + data(TEXT).encode() + data(TEXT, STOP).encode())),
        {"text": "Hello.", "outcome": "complete", "told": "1 unreadable"},
    ),
    "done-before-the-arguments": (
        case({"bytes": data(HEAD) + "data: [DONE]\n\n" + data(TAIL, STOP)}),
        {"outcome": "complete", "runnable": [False], "told": "1 unreadable"},
    ),
    "text-after-done": (
        case({"bytes": data(TEXT, STOP) + "data: [DONE]\n\n" + data(TEXT)}),
        {"text": "Hello.", "outcome": "complete", "told": ""},
    ),
    "safety-after-a-call": (
        case({"bytes": data(CALL, {"choices": [{"index": 0, "delta": {}, "finish_reason": "SAFETY"}]})}),
        {"outcome": "complete", "runnable": [False]},
    ),
    "network-error-after-a-call": (
        case({"bytes": data(CALL, {"choices": [{"index": 0, "delta": {}, "finish_reason": "network_error"}]})}),
        {"outcome": "error", "error": "network_error", "retryable": True, "runnable": [False]},
    ),
    "wrong-type": (
        case({"bytes": data(TEXT, STOP)}, headers={"Content-Type": "text/plain"}),
        {"text": "Hello.", "outcome": "complete"},
    ),
    "no-newline-then-cut": (
        case({"bytes": data(TEXT, STOP).rstrip()}, close="abort"),
        {"text": "Hello.", "outcome": "complete"},
    ),
    "no-newline-then-silence": (
        case({"bytes": data(TEXT, STOP).rstrip()}, close="hang"),
        {"text": "Hello.", "outcome": "complete"},
    ),
    "half-a-line-then-silence": (
        case({"bytes": data(TEXT) + 'data: {"choi'}, close="hang"),
        {"text": "Hello.", "outcome": "interrupted", "retryable": True},
    ),
    "cut-after-a-whole-call": (
        case({"bytes": data(CALL)}, close="abort"),
        {"outcome": "interrupted", "runnable": [False]},
    ),
    "usage-cut-after-the-finish": (
        case({"bytes": data(CALL, STOP) + 'data: {"usage":{"prompt'}, close="abort"),
        {"outcome": "complete", "runnable": [True]},
    ),
    "error-after-the-finish": (
        case({"bytes": data(CALL, STOP, {"error": {"code": 500, "message": "late"}})}),
        {"outcome": "error", "error": "late", "runnable": [False]},
    ),
    "pings-for-ever": (
        case({"bytes": data(TEXT)}, {"bytes": "event: ping\ndata: {}\n\n", "delay_ms": 100, "repeat": 50}, close="hang"),
        {"text": "Hello.", "outcome": "interrupted", "retryable": True},
    ),
    # an error that is no `data:` line
    "error-field": (
        case({"bytes": data(TEXT) + 'error: {"code":500,"message":"slot failed"}\n\n'}),
        {"text": "Hello.", "outcome": "error", "error": "(500): slot failed", "retryable": True},
    ),
    "error-field-first": (
        case({"bytes": 'error: {"code":500,"message":"slot failed","type":"server_error"}\n\n'}),
        {"outcome": "error", "error": "(500): slot failed", "retryable": True},
    ),
    "error-document-in-the-middle": (
        case({"bytes": data(TEXT) + json.dumps({"error": {"code": 500, "message": "slot failed"}}, indent=2) + "\n"}),
        {"text": "Hello.", "outcome": "error", "error": "(500): slot failed", "retryable": True},
    ),
    "error-document-in-the-middle-then-silence": (
        case({"bytes": data(TEXT) + json.dumps({"error": {"code": 400, "message": "bad slot"}}, indent=2)}, close="hang"),
        {"text": "Hello.", "outcome": "error", "error": "(400): bad slot", "retryable": False},
    ),
    "error-document-then-cut": (
        case({"bytes": data(CALL) + json.dumps({"error": {"code": 500, "message": "slot failed"}}, indent=2)}, close="abort"),
        {"outcome": "error", "error": "(500): slot failed", "runnable": [False]},
    ),
    "error-that-repeats-the-key-then-cut": (
        case({"bytes": data(TEXT) + 'data: {"error":{"code":401,"message":"no sk-test-not-a-key"}}'}, close="abort"),
        {"text": "Hello.", "outcome": "error", "error": "(401): no [", "retryable": False},
    ),
    # bytes that are no UTF-8 in a call
    "garbled-call-line": (case(b64(GARBLED)), {"outcome": "complete", "runnable": [False]}),
    "garbled-call-json-lines": (case(b64(GARBLED.replace(b"data: ", b""))), {"outcome": "complete", "runnable": [False]}),
    "garbled-call-document": (
        case(b64(json.dumps(WHOLE_CALL, indent=1).encode().replace(b"@", b"\xe9")), headers={"Content-Type": "application/json"}),
        {"outcome": "complete", "runnable": [False]},
    ),
    # a document is whole without a finish reason; a stream is not
    "document-without-a-finish": (
        case({"bytes": json.dumps(UNFINISHED)}, headers={"Content-Type": "application/json"}),
        {"text": "Hello.", "outcome": "complete"},
    ),
    "document-without-a-finish-in-a-stream": (
        case({"bytes": data(UNFINISHED)}),
        {"text": "Hello.", "outcome": "interrupted", "retryable": True},
    ),
    # what is no event keeps nothing waiting
    "empty-choices-for-ever": (
        case({"bytes": data(TEXT)}, {"bytes": data({"id": "x", "choices": []}), "delay_ms": 100, "repeat": 50}, close="hang"),
        {"text": "Hello.", "outcome": "interrupted", "error": "keep-alives for 0.5 s", "retryable": True},
    ),
    "empty-deltas-before-the-answer": (
        case({"bytes": data({"choices": [{"delta": {}}]}), "delay_ms": 100, "repeat": 8}, {"bytes": data(TEXT, STOP)}),
        {"text": "Hello.", "outcome": "complete"},
    ),
    "text-after-the-finish": (
        case({"bytes": data(STOP)}, {"bytes": data(TEXT), "delay_ms": 200, "repeat": 4}, {"bytes": "data: [DONE]\n\n"}),
        {"text": "Hello." * 4, "outcome": "complete"},
    ),
    "no-content": (case(status=204, framing="length"), {"outcome": "interrupted", "retryable": True}),
    "not-http": (
        {"segments": [{"bytes": "SSH-2.0-OpenSSH_9.6\r\n"}], "http": None, "framing": "raw", "close": "abort"},
        {"outcome": "error"},
    ),
    "status-599": (case({"bytes": "odd"}, status=599), {"outcome": "error", "error": "599", "retryable": True}),
    "error-body-cut": (
        case({"bytes": '{"error": {"mess'}, status=403, headers={"Content-Type": "application/json", "Content-Length": "500"}, framing="length", close="abort"),
        {"outcome": "error", "error": "403", "retryable": False},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("made")
    for name, (cassette, _) in CASES.items():
        more = {"id": name, "family": "made", "why": "made", "source": "made", "expect": {"outcome": "complete"}}
        (folder / f"{name}.json").write_text(json.dumps({**more, **cassette}))
    with ReplayServer(folder) as server:
        yield server


@pytest.mark.parametrize("name", CASES)
async def test_neighbours(made: ReplayServer, name: str) -> None:
    expected = CASES[name][1]
    got, events = await ask(
        made, f"cassette/{name}", max_retries=0, idle_timeout=0.5, first_event_timeout=5, finish_grace=0.3
    )
    assert got["outcome"] == expected["outcome"], got
    assert got["text"] == expected.get("text", "")
    assert expected.get("error", "") in got["error"]
    if "retryable" in expected:
        assert got["retryable"] is expected["retryable"]
    if "runnable" in expected:
        assert [c["runnable"] for c in got["tool_calls"]] == expected["runnable"]
    if "told" in expected:
        told = " ".join(event.text for event in events if isinstance(event, Notice))
        assert told.startswith(expected["told"])
        assert bool(told) == bool(expected["told"])


HEARTBEATS = {
    "choices": data({"choices": []}),
    "delta": data({"choices": [{"index": 0, "delta": {}, "finish_reason": None}]}),
    "finish": data(STOP),
    "usage": data({"choices": [], "usage": {"prompt_tokens": 3}}),
    "comment": ": alive\n\n",
    "done": "data: [DONE]\n\n",
}


@pytest.mark.parametrize("name", HEARTBEATS)
async def test_the_grace_after_a_finish_is_one(tmp_path: Path, name: str) -> None:
    beats = {"bytes": HEARTBEATS[name], "delay_ms": 50, "repeat": 400}
    cassette = case({"bytes": data(TEXT, STOP)}, beats, close="hang")
    more = {"id": "beats", "family": "made", "why": "made", "source": "made", "expect": {"outcome": "complete"}}
    (tmp_path / "beats.json").write_text(json.dumps({**more, **cassette}))
    with ReplayServer(tmp_path) as server:
        async with asyncio.timeout(5):
            got, _ = await ask(server, "cassette/beats", max_retries=0, idle_timeout=10, finish_grace=0.3)
    usage = {"prompt_tokens": 3} if name == "usage" else None
    assert (got["outcome"], got["text"], got["usage"]) == ("complete", "Hello.", usage)
