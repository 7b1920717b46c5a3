"""Undo and redo, step by step: what tools and commands changed comes back, what others changed stays."""

import asyncio
import json
import os
import stat
import subprocess
import threading

import pytest
from undo_help import Bench

from hypercode.memory.undo import Outcome
from hypercode.memory.workspace_scan import Limits
from hypercode.tools.diffs import unified

CHANGED = "it was changed by somebody else since"


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.undo.close()


def brief(outcome):
    return outcome.restored, dict(outcome.refused), outcome.notes


def back_and_forth(bench, before):
    """Undo everything, do it all again, undo it again; every tree on the way must be right."""
    after = bench.tree()
    count = len(bench.undo.steps())
    for expected, move in [(before, bench.undo.undo), (after, bench.undo.redo), (before, bench.undo.undo)]:
        outcomes = [move() for _ in range(count)]
        assert [o.refused for o in outcomes] == [()] * count
        assert bench.tree() == expected


def test_a_written_file_and_its_folders_go_and_come_back(bench):
    before = bench.tree()
    bench.write("a/b/c.txt", "hello\n")
    assert set(bench.tree()) == {"a", "a/b", "a/b/c.txt"}
    back_and_forth(bench, before)


def test_an_overwritten_file_comes_back_with_mode(bench):
    path = bench.ws / "run.sh"
    path.write_text("old\n")
    path.chmod(0o751)
    before = bench.tree()
    bench.write("run.sh", "new\n")
    back_and_forth(bench, before)


SHELL = {
    "changed": "echo new > a.txt; echo more >> d/b.txt",
    "made": "echo x > n.txt; mkdir -p p/q/r; echo y > p/q/y.txt",
    "deleted": "rm a.txt d/b.txt",
    "deleted with its folder": "rm -r d",
    "deleted an empty folder": "rmdir empty",
    "moved": "mv a.txt z.txt; mv d e",
    "swapped": "mv a.txt t; mv d/b.txt a.txt; mv t d/b.txt",
    "mode of a file": "chmod 640 a.txt",
    "mode of a folder": "chmod 700 d",
    "mode and content": "echo x > a.txt; chmod 755 a.txt",
    "mode of what is deleted": "chmod 700 a.txt && rm d/b.txt",
    "file became a folder": "rm a.txt; mkdir a.txt; echo in > a.txt/in",
    "folder became a file": "rm -r d; echo x > d",
    "empty files": ": > a.txt; : > new",
    "binary": r"printf '\000\377\001' > a.txt; printf '\377\376' > bin",
    "odd names": "echo x > 'a b'; echo x > '-rf'; printf x > \"$(printf 'l\\nf')\"; printf x > \"$(printf '\\377')\"",
    "a read-only folder": "echo x > d/new; chmod 555 d",
    "a private file": "umask 077; echo secret > p.txt",
    "many": "for i in 1 2 3 4 5 6 7 8 9; do mkdir -p m$i/n; echo $i > m$i/n/f; done; rm -r d",
    "an executable": "printf '#!/bin/sh\\n' > x.sh; chmod 711 x.sh",
}


@pytest.fixture
def filled(bench):
    (bench.ws / "a.txt").write_text("a\n")
    (bench.ws / "d").mkdir()
    (bench.ws / "d/b.txt").write_text("b\n")
    (bench.ws / "d/b.txt").chmod(0o604)
    (bench.ws / "empty").mkdir(mode=0o710)
    return bench


@pytest.mark.parametrize("command", SHELL.values(), ids=SHELL.keys())
def test_what_a_command_did_goes_and_comes_back(filled, command):
    before = filled.tree()
    filled.command(command)
    assert filled.tree() != before
    assert len(filled.undo.steps()) == 1
    back_and_forth(filled, before)


def test_many_steps_one_by_one(filled):
    trees = [filled.tree()]
    for act in [
        lambda: filled.write("a.txt", "1\n"),
        lambda: filled.command("echo 2 >> a.txt; rm -r d"),
        lambda: filled.write("d/b.txt", "3\n"),
        lambda: filled.command("mv a.txt d/a.txt"),
    ]:
        act()
        trees.append(filled.tree())
    for expected in trees[-2::-1]:
        assert filled.undo.undo().refused == ()
        assert filled.tree() == expected
    assert filled.undo.undo() == Outcome(None, notes=("There is nothing to undo in this conversation.",))
    for expected in trees[1:]:
        assert filled.undo.redo().refused == ()
        assert filled.tree() == expected
    assert filled.undo.redo() == Outcome(None, notes=("There is nothing to do again.",))


