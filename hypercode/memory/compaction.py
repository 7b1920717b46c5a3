"""A long conversation made shorter: what will go, and the shorter one.

In this order: tool results and attached files that the model has seen are shortened, oldest first; then the beginning is
replaced by a summary that the model writes; and where no model helps, the oldest is left out.  The person's latest message,
everything behind the last reply and the last turns stay.  A call and its results stay or go together, so the result is what
`messages.check` leaves unchanged.  System messages are never touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hypercode.errors import ContextOverflow, ModelError
from hypercode.events import Event, Notice
from hypercode.memory import summary
from hypercode.memory.shorten import drop_oldest, is_note, note, shortened
from hypercode.memory.tokens import tokens_of
from hypercode.messages import Message, Reply, check, cut_by, data_of

__all__ = ["KEEP_TURNS", "Compacted", "Plan", "compact", "plan_compaction"]

KEEP_TURNS = 3
"""How many of the last turns stay as they are, as long as they leave room."""

Level = Literal["auto", "summary", "drop"]
"""`auto`: no more than is needed; `summary`: everything old is replaced, as the person asks, or nothing where no summary can be
had; `drop`: the last step, which needs no model."""

Complete = Callable[[Sequence[Message], Sequence[dict[str, Any]], Reply, Callable[[Event], None]], Awaitable[None]]
Count = Callable[[Message], int]

_TARGET = 0.5
_KEPT_SHARE = 0.8
_WORTH = 0.1
_NOTE_TOKENS = 1_200
_NOTE_CHARACTERS = 16_000
_ASKED = 2
"""How often a model is asked for a summary: once more, for half of it, if the first request was too long as well."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a compaction will do.

    `shorten` and `replace` are places in the messages: results that are shortened, and what a summary will stand for.
    `before` and `after` are tokens, about; `limit` what the conversation may have (None: not known).
    """

    shorten: tuple[int, ...]
    replace: tuple[int, ...]
    before: int
    after: int
    limit: int | None
    text: str

    @property
    def empty(self) -> bool:
        """Whether there is nothing to shorten."""
        return not self.shorten and not self.replace


@dataclass(frozen=True, slots=True)
class Compacted:
    """The shorter conversation.

    `summary` is None where no model was asked or none helped; `dropped` counts the messages that are no longer there,
    `shortened` those that lost text.  `reply` has what the summary cost, also where it was of no use.
    """

    messages: list[Message]
    summary: str | None
    dropped: int
    shortened: int
    before: int
    after: int
    notices: tuple[str, ...] = ()
    reply: Reply | None = None


@dataclass(frozen=True, slots=True)
class _Block:
    """Messages that stay or go together."""

    start: int
    end: int
    kind: Literal["system", "note", "user", "turn"]

    @property
    def places(self) -> range:
        """Where its messages are."""
        return range(self.start, self.end)


def plan_compaction(
    messages: Sequence[Message],
    window: int | None = None,
    *,
    reserve: int = 0,
    keep: int = KEEP_TURNS,
    level: Level = "auto",
    count: Count = tokens_of,
) -> Plan:
    """What a compaction would do, in words and in places.  Changes nothing, asks nobody.

    `window` is the model's; `reserve` what the answer, the tools and the system prompt take of it where that is not among the
    messages.  `count` measures a message in tokens.
    """
    sizes = [count(message) for message in messages]
    before = sum(sizes)
    limit = max(window - reserve, window // 8) if window else None
    target = int((limit if limit is not None else before) * _TARGET)
    blocks = _blocks(messages)
    kept = _kept(blocks, sizes, target, keep)
    old = [p for b in blocks if b not in kept and b.kind != "system" for p in b.places]
    shorten, after = _to_shorten(messages, sizes, old, before, target, count)
    replace: tuple[int, ...] = ()
    gone = sum(sizes[p] for p in old)
    enough = after <= target and level == "auto"
    worth = gone > _NOTE_TOKENS and gone > _WORTH * (limit or before) and any(not is_note(messages[p]) for p in old)
    if level == "summary":
        worth = any(not is_note(messages[p]) for p in old)
    if not enough and worth:
        shorten, replace, after = (), tuple(old), before - gone + min(_NOTE_TOKENS, gone)
    return Plan(shorten, replace, before, after, limit, _describe(messages, shorten, replace, before, after))


async def compact(
    messages: Sequence[Message],
    *,
    complete: Complete | None = None,
    window: int | None = None,
    reserve: int = 0,
    keep: int = KEEP_TURNS,
    level: Level = "auto",
    count: Count = tokens_of,
    focus: str = "",
    emit: Callable[[Event], None] = lambda event: None,
) -> Compacted:
    """The conversation as `plan_compaction` describes it, with the same arguments.

    `complete` writes the summary; without it, and where it fails, the oldest is left out instead, but nothing at level
    `summary` as long as all of it has room.  It is asked twice at most.  `focus` is what the person wants kept; `emit` gets
    the notices of the model call.
    """
    whole, _ = check(messages)
    plan = plan_compaction(whole, window, reserve=reserve, keep=keep, level=level, count=count)
    if level == "drop":
        return _dropped(whole, plan, keep, count)
    result = [shortened(m) if place in plan.shorten else m for place, m in enumerate(whole)]
    if not plan.replace:
        return _done(whole, result, plan, count)
    old = [whole[place] for place in plan.replace]
    text, reply, problem = None, None, "there is no model to summarise it"
    stays = level == "summary" and (plan.limit is None or plan.before <= plan.limit)
    if complete is not None:
        room = max(int(min(0.6 * window, window - reserve)), 500) if window else max(plan.before // 2, 500)
        text, reply, problem = await _summarise(old, complete, room, count, focus, emit)
        if stays and text and reply and (cut := cut_by(reply.finish_reason)):
            text, problem = None, f"the summary was cut off by {cut}"
    if text is None or count(note(text)) >= sum(map(count, old)):
        problem = problem or "the summary was longer than what it stands for"
        if stays:
            return _unchanged(whole, plan, f"The conversation stays as it is: {problem}.", reply)
        said = f"The beginning is left out, without a summary: {problem}."
        return _dropped(whole, plan, keep, count, (said,), reply)
    first = plan.replace[0]
    gone = set(plan.replace)
    result = [
        m
        for place, message in enumerate(whole)
        for m in ([note(text)] if place == first else [] if place in gone else [message])
    ]
    return _done(whole, result, plan, count, text, reply)


async def _summarise(
    old: list[Message], complete: Complete, room: int, count: Count, focus: str, emit: Callable[[Event], None]
) -> tuple[str | None, Reply | None, str]:
    """The model's summary, its reply, and what went wrong."""

    def show(event: Event) -> None:
        if isinstance(event, Notice):
            emit(event)

    reply = Reply()
    problem = ""
    for attempt in range(_ASKED):
        reply = Reply()
        try:
            await complete(summary.request(old, room >> attempt, count, focus=focus), (), reply, show)
        except ContextOverflow:
            problem = "even the request for a summary was too long"
            continue
        except ModelError as error:
            return None, reply, f"the model could not summarise it ({error})".rstrip(".")
        text = reply.text.strip()
        if text:
            return text[:_NOTE_CHARACTERS], reply, ""
        return None, reply, "the model wrote no summary"
    return None, reply, problem


