"""The loop: ask the model, run what it asks for, until it asks for nothing more.

One session is one `Agent`.  It holds the conversation, takes messages through one inbox, announces everything on its
bus, and asks three collaborators: a model (`complete`), a tool box and an approver.  It imports none of their kinds;
`app.py` hands them over.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from hypercode import events
from hypercode.errors import LimitReached, ModelError, StreamInterrupted, ToolError
from hypercode.events import Bus, Event
from hypercode.messages import CUT_REASONS, Message, Reply, ToolCall, check, system, tool_result, unanswered, user
from hypercode.safety.approval import Refusal
from hypercode.tools.base import Toolbox, ToolContext

__all__ = ["MAX_CALLS", "Agent", "Approve", "Complete", "Limits", "Result", "exit_code"]

MAX_CALLS = 32
"""How many calls of one reply are run."""

log = logging.getLogger("hypercode")

Complete = Callable[[Sequence[Message], Sequence[dict[str, Any]], Reply, Callable[[Event], None]], Awaitable[None]]
"""One streamed model call into the caller's `Reply`; raises ModelError where it does not come to a known end."""


class Approve(Protocol):
    """Whether a call may run: None, or why not."""

    async def __call__(
        self, tool: str, effect: str, arguments: dict[str, Any], *, detail: str = "", confirm: str | None = None
    ) -> Refusal | None: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop before the next model call: turns and seconds of one `run`, USD of the session."""

    turns: int = 50
    cost: float | None = None
    seconds: float | None = None


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
        if result.finish_reason in CUT_REASONS:
            return 4
        return 5 if result.refused else 0
    return {"error": 1, "limit": 3, "interrupted": 4, "aborted": 130}[result.outcome]


@dataclass(slots=True)
class _Turn:
    """One model call and the calls it asked for."""

    number: int
    reply: Reply = field(default_factory=Reply)
    outcome: str = "aborted"
    error: dict[str, Any] | None = None
    results: dict[str, Message] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)


class Agent:
    """A conversation with a model that can use tools.

    `prompt` makes the system prompt anew for each request.  `messages` is the history without it, valid after every
    ending.  `cost` is what the session was billed in USD, None while no provider has said.
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
        messages: Sequence[Message] = (),
    ) -> None:
        self.complete = complete
        self.tools = tools
        self.context = context
        self.approve = approve
        self.bus = bus or Bus()
        self.prompt = prompt
        self.limits = limits or Limits()
        self.messages: list[Message] = list(messages)
        self.inbox: deque[str] = deque()
        self.turns = 0
        self.refused = 0
        self.usage: dict[str, Any] | None = None
        self.cost: float | None = None
        self._cut_note = ""
        self._task: asyncio.Task[Result] | None = None
        self._aborting = False

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
        """The tools' context with an output of its own, for a call the person makes."""
        return replace(self.context, output=output)

    def forget_cut(self) -> None:
        """The cut reply is asked for again: the model need not be told that it was cut."""
        self._cut_note = ""

    def resume(self, messages: Sequence[Message]) -> None:
        """Go on with another conversation."""
        self.messages = list(messages)
        self._cut_note = ""

    # -- the loop ----------------------------------------------------------------

    async def _loop(self) -> Result:
        refused_before = self.refused
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
        for count in range(self.limits.turns + 1):
            self._check_limits(count)
            self._take_inbox()
            turn = await self._turn()
            if turn.outcome != "complete":
                return Result(turn.outcome, turn.reply.finish_reason, turn.reply.text, turn.error)
            if not turn.reply.calls and not self.inbox:
                return Result("complete", turn.reply.finish_reason, turn.reply.text)
        raise AssertionError("the turn limit ends the loop")

    def _take_inbox(self) -> None:
        while self.inbox:
            text = self.inbox.popleft()
            self.messages.append(user(self._cut_note + text))
            self._cut_note = ""
            self.bus.emit(events.UserMessage(text))

    def _check_limits(self, turns: int) -> None:
        if turns >= self.limits.turns:
            raise LimitReached("turns", f"The limit of {self.limits.turns} turns was reached before the task was done.")
        if self.limits.cost is not None and (self.cost or 0.0) >= self.limits.cost:
            raise LimitReached(
                "cost", f"The limit of {self.limits.cost:g} USD was reached; {self.cost:g} USD are spent."
            )

    def _stopped(self, limit: LimitReached) -> Result:
        self.bus.emit(events.Notice("warning", str(limit)))
        return Result("limit", error=limit.as_dict())

    async def _turn(self) -> _Turn:
        self.turns += 1
        turn = _Turn(self.turns)
        self.bus.emit(events.TurnStart(turn.number))
        try:
            await self._ask(turn)
            if turn.outcome == "complete":
                turn.outcome = "aborted"  # until every call has had its turn
                await self._run_calls(turn)
                turn.outcome = "complete"
        finally:
            self._close(turn)
        return turn

    async def _ask(self, turn: _Turn) -> None:
        """One model call; whatever arrived is in the history afterwards, however it ended."""
        try:
            await self.complete(self._request(), self.tools.schemas(), turn.reply, self.bus.emit)
            turn.outcome = "complete"
        except ModelError as error:
            turn.outcome = "interrupted" if isinstance(error, StreamInterrupted) else "error"
            turn.error = error.as_dict()
        finally:
            message = turn.reply.message(complete=turn.outcome == "complete")
            if message is None and turn.outcome == "complete":
                self.bus.emit(events.Notice("warning", "The model ended its turn without an answer."))
            if message is not None:
                self.messages.append(message)
                self.bus.emit(events.AssistantMessage(message, turn.reply.finish_reason))
            self._add_up(turn.reply)

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
            self.usage = _sum(self.usage or {}, reply.usage)
        if reply.cost is not None:
            self.cost = (self.cost or 0.0) + reply.cost

    def _close(self, turn: _Turn) -> None:
        """Answer what is unanswered, remember a cut for the next message, and announce the end."""
        reply = turn.reply
        not_run = f"[not run: the turn was {_CUTS.get(turn.outcome, 'over')}]"
        for call_id in unanswered(self.messages):
            self.messages.append(turn.results.get(call_id) or tool_result(call_id, not_run))
        if turn.outcome in _CUTS and reply.shown:
            self._cut_note = f"[Your previous reply was {_CUTS[turn.outcome]}.]\n\n"
        self.bus.emit(
            events.TurnEnd(
                turn=turn.number,
                outcome=turn.outcome,
                finish_reason=reply.finish_reason,
                usage=reply.usage,
                cost=reply.cost,
                ttft=reply.ttft,
                seconds=round(time.monotonic() - turn.started, 6),
                error=turn.error,
            )
        )

    # -- tool calls --------------------------------------------------------------

    async def _run_calls(self, turn: _Turn) -> None:
        """Run the reply's calls in order; neighbours that only read run side by side."""
        for batch in self._batches(turn.reply.calls):
            async with asyncio.TaskGroup() as group:
                for number, call in batch:
                    group.create_task(self._settle(turn, number, call))

    def _batches(self, calls: list[ToolCall]) -> list[list[tuple[int, ToolCall]]]:
        batches: list[list[tuple[int, ToolCall]]] = []
        only_reads = False
        for number, call in enumerate(calls):
            reads = self.tools.effect(call.name) == "read"
            if batches and reads and only_reads:
                batches[-1].append((number, call))
            else:
                batches.append([(number, call)])
            only_reads = reads
        return batches

    async def _settle(self, turn: _Turn, number: int, call: ToolCall) -> None:
        """Give one call its result, by running it or by saying why it is not run."""
        reply = turn.reply
        if reply.cut:
            text = f"[not run: the reply was cut off ({reply.finish_reason}); ask for less at once]"
        elif call.parsed is None or call.damaged:
            what = "arrived damaged" if call.damaged else "are not a JSON object"
            told = f"The arguments of {call.name} {what}; it was not run and the model was told."
            self.bus.emit(events.Notice("warning", told))
            text = f"bad_arguments: the arguments {what}: {call.arguments[:500]!r}. Send the call again."
        else:
            await self._execute(turn, call, call.parsed, over_limit=number >= MAX_CALLS)
            return
        turn.results[call.id] = tool_result(call.id, text)

    async def _execute(self, turn: _Turn, call: ToolCall, arguments: dict[str, Any], *, over_limit: bool) -> None:
        self.bus.emit(events.ToolExecutionStart(call.id, call.name, arguments))
        started = time.monotonic()
        printed: list[str] = []
        output, kind = "", "aborted"
        try:
            if over_limit:
                raise ToolError("too_many_calls", f"Only {MAX_CALLS} calls of one reply are run.")
            output, kind = await self._attempt(call, arguments, printed), ""
        except ToolError as error:
            output, kind = str(error), error.kind
        except Exception as error:
            log.exception("tool %s failed", call.name)
            output, kind = f"internal_error: {type(error).__name__}: {error}", "internal_error"
            self.bus.emit(events.Notice("error", f"The tool {call.name} failed inside; the details are in the log."))
        finally:
            if kind == "aborted":
                output = "".join(printed)[-10_000:] + "[aborted by user]"
            turn.results[call.id] = tool_result(call.id, output)
            seconds = round(time.monotonic() - started, 6)
            self.bus.emit(events.ToolExecutionEnd(call.id, call.name, output, bool(kind), kind or None, seconds))

    async def _attempt(self, call: ToolCall, arguments: dict[str, Any], printed: list[str]) -> str:
        tool = self.tools.find(call.name)
        values = tool.validate(arguments)

        def show(text: str) -> None:
            printed.append(text)
            self.bus.emit(events.ToolOutput(call.id, text))

        context = replace(self.context, output=show)
        preview = await tool.preview(context, values)
        detail, confirm = (preview.text, preview.confirm) if preview else ("", None)
        refusal = await self.approve(tool.name, tool.effect, values, detail=detail, confirm=confirm)
        if refusal is not None:
            self.refused += not refusal.by_person
            raise ToolError(refusal.kind, refusal.text)
        output = await tool.call(context, values)
        if detail:
            show(detail)
        return output


_CUTS = {
    "aborted": "stopped before its end",
    "interrupted": "broken off by the connection",
    "error": "broken off by an error of the server",
}


def _sum(total: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Two usage objects added number by number."""
    added = dict(total)
    for key, value in more.items():
        old = added.get(key)
        if isinstance(value, dict):
            added[key] = _sum(old if isinstance(old, dict) else {}, value)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            added[key] = value
        else:
            added[key] = value + (old if isinstance(old, int | float) and not isinstance(old, bool) else 0)
    return added
