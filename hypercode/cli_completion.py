"""What a shell offers behind `hypercode` when Tab is pressed; `hypercode --install-completion` tells the shell to ask.
Also the groups of commands, whose `--help` lists what is offered.

The shell starts the command for each Tab, so nothing is imported here that a prompt would need.  A completion is text
that the shell evaluates: only fixed words and session ids are offered, nothing that a model or a file said.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from hypercode.cli_words import behind_subcommand, past_options
from hypercode.errors import ConfigError

__all__ = ["Commands", "Group", "formats", "modes", "operations", "outputs", "sessions"]


_WHOLE = 1000  # characters, more than any command says of itself


class Group(TyperGroup):
    """Commands of which `--help` says the first sentence whole, over as many rows as it takes.

    Where a session is to be named and is not, it is said what lists them.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the words name.  Raises BadParameter for what it cannot take."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            if error.param is not None and error.param.name == "session" and not error.message:
                error.message = "`hypercode sessions` lists those of this folder, with --all those of every folder."
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands with what they do, in the order in which they were made."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, c.get_short_help_str(_WHOLE)) for name, c in commands if c is not None and not c.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


class Commands(Group):
    """The group of all commands, which completes a line in the order in which `cli.arrange` takes its words."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The command stands first for Typer, wherever it stands in a line that is being completed."""
        return super().parse_args(ctx, self._arranged(ctx, args) if ctx.resilient_parsing else args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The commands, and the options of a chat: they need no command."""
        offered = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            return offered
        known = {item.value for item in offered}
        chat = self._chat(ctx)
        within = chat.make_context("chat", [], parent=ctx, resilient_parsing=True)
        return offered + [item for item in chat.shell_complete(within, incomplete) if item.value not in known]

    def _chat(self, ctx: Any) -> Any:
        return self.get_command(ctx, "chat")

    def _arranged(self, ctx: Any, args: list[str]) -> list[str]:
        """The words before the one that is being completed, without the options of a chat that may still get a command."""
        position = past_options(args)
        if position == len(args):
            return []
        name = args[position] if position < len(args) else ""
        if name not in self.commands:
            return ["chat", *args]
        words = [*args[:position], *args[position + 1 :]]
        group = self.commands[name]
        return [name, *(behind_subcommand(words, group) if isinstance(group, Group) else words)]


def modes() -> list[tuple[str, str]]:
    """The modes.  As with all of these, Typer keeps those that begin as the word does."""
    return [
        ("ask", "asks before changes and commands"),
        ("edits", "changes files unasked"),
        ("plan", "changes nothing"),
        ("auto", "runs everything inside the sandbox"),
    ]


def outputs() -> list[tuple[str, str]]:
    """What `run` can print."""
    return [("text", "the answer"), ("json", "one object"), ("jsonl", "every event as a line")]


def formats() -> list[tuple[str, str]]:
    """What a session can be exported as."""
    return [("md", "Markdown"), ("json", "one object")]


def operations() -> list[str]:
    """What the file guard can be asked about."""
    return ["read", "write", "edit", "ls", "glob", "grep"]


def sessions(ctx: typer.Context) -> list[str]:
    """The ids of the sessions of the folder that is meant, the one begun last first."""
    from hypercode.config import Folders, current_folder
    from hypercode.memory.sessions import ids

    try:
        folder = ctx.params.get("cwd") or current_folder()
        return ids(Folders.of(os.environ).state, Path(folder))
    except (ConfigError, OSError):
        return []
