"""What works here, what does not, and what to do about it: the examination behind `hypercode doctor` and `/doctor`.

Looks at program, terminal, configuration, workspace, folders, ripgrep and sandbox, and over the network at key and model; `stream`
measures a short answer.  Accounts, bills and servers are tested against fakes on this machine.  The network gets five
seconds, each command of the sandbox ten.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shlex
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypercode import __version__
from hypercode.config import Config, Folders
from hypercode.doctor_box import look_at_box
from hypercode.doctor_model import connection, look_at_model
from hypercode.errors import ConfigError, ModelError, ToolError
from hypercode.findings import Finding
from hypercode.parts import configuration, gate_for
from hypercode.process import child_environment, run_group
from hypercode.safety.facts import on_read_only_disk
from hypercode.safety.private_file import private_folder
from hypercode.tools.ripgrep import ripgrep

if TYPE_CHECKING:
    from hypercode.local_model import LocalModel

__all__ = ["examine", "examine_session"]

_LEAST_COLUMNS, _LEAST_ROWS = 40, 10


async def examine(
    cwd: Path, *, environ: Mapping[str, str], profile: str | None, flags: Mapping[str, Any], stream: bool
) -> list[Finding]:
    """Every finding, in the order in which they are shown."""
    folders = Folders.of(environ)
    try:
        config = configuration(environ, cwd, profile, **flags)
        gate_for(config, cwd=cwd, environ=environ)  # rules and further folders
    except ConfigError as error:
        todo = f"Mend it; `hypercode config init` writes an example where there is no {folders.config_file.name}."
        said = [Finding("configuration", "problem", str(error), todo), *_workspace(cwd, Config())]
        return await _findings(None, said, folders, environ, stream)
    return await examine_session(config, folders, environ, stream=stream, workspace=cwd)


async def examine_session(
    config: Config,
    folders: Folders,
    environ: Mapping[str, str],
    *,
    stream: bool,
    local: LocalModel | None = None,
    workspace: Path | None = None,
) -> list[Finding]:
    """The same for a session that is going on, with the configuration, and the model on this machine, that it has.

    Without a `workspace` none is looked at.
    """
    said = [*_configuration(config, folders.config_file), *(_workspace(workspace, config) if workspace else [])]
    return await _findings(config, said, folders, environ, stream, local)


async def _findings(
    config: Config | None,
    said: Sequence[Finding],
    folders: Folders,
    environ: Mapping[str, str],
    stream: bool,
    local: LocalModel | None = None,
) -> list[Finding]:
    here = [_program(), *_terminal(environ), *said, _folder("state", folders.state), _folder("cache", folders.cache)]
    box, search, model = await asyncio.gather(
        look_at_box(config or Config(), environ, folders),
        _ripgrep(environ),
        _model(config, folders, environ, stream, local),
    )
    return [*here, search, *box, *model]


async def _model(
    config: Config | None, folders: Folders, environ: Mapping[str, str], stream: bool, local: LocalModel | None
) -> list[Finding]:
    if config is None:  # which server a key belongs to is not known then
        text = "Key and model were not looked at, because the configuration cannot be used."
        return [Finding("key", "warning", text, "Mend the configuration first.")]
    if config.local:
        return await _local(config, environ, stream, local)
    settings, key = connection(config, environ)
    if settings is None:
        return [key]
    found = [key, *await look_at_model(settings, folders.cache)]
    if stream and not any(f.level == "problem" and f.area in ("key", "network") for f in found):
        from hypercode.doctor_stream import measure

        found += await measure(settings)
    return found


async def _local(config: Config, environ: Mapping[str, str], stream: bool, session: LocalModel | None) -> list[Finding]:
    """The model on this machine; where there is no session the embedded server runs for as long as it is looked at."""
    from hypercode.local_model import connect

    try:
        local = session if session is not None else await asyncio.to_thread(connect, config, environ)
    except ConfigError as error:
        first, _, todo = str(error).partition("\n")
        return [
            Finding("model", "problem", first, todo or "`hypercode config show` says where each setting comes from.")
        ]
    found = [Finding("key", "ok", "A model on this machine needs no key, and none is sent."), _chosen(local)]
    try:
        settings = await local.client.ready()
        with tempfile.TemporaryDirectory() as folder:  # the embedded server's list is of no use later
            found += await look_at_model(settings, Path(folder), account=False)
        if stream and all(f.level != "problem" for f in found):
            from hypercode.doctor_stream import measure

            found += await measure(settings)
    except ModelError as error:
        found.append(Finding("model", "problem", str(error), "Look into the log, or use another server or file."))
    finally:
        if session is None:
            await local.client.aclose()
    return found


def _chosen(local: LocalModel) -> Finding:
    if local.demo:
        return Finding("model", "warning", local.label(), "Start a model server, or set a key.")
    return Finding("model", "ok", local.label())


def _program() -> Finding:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return Finding("version", "ok", f"hypercode {__version__} on {python}, {platform.system()} {platform.machine()}.")


def _terminal(environ: Mapping[str, str]) -> list[Finding]:
    """What the terminal can show, by what it says of itself."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return [Finding("terminal", "ok", "No terminal here: output is plain, and nobody can be asked.")]
    term, found = environ.get("TERM", ""), []
    if term in ("", "dumb", "unknown"):
        text = f"TERM is {term!r}: no live region, no colours; the chat is plain lines."
        found.append(Finding("terminal", "warning", text, "In a terminal that can more: export TERM=xterm-256color"))
    size = os.get_terminal_size(sys.stdout.fileno())
    if 0 < size.columns < _LEAST_COLUMNS or 0 < size.lines < _LEAST_ROWS:
        text = f"The window is small: {size.columns} × {size.lines}."
        found.append(Finding("terminal", "warning", text, f"Make it at least {_LEAST_COLUMNS} × {_LEAST_ROWS}."))
    if (encoding := (sys.stdout.encoding or "").lower().replace("-", "")) != "utf8":
        text = f"The locale's encoding is {encoding or 'not known'}, not UTF-8: some characters are shown as ?."
        found.append(Finding("terminal", "warning", text, "export LC_ALL=C.UTF-8"))
    seen = f"TERM {term}, {_colours(environ, term)}, {encoding or 'no encoding'}, {size.columns} × {size.lines}."
    return found or [Finding("terminal", "ok", seen)]


