"""Runs one command and leaves nothing of it behind: a script, `python -I -S supervisor.py PARENT COMMAND…`, for Linux.

What a command starts can leave its process group (setsid) and its family (double fork), where a signal to the group does
not reach it.  This process makes itself the subreaper of all of it (prctl(2), PR_SET_CHILD_SUBREAPER): whoever loses its
parent becomes a child of this process, so everything the command ever started stays below it and can be found.

When the command ends, when SIGTERM, SIGINT or SIGHUP arrives, or when the parent dies, everything below gets SIGTERM, and
after `GRACE` seconds (at once, if a second signal arrives) SIGKILL until nothing is left.  The exit status is the command's.

It is started for every command, so it imports as little as it can.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

TYPE_CHECKING = False  # `typing` itself takes as long as all the rest of the start
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # the C module behind `signal`, without the time for its enums

__all__ = ["main"]

GRACE = 0.2
"""Seconds between SIGTERM and SIGKILL."""
PATIENCE = 15.0
"""Seconds after which what cannot be killed (another user's process, a dead disk) is left alone.  The caller waits less
long; a swarm that forks faster than it can be killed on a busy machine is still ended."""

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
WATCHED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def main(arguments: list[str]) -> NoReturn:
    """Run the command of `PARENT COMMAND…`; PARENT is the process id of the caller."""
    parent, command = int(arguments[0]), arguments[1:]
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    if os.getppid() != parent:
        os._exit(1)
    child = os.fork()
    if child == 0:
        _become(command)
    status = _wait(child)
    _end_all(child)
    _leave(status)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _become(command: list[str]) -> NoReturn:
    """Turn this forked process into the command, in a process group of its own."""
    os.setpgid(0, 0)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
    try:
        os.execve(command[0], command, _environment())
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode(errors="replace"))
    os._exit(126)


def _environment() -> dict[bytes, bytes]:
    """What this process was given; `os.environ` has what Python added on its own start (PEP 538) as well."""
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - pathlib costs more than all the rest
        pairs = (entry.partition(b"=") for entry in file.read().split(b"\0") if b"=" in entry)
        return {name: value for name, _, value in pairs if name}


def _wait(child: int) -> int | None:
    """The wait status of the command; None if a signal told to stop before it ended."""
    while signal.sigwait(WATCHED) == signal.SIGCHLD:
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            if ended[0] == child:
                return ended[1]
    return None


def _end_all(child: int) -> None:
    """End everything below this process."""
    start = time.monotonic()
    grace = GRACE
    number: int | None = signal.SIGTERM
    while _any_left():
        if time.monotonic() - start > PATIENCE:
            return
        if number is not None:
            _send(number, child)
        waited = signal.sigtimedwait(WATCHED, 0.01)
        hurry = waited is not None and waited.si_signo != signal.SIGCHLD
        grace = 0.0 if hurry else grace
        number = signal.SIGKILL if time.monotonic() - start >= grace else None


def _any_left() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


def _send(number: int, child: int) -> None:
    """Send a signal to everything below: to whole groups first, which a process that keeps forking cannot outrun."""
    below = _descendants()
    own = os.getpgrp()
    groups = {group for _, group in below if group != own} or {child}
    for target in [-group for group in groups] + [pid for pid, _ in below]:
        try:
            os.kill(target, number)
            if number == signal.SIGTERM:
                os.kill(target, signal.SIGCONT)
        except OSError:
            pass


def _descendants() -> list[tuple[int, int]]:
    """Process id and group of everything below this process, by the parents that proc(5) names."""
    children: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    state, parent, group = file.read().rpartition(b")")[2].split()[:3]
            except (OSError, ValueError):
                continue
            if state not in (b"Z", b"X"):
                children.setdefault(int(parent), []).append((int(name), int(group)))
    found = list(children.get(os.getpid(), []))
    for pid, _ in found:
        found += children.get(pid, [])
    return found


def _leave(status: int | None) -> NoReturn:
    """End the way the command did."""
    code = -signal.SIGTERM if status is None else os.waitstatus_to_exitcode(status)
    if code < 0:
        _prctl(PR_SET_DUMPABLE, 0)  # the command may have left a core file; this process shall not
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(sys.argv[1:])
