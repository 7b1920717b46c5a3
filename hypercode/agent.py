"""The loop: ask the model, run what it asks for, until it asks for nothing more.

One session is one `Agent`.  It holds the conversation, takes messages through one inbox, announces everything on its
bus, and asks three collaborators: a model (`complete`), a tool box and an approver.  It imports none of their kinds;
`app.py` hands them over.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hypercode import events
from hypercode.budget import Limits, added, billed
from hypercode.errors import LimitReached, ModelError, StreamInterrupted
from hypercode.events import Bus, Event
from hypercode.execution import Approve, Around, Execution, Nowhere, Recorder, nothing_around
from hypercode.loop_guard import LoopGuard
from hypercode.mentions import attach
from hypercode.messages import (
    Message,
    Reply,
    check,
    cut_note,
    is_cut,
    is_report,
    own,
    spoken,
    system,
    text_of,
    typed,
    unanswered,
    user,
)
from hypercode.tools.base import Toolbox, ToolContext

__all__ = ["Agent", "Complete", "Limits", "Result", "exit_code"]

Complete = Callable[[Sequence[Message], Sequence[dict[str, Any]], Reply, Callable[[Event], None]], Awaitable[None]]
"""One streamed model call into the caller's `Reply`; raises ModelError where it does not come to a known end."""


@dataclass(slots=True)
class Result:
    """How a run ended: `outcome` is complete, error, interrupted, aborted or limit; `text` is the last answer."""

    outcome: str = "complete"
    finish_reason: str | None = None
    text: str = ""
    error: dict[str, Any] | None = None
    refused: int = 0


def exit_code(result: Result) -> int:
    """The exit code of a one-shot run, by the contract's table."""
    if result.outcome == "complete":
        if is_cut(result.finish_reason):
            return 4
        return 5 if result.refused else 0
    return {"error": 1, "limit": 3, "interrupted": 4, "aborted": 130}[result.outcome]


@dataclass(slots=True)
class _Turn:
    """One model call and the calls it asked for."""

    number: int
    calls: Execution
    reply: Reply = field(default_factory=Reply)
    outcome: str = "aborted"
    error: dict[str, Any] | None = None
    started: float = field(default_factory=time.monotonic)


