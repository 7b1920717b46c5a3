"""The scenarios of the fault-injecting server: one async function each, whose docstring says what happens."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import Any, Protocol

__all__ = ["SCENARIOS", "Out", "Scenario", "call", "event", "finish", "ok", "refuse", "scenario", "words"]


class Out(Protocol):
    """What a scenario can do with the connection.  `turn` counts the requests for its model from 1."""

    model: str
    turn: int
    body: dict[str, Any]

    async def start(self, status: int = 200, **headers: str) -> None:
        """Send status and headers, `_` in their names for `-`; the body is chunked."""

    async def write(self, data: bytes) -> None:
        """Send a piece of the body."""

    async def end(self) -> None:
        """End the body properly."""

    async def cut(self, *, reset: bool = False) -> None:
        """Close the connection in the middle, or reset it."""

    async def hang(self) -> None:
        """Stay open and silent until the client goes."""


Scenario = Callable[[Out], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}

USAGE = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
_TEXT = "The quick brown fox jumps over the lazy dog."
_HTML = "<!doctype html><html><head><title>{}</title></head><body>secret page</body></html>"


def scenario(function: Scenario) -> Scenario:
    """Register a scenario under its name, with `-` for `_`."""
    SCENARIOS[function.__name__.strip("_").replace("_", "-")] = function
    return function


def event(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    """One chunk as an event."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    head = {"id": "gen-test", "object": "chat.completion.chunk", "created": 1790000000, "model": "test/model"}
    return b"data: " + json.dumps({**head, "choices": [choice], **more}, ensure_ascii=False).encode() + b"\n\n"


def call(arguments: str, name: str | None = None, ident: str | None = None, index: int | None = 0) -> dict[str, Any]:
    """A delta with a fragment of one tool call."""
    function = {"arguments": arguments} | ({"name": name} if name is not None else {})
    fragment: dict[str, Any] = {"function": function}
    if ident is not None:
        fragment |= {"id": ident, "type": "function"}
    if index is not None:
        fragment["index"] = index
    return {"tool_calls": [fragment]}


async def words(out: Out, text: str = _TEXT, pause: float = 0.0) -> None:
    """Text, a word a chunk."""
    for word in text.split(" "):
        await out.write(event({"content": word + " "}))
        if pause:
            await asyncio.sleep(pause)


async def finish(out: Out, reason: str = "stop") -> None:
    """A proper end: finish reason, usage, `[DONE]`."""
    await out.write(event(finish=reason))
    await out.write(b"data: " + json.dumps({"id": "gen-test", "choices": [], "usage": USAGE}).encode() + b"\n\n")
    await out.write(b"data: [DONE]\n\n")
    await out.end()


async def refuse(out: Out, status: int, message: str, **headers: str) -> None:
    """An HTTP error with a JSON body."""
    await out.start(status, Content_Type="application/json", **headers)
    await out.write(json.dumps({"error": {"code": status, "message": message}}).encode())
    await out.end()


@scenario
async def ok(out: Out) -> None:
    """A healthy answer."""
    await out.start()
    await words(out)
    await finish(out)


@scenario
async def _slow(out: Out) -> None:
    """A healthy answer, 50 ms a word."""
    await out.start()
    await words(out, pause=0.05)
    await finish(out)


@scenario
async def _slow_first_token(out: Out) -> None:
    """Headers at once, keep-alives for 3 s, then a healthy answer."""
    await out.start()
    for _ in range(6):
        await out.write(b": processing\n\n")
        await asyncio.sleep(0.5)
    await words(out)
    await finish(out)


@scenario
async def _tool_call(out: Out) -> None:
    """A call of `read` in pieces; a second request gets text."""
    await out.start()
    if out.turn > 1:
        await words(out, "Done reading.")
        return await finish(out)
    await out.write(event({"content": "Let me look. "}))
    await out.write(event(call("", "read", "call_1")))
    for piece in ('{"pa', 'th": "READ', 'ME.md"}'):
        await out.write(event(call(piece)))
    await finish(out, "tool_calls")


@scenario
async def _missing_index(out: Out) -> None:
    """Two calls in pieces, none of which has an index."""
    await out.start()
    for number, path in enumerate(("a.py", "b.py")):
        await out.write(event(call('{"path": ', "read", f"call_{number}", None)))
        await out.write(event(call(f'"{path}"}}', index=None)))
    await finish(out, "tool_calls")


@scenario
async def _repeated_name(out: Out) -> None:
    """The name of the tool comes again with each piece of its arguments."""
    await out.start()
    await out.write(b"".join(event(call(piece, "read", "call_1")) for piece in ("", '{"path": ', '"a.py"}')))
    await finish(out, "tool_calls")


@scenario
async def _bad_arguments(out: Out) -> None:
    """Arguments of a call that are not JSON."""
    await out.start()
    await out.write(event(call("{'path': 'a.py'}", "read", "call_1")))
    await finish(out, "tool_calls")


@scenario
async def _split_utf8(out: Out) -> None:
    """Every byte alone, in the middle of characters too."""
    await out.start()
    for byte in event({"content": "Grüße 👋 日本"}):
        await out.write(bytes([byte]))
    await finish(out)


@scenario
async def _malformed_chunk(out: Out) -> None:
    """One line of cut JSON between two good ones."""
    await out.start()
    await out.write(event({"content": "Before, "}) + b'data: {"choices":[{"del\n\n' + event({"content": "after."}))
    await finish(out)


@scenario
async def _cut(out: Out) -> None:
    """The connection is closed in the middle of the text."""
    await out.start()
    await words(out)
    await out.cut()


