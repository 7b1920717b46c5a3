"""Unasked git commands in a repository whose own settings name programs: nothing of it runs outside the box."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stage import answer, call, text

BOXES = [
    pytest.param([], marks=pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")),
    ["--no-sandbox"],
]


@pytest.fixture
def tmp_path():
    """Not below the temporary folder, which a box replaces by its own."""
    with tempfile.TemporaryDirectory(prefix="canary-", dir="/var/tmp") as folder:
        yield Path(folder)


def git(folder, *words):
    identity = ["-c", "user.name=n", "-c", "user.email=n@example.invalid"]
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def hostile(workspace, canary, kind):
    """A repository that came with settings of its own."""
    git(workspace, "init", "-q")
    script = workspace / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    script.chmod(0o755)
    (workspace / "a.txt").write_text("one\n")
    (workspace / ".gitattributes").write_text("*.txt filter=x diff=x\n")
    git(workspace, "add", ".")
    git(workspace, "commit", "-qm", "one")
    if kind == "hook":
        hook = workspace / ".git/hooks/post-index-change"
        hook.parent.mkdir(exist_ok=True)
        shutil.copy(script, hook)
    elif kind == "include":
        (workspace / "more").write_text(f'[filter "x"]\n\tclean = {script}\n')
        git(workspace, "config", "include.path", "../more")
    else:
        git(workspace, "config", kind, str(script))
    (workspace / "a.txt").write_text("two\n")


KINDS = {
    "filter.x.clean": "git status",
    "filter.x.process": "git diff",
    "diff.x.textconv": "git diff",
    "diff.x.command": "git diff",
    "diff.external": "git diff",
    "include": "git status && git log -p -1",
    "hook": "git status",
}


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_the_repository_runs_outside_the_box(stage, tmp_path, kind, box):
    command = KINDS[kind]
    s = stage(answer(call("bash", {"command": command}, "c")), answer(text("done")))
    canary = tmp_path / "canary"
    hostile(s.workspace, canary, kind)
    done = s.run("run", "go", *box)
    told = s.requests()[1]["messages"][-1]["content"]
    assert not canary.exists(), told
    assert done.returncode == (5 if box else 0), done.stderr
    assert told.startswith("refused: needs a person's yes") == bool(box), told
    if box:
        assert "the repository makes git run a program" in told
    subprocess.run(["bash", "-c", command], cwd=s.workspace, capture_output=True, check=False)
    assert canary.exists(), "git itself would have run it"


@pytest.mark.parametrize("kind", ["filter.x.clean", "diff.x.textconv"])
def test_plan_mode_refuses_and_an_allow_rule_is_a_yes(stage, tmp_path, kind):
    s = stage(*[answer(call("bash", {"command": "git diff"}, "c")), answer(text("done"))] * 2)
    canary = tmp_path / "canary"
    hostile(s.workspace, canary, kind)
    assert s.run("run", "go", "--no-sandbox", "--mode", "plan").returncode == 5
    assert not canary.exists()
    assert s.run("run", "go", "--no-sandbox", "--allow", "git diff").returncode == 0
    assert canary.exists(), s.requests()[-1]["messages"][-1]["content"]


def test_submodules_and_repositories_inside_count(stage, tmp_path):
    s = stage(answer(call("bash", {"command": "git status"}, "c")), answer(text("done")))
    inner = s.workspace / "inner"
    inner.mkdir()
    canary = tmp_path / "canary"
    hostile(inner, canary, "filter.x.clean")
    git(s.workspace, "init", "-q")
    git(s.workspace, "add", "inner")
    assert s.run("run", "go", "--no-sandbox").returncode == 5
    assert not canary.exists()
    git(s.workspace, "status")
    assert canary.exists()


@pytest.mark.parametrize("box", BOXES)
def test_an_ordinary_repository_is_read_unasked(stage, box):
    s = stage(answer(call("bash", {"command": "git status --short && git log --oneline"}, "c")), answer(text("done")))
    git(s.workspace, "init", "-q")
    git(s.workspace, "config", "core.hooksPath", ".husky")
    git(s.workspace, "remote", "add", "origin", "git@host.invalid:a/b.git")
    git(s.workspace, "-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "first")
    (s.workspace / "a.txt").touch()
    done = s.run("run", "go", *box)
    assert done.returncode == 0, done.stderr
    assert s.requests()[1]["messages"][-1]["content"].startswith("?? a.txt\n")


@pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")
def test_a_new_repository_stays_and_what_programs_obey_does_not(stage, tmp_path):
    calls = [call("bash", {"command": "git init -q"}, "c"), call("bash", {"command": "sh setup.sh"}, "d")]
    s = stage(*map(answer, calls), answer(text("done")))
    (s.workspace / "setup.sh").write_text(
        "mkdir sub\necho 'touch x' > sub/.envrc\n"
        "git init -q one\ngit init -q two\necho : > two/.git/hooks/post-checkout\nchmod +x two/.git/hooks/*\n"
    )
    done = s.run("run", "go", "--mode", "auto")
    assert done.returncode == 0, done.stderr
    first, second = [request["messages"][-1]["content"] for request in s.requests()[1:]]
    assert first == "[no output]"
    assert f"[sandbox: {s.workspace}/sub/.envrc appeared; tools would obey it" in second
    assert f"[sandbox: {s.workspace}/two/.git is a git repository that would run a program (the hook post-" in second
    assert second.count("[sandbox: ") == 2
    told = [line for line in done.stderr.splitlines() if line.startswith("warning: sandbox: ")]
    assert [f"[{line.removeprefix('warning: ')}]" for line in told] == second.splitlines()[-2:]
    there = [(s.workspace / name).exists() for name in (".git/HEAD", "one/.git/HEAD", "sub/.envrc", "two/.git")]
    assert there == [True, True, False, False]
