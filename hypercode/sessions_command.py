"""`hypercode sessions` and `hypercode replay`: saved conversations listed, shown, written out, deleted, drawn again."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from hypercode.config import Config, Folders
from hypercode.errors import ConfigError
from hypercode.memory import sessions
from hypercode.memory.export import FORMATS, save
from hypercode.memory.history import load
from hypercode.memory.sessions import Head
from hypercode.ui.clean import clean
from hypercode.ui.headless import columns, write_line
from hypercode.ui.session_line import session_line, session_rows

__all__ = ["delete", "export", "list_sessions", "replay", "show"]

_ODD = re.compile("[\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")


def list_sessions(cwd: Path, *, environ: Mapping[str, str], everywhere: bool, as_json: bool) -> None:
    """The saved conversations of a folder, or of all, the one used last first."""
    found = sessions.heads(Folders.of(environ).state, None if everywhere else cwd)
    if as_json:
        _put(json.dumps([_as_json(head) for head in found], indent=2) + "\n")
    elif not found:
        where = "" if everywhere else f" in {clean(str(cwd), 'filename')}; --all lists those of other folders"
        write_line(sys.stderr, f"There is no saved session{where}.")
    else:
        _put("".join(f"{row}\n" for row in _listed(found, folder=everywhere, width=columns(sys.stdout))))


def _listed(found: Sequence[Head], *, folder: bool, width: int) -> list[str]:
    """One line a session for a program, columns for a person, whose terminal has `width` cells."""
    if width:
        return session_rows(found, width=width, folder=folder)
    return [f"{head.session}  {session_line(head, folder=folder)}" for head in found]


def _as_json(head: Head) -> dict[str, object]:
    return {**asdict(head), "path": str(head.path)}


def show(name: str, cwd: Path, *, environ: Mapping[str, str], as_json: bool) -> None:
    """A saved conversation to read, or what the list knows of it as JSON."""
    path = _find(name, cwd, environ)
    if as_json:
        head = sessions.head(path)
        _put(json.dumps(_as_json(head) if head else None, indent=2) + "\n")
    else:
        _put(clean(FORMATS["md"](load(path))))


def export(name: str, cwd: Path, *, environ: Mapping[str, str], kind: str, file: Path | None) -> None:
    """Write a conversation to stdout, or into a new file that only the user can read."""
    if kind not in FORMATS:
        raise ConfigError(f"must be one of {', '.join(FORMATS)}, not {kind!r}", key="--format")
    text = FORMATS[kind](load(_find(name, cwd, environ)))
    if file is not None and str(file) != "-":
        save(text, file)
        write_line(sys.stderr, f"written to {clean(str(file), 'filename')}")
    elif not sys.stdout.isatty():
        _put(text)
    else:
        _put(clean(text) if kind == "md" else _ODD.sub(_escaped, text))


def _escaped(found: re.Match[str]) -> str:
    """A character that must not reach a terminal, as JSON can say it."""
    return json.dumps(found[0])[1:-1]


def delete(names: list[str], cwd: Path, *, environ: Mapping[str, str], yes: bool) -> None:
    """Delete conversations with what was kept beside them; asks first, on a terminal, unless `yes`."""
    folders = Folders.of(environ)
    paths = [_find(name, cwd, environ) for name in names]
    if not yes:
        _ask(paths)
    for path in paths:
        sessions.delete(path)
        shutil.rmtree(folders.cache / "outputs" / path.stem, ignore_errors=True)
        write_line(sys.stderr, f"deleted {path.stem}")


def _ask(paths: list[Path]) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError("there is nobody to ask here; add --yes to delete", key="sessions delete")
    for path in paths:
        head = sessions.head(path)
        rows = _listed([head], folder=True, width=columns(sys.stderr)) if head else [path.stem]
        print("\n".join(rows), file=sys.stderr)  # noqa: T201
    print("Delete for good? [y/N] ", end="", file=sys.stderr, flush=True)  # noqa: T201
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConfigError("nothing was deleted")


def replay(
    config: Config, name: str, cwd: Path, *, environ: Mapping[str, str], speed: float | None, instant: bool, step: bool
) -> None:
    """Draw a saved session again: at its own pace times `speed`, at once, or step by step."""
    from hypercode.ui.plain import needs_plain
    from hypercode.ui.replay import show as draw

    if speed is not None and not 0 < speed < float("inf"):
        raise ConfigError(f"must be a number above 0, not {speed:g}", key="--speed")
    if step and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("needs a terminal on which a key can be pressed", key="--step")
    loaded = load(_find(name, cwd, environ))
    plain = config.plain or needs_plain(environ)
    instant = instant or (speed is None and not step and not sys.stdout.isatty())
    try:
        asyncio.run(draw(loaded, speed=speed or 1.0, instant=instant, step=step, plain=plain))
    except BrokenPipeError:
        _reader_is_gone()


def _find(name: str, cwd: Path, environ: Mapping[str, str]) -> Path:
    return sessions.find(Folders.of(environ).state, cwd, name)


def _put(text: str) -> None:
    """stdout, as UTF-8 whatever the locale; a reader that went away is no fault."""
    sys.stdout.flush()
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _reader_is_gone()


def _reader_is_gone() -> None:
    """Let what is written from now on go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