def _colours(environ: Mapping[str, str], term: str) -> str:
    if environ.get("NO_COLOR"):
        return "no colours (NO_COLOR is set)"
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or term.endswith("-direct"):
        return "24-bit colours"
    return "256 colours" if "256color" in term else "16 colours"


def _configuration(config: Config, file: Path) -> list[Finding]:
    """What is wrong with the configuration that is used, and with its file."""
    found = [Finding("configuration", "warning", notice) for notice in config.notices]
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return [*found, Finding("configuration", "ok", f"There is no {file}; the defaults hold.")]
    if mode & 0o022 or (mode & 0o044 and config.api_key):
        who = "written to" if mode & 0o022 else "read, with the key in it,"
        found.append(Finding("configuration", "warning", f"{file} can be {who} by others.", f"chmod 600 {file}"))
    return found or [Finding("configuration", "ok", f"{file} is as it should be.")]


def _workspace(folder: Path, config: Config) -> list[Finding]:
    """Whether the files of the folder can be read and changed; nothing is written for that."""
    shown = str(folder)
    if not os.access(folder, os.R_OK | os.X_OK):
        todo = f"Make it readable (chmod u+rx {shlex.quote(shown)}), or work in another one: --cwd FOLDER."
        return [Finding("workspace", "problem", f"{shown} cannot be read: there is nothing to work with.", todo)]
    if os.access(folder, os.W_OK):
        return [Finding("workspace", "ok", f"{shown} can be read and written.")]
    mounted = on_read_only_disk(folder)
    why = "its file system is read-only" if mounted else "its mode or its owner is against it"
    mend = "Mount it for writing" if mounted else f"Make it writable (chmod u+w {shlex.quote(shown)}, or ask its owner)"
    return [
        Finding(
            "workspace",
            "warning" if config.mode == "plan" else "problem",
            f"{shown} cannot be written ({why}): edits and commands that make files fail.",
            f"{mend}, or work in a copy: --cwd FOLDER. For looking around and planning --mode plan is enough.",
        )
    ]


def _folder(area: str, folder: Path) -> Finding:
    """Whether a folder of the program's own can be written to, by its user alone."""
    try:
        private_folder(folder)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
            file.flush()
        mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError as error:
        lost = "conversations and undo are not kept" if area == "state" else "long outputs and lists are not kept"
        text = f"{folder} cannot be written to ({error.strerror}): {lost}."
        return Finding(area, "problem", text, "Make it writable, or set HYPERCODE_HOME to a folder that is.")
    if mode & 0o077:
        return Finding(area, "warning", f"{folder} is open to others (mode {mode:o}).", f"chmod 700 {folder}")
    return Finding(area, "ok", f"{folder} is writable, and yours alone.")


async def _ripgrep(environ: Mapping[str, str]) -> Finding:
    """Whether the tools that search have their program."""
    environment = child_environment(environ, temp=Path(tempfile.gettempdir()))
    try:
        program = ripgrep(environment)
        done = await run_group([program, "--version"], cwd="/", env=environment, timeout=5, contained=True)
    except ToolError as error:
        _, _, text = str(error).partition(": ")
        return Finding("ripgrep", "problem", text, "pip install ripgrep")
    except OSError as error:
        return Finding("ripgrep", "problem", f"{program} cannot be run ({error.strerror}).", "pip install ripgrep")
    if done.returncode != 0:
        text = f"{program} fails (exit code {done.returncode}): grep and glob do not work."
        return Finding("ripgrep", "problem", text, "pip install --force-reinstall ripgrep")
    return Finding("ripgrep", "ok", f"{done.output.splitlines()[0] if done.output else 'ripgrep'}, {program}")
