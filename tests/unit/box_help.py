"""A workspace of its own and commands in a real box around it."""

import os
import secrets
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from hypercode.process import child_environment, run_group
from hypercode.safety.sandbox import Box, Policy

BWRAP = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")


@contextmanager
def workspace():
    """Not below the temporary folder, which a box replaces by its own."""
    base = Path("/var/tmp") / f"box-{secrets.token_hex(6)}"
    for name in ("home/work", "temp"):
        (base / name).mkdir(parents=True)
    yield Policy((base / "home/work",), base / "home", base / "temp", base / "state/quarantine", own=(base / "state",))
    shutil.rmtree(base)


def runner(policy):
    """Run a command in the box; its reports, with the workspace cut off the names.  What fails is an error."""
    env = child_environment(os.environ, temp=policy.temp)
    box = Box.probe(policy, env)
    assert box.full, box.why

    async def run(command, profile="workspace"):
        argv = ["/bin/bash", "-c", "--", f"set -e; {command}"]
        with box.enter(argv, profile) as entered:
            done = await run_group(
                entered.argv, cwd=policy.workspace, env=env, timeout=60, pass_fds=entered.pass_fds, contained=True
            )
        assert done.returncode == 0, done.output
        return [report.replace(f"{policy.workspace}/", "") for report in entered.reports]

    return run


def put(folder, **files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def git(folder, *words):
    identity = ["-c", "user.name=n", "-c", "user.email=n@example.invalid"]
    subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True)


def left(*names):
    return [
        f"Tools obey without asking what was made or changed while the command ran: {', '.join(names)}. "
        "It was left in place; look at it before you go on."
    ]


def lies(path):
    """Whether anything is there, a dangling link too."""
    return os.path.lexists(path)
