"""Scenarios that look at the request: servers which refuse what others take."""

from __future__ import annotations

from hypercode.testing.scenarios import Out, ok, refuse, scenario

__all__ = []

_TEMPLATE = "Jinja Exception: {}"
_ORDER = "Conversation roles must alternate user/assistant/user/assistant/..."


@scenario
async def _no_stream_options(out: Out) -> None:
    """`stream_options` is refused; without it the answer is healthy."""
    if "stream_options" in out.body:
        return await refuse(out, 400, "Unrecognized request argument supplied: stream_options")
    await ok(out)


@scenario
async def _strict_roles(out: Out) -> None:
    """A chat template that takes user and assistant in turn alone, apart from tools; else status 500."""
    counted = [
        m["role"] for m in out.body["messages"] if m["role"] in ("user", "assistant") and not m.get("tool_calls")
    ]
    if counted != [("user", "assistant")[n % 2] for n in range(len(counted))]:
        return await refuse(out, 500, _TEMPLATE.format(_ORDER))
    await ok(out)


@scenario
async def _no_system(out: Out) -> None:
    """A chat template that takes no system message; else status 500."""
    if any(message["role"] == "system" for message in out.body["messages"]):
        return await refuse(out, 500, _TEMPLATE.format("System role not supported"))
    await ok(out)
