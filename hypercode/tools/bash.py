"""Run a shell command in the workspace."""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from hypercode.capture import NO_OUTPUT, Printed
from hypercode.errors import ToolError
from hypercode.process import Finished, run_group
from hypercode.tools.base import MAX_RESULT_CHARACTERS, MAX_RESULT_LINES, ToolContext, cap, tool

if TYPE_CHECKING:
    from hypercode.safety.sandbox import Entered

__all__ = ["LONGEST_TIMEOUT", "bash", "plain", "shell_line"]

LONGEST_TIMEOUT = 3600
"""Seconds."""

_SHELLS = ("/bin/bash", "/usr/bin/bash")
_KEPT_BYTES = 4 * MAX_RESULT_CHARACTERS  # whatever is cut has more characters than the model may get


@tool("shell")
async def bash(ctx: ToolContext, command: str, timeout: float = 120) -> str:
    """Run a command with bash in the workspace and return what it prints (stdout and stderr) and its exit code if not 0.

    There is no terminal and no standard input: no pagers, no editors, no questions; use flags such as -y. Each call is a new
    shell: `cd` and variables do not carry over. Background processes end when the command ends. timeout is in seconds, at
    most 3600. To find or read files use grep, glob and read instead.
    """
    _check(command, timeout)
    argv, remark = shell_line(command, ctx.environment)
    try:
        with _boxed(ctx, command, argv) as entered:
            finished = await run_group(
                entered.argv,
                cwd=ctx.workspace,
                env=ctx.environment,
                timeout=timeout,
                on_output=ctx.output,
                limit_bytes=_KEPT_BYTES,
                spill=ctx.spill,
                pass_fds=entered.pass_fds,
                contained=entered.contained,
            )
    except OSError as error:
        raise _not_started(error, ctx.workspace) from None
    reports = [f"sandbox: {report}" for report in entered.reports]
    for report in reports:
        ctx.tell(report)
    said = "\n".join(f"[{report}]" for report in reports)
    text = _joined(remark, _shown(finished.printed), _ending(finished, timeout), said)
    if finished.timed_out:
        raise ToolError("timeout", cap(f"the command did not end in time.\n{text}", ctx.spill))
    return text


def _check(command: str, timeout: float) -> None:
    if not 1 <= timeout <= LONGEST_TIMEOUT:
        raise ToolError("bad_arguments", f"timeout must be 1 to {LONGEST_TIMEOUT} seconds, not {timeout:g}.")
    if not command.strip():
        raise ToolError("bad_arguments", "command is empty.")
    try:
        if b"\0" in os.fsencode(command):
            raise ToolError("bad_arguments", r"command holds a NUL character; write it as \0 in printf or $'...'.")
    except UnicodeEncodeError as error:
        raise ToolError("bad_arguments", f"command holds text that cannot be passed on: {error.reason}.") from None


def shell_line(command: str, environment: Mapping[str, str]) -> tuple[list[str], str]:
    """The argument list that runs a command, and a remark for the model if it is not bash that runs it.

    Only absolute folders of PATH count: a program in the workspace must not become the shell.  Raises ToolError `no_shell`.
    """
    folders = [f for f in environment.get("PATH", os.defpath).split(os.pathsep) if f.startswith("/")]
    for shell in [*_SHELLS, *(f"{folder}/bash" for folder in folders)]:
        if os.access(shell, os.X_OK):
            return [shell, "-c", "--", command], ""
    if os.access("/bin/sh", os.X_OK):
        return ["/bin/sh", "-c", "--", command], "[bash is not installed here: sh ran this]"
    raise ToolError("no_shell", "There is neither bash nor /bin/sh on this machine; commands cannot be run.")


def _not_started(error: OSError, workspace: Path) -> ToolError:
    if error.errno == errno.E2BIG:
        return ToolError("bad_arguments", "command is too long for the system; write it to a file and run that.")
    if not workspace.is_dir():
        return ToolError("io", f"the workspace {workspace} is gone.")
    return ToolError("io", f"the command could not be started: {error.strerror or error}.")


def _shown(printed: Printed) -> str:
    """What was printed, for the model; `cap` does the rest for what is not truncated yet."""
    if not printed.truncated:
        return plain(printed.text).rstrip("\n")
    characters, lines = MAX_RESULT_CHARACTERS // 2 - 500, MAX_RESULT_LINES // 2 - 10
    head = "\n".join(plain(printed.head).rstrip("\n").split("\n")[:lines])[:characters]
    tail = "\n".join(plain(printed.tail).rstrip("\n").split("\n")[-lines:])[-characters:]
    return f"{head}\n{printed.gap}\n{tail}"


def _ending(finished: Finished, timeout: float) -> str:
    if finished.timed_out:
        return f"[timed out after {timeout:g} s; everything it had started was ended]"
    code = finished.returncode
    if code is None:
        return "[could not be ended: it may still be running]"
    if code < 0:
        return f"[ended by signal {-code}{_signal_name(-code)}]"
    return f"[exit code {code}]" if code else ""


def _signal_name(number: int) -> str:
    try:
        return f", {signal.Signals(number).name}"
    except ValueError:
        return ""


def _joined(remark: str, output: str, *endings: str) -> str:
    return "\n".join(part for part in (remark, output or NO_OUTPUT, *endings) if part)


def _boxed(ctx: ToolContext, command: str, argv: list[str]) -> AbstractContextManager[Entered]:
    from hypercode.safety.sandbox import Entered  # not every session runs commands, and it takes 20 ms

    needs = ctx.passes.take(command)
    if ctx.box is None:
        return nullcontext(Entered(argv))
    return ctx.box.enter(argv, "git" if needs.git else "workspace", network=needs.network, hidden=needs.hidden)


_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC, DCS: titles, links
    r"|\x1b[ -/]+[0-~]"  # character sets
    r"|\x1b[0-Z\\^_`-~]"  # single functions
)
_CONTROLS = {c: 0x2400 + c for c in range(0x20) if c not in (0x09, 0x0A)} | {0x7F: 0x2421}
_CONTROLS |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


def plain(text: str) -> str:
    """The text without what only a terminal understands.

    Escape sequences go, CR LF and lone CR become LF, overstruck characters are printed once, any other control character
    becomes its visible symbol.
    """
    text = _ESCAPES.sub("", text)
    text = re.sub(r"\r*\n|\r", "\n", text)
    text = re.sub(r"[^\n\x08]\x08", "", text)
    return text.translate(_CONTROLS)
