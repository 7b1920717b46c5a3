"""`hypercode models`: the server's model list, searched, as a table or JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from hypercode.config import Config, Folders, pick_key
from hypercode.errors import ModelError
from hypercode.llm import catalog
from hypercode.llm.catalog import Catalog
from hypercode.llm.settings import ModelSettings
from hypercode.parts import model_settings
from hypercode.ui.clean import clean
from hypercode.ui.headless import Output

__all__ = ["list_settings", "show"]


def show(config: Config, words: str, *, environ: Mapping[str, str], refresh: bool, as_json: bool) -> int:
    """Print the models that match every word and return the exit code: 1 where there is no list to look through.

    The list goes to stdout, what is to be said of it to stderr.  Raises ConfigError.
    """
    settings = list_settings(config, environ)
    try:
        found = asyncio.run(_load(settings, Folders.of(environ).cache, refresh=refresh))
    except ModelError as error:
        _say(f"hypercode: {error}")
        return 1
    for notice in found.notices:
        _say(f"warning: {notice}")
    models = catalog.search(found.models, words)
    out = Output(sys.stdout, lambda: None)
    if as_json:
        about = {"base_url": found.base_url, "fetched": found.fetched, "stale": found.stale, "notices": found.notices}
        out.write(json.dumps(about | {"models": [asdict(model) for model in models]}, indent=2) + "\n")
    elif models:
        out.write("".join(f"{clean(line, 'filename')}\n" for line in catalog.table(models)))
    else:
        _say(
            f"No model of {found.base_url} matches {words!r}." if found.models else f"{found.base_url} lists no model."
        )
    return 0


def list_settings(config: Config, environ: Mapping[str, str]) -> ModelSettings:
    """How to ask for the list: without a key where there is none, because most servers give it to everybody."""
    if pick_key(config, environ) is not None:
        return model_settings(config, environ)
    return ModelSettings(base_url=config.base_url, headers={k: str(v) for k, v in config.headers.items()})


async def _load(settings: ModelSettings, folder: Path, *, refresh: bool) -> Catalog:
    from hypercode.llm.client import Client

    client = Client(settings)
    try:
        return await catalog.load(client.get_json, settings.base_url, folder, refresh=refresh)
    finally:
        await client.aclose()


def _say(text: str) -> None:
    print(clean(text), file=sys.stderr)  # noqa: T201
