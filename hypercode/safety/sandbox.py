"""The box in which commands run.

On Linux bubblewrap with a seccomp filter: everything readable but secrets, writable only the workspace and a private
temporary folder, no network, no terminal, no process but its own; version control and settings that run by themselves are
read-only, and such names that appear are put away and reported.  Without bubblewrap there is no box; then every command
asks.  On macOS a sandbox-exec profile adds what it can, but it is untested and does not count as a box.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hypercode.safety import sandbox_macos, seccomp
from hypercode.safety.git_watch import Repositories
from hypercode.safety.private_file import private_folder
from hypercode.safety.sandbox_bwrap import find_bwrap, mounts, options, with_limits
from hypercode.safety.sandbox_policy import HOOK_PLACES, Policy, git_folders, protected, redirects
from hypercode.safety.sandbox_watch import Seen, Watch, recover

__all__ = ["Box", "Entered", "Kind", "Policy", "Profile"]

Kind = Literal["bubblewrap", "sandbox-exec", "none"]
Profile = Literal["workspace", "git"]
"""`git` lets a command that a person approved write the repository's own folder, hooks and configuration excepted."""

_PROBE_SECONDS = 5.0
_EMPTY = str(Path(__file__).parents[1] / "py.typed")  # a device would be an error to read, not an empty file
_MOST_HIDDEN = 200  # each takes a part of a millisecond
_AF_INET, _AF_INET6, _AF_NETLINK = 2, 10, 16
OWN_NETWORK: tuple[int, ...] = (_AF_INET, _AF_INET6)
"""Address families a command may use while its only network is a loopback of its own."""
HOST_NETWORK = (_AF_INET, _AF_INET6, _AF_NETLINK)
"""And with a person's yes to the network; never the sockets in the file system, behind which docker and key agents sit."""


