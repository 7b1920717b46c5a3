"""A machine that has just been set up: what programs see of this one is a Python, the basic tools and the registry.

Things that take long are made once for all workers of a test run; `once` sees to it.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KEPT = re.compile(r"(PIP|SSL)_\w+|REQUESTS_CA_BUNDLE|UV_(DEFAULT_|EXTRA_)?INDEX(_URL)?|(https?|all|no)_proxy", re.I)
"""The variables without which the registry could not be reached from here."""


def shared_folder(tmp_path_factory):
    """The folder that all workers of this test run see."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@contextlib.contextmanager
def locked(path):
    """No other worker is in here for the same path."""
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def once(tmp_path_factory, name, make):
    """The folder that `make(folder)` filled, whichever worker came first; its failure is the failure of all."""
    folder = shared_folder(tmp_path_factory) / name
    outcome = folder.with_suffix(".outcome")
    with locked(folder):
        if not outcome.exists():
            folder.mkdir()
            result = {"skip": "", "fail": ""}
            try:
                make(folder)
            except pytest.skip.Exception as skipped:
                result["skip"] = str(skipped)
            except (OSError, AssertionError, subprocess.SubprocessError) as failure:
                result["fail"] = f"{type(failure).__name__}: {failure}"
            outcome.write_text(json.dumps(result))
        result = json.loads(outcome.read_text())
    if result["skip"]:
        pytest.skip(result["skip"])
    assert not result["fail"], result["fail"]
    return folder


@contextlib.contextmanager
def in_use(tmp_path_factory):
    """What `once` made stays while a worker is in here; the last one to leave takes the hundreds of megabytes away."""
    shared = shared_folder(tmp_path_factory)
    users = shared / "users"
    me = users / os.environ.get("PYTEST_XDIST_WORKER", "alone")
    with locked(users):
        users.mkdir(exist_ok=True)
        me.touch()
    try:
        yield
    finally:
        with locked(users):
            me.unlink()
            if not list(users.iterdir()):
                for outcome in shared.glob("*.outcome"):
                    outcome.unlink()
                    shutil.rmtree(outcome.with_suffix(""))


def environment(home, cache, *path, **more):
    """The variables of a fresh machine; `cache` keeps what was downloaded for the next one."""
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
    return kept | {
        "HOME": str(home),
        "PATH": os.pathsep.join([*map(str, path), "/usr/local/bin", *os.defpath.split(os.pathsep)]),
        "LC_ALL": "C.UTF-8",
        "PIP_CACHE_DIR": str(cache / "pip"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_CACHE_DIR": str(cache / "uv"),
        "UV_PYTHON_DOWNLOADS": "never",
        **more,
    }


def done(command, environment, *, cwd, timeout=300):
    """Run a command that must succeed and return its stdout."""
    ran = subprocess.run(
        [*map(str, command)], env=environment, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert ran.returncode == 0, f"{command} ended with {ran.returncode}\n{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}"
    return ran.stdout


def make_tools(folder):
    """`bin/uv` and `bin/pipx` in the folder, from the registry; skips where none can be reached, but fails in CI."""
    cache = folder / "cache"
    machine = environment(folder / "home", cache)
    done([sys.executable, "-m", "venv", folder / "venv"], machine, cwd=folder)
    pip = [folder / "venv/bin/python", "-m", "pip"]
    asked = subprocess.run(
        [
            *map(str, pip),
            "download",
            "--quiet",
            "--no-deps",
            "--retries",
            "1",
            "--timeout",
            "20",
            "--dest",
            "asked",
            "iniconfig",
        ],
        env=machine | {"PIP_NO_CACHE_DIR": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if asked.returncode:
        why = f"no package registry can be reached from here: {asked.stderr.strip().splitlines()[-1]}"
        if os.environ.get("CI"):
            raise AssertionError(why)
        pytest.skip(why)
    beside = Path(sys.executable).with_name("uv")
    here = shutil.which("uv") or (str(beside) if beside.exists() else None)
    done([*pip, "install", "--quiet", "pipx>=1.7,<2", *([] if here else ["uv>=0.9,<1"])], machine, cwd=folder)
    (folder / "bin").mkdir()
    (folder / "bin/uv").symlink_to(here or folder / "venv/bin/uv")
    (folder / "bin/pipx").symlink_to(folder / "venv/bin/pipx")


def copy_of_repository(target):
    """What a clone of this repository would hold now, with changes that are not committed yet, committed."""
    target.mkdir(parents=True)
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "-z"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            timeout=60,
        )
        names = [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    else:
        generated = re.compile(
            r"(^|/)(\.venv|__pycache__|\.\w+_cache|\.hypothesis|dist|build|[^/]*\.egg-info|uv\.lock)(/|$)"
        )
        files = (str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file())
        names = [name for name in files if not generated.search(name)]
    for name in names:
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    git = [
        "git",
        "-c",
        "user.name=A Person",
        "-c",
        "user.email=person@example.invalid",
        "-c",
        "init.defaultBranch=main",
    ]
    nobody = {"PATH": os.environ["PATH"], "HOME": str(target.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "A copy"]):
        done([*git, *arguments], nobody, cwd=target)
    return target


def for_hypercode(stage):
    """The variables with which hypercode talks to the scripted server of a stage."""
    return {
        "HYPERCODE_HOME": str(stage.home / "hypercode"),
        "HYPERCODE_BASE_URL": stage.server.base_url,
        "HYPERCODE_API_KEY": "sk-test-not-a-key",
        "HYPERCODE_MODEL": "script/s",
    }
