"""A saved session for others: as Markdown to read, as JSON for programs, as events to be drawn again."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

from hypercode.events import (
    AssistantMessage,
    Event,
    ReasoningDelta,
    TextDelta,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from hypercode.memory.history import Loaded
from hypercode.memory.records import Record
from hypercode.messages import Message, text_of

__all__ = ["replay", "to_json", "to_markdown"]


def to_json(loaded: Loaded) -> str:
    """One JSON object: `session`, `cwd`, `model`, `started`, `turns`, `cost`, `notices`, the conversation as `messages`
    in the wire format, and every `record` of the file.
    """
    value = {
        "session": loaded.session,
        "cwd": loaded.cwd,
        "model": loaded.model,
        "started": _started(loaded),
        "turns": loaded.turns,
        "cost": loaded.cost,
        "notices": loaded.notices,
        "messages": loaded.messages,
        "records": loaded.records,
    }
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def to_markdown(loaded: Loaded) -> str:
    """The conversation to read: what was said as it was written, calls and their results in fences."""
    started = _started(loaded)
    facts = {
        "Folder": loaded.cwd,
        "Model": loaded.model,
        "Started": time.strftime("%Y-%m-%d %H:%M", time.localtime(started)) if started is not None else None,
        "Turns": loaded.turns,
        "Cost": f"{loaded.cost:.4f} USD" if loaded.cost is not None else None,
    }
    head = [f"# Session {loaded.session}", "\n".join(f"- {k}: {v}" for k, v in facts.items() if v is not None)]
    notices = [f"> {notice}" for notice in loaded.notices]
    return "\n\n".join([*head, *notices, *(part for m in loaded.messages for part in _parts(m))]) + "\n"


def _parts(message: Message) -> Iterator[str]:
    role, text = message["role"], text_of(message)
    if role == "tool":
        yield _fenced(text)
        return
    yield {"user": "## You", "assistant": "## Assistant"}.get(role, f"## {role.capitalize()}")
    if text.strip():
        yield text.strip("\n")
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield f"**{function['name']}**"
        yield _fenced(_readable(function.get("arguments") or ""), "json")


def _readable(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return arguments


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def _started(loaded: Loaded) -> float | None:
    return next((r["time"] for r in loaded.records if isinstance(r.get("time"), int | float)), None)


def replay(loaded: Loaded) -> Iterator[tuple[float, Event]]:
    """What was announced when the session ran, each with the seconds since its start, what was taken back later included.

    A reply that was saved in increments comes in these, else in one piece.
    """
    start = _started(loaded) or 0.0
    names: dict[str, str] = {}
    turn, open_turn, shown = 0, False, ""
    for record in loaded.records:
        at = record.get("time")
        seconds = max(at - start, 0.0) if isinstance(at, int | float) else 0.0
        kind = record["type"]
        if kind in ("partial", "assistant", "turn_end") and not open_turn:
            turn, open_turn, shown = turn + 1, True, ""
            yield seconds, TurnStart(turn)
        if kind == "partial":
            shown += _str(record.get("text"))
        elif kind == "turn_end":
            open_turn = False
        for event in _events(record, turn, shown, names):
            yield seconds, event


def _events(record: Record, turn: int, shown: str, names: dict[str, str]) -> Iterator[Event]:
    message = record.get("message")
    message = message if isinstance(message, dict) else {}
    match record["type"]:
        case "user":
            yield UserMessage(text_of(message))
        case "partial":
            if reasoning := _str(record.get("reasoning")):
                yield ReasoningDelta(reasoning)
            if text := _str(record.get("text")):
                yield TextDelta(text)
        case "assistant":
            whole = text_of(message)
            if whole.startswith(shown) and whole != shown:
                yield TextDelta(whole[len(shown) :])
            yield AssistantMessage(message, record.get("finish_reason"))
        case "intent":
            call_id, name, arguments = (record.get(k) for k in ("call_id", "name", "arguments"))
            names[_str(call_id)] = _str(name)
            yield ToolExecutionStart(_str(call_id), _str(name), arguments if isinstance(arguments, dict) else {})
        case "result" if (call_id := _str(message.get("tool_call_id"))) in names:
            error, seconds = record.get("kind"), record.get("seconds")
            seconds = seconds if isinstance(seconds, int | float) else 0.0
            failed = bool(record.get("is_error"))
            yield ToolExecutionEnd(call_id, names.pop(call_id), text_of(message), failed, error, seconds)
        case "turn_end":
            yield _turn_end(record, turn)


def _turn_end(record: Record, turn: int) -> TurnEnd:
    known: dict[str, Any] = {
        key: record.get(key) for key in ("finish_reason", "usage", "cost", "ttft", "seconds", "error")
    }
    return TurnEnd(turn=turn, outcome=_str(record.get("outcome")), **{**known, "seconds": known["seconds"] or 0.0})


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""
