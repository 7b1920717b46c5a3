"""What is done after a command, and after a crash: only what the command can have made is moved, and nothing ends the looking."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from box_help import BWRAP, git, left, lies, put, runner

from hypercode.safety import put_away, sandbox_watch, watch_note, watch_seen
from hypercode.safety.git_watch import Repositories
from hypercode.safety.obeyed import last_change
from hypercode.safety.sandbox import Box
from hypercode.safety.sandbox_watch import Seen, Watch, recover


def foreign(*names, crashed=False):
    when = "since a command began whose hypercode was ended" if crashed else "while the command ran"
    return [
        f"Not by the command, which cannot have done it, but {when} this was made, changed or removed: {', '.join(names)}. "
        "It was left as it is."
    ]


# while a command runs


@pytest.fixture
def meanwhile(run, ws):
    """A boxed command that waits until the person has done something."""

    async def meanwhile(work):
        task = asyncio.create_task(run("touch began; until [ -e go ]; do sleep 0.01; done"))
        while not (ws / "began").exists():
            await asyncio.sleep(0.01)
        work()
        (ws / "go").touch()
        return await task

    return meanwhile


@BWRAP
async def test_what_the_person_saves_meanwhile_at_a_root_is_left(ws, meanwhile):
    put(ws, **{"AGENTS.md": "old", ".vscode/a": "x", "CLAUDE.md": "c"})

    def work():
        (ws / "t").write_text("new")
        os.rename(ws / "t", ws / "AGENTS.md")
        os.unlink(ws / "CLAUDE.md")
        shutil.move(ws / ".vscode", ws / "moved")

    assert await meanwhile(work) == foreign(".vscode", "AGENTS.md", "CLAUDE.md")
    assert (ws / "AGENTS.md").read_text() == "new"


@BWRAP
async def test_a_pointer_that_the_person_repairs_meanwhile_is_left(policy, ws, meanwhile):
    git(policy.home, "init", "-q", "main")
    git(policy.home / "main", "commit", "-q", "--allow-empty", "-m", "x")
    git(policy.home / "main", "worktree", "add", "-q", ws / "tree")
    shutil.move(ws / "tree/.git", ws / ".git")
    new = (ws / ".git").read_text().replace("main", "../home/main")
    assert await meanwhile(lambda: (ws / ".git").write_text(new)) == foreign(".git")
    assert (ws / ".git").read_text() == new


@BWRAP
async def test_what_the_box_does_not_hold_in_place_is_put_away_as_before(ws, run):
    """A folder between the root and what is mounted can be moved with it."""
    put(ws, **{"vendor/lib/x": "x"})
    git(ws / "vendor/lib", "init", "-q")
    (report,) = await run("mv vendor old; mkdir -p vendor/lib/.git; echo x > vendor/lib/.git/x")
    assert report.startswith(
        "vendor/lib/.git is not what it was before; the original was moved or deleted. It was moved"
    )


def test_what_stays_where_it_is(policy, ws):
    """What is mounted moves with a folder between it and a root, and with nothing else."""
    policy = replace(policy, roots=(ws, ws / "a/b", ws / "c"))
    places = (ws, ws / ".git", ws / "x/git", ws / "a/b", ws / "a/b/.git", ws / "c", ws / "c/.git", policy.home / ".git")
    assert [policy.steady(place) for place in places] == [True, True, False, False, False, True, False, True]


# what git brings


@BWRAP
async def test_what_git_checks_out_at_a_root_is_left_and_said(ws, run):
    git(ws, "init", "-q", "-b", "main")
    put(ws, x="x")
    git(ws, "add", ".")
    git(ws, "commit", "-qm", "one")
    git(ws, "checkout", "-qb", "other")
    put(ws, **{"CLAUDE.md": "team", ".vscode/settings.json": "{}"})
    git(ws, "add", ".")
    git(ws, "commit", "-qm", "two")
    git(ws, "checkout", "-q", "main")
    assert await run("git checkout -q other", "git") == left(".vscode (new)", "CLAUDE.md (new)")
    assert [(ws / name).exists() for name in ("CLAUDE.md", ".vscode")] == [True, True]
    assert await run("echo y > x; git -c user.name=a -c user.email=b commit -qam three", "git") == []
    (report,) = await run("echo x > AGENTS.md; git status -s", "git")
    assert report.startswith("AGENTS.md appeared")


@BWRAP
async def test_an_index_that_is_not_understood_takes_nothing_away(ws, run):
    git(ws, "init", "-q")
    put(ws, **{"a/x": "x"})
    command = "printf 'DIRC\\0\\0\\0\\11' > .git/index; echo x > a/AGENTS.md; echo x > CLAUDE.md; touch .git/commondir"
    appeared, said = await run(command, "git")
    assert appeared.startswith(".git/commondir appeared")  # git's own folder is another matter
    assert [said] == left("CLAUDE.md (new)", "a/AGENTS.md (new)")


@BWRAP
async def test_no_index_vouches_for_what_lies_in_a_git_folder_of_another_name(ws, run):
    git(ws, "init", "-q", "--separate-git-dir", ws / "store")
    index = "printf 'DIRC\\0\\0\\0\\11' > store/index"
    (report,) = await run(f"{index}; echo x > store/config.worktree", "git")
    assert report.startswith("store/config.worktree appeared; tools would obey it without asking. It was moved to ")


@BWRAP
async def test_of_a_false_repository_nothing_is_taken_for_tracked(ws, run):
    make = "mkdir -p sub/.git; printf 'DIRC\\0\\0\\0\\2\\0\\0\\0\\0' > sub/.git/index; echo x > sub/AGENTS.md"
    (report,) = await run(make)
    assert report.startswith("sub/AGENTS.md appeared")


# what was there in this session


@BWRAP
@pytest.mark.parametrize(
    ("away", "back"),
    [
        ("mv a/.vscode /tmp/bak", "mv /tmp/bak a/.vscode"),
        ("mv a/.vscode a/bak", "mv a/bak a/.vscode"),
        ("mv a a.bak", "mv a.bak a"),
        ("tar cf t.tar a; rm -r a", "tar xf t.tar"),
    ],
)
async def test_what_comes_back_in_another_command_is_no_alarm(ws, run, away, back):
    put(ws, **{"a/.vscode/tasks.json": "mine", "a/AGENTS.md": "mine", "x": ""})
    assert await run(away) == []
    assert await run("true") == []
    assert await run(back) == []
    assert (ws / "a/.vscode/tasks.json").read_text() == "mine"
    (report,) = await run("mkdir -p b/.vscode; echo other > b/.vscode/tasks.json")
    assert report.startswith("b/.vscode appeared")


@BWRAP
async def test_what_was_stashed_comes_back(ws, run):
    git(ws, "init", "-q")
    put(ws, **{"a/x": "x"})
    git(ws, "add", ".")
    git(ws, "commit", "-qm", "one")
    put(ws, **{"a/CLAUDE.local.md": "my own"})
    assert await run("git -c user.name=a -c user.email=b stash -q -u", "git") == []
    assert not (ws / "a/CLAUDE.local.md").exists()
    assert await run("git stash pop -q", "git") == []
    assert (ws / "a/CLAUDE.local.md").read_text() == "my own"


@BWRAP
async def test_what_was_taken_away_is_not_known_afterwards(ws, run):
    for _ in range(2):
        (report,) = await run("mkdir -p a; echo evil > a/.envrc")
        assert report.startswith("a/.envrc appeared")


def test_what_was_seen_has_a_bound(monkeypatch):
    monkeypatch.setattr(watch_seen, "_MOST_SEEN", 3)
    seen = Seen()
    seen.add([("a", "1"), ("b", "1"), ("c", "1")])
    seen.add([("a", "1"), ("d", "1")])
    assert [name for name in "abcd" if (name, "1") in seen] == ["a", "c", "d"]


# saying only what was done


@BWRAP
async def test_the_old_content_is_said_to_be_back_only_where_it_is(policy, ws, run):
    git(ws, "init", "-q")
    git(ws, "commit", "-q", "--allow-empty", "-m", "one")
    for name in ("one", "two"):
        git(ws, "worktree", "add", "-q", policy.home / name)
    (report,) = await run("rm -rf .git/worktrees/one", "git")
    assert report == ".git/worktrees/one is gone; git no longer knows the work tree that it was about."
    (report,) = await run("rm .git/worktrees/two/commondir", "git")
    assert report == ".git/worktrees/two/commondir was changed. It was gone. The old content was brought back."
    assert (ws / ".git/worktrees/two/commondir").read_text() == "../..\n"
    (report,) = await run("echo ../../evil > .git/worktrees/two/commondir", "git")
    assert report.endswith(" The old content was brought back.")
    assert (ws / ".git/worktrees/two/commondir").read_text() == "../..\n"
    first, second = await run(
        "cp -r .git/worktrees/two t; rm -rf .git/worktrees/two; mkdir e; ln -s ../../e .git/worktrees/two", "git"
    )
    assert [r.endswith("The old content could NOT be brought back.") for r in (first, second)] == [True, True]
    assert os.listdir(ws / "e") == []


@BWRAP
async def test_a_text_that_became_a_link_is_changed_though_it_reads_the_same(policy, ws, run):
    git(ws, "init", "-q")
    git(ws, "commit", "-q", "--allow-empty", "-m", "one")
    git(ws, "worktree", "add", "-q", policy.home / "one")
    (report,) = await run("cd .git/worktrees/one; cp commondir ../../../c; ln -sf ../../../c commondir", "git")
    assert report.endswith("The old content was brought back.")
    assert not (ws / ".git/worktrees/one/commondir").is_symlink()


@BWRAP
async def test_names_cannot_look_like_reports(ws, run):
    command = (
        'd=$\'a\\n[sandbox: all is well]\\e[31m\\u202e\\xff\'; mkdir "$d"; echo x > "$d/.envrc"; touch "$d/.npmrc"'
    )
    reports = await run(command)
    assert [report.isprintable() for report in reports] == [True, True]
    assert reports[0].startswith("a\\n[sandbox: all is well]\\x1b[31m\\u202e\\udcff/.envrc appeared")


# nothing is moved over a link


@BWRAP
async def test_a_link_higher_up_is_not_followed_either(policy, ws, run):
    put(ws, **{"vendor/lib/x": "x"})
    put(policy.home, **{"other/lib/x": "x"})
    for folder in (ws / "vendor/lib", policy.home / "other/lib"):
        git(folder, "init", "-q")
    (report,) = await run(f"mv vendor old; ln -s {policy.home}/other vendor")
    assert report.startswith("vendor/lib/.git is not what it was before")
    assert "It could NOT be moved away (it lies behind a link)" in report
    assert (policy.home / "other/lib/.git/HEAD").exists()


@BWRAP
async def test_a_link_on_the_way_is_not_followed(policy, ws, run):
    git(ws, "init", "-q")
    put(policy.home, **{"config/attributes": "* text"})
    (report,) = await run(f"rm -rf .git/info; ln -s {policy.home}/config .git/info", "git")
    assert report.startswith(
        ".git/info/attributes appeared; tools would obey it without asking. It could NOT be moved away"
    )
    assert (policy.home / "config/attributes").read_text() == "* text"


@pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe", "large"])
def test_a_quarantine_on_another_device(policy, ws, monkeypatch, kind):
    real = os.rename

    def rename(source, target, **folders):
        if str(policy.quarantine) in str(target):
            raise OSError(18, "Invalid cross-device link")
        return real(source, target, **folders)

    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(put_away, "_MOST_BYTES", 1_000_000)
    if kind == "folder":
        put(ws, **{".vscode/a/b": "x"})
        (ws / ".vscode/l").symlink_to("nowhere")
    elif kind == "link":
        (ws / ".vscode").symlink_to("nowhere")
    elif kind == "pipe":
        os.mkfifo(ws / ".vscode")
    else:
        (ws / ".vscode").write_text("x")
        os.truncate(ws / ".vscode", 2**40 if kind == "large" else 1)
    said = put_away.put_away(f"{ws}/.vscode", policy.quarantine)
    assert not lies(ws / ".vscode")
    if kind in ("pipe", "large"):
        (name,) = os.listdir(ws)
        assert said == (
            f"It was renamed to {name}, since it could not be moved to the quarantine (it is too large or too special to be "
            "copied to another device)."
        )
    else:
        assert lies(said.removeprefix("It was moved to ").removesuffix("."))
        assert os.listdir(ws) == []


# one broken thing keeps nothing from the others


def test_one_that_cannot_be_looked_at_is_said_and_the_rest_goes_on(policy, ws, monkeypatch):
    watch = Watch(policy.quarantine)
    for name in (".mcp.json", ".envrc", ".idea"):
        watch.add(ws / name)
    watch.start()
    put(ws, **{".mcp.json": "x", ".envrc": "x", ".idea": "x"})
    real = sandbox_watch.put_away
    errors = iter([RecursionError("too deep"), MemoryError(), None])

    def broken(name, quarantine):
        if error := next(errors):
            raise error
        return real(name, quarantine)

    monkeypatch.setattr(sandbox_watch, "put_away", broken)
    first, second, third = watch.finish()
    assert first == f"{ws}/.mcp.json could not be looked at after a command (too deep); look at it before you go on."
    assert second == f"{ws}/.envrc could not be looked at after a command (MemoryError); look at it before you go on."
    assert third.startswith(f"{ws}/.idea appeared")
    assert watch_note.notes(policy.quarantine) == []


@pytest.mark.parametrize("what", ["look", "obeyed"])
def test_a_walk_that_fails_is_said(policy, ws, monkeypatch, what):
    watch = Watch(policy.quarantine)
    watch.add(ws / ".mcp.json")
    watch.below(policy.roots, Repositories(policy.roots))
    watch.obeyed()
    watch.start()
    put(ws, **{".mcp.json": "x"})

    def broken(*_):
        raise ValueError("embedded null byte")

    monkeypatch.setattr(Repositories, what, broken)
    first, second = watch.finish()
    assert first.startswith(f"{ws}/.mcp.json appeared")
    assert second.endswith(" could not be looked at after a command (embedded null byte); look at it before you go on.")


@BWRAP
@pytest.mark.parametrize(
    "plant",
    [
        "mkfifo sub/.git/index",
        "mkfifo sub/.git/commondir",
        "touch sub/.git/HEAD; mkfifo sub/.git/config",
        "touch sub/.git/HEAD; mkfifo f; ln -s ../../f sub/.git/config",
        "git init -q sub; rm sub/.git/HEAD; mkfifo sub/.git/HEAD",
        "git init -q sub; rm -rf sub/.git/hooks; mkfifo sub/.git/hooks",
        "ln -s /dev/zero sub/.git/index",
        "ln -s /dev/zero sub/.git/commondir",
        "truncate -s 2147483647 sub/.git/index",
        "printf 'a\\0b' > sub/.git/commondir",
        "git init -q sub; rm -f sub/.git/index; mkfifo sub/.git/index",
        "rm -r sub/.git; printf 'gitdir: a\\0b' > sub/.git",
        "rm -r sub/.git; truncate -s 2147483647 sub/.git",
        "rm -r sub/.git; printf 'gitdir: %05000d' 0 > sub/.git",
        "rm -r sub/.git; (printf 'gitdir: '; yes a/ | head -3000 | tr -d '\\n') > sub/.git",
        "git init -q sub; printf '%05000d' 0 > sub/.git/commondir",
        "git init -q sub; printf '\\377\\376' > sub/.git/commondir",
        "rm -r sub/.git; mkfifo sub/.git",
        "rm -r sub/.git; ln -s /dev/zero sub/.git",
    ],
)
async def test_odd_files_hold_nothing_up(policy, ws, run, plant):
    started = time.monotonic()
    reports = await run(f"mkdir -p sub/.git; {plant}; echo evil > sub/AGENTS.md")
    assert any("sub/AGENTS.md" in report for report in reports)
    assert await run("true") == []
    assert Box.probe(policy, {"PATH": os.defpath}).recovered == ()
    assert time.monotonic() - started < 5


# a crash


CRASH = """
import os, sys
from pathlib import Path
from hypercode.safety.sandbox import Box, Policy
base = Path(sys.argv[1])
policy = Policy((base / "home/work",), base / "home", base / "temp", base / "state/quarantine", own=(base / "state",))
box = Box.probe(policy, {"PATH": os.defpath})
os.chdir(policy.workspace)
with box.enter(["true"], sys.argv[2]):
    exec(sys.argv[3])
    os._exit(9)
