"""Slash commands around saved conversations, and how one that goes on is shown."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from hypercode.errors import ConfigError
from hypercode.memory.export import FORMATS, save
from hypercode.memory.sessions import heads
from hypercode.memory.shorten import is_note
from hypercode.messages import is_report, spoken, text_of
from hypercode.ui import local_pick, render
from hypercode.ui.clean import clean
from hypercode.ui.commands import command, continue_reply, occupied, say
from hypercode.ui.hooks import Choice, matching
from hypercode.ui.session_line import session_line

if TYPE_CHECKING:
    from hypercode.memory.history import Loaded
    from hypercode.memory.unfinished import Unfinished
    from hypercode.ui.repl import Chat

__all__ = ["begin", "go_on", "offer"]

_CONTINUE = Choice("c", "continue")
_DROP = Choice("d", "drop it, its message back in the input line")
_LATER = Choice("l", "leave it as it is")
_LISTED = 8


# -- going on with one ----------------------------------------------------------------


def begin(chat: Chat, name: str | None, *, pick: bool) -> Loaded | None:
    """At the start of a chat: go on with the session of that name (the last one for an empty name).

    None where nothing is resumed, or where it is picked later.  Raises ConfigError.
    """
    if name is None or pick:
        return None
    return chat.app.resume_conversation(chat.app.saved_conversation(name))


def first(chat: Chat, message: str) -> None:
    """Send a message that came with the command line; a plain terminal, where nobody typed it, shows it."""
    if chat.plain:
        chat.transcript.say(["", *render.user_lines(chat.transcript.style, message)], kind="greeting")
    chat.submit(message)


async def offer(chat: Chat, loaded: Loaded | None, *, pick: bool, message: str) -> None:
    """Once the screen serves keys: show what is gone on with, or the list to pick from; then the first message."""
    await chat.screen.started()
    await local_pick.choose(chat)
    if loaded is not None:
        await _show(chat, loaded, ask=not message)
    elif pick:
        await _pick(chat, "")
    if message:
        first(chat, message)
    if not chat.busy:
        await chat.transcript.settled()
        chat.screen.ready()


async def _show(chat: Chat, loaded: Loaded, *, ask: bool = True) -> None:
    from hypercode.memory.unfinished import unfinished
    from hypercode.ui.replay import draw_last

    chat.last_turn = None
    chat.app.measure()
    chat.refresh()
    draw_last(loaded, chat.transcript)
    left = unfinished(loaded) if chat.app.session == loaded.session else None  # of a copy the original goes on
    if left is not None:
        lines = await _card(chat, loaded, left)
        if ask:
            await _decide(chat, lines)
        else:
            chat.transcript.say(lines, kind="card")
    chat.refresh()


async def _card(chat: Chat, loaded: Loaded, left: Unfinished) -> list[str]:
    """What was going on when the session ended."""
    from hypercode.memory.unfinished import changed_since

    style = chat.transcript.style
    going_on = [f"{left.partial} characters of an answer had come"] if left.partial else []
    going_on += ["the model had been asked, and nothing had come"] if left.asked else []
    changed = await asyncio.to_thread(changed_since, loaded, chat.agent.context.workspace)
    lines = [style.bold("This task was not finished when hypercode ended: ") + _short(left.task)]
    lines += [f"  in flight: {text}" for text in going_on]
    lines += _listed("had finished, is not run again", left.finished)
    lines += [style.yellow(line) for line in _listed("had begun, what it did is not known", left.unknown)]
    lines += _listed("asked for, had not begun", left.not_begun)
    lines += [style.yellow(line) for line in _listed("changed since, of the files it had read or written", changed)]
    tokens = sum(chat.app.context_sizes().values())
    return [*lines, style.dim(f"  the next request sends ~{render.count(tokens)} tokens")]


def _listed(what: str, names: list[str] | tuple[str, ...]) -> list[str]:
    shown = _LISTED + (len(names) == _LISTED + 1)
    more = [f"  … and {len(names) - shown} more"] if len(names) > shown else []
    return [*(f"  {what}: {_short(name)}" for name in names[:shown]), *more]


def _short(text: str) -> str:
    return render.fit(clean(text, "filename"), 200)


async def _decide(chat: Chat, lines: list[str]) -> None:
    await chat.transcript.settled()
    try:
        answer = await chat.screen.ask(lines, [_CONTINUE, _DROP, _LATER])
    except EOFError:
        return
    chat.transcript.say(lines, kind="card")
    if answer.key == _CONTINUE.key:
        go_on(chat)
    elif answer.key == _DROP.key:
        _back_to(chat, _said(chat)[-1])


def go_on(chat: Chat) -> None:
    """Continue an unfinished task: with a word where an answer had begun, else by asking again."""
    if chat.agent.messages[-1].get("role") == "assistant":
        continue_reply(chat)
    else:
        chat.answer(None)


async def _pick(chat: Chat, words: str) -> None:
    app = chat.app
    everywhere = words == "all"
    found = await asyncio.to_thread(heads, app.folders.state, None if everywhere else chat.agent.context.workspace)
    current = getattr(chat.agent.journal, "path", None)
    found = [head for head in found if (head.words or head.name) and head.path != current]
    where = "" if everywhere else "; /resume all: every folder"
    if not found:
        chat.transcript.say([f"! There is no other saved conversation here{where}."])
        return
    title = f"Saved conversations (type to search, Enter, Esc){where}"
    lines = [session_line(head, width=chat.screen.columns, folder=everywhere) for head in found]
    place = await _choose(chat, title, lines, "" if everywhere else words)
    if place is not None:
        await _resume(chat, found[place].path)


async def _resume(chat: Chat, path: Path) -> None:
    if occupied(chat):
        return
    try:
        loaded = chat.app.resume_conversation(path)
    except ConfigError as error:
        chat.app.new_conversation()
        chat.transcript.say([chat.transcript.style.red(f"✗ {line}") for line in clean(str(error)).split("\n")])
        return
    await _show(chat, loaded)


async def _choose(chat: Chat, title: str, lines: list[str], words: str) -> int | None:
    """The place of the line that the person takes; words that only one line has take it at once."""
    found = matching(lines, words) if words else list(range(len(lines)))
    if not found:
        say(chat, f"! None of the {len(lines)} has {clean(words, 'filename')!r} in it.")
    if len(found) < 2 and words:
        return found[0] if found else None
    await chat.transcript.settled()
    try:
        place: int | None = await chat.screen.pick(title, [lines[n] for n in found])
    except EOFError:
        return None
    return None if place is None else found[place]


@command
async def resume(chat: Chat, argument: str) -> None:
    """Go on with a saved conversation: pick it, or /resume WORDS, ID, number; /resume all."""
    if occupied(chat):
        return
    if argument and argument != "all":
        try:
            path = chat.app.saved_conversation(argument)
        except ConfigError:
            pass  # then it is words to look for
        else:
            await _resume(chat, path)
            return
    await _pick(chat, argument)


# -- what is said in one --------------------------------------------------------------


def _said(chat: Chat) -> list[int]:
    """The places of what the person said; no summary, and no report of what a command of theirs did."""
    messages = enumerate(chat.agent.messages)
    return [n for n, m in messages if m.get("role") == "user" and not is_note(m) and not is_report(m)]


def _typed(chat: Chat, places: list[int]) -> dict[int, str]:
    """What the person typed to send the messages at these places: their words, or the commands that they stand for."""
    messages = chat.agent.messages
    said = {place: spoken(text_of(messages[place]))[1] for place in places}
    try:
        loaded = chat.agent.journal.read() if hasattr(chat.agent.journal, "read") else None
    except ConfigError:  # the file is gone, and said so
        loaded = None
    if loaded is not None:
        commands = {record.get("seq"): record["typed"] for record in loaded.records if record.get("typed")}
        users = [place for place, message in enumerate(messages) if message.get("role") == "user"]
        for place, (number, _) in zip(reversed(users), reversed(loaded.starts), strict=False):
            if place in said and number in commands:
                said[place] = str(commands[number])
    return said


def _back_to(chat: Chat, place: int) -> None:
    text = _typed(chat, [place])[place]
    chat.app.rewind(place)
    chat.app.measure()
    later = "\n" + chat.screen.draft if chat.screen.draft else ""
    chat.transcript.say(
        ["Went back to before that message; the files stay as they are, the journal keeps what was said since."]
    )
    chat.refresh()
    chat.screen.draft = text + later


@command
async def rewind(chat: Chat, argument: str) -> None:
    """Go back to before one of your messages; its text returns to the input line."""
    if occupied(chat):
        return
    places = _said(chat)[::-1]
    if not places:
        chat.transcript.say(["! There is nothing to go back to."])
        return
    said = _typed(chat, places)
    lines = [_short(said[place]) for place in places]
    title = "Go back to before which message? (type to search, Enter, Esc)"
    chosen = await _choose(chat, title, lines, argument)
    if chosen is None:
        return
    if chat.busy:
        chat.transcript.say(["! Something has begun to run; stop it with Ctrl-C first."])
        return
    _back_to(chat, places[chosen])


@command
async def name(chat: Chat, argument: str) -> None:
    """Give this conversation a name: /name WORDS."""
    if not argument:
        chat.transcript.say(
            [f"session: {chat.app.session}", "/name WORDS gives it a name; /resume and `hypercode sessions` show it."]
        )
        return
    chat.agent.record("name", name=argument)
    chat.transcript.say([f"This conversation is called {clean(argument, 'filename')!r}."])


@command
async def export(chat: Chat, argument: str) -> None:
    """Write this conversation to a file: /export [FILE.md or FILE.json]."""
    journal = chat.agent.journal
    if not chat.agent.messages or not hasattr(journal, "read"):
        chat.transcript.say(["! There is nothing to export yet."])
        return

    def write() -> Path:
        path = chat.agent.context.workspace / Path(argument or f"hypercode-{chat.app.session}.md").expanduser()
        save(FORMATS["json" if path.suffix == ".json" else "md"](journal.read()), path)
        return path

    try:
        path = await asyncio.to_thread(write)
    except ConfigError as error:
        chat.transcript.say([chat.transcript.style.red(f"✗ {clean(str(error), 'filename')}")])
        return
    chat.transcript.say([f"Written to {clean(str(path), 'filename')}"])
