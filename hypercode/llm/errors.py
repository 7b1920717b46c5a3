"""What servers say when they refuse → `ModelError`s that help: who refused, what it said, what to do.

Pure: no SDK here.  Shapes: OpenAI `{error: {message, type, code}}`, OpenRouter `{error: {code, message, metadata}}`
(https://openrouter.ai/docs/api-reference/errors), Anthropic `{type: "error", error}`, vLLM `{object: "error", message}`,
FastAPI `{detail}`, Ollama `{error: "text"}`, and pages of proxies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from hypercode.errors import (
    AuthError,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    QuotaError,
    RequestRejected,
)
from hypercode.llm.quirks import host_of, is_loopback, is_openrouter
from hypercode.llm.retry import retry_after
from hypercode.llm.sse import SSEReader, parse_int, parse_object

__all__ = ["brief", "http_error", "is_failure", "no_stream_error", "reported_error", "unreachable_error"]

_SAID_LIMIT = 600
_NAMED = 5

_CONTEXT = (
    r"context[_ ](length|size|window)|exceed_context|maximum context|max_model_len|prompt is too long|input is too long"
    r"|too many (input )?tokens|input token count|reduce the length|string_above_max_length|context_window"
)
_QUOTA = (
    r"insufficient[_ ](quota|credit|balance|fund)|quota_exceeded|exceeded your current quota|credit balance|payment[_ ]required"
    r"|billing_|out of credits|more credits|per[-_ ]day|daily limit|free-models-per-day|key limit"
)
_AUTH = (
    r"authentication|(invalid|incorrect|missing)[_ ]api[_ ]?key|api[_ ]?key (is )?(not valid|invalid|missing|expired)"
    r"|unauthorized|no auth credentials"
)
_PASSING = (
    r"overload|rate[_ -]?limit|too many requests|unavailable|time[d_ -]?out|capacity|server[_ ]error|internal|busy|try again"
    r"|temporar|disconnect|upstream|crash|bad gateway"
)
_LASTING = (
    r"invalid|bad_?request|not[_ ]found|does not exist|not (a )?(valid|supported|allowed)|unsupported|unknown|unprocessable"
    r"|policy|moderation|permission|tool_use_failed|not exist|malformed|required"
)
_MODEL = r"\bmodels?\b"
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


def http_error(
    status: int,
    body: bytes,
    headers: Mapping[str, str],
    *,
    host: str,
    key: str | None = None,
    redirected: bool = False,
    local: bool = False,
) -> ModelError:
    """The error of an answer with an HTTP status that is none of success.

    `key` is where the key that was sent came from, empty where none was sent, None where that is not known.
    """
    text = body.decode("utf-8", "replace").strip()
    value = parse_object(text)
    if value is None and text.startswith(("data:", "event:", "id:", ":")):
        value = _streamed(body)
        text = re.sub(r"^(data|event|id):[ \t]*", "", text, flags=re.M)
    error = _error_in(value)
    if error is None:
        error = {"message": (_text(value.get("message")) if value else "") or _readable(text, headers)}
    if redirected:
        error = {
            **error,
            "message": f"{error.get('message') or ''} (a redirect had turned the request into a GET)".strip(),
        }
    return _build(error, status, None, host=host, key=key, local=local, headers=headers)


def _streamed(body: bytes) -> dict[str, Any] | None:
    """What a body says that is an event stream though its status is an error: the first error, else the first object."""
    reader = SSEReader()
    items = [item for item in reader.feed(body) + reader.close() if isinstance(item, dict)]
    return next((item for item in items if _error_in(item)), items[0] if items else None)


def is_failure(reason: str) -> bool:
    """Whether a finish reason means that the provider failed (Z.ai, DeepSeek and OpenRouter have one each)."""
    return reason.lower() in ("error", "network_error", "insufficient_system_resource")


def reported_error(chunk: Mapping[str, Any], provider: str | None = None, host: str | None = None) -> ModelError | None:
    """The error that a chunk (or a JSON body) reports, None where it reports none."""
    error = _error_in(chunk)
    if error is None:
        return None
    said = chunk.get("provider")
    return _build(error, None, said if isinstance(said, str) and said else provider, host=host)


def no_stream_error(body: bytes, content_type: str, host: str) -> ModelError:
    """The error of an answer with status 200 that was neither a stream nor a reply."""
    text = body.decode("utf-8", "replace").strip()
    value = parse_object(text)
    error = _error_in(value) if value is not None else None
    if error is not None:
        return _build(error, None, None, host=host)
    if _has(_HTML, text) or "html" in content_type:
        page = f"a web page ({title})" if (title := _title(text)) else "a web page"
        return RequestRejected(
            f"{host} answered with {page} instead of a reply. Check the base URL: it usually ends in /v1."
        )
    said = _short(text) if text else "nothing"
    return RequestRejected(f"{host} sent something that is no reply: {said}. Check the base URL and the model.")


def unreachable_error(error: BaseException, base_url: str) -> ModelError:
    """No connection, or one that ended before an answer; the reason is at the bottom of the exception's causes."""
    host = host_of(base_url)
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(chain) < 10:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    reason = next((str(e).rstrip(".") for e in reversed(chain) if str(e)), type(error).__name__)
    reason = re.sub(r"\[Errno -?\d+\] ", "", reason)
    if not base_url.startswith(("http://", "https://")):
        return RequestRejected(f"The base URL {base_url} does not begin with http:// or https://.")
    if any("certificate" in str(e).lower() for e in chain):
        advice = "Check the clock, the proxy and the certificates."
        return ModelUnavailable(f"cannot trust {host}: {reason}. {advice}", retryable=False)
    advice = "Is the server running?" if is_loopback(base_url) else "Check the network and the base URL."
    told = f"cannot reach {host}: {reason}"
    if any(isinstance(e, ConnectionRefusedError) or "Connect call failed" in str(e) for e in chain):
        told = f"cannot connect to {host}: connection refused"
    result = ModelUnavailable(f"{told}. {advice}")
    result.add_note(f"{told}. {advice}")
    return result