def test_a_command_that_changes_nothing_is_no_step(filled):
    filled.command("cat a.txt > /dev/null; touch a.txt d; echo a > a.txt")
    assert filled.undo.steps() == []


def test_further_folders_are_covered_like_the_workspace(filled):
    other = filled.base / "other"
    other.mkdir()
    (other / "x").write_text("x\n")
    filled.guard.add_root(other)
    filled.command(f"echo new > a.txt; rm {other}/x; echo y > {other}/y")
    outcome = filled.undo.undo()
    assert (set(outcome.restored), outcome.refused) == ({"a.txt", "../other/x", "../other/y"}, ())
    assert {p.name: p.read_text() for p in other.iterdir()} == {"x": "x\n"}
    filled.undo.redo()
    filled.restart()  # without the further folder
    assert dict(filled.undo.undo().refused) == {
        f"{other}/{name}": "it lies outside the folders of this session" for name in "xy"
    }


def test_a_new_step_ends_what_could_be_done_again(filled):
    filled.write("a.txt", "1\n")
    filled.write("a.txt", "2\n")
    filled.undo.undo()
    filled.write("n.txt", "3\n")
    assert filled.undo.redo() == Outcome(None, notes=("There is nothing to do again.",))
    assert filled.steps() == [("write a.txt", True), ("write n.txt", True)]
    filled.undo.undo()
    filled.undo.undo()
    assert (filled.ws / "a.txt").read_text() == "a\n"


# -- strangers -------------------------------------------------------------------------


def test_a_file_that_somebody_changed_since_is_refused_and_the_rest_restored(filled):
    filled.command("echo new > a.txt; echo new > d/b.txt")
    (filled.ws / "a.txt").write_text("mine\n")
    assert brief(filled.undo.undo()) == (("d/b.txt",), {"a.txt": CHANGED}, ())
    assert ((filled.ws / "a.txt").read_text(), (filled.ws / "d/b.txt").read_text()) == ("mine\n", "b\n")
    assert brief(filled.undo.redo()) == (("d/b.txt",), {}, ())
    assert ((filled.ws / "a.txt").read_text(), (filled.ws / "d/b.txt").read_text()) == ("mine\n", "new\n")


@pytest.mark.parametrize(
    "stranger",
    [
        lambda p: p.write_text("mine"),
        lambda p: (p.unlink(), p.mkdir(), (p / "x").write_text("mine")),
        lambda p: (p.unlink(), p.symlink_to("elsewhere")),
        lambda p: (p.unlink(), os.mkfifo(p)),
        lambda p: p.unlink(),
    ],
    ids=["text", "folder", "link", "fifo", "gone"],
)
@pytest.mark.parametrize("act", ["changed", "made"])
def test_whatever_a_stranger_made_of_it_stays(filled, stranger, act):
    name = "a.txt" if act == "changed" else "n.txt"
    filled.command(f"echo new > {name}")
    stranger(filled.ws / name)
    before = filled.tree()
    outcome = filled.undo.undo()
    assert filled.tree() == before
    if not (act == "made" and name not in before):
        assert dict(outcome.refused) == {name: CHANGED}


def test_what_a_stranger_put_where_a_file_was_deleted_stays(filled):
    filled.command("rm a.txt; rm -r d")
    (filled.ws / "a.txt").write_text("mine")
    (filled.ws / "d").write_text("mine")
    before = filled.tree()
    assert set(dict(filled.undo.undo().refused)) == {"a.txt", "d", "d/b.txt"}
    assert filled.tree() == before


def test_a_made_folder_with_somebody_elses_file_stays(bench):
    bench.write("a/b/c.txt", "x\n")
    (bench.ws / "a/mine").write_text("mine")
    outcome = bench.undo.undo()
    assert (outcome.restored, outcome.refused) == (("a/b", "a/b/c.txt"), ())
    assert outcome.notes == (f"The folder {bench.ws}/a is not empty and stays.",)
    assert set(bench.tree()) == {"a", "a/mine"}


def test_a_folder_that_was_there_is_never_removed(filled):
    filled.write("empty/x.txt", "x\n")
    filled.undo.undo()
    assert (filled.ws / "empty").is_dir()


def test_a_folder_swapped_for_a_link_leads_nowhere(filled):
    outside = filled.base / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("new\n")
    filled.command("echo new > d/b.txt")
    (filled.ws / "d").rename(filled.base / "away")
    (filled.ws / "d").symlink_to(outside)
    assert [path for path, _ in filled.undo.undo().refused] == ["d/b.txt"]
    assert (outside / "b.txt").read_text() == "new\n"


