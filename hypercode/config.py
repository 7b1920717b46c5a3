"""Configuration: flags over environment over project file over user file over defaults.

The files are TOML read into one dataclass; an unknown key is an error that names file and key.  A project's file is
only ever read once its folder is trusted, and then only for what its fields allow (`project`): it may choose a model or
tighten, never loosen.  A key is only ever sent to the base URL it belongs to.
"""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hypercode.config_file import parse_toml, read_toml
from hypercode.errors import ConfigError

__all__ = [
    "OPENROUTER_URL",
    "Config",
    "Folders",
    "current_folder",
    "example",
    "is_loopback",
    "load",
    "pick_key",
    "setting_names",
]

OPENROUTER_URL = "https://openrouter.ai/api/v1"
_MODES = ("ask", "edits", "plan", "auto")


def _key(
    doc: str, default: Any, *, project: str = "", choices: tuple[str, ...] = (), least: float | None = None
) -> Any:
    """A key: its documentation, and whether a trusted project may `choose` or only `add` to it."""
    metadata = {"doc": doc, "project": project, "choices": choices, "least": least}
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(slots=True)
class Config:
    """Every setting with its default; `sources` says where each value came from, `notices` what was ignored."""

    model: str = _key("The model, as the server names it.", "openrouter/auto", project="choose")
    models: list[str] = _key("Models to try, in this order, when the first cannot answer.", [], project="choose")
    base_url: str = _key("The server: OpenRouter or any OpenAI-compatible base URL.", OPENROUTER_URL)
    api_key: str = _key("The key for base_url; better kept in the environment. Keep this file private.", "")
    local: bool = _key(
        "A model on this machine instead of base_url: a server that is found, else the embedded one.", False
    )
    local_model: str = _key("With local: a GGUF file for the embedded server; no other one is looked for then.", "")
    local_ports: list[int] = _key("Where local looks for model servers, on 127.0.0.1.", [11434, 1234, 8080, 8000])
    mode: str = _key("How much runs unasked: ask, edits, plan or auto.", "ask", choices=_MODES)
    sandbox: bool = _key("Run commands in the sandbox where there is one.", True)
    allow: list[str] = _key('Commands that run unasked, as first words: "git log".', [])
    deny: list[str] = _key("Commands that never run, as first words.", [], project="add")
    add_dirs: list[str] = _key("Further folders that the tools may use like the workspace.", [])
    keep_env: list[str] = _key("Environment variables that commands get beside the usual ones.", [])
    max_turns: int = _key("Model calls for one task.", 50, least=1)
    max_cost: float | None = _key(
        "USD of a session that the next call must not pass; a call is taken to cost what the last one did.",
        None,
        least=0,
    )
    timeout: float | None = _key("Seconds after which a task stops.", None, least=0.001)
    first_event_timeout: float = _key(
        "Seconds to wait for the first event of a reply; idle_timeout where only that is set.", 120.0, least=0.001
    )
    idle_timeout: float = _key("Seconds of silence after which a reply counts as broken off.", 90.0, least=0.001)
    max_retries: int = _key("Further tries after a passing failure, while nothing was shown.", 4, least=0)
    max_tokens: int | None = _key("Limit of tokens for one reply; the server's own where unset.", None, least=1)
    temperature: float | None = _key(
        "Sampling temperature; the server's own where unset.", None, project="choose", least=0
    )
    vi: bool = _key("Vi keys in the input line.", False)
    plain: bool = _key("No colours, no live region: plain lines.", False)
    headers: dict[str, Any] = _key("Further HTTP headers for each request.", {})
    cache_control: dict[str, Any] = _key('Prompt caching, where it is not automatic: {type = "ephemeral"}.', {})
    session_id: str = _key("Keeps one provider for a conversation on OpenRouter; empty: none is sent.", "")
    provider: dict[str, Any] = _key("OpenRouter's routing preferences, sent as they are.", {})
    reasoning: dict[str, Any] = _key('Reasoning settings, sent as they are: {effort = "high"}.', {}, project="choose")
    extra_body: dict[str, Any] = _key("Further fields for each request, sent as they are.", {})
    listeners: list[str] = _key("Listeners as module:attach of installed packages; attach gets the bus.", [])
    trace: bool = _key("Write each session's spans to a file, and to OpenTelemetry where that is set up.", False)
    trace_content: bool = _key("Let the spans also say what was said, read and run.", False)
    profiles: dict[str, Any] = _key("Named sets of the keys above; choose one with --profile.", {})
    sources: dict[str, str] = field(default_factory=dict, metadata={"internal": True})
    notices: list[str] = field(default_factory=list, metadata={"internal": True})

    def __post_init__(self) -> None:
        self.sources = self.sources or dict.fromkeys(_FIELDS, "default")

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], **flags: Any) -> Config:
        """The configuration of the user's file and environment, with `flags` over both.  Raises ConfigError."""
        return load(flags=flags, environ=environ, user_file=Folders.of(environ).config_file)


_FIELDS = {f.name: f for f in fields(Config) if not f.metadata.get("internal")}
_TYPES = typing.get_type_hints(Config)