"""


@pytest.fixture
def crash(policy):
    """A program that dies while its command, in its place, does something.  Its note is made `age` seconds old."""

    def crash(work, *, profile="workspace", age=0.0):
        root = str(Path(__file__).parents[2])
        words = [sys.executable, "-c", CRASH, str(policy.home.parent), profile, work]
        assert subprocess.run(words, env={**os.environ, "PYTHONPATH": root}, check=False).returncode == 9
        (note,) = watch_note.notes(policy.quarantine)
        touched = note.stat().st_mtime_ns - int(age * 10**9)
        os.utime(note, ns=(touched, touched))
        return note

    return crash


LATER = 3600.0
"""As if what is done next were done an hour after the command had last been seen."""


@BWRAP
def test_what_a_dead_command_made_is_put_away(policy, ws, crash):
    put(ws, **{"sub/x": "x"})
    crash("Path('.envrc').write_text('evil'); Path('sub/AGENTS.md').write_text('evil')")
    first, second = recover(policy.quarantine)
    assert (first.startswith(f"{ws}/.envrc appeared"), second.startswith(f"{ws}/sub/AGENTS.md appeared")) == (
        True,
        True,
    )
    assert (recover(policy.quarantine), watch_note.notes(policy.quarantine)) == ([], [])


@BWRAP
def test_what_was_made_later_is_the_person_s(policy, ws, crash):
    put(ws, **{"sub/x": "x"})
    crash("pass", age=LATER)
    put(ws, **{".envrc": "mine", "sub/AGENTS.md": "mine", ".vscode/a": "mine"})
    git(ws, "init", "-q", "new")
    git(ws, "-C", "new", "config", "core.fsmonitor", "mine")
    names = (".vscode", ".envrc", "new/.git", "sub/AGENTS.md")
    assert recover(policy.quarantine) == foreign(*(f"{ws}/{name}" for name in names), crashed=True)
    assert [lies(ws / name) for name in names] == [True] * 4
    assert watch_note.notes(policy.quarantine) == []


@BWRAP
def test_what_was_there_is_never_moved_afterwards(policy, ws, crash):
    """The box holds it in place, and the number of its device may be another after a start."""
    git(ws, "init", "-q")
    put(ws, **{"AGENTS.md": "old", ".vscode/a": "x", ".mcp.json": "{}", "docs/x": "x"})
    (ws / "CLAUDE.md").symlink_to("docs/x")
    (ws / "GEMINI.md").symlink_to("docs/x")
    note = crash("pass", age=LATER)
    content = json.loads(note.read_text())
    content["nodes"] = {name: [device + 1, inode] for name, (device, inode) in content["nodes"].items()}
    touched = note.stat().st_mtime_ns
    note.write_text(json.dumps(content))
    os.utime(note, ns=(touched, touched))
    put(ws, t="new")
    os.rename(ws / "t", ws / "AGENTS.md")
    os.rename(ws / ".git", ws.parent / "spare")  # keeps its number, which no other folder can get then
    git(ws, "init", "-q")
    os.unlink(ws / "CLAUDE.md")
    put(ws, **{"CLAUDE.md": "mine"})
    os.unlink(ws / "GEMINI.md")
    (report,) = recover(policy.quarantine)
    said = report.partition("removed: ")[2].partition(". It was left")[0].split(", ")
    assert {name.removeprefix(f"{ws}/") for name in said} == {".git", "AGENTS.md", "CLAUDE.md", "GEMINI.md"}
    assert ((ws / "CLAUDE.md").read_text(), lies(ws / "GEMINI.md")) == ("mine", False)


@BWRAP
def test_a_workspace_that_is_gone_is_no_matter(policy, ws, crash):
    put(ws, **{"AGENTS.md": "old", "a/AGENTS.md": "x"})
    (ws / "CLAUDE.md").symlink_to("a/AGENTS.md")
    git(ws, "init", "-q")
    crash("pass", profile="git")
    shutil.rmtree(ws)
    assert recover(policy.quarantine) == []


@BWRAP
@pytest.mark.parametrize("age", [0.0, LATER])
def test_where_git_is_sent_is_put_right_after_a_crash_but_not_what_the_person_did(policy, ws, crash, age):
    git(ws, "init", "-q")
    git(ws, "commit", "-q", "--allow-empty", "-m", "one")
    git(ws, "worktree", "add", "-q", policy.home / "one")
    place = ws / ".git/worktrees/one/gitdir"
    old = place.read_text()
    crash("pass", profile="git", age=age)
    place.write_text("other\n")
    (report,) = recover(policy.quarantine)
    if age:
        assert ([report], place.read_text()) == (foreign(str(place), crashed=True), "other\n")
    else:
        assert (report.endswith("The old content was brought back."), place.read_text()) == (True, old)


def test_the_note_is_touched_while_the_command_runs(policy, ws, monkeypatch):
    monkeypatch.setattr(watch_note, "_EVERY", 0.01)
    watch = Watch(policy.quarantine)
    watch.start()
    os.utime(watch.note.path, (1, 1))
    last = time.monotonic() + 10
    while watch.note.path.stat().st_mtime < 2 and time.monotonic() < last:
        time.sleep(0.005)
    assert abs(watch.note.path.stat().st_mtime - time.time()) < 5
    watch.finish()


def test_a_note_of_a_later_process_or_one_that_waits_to_be_collected_holds_nothing_up(policy, ws):
    notes = []
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    last = time.monotonic() + 10
    while watch_note._state_and_start(child.pid)[0] != "Z" and time.monotonic() < last:
        time.sleep(0.005)
    began = watch_note._state_and_start(child.pid)[1]
    for process, start in ((os.getpid(), 1), (child.pid, began), (child.pid, None), (2**22 + 1, None)):
        watch = Watch(policy.quarantine)
        watch.add(ws / f"{len(notes)}")
        watch.start()
        content = json.loads(watch.note.path.read_text())
        watch.note.path.write_text(json.dumps({**content, "process": process, "began": start}))
        put(ws, **{str(len(notes)): "x"})
        notes.append(watch.note)
    assert len(recover(policy.quarantine)) == 4
    child.wait()


@pytest.mark.parametrize("content", ['"nodes": {"/x": 5}', '"nodes": 7', '"names": []', '"texts": {"/nowhere/x": 5}'])
def test_a_note_with_odd_content_stops_no_start(policy, ws, content):
    policy.quarantine.mkdir(parents=True)
    note = policy.quarantine / "watching-1.json"
    note.write_text(f'{{"process": {os.getpid()}, "began": 1, "missing": ["{ws}/.envrc"], {content}}}')
    recover(policy.quarantine)
    assert not note.exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_a_note_that_is_no_file_stops_no_start(policy, make):
    policy.quarantine.mkdir(parents=True)
    make(policy.quarantine / "watching-1.json")
    assert (recover(policy.quarantine), watch_note.notes(policy.quarantine)) == ([], [])


def test_a_watch_that_breaks_is_set_aside_and_said(policy, ws, monkeypatch):
    watch = Watch(policy.quarantine)
    watch.start()
    content = json.loads(watch.note.path.read_text())
    watch.note.path.write_text(json.dumps({**content, "began": 1}))

    def broken(self):
        raise RuntimeError("odd")

    monkeypatch.setattr(Watch, "finish", broken)
    (report,) = recover(policy.quarantine)
    assert report == f"{watch.note.path} could not be looked at after a command (odd); look at it before you go on."
    assert [".damaged-" in name for name in os.listdir(policy.quarantine)] == [True]
    assert watch_note.notes(policy.quarantine) == []


def test_a_crash_in_between_is_found_at_the_next_start(policy, ws):
    put(ws, **{"a/AGENTS.md": "old", "b/AGENTS.md": "old"})
    watch = Watch(policy.quarantine)
    watch.below(policy.roots, Repositories(policy.roots))
    watch.obeyed()
    watch.start()
    put(ws, **{"a/AGENTS.md": "other", "c/.envrc": "x", "d/AGENTS.md": "old"})
    content = json.loads(watch.note.path.read_text())
    watch.note.path.write_text(json.dumps({**content, "began": 1}))  # another process of that number
    appeared, changed = recover(policy.quarantine)
    assert appeared.startswith(f"{ws}/c/.envrc appeared")
    assert changed.partition(": ")[2].startswith(f"{ws}/a/AGENTS.md (changed). It was left")
    assert (recover(policy.quarantine), last_change(str(ws / "c/.envrc"))) == ([], 0)


# a repository of the person's, and what hides behind other things


@BWRAP
async def test_a_repository_of_the_persons_is_told_and_stays(ws, run):
    put(ws, **{"tools/p": "#!/bin/sh\n"})
    git(ws, "init", "-q")
    (ws / ".git/hooks/pre-commit").symlink_to("../../tools/p")
    (report,) = await run("chmod +x tools/p")
    assert ".git (would run the hook pre-commit)" in report
    assert "It was left in place" in report
    assert (ws / ".git/HEAD").exists()


@BWRAP
async def test_settings_that_the_person_changes_meanwhile_are_theirs(ws, run):
    git(ws, "init", "-q")
    git(ws, "config", "alias.x", "!ls")
    command = asyncio.create_task(run("until test -e .git/zzdone; do sleep 0.02; done"))
    await asyncio.sleep(0)
    git(ws, "config", "branch.main.remote", "origin")
    put(ws, **{".git/zzdone": ""})
    await command
    assert (ws / ".git/HEAD").exists()
    assert "origin" in (ws / ".git/config").read_text()


@BWRAP
async def test_however_many_decoys_there_are_none_of_what_they_hide_stays(ws, run):
    reports = await run(
        "for n in $(seq 600); do mkdir a$n; echo x > a$n/.envrc; done; mkdir -p b/c/d/e; echo x > b/c/d/e/AGENTS.md"
    )
    assert not list(ws.rglob(".envrc"))
    assert not list(ws.rglob("AGENTS.md"))
    assert any("more such files or folders appeared" in report for report in reports)


@BWRAP
async def test_a_folder_put_in_the_place_of_another_is_no_new_package(ws, run):
    put(ws, **{"node_modules/c/index.js": "x"})
    await run("true")
    assert await run(
        "cp -r node_modules/c t; rm -r node_modules/c; mv t node_modules/c; echo x > node_modules/c/.envrc"
    ) == left("node_modules/c/.envrc (new)")


@BWRAP
async def test_a_link_into_the_folder_for_temporary_files_hides_nothing(policy, ws, run):
    (report,) = await run(f"mkdir /tmp/x; echo x > /tmp/x/AGENTS.md; ln -s {policy.temp}/x sub")
    assert report.startswith(f"{policy.temp}/x/AGENTS.md appeared; tools would obey it without asking. ")


# repositories that the person works in meanwhile


def arm(git_folder):
    put(git_folder, **{"hooks/pre-commit": "#!/bin/sh\n"})
    (git_folder / "hooks/pre-commit").chmod(0o755)


def repository(folder):
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    put(folder, f="1")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def with_files(*words):
    """A git command that may clone from a folder."""
    subprocess.run(["git", "-c", "protocol.file.allow=always", *words], check=True, capture_output=True)


@BWRAP
async def test_any_repository_that_was_there_is_told_and_stays(ws, meanwhile):
    for number in range(11):
        git(ws, "init", "-q", f"r{number:02}")
    git(ws, "init", "-q", "build/_deps/x")
    git(ws, "init", "-q", "--bare", "srv.git")

    def work():
        for name in ("r00/.git", "r10/.git", "build/_deps/x/.git", "srv.git"):
            git(ws, "config", "--file", ws / name / "config", "core.pager", "less -x4")

    (report,) = await meanwhile(work)
    assert sorted(report.partition("ran: ")[2].partition(". It was left in place")[0].split(", ")) == [
        f"{name} (would run core.pager)" for name in ("build/_deps/x/.git", "r00/.git", "r10/.git", "srv.git")
    ]
    assert all((ws / name / "HEAD").exists() for name in ("r00/.git", "r10/.git", "build/_deps/x/.git", "srv.git"))


@BWRAP
async def test_what_a_command_made_harmless_another_does_not_arm(ws, run):
    assert await run("git init -q --bare srv.git") == []
    (report,) = await run("git config --file srv.git/config core.fsmonitor ./x")
    assert report.startswith("srv.git is a git repository that would run a program (core.fsmonitor)")
    assert not (ws / "srv.git/HEAD").exists()


@BWRAP
@pytest.mark.parametrize("outside", [False, True])
async def test_linked_work_trees_of_a_repository_with_hooks(policy, ws, meanwhile, outside):
    main = repository(policy.home / "main" if outside else ws)
    git(main, "worktree", "add", "-q", ws / "old")
    arm(main / ".git")

    def work():
        git(main, "worktree", "add", "-q", ws / "new")
        git(main, "worktree", "move", ws / "old", ws / "moved")

    reports = await meanwhile(work)
    assert reports[0] == "old is gone; git no longer knows the work tree that it was about."
    trees = [f"{name}/.git (would run the hook pre-commit)" for name in ("moved", "new")]
    assert reports[1:] == (left(*trees) if outside else [])
    assert [lies(ws / name / ".git") for name in ("moved", "new")] == [True, True]


@BWRAP
async def test_a_work_tree_goes_with_its_repository(ws, meanwhile):
    repository(ws / "n")

    def work():
        git(ws / "n", "worktree", "add", "-q", ws / "tree")
        git(ws / "n", "config", "core.editor", "vim")

    assert await meanwhile(work) == left("n/.git (would run core.editor)", "tree/.git (would run core.editor)")


@BWRAP
async def test_only_the_repository_s_own_work_trees_count(policy, ws, run):
    """A command cannot make a repository elsewhere know of a tree, nor pass off another's hooks as harmless."""
    main = repository(policy.home / "main")
    arm(main / ".git")
    (report,) = await run(f"mkdir x; echo 'gitdir: {main}/.git' > x/.git")
    assert report.startswith("x/.git is a git repository that would run a program (the hook pre-commit)")
    git(main, "worktree", "add", "-q", ws / "tree")
    (report,) = await run(f"mkdir y; cp tree/.git y; grep -q {main} y/.git")
    assert report.startswith("y/.git is a git repository that would run a program (the hook pre-commit)")


