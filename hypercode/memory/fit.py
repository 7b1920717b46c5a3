"""Requests that fit into the model's window: `Fit.complete` stands before the model call and has its signature.

Before a request that would fill the window, and after a refusal as too long, the conversation is made shorter; at most twice
for one request, the second time without asking a model.  What will go is announced before it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hypercode.errors import ContextOverflow
from hypercode.events import Event, Notice
from hypercode.memory.context import Meter
from hypercode.messages import Message, Reply

if TYPE_CHECKING:
    from hypercode.memory.compaction import Compacted, Complete, Level, Plan

__all__ = ["THRESHOLD", "Fit"]

THRESHOLD = 0.85
"""Which part of the room in the window may be used before the conversation is made shorter."""

_MOST_SHRINKS = 2

Emit = Callable[[Event], None]


class Fit:
    """Keeps requests inside the window.

    `complete` is the model's; `meter` measures and knows the window; `replace` takes the shorter conversation in the place of
    the session's own, before it is sent.  With `automatic` off only a refused request is made shorter.
    """

    def __init__(
        self,
        complete: Complete,
        meter: Meter,
        *,
        replace: Callable[[Compacted], None] = lambda compacted: None,
        automatic: bool = True,
    ) -> None:
        self._complete = complete
        self.meter = meter
        self.replace = replace
        self.automatic = automatic

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], reply: Reply, emit: Emit
    ) -> None:
        """One streamed model call, as `Client.complete`; the conversation may become shorter on the way.

        Raises as the model's; ContextOverflow where two shorter tries were refused too, or nothing can be left out.
        """
        head, history = _parted(messages)
        shrinks = 0
        if self.automatic and self._full(messages, tools):
            smaller = await self._shrink(head, history, tools, "auto", emit)
            shrinks, history = (1, smaller) if smaller is not None else (0, history)
        while True:
            self.meter.sent([*head, *history], tools)
            try:
                await self._complete([*head, *history], tools, reply, emit)
            except ContextOverflow as error:
                said = self.meter.overflowed(str(error))
                if reply.shown or shrinks == _MOST_SHRINKS:
                    raise
                smaller = None
                levels: tuple[Level, ...] = ("drop",) if shrinks else ("auto", "drop")
                for level in levels:
                    smaller = await self._shrink(head, history, tools, level, emit, sure=said or level != "drop")
                    if smaller is not None:
                        break
                if smaller is None:
                    raise
                shrinks, history = shrinks + 1, smaller
            else:
                self.meter.answered(reply.usage, reply.message(complete=True))
                return

    def plan(self, messages: Sequence[Message], prompt: str, tools: Sequence[dict[str, Any]]) -> Plan:
        """What `compact` would do; its text is for the person."""
        from hypercode.memory.compaction import plan_compaction

        window, reserve = self._space([{"role": "system", "content": prompt}], tools)
        return plan_compaction(messages, window, reserve=reserve, level="summary", count=self.meter.count)

    async def compact(
        self, messages: Sequence[Message], prompt: str, tools: Sequence[dict[str, Any]], emit: Emit, *, focus: str = ""
    ) -> Compacted:
        """Make the conversation shorter because the person asks; hands it to `replace` where that was possible."""
        from hypercode.memory.compaction import compact

        head: list[Message] = [{"role": "system", "content": prompt}]
        window, reserve = self._space(head, tools)
        done = await compact(
            messages,
            complete=self._complete,
            window=window,
            reserve=reserve,
            level="summary",
            count=self.meter.count,
            focus=focus,
            emit=emit,
        )
        self._take(done, head, tools)
        return done

    def _full(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> bool:
        room = self.meter.room
        return room is not None and self.meter.request(messages, tools) > THRESHOLD * room

    def _space(self, head: Sequence[Message], tools: Sequence[dict[str, Any]]) -> tuple[int | None, int]:
        """The window, and what of it the conversation cannot have."""
        return self.meter.window, self.meter.output + self.meter.request(head, tools)

    async def _shrink(
        self,
        head: list[Message],
        history: list[Message],
        tools: Sequence[dict[str, Any]],
        level: Level,
        emit: Emit,
        *,
        sure: bool = True,
    ) -> list[Message] | None:
        """The shorter conversation, announced and handed over; None where nothing can go.

        Not `sure`: the window may be another one than is thought, so as little as possible is kept.
        """
        window, reserve = self._space(head, tools)
        window = window if sure else None
        from hypercode.memory.compaction import compact, plan_compaction  # few sessions come to that

        plan = plan_compaction(history, window, reserve=reserve, level=level, count=self.meter.count)
        if plan.empty and level != "drop":
            return None
        if level != "drop":
            emit(Notice("info", f"The window is filling up. {plan.text}"))
        done = await compact(
            history,
            complete=self._complete,
            window=window,
            reserve=reserve,
            level=level,
            count=self.meter.count,
            emit=emit,
        )
        if done.after < done.before and level == "drop":
            emit(Notice("info", "The window is full: the oldest part of the conversation is left out."))
        for text in done.notices:
            emit(Notice("info", text))
        self._take(done, head, tools)
        return done.messages if done.after < done.before else None

    def _take(self, done: Compacted, head: Sequence[Message], tools: Sequence[dict[str, Any]]) -> None:
        if done.after < done.before or done.reply is not None:
            self.replace(done)
        if done.after < done.before:
            self.meter.changed([*head, *done.messages], tools)


def _parted(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """The system messages at the beginning, and the conversation."""
    first = next((p for p, m in enumerate(messages) if m.get("role") not in ("system", "developer")), len(messages))
    return list(messages[:first]), list(messages[first:])
