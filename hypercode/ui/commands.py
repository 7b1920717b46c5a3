"""Slash commands: one function each, whose docstring is its help."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from hypercode.budget import counted
from hypercode.findings import verdict
from hypercode.messages import Typed, text_of
from hypercode.safety.approval import Mode
from hypercode.ui import render
from hypercode.ui.clean import clean

if TYPE_CHECKING:
    from hypercode.ui.repl import Chat

__all__ = ["CONTINUE", "SENT", "command", "continue_reply", "discover", "is_command", "names", "occupied", "run", "say"]

Command = Callable[["Chat", str], Awaitable[None]]
_COMMANDS: dict[str, Command] = {}
_ALSO = {"quit": "exit", "q": "exit", "clear": "new", "?": "help"}
"""What people type who come from elsewhere."""
_BARE = ("exit", "quit", "?")

SENT = frozenset({"continue", "init", "skill"})
"""Commands that become a message, which shows them."""

CONTINUE = "Continue exactly where your last reply was cut off; do not repeat what is already there."
"""What is said to the model to go on with a reply that was cut."""

_MESSAGES = """\
@file in a message sends the file with it · @file:10-20 these lines of it · @folder/ its names
!command runs in the shell and is shown to the model · !!command is not"""

KEYS = f"""\
Enter sends · Ctrl-J, Alt-Enter or a trailing \\ makes a new line · Up, Down and Ctrl-R walk the history
Tab completes /commands and @files · Ctrl-G opens $EDITOR · Shift-Tab changes the mode
Ctrl-C stops a reply, clears the line when idle, twice leaves · Ctrl-D on an empty line leaves
At a question Esc or Ctrl-D says no · a letter that answers counts after a short pause, or with Enter
Ctrl-O shows the last folded output whole · Ctrl-L redraws · Ctrl-Z suspends
{_MESSAGES}
A message sent while a reply streams waits above the line; Up takes it back
The time in the status line is that of the reply that is being written, or of the last one"""

PLAIN_KEYS = f"""\
Enter sends · a trailing \\ goes on in a new line
Ctrl-C stops a reply, twice leaves · Ctrl-D on an empty line leaves, at a question it says no
{_MESSAGES}
A message sent while a reply streams goes with the next call to the model"""


def command(function: Command) -> Command:
    """Make a slash command of a function: `add_dir` is /add-dir, `exit_` is /exit."""
    _COMMANDS[function.__name__.strip("_").replace("_", "-")] = function
    return function


def discover() -> None:
    """Load every module that defines commands."""
    for name in ("file_commands", "model_commands", "session_commands"):
        importlib.import_module(f"hypercode.ui.{name}")


def names() -> dict[str, str]:
    """Each command with the first line of its help, sorted."""
    return {name: (f.__doc__ or "").strip().split("\n")[0] for name, f in sorted(_COMMANDS.items())}


def is_command(text: str) -> bool:
    """Whether a line is meant as a command: `/word`, with no further slash in the word, which would be a path; or `exit`."""
    if text.strip() in _BARE:
        return True
    word = text.split(maxsplit=1)[0] if text.strip() else ""
    return word.startswith("/") and "/" not in word[1:] and len(word) > 1


async def run(chat: Chat, text: str) -> None:
    """Run a command line; an unknown command says what is nearest, and stays in the history."""
    word, _, argument = text.strip().removeprefix("/").partition(" ")
    function = _COMMANDS.get(word)
    if function is None and (own := chat.user_commands.found.get(word)):
        chat.submit(Typed(own.expand(argument), text))
        return
    function = function or _COMMANDS.get(_ALSO.get(word, ""))
    if function is None:
        close = difflib.get_close_matches(word, _COMMANDS, 1)
        nearest = f" The nearest is /{close[0]}." if close else ""
        again = "" if chat.plain else "; Up brings the line back"
        say(
            chat,
            f"! There is no command /{clean(word, 'filename')}.{nearest} /help lists them{again}. A blank before the / sends it as text.",
        )
    else:
        if not chat.plain and word not in SENT:  # a plain terminal shows what was typed
            shown = render.user_lines(chat.transcript.style, text.strip())
            chat.transcript.say(shown, kind="command")
        await function(chat, argument.strip())
    if chat.plain and not chat.busy:
        await chat.transcript.settled()
        chat.screen.ready()


def say(chat: Chat, *lines: str) -> None:
    """Draw lines of our own; foreign text in them is clean already."""
    chat.transcript.say(lines)


def occupied(chat: Chat) -> bool:
    """Whether something is running that a command must not run beside; says so."""
    if chat.busy:
        say(chat, "! Something is running; stop it with Ctrl-C first.")
    return chat.busy


@command
async def help_(chat: Chat, argument: str) -> None:
    """Show the commands and keys, or those of one word: /help WORD."""
    if argument:
        _help_about(chat, argument)
    else:
        style = chat.transcript.style
        say(chat, *_listed(chat, names()), "", *(style.dim(line) for line in _keys(chat)))


def _keys(chat: Chat) -> list[str]:
    return (PLAIN_KEYS if chat.plain else KEYS).split("\n")


def _listed(chat: Chat, about: dict[str, str]) -> list[str]:
    """Commands with the first line of their help, in two columns."""
    style, width, margin = chat.transcript.style, chat.screen.columns, max(map(len, names())) + 3
    rows = [render.listed(f"/{n}", text, margin=margin, width=width, style=style) for n, text in about.items()]
    return [row for entry in rows for row in entry]


def _help_about(chat: Chat, word: str) -> None:
    """The whole help of the command of that name, else every command and key in whose line the word is."""
    function = _COMMANDS.get(word.removeprefix("/"))
    if function is not None:
        say(chat, f"/{word.removeprefix('/')}", *(f"  {line.strip()}" for line in (function.__doc__ or "").split("\n")))
        return
    word = word.casefold()
    keys = [key for line in _keys(chat) for key in line.split(" · ") if word in key.casefold()]
    about = {name: text for name, text in names().items() if word in f"/{name}  {text}".casefold()}
    found = [*_listed(chat, about), *keys]
    say(chat, *(found or [f"! Nothing in the help has {clean(word, 'filename')!r}; /help shows all of it."]))


@command
async def mode(chat: Chat, argument: str) -> None:
    """Show the mode, or choose one: /mode ask, edits, plan or auto."""
    if argument in [m.value for m in Mode]:
        chosen = Mode(argument)
        if chosen is Mode.AUTO and not chat.may_choose_auto():
            say(chat, "! Mode auto needs a sandbox, or --no-sandbox at the start: it runs commands unasked.")
            return
        chat.set_mode(chosen)
    elif argument:
        say(chat, f"! There is no mode {clean(argument, 'filename')!r}; there are ask, edits, plan and auto.")
        return
    say(chat, f"mode: {chat.app.gate.mode}")


@command
async def new(chat: Chat, argument: str) -> None:
    """Begin a new conversation; what was said stays on the screen."""
    if occupied(chat):
        return
    chat.app.new_conversation()
    chat.last_turn = None
    chat.app.measure()
    chat.refresh()
    say(chat, "A new conversation begins; the model knows nothing of what stands above.")


@command
async def cost(chat: Chat, argument: str) -> None:
    """Show the tokens and the billed cost of this session."""
    usage = chat.agent.usage
    sent, received = counted(usage, "prompt_tokens") or 0, counted(usage, "completion_tokens") or 0
    cached = counted(usage, "prompt_tokens_details", "cached_tokens")
    from_cache = f", {cached} of those sent from the cache" if cached else ""
    lines = [
        f"turns: {chat.agent.turns}",
        f"tokens: {sent} sent, {received} received{from_cache}",
        f"billed: {render.money(chat.agent.cost)}"
        if chat.agent.cost is not None
        else "billed: the server does not say",
    ]
    say(chat, *lines)


@command
async def context(chat: Chat, argument: str) -> None:
    """Show what fills the context, by part; ~ marks an estimate."""
    style, sizes = chat.transcript.style, chat.app.context_sizes()
    lines = [f"{name:<16} ~{render.count(size):>7} tokens" for name, size in sizes.items()]
    lines.append(f"{'next request':<16} {chat.app.fit.meter.estimated(sum(sizes.values()))}")
    known = counted(chat.last_turn.usage if chat.last_turn else None, "prompt_tokens")
    if known is not None:
        lines.append(style.bold(f"{'last request':<14}  {render.count(known):>7} tokens, as the server counts"))
    say(chat, *lines)


@command
async def retry(chat: Chat, argument: str) -> None:
    """Ask again: the last answer is dropped, what tools did stays."""
    agent = chat.agent
    if occupied(chat):
        return
    dropped = chat.app.drop_answer()
    if not agent.messages:
        say(chat, "! There is nothing to ask again.")
        return
    if dropped:
        say(chat, chat.transcript.style.dim("Asked again; the model no longer has the answer above."))
    chat.answer(None)


@command
async def continue_(chat: Chat, argument: str) -> None:
    """Go on after a reply that was cut; the provider may bill what is sent again."""
    if not chat.agent.messages:
        say(chat, "! There is nothing to continue.")
        return
    if chat.ended_well:
        say(chat, "! The last reply is whole; say what comes next. /retry asks for it again.")
        return
    continue_reply(chat)


@command
async def raw(chat: Chat, argument: str) -> None:
    """Show the source text of the last answer."""
    text = _last_answer(chat)
    say(chat, *clean(text).split("\n")) if text else say(chat, "! There is no answer yet.")


@command
async def copy(chat: Chat, argument: str) -> None:
    """Copy the last answer to the clipboard (by the terminal, OSC 52)."""
    text = _last_answer(chat)
    if text and not chat.plain:
        chat.screen.copy(clean(text))
        say(chat, f"Copied {len(text)} characters, if the terminal allows it.")
    else:
        say(
            chat,
            "! There is no answer yet." if not text else "! A plain terminal has no clipboard; /raw shows the text.",
        )


@command
async def doctor(chat: Chat, argument: str) -> None:
    """Look at key, network, terminal, tools and sandbox; /doctor stream measures a short answer as well."""
    if argument not in ("", "stream"):
        say(chat, "! /doctor, or /doctor stream")
    elif not occupied(chat):
        chat.work(_examine(chat, stream=bool(argument)))


async def _examine(chat: Chat, *, stream: bool) -> None:
    findings = await chat.app.examine(stream=stream)
    style, width = chat.transcript.style, chat.screen.columns
    lines = [line for finding in findings for line in render.finding_lines(style, finding, width)]
    say(chat, *lines, verdict(findings)[1])


@command
async def editor(chat: Chat, argument: str) -> None:
    """Write the message in $EDITOR (Ctrl-G)."""
    chat.screen.edit_draft()


@command
async def exit_(chat: Chat, argument: str) -> None:
    """Leave (Ctrl-D)."""
    chat.leave()


def continue_reply(chat: Chat) -> None:
    """Ask the model to go on with a reply that was cut, whatever has been said since."""
    chat.submit(Typed(CONTINUE, "/continue"))


def _last_answer(chat: Chat) -> str:
    return next((t for m in reversed(chat.agent.messages) if m.get("role") == "assistant" and (t := text_of(m))), "")