ENVIRONMENT = {"HYPERCODE_MODEL": "model", "HYPERCODE_BASE_URL": "base_url"}


@dataclass(frozen=True, slots=True)
class Folders:
    """Where hypercode keeps its own files: the user's configuration file, state and cache folders."""

    config_file: Path
    state: Path
    cache: Path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Folders:
        """The platform's folders, or those below `HYPERCODE_HOME`; `HYPERCODE_CONFIG` names another file."""
        own_file = environ.get("HYPERCODE_CONFIG")
        if home := environ.get("HYPERCODE_HOME"):
            base = Path(home).expanduser().absolute()
            found = cls(base / "config.toml", base / "state", base / "cache")
        else:
            import platformdirs

            found = cls(
                Path(platformdirs.user_config_dir("hypercode", False)) / "config.toml",
                Path(platformdirs.user_state_dir("hypercode", False)),
                Path(platformdirs.user_cache_dir("hypercode", False)),
            )
        return cls(Path(own_file).expanduser().absolute(), found.state, found.cache) if own_file else found

    @property
    def own(self) -> tuple[Path, ...]:
        """What no tool may ever write."""
        return (self.config_file, self.config_file.parent, self.state, self.cache)


def load(
    *,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    user_file: Path,
    project: tuple[Path, bytes] | None = None,
    profile: str | None = None,
) -> Config:
    """The effective configuration.  Raises ConfigError naming file and key.

    `flags` holds what was given on the command line (None: not given); list flags add to the files' lists.
    `project` is a project's file with the content that the person trusted.
    """
    config = Config()
    user = read_toml(user_file)
    _apply(config, user, str(user_file))
    if profile is not None:
        _apply_profile(config, profile, user_file)
    config.notices += _faults_of_profiles(config.profiles, user_file, chosen=profile)
    if project is not None:
        _apply_project(config, parse_toml(project[1], project[0]), project[0])
    for variable, key in ENVIRONMENT.items():
        if environ.get(variable):
            _set(config, key, environ[variable], variable)
    for key, value in flags.items():
        if value is None or value == []:
            continue
        if isinstance(value, list):
            value = [*getattr(config, key), *value]
        _set(config, key, value, "--add-dir" if key == "add_dirs" else f"--{key.replace('_', '-')}")
    _settle_local(config)
    _check_url(config)
    return config


def pick_key(config: Config, environ: Mapping[str, str]) -> str | None:
    """The key that belongs to the effective base URL, or None.

    `OPENROUTER_API_KEY` belongs to OpenRouter alone; `HYPERCODE_API_KEY` to the base URL the environment names, else the
    file's, else the effective one; the file's key to the file's base URL.
    """
    file_url = config.sources.get("file base_url", OPENROUTER_URL)
    if key := environ.get("HYPERCODE_API_KEY"):
        owner = environ.get("HYPERCODE_BASE_URL") or config.sources.get("file base_url") or config.base_url
        if _same_server(owner, config.base_url):
            return key.strip()
    if (key := environ.get("OPENROUTER_API_KEY")) and _same_server(config.base_url, OPENROUTER_URL):
        return key.strip()
    if config.api_key and _same_server(file_url, config.base_url):
        return config.api_key.strip()
    return None


def is_loopback(url: str) -> bool:
    """Whether the URL's host is this machine."""
    host = (urlsplit(url).hostname or "").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def current_folder() -> Path:
    """The folder hypercode was started in.  Raises ConfigError where it was deleted meanwhile."""
    try:
        return Path.cwd()
    except OSError:
        raise ConfigError("the current folder is gone; change to one that exists") from None


def setting_names() -> list[str]:
    """The names of all settings, in the order of the example file."""
    return list(_FIELDS)


def example() -> str:
    """The text of `config.example.toml`: every key with its default."""
    lines = ["# hypercode: every setting with its default. `hypercode config path` says where the file is read.", ""]
    for name, f in _FIELDS.items():
        default = f.default_factory() if callable(f.default_factory) else f.default
        if name == "profiles":
            lines += [
                f"# {f.metadata['doc']}",
                "# [profiles.local]",
                '# base_url = "http://127.0.0.1:8080/v1"',
                '# model = "local"',
            ]
            continue
        lines.append(f"# {f.metadata['doc']}")
        lines += [f"# {name} =" if default is None else f"# {name} = {_toml(default)}", ""]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "{}"
    return str(value)


def _apply(config: Config, values: Mapping[str, Any], file: str, prefix: str = "") -> None:
    for key, value in values.items():
        _set(config, key, value, file, name=prefix + key)
        if key == "base_url":
            config.sources["file base_url"] = value


def _apply_profile(config: Config, profile: str, user_file: Path) -> None:
    known = config.profiles
    if profile not in known:
        raise ConfigError(
            f"there is no profile {profile!r}{_nearest(profile, known)}", file=str(user_file), key="profiles"
        )
    values = known[profile]
    if not isinstance(values, dict) or "profiles" in values:
        raise ConfigError("must be a table of settings", file=str(user_file), key=f"profiles.{profile}")
    if "base_url" in values and "api_key" not in values:
        config.api_key = ""  # the key outside the profile belongs to another server
    if "base_url" in values:
        config.local = False
    _apply(config, values, str(user_file), f"profiles.{profile}.")


