"""The parts of a session, each made from the configuration: the gate, the model's settings, what must stay secret."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypercode.config import OPENROUTER_URL, Config, Folders, is_loopback, load, pick_key
from hypercode.errors import ConfigError
from hypercode.llm.settings import ModelSettings
from hypercode.memory.instructions import Instructions
from hypercode.memory.skills import Skills
from hypercode.memory.skills import load as load_skills
from hypercode.safety.approval import Asker, Gate, Mode
from hypercode.safety.own_process import KEY_VARIABLES
from hypercode.safety.paths import FileGuard
from hypercode.safety.rule_store import RuleStore
from hypercode.safety.rules import Rule, parse_rule
from hypercode.safety.secret_names import secret_kind, secret_value
from hypercode.safety.trust import Trust, TrustState
from hypercode.tools.base import Tool, Toolbox
from hypercode.tools.skill import skill_tool

if TYPE_CHECKING:
    from hypercode.llm.client import Client
    from hypercode.local_model import LocalModel
    from hypercode.memory.undo import Undo

__all__ = [
    "client_for",
    "configuration",
    "further_folder",
    "gate_for",
    "headers_of",
    "key_advice",
    "key_source",
    "keys_of",
    "lacks_key",
    "memory_for",
    "model_settings",
    "secrets_of",
    "toolbox_for",
    "undo_for",
    "workspace_of",
]


_KEY = re.compile(r"[\x21-\x7e]+")
_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_HEADER_VALUE = re.compile(r"|[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?")
_FRAMING = frozenset({"content-length", "transfer-encoding"})


def configuration(environ: Mapping[str, str], cwd: Path, profile: str | None = None, **flags: Any) -> Config:
    """The effective configuration in a folder: a trusted project's settings are among it.  Raises ConfigError."""
    folders = Folders.of(environ)
    project, notices = _project(folders, workspace_of(cwd))
    config = load(flags=flags, environ=environ, user_file=folders.config_file, project=project, profile=profile)
    config.notices += notices
    return config


def _project(folders: Folders, workspace: Path) -> tuple[tuple[Path, bytes] | None, list[str]]:
    """What a trusted project's settings say; for one that is not trusted, a notice that it brings something."""
    trust = Trust(folders.state, own=folders.own)
    if trust.of(workspace) is not TrustState.TRUSTED:
        names = ", ".join(os.path.relpath(path, workspace) for path in trust.present(workspace)[:5])
        notice = f"This folder is not trusted; not used: {names}. /trust in the chat shows what they say."
        return None, [notice] if names else []
    settings = next((item for item in trust.accepted(workspace) if item.kind == "settings"), None)
    if settings is None:
        return None, []
    if settings.error:
        raise ConfigError(settings.error, file=str(settings.path))
    return (settings.path, settings.data or b""), []


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
    roots = [further_folder(d, config.sources["add_dirs"]) for d in config.add_dirs]
    folders = Folders.of(environ)
    files = FileGuard(
        workspace_of(cwd),
        extra_roots=roots,
        home=home,
        own=folders.own,
        readable=[folders.cache / "outputs", folders.config_file.parent / "skills"],
        pending=folders.state / "pending",
    )
    store = RuleStore(folders.config_file.parent / "rules")

    def save(rule: str) -> None:
        try:
            store.add(files.workspace, rule)
        except (ConfigError, ValueError) as error:
            if notify is not None:
                notify(f"The rule could not be saved: {error}")

    allow = [*rules("allow"), *(parse_rule(text) for text in store.allow(files.workspace))]
    config.notices += store.notices
    return Gate(files, home, Mode(config.mode), allow, rules("deny"), ask=ask, save_rule=save, notify=notify)


def client_for(config: Config, environ: Mapping[str, str]) -> tuple[Client, LocalModel | None]:
    """The connection to the model, and what is known of it where it is one on this machine.  Raises ConfigError."""
    if config.local:
        from hypercode.local_model import connect

        local = connect(config, environ)
        return local.client, local
    from hypercode.llm.client import Client

    return Client(model_settings(config, environ)), None


def memory_for(
    config: Config, folders: Folders, workspace: Path, earlier: Instructions | None = None
) -> tuple[Instructions, Skills]:
    """What the person wrote down for the model, and what a trusted project did; `earlier` was used in this session before."""
    trust, own = Trust(folders.state, own=folders.own), folders.config_file.parent
    accepted, trusted = trust.accepted(workspace), trust.of(workspace) is TrustState.TRUSTED
    known = trust.known(workspace)
    instructions = Instructions(workspace, user_folder=own, accepted=accepted, trusted=trusted, known=known)
    if earlier is not None:
        instructions.look_again(earlier)
    skills = load_skills([own / "skills"], accepted, trusted=trusted)
    config.notices += [*trust.notices, *instructions.notices, *skills.notices]
    return instructions, skills


def toolbox_for(skills: Skills, local: LocalModel | None, own: Iterable[Tool] = ()) -> Toolbox:
    """The tools that the model gets: those of the program, that for skills, the person's `own`; a small model gets few."""
    tools = Toolbox.discover().plus(skill_tool(skills), *own)
    return local.tools(tools) if local is not None else tools