def _unchanged(whole: list[Message], plan: Plan, said: str, reply: Reply | None) -> Compacted:
    return Compacted(whole, None, 0, 0, plan.before, plan.before, (said,), reply)


def _dropped(
    whole: list[Message],
    plan: Plan,
    keep: int,
    count: Count,
    notices: tuple[str, ...] = (),
    reply: Reply | None = None,
) -> Compacted:
    """The last step: the oldest is left out until the rest fits; asks nobody."""
    blocks = _blocks(whole)
    target = int(plan.limit * _TARGET) if plan.limit is not None else 0
    kept = _kept(blocks, [count(m) for m in whole], target, keep)
    units = [([whole[p] for p in b.places], b in kept or b.kind == "system") for b in blocks]
    result = drop_oldest(units, target, plan.limit, count)
    done = _done(whole, result, plan, count, None, reply, notices)
    if plan.limit is not None and done.after > plan.limit:
        said = f"What cannot be left out has about {done.after} tokens by itself, with room for {plan.limit}: shorten the last message, lower max_tokens, or choose a model with a larger window."
        return Compacted(
            done.messages, None, done.dropped, done.shortened, done.before, done.after, (*done.notices, said), reply
        )
    return done


def _done(
    whole: list[Message],
    result: list[Message],
    plan: Plan,
    count: Count,
    text: str | None = None,
    reply: Reply | None = None,
    notices: tuple[str, ...] = (),
) -> Compacted:
    known = {id(m) for m in whole}
    cut = sum(bool(data_of(m)) and not is_note(m) and id(m) not in known for m in result)
    dropped = _real(whole) - _real(result)
    after = sum(map(count, result))
    if len(result) == len(whole) and all(a is b for a, b in zip(result, whole, strict=True)):
        return Compacted(whole, None, 0, 0, plan.before, plan.before, notices, reply)
    what = [f"{dropped} messages {'summarised' if text else 'left out'}"] if dropped else []
    tools = all(m.get("role") == "tool" for m in result if data_of(m) and not is_note(m) and id(m) not in known)
    what += [f"{cut} {'tool results' if tools else 'tool results and attached files'} shortened"] if cut else []
    said = f"Made room: about {plan.before} tokens of conversation became {after} ({', '.join(what) or 'shortened'})."
    return Compacted(result, text, dropped, cut, plan.before, after, (*notices, said), reply)


