"""What servers say when they refuse → errors that help."""

from __future__ import annotations

import json
import socket
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
)
from hypercode.llm.errors import brief, http_error, no_stream_error, reported_error, unreachable_error
from hypercode.llm.retry import may_fall_back

CAPTURES = Path(__file__).parents[1] / "cases" / "captures"


def http(status: int, body: Any = b"", **headers: str) -> ModelError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return http_error(status, data, {k.replace("_", "-"): v for k, v in headers.items()}, host="gate.example")


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (400, {"error": {"message": "bad"}}, RequestRejected, False),
        (400, {"error": {"message": "API key not valid. Please pass a valid API key."}}, AuthError, False),
        (400, {"error": {"code": "context_length_exceeded", "message": "x"}}, ContextOverflow, False),
        (400, {"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}, ContextOverflow, False),
        (413, b"maximum context length is 9", ContextOverflow, False),
        (401, b"", AuthError, False),
        (402, b"", QuotaError, False),
        (403, {"error": {"message": "Key limit exceeded (total limit)"}}, QuotaError, False),
        (403, {"error": {"message": "country not supported"}}, RequestRejected, False),
        (404, {"error": {"message": "No endpoints found for x/y."}}, RequestRejected, False),
        (408, b"", ModelUnavailable, True),
        (409, b"", ModelUnavailable, True),
        (422, {"detail": [{"loc": ["body", "messages"], "msg": "field required"}]}, RequestRejected, False),
        (429, b"", ModelUnavailable, True),
        (429, {"error": {"code": "insufficient_quota", "message": "x"}}, QuotaError, False),
        (429, {"error": {"message": "Rate limit exceeded: free-models-per-day"}}, QuotaError, False),
        (500, b"oops", ModelUnavailable, True),
        (502, {"error": {"code": 400, "message": "x"}}, ModelUnavailable, True),
        (
            529,
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            ModelUnavailable,
            True,
        ),
        (301, b"", RequestRejected, False),
    ],
)
def test_http(status: int, body: Any, kind: type[ModelError], retryable: bool) -> None:
    error = http(status, body)
    assert (type(error), error.retryable, error.status) == (kind, retryable, status)
    assert str(status) in str(error)
    assert "gate.example" in str(error)


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"code": 429, "message": "x"}, ModelUnavailable, True),
        ({"code": "503", "message": "x"}, ModelUnavailable, True),
        ({"code": 1113, "message": "insufficient balance"}, QuotaError, False),
        ({"code": 1305, "message": "busy"}, ModelUnavailable, True),
        ({"message": "x", "type": "overloaded_error"}, ModelUnavailable, True),
        ({"message": "x", "type": "invalid_request_error"}, RequestRejected, False),
        ({"message": "x", "type": "authentication_error"}, AuthError, False),
        ({"message": "x", "metadata": {"error_type": "rate_limit_exceeded"}}, ModelUnavailable, True),
        ({"message": "x", "metadata": {"error_type": "payment_required"}}, QuotaError, False),
        ({"message": "x", "metadata": {"error_type": "context_length_exceeded"}}, ContextOverflow, False),
        ({"message": "the model does not exist"}, RequestRejected, False),
        ("engine stopped: out of memory", ModelUnavailable, True),
    ],
)
def test_in_the_stream(error: Any, kind: type[ModelError], retryable: bool) -> None:
    found = reported_error({"error": error})
    assert found is not None
    assert (type(found), found.retryable) == (kind, retryable)


REFUSED = "Pick another model (/model or -m); with --debug the log has an outline of the request."


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (400, {"error": {"message": "Bad."}}, f"gate.example (400): Bad. {REFUSED}"),
        (400, b"", f"gate.example (400): no explanation. {REFUSED}"),
        (422, {"detail": "bad\nwords"}, f"gate.example (422): bad words. {REFUSED}"),
        (451, {"error": {"message": "not here"}}, f"gate.example (451): not here. {REFUSED}"),
        (413, b"too large", "gate.example (413): too large. Shorten the conversation (/compact)."),
        (405, b"no", "gate.example (405): no. Check the base URL: it usually ends in /v1."),
        (308, b"gone", "gate.example (308): gone. Check the base URL: it usually ends in /v1."),
    ],
)
def test_a_refusal_says_what_to_do(status: int, body: Any, text: str) -> None:
    error = http(status, body, content_type="application/json")
    assert (type(error), str(error)) == (RequestRejected, text)
    assert "log" not in brief(error)
    assert not may_fall_back(error)  # the advice to pick another model is none of the server's words


