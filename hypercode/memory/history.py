"""A saved session, read: its records, and the conversation they make."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypercode.memory.records import Record, Scan, scan
from hypercode.memory.session_file import open_to_read, read_all
from hypercode.memory.spending import Spending
from hypercode.messages import Message, check, tool_result, unanswered

__all__ = ["Loaded", "load", "rebuild", "replaced"]

_NAMED = 5  # gaps whose numbers are said
_NOT_RUN = "[not run: hypercode ended before this call]"


@dataclass(slots=True)
class Loaded:
    """A session as it was saved.

    `messages` is the conversation for the next request, as `messages.check` leaves it.  `partial` is the text of a last
    reply that was cut by a crash (it is in `messages` too), `in_flight` the intents of the last task that have no result:
    what they did is not known.  `starts` has, for each message of the person that is still part of the conversation, the
    number of its record and its place in `messages`; `numbers` has the number of each message's record, 0 for one that was
    mended.  `owed` are the results of the last reply's calls that a crash kept out of the file.  `broken` says how the last reply broke off: the outcome of its turn, `ended` for a crash, empty where it was
    whole.  `notices` are lines for the person.  `cost` is in USD, None where no provider has said, `usage` the sum of what the server counted; `seq` is the highest
    number in the file, `name` what the person calls the session.
    """

    path: Path
    records: list[Record]
    messages: list[Message] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    in_flight: list[Record] = field(default_factory=list)
    partial: str = ""
    starts: list[tuple[int, int]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    owed: list[Message] = field(default_factory=list)
    broken: str = ""
    cwd: str | None = None
    model: str | None = None
    name: str | None = None
    turns: int = 0
    cost: float | None = None
    usage: dict[str, Any] | None = None
    seq: int = 0

    @property
    def session(self) -> str:
        """The session's id."""
        return self.path.stem

    @property
    def spent(self) -> dict[str, Any]:
        """What its turns took: their number, `cost` and `usage`."""
        return {"turns": self.turns, "cost": self.cost, "usage": self.usage}

    def current(self) -> list[Record]:
        """The records without those that a rewind left behind or that another one replaces."""
        kept: list[Record] = []
        for record in self.records:
            if record["type"] == "rewind" and isinstance(to := record.get("to"), int):
                kept = [r for r in kept if isinstance(r.get("seq"), int) and r["seq"] < to]
            else:
                if (number := replaced(record)) is not None:
                    kept = [r for r in kept if r.get("seq") != number]
                kept.append(record)
        return kept


def load(path: Path) -> Loaded:
    """Read a session and change nothing.  Raises ConfigError where there is none, or no regular file."""
    fd = open_to_read(path)
    try:
        found = scan(read_all(fd))
    finally:
        os.close(fd)
    return rebuild(path, found)


def rebuild(path: Path, found: Scan, kept: Path | None = None) -> Loaded:
    """The conversation that the records make; `kept` is where the damaged lines have been copied to."""
    loaded = Loaded(path, found.records)
    if not found.records and not found.damaged:
        loaded.notices.append(f"The session {path.stem} is empty: nothing of its conversation is left.")
    elif damage := _damage(found, kept):
        loaded.notices.append(f"The session {path.stem} was damaged: {damage}.")
    building = _Building(loaded)
    for record in found.records:
        building.add(record)
    building.finish(whole=not (found.damaged or found.changed or found.missing()))
    if building.unusable:
        loaded.notices.append(
            f"{_count(building.unusable, 'message')} of {path.stem} could not be understood: left out."
        )
    return loaded


def _damage(found: Scan, kept: Path | None) -> str:
    parts = []
    if found.damaged:
        size = sum(map(len, found.damaged))
        torn = " (the last one was cut off)" if found.torn else ""
        where = f"; they are kept in {kept}" if kept else ""
        parts.append(
            f"{_count(len(found.damaged), 'line')}, {size} bytes, could not be read{torn} and are left out{where}"
        )
    if found.changed:
        parts.append(f"{_count(found.changed, 'record')} did not match the checksum and were taken as they are")
    if found.nuls:
        parts.append(f"{found.nuls} NUL bytes were skipped")
    if gaps := found.missing():
        parts.append(_missing(gaps, found.records))
    return "; ".join(parts)