def _error_in(chunk: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The error object of a chunk: at the top, inside the choice, or the chunk itself."""
    if chunk is None:
        return None
    found = _filled(chunk.get("error"))
    choices = chunk.get("choices")
    if found is None and isinstance(choices, list):
        for choice in choices:
            if not isinstance(choice, dict):
                continue
            inside = [part for part in (choice.get("delta"), choice.get("message")) if isinstance(part, dict)]
            found = next((e for part in (choice, *inside) if (e := _filled(part.get("error")))), None)
            reason = choice.get("finish_reason")
            if found is None and isinstance(reason, str) and is_failure(reason):
                kind = "" if reason.lower() == "error" else f" ({reason})"
                found = {"message": f"The provider ended the answer with an error{kind} and did not say why."}
            if found is not None:
                break
    if found is not None or choices:
        return found
    if chunk.get("object") == "error" or chunk.get("type") == "error":
        return {k: v for k, v in chunk.items() if k not in ("object",)}
    if chunk.get("detail"):
        return {"message": _text(chunk["detail"])}
    if isinstance(chunk.get("errors"), list) and chunk["errors"]:
        return _filled(chunk["errors"][0])
    message = chunk.get("message") or chunk.get("msg")
    if (
        isinstance(message, str)
        and message
        and (_status(chunk, {}) or chunk.get("code") or "rror" in str(chunk.get("type")))
    ):
        return {**chunk, "message": message}
    return None


def _has(pattern: str, text: str) -> bool:
    """Whether the text says it; patterns are compiled when an error first needs them, not at the start."""
    return re.search(pattern, text, re.I) is not None


def _filled(error: object) -> dict[str, Any] | None:
    """The error as an object, None where it is empty."""
    if isinstance(error, dict):
        inner = error.get("error")
        if isinstance(inner, dict) and _filled(inner) and not error.get("message"):
            return _filled(inner)
        return error if any(error.values()) else None
    if isinstance(error, str | list) and error:
        return {"message": _text(error)}
    return {"message": "The server reported an error and did not say which."} if error is True else None


def _build(
    error: Mapping[str, Any],
    status: int | None,
    provider: str | None,
    *,
    host: str | None = None,
    key: str | None = None,
    local: bool = False,
    headers: Mapping[str, str] | None = None,
) -> ModelError:
    metadata = found if isinstance(found := error.get("metadata"), dict) else {}
    name = metadata.get("provider_name")
    provider = name if isinstance(name, str) and name else provider
    status = status or _status(error, metadata)
    said = _said(error, metadata)
    hints = (
        " ".join(str(error.get(k) or "") for k in ("type", "code", "status")) + f" {metadata.get('error_type') or ''}"
    )
    cls = _class(status, hints, said)
    wait = _wait(error, metadata, headers)
    who = f"{provider} (through {host})" if provider and host else provider or host or "The server"
    number = f" ({status})" if status else ""
    message = f"{who}{number}: {said}"
    if message[-1] not in ".!?…":
        message += "."
    advice = _key_advice(host, key, local=local) if cls is AuthError else _advice(cls, status, said, wait)
    result = cls(f"{message} {advice}".strip(), status=status, provider=provider, retry_after=wait)
    result.add_note(f"{status or 'error'} from {who}: {said}")
    return result


def brief(error: ModelError) -> str:
    """The error in one short line, without the advice, but for a server that cannot be reached."""
    notes = getattr(error, "__notes__", None)
    return _short(notes[0] if notes else str(error).partition(". ")[0].rstrip("."), 200)


def _class(status: int | None, hints: str, said: str) -> type[ModelError]:
    """The class of an error.  Words decide only where the status leaves it open."""
    words = f"{hints} {said}"
    if status in (None, 400, 413, 422, 500) and _has(_CONTEXT, words):
        return ContextOverflow
    if status == 402 or (status in (None, 400, 403, 429) and _has(_QUOTA, words)):
        return QuotaError
    if status == 401 or (status in (None, 400, 403) and _has(_AUTH, words)):
        return AuthError
    if status in (408, 409, 425, 429) or (status is not None and status >= 500):
        return ModelUnavailable
    if status is not None:
        return RequestRejected
    lasting = _has(_LASTING, hints) or (_has(_LASTING, said) and not _has(_PASSING, said))
    return RequestRejected if lasting and not _has(_PASSING, hints) else ModelUnavailable


def _status(error: Mapping[str, Any], metadata: Mapping[str, Any]) -> int | None:
    """The status that an error object names; a code counts as one only from 100 to 599."""
    for key in ("code", "status", "status_code", "statusCode"):
        value = error.get(key)
        if isinstance(value, str) and value.isdecimal():
            value = parse_int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
            return value
    return _STATUS_OF_TYPE.get(str(metadata.get("error_type")))


def _said(error: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    """What was said, the provider's own words included."""
    message = _readable(_text(error.get("message") or error.get("detail") or error.get("msg")), {})
    raw = _raw(metadata.get("raw"))
    if raw and raw not in message:
        message = f"{message}: {raw}" if message else raw
    if isinstance(reasons := metadata.get("reasons"), list) and reasons:
        message += f" ({', '.join(map(str, reasons))})"
    if not message:
        message = ", ".join(str(error[k]) for k in ("code", "type", "status", "param") if error.get(k)) or _text(error)
    for earlier in metadata.get("previous_errors") or []:
        if isinstance(earlier, dict) and earlier.get("message"):
            before = (
                _raw((earlier.get("metadata") or {}).get("raw")) if isinstance(earlier.get("metadata"), dict) else ""
            )
            who = earlier.get("provider_name") or earlier.get("provider") or "another provider"
            message += f"; before that {who}: {before or _short(_text(earlier['message']), 200)}"
    return _short(message)


def _raw(raw: object) -> str:
    """`metadata.raw`: the provider's own error, as text, as JSON, or JSON in a text."""
    if isinstance(raw, str):
        value = parse_object(raw) if raw.lstrip().startswith("{") else None
        if value is None:
            return _readable(raw.strip(), {})
        raw = value
    if not isinstance(raw, dict):
        return ""
    error = _error_in(raw) or raw
    message = error.get("message")
    return _readable(_text(message), {}) if message else ""


def _readable(text: str, headers: Mapping[str, str]) -> str:
    """Text for a person: of a web page only its title."""
    if _has(_HTML, text) or "html" in headers.get("content-type", ""):
        return f"a web page ({_title(text) or 'without a title'})"
    return _short(_fewer(text)) if text else ("" if not headers else "no explanation")


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


def _title(text: str) -> str:
    found = re.search(_TITLE, text, re.I | re.S)
    return _short(re.sub(r"<[^>]*>", "", found[1]), 120) if found else ""


def _text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(v, dict) and v.get("msg") for v in value):  # FastAPI's validation
        return "; ".join(f"{'.'.join(map(str, v.get('loc') or []))}: {v['msg']}".removeprefix(": ") for v in value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _short(text: str, limit: int = _SAID_LIMIT) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _wait(error: Mapping[str, Any], metadata: Mapping[str, Any], headers: Mapping[str, str] | None) -> float | None:
    """Seconds the server asked to wait: headers, the headers inside the error, or OpenRouter's `availability`."""
    for source in (headers, metadata.get("headers")):
        if isinstance(source, Mapping) and (wait := retry_after({str(k).lower(): str(v) for k, v in source.items()})):
            return wait
    availability = error.get("availability")
    candidates = (
        availability.get("retry_after") if isinstance(availability, dict) else None,
        metadata.get("retry_after"),
        metadata.get("retry_after_seconds"),
        error.get("retry_after"),
    )
    return next(
        (float(v) for v in candidates if isinstance(v, int | float) and not isinstance(v, bool) and v > 0), None
    )


def _key_advice(host: str | None, key: str | None, *, local: bool) -> str:
    """What to do about a key that is refused or missing; one for OpenRouter is never sent to another server."""
    openrouter = is_openrouter(f"https://{host}")
    variable = "OPENROUTER_API_KEY" if openrouter else "HYPERCODE_API_KEY"
    end = ", or start the server without one." if local else "."
    if key:
        stronger = f" ({variable} goes before it)" if key.startswith("api_key") else ""
        return f"The key that was sent is refused; it came from {key}. Set another one there{stronger}{end}"
    said = "No key was sent" if key == "" else "Either the key that was sent is refused, or none was sent"
    never = "" if openrouter else " A key for openrouter.ai is never sent elsewhere."
    return f"{said}: set one with {variable}, or api_key in the configuration{end}{never}"


def _advice(cls: type[ModelError], status: int | None, said: str, wait: float | None) -> str:
    """What to do about it."""
    if cls is QuotaError:
        return "Add credits, raise the limit, or pick another model."
    if cls is ContextOverflow:
        return "Shorten the conversation (/compact) or pick a model with a larger context."
    if status == 404 or (cls is RequestRejected and _has(_MODEL, said)):
        return "Pick another model, or check the base URL."
    if cls is RequestRejected:
        return "Check what the key may do, or pick another model." if status == 403 else ""
    if wait is not None:
        return f"Wait {wait:.0f} s, or pick another model."
    if status == 429:
        return "Wait a moment, or pick another model."
    return "It may pass: try again, or pick another model." if cls.retryable else ""