def test_a_refusal_in_the_stream_says_what_to_do() -> None:
    error = reported_error({"error": {"message": "bad", "type": "invalid_request_error"}}, host="gate.example")
    assert str(error) == f"gate.example: bad. {REFUSED}"


def test_who_said_what_and_what_to_do() -> None:
    raw = json.dumps({"error": {"message": "demo-model is rate-limited upstream"}})
    metadata = {
        "raw": raw,
        "provider_name": "DemoCloud",
        "previous_errors": [{"code": 503, "message": "no capacity", "provider_name": "OtherCloud"}],
    }
    body = {"error": {"code": 429, "message": "Provider returned error", "metadata": metadata}}
    error = http(429, body, retry_after="12")
    assert str(error) == (
        "DemoCloud (through gate.example) (429): Provider returned error: demo-model is rate-limited upstream; "
        "before that OtherCloud: no capacity. Wait 12 s, or pick another model."
    )
    assert (error.provider, error.retry_after) == ("DemoCloud", 12)
    assert brief(error).startswith("429 from DemoCloud (through gate.example): Provider returned error: demo-model")


@pytest.mark.parametrize(
    "error",
    [
        {"availability": {"retry_after": 7}},
        {"metadata": {"headers": {"Retry-After": "7"}}},
        {"metadata": {"retry_after": 7}},
        {"retry_after": 7.0},
    ],
)
def test_waits_in_bodies(error: dict[str, Any]) -> None:
    assert http(503, {"error": {"message": "x", **error}}).retry_after == 7


@pytest.mark.parametrize(
    "body",
    [
        b'data: {"error":{"message":"slow down","code":429}}\n\n',
        b': hello\n\ndata: {"error":{"message":"slow down"}}\n\ndata: [DONE]\n\n',
        b'event: error\r\ndata: {"message":"slow down"}\r\n\r\n',
        b"event: error\ndata: slow down\n\n",
        b"data: slow down\n\n",
        b'data: [{"error":{"message":"slow down"}}]\n\n',
        b'[{"error":{"message":"slow down"}}]',
        b'[\n{"error":{"message":"slow down"}}\n]\n',
        b'error: {"message":"slow down"}\n\n',
        b"error: slow down",
    ],
)
def test_the_body_of_an_error_may_be_a_stream_or_a_list(body: bytes) -> None:
    error = http(429, body)
    assert str(error) == "gate.example (429): slow down. Wait a moment, or pick another model."
    assert error.retryable


@pytest.mark.parametrize(
    "body",
    [
        {"message": {"detail": [{"type": "missing", "loc": ["body", "model"], "msg": "Field required"}]}},
        {"detail": [{"loc": ["body", "model"], "msg": "Field required"}]},
        {"error": {"message": {"detail": "body.model: Field required"}}},
        {"base_resp": {"status_code": 2013, "status_msg": "body.model: Field required"}},
        {"error_code": 336003, "error_msg": "body.model: Field required"},
        {"code": "x", "errorMessage": "body.model: Field required"},
    ],
)
def test_the_words_are_found_wherever_they_stand(body: dict[str, Any]) -> None:
    assert (
        str(http(422, body))
        == "gate.example (422): body.model: Field required. Pick another model (`hypercode models` lists them), or check the base URL."
    )


def test_an_error_in_an_error_in_an_error() -> None:
    error: Any = {"message": {"detail": "boom"}, "code": 500}
    for _ in range(400):
        error = {"error": error}
    found = reported_error(error)
    assert str(found) == "The server (500): boom. It may pass: try again, or pick another model."


def test_a_number_is_a_status() -> None:
    error = reported_error({"error": 500}, host="gate.example")
    assert (type(error), error and error.status) == (ModelUnavailable, 500)


def test_html_is_never_shown() -> None:
    page = b"<!DOCTYPE html><html><head><title>502 | Bad\n gateway</title></head><body><p>filler</p></body></html>"
    for error in (
        http(502, page, content_type="text/html"),
        http(502, {"error": {"message": page.decode()}}),
        http(502, {"error": {"message": "x", "metadata": {"raw": page.decode()}}}),
        no_stream_error(page, "text/html", "gate.example"),
    ):
        assert "502 | Bad gateway" in str(error)
        assert "<" not in str(error)
    assert "<" not in str(http(502, b"<p>filler</p>", content_type="text/html"))


