"""A saved session for others: as Markdown to read, as JSON for programs, as events to be drawn again."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypercode.errors import ConfigError
from hypercode.events import (
    AssistantMessage,
    Event,
    Notice,
    ReasoningDelta,
    TextDelta,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolOutput,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from hypercode.memory.history import Loaded, replaced
from hypercode.memory.records import Record
from hypercode.memory.shorten import is_note
from hypercode.messages import Message, Typed, data_of, is_report, spoken, text_of, words_of

__all__ = ["FORMATS", "replay", "save", "to_json", "to_markdown"]


def to_json(loaded: Loaded) -> str:
    """One JSON object: `session`, `name`, `cwd`, `model`, `started`, `turns`, `cost`, `notices`, the conversation as `messages`
    in the wire format, and every `record` of the file.
    """
    value = {
        "session": loaded.session,
        "name": loaded.name,
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
    """The conversation to read: what was said as it was written; calls, their results and attached files in fences."""
    started = _started(loaded)
    facts = {
        "Name": loaded.name,
        "Folder": loaded.cwd,
        "Model": loaded.model,
        "Started": time.strftime("%Y-%m-%d %H:%M", time.localtime(started)) if started is not None else None,
        "Turns": loaded.turns,
        "Cost": f"{loaded.cost:.4f} USD" if loaded.cost is not None else None,
    }
    head = [f"# Session {loaded.session}", "\n".join(f"- {k}: {v}" for k, v in facts.items() if v is not None)]
    notices = [f"> {notice}" for notice in loaded.notices]
    return "\n\n".join([*head, *notices, *(part for m in loaded.messages for part in _parts(m))]) + "\n"


FORMATS: dict[str, Callable[[Loaded], str]] = {"md": to_markdown, "json": to_json}
"""The formats of an export, by name."""


def save(text: str, path: Path) -> None:
    """Write an export into a new file for the user alone.  Raises ConfigError where that cannot be, or there is one."""
    try:
        with open(path, "x", encoding="utf-8", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError("exists already and is left as it is; give another name", file=str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot be written ({error.strerror})", file=str(path)) from None


def _parts(message: Message) -> Iterator[str]:
    role, text = message["role"], text_of(message)
    if role == "tool":
        yield _fenced(text)
        return
    if role == "user":
        yield from _said(message, text)
        return
    yield f"## {role.capitalize()}"
    if text.strip():
        yield text.strip("\n")
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield f"**{function['name']}**"
        yield _fenced(_readable(function.get("arguments") or ""), "json")


def _said(message: Message, text: str) -> Iterator[str]:
    words, data = words_of(message), data_of(message)
    if is_note(message) or not (words or data):
        yield "## Earlier" if is_note(message) else "## Note"
        yield text.strip("\n")
        return
    if words.strip():
        yield "## You"
        yield words.strip("\n")
    if data:
        yield "### Printed" if is_report(message) else "### Attached"
        yield _fenced(data)


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
    said: set[int] = set()
    for record in loaded.records:
        if replaced(record) in said:
            continue  # the same message, with its files
        if record["type"] == "user" and isinstance(number := record.get("seq"), int):
            said.add(number)
        at = record.get("time")
        seconds = max(at - start, 0.0) if isinstance(at, int | float) else 0.0
        kind = record["type"]
        if kind in ("session", "user", "rewind"):
            open_turn = False
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
        case "user" if isinstance(shell := record.get("shell"), dict):
            yield from _shell_line(shell, text_of(message))
        case "user" if is_report(message):
            yield Notice("info", text_of(message).strip("[]"))
        case "user":
            text = spoken(text_of(message))[1]
            yield UserMessage(Typed(text, typed) if (typed := _str(record.get("typed"))) else text)
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
            error, seconds = _str(record.get("kind")) or None, _number(record.get("seconds")) or 0.0
            failed = bool(record.get("is_error"))
            seen = record.get("shown")
            if seen := text_of(message)[:seen] if isinstance(seen, int) else _str(seen):
                yield ToolOutput(call_id, seen)
            yield ToolExecutionEnd(call_id, names.pop(call_id), text_of(message), failed, error, seconds)
        case "rewind":
            yield Notice("info", "Went back to an earlier place in the conversation.")
        case "notice":
            yield Notice(_str(record.get("level")), _str(record.get("text")))
        case "turn_end":
            yield _turn_end(record, turn)


def _shell_line(shell: dict[str, Any], told: str) -> Iterator[Event]:
    """A command of the person's own: the message tells the model what `$ command` printed."""
    command, kind, seconds = _str(shell.get("command")), _str(shell.get("kind")), _number(shell.get("seconds"))
    output = told.partition(f"$ {command}\n")[2]
    yield ToolExecutionStart("shell", "!", {"command": command})
    yield ToolOutput("shell", output)
    yield ToolExecutionEnd(
        "shell", "!", output, bool(kind), kind or None, seconds if isinstance(seconds, float) else 0.0
    )


def _turn_end(record: Record, turn: int) -> TurnEnd:
    return TurnEnd(
        turn=turn,
        outcome=_str(record.get("outcome")),
        finish_reason=_str(record.get("finish_reason")) or None,
        usage=_object(record.get("usage")),
        cost=_number(record.get("cost")),
        ttft=_number(record.get("ttft")),
        seconds=_number(record.get("seconds")) or 0.0,
        error=_object(record.get("error")),
    )


def _object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""