def test_what_was_made_in_a_folder_that_is_a_link_now_is_not_said_to_be_gone(filled):
    filled.command("echo new > d/n.txt")
    (filled.ws / "d").rename(filled.base / "away")
    (filled.ws / "d").symlink_to(filled.base / "away")
    outcome = filled.undo.undo()
    assert outcome.restored == ()
    assert dict(outcome.refused) == {"d/n.txt": "its links lead in a circle, or it was swapped for a link meanwhile"}
    assert (filled.base / "away/n.txt").read_text() == "new\n"


def test_a_strangers_mode_stays(filled):
    filled.command("echo new > a.txt; chmod 700 a.txt")
    (filled.ws / "a.txt").chmod(0o604)
    outcome = filled.undo.undo()
    assert outcome.restored == ("a.txt",)
    assert outcome.notes == (f"{filled.ws}/a.txt: somebody else changed its mode since, and it stays.",)
    assert (filled.ws / "a.txt").read_text() == "a\n"
    assert stat.S_IMODE((filled.ws / "a.txt").stat().st_mode) == 0o604


def test_what_was_moved_in_from_elsewhere_is_not_deleted(filled):
    outside = filled.base / "only-copy.txt"
    outside.write_text("precious\n")
    os.utime(outside, (1, 1))
    filled.command(f"mv {outside} in.txt; echo made > made.txt")
    outcome = filled.undo.undo()
    assert outcome.restored == ("made.txt",)
    assert dict(outcome.refused) == {"in.txt": "it is older than the step and may have been moved here, so it is left"}
    assert (filled.ws / "in.txt").read_text() == "precious\n"


def test_what_was_ignored_before_is_not_taken_as_made(filled):
    (filled.ws / ".gitignore").write_text("data/\n*.log\n")
    (filled.ws / "data").mkdir()
    (filled.ws / "data/x").write_text("precious")
    (filled.ws / "x.log").write_text("precious")
    before = filled.tree()
    filled.tick()
    filled.command("echo > .gitignore; mv data shown")
    filled.undo.undo()
    assert (filled.ws / "shown/x").read_text() == "precious"
    assert (filled.ws / "x.log").read_text() == "precious"
    assert (filled.ws / ".gitignore").read_text() == before[".gitignore"][1].decode()


def test_a_hard_link_is_split_and_said(filled):
    os.link(filled.ws / "a.txt", filled.base / "twin")
    filled.command("echo new > a.txt")
    outcome = filled.undo.undo()
    assert ((filled.ws / "a.txt").read_text(), (filled.base / "twin").read_text()) == ("a\n", "new\n")
    assert "hard links" in outcome.notes[0]


# -- what is not covered ---------------------------------------------------------------


def test_links_and_version_control_are_left_alone(filled):
    filled.command("ln -s a.txt link; mkdir .git; echo x > .git/HEAD; rm a.txt; ln -s d a.txt")
    outcome = filled.undo.undo()
    assert dict(outcome.refused) == {"a.txt": "it is, or was, a link or special file; those are left alone"}
    assert set(filled.tree()) == {"link", ".git", ".git/HEAD", "a.txt", "d", "d/b.txt", "empty"}


@pytest.mark.parametrize("change", ["echo K=2 > .env", "rm .env", "mv .env other", "mv other .env"])
def test_a_file_of_secrets_is_spoken_of_once_and_only_after_a_command_changed_it(tmp_path, change):
    bench = Bench(tmp_path)
    (bench.ws / ".env").write_text("KEY=1")
    (bench.ws / "other").write_text("x")
    bench.undo.warm_up()
    assert bench.undo.take_notes() == []
    bench.command("cat .env")
    bench.command("echo y > new")
    assert bench.said == []
    bench.tick()
    bench.command(change)
    said = f"This cannot be undone for 1 file whose content is not kept, as it usually holds secrets: {bench.ws}/.env."
    assert bench.said == [said]
    bench.tick()
    bench.command("echo again > .env")
    assert bench.said == [said]
    assert said in bench.undo.undo().notes, "where it is asked for it is said again"
    bench.undo.close()


