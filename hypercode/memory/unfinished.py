"""What was going on when a session ended in the middle of a task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypercode.memory.history import Loaded
from hypercode.memory.records import Record
from hypercode.messages import is_report, parse_arguments, spoken, text_of

__all__ = ["Unfinished", "changed_since", "unfinished"]

_WATCHED = 500
_FILE_TOOLS = ("read", "write", "edit")


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A task that has no answer.

    `task` is what the person had said; `finished`, `unknown` and `not_begun` are the calls of the task with a result, those
    whose effect is not known and those that were never taken up, as a tool's name and what it was about; `partial` is how
    many characters of an answer there are; `asked` says that the model had been asked and nothing had come.
    """

    task: str
    finished: tuple[str, ...]
    unknown: tuple[str, ...]
    not_begun: tuple[str, ...]
    partial: int
    asked: bool


def unfinished(loaded: Loaded) -> Unfinished | None:
    """What the last task still lacks; None where it has its answer, or where the person saw how it failed."""
    records = loaded.current()
    begin = next((n for n in range(len(records) - 1, -1, -1) if _begins(records[n])), None)
    if begin is None or not loaded.messages:
        return None
    task = [r for r in records[begin:] if r["type"] != "user" or not is_report(r.get("message") or {})]
    last = next((r for r in reversed(task) if r["type"] not in ("notice", "name", "model", "session")), task[0])
    if last["type"] == "turn_end" and last.get("outcome") != "complete":
        return None
    spoke = next((m for m in reversed(loaded.messages) if not is_report(m)), {})
    if spoke.get("role") == "assistant" and not loaded.partial.strip():
        return None
    not_begun = tuple(_not_begun(loaded, task))
    return Unfinished(
        task=spoken(text_of(task[0]["message"]))[1],
        finished=tuple(_label(intent) for intent, result in _calls(task) if result is not None),
        unknown=tuple(_label(intent) for intent in loaded.in_flight),
        not_begun=not_begun,
        partial=len(loaded.partial.strip()),
        asked=not (loaded.partial.strip() or loaded.in_flight or not_begun),
    )


def _not_begun(loaded: Loaded, task: list[Record]) -> Iterator[str]:
    begun = {intent["call_id"] for intent in loaded.in_flight}
    owed = {message["tool_call_id"] for message in loaded.owed} - begun
    if not any(record["type"] == "assistant" for record in task):
        return
    last = next((m for m in reversed(loaded.messages) if m["role"] == "assistant"), {})
    for call in last.get("tool_calls") or ():
        if call["id"] in owed:
            arguments = parse_arguments(call["function"]["arguments"])
            yield _label({"name": call["function"]["name"], "arguments": arguments})


def _calls(records: list[Record]) -> list[tuple[Record, Record | None]]:
    """The intents, each with its result where it has one: a server may number the calls of each reply anew."""
    calls = list[tuple[Record, Record | None]]()
    places = dict[Any, int]()
    for record in records:
        if record["type"] == "assistant":
            places.clear()
        elif record["type"] == "intent" and isinstance(call_id := record.get("call_id"), str):
            places[call_id] = len(calls)
            calls.append((record, None))
        elif record["type"] == "result" and isinstance(message := record.get("message"), dict):
            call_id = message.get("tool_call_id")
            place = places.pop(call_id, None) if isinstance(call_id, str) else None
            if place is not None:
                calls[place] = (calls[place][0], record)
    return calls


def _begins(record: Record) -> bool:
    message = record.get("message")
    return record["type"] == "user" and isinstance(message, dict) and not is_report(message)


def _label(intent: Record) -> str:
    arguments = intent.get("arguments")
    values = arguments if isinstance(arguments, dict) else {}
    about = next((str(values[n]) for n in ("path", "command", "pattern") if n in values), None)
    return f"{intent.get('name')} {about if about is not None else json.dumps(values, ensure_ascii=False)}"


def changed_since(loaded: Loaded, workspace: Path) -> list[str]:
    """The files that the conversation's tools read or wrote and that were changed, or are gone, since its last record.

    By their modification times, so only files are looked at that tools named; at most the last 500 of them.
    """
    last = next((r["time"] for r in reversed(loaded.records) if isinstance(r.get("time"), int | float)), None)
    if last is None:
        return []
    base = Path(loaded.cwd) if loaded.cwd else workspace
    pending = {intent.get("call_id"): intent for intent in loaded.in_flight}
    changed = []
    for path in list(dict.fromkeys(_paths(loaded.records)))[:_WATCHED]:
        since = min([last, *(i["time"] for i in pending.values() if _path(i) == path and "time" in i)])
        try:
            if (base / path).stat().st_mtime > since + 0.001:
                changed.append(path)
        except FileNotFoundError:
            changed.append(f"{path} (gone)")
        except (OSError, ValueError):
            pass
    return changed


def _paths(records: list[Record]) -> Iterator[str]:
    """The files with a successful result, the last one first, and those a call was under way to."""
    for intent, result in reversed(_calls(records)):
        failed = intent.get("begun") is False if result is None else result.get("is_error")
        if not failed and (path := _path(intent)):
            yield path


def _path(intent: Record) -> str | None:
    arguments: Any = intent.get("arguments")
    path = arguments.get("path") if isinstance(arguments, dict) and intent.get("name") in _FILE_TOOLS else None
    return path if isinstance(path, str) else None
