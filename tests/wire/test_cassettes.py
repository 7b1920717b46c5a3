"""Every recorded-style answer, over a real socket, through the real SDK, against what a careful client makes of it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hypercode.errors import ModelError, StreamInterrupted
from hypercode.events import ReasoningDelta, TextDelta
from hypercode.llm.client import Client
from hypercode.llm.settings import ModelSettings
from hypercode.messages import Reply, user

ROOT = Path(__file__).parents[1]
CASES = ROOT / "cases" / "streams"
sys.path.insert(0, str(ROOT / "tools" / "streams"))

from compare import mismatches  # noqa: E402
from replay import ReplayServer  # noqa: E402

IDS = sorted(path.stem for path in CASES.glob("*.json") if path.name != "scripts.json")

Outcome = tuple[dict[str, Any], list[Any]]


async def ask(server: ReplayServer, model: str, **changes: Any) -> Outcome:
    """What the client makes of one answer, in the words of `expect`, and the events."""
    settings = ModelSettings(base_url=server.base_url, api_key="sk-test-not-a-key", model=model, **changes)
    client = Client(settings)
    reply, events, error, outcome = Reply(), [], None, "complete"
    try:
        await client.complete([user("go")], [], reply, events.append)
    except StreamInterrupted as interrupted:
        error, outcome = interrupted, "interrupted"
    except ModelError as reported:
        error, outcome = reported, "error"
    await client.aclose()
    return describe(reply, events, outcome, error), events


def describe(reply: Reply, events: list[Any], outcome: str, error: ModelError | None) -> dict[str, Any]:
    complete = outcome == "complete"
    text = "".join(e.text for e in events if isinstance(e, TextDelta))
    reasoning = "".join(e.text for e in events if isinstance(e, ReasoningDelta))
    assert (text, reasoning) == (reply.text, reply.reasoning)
    json.dumps(reply.message(complete=complete), ensure_ascii=False).encode()
    return {
        "text": text,
        "reasoning": reasoning,
        "tool_calls": [
            {
                "id": c.id,
                "name": c.name,
                "arguments": c.arguments,
                "runnable": complete and not reply.cut and c.parsed is not None and not c.damaged,
                "extra": c.extra,
            }
            for c in reply.calls
        ],
        "finish_reason": reply.finish_reason,
        "usage": reply.usage,
        "outcome": outcome,
        "error": str(error or ""),
        "retryable": error.retryable if error else None,
        "replay": reply.message(complete=complete),
    }


def limits(case: dict[str, Any]) -> dict[str, Any]:
    idle = (case.get("client") or {}).get("idle_timeout_s")
    return {"idle_timeout": idle, "first_event_timeout": idle} if idle else {}


@pytest.fixture(scope="module")
def server() -> Iterator[ReplayServer]:
    with ReplayServer(CASES) as server:
        yield server


@pytest.fixture(scope="module")
def outcomes(server: ReplayServer) -> dict[str, Outcome]:
    """All answers, several at a time: most of the slow ones are silent."""

    async def run() -> dict[str, Outcome]:
        slots = asyncio.Semaphore(8)

        async def one(name: str) -> Outcome:
            async with slots:
                return await asyncio.wait_for(
                    ask(server, f"cassette/{name}", max_retries=0, **limits(server.cassettes[name])), 40
                )

        results = await asyncio.gather(*map(one, IDS), return_exceptions=True)
        return dict(zip(IDS, results, strict=True))  # type: ignore[arg-type]

    return asyncio.run(run())


def test_all_are_there() -> None:
    assert len(IDS) == 171


@pytest.mark.parametrize("name", IDS)
def test_cassette(server: ReplayServer, outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    if isinstance(outcome, BaseException):
        raise outcome
    assert mismatches(server.cassettes[name]["expect"], outcome[0]) == []