@scenario
async def _cut_in_call(out: Out) -> None:
    """The connection is closed in the middle of a tool call's arguments."""
    await out.start()
    await out.write(event({"content": "Patching. "}) + event(call('{"path": "a.py", "ol', "edit", "call_1")))
    await out.cut()


@scenario
async def _reset(out: Out) -> None:
    """The connection is reset in the middle of the text."""
    await out.start()
    await words(out, pause=0.01)
    await out.cut(reset=True)


@scenario
async def _no_end(out: Out) -> None:
    """The body ends properly, without finish reason or `[DONE]`."""
    await out.start()
    await words(out)
    await out.end()


@scenario
async def _empty(out: Out) -> None:
    """Status 200 and an empty body."""
    await out.start()
    await out.end()


@scenario
async def _no_answer(out: Out) -> None:
    """The request is read and never answered."""
    await out.hang()


@scenario
async def _drop_before_headers(out: Out) -> None:
    """The connection is closed instead of an answer; the second request is healthy."""
    if out.turn == 1:
        return await out.cut()
    await ok(out)


@scenario
async def _stall(out: Out) -> None:
    """Text, then silence with the connection open."""
    await out.start()
    await words(out)
    await out.hang()


@scenario
async def _stall_in_call(out: Out) -> None:
    """Half a tool call, then silence."""
    await out.start()
    await out.write(event({"content": "Writing. "}) + event(call('{"path": "a', "write", "call_1")))
    await out.hang()


@scenario
async def _stall_reasoning(out: Out) -> None:
    """Some thinking, then silence."""
    await out.start()
    await out.write(event({"reasoning": "Let me think"}))
    await out.hang()


@scenario
async def _stall_after_finish(out: Out) -> None:
    """A finish reason, then silence: the answer is whole."""
    await out.start()
    await words(out)
    await out.write(event(finish="stop"))
    await out.hang()


@scenario
async def _comments_only(out: Out) -> None:
    """Status 200 and nothing but keep-alives."""
    await out.start()
    while True:
        await out.write(b": keep-alive\n\n")
        await asyncio.sleep(0.1)


@scenario
async def _error_mid_stream(out: Out) -> None:
    """An error after some text."""
    await out.start()
    await words(out)
    await out.write(b'data: {"error": {"code": 502, "message": "upstream went away"}}\n\n')
    await out.end()


@scenario
async def _error_first(out: Out) -> None:
    """Status 200 and an error as the first event; the second request is healthy."""
    if out.turn > 1:
        return await ok(out)
    await out.start()
    await out.write(b'data: {"error": {"code": 503, "message": "warming up"}}\n\n')
    await out.end()


@scenario
async def _429(out: Out) -> None:
    """A 429 with `Retry-After: 1`; the second request is healthy."""
    await (ok(out) if out.turn > 1 else refuse(out, 429, "slow down", Retry_After="1"))


@scenario
async def _429_date(out: Out) -> None:
    """A 429 whose `Retry-After` is a date, two seconds ahead; the second request is healthy."""
    when = formatdate(time.time() + 2, usegmt=True)
    await (ok(out) if out.turn > 1 else refuse(out, 429, "slow down", Retry_After=when))


@scenario
async def _429_long(out: Out) -> None:
    """A 429 that asks to wait for an hour."""
    await refuse(out, 429, "come back later", Retry_After="3600")


@scenario
async def _429_forever(out: Out) -> None:
    """A 429 without `Retry-After`, every time."""
    await refuse(out, 429, "slow down")


@scenario
async def _500_twice(out: Out) -> None:
    """Two errors with status 500, then a healthy answer."""
    await (ok(out) if out.turn > 2 else refuse(out, 500, "internal error"))


@scenario
async def _401(out: Out) -> None:
    """The key is refused, and echoed."""
    await refuse(out, 401, f"Incorrect API key provided: {getattr(out, 'key', '')}")


def _refusal(status: int, message: str, doc: str) -> Scenario:
    async def play(out: Out) -> None:
        await refuse(out, status, message.format(model=out.model))

    play.__doc__ = doc
    return play


SCENARIOS |= {
    "400": _refusal(400, "'messages' is not an array", "The request is refused."),
    "402": _refusal(402, "Insufficient credits", "No credits are left."),
    "403": _refusal(403, "flagged by moderation", "Moderation refuses the request."),
    "404": _refusal(404, "model '{model}' not found", "The model is not known."),
    "quota": _refusal(429, "You exceeded your current quota.", "A 429 that is a used-up quota: repeating is useless."),
    "context": _refusal(
        400, "maximum context length is 8192 tokens, not 9001", "The request is longer than the context."
    ),
}


@scenario
async def _html(out: Out) -> None:
    """A web page instead of an answer."""
    await out.start(Content_Type="text/html")
    await out.write(_HTML.format("Log in").encode())
    await out.end()


@scenario
async def _html_502(out: Out) -> None:
    """A proxy's error page with status 502."""
    await out.start(502, Content_Type="text/html")
    await out.write(_HTML.format("Bad gateway").encode())
    await out.end()


@scenario
async def _error_body_hangs(out: Out) -> None:
    """Status 401, half of its body, then silence."""
    await out.start(401, Content_Type="application/json")
    await out.write(b'{"error": {"mess')
    await out.hang()


@scenario
async def _redirect_elsewhere(out: Out) -> None:
    """A redirect to another host."""
    await out.start(307, Location="http://elsewhere.invalid/v1/chat/completions")
    await out.end()


@scenario
async def _length(out: Out) -> None:
    """The token limit cuts the answer."""
    await out.start()
    await words(out)
    await finish(out, "length")


@scenario
async def _endless(out: Out) -> None:
    """Text for ever, a chunk every 20 ms."""
    await out.start()
    while True:
        await words(out, pause=0.02)