def model_settings(config: Config, environ: Mapping[str, str]) -> ModelSettings:
    """What the model connection needs.  Raises ConfigError where the key is missing or would travel in the clear."""
    key = pick_key(config, environ)
    if lacks_key(config, environ):
        file = Folders.of(environ).config_file
        made = "" if file.exists() else ", which `hypercode config init` makes"
        advice = key_advice(config).replace("in this file", f"in this file{made}")
        raise ConfigError(f"there is no key for {config.base_url}: {advice}", file=str(file), key="api_key")
    if key is not None and _in_the_clear(config):
        why = "a key is not sent over plain http: use https, or take the key away for a server that needs none"
        raise ConfigError(why, file=config.sources["base_url"], key="base_url")
    if key is not None and not _KEY.fullmatch(key):
        raise ConfigError(
            f"the key for {config.base_url} has blanks or characters in it that no key has; copy it again",
            key=next((name for name in KEY_VARIABLES if environ.get(name, "").strip() == key), "api_key"),
        )
    extra = dict(config.extra_body)
    extra |= {k: v for k in ("provider", "reasoning", "cache_control", "session_id") if (v := getattr(config, k))}
    return ModelSettings(
        base_url=config.base_url,
        api_key=key,
        key_from=key_source(config, environ),
        model=config.model,
        fallbacks=tuple(config.models),
        headers=headers_of(config),
        extra_body=extra,
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        first_event_timeout=_first_event_timeout(config),
        idle_timeout=config.idle_timeout,
        max_retries=config.max_retries,
    )


def headers_of(config: Config) -> dict[str, str]:
    """The further headers of each request.  Raises ConfigError for one that no request can carry (RFC 9110, 5.1 and 5.5)."""
    return {name: _header(name, value, config.sources["headers"]) for name, value in config.headers.items()}


def _header(name: str, value: Any, source: str) -> str:
    key = f"headers.{name}" if _HEADER_NAME.fullmatch(name) else f"headers.{json.dumps(name)}"
    if not _HEADER_NAME.fullmatch(name):
        why = "is no name of an HTTP header: only letters, digits and !#$%&'*+-.^_`|~, without blanks"
        raise ConfigError(why, file=source, key=key)
    if name.lower() in _FRAMING:
        raise ConfigError("is set for each request by itself; leave it out", file=source, key=key)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError("must be a text", file=source, key=key)
    if not _HEADER_VALUE.fullmatch(str(value)):
        why = "has a value that no HTTP header can carry: one line of ASCII characters, no blank at either end"
        raise ConfigError(why, file=source, key=key)
    return str(value)


def lacks_key(config: Config, environ: Mapping[str, str]) -> bool:
    """Whether the base URL's server needs a key and there is none; one on this machine, or one that would get none, does not."""
    return not (is_loopback(config.base_url) or _in_the_clear(config)) and pick_key(config, environ) is None


def _in_the_clear(config: Config) -> bool:
    """Whether what is sent could be read on the way."""
    return config.base_url.startswith("http://") and not is_loopback(config.base_url)


def key_source(config: Config, environ: Mapping[str, str]) -> str:
    """Where the key for the base URL comes from, a variable or the file; empty where there is none."""
    if (key := pick_key(config, environ)) is None:
        return ""
    found, file = next((n for n in KEY_VARIABLES if environ.get(n, "").strip() == key), None), config.sources["api_key"]
    return found or (f"api_key in {file}" if os.sep in file else "api_key")


def key_advice(config: Config) -> str:
    """What to do where there is no key for the server."""
    variable = "OPENROUTER_API_KEY" if config.base_url == OPENROUTER_URL else "HYPERCODE_API_KEY"
    return f"export {variable}=…, or set it in this file; a model on this machine needs none: --local"


def _first_event_timeout(config: Config) -> float:
    """Whoever chose an idle limit and no other for the first event means both."""
    sources = config.sources
    if sources["first_event_timeout"] == "default" and sources["idle_timeout"] != "default":
        return config.idle_timeout
    return config.first_event_timeout


def secrets_of(config: Config, environ: Mapping[str, str]) -> Iterable[str]:
    """What must not be written anywhere: every key the program knows, used in this session or not."""
    yield from filter(None, [config.api_key, *(environ.get(v) for v in KEY_VARIABLES)])
    yield from (str(value) for value in config.headers.values())


def keys_of(config: Config, environ: Mapping[str, str]) -> Iterable[str]:
    """What must not be seen anywhere either: the keys, and those headers that carry one, with and without their scheme."""
    yield from filter(None, [config.api_key, *(environ.get(v) for v in KEY_VARIABLES)])
    for name, value in config.headers.items():
        words = str(value).split()
        if secret_kind(name) or any(secret_value(word, quoted=True, strict=True) for word in words):
            yield from (str(value), *words[-1:])


def undo_for(
    folders: Folders, files: FileGuard, session: str, *, notify: Callable[[str], object], said: set[str]
) -> Undo:
    """What takes the changes of a session back; what is in `said` was said before, and more is added to it."""
    from hypercode.memory.undo import Undo  # a question and its answer need none

    state = folders.state
    store, pending = state / "undo", state / "pending"
    return Undo(store, files, session=session, skip=folders.own, pending=pending, notify=notify, said=said)


def further_folder(name: str, source: str | None = None) -> Path:
    """A folder that the tools may use like the workspace, links followed.  Raises ConfigError where it cannot be one."""
    folder = Path(os.path.expanduser(name))
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder", file=source, key=source and "add_dirs")
    real = folder.resolve()
    if str(real) in ("/", "/dev") or real.parts[:2] in (("/", "proc"), ("/", "sys")):
        what = "the whole disk" if real == Path("/") else "the kernel's, not a disk's"
        why = f"{folder} is {what}: no sandbox could hold it and no undo take it back; name the folders that are meant"
        raise ConfigError(why, file=source, key=source and "add_dirs")
    return real


def workspace_of(folder: Path) -> Path:
    """The folder with its links followed.  Raises ConfigError where it is none."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    return folder.resolve()