def test_what_was_said_in_one_conversation_is_not_said_in_the_next(tmp_path):
    bench = Bench(tmp_path, limits=Limits(file_bytes=1000), said=set())
    (bench.ws / "big").write_bytes(b"x" * 1001)
    for session in ("one", "two"):
        bench.restart(session)
        bench.command("true")
    assert bench.said == [f"Undo does not cover what commands do to 1 file ({bench.ws}/big): larger than 0.001 MB."]
    bench.undo.close()


def test_large_files_secrets_and_too_many_are_said(tmp_path):
    bench = Bench(tmp_path, limits=Limits(files=6, file_bytes=1000, total_bytes=2500))
    (bench.ws / "big").write_bytes(b"x" * 1001)
    (bench.ws / ".env").write_text("KEY=1")
    (bench.ws / "many").mkdir()
    for number in range(9):
        (bench.ws / f"many/{number}").touch()
    (bench.ws / "small").write_text("a")
    bench.command(
        "echo more >> big; echo K=2 > .env; echo b > small; echo > many/new; head -c 1500 /dev/zero > new-big"
    )
    assert sorted(bench.said) == [
        f"This cannot be undone for 1 file whose content is not kept, as it usually holds secrets: {bench.ws}/.env.",
        f"This cannot be undone for 2 files whose content is not kept: {bench.ws}/big, {bench.ws}/new-big.",
        f"Undo does not cover what commands do to 1 file ({bench.ws}/big): larger than 0.001 MB.",
        f"Undo does not cover what commands do to 1 folder ({bench.ws}/many): more than 6 files or 10000 folders in all.",
    ]
    outcome = bench.undo.undo()
    assert outcome.restored == ("small",)
    assert {path for path, _ in outcome.refused} == {".env", "big", "new-big"}
    assert (bench.ws / "many/new").exists()
    assert (bench.ws / "new-big").stat().st_size == 1500
    kept = b"".join(p.read_bytes() for p in tmp_path.rglob("contents/*/*"))
    assert b"KEY" not in kept


def test_a_command_that_makes_too_much_is_said_and_what_was_there_stays_covered(tmp_path):
    bench = Bench(tmp_path, limits=Limits(files=6))
    (bench.ws / "sub").mkdir()
    for number in range(5):
        (bench.ws / f"sub/{number}").write_text("old")
    bench.command("mkdir a; for i in 1 2 3 4 5 6 7; do echo > a/$i; done; for i in 0 1 2; do echo new > sub/$i; done")
    assert any("cannot be undone: more than 6 files" in said for said in bench.said)
    bench.undo.undo()
    assert {p.name: p.read_text() for p in (bench.ws / "sub").iterdir()} == dict.fromkeys("01234", "old")
    assert len(list((bench.ws / "a").iterdir())) == 7


# -- restarts, the store ---------------------------------------------------------------


def test_steps_survive_a_restart_and_belong_to_their_session(filled):
    before = filled.tree()
    filled.write("a.txt", "1\n")
    filled.command("rm -r d")
    filled.undo.undo()
    filled.restart()
    assert filled.steps() == [("write a.txt", True), ("rm -r d", False)]
    filled.undo.redo()
    assert not (filled.ws / "d").exists()
    filled.restart("other")
    assert filled.steps() == []
    filled.restart()
    filled.undo.undo()
    filled.undo.undo()
    assert filled.tree() == before


def test_the_stat_cache_survives_a_restart(filled):
    filled.undo.warm_up()
    os.utime(filled.ws / "a.txt")
    filled.restart("other")
    first = filled.undo._look()
    assert first.read <= 2  # files written a moment ago are read again
    filled.command("rm a.txt")
    filled.undo.undo()
    assert (filled.ws / "a.txt").read_text() == "a\n"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"files": {"x": 1}}', b'{"written": "x", "rules": {}, "files": {}}', b"[" * 99999]
)
def test_a_damaged_cache_is_only_slow(filled, content):
    filled.undo.warm_up()
    filled.undo.close()
    path = next((filled.base / "state/undo").glob("*/seen.json"))
    path.write_bytes(content)
    filled.open()
    filled.command("echo new > a.txt")
    assert filled.undo.undo().restored == ("a.txt",)


def test_a_damaged_content_is_a_refusal(filled):
    filled.command("echo new > a.txt")
    for path in filled.base.rglob("contents/*/*"):
        path.write_bytes(b"torn")
    assert dict(filled.undo.undo().refused) == {"a.txt": "the kept content is gone or damaged"}
    assert (filled.ws / "a.txt").read_text() == "new\n"


