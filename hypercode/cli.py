"""The command line: commands, options, exit codes.

`main` puts the words in order first (options may stand before or after the command, a sentence is a message), then
Typer parses them.  What a command does is in the modules it calls.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from hypercode.cli_completion import Commands, Group, modes, operations, outputs, sessions
from hypercode.cli_more import Local, LocalModel, config_app, demo, doctor, models, policy_replay
from hypercode.cli_sessions import replay, sessions_app
from hypercode.cli_words import COMMANDS, VALUE_OPTIONS, in_order
from hypercode.config import Config, current_folder
from hypercode.errors import ConfigError

__all__ = ["COMMANDS", "VALUE_OPTIONS", "application", "arrange", "main"]

application = typer.Typer(
    cls=Commands,
    add_completion=True,
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="A coding assistant in the terminal. Without a command, or with a sentence: a chat in this folder."
    " `hypercode chat --help` shows the options of a chat (-m MODEL, --base-url, --mode, -c, -r, --plain, …); they may also"
    " stand before a command.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
policy_app = typer.Typer(cls=Group, help="What would be allowed, and why; runs nothing.", rich_markup_mode=None)
application.add_typer(config_app, name="config")
application.add_typer(policy_app, name="policy")
application.add_typer(sessions_app, name="sessions")
application.command()(replay)
application.command()(models)
application.command()(doctor)
application.command()(demo)
policy_app.command("replay")(policy_replay)

Profile = Annotated[str | None, typer.Option(help="A named set of settings from the configuration file.")]
ModeOption = Annotated[
    str | None, typer.Option(help="How much runs unasked: ask, edits, plan or auto.", autocompletion=modes)
]
Rules = list[str] | None
Allow = Annotated[Rules, typer.Option(help='A command that runs unasked, as first words: "git log".')]
Deny = Annotated[Rules, typer.Option(help="A command that never runs, as first words.")]
AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]

SESSION_OPTIONS: dict[str, tuple[Any, Any]] = {
    "model": (Annotated[str | None, typer.Option("--model", "-m", help="The model, as the server names it.")], None),
    "profile": (Profile, None),
    "base_url": (Annotated[str | None, typer.Option(help="OpenRouter or any OpenAI-compatible server.")], None),
    "local": (Local, None),
    "local_model": (LocalModel, None),
    "mode": (ModeOption, None),
    "allow": (Allow, None),
    "deny": (Deny, None),
    "latest": (
        Annotated[bool, typer.Option("--continue", "-c", help="Go on with the last conversation in this folder.")],
        False,
    ),
    "resume": (
        Annotated[
            str | None,
            typer.Option(
                "--resume",
                "-r",
                metavar="[SESSION]",
                help="Go on with this one; without an id: choose one.",
                autocompletion=sessions,
            ),
        ],
        None,
    ),
    "cwd": (Annotated[Path | None, typer.Option(help="Work in this folder.")], None),
    "add_dir": (Annotated[Rules, typer.Option(help="A further folder that the tools may use.")], None),
    "max_turns": (Annotated[int | None, typer.Option(help="Model calls for one task.")], None),
    "max_cost": (Annotated[float | None, typer.Option(help="USD that a session must not pass.")], None),
    "timeout": (Annotated[float | None, typer.Option(help="Seconds for one task.")], None),
    "idle_timeout": (Annotated[float | None, typer.Option(help="Seconds of silence that break a reply off.")], None),
    "max_retries": (Annotated[int | None, typer.Option(help="Further tries after a passing failure.")], None),
    "no_sandbox": (Annotated[bool, typer.Option("--no-sandbox", help="Run commands with all your rights.")], False),
    "plain": (Annotated[bool, typer.Option("--plain", help="No colours, no live region: plain lines.")], False),
    "debug": (Annotated[bool, typer.Option("--debug", help="Write a log of everything; its path is said.")], False),
}
"""The options that every command with a conversation takes: annotation and default."""


@dataclass(frozen=True, slots=True)
class Session:
    """What the options of a session come to."""

    config: Config
    cwd: Path
    debug: bool
    resume: str | None
    pick: bool


def session_command(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a session; the function gets them as one `Session`, first."""
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in SESSION_OPTIONS.items()
    ]

    @functools.wraps(function)
    def command(*args: Any, **values: Any) -> None:
        options = {name: values.pop(name) for name in SESSION_OPTIONS}
        function(_session(**options), *args, **values)

    signature = inspect.Signature([*(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own), *shared])
    vars(command)["__signature__"] = signature
    command.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return command