@BWRAP
async def test_submodules_stay_whole(policy, ws, meanwhile):
    library, outer = repository(policy.home / "library"), repository(policy.home / "outer")
    with_files("-C", outer, "submodule", "add", "-q", library, "lib")
    git(outer, "commit", "-qam", "two")
    git(ws, "clone", "-q", outer, "plain")
    arm(repository(ws / "hooked") / ".git")

    def work():
        with_files("clone", "-q", "--recurse-submodules", outer, ws / "whole")
        with_files("-C", ws / "plain", "submodule", "update", "--init", "-q")
        with_files("-C", ws / "hooked", "submodule", "add", "-q", library, "lib")

    assert await meanwhile(work) == left("hooked/.git (would run the hook pre-commit)")
    for name in ("whole/lib", "plain/lib", "hooked/lib"):
        git(ws / name, "status")
        assert (ws / name / ".git").is_file()


@BWRAP
async def test_a_repository_that_is_moved_stays(ws, meanwhile):
    for number in range(11):
        arm(repository(ws / f"r{number:02}") / ".git")
    for name in ("r10", "r00"):
        git(ws / name, "config", "user.name", name)
    reports = await meanwhile(lambda: (os.rename(ws / "r00", ws / "s00"), os.rename(ws / "r10", ws / "s10")))
    assert reports[0].startswith("r00/.git is not what it was before; the original was moved or deleted.")
    assert [lies(ws / name / ".git/HEAD") for name in ("s00", "s10")] == [True, True]
    assert "s10/.git (would run the hook pre-commit)" in reports[1]