def test_what_undo_removes_is_kept_even_if_it_was_lost(filled):
    filled.command("echo new > a.txt; echo made > n.txt")
    for path in filled.base.rglob("contents/*/*"):
        if path.read_bytes() in (b"new\n", b"made\n"):
            path.unlink()
    assert filled.undo.undo().restored == ("a.txt", "n.txt")
    assert filled.undo.redo().refused == ()
    assert ((filled.ws / "a.txt").read_text(), (filled.ws / "n.txt").read_text()) == ("new\n", "made\n")


def test_a_damaged_step_is_said_and_the_others_work(filled):
    filled.write("a.txt", "1\n")
    filled.write("n.txt", "2\n")
    sorted(filled.base.rglob("sessions/s/*.json"))[0].write_bytes(b"{")
    filled.restart()
    assert filled.undo.take_notes() == ["1 step of this session cannot be read and cannot be undone."]
    assert filled.undo.undo().restored == ("n.txt",)


def test_the_store_is_private_whatever_the_umask(filled):
    old = os.umask(0)
    try:
        filled.write("x.txt", "1\n")
        filled.command("echo 2 > y.txt")
    finally:
        os.umask(old)
    kinds = {(p.is_dir(), stat.S_IMODE(p.stat().st_mode)) for p in (filled.base / "state").rglob("*")}
    assert kinds == {(True, 0o700), (False, 0o600)}


def test_the_oldest_steps_go_when_there_is_too_much(tmp_path):
    bench = Bench(tmp_path, limit=200_000)
    for number in range(12):
        bench.write("f", bytes([65 + number]) * 50_000)
        bench.command(f"echo {number} > g")
    bench.restart()
    kept = sum(p.stat().st_size for p in tmp_path.rglob("contents/*/*"))
    assert kept <= 200_000 + 50_000
    assert any("The oldest" in said and "200000" not in said for said in bench.said)
    while (outcome := bench.undo.undo()).step is not None:
        assert outcome.refused == ()
    assert bench.undo.steps() != []
    assert (bench.ws / "f").stat().st_size == 50_000


