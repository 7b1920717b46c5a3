"""The commands `models`, `doctor`, `demo` and `policy replay` of the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hypercode.cli_completion import modes, sessions
from hypercode.config import current_folder
from hypercode.errors import ConfigError

__all__ = ["Local", "LocalModel", "demo", "doctor", "models", "policy_replay"]

AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]
Profile = Annotated[str | None, typer.Option(help="A named set of settings from the configuration file.")]
BaseUrl = Annotated[str | None, typer.Option(help="OpenRouter or any OpenAI-compatible server.")]
Model = Annotated[str | None, typer.Option("--model", "-m", help="The model, as the server names it.")]
Local = Annotated[
    bool | None, typer.Option("--local", help="A model on this machine, found or embedded; needs no key.")
]
LocalModel = Annotated[str | None, typer.Option(metavar="FILE", help="A GGUF file for the embedded server.")]
Cwd = Annotated[Path | None, typer.Option(help="The folder that is meant.")]
ModeOption = Annotated[
    str | None, typer.Option(help="How much runs unasked: ask, edits, plan or auto.", autocompletion=modes)
]
NoSandbox = Annotated[bool, typer.Option("--no-sandbox", help="As for a session without the sandbox.")]
Rules = list[str] | None


def _folder(cwd: Path | None) -> Path:
    folder = cwd or current_folder()
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder", key="--cwd")
    return folder.resolve()


def models(
    words: Annotated[list[str] | None, typer.Argument(help="Words that stand in the name.")] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Ask the server, however fresh the list is.")] = False,
    as_json: AsJson = False,
    profile: Profile = None,
    base_url: BaseUrl = None,
    local: Local = None,
    cwd: Cwd = None,
) -> None:
    """The server's models, or with --local those on this machine, with context, prices (USD for a million tokens) and abilities."""
    from hypercode import models_command
    from hypercode.parts import configuration

    config = configuration(os.environ, _folder(cwd), profile, base_url=base_url, local=local)
    text = " ".join(words or [])
    raise typer.Exit(models_command.show(config, text, environ=os.environ, refresh=refresh, as_json=as_json))


def doctor(
    as_json: AsJson = False,
    stream: Annotated[bool, typer.Option("--stream", help="Measure a short stream; it is billed like any.")] = False,
    profile: Profile = None,
    base_url: BaseUrl = None,
    model: Model = None,
    local: Local = None,
    local_model: LocalModel = None,
    mode: ModeOption = None,
    no_sandbox: NoSandbox = False,
    cwd: Cwd = None,
) -> None:
    """Look for what is broken or missing, and say what to do about it. Exit 1 when something needed is broken."""
    from hypercode import doctor as check

    flags = {"base_url": base_url, "model": model, "mode": mode, "sandbox": False if no_sandbox else None}
    flags |= {"local": local, "local_model": local_model}
    code = check.run(
        cwd or current_folder(), environ=os.environ, profile=profile, flags=flags, stream=stream, as_json=as_json
    )
    raise typer.Exit(code)


def demo(
    speed: Annotated[float | None, typer.Option(help="How many times as fast as usual.")] = None,
    instant: Annotated[
        bool, typer.Option("--instant", help="Without a pause; usual where stdout is no terminal.")
    ] = False,
    step: Annotated[bool, typer.Option("--step", help="Ask before each scene.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="No colours, no live region: plain lines.")] = False,
) -> None:
    """A tour of a minute: a scripted model, real tools in a temporary folder. No key, no network; nothing is kept.

    You answer the questions; where there is no terminal the tour does. Ctrl-C stops a reply, Ctrl-D leaves.
    """
    from hypercode import demo as tour

    raise typer.Exit(tour.run(os.environ, speed=speed, instant=instant, step=step, plain=plain))


def policy_replay(
    session: Annotated[
        str,
        typer.Argument(
            help="Its id, the beginning or end of it, or its name.", metavar="SESSION", autocompletion=sessions
        ),
    ],
    as_json: AsJson = False,
    allow: Annotated[Rules, typer.Option(help='A command that runs unasked, as first words: "git log".')] = None,
    deny: Annotated[Rules, typer.Option(help="A command that never runs, as first words.")] = None,
    mode: ModeOption = None,
    cwd: Cwd = None,
) -> None:
    """What today's rules would have asked for each call of a saved session, and what would have let it pass."""
    from hypercode import policy

    flags = {"allow": allow, "deny": deny, "mode": mode}
    policy.replay(session, cwd=_folder(cwd), environ=os.environ, as_json=as_json, **flags)
