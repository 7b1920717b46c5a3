"""Where an error is in what a server sent, and what it says for a person.  Pure.

Shapes: OpenAI `{error: {message, type, code}}`, OpenRouter `{error: {code, message, metadata}}`
(https://openrouter.ai/docs/api-reference/errors), Anthropic `{type: "error", error}`, vLLM `{object: "error", message}`,
FastAPI `{detail}`, Ollama `{error: "text"}`, MiniMax `{base_resp: {status_code, status_msg}}`, Baidu `{error_code,
error_msg}`, gateways' `{code, message}`, and pages of proxies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from hypercode.llm.error_words import has
from hypercode.llm.sse import parse_int, parse_object

__all__ = ["error_in", "is_failure", "is_page", "readable", "said_in", "short", "status_of", "text_in", "title_of"]

_SAID_LIMIT = 600
_NAMED = 5

_FAILURES = frozenset(
    {
        "abort",
        "aborted",
        "canceled",
        "cancelled",
        "error",
        "failed",
        "insufficient_system_resource",
        "malformed_function_call",
        "malformed_response",
        "network_error",
        "too_many_tool_calls",
        "unexpected_tool_call",
    }
)
_MESSAGES = ("message", "detail", "msg", "error_msg", "error_message", "errorMessage", "status_msg")
_SUCCESS = frozenset({"", "0", "200", "none", "null", "ok", "success", "succeeded", "successful"})
_NAMES = r"(?<![^\s\[(])(?:[^\s,]{1,200},\s*){10,}[^\s,]{0,199}[^\s,.;:)\]]"
_HTML = r"<!doctype html|<html[\s>]|<head[\s>]|<body[\s>]"
_TITLE = r"<title[^>]*>(.*?)</title>"

_STATUS_OF_TYPE = {
    "context_length_exceeded": 400,
    "authentication": 401,
    "permission_denied": 403,
    "payment_required": 402,
    "rate_limit_exceeded": 429,
    "provider_overloaded": 503,
    "provider_unavailable": 503,
    "invalid_request": 400,
    "not_found": 404,
    "content_policy_violation": 403,
    "server": 500,
    "timeout": 504,
}
"""OpenRouter's `metadata.error_type`."""


def is_failure(reason: str) -> bool:
    """Whether a finish reason means that the provider failed (DeepSeek, Google, OpenRouter, vLLM, Z.ai)."""
    return reason.lower() in _FAILURES


