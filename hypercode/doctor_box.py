"""The sandbox, tried out: which one there is, and a few attacks on it in a temporary folder."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hypercode.config import Config, Folders
from hypercode.errors import ToolError
from hypercode.findings import Finding, Level
from hypercode.process import child_environment, run_group
from hypercode.safety.sandbox import Box, Policy
from hypercode.safety.temp_folder import TempFolder
from hypercode.tools.bash import shell_line

__all__ = ["LIMITS", "Ground", "attack", "look_at_box"]

LIMITS = (
    "It keeps commands from writing outside the folder, from the network, from secrets and from what they started living on. "
    "It does not keep them from reading other files, nor from changing the files of this folder: for that there is /undo."
)
"""One line on what the box does, and one on what it does not."""

_GET_IT = "Install bubblewrap 0.8 or newer: apt, dnf, pacman or zypper install bubblewrap."
_ALLOW_IT = (
    "Allow user namespaces: `sysctl user.max_user_namespaces` must not be 0, nor Debian's "
    "kernel.unprivileged_userns_clone; in a container it is its engine that has to be told."
)
_SHOW_IT = (
    "Let the container's engine show all of /proc: podman with --security-opt unmask=ALL, "
    "docker with --security-opt systempaths=unconfined."
)
_ADVICE = {
    "This system does not let": _ALLOW_IT,
    "Parts of /proc are hidden": _SHOW_IT,
    "It needs ": "Make that folder one that you can write to, or name another place: export HYPERCODE_HOME=FOLDER.",
}
_SECONDS = 10.0
_CANARY = "hypercode-doctor-canary"


@dataclass(frozen=True, slots=True)
class Ground:
    """A temporary home with a workspace, a secret, a folder outside, and a listener on the host."""

    base: Path
    listener: socket.socket
    temp: Path

    @property
    def home(self) -> Path:
        """The home folder."""
        return self.base / "home"

    @property
    def work(self) -> Path:
        """The workspace."""
        return self.home / "work"

    @property
    def policy(self) -> Policy:
        """What a session there would be given."""
        return Policy((self.work,), self.home, self.temp, self.base / "quarantine")

    @property
    def outside(self) -> Path:
        """A file that nothing may make."""
        return self.home / "outside" / "made"

    @property
    def nap(self) -> str:
        """A number of seconds by which a process that lives on is known."""
        return f"31{os.getpid()}"

    @classmethod
    @contextlib.contextmanager
    def laid(cls, folders: Folders | None = None) -> Iterator[Ground]:
        """The ground, and its end.  Raises OSError."""
        place = "/var/tmp" if os.access("/var/tmp", os.W_OK) else None  # in the box /tmp is another one
        with (
            tempfile.TemporaryDirectory(prefix="hypercode-doctor-", dir=place) as name,
            socket.create_server(("127.0.0.1", 0)) as listener,
        ):
            listener.setblocking(False)
            base = Path(name)
            temp = TempFolder(folders.cache / "temp" / base.name if folders else base / "temp")
            ground = cls(base, listener, temp.path)
            for path, text in {"outside/other": "", ".ssh/id_ed25519": _CANARY, "work/.git/config": "[core]\n"}.items():
                file = ground.home / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            (ground.work / ".git/HEAD").write_text("ref: refs/heads/main\n")
            (ground.work / ".git/objects").mkdir()
            (ground.work / ".git/refs").mkdir()
            (ground.base / "quarantine").mkdir()
            temp.claim()
            try:
                yield ground
            finally:
                temp.close()


async def look_at_box(config: Config, environ: Mapping[str, str], folders: Folders | None = None) -> list[Finding]:
    """Which sandbox there is, whether it holds, and what that means; takes about half a second, bounded.

    The temporary folder of its commands is where a session with these `folders` has its own.
    """
    needed = config.mode == "auto"
    if not config.sandbox:
        return [
            Finding(
                "sandbox", "warning", "Sandbox: off — commands run with all your rights.", "Leave --no-sandbox out."
            )
        ]
    try:
        with Ground.laid(folders) as ground:
            environment = child_environment({**environ, "HOME": str(ground.home)}, temp=ground.policy.temp)
            box = await asyncio.to_thread(Box.probe, ground.policy, environment)
            if not box.full:
                level: Level = "problem" if needed else "warning"
                todo = next((advice for begin, advice in _ADVICE.items() if box.why.startswith(begin)), _GET_IT)
                todo += " Mode auto does not start without a box." if needed else ""
                hint = (
                    todo
                    if sys.platform == "linux"
                    else "Every command asks; there is no tested sandbox for this system."
                )
                return [Finding("sandbox", level, box.describe(), hint)]
            held, through = await attack(box, ground, environment)
    except (OSError, ToolError) as error:
        return [
            Finding(
                "sandbox", "warning", f"The sandbox could not be tried out: {error}", "See to the temporary folder."
            )
        ]
    found = [Finding("sandbox", "ok", f"{box.describe()}. {LIMITS}")]
    if through:
        text = f"The sandbox does not hold: {', '.join(through)}."
        return [*found, Finding("sandbox", "problem", text, "Do not use mode auto or edits here, and report it.")]
    return [*found, Finding("sandbox", "ok", f"Tried out in a temporary folder: {', '.join(held)}.")]


Attack = tuple[str, str, Callable[[str], bool]]
"""What should hold, the command that would break it, and whether it did hold, by what the command printed and left."""


def _attacks(ground: Ground) -> list[Attack]:
    git, made = ground.work / ".git/config", ground.work / "made"
    connect = f"echo tried; exec 3<>/dev/tcp/127.0.0.1/{ground.listener.getsockname()[1]}"  # bash's own way
    return [
        ("the folder can be written", f"echo x > {made}", lambda out: made.exists()),
        ("a write outside is refused", f"echo x > {ground.outside}", lambda out: not ground.outside.exists()),
        ("a secret is hidden", f"cat {ground.home}/.ssh/id_ed25519", lambda out: _CANARY not in out),
        (
            "the network is off",
            f"({connect})",
            lambda out: "tried" in out and not _called(ground.listener),
        ),
        (".git is read-only", f"echo x >> {git}", lambda out: git.read_text() == "[core]\n"),
        (
            "no process lives on",
            f"(setsid sleep {ground.nap} >/dev/null 2>&1 &) ; sleep 0.1",
            lambda out: _gone(f"sleep {ground.nap}"),
        ),
    ]


async def attack(box: Box, ground: Ground, environment: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Run the attacks one after the other; the names of what held, and of what did not.  Raises OSError, ToolError."""
    well, failed = list[str](), list[str]()
    for name, command, held in _attacks(ground):
        argv, _ = shell_line(f"{command}\necho over", environment)
        with box.enter(argv) as entered:
            done = await run_group(
                entered.argv,
                cwd=ground.work,
                env=environment,
                timeout=_SECONDS,
                pass_fds=entered.pass_fds,
                contained=entered.contained,
            )
        if "over" not in done.output:
            failed.append(f"{name} (the command did not run to its end)")
        else:
            (well if await asyncio.to_thread(held, done.output) else failed).append(name)
    return well, failed


def _called(listener: socket.socket) -> bool:
    """Whether somebody connected."""
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _gone(words: str) -> bool:
    """Whether no process with this command line is there any more; the kernel is given a second."""
    until = time.monotonic() + 1
    while alive := _running(words):
        if time.monotonic() > until:
            break
        time.sleep(0.02)
    return not alive


def _running(words: str) -> bool:
    wanted = words.encode().replace(b" ", b"\0")
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if file.read_bytes().startswith(wanted):
                return True
    return False