def _real(messages: Sequence[Message]) -> int:
    """How many messages there are beside notes."""
    return sum(not is_note(m) for m in messages)


# -- what stays ------------------------------------------------------------------------


def _blocks(messages: Sequence[Message]) -> list[_Block]:
    blocks: list[_Block] = []
    for place, message in enumerate(messages):
        role = message.get("role")
        if role == "tool" and blocks:
            blocks[-1] = _Block(blocks[-1].start, place + 1, blocks[-1].kind)
        elif role in ("system", "developer"):
            blocks.append(_Block(place, place + 1, "system"))
        elif role == "assistant":
            blocks.append(_Block(place, place + 1, "turn"))
        else:
            blocks.append(_Block(place, place + 1, "note" if is_note(message) else "user"))
    return blocks


def _kept(blocks: list[_Block], sizes: list[int], target: int, keep: int) -> set[_Block]:
    """The blocks that stay: the latest message of the person, and the last turns with all that was said between and behind them;
    fewer turns, but never none, where they would leave too little room."""
    turns = [place for place, b in enumerate(blocks) if b.kind == "turn"]
    users = [b for b in blocks if b.kind == "user"]
    for number in range(max(keep, 1), 0, -1):
        first = turns[-number:][0] if turns else 0
        while first and blocks[first - 1].kind == "user":
            first -= 1
        kept = {*users[-1:], *(b for b in blocks[first:] if b.kind != "note")}
        if sum(sizes[p] for b in kept for p in b.places) <= _KEPT_SHARE * target:
            break
    return kept


def _to_shorten(
    messages: Sequence[Message], sizes: list[int], old: list[int], total: int, target: int, count: Count
) -> tuple[tuple[int, ...], int]:
    """Which results to shorten, oldest first, until the target is reached; and about how many tokens there are then."""
    places = []
    for place in old:
        if total <= target:
            break
        shorter = shortened(messages[place])
        if shorter is not messages[place]:
            total -= sizes[place] - count(shorter)
            places.append(place)
    return tuple(places), total


def _describe(
    messages: Sequence[Message], shorten: tuple[int, ...], replace: tuple[int, ...], before: int, after: int
) -> str:
    """What will happen, for a person."""
    if not shorten and not replace:
        return f"There is nothing to shorten: the conversation has about {before} tokens, and its last turns stay."
    names: dict[str, str] = {}
    called: Counter[str] = Counter()
    for place, message in enumerate(messages):
        names |= {c["id"]: c["function"]["name"] for c in message.get("tool_calls") or ()}
        other = "tool" if message.get("role") == "tool" else "with your message"
        called.update([names.get(message.get("tool_call_id", ""), other)] if place in shorten else [])
    lines = [f"The conversation has about {before} tokens" + (f"; then about {after}." if after < before else ".")]
    if shorten:
        listed = ", ".join(f"{name} × {number}" for name, number in called.most_common())
        lines.append(f"Shortened to their beginning and end: {len(shorten)} results the model has seen ({listed}).")
    if replace:
        roles = Counter(str(messages[p].get("role")) for p in replace)
        listed = ", ".join(
            f"{roles[role]} {what}"
            for role, what in (("user", "of you"), ("assistant", "of the model"), ("tool", "tool results"))
            if roles[role]
        )
        lines.append(f"Replaced by a summary: the {len(replace)} oldest messages ({listed}).")
    lines.append("Kept as they are: your latest message, the last turns, and all instructions.")
    return "\n".join(lines)
