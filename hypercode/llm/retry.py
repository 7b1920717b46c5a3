"""When to try again, and how long to wait.  Pure.

`Retry-After` as in RFC 9110, section 10.2.3: seconds or an HTTP date; `retry-after-ms` as OpenAI and Azure send it;
`X-RateLimit-Reset` is in no standard: a moment (Unix time, in seconds or milliseconds), seconds, or a time such as `6m0s`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from time import time

from hypercode.errors import ModelError, ModelUnavailable, QuotaError, RequestRejected, StreamInterrupted

__all__ = ["MAX_WAIT", "duration", "may_fall_back", "may_retry", "reset_after", "retry_after", "seconds", "wait_before"]

MAX_WAIT = 120.0
"""Seconds: a server that asks for more is not waited for; the person is told instead."""

_FIRST, _CAP = 0.5, 20.0
_DAY = 86_400.0
_DURATION = r"(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6}(?:\.\d{1,9})?)s)?(?:(\d{1,9}(?:\.\d{1,9})?)ms)?"


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The seconds that response headers (names in lower case) ask to wait; None where they do not."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    from email.utils import parsedate_to_datetime  # 5 ms that no healthy start needs

    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, moment - (time() if now is None else now))


def reset_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The seconds until `x-ratelimit-reset`, None where it is not there, past, or further away than a day."""
    value = headers.get("x-ratelimit-reset")
    number = _number(value)
    if number is None:
        wait = duration(value)
    elif number > 1e9:  # as seconds that would be thirty years
        wait = (number / 1000 if number > 1e11 else number) - (time() if now is None else now)
    else:
        wait = number
    return wait if wait is not None and 0 < wait <= _DAY else None


def duration(value: object) -> float | None:
    """The seconds of a text such as `2s`, `1.5s`, `6m0s` or `300ms` (Google's `Duration`, Go's), None for any other."""
    found = re.fullmatch(_DURATION, value) if isinstance(value, str) and value else None
    if found is None:
        return None
    hours, minutes, rest, thousandths = (float(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + rest + thousandths / 1000


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def may_retry(error: ModelError) -> bool:
    """Whether the same request may be sent again after this error."""
    if not isinstance(error, ModelUnavailable | StreamInterrupted) or not error.retryable:
        return False
    return error.retry_after is None or error.retry_after <= MAX_WAIT


def wait_before(attempt: int, error: ModelError, rng: random.Random | None = None) -> float:
    """Seconds to wait before try number `attempt` (the first repetition is 2).

    What the server asked for, and a little more, so that many clients do not come back at once; else an exponential
    backoff with full jitter in its upper half.
    """
    chance = (rng or random).random()
    if error.retry_after is not None:
        return error.retry_after * (1 + 0.1 * chance)
    ceiling = min(_CAP, _FIRST * 2.0 ** (attempt - 2))
    return float(ceiling * (0.5 + 0.5 * chance))


def may_fall_back(error: ModelError) -> bool:
    """Whether another model of the same server may do better."""
    if isinstance(error, RequestRejected):
        said = " ".join(getattr(error, "__notes__", ())) or str(error)  # without the advice
        return error.status in (403, 404) or "model" in said.lower()
    if isinstance(error, ModelUnavailable):  # without a status there was no connection, or no answer at all
        return error.status is not None or error.retry_after is not None
    return isinstance(error, QuotaError | StreamInterrupted)


def seconds(value: float) -> str:
    """A time as a person reads it."""
    return f"{value:.0f} s" if value >= 3 else f"{value:.1f} s"
