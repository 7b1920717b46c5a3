"""Conversations made shorter without a model: results cut to head and tail, the oldest left out.  Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from hypercode.messages import EARLIER, Message, data_of, parse_arguments, text_of, user, words_of

__all__ = ["drop_oldest", "is_note", "left_out_note", "note", "shortened"]

_LEFT_OUT = f"{EARLIER} was left out to make room"
_HEAD, _TAIL = 300, 200
_MARK = 120
_ASKED = 300
_ASKED_IN_ALL = 4_000
_ARGUMENT = 200
_NOTE_LIMIT = 4_600

Count = Callable[[Message], int]


def note(summary: str) -> Message:
    """The message that stands for the beginning of a conversation."""
    return user(
        f"{EARLIER} was summarised to make room; what follows is a record of it, not a request. Results of tools before this "
        f"point are gone: call the tools again where you need them.]\n\n{summary}"
    )


def is_note(message: Message) -> bool:
    """Whether a message stands for something that a compaction took away."""
    return message.get("role") == "user" and text_of(message).startswith(EARLIER)


def left_out_note(gone: Sequence[Message]) -> Message:
    """The message that stands for messages that were left out: what the person had said in them, no file they had attached.

    Notes of this kind among them pass on what they hold.
    """
    lines: list[str] = []
    for message in gone:
        if _is_left_out(message):
            lines += [line for line in text_of(message).split("\n") if line.startswith("- ")]
            continue
        text = text_of(message) if is_note(message) else words_of(message)
        if message.get("role") == "user" and text.strip():
            text = " ".join(text.split())
            lines.append(f"- {text if len(text) <= _ASKED else text[:_ASKED] + '…'}")
    while sum(map(len, lines)) > _ASKED_IN_ALL:
        del lines[len(lines) // 3]  # what came first and what came last matters most
    said = f"{_LEFT_OUT}. Call the tools again where you need their results.]"
    return user("\n".join([said, "", "What the person had said in it:", *lines]) if lines else said)


def _is_left_out(message: Message) -> bool:
    return is_note(message) and text_of(message).startswith(_LEFT_OUT)


def shortened(message: Message, most: int = _HEAD + _TAIL + _MARK) -> Message:
    """A message whose data (a tool's result, an attached file) is cut to its beginning and end.

    The same object where that is no longer than `most` characters, or there is none.  What a person said stays whole.
    """
    data = data_of(message)
    if len(data) <= most:
        return message
    text = text_of(message)
    space = most - _MARK
    head = data[: space * 3 // 5]
    tail = data[len(data) - space * 2 // 5 :]
    gone = len(data) - len(head) - len(tail)
    again = "call the tool again" if message.get("role") == "tool" else "use a tool"
    left_out = f"[… {gone} characters left out to save room; {again} to see them …]"
    return {**message, "content": f"{text[: len(text) - len(data)]}{head}\n{left_out}\n{tail}"}


def drop_oldest(
    units: Sequence[tuple[list[Message], bool]], target: int, limit: int | None, count: Count
) -> list[Message]:
    """The messages of the units, made to fit without a model.

    A unit is a turn with its results, or one message; those marked true stay.  The others are shortened, then left out, oldest
    first, until `target` tokens are reached.  If the rest is over `limit` still, or no limit is known, results, attached files
    and arguments in the units that stay are cut as well, the newest last and least.
    """
    work = [unit if stays else [shortened(m) for m in unit] for unit, stays in units]
    old = [place for place, (unit, stays) in enumerate(units) if not stays]
    notes = [place for place in old if is_note(units[place][0][0])]
    total = sum(count(m) for unit in work for m in unit)
    gone: list[Message] = []
    for place in old:
        if total > target and place not in notes:
            total -= sum(map(count, work[place]))
            gone += units[place][0]
            work[place] = []
    if gone:
        kept = [m for place in notes for m in work[place]]
        for place in notes:
            work[place] = []
        summaries = [m for m in kept if not _is_left_out(m)]
        work[old[0]] = [*summaries, left_out_note([*(m for m in kept if _is_left_out(m)), *gone]), *work[old[0]]]
    return _cut_kept(work, limit, count)


def _cut_kept(work: list[list[Message]], limit: int | None, count: Count) -> list[Message]:
    """Cut results and arguments in what stays, step by step, until it fits."""
    units = [(place, unit[0]) for place, unit in enumerate(work) if unit]
    turns = [place for place, first in units if first.get("role") == "assistant" or data_of(first)]

    def fits() -> bool:
        return limit is not None and sum(count(m) for unit in work for m in unit) <= limit

    for place, unit in enumerate(work):
        if any(map(is_note, unit)) and not fits():
            work[place] = [_short_note(m) for m in unit]
    for place in turns[:-1]:
        if fits():
            break
        work[place] = [shortened(m) for m in work[place]]
    for most in (12_000, 4_000, 1_500):
        for place in turns[-1:]:
            if not fits():
                work[place] = [shortened(m, most) for m in work[place]]
    for place in turns if limit is not None else ():
        if not fits():
            work[place] = [_with_short_arguments(m) for m in work[place]]
    for place in turns[-1:]:
        if not fits() and limit is not None:
            work[place] = [shortened(m) for m in work[place]]
    return [m for unit in work for m in unit]


def _short_note(message: Message) -> Message:
    text = text_of(message)
    if not is_note(message) or len(text) <= _NOTE_LIMIT:
        return message
    half = _NOTE_LIMIT // 2 - 10
    return {**message, "content": f"{text[:half]}\n[…]\n{text[-half:]}"}


def _with_short_arguments(message: Message) -> Message:
    """The message with long texts in its calls' arguments cut; they stay JSON objects."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    new = []
    for call in calls:
        arguments = parse_arguments(call["function"].get("arguments") or "") or {}
        short = {k: _short_value(v) for k, v in arguments.items()}
        if short != arguments:
            call = {**call, "function": {**call["function"], "arguments": json.dumps(short, ensure_ascii=False)}}
        new.append(call)
    return message if new == calls else {**message, "tool_calls": new}


def _short_value(value: object) -> object:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _ARGUMENT + 60:
        return value
    return f"{text[:_ARGUMENT]}[… {len(text) - _ARGUMENT} characters left out to save room]"
