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
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypercode import __version__, events
from hypercode.agent import Agent, Complete, Limits, Result, exit_code
from hypercode.config import OPENROUTER_URL, Config, Folders, is_loopback, pick_key
from hypercode.errors import ConfigError
from hypercode.events import Bus
from hypercode.llm.settings import ModelSettings
from hypercode.memory.context import system_prompt
from hypercode.memory.sessions import path_of
from hypercode.process import child_environment
from hypercode.safety.approval import Asker, Gate, Mode
from hypercode.safety.paths import FileGuard
from hypercode.safety.redact import Redactor
from hypercode.safety.rules import Rule, parse_rule
from hypercode.tools.base import Toolbox, ToolContext

if TYPE_CHECKING:
    from hypercode.memory.history import Loaded

__all__ = ["App", "build", "gate_for", "model_settings", "new_session_id"]


@dataclass(slots=True)
class App:
    """A session with everything in it."""

    config: Config
    folders: Folders
    agent: Agent
    gate: Gate
    session: str
    client: Any
    temp: Path
    redactor: Redactor
    box_said: str = ""
    _probing: asyncio.Future[None] | None = None

    @property
    def bus(self) -> Bus:
        """The bus on which everything is announced."""
        return self.agent.bus

    def start(self) -> None:
        """Announce the session, and what the configuration had to say; clear away what a killed session left half-written."""
        self.gate.files.sweep()
        cwd = str(self.agent.context.workspace)
        self.bus.emit(events.SessionStart(self.session, self.config.model, cwd, __version__))
        for notice in self.config.notices:
            self.bus.emit(events.Notice("warning", notice))
        if self.gate.mode is Mode.AUTO and not self.gate.boxed:
            self.bus.emit(events.Notice("warning", "Mode auto without a sandbox: commands run with all your rights."))

    def new_conversation(self) -> None:
        """Begin an empty conversation, with a journal of its own that is made with the first message."""
        from hypercode.memory.journal import Journal

        self._close_journal()
        path = path_of(self.folders.state, self.agent.context.workspace, self.session)
        if path.exists() or self.agent.messages:
            self.session = new_session_id()
            path = path.with_name(f"{self.session}.jsonl")
        self.agent.resume([], journal=Journal(path, redactor=self.redactor, on_failure=self._unsaved))

    def resume_conversation(self, path: Path) -> Loaded:
        """Go on with a saved conversation; what is to be said of it is announced.  Raises ConfigError."""
        from hypercode.memory.journal import open_session

        self._close_journal()
        opened = open_session(path, redactor=self.redactor, on_failure=self._unsaved, fresh=new_session_id())
        loaded = opened.loaded
        self.session = opened.journal.session
        self.agent.resume(
            loaded.messages,
            journal=opened.journal,
            turns=loaded.turns,
            cost=loaded.cost,
            cut=bool(loaded.partial.strip()),
        )
        for notice in opened.notices:
            self.bus.emit(events.Notice("warning", notice))
        return loaded

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
            self.temp,
            self.folders.state / "quarantine",
            own=self.folders.own,
            readable=(self.folders.cache / "outputs",),
        )
        box = Box.probe(policy, context.environment)
        context.box = box if box.kind != "none" else None
        self.gate.boxed = box.full
        self.box_said = box.describe()
        for report in box.recovered:
            self.config.notices.append(report)

    async def box_ready(self) -> None:
        """Wait until it is known which sandbox there is; the first call finds out."""
        if self.box_said:
            return
        if self._probing is None:
            self._probing = asyncio.ensure_future(asyncio.to_thread(self.probe_box))
        await asyncio.shield(self._probing)

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
        await self.bus.aclose()
        await asyncio.to_thread(shutil.rmtree, self.temp, ignore_errors=True)
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
    spill = folders.cache / "outputs" / session
    gate = gate_for(
        config, cwd=cwd, environ=environ, ask=ask, notify=lambda text: bus.emit(events.Notice("warning", text))
    )
    client = None
    if complete is None:
        client = _client(config, environ)
        complete = client.complete
    temp = folders.cache / "temp" / session
    context = ToolContext(
        files=gate.files,
        spill=spill,
        environment=child_environment(environ, temp=temp, keep=config.keep_env),
        passes=gate.passes,
    )
    agent = Agent(
        complete=complete,
        tools=Toolbox.discover(),
        context=context,
        approve=gate,
        bus=bus,
        prompt=lambda: system_prompt(gate.files.workspace, plan=gate.mode is Mode.PLAN),
        limits=Limits(config.max_turns, config.max_cost, config.timeout),
        about={"cwd": str(gate.files.workspace), "model": config.model, "version": __version__},
    )
    redactor = Redactor([*_secrets(config, environ)])
    app = App(config, folders, agent, gate, session, client, temp, redactor)
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


