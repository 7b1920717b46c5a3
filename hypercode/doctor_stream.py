"""A short stream, measured: first sign, banner of a tool call, steadiness, and our own share of the waiting.

The promises are stated in the findings, each with what was measured.  What the server and the network take is told apart from
what this program takes: the time from the last bytes that came to the event that shows them.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from hypercode.errors import ModelError
from hypercode.events import Event, ReasoningDelta, TextDelta, ToolCallDelta, ToolCallStart
from hypercode.findings import Finding
from hypercode.llm.client import Client
from hypercode.llm.settings import ModelSettings
from hypercode.messages import Reply, user

__all__ = ["FIRST_SIGN", "OWN_SHARE", "PAUSE", "measure"]

FIRST_SIGN = 10.0
"""Seconds within which the first piece of an answer should be there."""

PAUSE = 3.0
"""Seconds between two pieces that should not be passed."""

OWN_SHARE = 0.05
"""Seconds from the bytes to the event, for any piece and for the name of a tool."""

_WHOLE = 45.0
_TASK = (
    "Write three short sentences about the sea. Then call the tool `note` once, with a text of about sixty words about "
    "ships. Say nothing after that."
)
_TOOL = {
    "type": "function",
    "function": {
        "name": "note",
        "description": "Keep a note.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
}


@dataclass(slots=True)
class _Seen:
    """When which event came, in seconds of `time.monotonic`, and how long after its bytes."""

    client: Client
    events: list[tuple[float, Event]] = field(default_factory=list)
    own: list[float] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        if isinstance(event, TextDelta | ReasoningDelta | ToolCallStart | ToolCallDelta):
            now = time.monotonic()
            self.events.append((now, event))
            self.own.append(now - (self.client.last_sign_of_life or now))

    def times(self, *kinds: type) -> list[float]:
        return [moment for moment, event in self.events if isinstance(event, kinds)]


async def measure(settings: ModelSettings, *, seconds: float = _WHOLE) -> list[Finding]:
    """Ask for one short answer with a tool call and say how it came.  It is billed like any; bounded by `seconds`."""
    hurried = replace(
        settings,
        fallbacks=(),
        max_retries=0,
        max_tokens=min(settings.max_tokens or 1000, 1000),
        first_event_timeout=min(settings.first_event_timeout, seconds),
        idle_timeout=min(settings.idle_timeout, 15.0),
    )
    client = Client(hurried)
    await asyncio.to_thread(client.warm_up)
    seen, reply = _Seen(client), Reply()
    try:
        async with asyncio.timeout(seconds):
            await client.complete([user(_TASK)], [_TOOL], reply, seen)
    except TimeoutError:
        return [
            Finding(
                "stream", "problem", f"The answer was not over after {seconds:g} s.", "Try again, or another model."
            )
        ]
    except ModelError as error:
        came = f" {len(seen.events)} pieces had come." if seen.events else ""
        return [Finding("stream", "problem", f"{error}{came}", "See the findings on key, network and model.")]
    finally:
        await client.aclose()
    if not seen.events:
        return [Finding("stream", "problem", "The model answered with nothing.", "Try another model with -m.")]
    return [_first(reply, seen), _banner(seen), _steady(seen), _own(seen), _bill(reply)]


def _first(reply: Reply, seen: _Seen) -> Finding:
    first = reply.ttft or 0.0
    text = f"First sign after {first:.2f} s (promise: {FIRST_SIGN:g} s)."
    slow = first > FIRST_SIGN
    return Finding("stream", "warning", text, "Server or network are slow; try another model.") if slow else _ok(text)


def _banner(seen: _Seen) -> Finding:
    """Whether the tool was named when its name came, and not when its call was whole."""
    started, pieces = seen.times(ToolCallStart), seen.times(ToolCallDelta)
    if not started:
        text = "The model did not call the tool that it was offered: the banner could not be measured."
        return Finding("stream", "warning", text, "Try again; if it never does, choose a model that can use tools.")
    if len(pieces) < 2:
        text = "The tool call came in one piece: its banner is there as soon as the call is, and not before."
        return Finding("stream", "warning", text, "That is the server's doing; nothing is lost by it.")
    lead = pieces[-1] - started[0]
    return _ok(
        f"The tool was named {lead * 1000:.0f} ms before its call was whole (promise: as soon as its name has come)."
    )


def _steady(seen: _Seen) -> Finding:
    moments = seen.times(TextDelta, ReasoningDelta, ToolCallDelta)
    gaps = [b - a for a, b in pairwise(moments)]
    if len(set(moments)) < 3 or moments[-1] - moments[0] < 0.001:
        text = f"The answer came all at once, in {len(moments)} piece(s): it is held back on the way."
        return Finding("stream", "warning", text, "Look for a proxy that buffers between here and the server.")
    text = (
        f"{len(moments)} pieces, {median(gaps) * 1000:.0f} ms apart, {max(gaps):.2f} s at most (promise: {PAUSE:g} s)."
    )
    if max(gaps) > PAUSE:
        return Finding("stream", "warning", text, "Server or network falter; what comes is shown at once all the same.")
    return _ok(text)


def _own(seen: _Seen) -> Finding:
    most = max(seen.own)
    text = f"hypercode's own share: {most * 1000:.1f} ms at most from the bytes to the event (promise: {OWN_SHARE * 1000:.0f} ms)."
    return Finding("stream", "warning", text, "This machine is busy.") if most > OWN_SHARE else _ok(text)


def _bill(reply: Reply) -> Finding:
    cost = "not said by the server" if reply.cost is None else f"{reply.cost:.6f} USD"
    return _ok(f"Answered by {reply.model or 'a model without a name'}; billed: {cost}.")


def _ok(text: str) -> Finding:
    return Finding("stream", "ok", text)
