"""The parts of a session, each made from the configuration: the gate, the model's settings, what must stay secret."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hypercode.config import OPENROUTER_URL, Config, Folders, is_loopback, load, pick_key
from hypercode.errors import ConfigError
from hypercode.llm.settings import ModelSettings
from hypercode.safety.approval import Asker, Gate, Mode
from hypercode.safety.paths import FileGuard
from hypercode.safety.rule_store import RuleStore
from hypercode.safety.rules import Rule, parse_rule
from hypercode.safety.trust import Trust, TrustState

__all__ = ["configuration", "gate_for", "model_settings", "secrets_of", "workspace_of"]


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
    roots = [workspace_of(Path(d).expanduser()) for d in config.add_dirs]
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
    extra |= {k: v for k in ("provider", "reasoning", "cache_control", "session_id") if (v := getattr(config, k))}
    return ModelSettings(
        base_url=config.base_url,
        api_key=key,
        model=config.model,
        fallbacks=tuple(config.models),
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


def secrets_of(config: Config, environ: Mapping[str, str]) -> Iterable[str]:
    """What must not be written anywhere: every key the program knows, used in this session or not."""
    yield from filter(None, [config.api_key, *(environ.get(v) for v in ("OPENROUTER_API_KEY", "HYPERCODE_API_KEY"))])
    yield from (str(value) for value in config.headers.values())


def workspace_of(folder: Path) -> Path:
    """The folder with its links followed.  Raises ConfigError where it is none."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    return folder.resolve()
