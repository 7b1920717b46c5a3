"""The outline of a request in the log: what a server that refuses it may have stumbled on, and no word of what was said."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from hypercode.messages import Message, text_of

__all__ = ["log_request", "outline"]

_WHOLE = 100

log = logging.getLogger("hypercode")


def log_request(body: Mapping[str, Any]) -> None:
    """Write the outline of a request's body to the log, where everything is logged."""
    if log.isEnabledFor(logging.DEBUG):
        log.debug("request: %s", outline(body))


def outline(body: Mapping[str, Any]) -> str:
    """The fields of a request, the names of its tools, and its messages by role and size, with the ids of calls."""
    fields = [f"{key}={_brief(value)}" for key, value in body.items() if key not in ("messages", "tools")]
    tools = [str((tool.get("function") or {}).get("name")) for tool in body.get("tools", ())]
    messages: Sequence[Message] = body.get("messages", ())
    parts = [*fields, f"tools=[{', '.join(tools)}]", f"messages={len(messages)}: {'; '.join(map(_line, messages))}"]
    return " ".join(", ".join(parts).split())


def _line(message: Message) -> str:
    """One message: `assistant 12 calls read(call_1) with reasoning_details`."""
    parts = [str(message.get("role")), str(len(text_of(message)))]
    if calls := message.get("tool_calls"):
        parts.append("calls " + " ".join(f"{(c.get('function') or {}).get('name')}({c.get('id')})" for c in calls))
    if answers := message.get("tool_call_id"):
        parts.append(f"to {answers}")
    if more := [key for key in message if key not in ("role", "content", "tool_calls", "tool_call_id")]:
        parts.append("with " + " ".join(more))
    return " ".join(parts)


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _WHOLE else f"{text[:_WHOLE]}…"