def test_long_texts_are_cut() -> None:
    assert len(str(http(500, b"x" * 100_000))) < 1000


def test_no_stream() -> None:
    assert (
        type(no_stream_error(b'{"error":{"code":429,"message":"busy"}}', "application/json", "h")) is ModelUnavailable
    )
    error = no_stream_error(b"Hello from nginx", "text/plain", "h")
    assert type(error) is RequestRejected
    assert "Hello from nginx" in str(error)


def test_recorded_errors_of_llama_cpp() -> None:
    overflow = http(400, (CAPTURES / "llamacpp-error-context-overflow.json").read_bytes())
    assert type(overflow) is ContextOverflow
    assert "9025 tokens" in str(overflow)
    bad = http(400, (CAPTURES / "llamacpp-error-bad-request.json").read_bytes())
    assert type(bad) is RequestRejected
    assert "Expected 'messages' to be an array" in str(bad)


def test_unreachable() -> None:
    cause = socket.gaierror(-2, "Name or service not known")
    error = RuntimeError("Connection error.")
    error.__cause__ = cause
    found = unreachable_error(error, "https://nowhere.example/v1")
    assert "cannot reach nowhere.example: Name or service not known. Check the network" in str(found)
    error.__cause__ = ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)")
    found = unreachable_error(error, "http://127.0.0.1:1/v1")
    refused = "cannot connect to 127.0.0.1:1: connection refused. Is the server running?"
    assert (str(found), brief(found), found.retryable) == (refused, refused, True)
    found = unreachable_error(RuntimeError("certificate verify failed"), "https://x.example/v1")
    assert (found.retryable, "cannot trust x.example" in str(found)) == (False, True)
    assert type(unreachable_error(RuntimeError("x"), "x.example/v1")) is RequestRejected


def test_a_long_list_of_names_is_cut_to_the_nearest() -> None:
    names = [f"acme/tiny-{n}" for n in range(3000)] + ["acme/large-2", "other/large-v2"]

    def said(message: str) -> str:
        return str(http(404, json.dumps({"error": {"message": message}}).encode()))

    text = said(f"model 'acme/lrge-2' not found, there are: {', '.join(names)}. Choose one")
    assert text.startswith("gate.example (404): model 'acme/lrge-2' not found, there are: acme/large-2, ")
    assert "other/large-v2" in text
    assert text.endswith(
        ", … (3002 in all). Choose one. Pick another model (`hypercode models` lists them), or check the base URL."
    )
    assert len(text) < 300
    text = said(f"Unknown. Available: {', '.join(names)}")
    first = ", ".join(names[:5])
    assert f"Available: {first}, … (3002 in all)." in text
    few = ", ".join(names[:10])
    assert f"Available: {few}." in said(f"Unknown. Available: {few}")
    words = "This, that, and more of it, is prose, in which commas stand, too, of course, but not, as a rule, so often"
    assert words in said(words)
    assert len(said("word " * 20_000)) < 800


@pytest.mark.parametrize(
    ("host", "key", "local", "advice"),
    [
        (
            "localhost:8080",
            "HYPERCODE_API_KEY",
            True,
            "The key that was sent is refused; it came from HYPERCODE_API_KEY. Set another one there, or start the server"
            " without one.",
        ),
        (
            "gate.example",
            "api_key in /home/me/config.toml",
            False,
            "The key that was sent is refused; it came from api_key in /home/me/config.toml. Set another one there"
            " (HYPERCODE_API_KEY goes before it).",
        ),
        (
            "openrouter.ai",
            "OPENROUTER_API_KEY",
            False,
            "The key that was sent is refused; it came from OPENROUTER_API_KEY. Set another one there.",
        ),
        (
            "gate.example",
            "",
            False,
            "No key was sent: set one with HYPERCODE_API_KEY, or api_key in the configuration. A key for openrouter.ai is"
            " never sent elsewhere.",
        ),
        (
            "openrouter.ai",
            None,
            False,
            "Either the key that was sent is refused, or none was sent: set one with OPENROUTER_API_KEY, or api_key in the"
            " configuration.",
        ),
    ],
)
def test_whether_a_key_was_sent_and_what_sets_one(host: str, key: str | None, local: bool, advice: str) -> None:
    error = http_error(401, b'{"error": {"message": "no"}}', {}, host=host, key=key, local=local)
    assert str(error) == f"{host} (401): no. {advice}"