def test_without_a_store_everything_else_goes_on(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state/undo").write_text("a file")
    bench = Bench(tmp_path)
    bench.write("a.txt", "1\n")
    bench.command("echo 2 > b.txt")
    assert set(bench.tree()) == {"a.txt", "b.txt"}
    assert bench.said == [bench.undo.problem]
    assert bench.undo.undo() == Outcome(None, notes=(bench.undo.problem,))


def test_two_processes_in_one_workspace_keep_their_steps_apart(filled):
    other = Bench(filled.base, session="t")
    filled.write("a.txt", "1\n")
    other.write("d/b.txt", "2\n")
    filled.undo.undo()
    assert ((filled.ws / "a.txt").read_text(), (filled.ws / "d/b.txt").read_text()) == ("a\n", "2\n")
    other.undo.undo()
    assert (filled.ws / "d/b.txt").read_text() == "b\n"
    other.undo.close()


# -- steps that end badly --------------------------------------------------------------


async def test_what_an_aborted_command_changed_can_be_undone(filled):
    started = asyncio.Event()

    async def call():
        async with filled.undo.step("abort", scan=True):
            (filled.ws / "a.txt").write_text("new")
            started.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(call())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert filled.undo.undo().restored == ("a.txt",)
    assert (filled.ws / "a.txt").read_text() == "a\n"


async def test_what_a_failed_command_changed_can_be_undone(filled):
    async def call():
        async with filled.undo.step("fail", scan=True):
            (filled.ws / "a.txt").write_text("new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await call()
    assert filled.undo.undo().restored == ("a.txt",)


def test_a_change_outside_any_step_is_a_step(filled):
    filled.guard.change("write", "a.txt", lambda body: b"1")
    assert filled.steps() == [("change a.txt", True)]
    assert filled.undo.undo().restored == ("a.txt",)


async def test_parallel_steps_keep_their_changes(filled):
    async def call(name):
        async with filled.undo.step(f"write {name}", path=name):
            await asyncio.to_thread(filled.guard.change, "write", name, lambda body: b"x")

    await asyncio.gather(*(call(f"p{n}/f{n}") for n in range(5)))
    assert sorted(filled.steps()) == [(f"write p{n}/f{n}", True) for n in range(5)]
    for _ in range(5):
        assert filled.undo.undo().refused == ()
    assert set(filled.tree()) == {"a.txt", "d", "d/b.txt", "empty"}


def test_a_killed_run_is_said(filled):
    filled.undo._note_running("rm -rf x")
    filled.restart()
    assert filled.undo.take_notes() == ["The last run ended during 'rm -rf x'; what that changed cannot be undone."]
    filled.restart()
    assert filled.undo.take_notes() == []


def test_what_was_set_aside_by_a_killed_undo_is_put_back(filled):
    filled.undo._store.note_aside(filled.ws / "a.txt", ".hypercode-0123456789abcdef.tmp")
    (filled.ws / "a.txt").rename(filled.ws / ".hypercode-0123456789abcdef.tmp")
    filled.restart()
    assert (filled.ws / "a.txt").read_text() == "a\n"
    assert set(filled.tree()) == {"a.txt", "d", "d/b.txt", "empty"}
    assert list(filled.base.rglob("aside-*")) == []


def test_an_undo_that_dies_while_a_file_is_set_aside_leaves_the_old(filled, monkeypatch):
    filled.command("echo made > n.txt")
    before = filled.tree()
    real = os.unlink

    def die(path, *, dir_fd=None):
        if dir_fd is not None:
            raise SystemExit
        real(path)

    monkeypatch.setattr(os, "unlink", die)
    with pytest.raises(SystemExit):
        filled.undo.undo()
    monkeypatch.undo()
    assert "n.txt" not in filled.tree()
    filled.restart()
    assert filled.tree() == before
    assert filled.undo.undo().restored == ("n.txt",)
    assert "n.txt" not in filled.tree()


# -- git, diff -------------------------------------------------------------------------


def test_git_is_never_touched(filled):
    def git(*words):
        return subprocess.run(["git", *words], cwd=filled.ws, check=True, capture_output=True).stdout

    git("init", "-q")
    git("add", "a.txt")
    git("-c", "user.name=x", "-c", "user.email=x@x.invalid", "commit", "-qm", "x")
    (filled.ws / "a.txt").write_text("staged\n")
    git("add", "a.txt")

    def repository():
        return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in (filled.ws / ".git").rglob("*") if p.is_file()}

    before = repository()
    filled.write("a.txt", "1\n")
    filled.command("echo 2 > a.txt; rm -r d")
    filled.undo.undo()
    filled.undo.redo()
    filled.undo.undo()
    filled.undo.undo()
    assert repository() == before
    assert (filled.ws / "a.txt").read_text() == "staged\n"


def test_the_diff_of_the_session(filled):
    filled.write("a.txt", "a\nb\n")
    filled.command("printf '\\000' > bin; rm d/b.txt; chmod 700 empty; mkdir new")
    filled.write("a.txt", "a\nc\n")
    assert "\n".join(filled.undo.diff(unified)).split("\n") == [
        *("--- a.txt", "+++ a.txt", "@@ -1 +1,2 @@", " a", "+c"),
        "bin: nothing → file",
        "bin: binary, 0 → 1 bytes",
        "d/b.txt: file → nothing",
        *("--- d/b.txt", "+++ d/b.txt", "@@ -1 +0,0 @@", "-b"),
        "empty: mode 710 → 700",
        "new: nothing → folder",
    ]
    assert filled.undo.diff(unified, since=3)[0].split("\n")[2:] == ["@@ -1,2 +1,2 @@", " a", "-b", "+c"]
    for _ in range(3):
        filled.undo.undo()
    assert filled.undo.diff(unified) == []


def test_steps_are_plain_values(filled):
    filled.write("a.txt", "1\n")
    step = filled.undo.steps()[0]
    assert (step.number, step.label, step.notes, step.undone) == (1, "write a.txt", (), None)
    assert [(d.path, d.came) for d in step.deltas] == [(str(filled.ws / "a.txt"), False)]
    on_disk = json.loads(next(filled.base.rglob("sessions/s/*.json")).read_text())
    assert on_disk["label"] == "write a.txt"


def test_undo_waits_for_a_change_that_is_going_on(filled):
    filled.write("a.txt", "1\n")
    entered, leave = threading.Event(), threading.Event()

    def compute(body):
        entered.set()
        leave.wait(20)
        return b"2\n"

    tool = threading.Thread(target=filled.guard.change, args=("write", "a.txt", compute))
    tool.start()
    entered.wait(20)
    undone = []
    undo = threading.Thread(target=lambda: undone.append(filled.undo.undo()))
    undo.start()
    leave.set()
    tool.join(20)
    undo.join(20)
    assert [o.restored for o in undone] == [("a.txt",)]
    assert (filled.ws / "a.txt").read_text() == "1\n"
