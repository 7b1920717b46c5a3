"""Slash commands about files and permissions: /diff /undo /redo /trust /permissions /add-dir."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from hypercode.errors import ConfigError
from hypercode.memory.undo import Outcome
from hypercode.messages import put_back
from hypercode.parts import further_folder
from hypercode.safety.rule_store import RuleStore
from hypercode.safety.trust import Trust
from hypercode.tools.diffs import unified
from hypercode.ui import render
from hypercode.ui.clean import clean
from hypercode.ui.commands import command, say
from hypercode.ui.hooks import Choice

if TYPE_CHECKING:
    from hypercode.ui.repl import Chat

__all__ = ["add_dir", "diff", "permissions", "redo", "trust", "undo"]


@command
async def diff(chat: Chat, argument: str) -> None:
    """Show what this conversation changed in files.

    What commands did to links, and to what git ignores, is not in it.
    """
    files = await asyncio.to_thread(chat.app.undo.diff, unified)
    style, width = chat.transcript.style, chat.screen.columns
    lines = [line for text in files for line in ("", *render.diff_lines(style, text, width, limit=200, named=True))]
    say(chat, *(lines or ["Nothing was changed in this conversation."]))


@command
async def undo(chat: Chat, argument: str) -> None:
    """Take back the last step that changed files; right after /new that of the conversation before.

    What a command did to links, and to what git ignores, is not kept and stays; so does what is too large, which is said.
    """
    await _step(chat, lambda: chat.app.undos.undo(chat.app.session), "Taken back")


@command
async def redo(chat: Chat, argument: str) -> None:
    """Do again what was taken back last."""
    await _step(chat, lambda: chat.app.undos.redo(chat.app.session), "Done again")


async def _step(chat: Chat, act: Callable[[], Outcome], word: str) -> None:
    if chat.agent.running:
        say(chat, "! A reply is being written; stop it with Ctrl-C first.")
        return
    done = await asyncio.to_thread(act)
    lines = []
    if done.step is not None:
        told = word if done.restored else f"Not {word.lower()}"
        lines.append(f"{told}: {clean(done.step.label, 'filename')}")
    lines += [f"  {clean(path, 'filename')}" for path in done.restored]
    lines += [f"  not {clean(path, 'filename')}: {clean(why)}" for path, why in done.refused]
    say(chat, *lines, *(f"! {clean(note)}" for note in done.notes))
    if done.restored:
        chat.agent.tell(put_back(word, done.restored))


@command
async def trust(chat: Chat, argument: str) -> None:
    """Show what this folder brings (settings, instructions, skills) and accept it; /trust off takes that back."""
    folder, folders = chat.agent.context.workspace, chat.app.folders
    keeper = Trust(folders.state, own=folders.own)
    if argument == "off":
        keeper.revoke(folder)
        chat.app.trust_changed()
        say(chat, "This folder is not trusted any more.")
        return
    items = await asyncio.to_thread(keeper.describe, folder)
    if not items:
        say(chat, "This folder brings nothing that needs your trust.")
        return
    style = chat.transcript.style
    lines = [style.bold("Use what this folder brings? It advises the model; it never permits anything.")]
    for item in items:
        lines.append(
            style.bold(f"{item.kind}: {clean(str(item.path), 'filename')}{' (as before)' if item.known else ''}")
        )
        lines += clean(f"{item.path.name} {item.error}" if item.error else item.text, "approval").split("\n")
    try:
        answer = await chat.screen.ask(lines, [Choice("y", "yes, this content"), Choice("n", "no")])
    except EOFError:
        return
    if answer.key != "y":
        say(chat, "Nothing of it is used.")
        return
    await asyncio.to_thread(keeper.grant, folder, items)
    chat.app.trust_changed()
    say(chat, "Trusted, as it stands; a change of it asks again. Its settings count from the next start.")


@command
async def permissions(chat: Chat, argument: str) -> None:
    """Show the mode, the rules and where they come from; /permissions remove RULE forgets a saved one."""
    store = RuleStore(chat.app.folders.config_file.parent / "rules")
    workspace, gate = chat.agent.context.workspace, chat.app.gate
    word, _, rule = argument.partition(" ")
    if word == "remove":
        found = store.remove(workspace, rule.strip())
        gate.allow = [r for r in gate.allow if str(r) != rule.strip()]
        say(chat, f"Forgotten: {clean(rule, 'filename')}" if found else f"! No saved rule {clean(rule, 'filename')!r}.")
        return
    saved = set(store.allow(workspace))
    allowed = [f"  {r}{'  (saved for this folder)' if str(r) in saved else ''}" for r in gate.allow]
    say(
        chat,
        f"mode: {gate.mode} · {chat.app.box_said or 'Sandbox: being looked for'}",
        "run unasked, beside what is plainly harmless:",
        *(allowed or ["  nothing"]),
        "never run:",
        *([f"  {r}" for r in gate.deny] or ["  nothing"]),
        "folders: " + ", ".join(clean(str(root), "filename") for root in gate.files.roots),
    )


@command
async def add_dir(chat: Chat, argument: str) -> None:
    """Let the tools use a further folder like the workspace: /add-dir FOLDER."""
    if not argument:
        say(chat, "! Which folder? /add-dir FOLDER")
        return
    try:
        folder = further_folder(argument)
    except ConfigError as error:
        say(chat, f"! {clean(str(error))}")
        return
    chat.app.gate.files.add_root(folder)
    await asyncio.to_thread(chat.app.probe_box)
    say(chat, f"The tools may use {clean(str(folder), 'filename')} from now on.")
