"""The calls of one reply: approval, attempt, result; each start has its end, and each call one result."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from hypercode import events
from hypercode.errors import ToolError
from hypercode.events import Bus
from hypercode.loop_guard import LoopGuard, call_key
from hypercode.messages import Message, Reply, ToolCall, tool_result
from hypercode.safety.approval import Refusal
from hypercode.tools.base import Tool, Toolbox, ToolContext

__all__ = ["MAX_CALLS", "Approve", "Around", "AsksAgain", "Execution", "Nowhere", "Recorder", "nothing_around"]

MAX_CALLS = 32
"""How many calls of one reply are run."""

_ROUND_AND_ROUND = (
    "this call has given the same result {times} times in this task, so it was not tried again: {why}. Do not send it "
    "again. Do something else: other arguments, another tool, another approach, or say what keeps you from going on."
)

_SEEN = 30_000  # characters, as much as a result has

log = logging.getLogger("hypercode")


class Approve(Protocol):
    """Whether a call may run: None, or why not."""

    async def __call__(
        self, tool: str, effect: str, arguments: dict[str, Any], *, detail: str = "", confirm: str | None = None
    ) -> Refusal | None: ...


@runtime_checkable
class AsksAgain(Protocol):
    """An approver that can ask whether a call that goes round in circles is wanted once more: None, or why not."""

    async def again(self, tool: str, effect: str, arguments: dict[str, Any], times: int) -> Refusal | None: ...


class Recorder(Protocol):
    """Where the session is kept: each record is there before what it tells of is acted on or announced."""

    def append(self, kind: str, /, *, sync: bool = True, **fields: Any) -> bool: ...

    def partial(self, text: str = "", reasoning: str = "") -> None: ...


class Nowhere:
    """The recorder of a session that is not kept."""

    def append(self, kind: str, /, *, sync: bool = True, **fields: Any) -> bool:
        return False

    def partial(self, text: str = "", reasoning: str = "") -> None:
        return None


Around = Callable[["Tool", Mapping[str, Any]], AbstractAsyncContextManager[Callable[[], bool]]]
"""What is done around each attempt: undo looks at the files before and after.  What it gives says, afterwards, whether
files were changed."""


def nothing_around(tool: Tool, arguments: Mapping[str, Any]) -> AbstractAsyncContextManager[Callable[[], bool]]:
    """Nothing is done around an attempt, and nothing known of it."""
    return nullcontext(lambda: False)


@dataclass(slots=True)
class Execution:
    """Runs the calls of one reply.

    `results` holds a message for each call that has one, `refused` counts the calls that were refused for want of a person
    or a permission.
    """

    tools: Toolbox
    context: ToolContext
    approve: Approve
    bus: Bus
    journal: Recorder
    around: Around = nothing_around
    guard: LoopGuard = field(default_factory=LoopGuard)
    results: dict[str, Message] = field(default_factory=dict)
    refused: int = 0
    _intended: set[str] = field(default_factory=set, init=False)
    _asked: dict[str, float] = field(default_factory=dict, init=False)
    """How many seconds it took until a call was allowed."""

    async def run(self, reply: Reply) -> None:
        """Run the calls in order; neighbours that only read, and are not the same, run side by side."""
        self.guard.next_reply()
        for batch in self._batches(reply.calls):
            async with asyncio.TaskGroup() as group:
                for number, call in batch:
                    group.create_task(self._settle(reply, number, call))

    def answer(self, call_id: str, text: str, **about: Any) -> None:
        """Give a call its result: into the journal at once, into the history when the turn closes."""
        message = tool_result(call_id, text)
        self.journal.append("result", message=message, **about)
        self.results[call_id] = message

    def _batches(self, calls: list[ToolCall]) -> list[list[tuple[int, ToolCall]]]:
        batches: list[list[tuple[int, ToolCall]]] = []
        only_reads = False
        together: set[str] = set()
        for number, call in enumerate(calls):
            reads = self.tools.effect(call.name) == "read"
            key = call_key(call.name, call.arguments if call.parsed is None else call.parsed)
            if batches and reads and only_reads and key not in together:
                batches[-1].append((number, call))
            else:
                batches.append([(number, call)])
                together.clear()
            together.add(key)
            only_reads = reads
        return batches

    async def _settle(self, reply: Reply, number: int, call: ToolCall) -> None:
        """Give one call its result, by running it or by saying why it is not run."""
        if reply.cut:
            if number == 0:
                told = (
                    f"The reply was cut off ({reply.finish_reason}) in its calls; none was run and the model was told."
                )
                self.bus.emit(events.Notice("warning", told))
            text = f"[not run: the reply was cut off ({reply.finish_reason}); ask for less at once]"
        elif call.parsed is None or call.damaged:
            what = "arrived damaged" if call.damaged else "are not a JSON object"
            told = f"The arguments of {call.name} {what}; it was not run and the model was told."
            self.bus.emit(events.Notice("warning", told))
            text = f"bad_arguments: the arguments {what}: {call.arguments[:500]!r}. Send the call again."
        else:
            await self._execute(call, call.parsed, over_limit=number >= MAX_CALLS)
            return
        self.guard.not_run()
        self.answer(call.id, text)

    async def _execute(self, call: ToolCall, arguments: dict[str, Any], *, over_limit: bool) -> None:
        self.bus.emit(events.ToolExecutionStart(call.id, call.name, arguments))
        started = time.monotonic()
        printed: list[str] = []
        output, kind = "", "aborted"
        try:
            if over_limit:
                raise ToolError("too_many_calls", f"Only {MAX_CALLS} calls of one reply are run.")
            output, kind = await self._guarded(call, arguments, printed), ""
        except ToolError as error:
            output, kind = str(error), error.kind
        except Exception as error:
            log.exception("tool %s failed", call.name)
            output, kind = f"internal_error: {type(error).__name__}: {error}", "internal_error"
            self.bus.emit(events.Notice("error", f"The tool {call.name} failed inside; the details are in the log."))
        finally:
            if kind == "aborted":
                output = "".join(printed)[-10_000:] + "[aborted by user]"
            seconds = round(time.monotonic() - started - self._asked.pop(call.id, 0.0), 6)
            seen = _seen("".join(printed), output)
            self._intend(call, arguments, begun=False)
            self.answer(call.id, output, seconds=seconds, is_error=bool(kind), kind=kind or None, **seen)
            self.bus.emit(events.ToolExecutionEnd(call.id, call.name, output, bool(kind), kind or None, seconds))

    def _intend(self, call: ToolCall, arguments: dict[str, Any], *, begun: bool = True) -> None:
        """Write down that a call is about to act, once; before that, as while a person is asked, nothing of it was done.

        A call that will not act is written down as not `begun`: a kill may come before its result.
        """
        if call.id not in self._intended:
            self._intended.add(call.id)
            how = {} if begun else {"begun": False}
            self.journal.append("intent", call_id=call.id, name=call.name, arguments=arguments, **how)

    async def _guarded(self, call: ToolCall, arguments: dict[str, Any], printed: list[str]) -> str:
        """Attempt a call, unless it goes round in circles and nobody wants it again; note what comes of it."""
        key, effect = call_key(call.name, arguments), self.tools.effect(call.name)
        if times := self.guard.stuck(key):
            refusal: Refusal | None = Refusal("loop", "")
            if isinstance(self.approve, AsksAgain):
                refusal = await self.approve.again(call.name, effect or "read", arguments, times)
            if refusal is not None:
                why = refusal.text if refusal.by_person else "that needs a person's yes, and there is nobody to ask"
                if not refusal.by_person:
                    self.refused += 1
                    self.guard.refuse()
                raise ToolError("loop", _ROUND_AND_ROUND.format(times=times, why=why))
            self.guard.let_through(key)
        try:
            output, changed = await self._attempt(call, arguments, printed)
        except Exception as error:
            self.guard.note(key, f"{type(error).__name__}: {error}")
            raise
        self.guard.note(key, output, changed=changed or effect == "edit")
        return output

    async def _attempt(self, call: ToolCall, arguments: dict[str, Any], printed: list[str]) -> tuple[str, bool]:
        """The output, and whether files are known to have been changed."""
        tool = self.tools.find(call.name)
        values = tool.validate(arguments)

        def show(text: str) -> None:
            printed.append(text)
            self.bus.emit(events.ToolOutput(call.id, text))

        def tell(text: str) -> None:
            printed.append(f"\n{text}")
            self.bus.emit(events.Notice("warning", text))

        context = replace(self.context, output=show, tell=tell)
        try:
            preview = await tool.preview(context, values)
        except ToolError as error:
            self.refused += error.kind == "refused"  # the gate would have said so too
            raise
        detail, confirm = (preview.text, preview.confirm) if preview else ("", None)
        asked = time.monotonic()
        try:
            refusal = await self.approve(tool.name, tool.effect, values, detail=detail, confirm=confirm)
        finally:
            self._asked[call.id] = time.monotonic() - asked
        if refusal is not None:
            self.refused += refusal.for_want
            raise ToolError(refusal.kind, refusal.text)
        context = replace(context, box=self.context.box)  # only by the approval it may be known what box there is
        self._intend(call, arguments)
        async with self.around(tool, values) as changed:
            output = await tool.call(context, values)
        if detail:
            show(detail)
        return output, changed()


def _seen(printed: str, output: str) -> dict[str, str | int]:
    """What the person was shown of a call, for its record: how much of the output, or the last of a text of its own."""
    if not printed:
        return {}
    text = printed.rstrip("\n")
    return {"shown": len(text) if output.startswith(text) else printed[-_SEEN:]}
