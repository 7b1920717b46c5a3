"""The commands `sessions` and `replay` of the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hypercode.cli_completion import Group, formats, sessions
from hypercode.config import Folders, current_folder, load
from hypercode.errors import ConfigError

__all__ = ["replay", "sessions_app"]

sessions_app = typer.Typer(cls=Group, help="Saved conversations of this folder.", rich_markup_mode=None)

Cwd = Annotated[Path | None, typer.Option(help="The folder whose conversations are meant.")]
Everywhere = Annotated[bool, typer.Option("--all", help="Those of all folders.")]
AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]
Name = Annotated[
    str,
    typer.Argument(help="Its id, the beginning or end of it, or its name.", metavar="SESSION", autocompletion=sessions),
]


def _folder(cwd: Path | None, context: typer.Context | None = None) -> Path:
    """The folder that is meant; an option before the command counts as well.  Raises ConfigError."""
    folder = cwd or (context.obj if context is not None else None) or current_folder()
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder", key="--cwd")
    return folder.resolve()


@sessions_app.callback(invoke_without_command=True)
def sessions_main(
    context: typer.Context, cwd: Cwd = None, everywhere: Everywhere = False, as_json: AsJson = False
) -> None:
    """Saved conversations of this folder."""
    context.obj = cwd
    if context.invoked_subcommand is None:
        sessions_list(context, cwd, everywhere, as_json)


@sessions_app.command("list")
def sessions_list(
    context: typer.Context, cwd: Cwd = None, everywhere: Everywhere = False, as_json: AsJson = False
) -> None:
    """The conversations, the one used last first."""
    from hypercode import sessions_command

    sessions_command.list_sessions(_folder(cwd, context), environ=os.environ, everywhere=everywhere, as_json=as_json)


@sessions_app.command("show")
def sessions_show(context: typer.Context, session: Name, cwd: Cwd = None, as_json: AsJson = False) -> None:
    """A conversation, to read."""
    from hypercode import sessions_command

    sessions_command.show(session, _folder(cwd, context), environ=os.environ, as_json=as_json)


@sessions_app.command("export")
def sessions_export(
    context: typer.Context,
    session: Name,
    file: Annotated[Path | None, typer.Argument(help="A new file, private to you; stdout without it.")] = None,
    kind: Annotated[str, typer.Option("--format", help="md or json.", autocompletion=formats)] = "md",
    cwd: Cwd = None,
) -> None:
    """A conversation as Markdown or JSON."""
    from hypercode import sessions_command

    sessions_command.export(session, _folder(cwd, context), environ=os.environ, kind=kind, file=file)


@sessions_app.command("delete")
def sessions_delete(
    context: typer.Context,
    session: Annotated[list[str], typer.Argument(help="Ids or names.", metavar="SESSION...", autocompletion=sessions)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    cwd: Cwd = None,
) -> None:
    """Delete conversations for good."""
    from hypercode import sessions_command

    sessions_command.delete(session, _folder(cwd, context), environ=os.environ, yes=yes)


def replay(
    session: Name,
    speed: Annotated[float | None, typer.Option(help="How many times as fast as it was.")] = None,
    instant: Annotated[bool, typer.Option("--instant", help="All at once.")] = False,
    step: Annotated[bool, typer.Option("--step", help="Wait for a key before each step.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="No colours, no live region: plain lines.")] = False,
    cwd: Cwd = None,
) -> None:
    """Draw a saved session again, as it was seen."""
    from hypercode import sessions_command

    config = load(
        flags={"plain": plain or None}, environ=os.environ, user_file=Folders.of(os.environ).config_file, profile=None
    )
    sessions_command.replay(config, session, _folder(cwd), environ=os.environ, speed=speed, instant=instant, step=step)
