"""Key and model, looked at over the network: accepted, what is left on it, listed, able to use tools.

The account is asked for at OpenRouter only: `GET /key` (`limit_remaining`, `usage`, `is_free_tier`) and `GET /credits`
(`total_credits`, `total_usage`), as its API reference has them (https://openrouter.ai/docs/api-reference/limits).  Accounts and
bills are tested against servers on this machine that answer in that form, never against a real account.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypercode.config import Config, Folders, pick_key
from hypercode.errors import AuthError, ConfigError, ModelError, ModelUnavailable
from hypercode.findings import Finding
from hypercode.llm import catalog
from hypercode.llm.catalog import Catalog
from hypercode.llm.client import Client
from hypercode.llm.quirks import host_of, is_openrouter
from hypercode.llm.settings import ModelSettings
from hypercode.parts import key_advice, key_source, lacks_key, model_settings

__all__ = ["SECONDS", "account_findings", "connection", "look_at_model"]

SECONDS = 5.0
"""How long the network may take, all questions together."""

_FREE = "free models: 20 requests a minute, 50 a day until credits have been bought"
_NEW_KEY = "Make a new key where this server's keys are made, and set that one."
_NO_KEY = "Set a key for this server, or start it so that it wants none."


def connection(config: Config, environ: Mapping[str, str]) -> tuple[ModelSettings | None, Finding]:
    """How to reach the model, None where that cannot be, and what is to be said of the key."""
    key = pick_key(config, environ)
    if lacks_key(config, environ):
        todo = key_advice(config).replace("this file", str(Folders.of(environ).config_file))
        return None, Finding("key", "problem", f"There is no key for {config.base_url}.", todo)
    try:
        settings = replace(model_settings(config, environ), connect_timeout=SECONDS)
    except ConfigError as error:
        return None, Finding("key", "problem", str(error), "See `hypercode config show`.")
    host = host_of(config.base_url)
    if key is None:
        return settings, Finding("key", "ok", f"{host} is on this machine and needs no key.")
    seen = "" if is_openrouter(config.base_url) else " Whether it is accepted, a request shows: --stream sends one."
    return settings, Finding("key", "ok", f"There is a key for {host}, from {key_source(config, environ)}.{seen}")


async def look_at_model(
    settings: ModelSettings, cache: Path, *, account: bool | None = None, seconds: float = SECONDS
) -> list[Finding]:
    """Whether the key is accepted and the model can be had; within `seconds`, but for the import of the client.

    `account` says whether the server can be asked for the account; without it OpenRouter can.
    """
    account = is_openrouter(settings.base_url) if account is None else account
    client = Client(settings)
    await asyncio.to_thread(client.warm_up)
    try:
        found = await asyncio.gather(
            _bounded(_model(client, cache), "network", settings, seconds),
            *([_bounded(account_findings(client.get_json), "key", settings, seconds)] if account else []),
        )
        return [finding for part in reversed(found) for finding in part]
    finally:
        await client.aclose()


async def _bounded(work: Awaitable[list[Finding]], area: str, settings: ModelSettings, seconds: float) -> list[Finding]:
    host = host_of(settings.base_url)
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        text, todo = f"{host} did not answer within {seconds:g} s.", "Check network, proxy and base_url; try again."
        return [Finding(area, "problem", text, todo)]
    except AuthError as error:
        return [Finding("key", "problem", str(error), _NEW_KEY if settings.api_key else _NO_KEY)]
    except ModelError as error:
        return [Finding(area, "problem", str(error), "`hypercode config show` says where base_url comes from.")]


async def account_findings(get_json: Callable[[str], Awaitable[dict[str, Any]]]) -> list[Finding]:
    """What the account says: whether the key is accepted, what is left, the free tier.  Raises ModelError."""
    key = _data(await get_json("/key"))
    try:
        credits = _data(await get_json("/credits"))
    except ModelError:
        credits = {}  # not every key may see them
    said = ["The key is accepted"]
    if (used := _number(key, "usage")) is not None:
        said.append(f"{used:.2f} USD used with it")
    left = _number(key, "limit_remaining")
    if left is not None:
        said.append(f"{left:.2f} USD of its limit left")
    bought, spent = _number(credits, "total_credits"), _number(credits, "total_usage")
    balance = bought - spent if bought is not None and spent is not None else None
    if balance is not None:
        said.append(f"{balance:.2f} USD of credits left")
    free = key.get("is_free_tier") is True
    if free:
        said.append(f"free tier ({_FREE})")
    empty = any(amount is not None and amount <= 0 for amount in (left, balance))
    if empty:
        todo = "Add credits or raise the key's limit; until then only free models answer (`hypercode models free`)."
        return [Finding("key", "warning", "; ".join(said) + ".", todo)]
    return [Finding("key", "ok", "; ".join(said) + ".")]


def _data(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    data = answer.get("data")
    return data if isinstance(data, dict) else {}


def _number(data: Mapping[str, Any], name: str) -> float | None:
    value = data.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


async def _model(client: Client, cache: Path) -> list[Finding]:
    """Whether the server answers, has the model, and whether that can use tools.  Raises ModelError."""
    settings, failures = client.settings, list[ModelError]()
    host = host_of(settings.base_url)

    async def ask(path: str) -> dict[str, Any]:
        try:
            return await client.get_json(path)
        except ModelError as error:
            failures.append(error)
            raise

    try:
        found = await catalog.load(ask, settings.base_url, cache, refresh=True)
        if failures:
            raise failures[0]  # the list is the one that was kept
    except (AuthError, ModelUnavailable):
        raise
    except ModelError as error:
        todo = "Check base_url; where it is right the model may work all the same: --stream tries it."
        return [Finding("model", "warning", f"{host} answers, but not with a model list: {error}", todo)]
    number = len(found.models)
    answers = Finding("network", "ok", f"{host} answers and lists {number} model{'s' * (number != 1)}.")
    notices = [Finding("network", "warning", notice) for notice in found.notices]
    return [answers, *notices, _listed(found, settings.model)]


def _listed(found: Catalog, name: str) -> Finding:
    model = found.find(name)
    if model is None:
        near = ", ".join(m.id for m in catalog.search(found.models, name.rpartition("/")[2])[:3])
        todo = f"Choose one with -m: {near}." if near else "`hypercode models` lists them; choose one with -m."
        text = f"The server does not list {name}."
        # presets are not listed, and another server may take names that it does not list
        needed = is_openrouter(found.base_url) and not name.startswith("@")
        return Finding("model", "problem" if needed else "warning", text, todo)
    context = f", {model.context:,} tokens of context" if model.context else ""
    if model.tools is False:
        return Finding(
            "model",
            "problem",
            f"{name} cannot use tools.",
            "Choose one that can with -m; `hypercode models` says which.",
        )
    can = "can use tools" if model.tools else "the server does not say whether it can use tools"
    return Finding("model", "ok", f"{name} is there{context}; {can}.")
