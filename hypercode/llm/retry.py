"""When to try again, and how long to wait.  Pure.

`Retry-After` as in RFC 9110, section 10.2.3: seconds or an HTTP date; `retry-after-ms` as OpenAI and Azure send it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from time import time

from hypercode.errors import ModelError, ModelUnavailable, QuotaError, RequestRejected, StreamInterrupted

__all__ = ["MAX_WAIT", "may_fall_back", "may_retry", "retry_after", "seconds", "wait_before"]

MAX_WAIT = 120.0
"""Seconds: a server that asks for more is not waited for; the person is told instead."""

_FIRST, _CAP = 0.5, 20.0


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
        return error.status in (403, 404) or "model" in str(error).lower()
    if isinstance(error, ModelUnavailable):  # without a status there was no connection, or no answer at all
        return error.status is not None or error.retry_after is not None
    return isinstance(error, QuotaError | StreamInterrupted)


def seconds(value: float) -> str:
    """A time as a person reads it."""
    return f"{value:.0f} s" if value >= 3 else f"{value:.1f} s"