def _faults_of_profiles(known: Mapping[str, Any], user_file: Path, *, chosen: str | None) -> list[str]:
    """What is wrong with the profiles that are not chosen, which keeps nobody from working."""
    faults = []
    for profile in known:
        if profile != chosen:
            try:
                _apply_profile(Config(profiles=dict(known)), profile, user_file)
            except ConfigError as error:
                faults.append(str(error))
    return faults


def _apply_project(config: Config, values: Mapping[str, Any], file: Path) -> None:
    for key, value in values.items():
        rule = _FIELDS[key].metadata["project"] if key in _FIELDS else ""
        if not rule:
            config.notices.append(f"{file}: {key} is ignored: a project may only choose model and style, or deny.")
        elif rule == "add":
            _set(config, key, [*getattr(config, key), *_typed(key, value, str(file), key)], str(file))
        else:
            _set(config, key, value, str(file))


def _set(config: Config, key: str, value: Any, source: str, name: str | None = None) -> None:
    setattr(config, key, _typed(key, value, source, name or key))
    config.sources[key] = source


def _typed(key: str, value: Any, source: str, name: str) -> Any:
    """The value if it has the type that the key asks for.  Raises ConfigError."""
    f = _FIELDS.get(key)
    if f is None:
        raise ConfigError(f"there is no such setting{_nearest(key, _FIELDS)}", file=source, key=name)
    wanted = _TYPES[key]
    options = typing.get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)
    kinds = tuple(typing.get_origin(o) or o for o in options)
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise ConfigError(f"must be {_describe(kinds[0])}, not {value!r}", file=source, key=name)
    if key == "headers":
        _check_names(value, source, name)
    if list in kinds:
        _check_items(typing.get_args(options[0])[0], value, source, name)
    if f.metadata["choices"] and value not in f.metadata["choices"]:
        raise ConfigError(f"must be one of {', '.join(f.metadata['choices'])}, not {value!r}", file=source, key=name)
    least = f.metadata["least"]
    if least is not None and value is not None and not value >= least:
        raise ConfigError(f"must be at least {least:g}, not {value!r}", file=source, key=name)
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ConfigError(f"no dates and no infinite numbers, please: {value!r}", file=source, key=name) from None
    return value


def _check_items(kind: type, items: list[Any], source: str, name: str) -> None:
    if kind is str and not all(isinstance(item, str) and item.strip() for item in items):
        raise ConfigError("must be a list of texts, none of them empty", file=source, key=name)
    if kind is int and not all(type(item) is int and 0 < item < 65536 for item in items):
        raise ConfigError("must be a list of port numbers", file=source, key=name)


def _check_names(headers: Mapping[str, Any], source: str, name: str) -> None:
    """Names of headers have no case (RFC 9110, 5.1): of two that differ in nothing else one would be lost."""
    seen: dict[str, str] = {}
    for header in headers:
        if (other := seen.setdefault(header.lower(), header)) != header:
            raise ConfigError(f"{other!r} and {header!r} are the same header; leave one out", file=source, key=name)


def _describe(kind: type) -> str:
    names = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}
    names |= {list: "a list", dict: "a table"}
    return names.get(kind, kind.__name__)


def _nearest(word: str, known: Mapping[str, Any]) -> str:
    import difflib

    close = difflib.get_close_matches(word, list(known), 2)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def _settle_local(config: Config) -> None:
    """Whether a model on this machine is meant: the stronger of the settings that name a server decides."""
    sources = config.sources
    if sources["local_model"] == "--local-model":
        config.local, sources["local"] = True, "--local-model"
    flagged = sources["local"].startswith("--")
    if flagged and sources["base_url"] == "--base-url":
        raise ConfigError("looks for a server itself; leave out --base-url", key=sources["local"])
    if not flagged and sources["base_url"] in ("--base-url", "HYPERCODE_BASE_URL"):
        config.local = False
    if config.local_model and sources["model"] == "--model":
        if sources["local_model"].startswith("--"):
            raise ConfigError(f"not with {config.local_model} (--local-model), itself a model", key="-m")
        config.local_model, sources["local_model"] = "", "--model"


def _check_url(config: Config) -> None:
    try:
        parts = urlsplit(config.base_url)
        named = bool(parts.hostname) and not re.search(r"\s", config.base_url) and parts.port != 0
    except ValueError:
        named = False
    if not named or parts.scheme not in ("http", "https"):
        raise ConfigError(f"{config.base_url!r} is not an http(s) URL", file=config.sources["base_url"], key="base_url")


def _same_server(one: str, other: str) -> bool:
    a, b = urlsplit(one.rstrip("/")), urlsplit(other.rstrip("/"))
    default = {"http": 80, "https": 443}
    return (a.scheme, (a.hostname or "").lower(), a.port or default.get(a.scheme)) == (
        b.scheme,
        (b.hostname or "").lower(),
        b.port or default.get(b.scheme),
    )
