"""What one server or model needs on the request.  A small function each.

What a host is known to need is done at once; what it refuses with a 400 is left out of the next try and remembered.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from hypercode.errors import ModelError
from hypercode.llm.roles import ALTERNATION, SYSTEM, reordered, roles_refused
from hypercode.llm.settings import ModelSettings
from hypercode.messages import Message, well_formed

__all__ = [
    "REFUSABLE",
    "attribution",
    "encode_body",
    "host_of",
    "is_loopback",
    "is_openrouter",
    "refused_field",
    "request_body",
]

REFUSABLE = {
    "stream_options": "usage at the end of the stream",
    "max_tokens": "max_tokens, replaced by max_completion_tokens",
    "temperature": "a temperature",
    "parallel_tool_calls": "parallel_tool_calls",
    "cache_control": "cache_control",
    "session_id": "session_id",
    "reasoning_details": "the thinking of earlier answers (reasoning_details)",
    "reasoning_content": "the thinking of earlier answers (reasoning_content)",
    "extra_content": "extra_content of earlier answers",
    "provider_specific_fields": "provider_specific_fields of earlier answers",
    "thought_signature": "thought_signature of earlier answers",
    ALTERNATION: "messages of one side in a row",
    SYSTEM: "a system message",
    "tool_call_ids": "the ids of earlier calls, which get others",
}
"""What a request can do without, mostly fields, and what to call it."""

_IN_MESSAGES = frozenset(
    {"reasoning_details", "reasoning_content", "extra_content", "provider_specific_fields", "thought_signature"}
)
_REFUSAL = (
    r"unsupported|not (currently )?(supported|permitted|allowed|recogni[sz]ed|valid|accepted)|unknown|unrecogni[sz]ed|unexpected|extra (inputs|fields)"
    r"|invalid|no such|isn't supported|does not support|only allowed|additional propert"
)
_IDS = r"\btool[_ ]?(call|use)(s\b.{0,40}\bids?\b|[_ .]ids?\b).{0,200}(length|too long|pattern)"
"""Mistral takes ids of nine letters and digits alone, OpenAI 40 characters at most, Anthropic no dots; others made them up."""
_ID_LENGTH = 9
_NOT_IN_NAMES = r"[^a-zA-Z0-9_-]"


def host_of(base_url: str) -> str:
    """The host of a URL, with its port where it has one."""
    return urlsplit(base_url).netloc.rpartition("@")[2] or base_url


def is_loopback(base_url: str) -> bool:
    """Whether the server is on this machine."""
    host = (urlsplit(base_url).hostname or "").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_openrouter(base_url: str) -> bool:
    """Whether the server is OpenRouter."""
    host = (urlsplit(base_url).hostname or "").lower()
    return host == "openrouter.ai" or host.endswith(".openrouter.ai")


def attribution(base_url: str) -> dict[str, str]:
    """The headers by which OpenRouter names the application; nobody else gets them."""
    return {"X-OpenRouter-Title": "hypercode", "X-Title": "hypercode"} if is_openrouter(base_url) else {}


def request_body(
    settings: ModelSettings,
    model: str,
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]],
    refused: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """The body of one request.  Its beginning is the same from turn to turn, so that the server's cache can hit."""
    openrouter = is_openrouter(settings.base_url)
    body: dict[str, Any] = {"model": model}
    if openrouter and settings.fallbacks:
        body["models"] = [model, *(m for m in settings.fallbacks if m != model)]
    if tools:
        body["tools"] = sorted(tools, key=lambda tool: str(tool.get("function", {}).get("name", "")))
    body["messages"] = reordered([_sendable(message, refused) for message in messages], refused)
    body["stream"] = True
    if not openrouter:
        body["stream_options"] = {"include_usage": True}
    if settings.max_tokens is not None:
        body["max_tokens"] = settings.max_tokens
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    body |= {k: v for k, v in settings.extra_body.items() if k not in ("messages", "stream", "tools", "model")}
    if "max_tokens" in refused and "max_tokens" in body:
        body["max_completion_tokens"] = body["max_tokens"]
    return {k: v for k, v in body.items() if k not in refused}


def refused_field(error: ModelError, sent: Mapping[str, Any], refused: frozenset[str]) -> str | None:
    """The dispensable field for which the server refused the request; None where it was something else."""
    text = str(error)
    said = " ".join((*getattr(error, "__notes__", ()), text))
    if order := roles_refused(said, sent.get("messages", ()), refused):
        return order
    if "tool_call_ids" not in refused and re.search(_IDS, said, re.IGNORECASE | re.DOTALL):
        return "tool_call_ids"
    if error.status not in (400, 422) or not re.search(_REFUSAL, text, re.I):
        return None
    messages = sent.get("messages", ())
    for name in REFUSABLE:
        if name not in refused and name in text and (name in sent or (name in _IN_MESSAGES and _used(name, messages))):
            return name
    return None


def encode_body(body: Mapping[str, Any]) -> bytes:
    """The body as JSON.  What JSON or UTF-8 cannot carry (a lone surrogate, NaN) is replaced, never a reason to fail."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        return json.dumps(_clean(body), ensure_ascii=False, separators=(",", ":")).encode()


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, Mapping):
        return {well_formed(str(k)): _clean(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _sendable(message: Message, refused: frozenset[str]) -> Message:
    """The message as this server takes it; the same object where nothing has to change."""
    dropped = [k for k in message if k in refused and k in _IN_MESSAGES]
    calls = message.get("tool_calls")
    if "tool_call_ids" in refused and "tool_call_id" in message:
        return {**message, "tool_call_id": _short_id(message["tool_call_id"])}
    if not dropped and not calls:
        return message
    kept = {k: v for k, v in message.items() if k not in dropped} if dropped else message
    if calls:
        new = [_sendable_call(call, refused) for call in calls]
        if any(a is not b for a, b in zip(new, calls, strict=True)):
            kept = {**kept, "tool_calls": new}
    return kept


def _sendable_call(call: dict[str, Any], refused: frozenset[str]) -> dict[str, Any]:
    """A call whose name providers accept: a model's own invention may hold what they refuse for ever after."""
    function = call.get("function") or {}
    name = str(function.get("name") or "")
    legal = re.sub(_NOT_IN_NAMES, "_", name)[:64] or "unnamed"
    if legal != name:
        call = {**call, "function": {**function, "name": legal}}
    if "tool_call_ids" in refused:
        call = {**call, "id": _short_id(call.get("id"))}
    if any(k in refused for k in call):
        call = {k: v for k, v in call.items() if k not in refused}
    return call


def _short_id(ident: object) -> str:
    """An id that each provider takes, the same for the same one."""
    return hashlib.sha256(str(ident).encode("utf-8", "replace")).hexdigest()[:_ID_LENGTH]


def _used(name: str, messages: Sequence[Message]) -> bool:
    return any(name in m or any(name in c for c in m.get("tool_calls") or ()) for m in messages)