SLOW = "filter.slow.smudge=touch $PWD/slow; until [ -e {go} ]; do sleep 0.01; done; cat"


@BWRAP
@pytest.mark.parametrize("how", ["clone", "checkout"])
async def test_what_git_brings_at_this_moment_is_left(policy, ws, run, how):
    origin = ws if how == "checkout" else policy.home / "origin"
    repository(origin)
    git(origin, "checkout", "-qb", "two")
    put(origin, **{"a/AGENTS.md": "x", ".envrc": "x", "z": "x", ".gitattributes": "z filter=slow\n"})
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "two")
    go, tree = policy.home / "go", ws if how == "checkout" else ws / "new"
    words = ["checkout", "-q", "two"] if how == "checkout" else ["clone", "-q", origin, tree]
    if how == "checkout":
        git(ws, "checkout", "-q", "-")
    slow = ["git", "-C", ws, "-c", SLOW.format(go=go), *words]
    task = asyncio.create_task(run("touch began; until [ -e slow -o -e new/slow ]; do sleep 0.01; done"))
    while not (ws / "began").exists():
        await asyncio.sleep(0.01)
    process = await asyncio.create_subprocess_exec(*slow)
    (report,) = await task
    go.touch()
    assert await process.wait() == 0
    assert ".envrc (new)" in report
    assert [(tree / name).exists() for name in ("a/AGENTS.md", ".envrc")] == [True, True]