def _secrets(config: Config, environ: Mapping[str, str]) -> Iterable[str]:
    """What must not be written anywhere: every key the program knows, used in this session or not."""
    yield from filter(None, [config.api_key, *(environ.get(v) for v in ("OPENROUTER_API_KEY", "HYPERCODE_API_KEY"))])
    yield from (str(value) for value in config.headers.values())


def model_settings(config: Config, environ: Mapping[str, str]) -> ModelSettings:
    """What the model connection needs.  Raises ConfigError where the key is missing or would travel in the clear."""
    key = pick_key(config, environ)
    loopback = is_loopback(config.base_url)
    if key is None and not loopback:
        variable = "OPENROUTER_API_KEY" if config.base_url == OPENROUTER_URL else "HYPERCODE_API_KEY"
        raise ConfigError(
            f"No API key for {config.base_url}.\n"
            f"Set one: export {variable}=…   (or api_key in the file that `hypercode config path` names).\n"
            "A server on this machine needs none: --base-url http://127.0.0.1:PORT/v1 -m MODEL"
        )
    if key is not None and config.base_url.startswith("http://") and not loopback:
        raise ConfigError(
            "a key is not sent over plain http; use https", file=config.sources["base_url"], key="base_url"
        )
    extra = dict(config.extra_body)
    extra |= {k: v for k, v in {"provider": config.provider, "reasoning": config.reasoning}.items() if v}
    return ModelSettings(
        base_url=config.base_url,
        api_key=key,
        model=config.model,
        fallbacks=tuple(config.fallbacks),
        headers={k: str(v) for k, v in config.headers.items()},
        extra_body=extra,
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        first_event_timeout=_first_event_timeout(config),
        idle_timeout=config.idle_timeout,
        max_retries=config.max_retries,
    )


def _first_event_timeout(config: Config) -> float:
    """Whoever chose an idle limit and no other for the first event means both."""
    sources = config.sources
    if sources["first_event_timeout"] == "default" and sources["idle_timeout"] != "default":
        return config.idle_timeout
    return config.first_event_timeout


def _client(config: Config, environ: Mapping[str, str]) -> Any:
    from hypercode.llm.client import Client

    return Client(model_settings(config, environ))


def gate_for(
    config: Config,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    ask: Asker | None = None,
    notify: Callable[[str], None] | None = None,
) -> Gate:
    """The gate of a session: path guard, rules and mode.  Raises ConfigError for a rule or folder that cannot be."""

    def rules(key: str) -> list[Rule]:
        try:
            return [parse_rule(text) for text in getattr(config, key)]
        except ValueError as error:
            raise ConfigError(str(error), file=config.sources[key], key=key) from None

    home = Path(environ.get("HOME") or Path.home())
    roots = [_workspace(Path(d).expanduser()) for d in config.add_dirs]
    folders = Folders.of(environ)
    files = FileGuard(
        _workspace(cwd),
        extra_roots=roots,
        home=home,
        own=folders.own,
        readable=[folders.cache / "outputs"],
        pending=folders.state / "pending",
    )
    return Gate(files, home, Mode(config.mode), rules("allow"), rules("deny"), ask=ask, notify=notify)


def _workspace(folder: Path) -> Path:
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    return folder.resolve()
