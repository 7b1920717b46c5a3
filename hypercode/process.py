"""Run a command with everything it starts: stream its output, cap it, and leave nothing running.

The command gets no standard input and one pipe for its output.  The end of the *process* ends the call, not the end of the
pipe, which a background child may hold open for ever.  On Linux a small supervisor (`supervisor.py`) stands between this
process and the command; it finds and ends every descendant, also those that left the process group.  Elsewhere a signal to
the process group has to do.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from hypercode.capture import Capture, Printed

__all__ = ["Finished", "child_environment", "run_group"]

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_ENDED_WITHIN = 1.0  # seconds; the supervisor goes on for longer where it must

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended and what it printed.

    `returncode` is negative for a signal, and None if the process could not be ended yet.
    """

    returncode: int | None
    printed: Printed
    timed_out: bool
    seconds: float

    @property
    def output(self) -> str:
        """What it printed, without the middle if that was long."""
        return self.printed.text


async def run_group(
    argv: Sequence[str],
    *,
    cwd: Path | str,
    env: Mapping[str, str],
    timeout: float | None = None,
    on_output: Callable[[str], None] | None = None,
    take: Callable[[bytes], bool] | None = None,
    limit_bytes: int = 120_000,
    spill: Path | None = None,
    pass_fds: Sequence[int] = (),
    contained: bool = False,
) -> Finished:
    """Run a command in its own session and process group until it ends, or `timeout` seconds have passed.

    `argv[0]` is the full path of a program.  `on_output` gets the output live, as text, about 30 pieces a second at most;
    where more is printed than anyone could read, a note stands for the middle of a piece.  `take` gets every byte until it
    answers False, which ends the command.  Up to `limit_bytes` of the output are kept; a longer one goes to a file in the
    folder `spill`, see `Capture`.  `contained` says that the end of the process is the end of everything it started (a box
    with its own process space, a program that starts nothing): then no supervisor is needed.

    Cancelled, it ends everything first, which takes a few milliseconds, and at most about a second for what will not end.
    Raises OSError if the command cannot be started.
    """
    started = time.monotonic()
    supervised = sys.platform == "linux" and bool(sys.executable) and not contained
    if supervised:
        argv = [sys.executable, "-I", "-S", str(_SUPERVISOR), str(os.getpid()), *argv]
    with closing(Capture(limit_bytes, spill, on_output, take)) as capture:
        process, cancelled = await _whole(_start(argv, capture, cwd=cwd, env=env, pass_fds=pass_fds))
        ended = asyncio.ensure_future(process.wait())
        try:
            if cancelled:
                raise asyncio.CancelledError
            either: list[asyncio.Future[Any]] = [ended, capture.enough]
            done, _ = await asyncio.wait(either, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            _, cancelled = await _whole(_finish(process, ended, supervised, contained, capture))
    if cancelled:
        raise asyncio.CancelledError
    return Finished(process.returncode, capture.printed(), not done, time.monotonic() - started)


async def _start(argv: Sequence[str], capture: Capture, **options: Any) -> asyncio.subprocess.Process:
    # Not asyncio's own pipe: with one, waiting for the process is waiting for the end of the pipe as well.
    reader, writer = os.pipe()
    capture.listen(reader)
    null = asyncio.subprocess.DEVNULL
    try:
        return await asyncio.create_subprocess_exec(
            *argv, stdin=null, stdout=writer, stderr=writer, start_new_session=True, **options
        )
    finally:
        os.close(writer)


async def _whole(work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
    """The result of bounded work that a cancellation must not cut in two, and whether one came meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    return task.result(), cancelled


async def _finish(
    process: asyncio.subprocess.Process, ended: asyncio.Future[int], supervised: bool, contained: bool, capture: Capture
) -> None:
    """End the process and all it started, kindly at first, and read what is left in the pipe; bounded."""
    group = -process.pid
    if supervised:
        if not ended.done():
            _signal(process.pid, signal.SIGTERM)
            await asyncio.wait([ended], timeout=_ENDED_WITHIN)
        if process.returncode == -signal.SIGKILL:
            _end_session(process.pid)  # perhaps the supervisor itself was killed
    else:
        if not contained and not ended.done():
            _signal(group, signal.SIGTERM)
            await asyncio.wait([ended], timeout=0.2)
        _signal(group, signal.SIGKILL)
        await asyncio.wait([ended], timeout=_ENDED_WITHIN)
    ended.cancel()
    await capture.drain()


def _signal(target: int, number: int) -> None:
    try:
        os.kill(target, number)
    except OSError:
        pass


def _end_session(session: int) -> None:
    """Kill every process of a session, by proc(5)."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[3]) == session:
                _signal(int(folder.name), signal.SIGKILL)
        except (OSError, ValueError, IndexError):
            pass


_KEPT = frozenset(
    """
    PATH HOME USER LOGNAME SHELL TZ TZDIR LANG LANGUAGE LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE LC_IDENTIFICATION
    LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC LC_PAPER LC_TELEPHONE LC_TIME LOCPATH
    XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CONFIG_DIRS XDG_DATA_DIRS MANPATH INFOPATH
    VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_EXE CONDA_PYTHON_EXE MAMBA_ROOT_PREFIX PYENV_ROOT PYENV_VERSION
    UV_CACHE_DIR POETRY_HOME PIPX_HOME NVM_DIR NVM_BIN FNM_DIR VOLTA_HOME PNPM_HOME BUN_INSTALL DENO_DIR NODE_ENV
    CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOTOOLCHAIN
    JAVA_HOME JDK_HOME GRADLE_HOME GRADLE_USER_HOME M2_HOME MAVEN_HOME SDKMAN_DIR ANDROID_HOME ANDROID_SDK_ROOT
    RBENV_ROOT RBENV_VERSION GEM_HOME GEM_PATH BUNDLE_PATH ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR DOTNET_ROOT
    STACK_ROOT OPAMROOT FLUTTER_ROOT HOMEBREW_PREFIX HOMEBREW_CELLAR HOMEBREW_REPOSITORY NIX_PROFILES NIX_PATH
    SDKROOT DEVELOPER_DIR CUDA_HOME CUDA_PATH CC CXX CCACHE_DIR PKG_CONFIG_PATH CMAKE_PREFIX_PATH
    SSL_CERT_FILE SSL_CERT_DIR NIX_SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS
    CI SOURCE_DATE_EPOCH WSL_DISTRO_NAME
    """.split()  # noqa: SIM905 - a list of words reads best as words
)
"""Who and where one is, the language, the places of tool chains and of certificates.  All else is dropped: keys and tokens,
sockets of agents, whatever makes a loader, a shell, git or an interpreter run something, and the program's own settings."""

_SET = {
    # No terminal: no colours, no pager, no editor, no question.
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GH_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    # Nothing that a repository's own configuration, or one planted in a folder, would have git run.
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "safe.bareRepository",
    "GIT_CONFIG_VALUE_1": "explicit",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "SSH_ASKPASS_REQUIRE": "force",
    "GCM_INTERACTIVE": "never",
    "GH_PROMPT_DISABLED": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "NPM_CONFIG_YES": "true",
    "HOMEBREW_NO_AUTO_UPDATE": "1",
    "PYTHONUNBUFFERED": "1",  # what a script prints is seen when it prints it
}
_OWN = ("HYPERCODE_*", "OPENROUTER_API_KEY")


def child_environment(parent: Mapping[str, str], *, temp: Path, keep: Sequence[str] = ()) -> dict[str, str]:
    """The environment of child processes, made from the parent's by a list of what may pass.

    `temp` becomes their temporary folder.  `keep` are further names, or patterns such as `AWS_*`, that the user's own
    configuration lets pass; the program's own settings and key never do.
    """
    chosen = {
        name: value for name, value in parent.items() if name in _KEPT or (_any(name, keep) and not _any(name, _OWN))
    }
    own = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(temp))
    return {"PATH": os.defpath} | _SET | chosen | own


def _any(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
