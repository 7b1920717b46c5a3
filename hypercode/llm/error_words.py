"""What an error says → which `ModelError` it is, and how long the server asks to wait.  Pure.

The words are those of OpenAI, Anthropic, Google, xAI, Mistral, vLLM, SGLang, TGI, TensorRT-LLM, llama.cpp, Together,
Moonshot, DashScope, Zhipu, MiniMax, Baidu, SambaNova, DeepInfra and others, as they are reported in public.
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
from hypercode.llm.retry import MAX_WAIT, duration, reset_after, retry_after

__all__ = ["error_class", "has", "wait_of"]

_ASKED = r"\b(prompt|inputs?|request|messages|conversation|question)\b"
_MORE = r"(exceed(s|ed|ing)?|longer than|too (long|large|big) for)"
_CONTEXT = (
    r"context[_ -](length|size|window|limit|overflow)|exceed_context|maximum context|max_model_len|tokens_limit_reached"
    r"|\b(prompt|input)( tokens?)?( length| count)?( is| are)? too (long|large|big)|too big compared to kv"
    r"|too many (input |prompt )?tokens|(input|prompt) token count|reduce the length|range of input length"
    r"|max(imum)? (supported |allowed )?(prompt|input|sequence|model|message) (token )?(length|count|size|tokens)"
    r"|max(imum)? length of the (question|prompt|input|conversation)|inputs\W+(tokens\W+\+|must have (less|fewer) than)"
    rf"|{_ASKED}[\w\s(),/-]{{0,50}}\b{_MORE}\b[\w\s'-]{{0,40}}?(\btoken|length|context|sequence)"
    r"|\b(prompt|input|total)\b(?![\w ]{0,20}\b(output|completion|generat))[\w ]{0,20}\btokens?\b[\w\s(),:-]{0,40}\bexceed"
    r"|\bexceed\w* the max(imum)?( allowed)?( number of)?( input| prompt)? tokens"
)
"""The conversation is longer than the model's window."""
_TOO_LONG_TEXT = r"string_above_max_length"
_IN_MESSAGES = r"\b(messages|input|prompt|content)\b"
_OUTPUT = (
    r"(?<!\+ [`'\"])(?<!and [`'\"])(?<!\+ )(?<!and )\bmax_((completion|output|new)_)?tokens\b[`'\")]*(\s*(\(\d+\)|[=:]\s*\d+|of \d+))?"
    r"(\s+or [`'\"]?max_\w+[`'\"]?)?\s*(is|are|must|cannot|can't|can not|should|may not|exceed|too|>)"
)
"""The answer that is asked for is too long: the conversation need not be."""
_SIZES = r"\d+ (input|prompt) tokens|\d+ (tokens )?(in|from) (the|your) (messages|prompt|input)|messages resulted in"
_PER_TIME = r"per[-_ ]?(second|minute|min|hour|day)\b|/ ?min\b|\b[tr]p[md]\b|rate[-_ ]?limit|throttl|please wait"
_QUOTA = (
    r"insufficient[_ ](quota|credit|balance|fund)|quota_exceeded|credit balance|payment[_ ]required|billing_|out of credits"
    r"|more credits|per[-_ ]day|daily limit|free-models-per-day|key limit|arrearage|good standing"
    r"|account (\w+ )?(is |has been |was )?(suspended|deactivated|overdue|in arrears)|余额不足|欠费"
)
_PERHAPS_QUOTA = r"exceeded[_ ](your[_ ])?current[_ ]quota|\bbilling\b"
"""Said of a limit per minute, too (Google); a server that names the time to come back means that one."""
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


def has(pattern: str, text: str) -> bool:
    """Whether the text says it; patterns are compiled when an error first needs them, not at the start."""
    return re.search(pattern, text, re.I) is not None


def error_class(status: int | None, hints: str, said: str, wait: float | None = None) -> type[ModelError]:
    """The class of an error by its status, its codes and types (`hints`), what it says, and the `wait` it asks for.

    Words decide only where the status leaves it open.
    """
    words = f"{hints} {said}"
    if status in (None, 400, 413, 422, 500) and _is_overflow(words):
        return ContextOverflow
    if status == 402 or (status in (None, 400, 403, 429) and _is_quota(words, wait)):
        return QuotaError
    if status == 401 or (status in (None, 400, 403) and has(_AUTH, words)):
        return AuthError
    if status in (408, 409, 425, 429) or (status is not None and status >= 500):
        return ModelUnavailable
    if status is not None:
        return RequestRejected
    lasting = has(_LASTING, hints) or (has(_LASTING, said) and not has(_PASSING, said))
    return RequestRejected if lasting and not has(_PASSING, hints) else ModelUnavailable


def _is_overflow(words: str) -> bool:
    """Whether a shorter conversation would help: neither a limit per minute nor the length of the answer is meant."""
    if has(_TOO_LONG_TEXT, words) and has(_IN_MESSAGES, words):
        return True
    if not has(_CONTEXT, words) or has(_PER_TIME, words):
        return False
    return not has(_OUTPUT, words) or has(_SIZES, words)


def _is_quota(words: str, wait: float | None) -> bool:
    if has(_QUOTA, words):
        return True
    words = re.sub(r"https?://\S+", "", words)  # "see …/billing" and "…/rate-limits" say nothing
    return has(_PERHAPS_QUOTA, words) and not has(_PER_TIME, words) and (wait is None or wait > MAX_WAIT)


def wait_of(
    error: Mapping[str, Any], metadata: Mapping[str, Any], headers: Mapping[str, str] | None, status: int | None
) -> float | None:
    """Seconds the server asks to wait, None where it does not say.

    Looked for in the headers, the headers inside the error, OpenRouter's `availability`, Google's `RetryInfo`
    (https://cloud.google.com/apis/design/errors), and after a 429 or 503 in `X-RateLimit-Reset`.
    """
    sources = [
        {str(k).lower(): str(v) for k, v in source.items()}
        for source in (headers, metadata.get("headers"))
        if isinstance(source, Mapping)
    ]
    for source in sources:
        if wait := retry_after(source):
            return wait
    availability = error.get("availability")
    candidates = (
        availability.get("retry_after") if isinstance(availability, dict) else None,
        metadata.get("retry_after"),
        metadata.get("retry_after_seconds"),
        error.get("retry_after"),
    )
    for value in candidates:
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return float(value)
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and (wait := duration(detail.get("retryDelay"))):
            return wait
    waits = (reset_after(source) for source in sources if status in (429, 503))
    return next((wait for wait in waits if wait), None)
