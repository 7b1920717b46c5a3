"""Slash commands about the model and what it sees: /model /reasoning /compact /init /skills /skill."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypercode.errors import ModelError, ToolError
from hypercode.llm import catalog
from hypercode.memory.instructions import init_prompt
from hypercode.messages import Typed
from hypercode.ui import local_pick, render
from hypercode.ui.clean import clean
from hypercode.ui.commands import command, occupied, say
from hypercode.ui.hooks import MARKED

if TYPE_CHECKING:
    from hypercode.llm.catalog import Catalog
    from hypercode.ui.repl import Chat

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "off")

__all__ = ["compact", "init", "learn_window", "model", "reasoning", "skill", "skills"]


async def learn_window(chat: Chat) -> None:
    """Ask the catalog how much the model can take, for the meter; a server without a list is no failure."""
    if await local_pick.watch(chat):
        return  # its window is known
    found = await _catalog(chat, quiet=True)
    chat.app.use_window(found.find(chat.app.config.model) if found else None)
    chat.refresh()


async def _catalog(chat: Chat, *, quiet: bool = False) -> Catalog | None:
    client = chat.app.client
    if client is None:
        return None
    try:
        found = await catalog.load(client.get_json, chat.app.config.base_url, chat.app.folders.cache)
    except ModelError as error:
        if not quiet:
            say(chat, f"! The model list could not be read: {clean(str(error))}")
        return None
    if not quiet:
        say(chat, *(f"! {clean(notice)}" for notice in found.notices)) if found.notices else None
    return found


@command
async def model(chat: Chat, argument: str) -> None:
    """Choose a model from the server's list, or name one: /model WORDS."""
    if chat.app.client is None:
        say(chat, f"model: {clean(chat.app.config.model, 'filename')}")
        return
    found = await _catalog(chat)
    name = argument
    if found is not None and found.models and (not argument or found.find(argument) is None):
        fitting = catalog.search(found.models, argument)
        if fitting:
            place = await _pick(chat, catalog.table(fitting))
            if place is None:
                return
            name = fitting[place].id
    if name:
        _use(chat, name, model=name)
        entry = found.find(name) if found else None
        chat.app.use_window(entry)
        if entry is None and found is not None and found.models:
            say(chat, f"! The server's list has no {clean(name, 'filename')!r}; it is asked for nevertheless.")
        chat.refresh()
    say(chat, f"model: {clean(chat.app.config.model, 'filename')}")


async def _pick(chat: Chat, table: list[str]) -> int | None:
    """The place of the chosen row; the table's first line is its head."""
    try:
        head, *lines = (clean(line, "filename") for line in table)
        place: int | None = await chat.screen.pick(" " * MARKED + head, lines)
    except EOFError:
        return None
    return place


def _use(chat: Chat, name: str, **changes: Any) -> None:
    client = chat.app.client
    client.settings = replace(client.settings, **changes)
    if "model" in changes:
        chat.app.config.model = name
        if chat.agent.opened:
            chat.agent.record("model", model=name)


@command
async def reasoning(chat: Chat, argument: str) -> None:
    """Show or set how much the model thinks: /reasoning none, minimal, low, medium, high or xhigh; off leaves it to the server."""
    client = chat.app.client
    if client is None:
        say(chat, "! This model has no settings.")
        return
    body = dict(client.settings.extra_body)
    if argument and argument not in _EFFORTS:
        say(chat, f"! There is no effort {clean(argument, 'filename')!r}; there are {', '.join(_EFFORTS)}.")
        return
    if argument == "off":
        body.pop("reasoning", None)
    elif argument:
        body["reasoning"] = {"effort": argument}
    client.settings = replace(client.settings, extra_body=body)
    effort = (body.get("reasoning") or {}).get("effort", "as the server chooses")
    say(chat, f"reasoning: {clean(str(effort), 'filename')}")


@command
async def compact(chat: Chat, argument: str) -> None:
    """Make the conversation shorter; what will go is said first: /compact [what matters]."""
    if occupied(chat):
        return
    agent, fit = chat.agent, chat.app.fit
    schemas = agent.tools.schemas()
    plan = fit.plan(agent.messages, agent.prompt(), schemas)
    say(chat, *clean(plan.text).split("\n"))
    if not plan.empty:
        chat.work(_compact(chat, argument))


async def _compact(chat: Chat, focus: str) -> None:
    agent = chat.agent
    chat.transcript.now("compacting")
    done = await chat.app.fit.compact(
        agent.messages, agent.prompt(), agent.tools.schemas(), lambda event: None, focus=focus
    )
    say(chat, *(clean(notice) for notice in done.notices))
    if done.summary is None and done.reply is not None and done.reply.cost is not None:
        say(chat, f"Having asked for it cost {render.money(done.reply.cost)}.")
    chat.refresh()


@command
async def init(chat: Chat, argument: str) -> None:
    """Have a first AGENTS.md written from what is really in this folder."""
    chat.submit(Typed(init_prompt(chat.agent.context.workspace), "/init"))


@command
async def skills(chat: Chat, argument: str) -> None:
    """List the skills the model can read on demand."""
    found = chat.app.skills.found
    lines = [f"{name}  {clean(s.description, 'filename')}" for name, s in found.items()]
    say(
        chat, *(lines or ["There are no skills. A folder with a SKILL.md in the configuration's skills folder is one."])
    )


@command
async def skill(chat: Chat, argument: str) -> None:
    """Put a skill to work: /skill NAME [TASK]."""
    name, _, task = argument.partition(" ")
    try:
        chat.submit(Typed(chat.app.skills.invocation(name, task.strip()), f"/skill {argument}"))
    except ToolError as error:
        say(chat, f"! {clean(str(error))}")
