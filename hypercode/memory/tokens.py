"""About how many tokens a text is, where no server has said it; and what servers say when a request was too long."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from hypercode.messages import Message, text_of

__all__ = ["estimate", "overflow_numbers", "tokens_of", "tokens_of_tools"]

_BYTES_PER_TOKEN = 3.5
"""Of code and prose in UTF-8, with the tokenizers of today; `Meter` corrects it by what the server counts."""

_OVERHEAD = 4  # role and separators of a message
_IMAGE = 1_500
_KNOWN = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})


def estimate(text: str) -> int:
    """About how many tokens the text is."""
    return math.ceil(_bytes(text) / _BYTES_PER_TOKEN)


def tokens_of(message: Message) -> int:
    """About how many tokens a message is, with its calls and whatever else has to go back with it."""
    size = _bytes(text_of(message))
    size += sum(_call_bytes(call) for call in message.get("tool_calls") or ())
    size += sum(len(json.dumps(v, default=str)) for k, v in message.items() if k not in _KNOWN and v)
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    pictures = sum(isinstance(part, dict) and part.get("type") not in ("text", None) for part in parts)
    return math.ceil(size / _BYTES_PER_TOKEN) + _OVERHEAD + pictures * _IMAGE


def tokens_of_tools(schemas: Sequence[dict[str, Any]]) -> int:
    """About how many tokens the descriptions of the tools are."""
    return estimate(json.dumps(list(schemas))) if schemas else 0


def _call_bytes(call: dict[str, Any]) -> int:
    function = call.get("function") or {}
    return _bytes(str(function.get("name"))) + _bytes(str(function.get("arguments"))) + 20


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


_WINDOW = (
    r"maximum (?:context|prompt|input) (?:length|size|window)\D{0,30}(\d+)",
    r"available context size \((\d+)",
    r"context (?:length|size|window) (?:is|of|limit is|limit of)?\D{0,20}(\d+) tokens",
    r"> (\d+) (?:maximum|max)",
    r"maximum (?:number of )?(?:input )?tokens\D{0,30}(\d+)",
    r"(?:n_ctx|max_model_len|context_length|context_window)\W{1,6}(\d+)",
)
_SENT = (
    r"\((?:about )?(\d+) (?:in|of) (?:the |your )?(?:messages|prompt|text input|input)",
    r"request \((\d+) tokens",
    r"(\d+) tokens >",
    r"token count \((\d+)",
    r"n_prompt_tokens\W{1,6}(\d+)",
    r"(?:resulted in|requested|contains|has)(?: at least| about)? (\d+)(?: input)? tokens",
)


def overflow_numbers(text: str) -> tuple[int | None, int | None]:
    """The window and the size of the request in tokens, as far as a server's refusal names them.

    Shapes: OpenAI, vLLM and OpenRouter ("maximum context length is W tokens. However, you requested N tokens (M in the
    messages, …"), llama.cpp ("request (N tokens) exceeds the available context size (W tokens)"), Anthropic ("N tokens > W
    maximum"), Google ("input token count (N) exceeds the maximum number of tokens allowed (W)").
    """
    plain = re.sub(r"(?<=\d)[,_](?=\d{3})", "", text)
    window, sent = _first(_WINDOW, plain), _first(_SENT, plain)
    if window is not None and sent is not None and sent < window // 8:
        sent = None  # it counted something else
    return window, sent


def _first(patterns: Iterable[str], text: str) -> int | None:
    for pattern in patterns:
        found = re.search(pattern, text, re.I)
        if found and 256 <= int(found[1][:12]) < 10**9:
            return int(found[1][:12])
    return None
