"""The commands `models`, `doctor`, `demo`, `config` and `policy replay` of the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from hypercode.cli_completion import Group, modes, sessions
from hypercode.config import Folders, current_folder, example, setting_names
from hypercode.errors import ConfigError
from hypercode.safety.own_process import NO_ROOM

__all__ = [
    "Local",
    "LocalModel",
    "config_app",
    "config_init",
    "config_main",
    "config_path",
    "config_show",
    "demo",
    "doctor",
    "models",
    "policy_replay",
]

config_app = typer.Typer(cls=Group, help="Effective settings and where each came from.", rich_markup_mode=None)

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


@config_app.callback(invoke_without_command=True)
def config_main(context: typer.Context) -> None:
    """Effective settings and where each came from."""
    if context.invoked_subcommand is None:
        config_show()


@config_app.command("show")
def config_show(profile: Profile = None) -> None:
    """Each setting with its value and where it came from, as a configuration file has it."""
    from hypercode.parts import configuration, secrets_of
    from hypercode.safety.redact import Redactor

    config = configuration(os.environ, current_folder(), profile)
    redactor = Redactor(secrets_of(config, os.environ))
    for name in setting_names():
        value, shown = getattr(config, name), redactor.value(getattr(config, name))
        if name == "api_key" and value:
            line = "# api_key = (set, not shown)"
        elif value is None:
            line = f"# {name} ="
        else:  # what is not shown whole is not to be copied
            line = f"{'' if shown == value else '# '}{name} = {_toml(shown)}"
        print(f"{line}   # {_one_line(config.sources[name])}")  # noqa: T201


@config_app.command("path")
def config_path() -> None:
    """Where configuration, state and cache are."""
    folders = Folders.of(os.environ)
    print(f"configuration {folders.config_file}\nstate {folders.state}\ncache {folders.cache}")  # noqa: T201


@config_app.command("init")
def config_init(
    to_stdout: Annotated[bool, typer.Option("--stdout", help="Print it instead, to copy lines from.")] = False,
) -> None:
    """Write a configuration file with every setting as a comment; an existing one is left alone."""
    if to_stdout:
        print(example(), end="")  # noqa: T201
        return
    path = Folders.of(os.environ).config_file
    instead = "`hypercode config init --stdout` prints what would be in it"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        if error.errno in NO_ROOM:  # of which the outermost net says more
            raise
        why = "a file is in its place" if isinstance(error, FileExistsError) else error.strerror
        what = f"cannot be written: the folder {error.filename or path.parent} cannot be made ({why}); {instead}"
        raise ConfigError(what, file=str(path)) from None
    made = False
    try:
        with open(path, "x", encoding="utf-8", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
            made = True
            file.write(example())
    except FileExistsError:
        what = (
            "exists already and is left as it is; `hypercode config init --stdout` prints every setting, to copy from"
        )
        raise ConfigError(what, file=str(path)) from None
    except OSError as error:
        if made:  # a part of it would keep the next try from writing it
            path.unlink(missing_ok=True)
        if error.errno in NO_ROOM:
            raise
        raise ConfigError(f"cannot be written ({error.strerror}); {instead}", file=str(path)) from None
    print(path)  # noqa: T201


def _toml(value: Any) -> str:
    """A value that a TOML file can have, in one line (https://toml.io/en/v1.0.0: basic strings, inline tables)."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{"".join(map(_toml_character, value))}"'
    if isinstance(value, dict):
        pairs = ", ".join(f"{_toml_key(str(key))} = {_toml(item)}" for key, item in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)


def _toml_character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    code = 0xFFFD if "\ud800" <= character <= "\udfff" else ord(character)  # half a pair is in no TOML
    return f"\\U{code:08X}" if code > 0xFFFF else f"\\u{code:04X}"


def _toml_key(key: str) -> str:
    bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if bare else _toml(key)


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