def error_in(chunk: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The error object of a chunk: at the top, inside the choice, or the chunk itself."""
    if chunk is None:
        return None
    choices = chunk.get("choices")
    found = _filled(chunk.get("error"), beside=bool(choices))
    if found is None and isinstance(choices, list):
        for choice in choices:
            if not isinstance(choice, dict):
                continue
            inside = [part for part in (choice.get("delta"), choice.get("message")) if isinstance(part, dict)]
            found = next((e for part in (choice, *inside) if (e := _filled(part.get("error")))), None)
            reason = choice.get("finish_reason")
            if found is None and isinstance(reason, str) and is_failure(reason):
                kind = "" if reason.lower() == "error" else f" ({reason})"
                found = {
                    "message": f"The provider ended the answer with an error{kind} and did not say why.",
                    "type": "upstream",
                }
            if found is not None:
                break
    if found is not None or choices:
        return found
    return _bare_error(chunk)


def _bare_error(chunk: Mapping[str, Any]) -> dict[str, Any] | None:
    """The error that a chunk without `error` and without choices is itself."""
    if chunk.get("object") == "error" or chunk.get("type") == "error":
        return {k: v for k, v in chunk.items() if k not in ("object",)}
    answer = chunk.get("base_resp")
    if isinstance(answer, dict) and not _succeeded(answer.get("status_code")):
        return {"message": answer.get("status_msg"), "code": answer.get("status_code")}
    if chunk.get("detail"):
        return {**chunk, "message": text_in(chunk["detail"])}
    if isinstance(chunk.get("errors"), list) and chunk["errors"]:
        return _filled(chunk["errors"][0])
    message = next((m for key in _MESSAGES if isinstance(m := chunk.get(key), str) and m), None)
    codes = [chunk[key] for key in ("code", "error_code", "status_code", "statusCode") if chunk.get(key) is not None]
    failed = any(not _succeeded(code) for code in codes) or status_of(chunk, {}) is not None
    failed = failed or chunk.get("status") in ("error", "failed")
    if message and (failed or chunk.get("success") is False or "rror" in str(chunk.get("type"))):
        return {**chunk, "message": message}
    return None


def _succeeded(code: object) -> bool:
    """Whether a code is one of success; none is."""
    return str(code).lower() in _SUCCESS or (isinstance(code, int) and 200 <= code <= 299)


def _filled(error: object, *, beside: bool = False) -> dict[str, Any] | None:
    """The error as an object, None where it is empty or says that all is well; `beside` a choice its code is enough."""
    if isinstance(error, dict):
        while isinstance(inner := error.get("error"), dict) and any(inner.values()) and not error.get("message"):
            error = inner
        more = any(value for key, value in error.items() if key not in ("code", "message"))
        if not more and "code" in error and _succeeded(error["code"]):
            message = str(error.get("message") or "").strip(" .!")
            if (beside and error["code"] is not None) or message.lower() in _SUCCESS:
                return None
        return error if any(error.values()) else None
    if isinstance(error, str | list) and error:
        return {"message": text_in(error)}
    if error is True:
        return {"message": "The server reported an error and did not say which."}
    return {"code": error} if isinstance(error, int) and error else None


def status_of(error: Mapping[str, Any], metadata: Mapping[str, Any]) -> int | None:
    """The status that an error object names; a code counts as one only up to 599, and none of success does."""
    for key in ("code", "status", "status_code", "statusCode"):
        value = error.get(key)
        if isinstance(value, str) and value.isdecimal():
            value = parse_int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 300 <= value <= 599:
            return value
    return _STATUS_OF_TYPE.get(str(metadata.get("error_type")))


def said_in(error: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    """What was said, the provider's own words included."""
    message = readable(text_in(next((m for key in _MESSAGES if (m := error.get(key))), "")), {})
    raw = _raw(metadata.get("raw"))
    if raw and raw not in message:
        message = f"{message}: {raw}" if message else raw
    if isinstance(reasons := metadata.get("reasons"), list) and reasons:
        message += f" ({', '.join(map(str, reasons))})"
    if not message:
        message = ", ".join(str(error[k]) for k in ("code", "type", "status", "param") if error.get(k)) or text_in(
            error
        )
    for earlier in metadata.get("previous_errors") or []:
        if isinstance(earlier, dict) and earlier.get("message"):
            before = (
                _raw((earlier.get("metadata") or {}).get("raw")) if isinstance(earlier.get("metadata"), dict) else ""
            )
            who = earlier.get("provider_name") or earlier.get("provider") or "another provider"
            message += f"; before that {who}: {before or short(text_in(earlier['message']), 200)}"
    return short(message)


def _raw(raw: object) -> str:
    """`metadata.raw`: the provider's own error, as text, as JSON, or JSON in a text."""
    if isinstance(raw, str):
        value = parse_object(raw) if raw.lstrip().startswith("{") else None
        if value is None:
            return readable(raw.strip(), {})
        raw = value
    if not isinstance(raw, dict):
        return ""
    error = error_in(raw) or raw
    message = error.get("message")
    return readable(text_in(message), {}) if message else ""


def readable(text: str, headers: Mapping[str, str]) -> str:
    """Text for a person: of a web page only its title."""
    if is_page(text) or "html" in headers.get("content-type", ""):
        return f"a web page ({title_of(text) or 'without a title'})"
    return short(_fewer(text)) if text else ("" if not headers else "no explanation")


def _fewer(text: str) -> str:
    """The text with a long list of names cut to those nearest to the name that stands in quotes before it, and to their number."""
    found = re.search(_NAMES, text)
    if found is None:
        return text
    import difflib

    names = re.split(r",\s*", found[0])
    wanted = re.search(r"""['"`]([^'"`\s]{1,200})['"`]""", text[: found.start()])
    near = difflib.get_close_matches(wanted[1], names, _NAMED, 0.5) if wanted else []
    listed = ", ".join(near or names[:_NAMED])
    return f"{text[: found.start()]}{listed}, … ({len(names)} in all){text[found.end() :]}"


def is_page(text: str) -> bool:
    """Whether the text is a web page."""
    return has(_HTML, text)


def title_of(text: str) -> str:
    """The title of a web page; empty where it has none."""
    found = re.search(_TITLE, text, re.I | re.S)
    return short(re.sub(r"<[^>]*>", "", found[1]), 120) if found else ""


def text_in(value: object) -> str:
    """The words in a message that may be an object or a list itself; as JSON where there are none."""
    while isinstance(value, dict) and (inner := next((m for key in _MESSAGES if (m := value.get(key))), None)):
        value = inner
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(v, dict) and v.get("msg") for v in value):  # FastAPI's validation
        return "; ".join(f"{_place(v.get('loc'))}: {v['msg']}".removeprefix(": ") for v in value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _place(loc: object) -> str:
    return ".".join(map(str, loc)) if isinstance(loc, list) else str(loc or "")


def short(text: str, limit: int = _SAID_LIMIT) -> str:
    """The text on one line, of at most `limit` characters."""
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
