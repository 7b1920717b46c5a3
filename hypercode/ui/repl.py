"""The chat: what the person types, and what becomes of it.  Wires the agent to the screen.

The prompt is there before the model's library is: a thread imports what the first reply needs while the person types,
and a message sent earlier waits, visibly, until it can be sent.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from hypercode import events
from hypercode.agent import Complete, Result
from hypercode.app import App, build
from hypercode.config import Config
from hypercode.events import Bus
from hypercode.logfile import log_events, log_place, open_log
from hypercode.messages import is_cut, typed
from hypercode.parts import lacks_key, secrets_of
from hypercode.safety.approval import Answer, Mode, Question
from hypercode.safety.own_process import take_environment
from hypercode.safety.redact import Redactor
from hypercode.ui import commands, model_commands, render, session_commands, warm_up
from hypercode.ui.clean import clean
from hypercode.ui.greeting import farewell, greeting
from hypercode.ui.hooks import Hooks
from hypercode.ui.interrupts import ends_in_order
from hypercode.ui.plain import PlainScreen, needs_plain
from hypercode.ui.shell_line import run_shell_line
from hypercode.ui.status import ReplyClock, activity, status_line
from hypercode.ui.surface import full_screen
from hypercode.ui.transcript import Transcript

__all__ = ["Chat", "run"]

LEAVE_WITHIN = 1.0  # seconds in which a second Ctrl-C leaves
TICK = 0.5  # seconds between two looks at the clocks in the status line and the live rows

log = logging.getLogger("hypercode")


def run(
    config: Config, message: str, *, cwd: Path, debug: bool = False, resume: str | None = None, pick: bool = False
) -> int:
    """Hold a conversation on the terminal and return the exit code.

    `resume` goes on with the session of that id or name, an empty one with this folder's last; `pick` lets the person choose.
    """
    environ = take_environment()
    if not config.local and lacks_key(config, environ):
        from hypercode.ui.first_start import settle  # only then: the prompt need not wait for it

        if not settle(config, environ):
            return 0
    with open_log(environ, debug=debug, redact=Redactor(secrets_of(config, environ)).text) as path:
        return asyncio.run(_chat(config, message, cwd, environ, path if debug else None, resume, pick))


async def _chat(
    config: Config, text: str, cwd: Path, environ: Mapping[str, str], log: Path | None, resume: str | None, pick: bool
) -> int:
    ends_in_order()
    chat = Chat(config, cwd=cwd, environ=environ)
    if log is not None:
        log_events(chat.bus)
        chat.transcript.say([f"log: {log_place(log)}"])
    return await chat.session(text, resume=resume, pick=pick)


class Chat:
    """One session at the terminal; `complete` replaces the model."""

    def __init__(
        self, config: Config, *, cwd: Path, environ: Mapping[str, str], complete: Complete | None = None
    ) -> None:
        self.bus = Bus()
        self.app: App = build(config, cwd=cwd, environ=environ, complete=complete, bus=self.bus, ask=self._ask)
        self.agent = self.app.agent
        hooks = Hooks(
            submit=self.submit,
            interrupt=self.interrupt,
            eof=self.leave,
            cycle_mode=self.cycle_mode,
            expand=self.expand,
            take_back=self.take_back,
        )
        self.plain = config.plain or needs_plain(environ)
        commands.discover()
        self.user_commands = self.app.own_commands(commands.names())
        names = lambda: commands.names() | self.user_commands.names  # noqa: E731
        self.screen: Any = self.plain_screen(hooks) if self.plain else full_screen(hooks, self.app, names)
        self.transcript = Transcript(self.bus, self.screen, plain=self.plain, redact=self.app.shown.text)
        self._task: asyncio.Task[str] | None = None
        self._asides: set[asyncio.Task[None]] = set()
        self._code, self._leaving, self._width = 0, False, 0
        self._interrupted_at = float("-inf")
        self._warm: asyncio.Future[None] | None = None
        self._boxing: asyncio.Future[None] | None = None
        self._hint = ""
        self._asking = False
        self._clock = ReplyClock()
        self.last_turn: events.TurnEnd | None = None
        self.transcript.on_activity = self._status
        self.bus.on(events.TurnEnd, self._note_usage)
        self.bus.on(events.UserMessage, lambda e: self._show_queue())

    def plain_screen(self, hooks: Hooks) -> PlainScreen:
        """The screen where there is no live region."""
        return PlainScreen(hooks)

    # -- the session -------------------------------------------------------------

    async def session(self, message: str = "", *, resume: str | None = None, pick: bool = False) -> int:
        """Run until the person leaves.  Raises ConfigError where there is no such session to resume."""
        resumed = session_commands.begin(self, resume, pick=pick)
        helpers = [asyncio.create_task(self.transcript.draw()), asyncio.create_task(self._tick())]
        self._greet()
        self.app.start()
        self._watch_signals()
        self._warm = asyncio.ensure_future(asyncio.to_thread(warm_up.for_request, self.app))
        self._status()
        if resumed is not None or pick or self.app.undecided:
            self.screen.prompt_first = False
            self._aside(session_commands.offer(self, resumed, pick=pick, message=message))
        elif message:
            session_commands.first(self, message)
        self._aside(self._warm_more(self._warm))
        self._boxing = asyncio.ensure_future(self._tell_box(self._warm))
        try:
            if self.plain:  # what is written after its prompt would stand behind it
                await self._boxing
                await self.transcript.settled()
            await self.screen.run()
        finally:
            await self._stop()
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            await asyncio.gather(*(f for f in (self._warm, self._boxing) if f), return_exceptions=True)
            self._farewell()
            await self.app.aclose()
        return self._code

    def _watch_signals(self) -> None:
        """SIGTERM and SIGHUP end the session in order; what fails in a key's handler goes to the log, not on the screen."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._fault)
        for number, code in ((signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            loop.add_signal_handler(number, self._end, code)

    def _end(self, code: int) -> None:
        self._code = code
        self.leave()

    def _fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        log.error("%s", context.get("message"), exc_info=context.get("exception"))
        self.transcript.say([self.transcript.style.red("✗ A fault of hypercode itself; the details are in the log.")])

    def _greet(self) -> None:
        lines = greeting(self.transcript.style, self.app.config.model, str(self.agent.context.workspace))
        self.transcript.say(lines, kind="greeting")

    async def _tell_box(self, first: asyncio.Future[None]) -> None:
        await self._spare(first)
        await self.app.box_ready()
        self.transcript.say([self.transcript.style.dim(self.app.box_said)], kind="greeting")
        self._status()

    async def _warm_more(self, first: asyncio.Future[None]) -> None:
        await asyncio.shield(first)
        await self._spare(first)
        await warm_up.for_reply(self.app, markdown=not self.plain)
        await model_commands.learn_window(self)
        await asyncio.to_thread(self.app.undo.warm_up)
        for note in self.app.undo.take_notes():
            self.bus.emit(events.Notice("info", note))

    async def _spare(self, first: asyncio.Future[None]) -> None:
        """Let a message that waits to be sent go first."""
        if self.busy:
            await asyncio.shield(first)
            await asyncio.sleep(warm_up.REQUEST_FIRST)

    async def _stop(self) -> None:
        self._leaving = True
        if self._task is not None:
            self.agent.abort()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.transcript.settled()

    def _farewell(self) -> None:
        self.app.finish(Result(), code=0)
        saved = getattr(self.agent.journal, "saved", True)
        if lines := farewell(self.transcript.style, self.agent.turns, self.agent.cost, saved=saved):
            self.screen.commit(lines)

    # -- what the person does ----------------------------------------------------

    def submit(self, text: str) -> None:
        """A message, a command, or a shell line."""
        self._hint = ""
        if commands.is_command(text):
            self._aside(commands.run(self, text))
        elif text.startswith("!") and self.busy:
            self.transcript.say([self.transcript.style.yellow("! Something is running; wait, or stop it with Ctrl-C.")])
            self.screen.draft = self.screen.draft or text
        elif text.startswith("!"):
            self.work(run_shell_line(self.agent, text))
        elif self.busy:
            self.agent.post(text)
            self._show_queue()
        else:
            self.answer(text)

    def answer(self, text: str | None) -> None:
        """Begin a run with a message, or with what is in the history (None)."""
        if text is not None:
            self.agent.post(text)
            self._show_queue()
        self._start(self._run())

    @property
    def busy(self) -> bool:
        """Whether a reply is being written or a shell line runs."""
        return self._task is not None

    def interrupt(self) -> None:
        """Ctrl-C: stops the reply; clears the line when idle; twice within a second leaves."""
        again = (now := time.monotonic()) - self._interrupted_at < LEAVE_WITHIN
        self._interrupted_at = now
        if self.agent.running and not again:
            self.transcript.mark_aborted()
            self.agent.abort()
            self._take_all_back()
        elif self._task is not None and not again:
            self._task.cancel()
            self._take_all_back()
        elif again and not self.screen.clear_draft():  # what waited is in the line now, and in the history once cleared
            self.leave()
        elif not again and not self.screen.clear_draft():
            self._hint = "Ctrl-C again leaves"
            self._status()

    def leave(self) -> None:
        """End the session."""
        self.screen.exit()

    @property
    def ended_well(self) -> bool:
        """Whether the last turn of this conversation, as far as it was seen here, brought a whole answer."""
        end, last = self.last_turn, self.agent.messages[-1:]
        whole = end is not None and end.outcome == "complete" and not is_cut(end.finish_reason)
        return whole and last[0].get("role") == "assistant" and not last[0].get("tool_calls")

    def refresh(self) -> None:
        """Another conversation, or another place in it: draw anew what is said of it."""
        self._show_queue()
        self._status()

    def cycle_mode(self) -> None:
        """Shift-Tab: the next mode; auto only where it may be chosen."""
        modes = [Mode.ASK, Mode.EDITS, Mode.PLAN, *([Mode.AUTO] if self.may_choose_auto() else [])]
        self.set_mode(modes[(modes.index(self.app.gate.mode) + 1) % len(modes)])

    def set_mode(self, mode: Mode) -> None:
        """Use another mode from now on."""
        self.app.gate.mode = mode
        self._status()

    def may_choose_auto(self) -> bool:
        """Whether mode auto may be chosen: in the full box, or where the person gave up the sandbox at the start."""
        return self.app.gate.boxed or not self.app.config.sandbox

    def expand(self) -> None:
        """Ctrl-O: the last folded output, whole."""
        text = self.transcript.folded
        lines = clean(text, "tool_output").rstrip("\n").split("\n") if text else ["nothing is folded"]
        self.transcript.say([self.transcript.style.dim(line.expandtabs(4)) for line in lines], kind="unfolded")

    def take_back(self) -> str | None:
        """Up on an empty line: the last waiting message."""
        text = typed(self.agent.inbox.pop()) if self.agent.inbox else None
        self._show_queue()
        return text

    # -- runs --------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, str]) -> None:
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[str]) -> None:
        self._task, self._hint = None, ""
        self._status()
        self._report(task)
        if self._leaving:
            return
        failed = not task.cancelled() and (task.exception() or task.result() in ("error", "interrupted", "limit"))
        if self.agent.inbox and not failed:
            self.answer(None)  # it came too late for the run that has just ended, or waited for a shell line
            return
        self._take_all_back()
        self._aside(self._prompt())

    def work(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that no reply may run beside, and that Ctrl-C stops."""

        async def done() -> str:
            await work
            return "complete"

        self._start(done())

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what needs no reply to be over, and keeps none from beginning."""
        task = asyncio.ensure_future(work)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)
        task.add_done_callback(self._report)

    def _report(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fault(asyncio.get_running_loop(), {"message": "task failed", "exception": error})

    async def _prompt(self) -> None:
        """A plain terminal is told when the next message is waited for."""
        await self.transcript.settled()
        self.screen.ready()

    async def _run(self) -> str:
        if self._warm is not None and not self._warm.done():
            self._hint = "starting"
            self._status()
            await asyncio.shield(self._warm)
            self._hint = ""
            self._status()
        return (await self.agent.run()).outcome

    def _take_all_back(self) -> None:
        """After an abort or a failure what still waits returns to the input line."""
        if waiting := [typed(text) for text in self.agent.withdraw()]:
            self.screen.draft = "\n".join([*waiting, self.screen.draft] if self.screen.draft else waiting)
            self._show_queue()

    async def _ask(self, question: Question) -> Answer | None:
        before, since = self.transcript.activity, time.monotonic()
        await self.transcript.settled()
        self._asking = True
        self._status()
        try:
            lines = render.question_lines(self.transcript.style, question)
            answer = await self.screen.ask(lines, render.choices(question), hold=False)
        except EOFError:
            return None
        finally:
            self._asking = False
            self.transcript.activity = before
            self.transcript.waited(time.monotonic() - since)
            self._status()
        return render.answered(answer.key, answer.text)

    # -- status ------------------------------------------------------------------

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            if self.busy:
                self.transcript.tick()
            elif self._hint and time.monotonic() - self._interrupted_at > LEAVE_WITHIN:
                self._hint = ""
            elif self._width == self.screen.columns:
                continue
            self._status()

    def _note_usage(self, event: events.TurnEnd) -> None:
        self.last_turn = event

    def _show_queue(self) -> None:
        style = self.transcript.style
        fate = "sent with the next model call" if self.agent.running else "sent as soon as it can be"
        texts = [clean(self.app.shown.text(typed(text)), "filename") for text in self.agent.inbox]
        rows = [f"{style.dim('⏳ ' + fate + ':')} {text}" for text in texts]
        self.screen.set_queued(rows)

    def _status(self) -> None:
        doing, self._width = self._going_on(), self.screen.columns
        line = status_line(self.app, self.transcript, clock=self._clock, going_on=doing, width=self._width)
        self.screen.set_status(self.app.shown.text(line))

    def _going_on(self) -> str:
        if self._asking:
            return "waiting for you"
        if self._hint or self._task is None:
            return self._hint
        return activity(self.transcript, self.app.client)
