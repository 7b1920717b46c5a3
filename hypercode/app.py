"""The composition root: a configuration becomes an agent with its collaborators.

The command line and embedders go through the same door::

    app = build(config, cwd=Path.cwd(), environ=os.environ)
    app.start()
    result = await app.agent.run("What is in here?")
    app.finish(result)
    await app.aclose()
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypercode import __version__, events
from hypercode.agent import Agent, Complete, Limits, Result, exit_code
from hypercode.config import OPENROUTER_URL, Config, Folders, is_loopback, pick_key
from hypercode.errors import ConfigError
from hypercode.events import Bus
from hypercode.llm.settings import ModelSettings
from hypercode.memory.context import system_prompt
from hypercode.process import child_environment
from hypercode.safety.approval import Asker, Gate, Mode
from hypercode.safety.paths import FileGuard
from hypercode.safety.rules import Rule, parse_rule
from hypercode.tools.base import Toolbox, ToolContext

__all__ = ["App", "build", "gate_for", "model_settings"]


@dataclass(slots=True)
class App:
    """A session with everything in it."""

    config: Config
    folders: Folders
    agent: Agent
    gate: Gate
    session: str
    client: Any

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

    def finish(self, result: Result, *, code: int | None = None) -> int:
        """Announce the end of the session and return the exit code (`code` where a signal decided it)."""
        code = exit_code(result) if code is None else code
        agent = self.agent
        self.bus.emit(
            events.SessionEnd(result.outcome, code, agent.turns, agent.usage, agent.cost, agent.refused, result.error)
        )
        return code

    async def aclose(self) -> None:
        """Let queued listeners finish and drop the connections."""
        await self.bus.aclose()
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
    session = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    bus = bus or Bus()
    spill = folders.cache / "outputs" / session
    gate = gate_for(
        config, cwd=cwd, environ=environ, ask=ask, notify=lambda text: bus.emit(events.Notice("warning", text))
    )
    if gate.mode is Mode.AUTO and config.sandbox:
        raise ConfigError(
            "auto runs commands unasked and there is no sandbox; add --no-sandbox to run them with all your rights",
            file=config.sources["mode"],
            key="mode",
        )
    client = None
    if complete is None:
        client = _client(config, environ)
        complete = client.complete
    context = ToolContext(
        files=gate.files,
        spill=spill,
        environment=child_environment(environ, temp=spill, keep=config.keep_env),
    )
    agent = Agent(
        complete=complete,
        tools=Toolbox.discover(),
        context=context,
        approve=gate,
        bus=bus,
        prompt=lambda: system_prompt(gate.files.workspace, plan=gate.mode is Mode.PLAN),
        limits=Limits(config.max_turns, config.max_cost, config.timeout),
    )
    return App(config, folders, agent, gate, session, client)


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
