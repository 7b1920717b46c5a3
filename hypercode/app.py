"""The composition root: a configuration becomes an agent with its collaborators.

The command line and embedders go through the same door::

    app = build(config, cwd=Path.cwd(), environ=os.environ)
    app.start()
    result = await app.agent.run("What is in here?")
    app.finish(result)
    await app.aclose()
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypercode import __version__, events
from hypercode.agent import Agent, Complete, Limits, Result, exit_code
from hypercode.config import Config, Folders
from hypercode.errors import ConfigError
from hypercode.events import Bus
from hypercode.extensions import Extensions
from hypercode.memory.context import Meter, parts, prompt_parts
from hypercode.memory.fit import Fit
from hypercode.memory.instructions import Instructions
from hypercode.memory.sessions import find, latest, path_of
from hypercode.memory.skills import Skills
from hypercode.memory.undo_sessions import UndoSessions
from hypercode.messages import system
from hypercode.parts import client_for, gate_for, keys_of, memory_for, secrets_of, toolbox_for, undo_for
from hypercode.process import child_environment
from hypercode.safety.approval import Asker, Gate, Mode
from hypercode.safety.redact import Redactor
from hypercode.safety.shown import Shown
from hypercode.safety.temp_folder import TempFolder
from hypercode.safety.trust import Trust, TrustState
from hypercode.tools.base import Tool, ToolContext

if TYPE_CHECKING:
    from hypercode.findings import Finding
    from hypercode.local_model import LocalModel, Offer
    from hypercode.memory.history import Loaded
    from hypercode.memory.undo import Undo
    from hypercode.memory.user_commands import UserCommands

__all__ = ["App", "build", "new_session_id"]


@dataclass(slots=True)
class App:
    """A session with everything in it."""

    config: Config
    folders: Folders
    agent: Agent
    gate: Gate
    session: str
    client: Any
    temp: TempFolder
    redactor: Redactor
    fit: Fit
    instructions: Instructions
    skills: Skills
    environ: Mapping[str, str] = field(repr=False)
    shown: Shown
    extensions: Extensions
    local: LocalModel | None = None
    box_said: str = ""
    _started: bool = False
    _probing: asyncio.Future[None] | None = None
    _untold: list[str] = field(default_factory=list)
    undos: UndoSessions = field(init=False)

    def __post_init__(self) -> None:
        """Make what takes changes back."""
        tell = lambda text: self.bus.emit(events.Notice("info", text))  # noqa: E731
        self.undos = UndoSessions(partial(undo_for, self.folders, self.gate.files, notify=tell, said=set()))

    @property
    def bus(self) -> Bus:
        """The bus on which everything is announced."""
        return self.agent.bus

    def start(self) -> None:
        """Announce the session, and what the configuration had to say; clear away what a killed session left half-written."""
        self.gate.files.sweep()
        self.temp.claim()
        self._started = True
        self.bus.on(events.Notice, self._keep_notice)
        self.extensions.attach()
        cwd = str(self.agent.context.workspace)
        self.bus.emit(events.SessionStart(self.session, self.config.model, cwd, __version__))
        self._tell(*self.config.notices)
        self.extensions.tell()
        if self.local is not None:
            self.local.client.begin()
            if not self.local.undecided:
                self.use_local(self.local.chosen)
        if self.gate.mode is Mode.AUTO and not self.gate.boxed:
            self.bus.emit(events.Notice("warning", "Mode auto without a sandbox: commands run with all your rights."))

    def prompt_parts(self) -> dict[str, str]:
        """The system prompt of the next request, by part."""
        self.extensions.ready()
        return prompt_parts(
            self.agent.context.workspace,
            plan=self.gate.mode is Mode.PLAN,
            instructions=self.instructions.text,
            skills=self.skills.text,
            short=self.local is not None and self.local.small,
        )

    @property
    def undecided(self) -> bool:
        """Whether it is still to be said which of several models on this machine is used."""
        return self.local is not None and self.local.undecided

    def use_local(self, offer: Offer) -> None:
        """Talk to this model on this machine, and say which one it is."""
        if self.local is not None:
            self.local.use(offer)
            self.agent.about["model"] = self.config.model
            self.agent.context.most = self.local.result_characters
            self.agent.tools = toolbox_for(self.skills, self.local, self.extensions.tools)
            self.use_window(None)
            self.bus.emit(events.Notice("info", self.local.label()))

    @property
    def undo(self) -> Undo:
        """What takes the changes of this conversation back; made when it is first needed."""
        return self.undos.of(self.session)

    def undoable(self, tool: Tool, values: Mapping[str, Any]) -> AbstractAsyncContextManager[Callable[[], bool]]:
        """A step that `undo` can take back, around an attempt of a tool that changes files."""
        if tool.effect == "read":
            return nullcontext(lambda: False)
        path, command = values.get("path"), values.get("command")
        named = path if isinstance(path, str) and tool.effect == "edit" else None
        label = self.redactor.text(f"{tool.name} {named or command or dict(values)}")
        return self.undo.step(label, path=named, scan=named is None)

    def trust_changed(self) -> None:
        """Use what a folder brings that the person has just come to trust; its settings count from the next start."""
        workspace = self.agent.context.workspace
        self.instructions, self.skills = memory_for(self.config, self.folders, workspace, self.instructions)
        self.agent.tools = toolbox_for(self.skills, self.local, self.extensions.tools)

    def measure(self) -> None:
        """Estimate how full the window is: the conversation is another one than that which the server has counted."""
        messages = [system(self.agent.prompt()), *self.agent.messages]
        self.fit.meter.changed(messages, self.agent.tools.schemas())

    def context_sizes(self) -> dict[str, int]:
        """About how many tokens each part of the next request takes."""
        return parts(self.prompt_parts(), self.agent.tools.schemas(), self.agent.messages, self.fit.meter)

    async def examine(self, *, stream: bool) -> list[Finding]:
        """What works here and what does not; with `stream` a short answer is measured, which may cost something."""
        from hypercode.checkup import examine_session

        own, here = (self.config, self.folders, self.environ), self.agent.context.workspace
        return await examine_session(*own, stream=stream, local=self.local, workspace=here)

    def own_commands(self, builtin: Collection[str]) -> UserCommands:
        """The person's own slash commands, and those of a trusted project; a name of `builtin` is refused with a notice."""
        from hypercode.memory.user_commands import load as load_commands

        trust, workspace = Trust(self.folders.state, own=self.folders.own), self.agent.context.workspace
        return load_commands(
            [self.folders.config_file.parent / "commands"],
            trust.accepted(workspace),
            trusted=trust.of(workspace) is TrustState.TRUSTED,
            builtin=builtin,
        )

    def use_window(self, model: Any) -> None:
        """What the catalog knows of the model (None: nothing)."""
        served = self.local.window(self.config.model) if self.local is not None else None
        context = served or (model.context if model else None)
        self.fit.meter.use(context, model.max_output if model else None, self.config.max_tokens)

    def _touched(self, event: events.ToolExecutionStart) -> None:
        path = event.arguments.get("path")
        for text in self.instructions.touch(path) if isinstance(path, str) else ():
            self.bus.emit(events.Notice("info", text))

    def new_conversation(self) -> None:
        """Begin an empty conversation, with a journal of its own that is made with the first message."""
        from hypercode.memory.journal import Journal

        self._close_journal()
        path = path_of(self.folders.state, self.agent.context.workspace, self.session)
        if path.exists() or self.agent.messages:
            self.undos.leave(self.session)
            self.session = new_session_id()
            path = path.with_name(f"{self.session}.jsonl")
        self.agent.resume([], journal=Journal(path, redactor=self.redactor, on_failure=self._unsaved))
        self.fit.meter.changed(())

    def saved_conversation(self, name: str) -> Path:
        """The file of the session of that id or name; of this folder's last one for an empty name.  Raises ConfigError."""
        where = self.folders.state, self.agent.context.workspace
        return find(*where, name) if name else latest(*where)

    def resume_conversation(self, path: Path) -> Loaded:
        """Go on with a saved conversation; what is to be said of it is announced.  Raises ConfigError."""
        from hypercode.memory.journal import open_session

        self._close_journal()
        opened = open_session(path, redactor=self.redactor, on_failure=self._unsaved, fresh=new_session_id())
        loaded = opened.loaded
        self.session = opened.journal.session
        self.undos.forget()
        self.agent.resume(loaded.messages, journal=opened.journal, cut=loaded.broken, owed=loaded.owed, **loaded.spent)
        elsewhere = []
        if loaded.cwd and loaded.cwd != (here := str(self.agent.context.workspace)):
            elsewhere.append(f"This conversation began in {loaded.cwd}; the tools work here, in {here}.")
        self._tell(*opened.notices, *elsewhere)
        return loaded

    def rewind(self, place: int) -> str:
        """Go back to before the message of the person at this place in the conversation, and return what it said.

        The journal keeps what is left behind.
        """
        messages = self.agent.messages
        later = sum(message.get("role") == "user" for message in messages[place:])
        starts = self._recorded().starts
        self.agent.record("rewind", to=starts[-later][0] if later <= len(starts) else 0)
        return self.agent.rewind(place)

    def drop_answer(self) -> bool:
        """Take the last answer out of the conversation, to ask for another one; the journal keeps it.  Whether there was one."""
        loaded = self._recorded()
        if count := self.agent.drop_answer():
            to = next((number for number in loaded.numbers[-count:] if number), None)
            if to is not None:
                self.agent.record("rewind", to=to)
        return bool(count)

    def _recorded(self) -> Loaded:
        from hypercode.memory.history import Loaded
        from hypercode.memory.journal import Journal

        journal = self.agent.journal
        try:
            return journal.read() if isinstance(journal, Journal) else Loaded(Path(), [])
        except ConfigError:  # the file is gone, and said so
            return Loaded(Path(), [])

    def _tell(self, *notices: str) -> None:
        """Announce what is to be known, once the session has been announced itself."""
        self._untold += notices
        while self._started and self._untold:
            self.bus.emit(events.Notice("warning", self._untold.pop(0)))

    def _keep_notice(self, notice: events.Notice) -> None:
        if self.agent.opened and getattr(self.agent.journal, "saved", False):
            self.agent.journal.append("notice", sync=False, level=notice.level, text=notice.text)

    def _unsaved(self, text: str) -> None:
        self.bus.emit(events.Notice("error", text))

    def _close_journal(self) -> None:
        close = getattr(self.agent.journal, "close", None)
        if close is not None:
            close()

    def probe_box(self) -> None:
        """Find out which sandbox there is, and use it from now on; blocks for some 50 ms, at most a few seconds."""
        from hypercode.safety.sandbox import Box, Policy

        if not self.config.sandbox:
            self.box_said = "Sandbox: off — commands run with all your rights."
            return
        context, files = self.agent.context, self.gate.files
        policy = Policy(
            files.roots,
            self.gate.home,
            self.temp.path,
            self.folders.state / "quarantine",
            own=self.folders.own,
            readable=(self.folders.cache / "outputs", self.folders.config_file.parent / "skills"),
        )
        box = Box.probe(policy, context.environment)
        context.box = box if box.kind != "none" else None
        self.gate.boxed, self.gate.readers_ask = box.full, not box.full
        self.box_said = box.describe()
        box.warm_up()
        self._untold += box.recovered  # a thread does not announce

    async def box_ready(self) -> None:
        """Wait until it is known which sandbox there is; the first call finds out."""
        if self.box_said:
            return
        if self._probing is None:
            self._probing = asyncio.ensure_future(asyncio.to_thread(self.probe_box))
        await asyncio.shield(self._probing)
        self._tell()

    def finish(self, result: Result, *, code: int | None = None) -> int:
        """Announce the end of the session and return the exit code (`code` where a signal decided it)."""
        code = exit_code(result) if code is None else code
        agent = self.agent
        self.bus.emit(
            events.SessionEnd(result.outcome, code, agent.turns, agent.usage, agent.cost, agent.refused, result.error)
        )
        return code

    async def aclose(self) -> None:
        """Close the journal, let queued listeners finish and drop the connections."""
        self._close_journal()
        self.undos.close()
        await self.extensions.aclose()
        await self.bus.aclose()
        await asyncio.to_thread(self.temp.close)
        if self.client is not None:
            await self.client.aclose()