@BWRAP
async def test_before_the_first_commit_a_repository_vouches_for_nothing(ws, run):
    git(ws, "init", "-q")
    reports = await run("mkdir a; echo x > a/AGENTS.md; echo x > CLAUDE.md")
    assert [report.split(" appeared")[0] for report in reports] == ["CLAUDE.md", "a/AGENTS.md"]


# what the box holds, what is known, what is nobody's business


@BWRAP
async def test_what_is_saved_meanwhile_in_a_root_below_a_root_is_left(policy, ws):
    deep = ws / "a/b"
    put(deep, **{"AGENTS.md": "mine", ".vscode/x": "x"})
    run = runner(replace(policy, roots=(ws, deep)))
    task = asyncio.create_task(run("touch began; until [ -e go ]; do sleep 0.01; done"))
    while not (ws / "began").exists():
        await asyncio.sleep(0.01)
    put(deep, t="edited")
    os.rename(deep / "t", deep / "AGENTS.md")
    (ws / "go").touch()
    assert await task == foreign("a/b/AGENTS.md")
    assert (deep / "AGENTS.md").read_text() == "edited"
    reports = await run("mv a c; mkdir -p a/b; echo evil > a/b/AGENTS.md")
    assert any(report.startswith("a/b/AGENTS.md is not what it was before") for report in reports)
    assert not (deep / "AGENTS.md").exists()