def _missing(gaps: list[range], records: list[Record]) -> str:
    """How many records are gone, and which numbers they had."""
    count = sum(map(len, gaps))
    numbers = [str(gap[0]) if len(gap) == 1 else f"{gap[0]}-{gap[-1]}" for gap in gaps[:_NAMED]]
    which = f"number{'s' * (count != 1)} {', '.join(numbers)}{', …' * (len(gaps) > _NAMED)}"
    last = max((seq for record in records if isinstance(seq := record.get("seq"), int)), default=gaps[-1].stop)
    return f"{_count(count, 'record')} ({which} of {last}) {'is' if count == 1 else 'are'} missing"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


class _Building:
    """Puts records together to a conversation."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._entries: list[tuple[int, Message]] = []
        self._intents: dict[str, Record] = {}
        self._reply = 0  # the number of the reply whose calls are being run
        self._noted: dict[tuple[int, str], bool] = {}  # by reply and call, for ids may come again: whether it had begun
        self._broken: dict[
            int, str
        ] = {}  # by the number of a message of the person's: how the reply before it broke off
        self._pieces: list[str] = []
        self._pieces_seq = 0
        self._spending = Spending()
        self.unusable = 0

    def add(self, record: Record) -> None:
        kind = record["type"]
        seq = record.get("seq")
        seq = seq if isinstance(seq, int) and not isinstance(seq, bool) else self._loaded.seq
        self._loaded.seq = max(self._loaded.seq, seq)
        if kind == "partial":
            self._intents.clear()  # a further reply: whoever asked for it has seen how the calls before it ended
            if isinstance(record.get("text"), str):
                self._pieces_seq = self._pieces_seq if self._pieces else seq
                self._pieces.append(record["text"])
            return
        if kind == "assistant":
            self._pieces.clear()
        elif kind in ("user", "turn_end", "session", "rewind", "compaction"):
            self._settle_partial()
        self._apply(kind, seq, record)

    def _apply(self, kind: str, seq: int, record: Record) -> None:
        loaded = self._loaded
        if kind in ("user", "assistant", "result"):
            if (number := replaced(record)) is not None:
                self._entries = [e for e in self._entries if e[0] != number or e[1].get("role") != "user"]
            self._message(seq, record.get("message"), {"result": "tool"}.get(kind, kind))
            if kind in ("user", "assistant"):
                self._intents.clear()
                self._reply = seq if kind == "assistant" else self._reply
                self._broken[seq] = self._broken.get(replaced(record) or 0, loaded.broken) if kind == "user" else ""
                loaded.broken = ""
        elif kind == "intent" and isinstance(record.get("call_id"), str):
            begun = record.get("begun") is not False
            self._noted[self._reply, record["call_id"]] = begun
            if begun:
                self._intents[record["call_id"]] = record
        elif kind == "rewind" and isinstance(record.get("to"), int):
            self._entries = [entry for entry in self._entries if entry[0] < record["to"]]
            self._intents.clear()
            loaded.broken = self._broken.get(record["to"], "")
        elif kind == "compaction" and isinstance(record.get("messages"), list):
            self._entries = list(self._compacted(record["messages"]))
        elif kind == "name":
            loaded.name = _text(record.get("name")) or None
        elif kind in ("session", "model"):
            loaded.model = _text(record.get("model")) or loaded.model
            loaded.cwd = _text(record.get("cwd")) or loaded.cwd
        elif kind == "turn_end":
            shown = record.get("ttft") is not None and record.get("outcome") != "complete"
            loaded.broken = _text(record.get("outcome")) or "" if shown else ""
        if self._spending.add(kind, record):
            loaded.turns, loaded.cost, loaded.usage = self._spending.turns, self._spending.cost, self._spending.usage

    def _message(self, seq: int, message: Any, role: str) -> None:
        if not _usable(message, role):
            self.unusable += 1
            return
        self._entries.append((seq, message))
        if role == "tool":
            self._intents.pop(message["tool_call_id"], None)

    def _compacted(self, messages: list[Any]) -> Iterator[tuple[int, Message]]:
        """What a compaction left, numbered so that a rewind to a message behind it still finds its place."""
        seq, position = 0, 0
        for message in messages:
            role = message.get("role") if isinstance(message, dict) else None
            if role not in ("user", "assistant", "tool") or not _usable(message, role):
                self.unusable += 1
                continue
            found = next((n for n in range(position, len(self._entries)) if self._entries[n][1] == message), None)
            if found is not None:
                seq, position = self._entries[found][0], found + 1
            yield seq, message

    def _settle_partial(self) -> str:
        text = "".join(self._pieces)
        self._pieces.clear()
        if text.strip():
            self._entries.append((self._pieces_seq, {"role": "assistant", "content": text}))
        return text

    def _never_begun(self, *, whole: bool) -> list[str]:
        """The last reply's calls without a result that did nothing; of a `whole` file, also those it does not tell of."""
        reply = next((seq for seq, m in reversed(self._entries) if m["role"] == "assistant"), 0)
        ids = dict.fromkeys(filter(None, unanswered([m for _, m in self._entries])))
        return [i for i in ids if not self._noted.get((reply, i), not whole)]

    def finish(self, *, whole: bool) -> None:
        loaded = self._loaded
        loaded.partial = self._settle_partial()
        self._entries += [(0, tool_result(call_id, _NOT_RUN)) for call_id in self._never_begun(whole=whole)]
        loaded.messages, repairs = check(message for _, message in self._entries)
        places = {id(message): place for place, message in enumerate(loaded.messages)}
        numbers = {id(message): seq for seq, message in self._entries}
        loaded.numbers = [numbers.get(id(message), 0) for message in loaded.messages]
        last = next((m for m in reversed(loaded.messages) if m["role"] == "assistant"), {})
        asked = {call["id"] for call in last.get("tool_calls") or ()}
        missing = [m for m, number in zip(loaded.messages, loaded.numbers, strict=True) if not number]
        loaded.owed = [m for m in missing if m["role"] == "tool" and m["tool_call_id"] in asked]
        loaded.starts = [(seq, places[id(m)]) for seq, m in self._entries if m["role"] == "user" and id(m) in places]
        loaded.in_flight = list(self._intents.values())
        if loaded.in_flight:
            names = ", ".join(str(intent.get("name")) for intent in loaded.in_flight)
            loaded.notices.append(f"hypercode ended while this was going on: {names}. What it did is not known.")
            repairs = [repair for repair in repairs if not repair.startswith("answered a call")]
        if repairs:
            loaded.notices.append(f"Repaired the conversation: {'; '.join(dict.fromkeys(repairs))}.")
        if loaded.partial.strip():
            loaded.broken = "ended"
            loaded.notices.append("The last answer was cut off; what had arrived of it is kept.")


def replaced(record: Record) -> int | None:
    """The number of the record of the same message before its files were read, where there may be one."""
    number = record.get("replaces")
    return number if record["type"] == "user" and isinstance(number, int) and not isinstance(number, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _usable(message: Any, role: str) -> bool:
    """Whether it is a message that can be sent."""
    if not isinstance(message, dict) or message.get("role") != role:
        return False
    content = message.get("content")
    if isinstance(content, list):
        if not all(isinstance(part, dict) for part in content):
            return False
    elif not isinstance(content, str) and not (content is None and role == "assistant"):
        return False
    if role == "tool":
        return isinstance(message.get("tool_call_id"), str)
    calls = message.get("tool_calls")
    return calls is None or (isinstance(calls, list) and all(map(_is_call, _objects(calls))) and len(calls) > 0)


def _objects(values: list[Any]) -> Iterable[dict[str, Any]]:
    return (value if isinstance(value, dict) else {} for value in values)


def _is_call(call: dict[str, Any]) -> bool:
    function = call.get("function")
    if not isinstance(call.get("id"), str) or not isinstance(function, dict):
        return False
    return isinstance(function.get("name"), str) and isinstance(function.get("arguments"), str)