def build(
    config: Config,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    complete: Complete | None = None,
    bus: Bus | None = None,
    ask: Asker | None = None,
) -> App:
    """Put a session together.  Raises ConfigError where the configuration cannot work.

    `complete` replaces the model (a ScriptedModel, an embedder's own); without it a client for the configured server is
    made, and a missing key is an error.  `ask` puts questions to a person; without it there is nobody.
    """
    folders = Folders.of(environ)
    session = new_session_id()
    bus = bus or Bus()
    bus.through = shown = Shown(keys_of(config, environ))
    spill = folders.cache / "outputs" / session
    ask = shown.asker(ask) if ask else None
    gate = gate_for(
        config, cwd=cwd, environ=environ, ask=ask, notify=lambda text: bus.emit(events.Notice("warning", text))
    )
    client, local = None, None
    if complete is None:
        client, local = client_for(config, environ)
        complete = client.complete
    temp = TempFolder(folders.cache / "temp" / session)
    context = ToolContext(
        files=gate.files,
        spill=spill,
        environment=child_environment(environ, temp=temp.path, keep=config.keep_env),
        passes=gate.passes,
    )
    redactor = Redactor([*secrets_of(config, environ)])
    instructions, skills = memory_for(config, folders, gate.files.workspace)
    fit = Fit(complete, Meter())
    agent = Agent(
        complete=fit.complete,
        tools=toolbox_for(skills, local),
        context=context,
        approve=gate,
        bus=bus,
        prompt=lambda: "".join(app.prompt_parts().values()),
        around=lambda tool, values: app.undoable(tool, values),
        limits=Limits(config.max_turns, config.max_cost, config.timeout),
        about={"cwd": str(gate.files.workspace), "model": config.model, "version": __version__},
    )
    outside = config, agent, gate.files, redactor, environ
    extensions = Extensions(*outside, session=lambda: app.session, served=client is not None)
    made = config, folders, agent, gate, session, client, temp, redactor, fit, instructions, skills
    app = App(*made, environ, shown, extensions, local)
    gate.files.on_change = lambda change: app.undo.record(change)
    fit.replace = lambda done: agent.compacted(done.messages, done.reply)
    app.use_window(None)
    bus.on(events.ToolExecutionStart, app._touched)
    app.new_conversation()
    gate.boxing = app.box_ready
    if gate.mode is Mode.AUTO and config.sandbox:
        app.probe_box()
        if not gate.boxed:
            raise ConfigError(
                f"auto runs commands unasked and needs the sandbox. {app.box_said} "
                "Or add --no-sandbox to run them with all your rights",
                file=config.sources["mode"],
                key="mode",
            )
    return app


def new_session_id() -> str:
    """An id that sorts by time and that nobody else has."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