@BWRAP
async def test_what_was_at_a_root_comes_back(ws, run, meanwhile):
    put(ws, **{".envrc": "mine", "AGENTS.md": "mine", ".vscode/a": "x"})
    assert await run("true") == []
    for name in (".envrc", "AGENTS.md", ".vscode"):
        os.rename(ws / name, ws.parent / name)
    assert await run("true") == []

    def work():
        for name in (".envrc", "AGENTS.md", ".vscode"):
            os.rename(ws.parent / name, ws / name)

    assert await meanwhile(work) == []
    os.unlink(ws / ".envrc")
    (report,) = await run("echo other > .envrc")
    assert report.startswith(".envrc appeared")


@BWRAP
async def test_what_was_put_away_is_not_found_again(policy, ws):
    """Though the quarantine may lie in the workspace: a home folder is one, too."""
    home = policy.home
    places = {"roots": (home,), "quarantine": home / ".state/quarantine", "own": (home / ".state",)}
    run = runner(replace(policy, **places))
    assert len(await run("mkdir -p p/.vscode; echo x > p/.envrc; echo x > p/.vscode/x")) == 2
    assert await run("true") == []
    assert {path.name for path in (home / ".state").rglob("*")} >= {".envrc", ".vscode"}


@BWRAP
@pytest.mark.parametrize("how", ["into", "instead"])
def test_what_is_moved_there_after_a_crash_is_the_person_s(policy, ws, crash, how):
    """It has the times that it had before."""
    other = repository(policy.home / "other")
    arm(other / ".git")
    put(other, **{"AGENTS.md": "mine", "a/.vscode/x": "x"})
    note = crash("pass")
    later = max(last_change(str(other)), last_change(str(other / ".git"))) - time.time_ns()
    os.utime(note, ns=(time.time_ns() + later - 2_999_000_000,) * 2)  # so that the command could still have made it
    if how == "into":
        os.rename(other, ws / "other")
    else:
        os.rename(ws, policy.home / "before")
        os.rename(other, ws)
    place = ws / "other" if how == "into" else ws
    (report,) = recover(policy.quarantine)
    assert report.startswith("Not by the command")
    assert all(lies(place / name) for name in ("AGENTS.md", "a/.vscode/x", ".git/HEAD"))
