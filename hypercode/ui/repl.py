"""The chat: what the person types, and what becomes of it.  Wires the agent to the screen.

The prompt is there before the model's library is: a thread imports what the first reply needs while the person types,
and a message sent earlier waits, visibly, until it can be sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypercode import __version__, events
from hypercode.agent import Result
from hypercode.app import App, build
from hypercode.config import Config
from hypercode.events import Bus
from hypercode.logfile import log_events, open_log
from hypercode.messages import user
from hypercode.safety.approval import Answer, Mode, Question
from hypercode.ui import commands, render
from hypercode.ui.clean import clean
from hypercode.ui.hooks import Choice, Hooks
from hypercode.ui.plain import PlainScreen, needs_plain
from hypercode.ui.status import activity, status_line
from hypercode.ui.transcript import Transcript

__all__ = ["Chat", "run"]

LEAVE_WITHIN = 1.0
"""Seconds in which a second Ctrl-C leaves."""

log = logging.getLogger("hypercode")


def run(config: Config, message: str, *, cwd: Path, debug: bool = False) -> int:
    """Hold a conversation on the terminal and return the exit code."""
    environ = dict(os.environ)
    for variable in ("OPENROUTER_API_KEY", "HYPERCODE_API_KEY"):
        os.environ.pop(variable, None)
    with open_log(environ, debug=debug) as path:
        return asyncio.run(_chat(config, message, cwd, environ, path, debug))


async def _chat(
    config: Config, message: str, cwd: Path, environ: Mapping[str, str], log_path: Path, debug: bool
) -> int:
    chat = Chat(config, cwd=cwd, environ=environ)
    if debug:
        log_events(chat.bus)
        chat.transcript.say([f"log: {log_path}"])
    return await chat.session(message)


class Chat:
    """One session at the terminal."""

    def __init__(self, config: Config, *, cwd: Path, environ: Mapping[str, str]) -> None:
        self.bus = Bus()
        self.app: App = build(config, cwd=cwd, environ=environ, bus=self.bus, ask=self._ask)
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
        self.screen = self._screen(hooks, config, environ)
        self.transcript = Transcript(self.bus, self.screen, plain=self.plain)
        self._task: asyncio.Task[None] | None = None
        self._prompting: asyncio.Task[None] | None = None
        self._code = 0
        self._interrupted_at = float("-inf")
        self._warm: asyncio.Future[None] | None = None
        self._boxing: asyncio.Future[None] | None = None
        self._hint = ""
        self._asking = False
        self._started = time.monotonic()
        self._last_usage: dict[str, Any] | None = None
        self.bus.on(events.TurnEnd, self._note_usage)
        self.bus.on(events.UserMessage, lambda e: self._show_queue())

    def _screen(self, hooks: Hooks, config: Config, environ: Mapping[str, str]) -> Any:
        if self.plain:
            return PlainScreen(hooks)
        from hypercode.ui.completion import completions
        from hypercode.ui.history import history_for
        from hypercode.ui.screen import Screen

        workspace = self.agent.context.workspace
        digest = hashlib.sha256(str(workspace).encode()).hexdigest()[:16]
        history = history_for(self.app.folders.state / "history" / digest)
        completer = completions(workspace, commands.names)
        return Screen(hooks, history=history, completer=completer, vi_mode=config.vi)

    # -- the session -------------------------------------------------------------

    async def session(self, message: str = "") -> int:
        """Run until the person leaves."""
        helpers = [asyncio.create_task(self.transcript.draw()), asyncio.create_task(self._tick())]
        self._greet()
        self.app.start()
        self._watch_signals()
        self._warm = asyncio.ensure_future(asyncio.to_thread(self._warm_up))
        self._boxing = asyncio.ensure_future(self._tell_box())
        self._status()
        if message:
            self.submit(message)
        try:
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
        style = self.transcript.style
        folder = clean(str(self.agent.context.workspace), "filename")
        self.transcript.say(
            [
                f"{style.bold('hypercode')} {__version__} {style.dim('·')} {clean(self.app.config.model, 'filename')} {style.dim('·')} {folder}",
                style.dim("/help shows commands and keys · Ctrl-C stops a reply · Ctrl-D leaves"),
            ],
            kind="greeting",
        )

    async def _tell_box(self) -> None:
        await self.app.box_ready()
        self.transcript.say([self.transcript.style.dim(self.app.box_said)], kind="greeting")
        self._status()

    def _warm_up(self) -> None:
        """Import what the first reply needs; runs in a thread."""
        from hypercode.ui import markdown

        if self.app.client is not None:
            self.app.client.warm_up()
        self.agent.tools.schemas()
        from hypercode.safety import command

        command.classify("true", workspace=self.agent.context.workspace, home=self.app.gate.home)
        if not self.plain:
            markdown.warm_up()

    async def _stop(self) -> None:
        if self._task is not None:
            self.agent.abort()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.transcript.settled()

    def _farewell(self) -> None:
        self.app.finish(Result(), code=0)
        totals = [f"{self.agent.turns} turns" if self.agent.turns != 1 else "1 turn", render.money(self.agent.cost)]
        if self.agent.turns:
            self.screen.commit(["", self.transcript.style.dim(" · ".join(t for t in totals if t))])

    # -- what the person does ----------------------------------------------------

    def submit(self, text: str) -> None:
        """A message, a command, or a shell line."""
        self._hint = ""
        if text.startswith("/") and commands.is_command(text):
            self._start(commands.run(self, text), background=True)
        elif text.startswith("!"):
            self._start(self._shell(text), background=False)
        elif self._task is not None:
            self.agent.post(text)
            self._show_queue()
        else:
            self.answer(text)

    def answer(self, text: str | None) -> None:
        """Begin a run with a message, or with what is in the history (None)."""
        if text is not None:
            self.agent.post(text)
            self._show_queue()
        self._start(self._run(), background=False)

    def interrupt(self) -> None:
        """Ctrl-C: stops the reply; clears the line when idle; twice within a second leaves."""
        now = time.monotonic()
        again = now - self._interrupted_at < LEAVE_WITHIN
        self._interrupted_at = now
        if self._task is not None and not again:
            self.transcript.mark_aborted()
            if self.agent.running:
                self.agent.abort()
            else:
                self._task.cancel()
        elif again:
            self.leave()
        elif not self.screen.clear_draft():
            self._hint = "Ctrl-C again leaves"
            self._status()

    def leave(self) -> None:
        """End the session."""
        self.screen.exit()

    def cycle_mode(self) -> None:
        """Shift-Tab: the next mode; auto only where it may be chosen."""
        modes = [m for m in Mode if m is not Mode.AUTO or self.may_choose_auto()]
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
        text = self.agent.inbox.pop() if self.agent.inbox else None
        self._show_queue()
        return text

    # -- runs --------------------------------------------------------------------

    def _start(self, work: Any, *, background: bool) -> None:
        if background and self._task is not None:
            task = asyncio.ensure_future(work)
            task.add_done_callback(_log_failure)
            return
        if self._task is not None:
            work.close()
            self.transcript.say(
                [self.transcript.style.yellow("! A reply is being written; wait, or stop it with Ctrl-C.")]
            )
            return
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._status()
        _log_failure(task)
        self._prompting = asyncio.ensure_future(self._prompt())
        if not task.cancelled() and task.exception() is not None:
            self.transcript.say(
                [self.transcript.style.red("✗ A fault of hypercode itself; the details are in the log.")]
            )
        if self.agent.inbox and not self.agent.running:
            self._take_all_back()

    async def _prompt(self) -> None:
        """A plain terminal is told when the next message is waited for."""
        await self.transcript.settled()
        self.screen.ready()

    async def _run(self) -> None:
        if self._warm is not None and not self._warm.done():
            self._hint = "starting"
            self._status()
            await asyncio.shield(self._warm)
            self._hint = ""
        await self.agent.run()

    def _take_all_back(self) -> None:
        """After an abort or a failure what still waits returns to the input line."""
        waiting = self.agent.withdraw()
        self.screen.draft = "\n".join([*waiting, self.screen.draft] if self.screen.draft else waiting)
        self._show_queue()

    async def _shell(self, text: str) -> None:
        """`!command` shows its output to the model as well, `!!command` does not."""
        shared = not text.startswith("!!")
        command = text.lstrip("!").strip()
        if not command:
            return
        tool = self.agent.tools.find("bash")
        call_id = f"shell-{time.monotonic_ns()}"
        self.bus.emit(events.ToolExecutionStart(call_id, "!" if shared else "!!", {"command": command}))
        started = time.monotonic()
        output, kind = "[stopped]", "aborted"
        context = self.agent.shell_context(lambda piece: self.bus.emit(events.ToolOutput(call_id, piece)))
        try:
            output, kind = await tool.call(context, tool.validate({"command": command})), ""
        finally:
            seconds = round(time.monotonic() - started, 3)
            self.bus.emit(events.ToolExecutionEnd(call_id, "!", output, bool(kind), kind or None, seconds))
            if shared:
                self.agent.messages.append(user(f"I ran this command myself:\n$ {command}\n{output}"))

    async def _ask(self, question: Question) -> Answer | None:
        before = self.transcript.activity
        await self.transcript.settled()
        self._asking = True
        self._status()
        try:
            lines = render.question_lines(self.transcript.style, question)
            answer = await self.screen.ask(lines, _choices(question))
        except EOFError:
            return None
        finally:
            self._asking = False
            self.transcript.activity = before
            self._status()
        if answer.key == "n":
            return Answer(False, reason=answer.text)
        return Answer(True, {"s": "session", "a": "always"}.get(answer.key, "once"))

    def context_parts(self) -> dict[str, int]:
        """About how many tokens each part of the next request takes: four characters are about one token."""
        sizes = {"system prompt": len(self.agent.prompt()), "tools": len(json.dumps(self.agent.tools.schemas()))}
        names = {"user": "you", "assistant": "replies", "tool": "tool results"}
        for message in self.agent.messages:
            part = names.get(message.get("role", ""), "other")
            sizes[part] = sizes.get(part, 0) + len(json.dumps(message, ensure_ascii=False))
        return {name: size // 4 for name, size in sizes.items()}

    def last_prompt_tokens(self) -> int | None:
        """How many tokens the last request had, as its server counted."""
        return (self._last_usage or {}).get("prompt_tokens")

    # -- status ------------------------------------------------------------------

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.25)
            if self._task is not None:
                self.transcript.tick()
                self._status()

    def _note_usage(self, event: events.TurnEnd) -> None:
        self._last_usage = event.usage or self._last_usage

    def _show_queue(self) -> None:
        style = self.transcript.style
        fate = "sent with the next model call" if self.agent.running else "sent as soon as it can be"
        rows = [f"{style.dim('⏳ ' + fate + ':')} {clean(text, 'filename')}" for text in self.agent.inbox]
        self.screen.set_queued(rows)

    def _status(self) -> None:
        line = status_line(self.app, self.transcript, started=self._started, going_on=self._going_on())
        self.screen.set_status(line)

    def _going_on(self) -> str:
        if self._asking:
            return "waiting for you"
        if self._hint or self._task is None:
            return self._hint
        return activity(self.transcript, self.app.client)


def _choices(question: Question) -> list[Choice]:
    choices = [Choice("y", "yes, once")]
    if question.remembers:
        what = "edits" if question.effect == "edit" else f"{question.rule!r}"
        choices.append(Choice("s", f"yes, {what} for this session"))
        if question.rule:
            choices.append(Choice("a", f"always: saves the rule {question.rule!r}"))
    return [*choices, Choice("n", "no (say why, or Enter)", free_text=True)]


def _log_failure(task: asyncio.Future[Any]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("task failed", exc_info=task.exception())
