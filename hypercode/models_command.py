"""`hypercode models`: the model list of the server, or of those on this machine, searched, as a table or JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hypercode.config import Config, Folders, pick_key
from hypercode.errors import ModelError
from hypercode.llm import catalog
from hypercode.llm.catalog import Catalog
from hypercode.llm.local import find_servers
from hypercode.llm.model_entry import Model
from hypercode.llm.settings import ModelSettings
from hypercode.parts import headers_of, model_settings
from hypercode.ui.clean import clean
from hypercode.ui.headless import Output, write_line

__all__ = ["list_settings", "show"]


def show(config: Config, words: str, *, environ: Mapping[str, str], refresh: bool, as_json: bool) -> int:
    """Print the models that match every word and return the exit code: 1 where there is no list to look through.

    The list goes to stdout, what is to be said of it to stderr.  Raises ConfigError.
    """
    if config.local:
        return _show_local(config, words, as_json=as_json)
    settings = list_settings(config, environ)
    try:
        found = asyncio.run(_load(settings, Folders.of(environ).cache, refresh=refresh))
    except ModelError as error:
        _say(f"hypercode: {error}")
        return 1
    for notice in found.notices:
        _say(f"warning: {notice}")
    models = catalog.search(found.models, words)
    if as_json:
        about = {"base_url": found.base_url, "fetched": found.fetched, "stale": found.stale, "notices": found.notices}
        return _print(json.dumps(about | {"models": [asdict(model) for model in models]}, indent=2) + "\n")
    if not models:
        _say(
            f"No model of {found.base_url} matches {words!r}." if found.models else f"{found.base_url} lists no model."
        )
    return _print(_table(models))


def _show_local(config: Config, words: str, *, as_json: bool) -> int:
    """The models of the servers that answer on this machine; they are asked each time."""
    servers = find_servers(config.local_ports)
    found = [(server, catalog.search(server.models, words)) for server in servers]
    if config.local_model:
        _say(f"warning: not in the list: {config.local_model}, the file that the embedded server would take.")
    if as_json:
        entries: list[dict[str, Any]] = [
            asdict(model) | {"server": server.name, "base_url": server.base_url}
            for server, models in found
            for model in models
        ]
        about: dict[str, Any] = {"base_url": None, "fetched": time.time(), "stale": False, "notices": []}
        return _print(json.dumps(about | {"models": entries}, indent=2) + "\n") or (0 if servers else 1)
    if not servers:
        ports = ", ".join(map(str, config.local_ports))
        _say(f"hypercode: no model server answers on this machine (ports {ports}); local_ports names others.")
        return 1
    code = 0
    for server, models in found:
        if models:
            _say(f"{server.name}:")
            code = code or _print(_table(models))
        else:
            _say(f"{server.name}: no model matches {words!r}." if server.models else f"{server.name}: no model.")
    return code


def _table(models: list[Model]) -> str:
    return "".join(f"{clean(line, 'filename')}\n" for line in catalog.table(models)) if models else ""


def _print(text: str) -> int:
    """Write to stdout and return the exit code: 0 also where its reader is gone, 1 where it cannot be written."""
    out = Output(sys.stdout, lambda: None)
    out.write(text)
    if out.failure:
        _say(f"hypercode: {out.failure.replace('the answer', 'the list')}")
    return 1 if out.failure else 0


def list_settings(config: Config, environ: Mapping[str, str]) -> ModelSettings:
    """How to ask for the list: without a key where there is none, because most servers give it to everybody."""
    if pick_key(config, environ) is not None:
        return model_settings(config, environ)
    return ModelSettings(base_url=config.base_url, headers=headers_of(config))


async def _load(settings: ModelSettings, folder: Path, *, refresh: bool) -> Catalog:
    from hypercode.llm.client import Client

    client = Client(settings)
    try:
        return await catalog.load(client.get_json, settings.base_url, folder, refresh=refresh)
    finally:
        await client.aclose()


def _say(text: str) -> None:
    write_line(sys.stderr, clean(text))