@dataclass(slots=True)
class Entered:
    """One command in the box: what to run and with which descriptors; `reports` is filled when it has ended.

    `contained` says that the end of the process is the end of everything it started.
    """

    argv: list[str]
    pass_fds: tuple[int, ...] = ()
    contained: bool = False
    reports: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Box:
    """What commands run in.  `why` says in words why it is not the full one; `recovered` what a crash had left behind."""

    kind: Kind
    policy: Policy
    why: str = ""
    program: str = ""
    recovered: tuple[str, ...] = ()
    _walk: list[Repositories] = field(default_factory=list, compare=False, repr=False)
    _seen: Seen = field(default_factory=Seen, compare=False, repr=False)

    @classmethod
    def none(cls, policy: Policy, why: str) -> Box:
        """No box."""
        return cls("none", policy, why)

    @classmethod
    def probe(cls, policy: Policy, environment: Mapping[str, str]) -> Box:
        """The best box there is, found out by running `true` in it; takes some 20 ms, at most 5 s.

        `environment` is what commands get.
        """
        try:
            private_folder(policy.temp)
        except OSError as error:
            place = error.filename or policy.temp
            said = f"It needs {place}, which cannot be made ({error.strerror}); HYPERCODE_HOME names another place."
            return cls("none", policy, said)
        recovered = tuple(recover(policy.quarantine))
        if sys.platform == "darwin":
            return _macos(policy, environment, recovered)
        if platform.machine() not in seccomp.MACHINES:
            return cls("none", policy, f"There is no filter for {platform.machine()} machines.", "", recovered)
        program = find_bwrap(environment.get("PATH", os.defpath), policy)
        if program is None:
            return cls("none", policy, "Install bubblewrap (0.8 or newer) for one.", "", recovered)
        box = cls("bubblewrap", policy, "", program, recovered)
        why = box._failure(environment)
        return box if why is None else cls("none", policy, why, "", recovered)

    @property
    def full(self) -> bool:
        """Whether it holds well enough for commands to run in it unasked."""
        return self.kind == "bubblewrap"

    def describe(self) -> str:
        """One line for a person."""
        if self.kind == "bubblewrap":
            folders = (
                "this folder" if len(self.policy.roots) == 1 else f"this folder and {len(self.policy.roots) - 1} more"
            )
            return f"Sandbox: bubblewrap — writes: {folders}; network: off; secrets hidden"
        if self.kind == "sandbox-exec":
            return "Sandbox: sandbox-exec (untested) — every command asks."
        return f"Sandbox: none — every command asks. {self.why}".rstrip()

    def wrap(
        self,
        argv: Sequence[str],
        profile: Profile = "workspace",
        *,
        network: bool = False,
        guarded: Sequence[Path] | None = None,
        hide: Sequence[str] = (),
    ) -> Entered:
        """The command as it runs in the box; the descriptors belong to the caller.  `enter` does it all.

        `guarded` are the places that stay as they are, where they are known already, `hide` files that are empty in there.
        """
        if self.kind == "sandbox-exec":
            closed = protected(self.policy, self._repositories().git_folders())
            text = sandbox_macos.profile(self.policy, closed, git=profile == "git", network=network)
            return Entered([self.program, "-p", text, *argv])
        if self.kind == "none":
            return Entered(list(argv))
        if guarded is None:
            guarded = protected(self.policy, self._repositories().git_folders())
        words = options(network) + mounts(self.policy, guarded, git=profile == "git", network=network)
        words += [word for path in hide for word in ("--ro-bind", _EMPTY, path)]
        filter_ = _memory_file(seccomp.program(platform.machine(), HOST_NETWORK if network else OWN_NETWORK))
        command = [self.program, *words, "--seccomp", str(filter_), "--", *with_limits(list(argv))]
        return Entered(command, (filter_,), contained=True)

    @contextmanager
    def enter(
        self, argv: Sequence[str], profile: Profile = "workspace", *, network: bool = False, hidden: bool = False
    ) -> Iterator[Entered]:
        """A command in the box; on the way out the workspace is looked over and `reports` filled.  Raises OSError.

        `hidden`: the files in the workspace that usually hold secrets are empty for it, the first so many.
        """
        if not self.full:
            yield self.wrap(argv, profile, network=network)
            return
        watch, guarded = self._watch(profile)
        watch.start()
        entered = Entered([])
        try:
            hide = self._repositories().secrets()[:_MOST_HIDDEN] if hidden else []
            entered = self.wrap(argv, profile, network=network, guarded=guarded, hide=hide)
            yield entered
        finally:
            for descriptor in entered.pass_fds:
                os.close(descriptor)
            entered.reports += watch.finish()

    def warm_up(self) -> None:
        """Look at the folders for the first time, which takes longest, before a command waits for it."""
        if self.full:
            self._repositories().look()
            self._repositories().obeyed()

    def _repositories(self) -> Repositories:
        if not self._walk:
            self._walk.append(self._new_walk())
        return self._walk[0]

    def _new_walk(self) -> Repositories:
        hidden = [self.policy.quarantine, *self.policy.own]
        return Repositories(self.policy.roots, [self.policy.temp], hidden)

    def _watch(self, profile: Profile) -> tuple[Watch, list[Path]]:
        """What is watched during a command, and the places that stay as they are; looks at the folders once."""
        walk = self._repositories()
        watch = Watch(self.policy.quarantine, seen=self._seen)
        watch.below(self.policy.roots, walk)
        guarded = protected(self.policy, walk.seen_git_folders())
        gits = git_folders(self.policy.workspace) if profile == "git" else []
        steady = {place for place in (*self.policy.roots, *gits) if self.policy.steady(place)}
        for path in guarded:
            is_git = path.name == ".git"
            is_text = is_git and os.path.isfile(path)
            watch.add(path, text=is_text, repository=is_git, fixed=path.parent in steady)
        watch.obeyed()
        for git in gits:
            for place in (git / name for name in HOOK_PLACES):
                watch.add(place, never=True, fixed=place.parent in steady)
            for place in redirects(git):
                watch.add(place, text=True, never=True)
        return watch, guarded

    def _failure(self, environment: Mapping[str, str]) -> str | None:
        """Why the box does not work; None if it does."""
        try:
            entered = self.wrap(["/bin/sh", "-c", "true"], guarded=protected(self.policy, ()))
            try:
                done = subprocess.run(
                    entered.argv,
                    env=environment,
                    pass_fds=entered.pass_fds,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=_PROBE_SECONDS,
                    check=False,
                )
            finally:
                for descriptor in entered.pass_fds:
                    os.close(descriptor)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap could not be run: {error}."
        return None if done.returncode == 0 else _explained(done.stderr.decode("utf-8", "replace").strip())


def _explained(message: str) -> str:
    last = message.splitlines()[-1] if message else "no reason given"
    if "nknown option" in message:
        return "bubblewrap is too old; 0.8 or newer is needed."
    blocked = ("uid map" in message or "namespace" in message) and "ermi" in message
    if blocked and Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").exists():
        return (
            f"AppArmor does not let bubblewrap make namespaces ({last}). The distribution has a profile that allows just "
            "this program: on Ubuntu install apparmor-profiles and enable bwrap-userns-restrict."
        )
    if blocked:
        return f"This system does not let bubblewrap make namespaces ({last})."
    if (
        "mount proc" in message and "ermi" in message
    ):  # the kernel shows a new one only to who sees the whole of this one
        return f"Parts of /proc are hidden here, as in a container, so bubblewrap gets none of its own ({last})."
    return f"bubblewrap failed: {last}."


def _macos(policy: Policy, environment: Mapping[str, str], recovered: tuple[str, ...]) -> Box:
    box = Box("sandbox-exec", policy, "sandbox-exec is untested.", sandbox_macos.PROGRAM, recovered)
    why = box._failure(environment)
    return box if why is None else Box("none", policy, why.replace("bubblewrap", "sandbox-exec"), "", recovered)


def _memory_file(content: bytes) -> int:
    """A descriptor from which the content can be read once."""
    descriptor = os.memfd_create("filter", os.MFD_CLOEXEC)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