class Agent:
    """A conversation with a model that can use tools.

    `prompt` makes the system prompt anew for each request.  `journal` keeps the session, `about` is what its first record
    says.  `messages` is the history without it, valid after every
    ending.  `cost` is what the session was billed in USD, None while no provider has said.  `opened` says that the journal has a
    start of this conversation.
    """

    def __init__(
        self,
        *,
        complete: Complete,
        tools: Toolbox,
        context: ToolContext,
        approve: Approve,
        bus: Bus | None = None,
        prompt: Callable[[], str] = lambda: "",
        limits: Limits | None = None,
        around: Around | None = None,
        journal: Recorder | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.complete = complete
        self.tools = tools
        self.context = context
        self.approve = approve
        self.bus = bus or Bus()
        self.prompt = prompt
        self.limits = limits or Limits()
        self.around = around or nothing_around
        self.journal: Recorder = journal or Nowhere()
        self.about = dict(about or {})
        self.opened = False
        self.messages: list[Message] = []
        self.inbox: deque[str] = deque()
        self.turns = 0
        self.refused = 0
        self.usage: dict[str, Any] | None = None
        self.cost: float | None = None
        self._last_cost = 0.0
        self._cut_note = ""
        self._owed: list[Message] = []
        self._task: asyncio.Task[Result] | None = None
        self._aborting = False
        self._guard = LoopGuard()

    # -- what the outside may do -------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether a run is going on."""
        return self._task is not None

    def post(self, text: str) -> None:
        """Put a message into the inbox; it is taken before the next model call."""
        self.inbox.append(text)

    def withdraw(self) -> list[str]:
        """Take every waiting message back out of the inbox."""
        waiting = list(self.inbox)
        self.inbox.clear()
        return waiting

    def abort(self) -> None:
        """Stop the run, in whatever phase it is; what was shown stays.  Does nothing when none is going on."""
        if self._task is not None and not self._task.done():
            self._aborting = True
            self._task.cancel()

    async def run(self, text: str | None = None) -> Result:
        """Answer everything in the inbox, `text` last, and return when the model asks for nothing more.

        Failures of the model and reached limits are a `Result`, not an exception.  Raises RuntimeError when a run is
        already going on; whoever cancels this coroutine gets their CancelledError after the history is in order.
        """
        if self._task is not None:
            raise RuntimeError("a run is going on; use post()")
        if text is not None:
            self.post(text)
        self._aborting = False
        self._task = asyncio.create_task(self._loop(), name="hypercode-run")
        try:
            return await self._task
        except asyncio.CancelledError:
            if not self._aborting:
                raise
            return Result("aborted")
        finally:
            self._task = None

    def shell_context(self, output: Callable[[str], None]) -> ToolContext:
        """The tools' context for a command the person types: an output of its own, and no box."""
        return replace(self.context, output=output, box=None)

    def record(self, kind: str, /, **fields: Any) -> None:
        """Write a record into the journal, the start of the session before it where that is not there yet."""
        self._open()
        self.journal.append(kind, **fields)

    def tell(self, text: str, **about: Any) -> None:
        """Put something into the conversation that the model reads with the next message; `about` goes with its record."""
        self.record("user", message=(message := user(text)), **about)
        self.messages.append(message)

    def compacted(self, messages: Sequence[Message], reply: Reply | None = None) -> None:
        """Go on with the shorter conversation; `reply` has what the summary in it cost."""
        if reply is not None:  # first: what was paid is paid, also where the program ends here
            self.record("spent", usage=reply.usage, cost=reply.cost)
            self._add_up(reply)
        if len(messages) != len(self.messages) or any(a is not b for a, b in zip(messages, self.messages, strict=True)):
            self.messages = list(messages)
            self.record("compaction", messages=self.messages)

    def drop_answer(self) -> int:
        """Take the last answer out of the conversation, what tools did stays; the number of messages that are gone."""
        count = 0
        while (
            self.messages and self.messages[-1].get("role") == "assistant" and not self.messages[-1].get("tool_calls")
        ):
            self.messages.pop()
            count += 1
        self._cut_note = ""
        return count

    def rewind(self, place: int) -> str:
        """Go back to before the message of the person at this place in the conversation; what it said."""
        self._cut_note, text = spoken(text_of(self.messages[place]))
        del self.messages[place:]
        return text

    def resume(
        self,
        messages: Sequence[Message],
        *,
        journal: Recorder | None = None,
        turns: int = 0,
        cost: float | None = None,
        usage: dict[str, Any] | None = None,
        cut: str = "",
        owed: Sequence[Message] = (),
    ) -> None:
        """Go on with another conversation, which may be empty.

        `cut` says how its last reply broke off: an outcome, or `ended`.  `owed` are the results in it that its journal lacks.
        """
        self.messages = list(messages)
        self.journal = journal or Nowhere()
        self.turns, self.cost, self.usage = turns, cost, usage
        self._last_cost = 0.0
        self.opened = False
        self._owed = list(owed)
        self._cut_note = cut_note(_CUTS.get(cut, ""))

    # -- the loop ----------------------------------------------------------------

    async def _loop(self) -> Result:
        refused_before, self._guard = self.refused, LoopGuard()
        result = Result()
        try:
            async with asyncio.timeout(self.limits.seconds):
                result = await self._turns()
        except TimeoutError:
            limit = LimitReached("time", f"The time limit of {self.limits.seconds:g} s was reached.")
            result = self._stopped(limit)
        except LimitReached as limit:
            result = self._stopped(limit)
        result.refused = self.refused - refused_before
        return result

    async def _turns(self) -> Result:
        result, wanted = Result(), self._unanswered()
        for count in range(self.limits.turns + 1):
            hopeless = self._guard.hopeless
            self.limits.check(count, spent=self.cost or 0.0, last=self._last_cost, hopeless=hopeless)
            if not (await self._take_inbox() or wanted):
                return result  # every message was taken back, and there is nothing else to answer
            turn = await self._turn()
            result = Result(turn.outcome, turn.reply.finish_reason, turn.reply.text, turn.error)
            wanted = bool(turn.reply.calls)
            if turn.outcome != "complete" or not (wanted or self.inbox):
                return result
        raise AssertionError("the turn limit ends the loop")

    def _unanswered(self) -> bool:
        """Whether the history calls for an answer; a report of what the person did alone does not, unless it is asked for."""
        last = next((m for m in reversed(self.messages) if not (self.inbox and is_report(m))), {})
        return bool(last) and (last.get("role") != "assistant" or bool(last.get("tool_calls")))

    def _open(self) -> None:
        if not self.opened:
            self.opened = True
            self.journal.append("session", **self.about)
            for message in self._owed:
                self.journal.append("result", message=message, is_error=True, kind="unknown")
            self._owed.clear()

    async def _take_inbox(self) -> bool:
        """Take what the person has said, with the files it names; whether there was anything that they did not take back."""
        taken = False
        while self.inbox:
            text = self.inbox[0]
            about = {"typed": typed(text)} if typed(text) is not text else {}
            said = self._cut_note + own(text)
            self.record("user", message=user(said), **about)  # before its files are read, or asked about
            number, here = getattr(self.journal, "seq", 0), False
            try:
                files = await attach(text, self.tools, self.context, self.approve)
                here = bool(self.inbox) and self.inbox[0] is text
            finally:
                if not here:  # it was taken back, or the run was stopped and leaves it waiting
                    self.record("rewind", to=number)
            if not here:
                continue
            message = user(said + files.text)
            if files.text:
                self.record("user", message=message, replaces=number, **about)
            self.messages.append(message)
            self.inbox.popleft()
            self._cut_note, taken = "", True
            self.refused += files.refused
            self.bus.emit(events.UserMessage(text))
            for line in files.said:
                self.bus.emit(events.Notice("info", line))
        return taken

    def _stopped(self, limit: LimitReached) -> Result:
        self.bus.emit(events.Notice("warning", str(limit)))
        return Result("limit", error=limit.as_dict())

    async def _turn(self) -> _Turn:
        self.turns += 1
        parts = self.tools, self.context, self.approve, self.bus, self.journal, self.around, self._guard
        turn = _Turn(self.turns, Execution(*parts))
        self._open()
        self.bus.emit(events.TurnStart(turn.number))
        try:
            await self._ask(turn)
            if turn.outcome == "complete":
                turn.outcome = "aborted"  # until every call has had its turn
                await turn.calls.run(turn.reply)
                turn.outcome = "complete"
        finally:
            self._close(turn)
        return turn

    async def _ask(self, turn: _Turn) -> None:
        """One model call; whatever arrived is in the history afterwards, however it ended."""
        try:
            await self.complete(self._request(), self.tools.schemas(), turn.reply, self._show)
            turn.outcome = "complete"
        except ModelError as error:
            turn.outcome = "interrupted" if isinstance(error, StreamInterrupted) else "error"
            turn.error = error.as_dict()
        finally:
            message = turn.reply.message(complete=turn.outcome == "complete")
            if message is None and turn.outcome == "complete":
                self.bus.emit(events.Notice("warning", "The model ended its turn without an answer."))
            if message is not None:
                paid: dict[str, Any] = {"turn": turn.number, "usage": turn.reply.usage, "cost": turn.reply.cost}
                self.journal.append("assistant", message=message, finish_reason=turn.reply.finish_reason, **paid)
                self.messages.append(message)
                self.bus.emit(events.AssistantMessage(message, turn.reply.finish_reason))
            self._add_up(turn.reply)

    def _show(self, event: Event) -> None:
        """Announce what the model streams; its words are on their way to the journal first."""
        if isinstance(event, events.TextDelta):
            self.journal.partial(text=event.text)
        elif isinstance(event, events.ReasoningDelta):
            self.journal.partial(reasoning=event.text)
        self.bus.emit(event)

    def _request(self) -> list[Message]:
        self.messages, repairs = check(self.messages)
        if repairs:
            self.bus.emit(
                events.Notice("warning", f"Repaired the conversation before sending it: {'; '.join(repairs)}.")
            )
        prompt = self.prompt()
        return [system(prompt), *self.messages] if prompt else list(self.messages)

    def _add_up(self, reply: Reply) -> None:
        if reply.usage:
            self.usage = added(self.usage or {}, reply.usage)
        if reply.cost is not None:
            self.cost = billed(self.cost or 0.0, reply.cost)
            self._last_cost = reply.cost
            if told := self.limits.passed(self.cost, reply.cost):
                self.bus.emit(events.Notice("warning", told))

    def _close(self, turn: _Turn) -> None:
        """Answer what is unanswered, remember a cut for the next message, and announce the end."""
        reply = turn.reply
        not_run = f"[not run: the turn was {_CUTS.get(turn.outcome, 'over')}]"
        for call_id in unanswered(self.messages):
            if call_id not in turn.calls.results:
                turn.calls.answer(call_id, not_run)
            self.messages.append(turn.calls.results[call_id])
        self.refused += turn.calls.refused
        if turn.outcome in _CUTS and reply.shown:
            self._cut_note = cut_note(_CUTS[turn.outcome])
        end = events.TurnEnd(
            turn=turn.number,
            outcome=turn.outcome,
            finish_reason=reply.finish_reason,
            usage=reply.usage,
            cost=reply.cost,
            ttft=reply.ttft,
            seconds=round(time.monotonic() - turn.started, 6),
            error=turn.error,
        )
        self.journal.append("turn_end", **asdict(end))
        self.bus.emit(end)


_CUTS = {
    "aborted": "stopped before its end",
    "interrupted": "broken off by the connection",
    "error": "broken off by an error of the server",
    "ended": "broken off when the program ended",
}
