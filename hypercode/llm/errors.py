"""What servers say when they refuse → `ModelError`s that help: who refused, what it said, what to do.

Pure: no SDK here.  `error_bodies` finds the error, `error_words` decides what it is.
"""

from __future__ import annotations

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
from hypercode.llm.error_bodies import (
    error_in,
    is_page,
    readable,
    said_in,
    short,
    status_of,
    text_in,
    title_of,
)
from hypercode.llm.error_words import error_class, has, wait_of
from hypercode.llm.quirks import host_of, is_loopback, is_openrouter
from hypercode.llm.sse import SSEReader, parse_object

__all__ = ["brief", "http_error", "no_stream_error", "reported_error", "unreachable_error"]

_MODEL = r"\bmodels?\b"
_MOVED = "Check the base URL: it usually ends in /v1."
_REFUSED = "Pick another model (/model or -m); with --debug the log has an outline of the request."
_REJECTED = {
    403: "Check what the key may do, or pick another model.",
    405: _MOVED,
    410: _MOVED,
    413: "Shorten the conversation (/compact).",
}


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
    if value is None and text.startswith(("data:", "event:", "id:", ":", "error:")):
        value = _streamed(body)
        text = re.sub(r"^(data|event|id|error):[ \t]*", "", text, flags=re.M)
    error = error_in(value)
    if error is None:
        error = {"message": (text_in(value.get("message")) if value else "") or readable(text, headers)}
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
    return next((item for item in items if error_in(item)), items[0] if items else None)


def reported_error(chunk: Mapping[str, Any], provider: str | None = None, host: str | None = None) -> ModelError | None:
    """The error that a chunk (or a JSON body) reports, None where it reports none."""
    error = error_in(chunk)
    if error is None:
        return None
    said = chunk.get("provider")
    return _build(error, None, said if isinstance(said, str) and said else provider, host=host)


def no_stream_error(body: bytes, content_type: str, host: str) -> ModelError:
    """The error of an answer with status 200 that was neither a stream nor a reply."""
    text = body.decode("utf-8", "replace").strip()
    value = parse_object(text)
    error = error_in(value) if value is not None else None
    if error is not None:
        return _build(error, None, None, host=host)
    if is_page(text) or "html" in content_type:
        page = f"a web page ({title})" if (title := title_of(text)) else "a web page"
        return RequestRejected(
            f"{host} answered with {page} instead of a reply. Check the base URL: it usually ends in /v1."
        )
    said = short(text) if text else "nothing"
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
    status = status or status_of(error, metadata)
    said = said_in(error, metadata)
    hints = (
        " ".join(str(error.get(k) or "")[:200] for k in ("type", "code", "status"))
        + f" {metadata.get('error_type') or ''}"
    )
    wait = wait_of(error, metadata, headers, status)
    cls = error_class(status, hints, said, wait)
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
    return short(notes[0] if notes else str(error).partition(". ")[0].rstrip("."), 200)


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
    if status == 404 or (cls is RequestRejected and has(_MODEL, said)):
        return "Pick another model (`hypercode models` lists them), or check the base URL."
    if cls is RequestRejected:
        return _REJECTED.get(status or 400, _MOVED if status and status < 400 else _REFUSED)
    if wait is not None:
        return f"Wait {wait:.0f} s, or pick another model."
    if status == 429:
        return "Wait a moment, or pick another model."
    return "It may pass: try again, or pick another model." if cls.retryable else ""