def _session(
    *,
    profile: str | None,
    cwd: Path | None,
    debug: bool,
    no_sandbox: bool,
    plain: bool,
    add_dir: Rules,
    latest: bool,
    resume: str | None,
    **flags: Any,
) -> Session:
    if latest and resume is not None:
        raise ConfigError("-c goes on with the last conversation and -r with another one; give one of them", key="-r")
    flags |= {"add_dirs": add_dir, "sandbox": False if no_sandbox else None, "plain": plain or None}
    which = "" if latest else resume.removeprefix("=") if resume is not None else None
    return Session(
        settings(os.environ, profile, cwd, **flags), cwd or current_folder(), debug, which, not latest and which == ""
    )


def main(argv: list[str]) -> int:
    """Run the command line and return the exit code.  Raises ConfigError for wrong use."""
    out = sys.stdout
    try:
        application(args=arrange(argv), prog_name="hypercode", standalone_mode=True)
    except SystemExit as stop:
        if sys.stdout is not out:
            return 0  # the reader is gone: Typer has put something else in its place that fails no more
        return stop.code if isinstance(stop.code, int) else 1
    return 0


def arrange(argv: Sequence[str]) -> list[str]:
    """The words as Typer takes them (`cli_words.in_order`).  Raises ConfigError for a single word that is no command."""
    return in_order(argv, lambda: typer.main.get_command(application))


def settings(environ: Mapping[str, str], profile: str | None, cwd: Path | None = None, **flags: Any) -> Config:
    """The effective configuration for the flags of a command in a folder."""
    from hypercode.parts import configuration

    return configuration(environ, cwd or current_folder(), profile, **flags)


def _version(asked: bool) -> None:
    if asked:
        from hypercode import __version__

        print(f"hypercode {__version__}")  # noqa: T201
        raise typer.Exit


@application.callback(invoke_without_command=True)
def start(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", help="Say which version this is, and exit.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """What stands before every command."""


@application.command()
@session_command
def chat(
    session: Session,
    message: Annotated[list[str] | None, typer.Argument(help="A first message.")] = None,
) -> None:
    """A conversation in this folder."""
    from hypercode import oneshot

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        code = oneshot.run(
            session.config,
            message or [],
            cwd=session.cwd,
            output="text",
            debug=session.debug,
            resume=session.resume,
        )
        raise typer.Exit(code)
    from hypercode.ui import repl

    code = repl.run(
        session.config,
        " ".join(message or []),
        cwd=session.cwd,
        debug=session.debug,
        resume=session.resume,
        pick=session.pick,
    )
    raise typer.Exit(code)


@application.command()
@session_command
def run(
    session: Session,
    task: Annotated[list[str] | None, typer.Argument(help="What to do; - reads it from stdin.")] = None,
    output: Annotated[
        str, typer.Option(help="text, json (one object) or jsonl (the event stream).", autocompletion=outputs)
    ] = "text",
    schema: Annotated[bool, typer.Option("--schema", help="Print the schema of the event stream and exit.")] = False,
) -> None:
    """One task, then exit. Piped stdin is added to the task."""
    from hypercode import oneshot

    if schema:
        oneshot.print_schema()
        return
    code = oneshot.run(
        session.config, task or [], cwd=session.cwd, output=output, debug=session.debug, resume=session.resume
    )
    raise typer.Exit(code)


@policy_app.command("test")
def policy_test(
    command: Annotated[list[str], typer.Argument(help="A shell command after --, in quotes; or its words.")],
    as_json: AsJson = False,
    allow: Allow = None,
    deny: Deny = None,
    mode: ModeOption = None,
) -> None:
    """What would happen with a shell command: its class, or with --mode what that mode makes of it."""
    from hypercode import policy

    config = settings(os.environ, None, allow=allow, deny=deny, mode=mode)
    policy.show_command(
        config, command, cwd=current_folder(), environ=os.environ, with_mode=mode is not None, as_json=as_json
    )


@policy_app.command("path")
def policy_path(
    operation: Annotated[str, typer.Argument(help="read, write, edit, ls, glob or grep.", autocompletion=operations)],
    path: Annotated[str, typer.Argument(help="The path as a tool would be given it.")],
    as_json: AsJson = False,
) -> None:
    """What the file guard says of a path."""
    from hypercode import policy

    policy.show_path(
        settings(os.environ, None), operation, path, cwd=current_folder(), environ=os.environ, as_json=as_json
    )
