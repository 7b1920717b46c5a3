"""`hypercode run`: one task, then exit.  Composes the session, its output and its signals."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from hypercode.app import App, build
from hypercode.config import Config
from hypercode.errors import ConfigError
from hypercode.events import Bus
from hypercode.logfile import fault, log_events, log_place, open_log
from hypercode.messages import Piped
from hypercode.parts import secrets_of
from hypercode.safety.own_process import close_to_others, take_environment
from hypercode.safety.redact import Redactor
from hypercode.ui import headless
from hypercode.ui.terminal_ask import TerminalAsker, open_terminal

__all__ = ["OUTPUTS", "print_schema", "read_task", "run"]

OUTPUTS = ("text", "json", "jsonl")
SIGNAL_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}

log = logging.getLogger("hypercode")


def run(
    config: Config, words: list[str], *, cwd: Path, output: str, debug: bool = False, resume: str | None = None
) -> int:
    """Run one task to its end and return the exit code.  Raises ConfigError for wrong use.

    `resume` goes on with the session of that id or name, an empty one with this folder's last.
    """
    if output not in OUTPUTS:
        raise ConfigError(f"must be one of {', '.join(OUTPUTS)}, not {output!r}", key="--output")
    task = read_task(words)
    environ = take_environment()
    close_to_others()
    bus = Bus()
    redact = Redactor(secrets_of(config, environ)).text
    with open_log(environ, debug=debug, redact=redact) as path:
        if debug:
            headless.write_line(sys.stderr, f"log: {log_place(path)}")
            log_events(bus)
        try:
            return asyncio.run(_run(config, task, cwd, output, environ, bus, resume))
        except ConfigError:
            raise
        except Exception:
            log.exception("run failed")
            headless.write_line(sys.stderr, f"hypercode: {fault(path)}")
            return 1


def print_schema() -> None:
    """Print the event schema with its version."""
    print(json.dumps(headless.schema(), indent=2))  # noqa: T201


_PIPED = 4_000_000
"""Bytes: some million tokens."""


def read_task(words: list[str]) -> str:
    """The task: the words, `-` for stdin, and what is piped in behind them.  Raises ConfigError where there is none, or more than any model takes.

    With stdin in it, it is a `Piped`: only the words on the command line name files with `@`.
    """
    piped = "" if sys.stdin is None or (sys.stdin.isatty() and words != ["-"]) else _read_stdin()
    own = "" if words == ["-"] else " ".join(words)
    task = own if own.strip() else Piped(piped, "")
    if own.strip() and piped.strip():
        task = Piped(f"{own}\n\n<stdin>\n{piped.rstrip()}\n</stdin>", own)
    if not task.strip():
        raise ConfigError('there is no task; use: hypercode run "what to do", or pipe it in')
    return task


def _read_stdin() -> str:
    try:
        data = sys.stdin.buffer.read(_PIPED + 1)
    except (OSError, ValueError):
        return ""
    if len(data) > _PIPED:
        more = f"what is piped in is more than {_PIPED // 1_000_000} MB, which no model reads at once"
        raise ConfigError(f"{more}; save it as a file and name that, so that parts of it can be looked at")
    return data.decode("utf-8", "replace")


async def _run(
    config: Config, task: str, cwd: Path, output: str, environ: Mapping[str, str], bus: Bus, resume: str | None
) -> int:
    terminal = open_terminal()
    app = build(
        config, cwd=cwd, environ=environ, bus=bus, ask=TerminalAsker(terminal) if terminal is not None else None
    )
    out = headless.Output(sys.stdout, app.agent.abort)
    _listen(output, bus, out)
    try:
        if resume is not None:
            app.resume_conversation(app.saved_conversation(resume))
        if app.local is not None:
            app.local.undecided = False  # nobody is asked: the first, which is said
        app.start()
        with _Signals(app) as signals:
            result = await app.agent.run(task)
        code = app.finish(result, code=signals.code if result.outcome == "aborted" else None)
        if out.failure:
            headless.write_line(sys.stderr, f"hypercode: {out.failure}")
            return 1
        return 0 if out.closed else code
    finally:
        await app.aclose()
        if terminal is not None:
            os.close(terminal)


def _listen(output: str, bus: Bus, out: headless.Output) -> None:
    if output == "jsonl":
        headless.JsonLines(bus, out)
    elif output == "json":
        headless.JsonObject(bus, out, sys.stderr)
    else:
        headless.Text(bus, out, sys.stderr)


class _Signals:
    """SIGINT, SIGTERM and SIGHUP stop the run; a second one ends the process at once."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.code: int | None = None

    def __enter__(self) -> _Signals:
        loop = asyncio.get_running_loop()
        for number, code in SIGNAL_CODES.items():
            loop.add_signal_handler(number, self._handler(code))
        return self

    def __exit__(self, *exception: object) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNAL_CODES:
            loop.remove_signal_handler(number)

    def _handler(self, code: int) -> Callable[[], None]:
        def stop() -> None:
            if self.code is not None:
                os._exit(code)
            self.code = code
            self._app.agent.abort()

        return stop
