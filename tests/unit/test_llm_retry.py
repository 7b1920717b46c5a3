"""When to try again, and how long to wait; the deadline."""

from __future__ import annotations

import asyncio
import random
from email.utils import formatdate

import pytest

from hypercode.errors import (
    AuthError,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    QuotaError,
    RequestRejected,
    StreamInterrupted,
)
from hypercode.llm.clock import Deadline
from hypercode.llm.retry import duration, may_fall_back, may_retry, reset_after, retry_after, wait_before

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": formatdate(NOW + 90, usegmt=True)}, 90.0),
        ({"retry-after": formatdate(NOW - 90, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
    ],
)
def test_retry_after(headers: dict[str, str], wait: float | None) -> None:
    assert retry_after(headers, NOW) == wait


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        (str(int(NOW) + 4), 4.0),
        (str((int(NOW) + 4) * 1000), 4.0),
        ("20", 20.0),
        ("1.5", 1.5),
        ("6m0s", 360.0),
        ("120ms", 0.12),
        (str(int(NOW) - 4), None),
        (str(int(NOW) + 100_000), None),
        ("0", None),
        ("-5", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_reset_is_a_wait(value: str, wait: float | None) -> None:
    assert reset_after({"x-ratelimit-reset": value}, NOW) == wait


def test_no_reset() -> None:
    assert reset_after({}, NOW) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2s", 2.0), ("2.5s", 2.5), ("1h2m3s", 3723.0), ("300ms", 0.3), ("2", None), ("", None), ("s", None), (3, None), (None, None)],
)  # fmt: skip
def test_durations(text: object, seconds: float | None) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    ("error", "again", "other"),
    [
        (ModelUnavailable("x"), True, False),
        (ModelUnavailable("x", status=503), True, True),
        (ModelUnavailable("x", status=429, retry_after=120), True, True),
        (ModelUnavailable("x", status=429, retry_after=3600), False, True),
        (ModelUnavailable("x", retryable=False), False, False),
        (StreamInterrupted("x"), True, True),
        (AuthError("x", status=401), False, False),
        (QuotaError("x", status=402), False, True),
        (RequestRejected("x", status=400), False, False),
        (RequestRejected("x", status=404), False, True),
        (ContextOverflow("x", status=400), False, False),
    ],
)
def test_what_is_tried_again(error: ModelError, again: bool, other: bool) -> None:
    assert (may_retry(error), may_fall_back(error)) == (again, other)


def test_waits_grow_up_to_a_cap_and_differ() -> None:
    rng = random.Random(3)
    waits = [[wait_before(attempt, ModelUnavailable("x"), rng) for _ in range(200)] for attempt in range(2, 14)]
    for number, group in enumerate(waits):
        ceiling = min(20.0, 0.5 * 2**number)
        assert all(ceiling / 2 <= wait <= ceiling for wait in group)
        assert len(set(group)) > 100
    asked = [wait_before(2, ModelUnavailable("x", retry_after=10), rng) for _ in range(200)]
    assert all(10 <= wait <= 11 for wait in asked)


async def silence(seconds: float, moves: int) -> None:
    async with asyncio.timeout(None) as scope:
        deadline = Deadline(scope, seconds)
        for _ in range(moves):
            await asyncio.sleep(seconds / 2)
            deadline.set(60)
        deadline.set(seconds)
        await asyncio.sleep(30)


@pytest.mark.parametrize("moves", [0, 6])
async def test_a_deadline_strikes_when_it_has_passed_and_can_be_moved_both_ways(moves: int) -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    with pytest.raises(TimeoutError):
        await silence(0.1, moves)
    assert 0.1 + moves * 0.05 <= loop.time() - start < 20


async def test_a_stopped_deadline_never_strikes() -> None:
    async with asyncio.timeout(None) as scope:
        deadline = Deadline(scope, 0.01)
        deadline.stop()
        await asyncio.sleep(0.15)


async def test_a_blocked_loop_gets_a_second_look() -> None:
    """Data that came while the whole process was held up must not count as silence."""
    import time

    async with asyncio.timeout(None) as scope:
        deadline = Deadline(scope, 0.05)
        asyncio.get_running_loop().call_later(0.01, deadline.set, 60)
        time.sleep(0.2)  # noqa: ASYNC251  that is the point
        await asyncio.sleep(0.15)
        deadline.stop()
