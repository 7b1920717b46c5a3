"""Reading what somebody else may have put there: nothing is waited for, nothing is read without end."""

import os

import pytest

from hypercode.safety import git_config
from hypercode.safety.bounded_read import is_plain, names_in, start_of, whole
from hypercode.safety.sandbox_policy import git_folders, redirects


def make(path, kind):
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link to a pipe":
        os.mkfifo(f"{path}.pipe")
        os.symlink(f"{path}.pipe", path)
    elif kind == "folder":
        os.mkdir(path)
    elif kind == "sparse":
        path.touch()
        os.truncate(path, 2**31 - 1)
    else:
        os.symlink(kind, path)


KINDS = ["pipe", "link to a pipe", "folder", "/dev/zero", "/dev/tty", "/dev/stdin", "/proc/self/mem", "nowhere"]


@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files_are_read(tmp_path, kind):
    make(tmp_path / "x", kind)
    for read in (start_of, whole):
        with pytest.raises(OSError, match=r"regular|No such|Input/output"):
            read(tmp_path / "x", 10)


def test_how_much_is_read(tmp_path):
    (tmp_path / "x").write_bytes(b"0123456789")
    os.symlink("x", tmp_path / "link")
    assert [start_of(tmp_path / name, 4) for name in ("x", "link")] == [b"0123"] * 2
    assert [whole(tmp_path / "x", most) for most in (10, 11)] == [b"0123456789"] * 2
    with pytest.raises(OSError, match="too large"):
        whole(tmp_path / "x", 9)
    assert start_of("/proc/self/stat", 3) == str(os.getpid()).encode()[:3]  # its size is 0
    with pytest.raises(OSError, match="null"):
        start_of("a\0b", 1)
    with pytest.raises(OSError, match="null"):
        whole("a\0b", 1)
    with pytest.raises(OSError, match="null"):
        names_in("a\0b", 1)


def test_what_another_program_would_come_to_an_end_with(tmp_path):
    kinds = [kind for kind in (*KINDS, "sparse", "/dev/null", "/etc/passwd") if kind != "/dev/stdin"]
    for number, kind in enumerate(kinds):
        make(tmp_path / str(number), kind)
    plain = [kind for number, kind in enumerate(kinds) if is_plain(tmp_path / str(number), 100_000)]
    assert plain == ["folder", "nowhere", "/dev/null", "/etc/passwd"]


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "nowhere"] + ["sparse"])
@pytest.mark.parametrize(
    "name", [".git", ".git/commondir", ".git/config", ".git/hooks", ".git/worktrees", ".git/gitdir"]
)
def test_odd_files_in_a_git_folder_keep_nothing_waiting(tmp_path, kind, name):
    if name != ".git":
        (tmp_path / ".git/objects").mkdir(parents=True)
    make(tmp_path / name, kind)
    gits = git_folders(tmp_path)
    runs = git_config.runs(tmp_path / ".git")
    listed = [redirects(git) for git in gits]
    assert gits in ([], [tmp_path / ".git"])
    assert all(len(places) == 2 for places in listed)
    odd = name == ".git/config" and (kind != "folder" or "no file")
    assert bool(runs) == bool(odd)


@pytest.mark.parametrize("text", [b"a" * 5_000, b"a/" * 3_000, b"\xff\xfe", b"a\0b", b"\0", b"", b"\n"])
def test_a_pointer_to_what_cannot_be_is_no_error(tmp_path, text):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/.git").write_bytes(b"gitdir: " + text)
    git_config.runs(tmp_path / "sub/.git")
    assert git_folders(tmp_path / "sub") in ([], [tmp_path / "sub"])
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/commondir").write_bytes(text)
    git_config.runs(tmp_path / ".git")
    assert git_folders(tmp_path)[0] == tmp_path / ".git"
    git_config.is_repository(tmp_path / ".git")


@pytest.mark.parametrize("file", ["commondir", "pointer"])
def test_a_name_ends_at_a_null_as_for_git(tmp_path, file):
    """`read_gitfile` and `get_common_dir` hand the text on as a C string."""
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil/config").write_text("[core]\nfsmonitor = touch pwn\n")
    if file == "commondir":
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git/commondir").write_bytes(b"../evil\0x\n")
    else:
        (tmp_path / ".git").write_bytes(b"gitdir: evil\0x\n")
    assert git_config.runs(tmp_path / ".git") == "core.fsmonitor"
    assert git_folders(tmp_path)[-1] == tmp_path / "evil"


def test_hooks_without_end_count_as_running(tmp_path, monkeypatch):
    monkeypatch.setattr(git_config, "_MOST_HOOKS", 5)
    (tmp_path / ".git/hooks").mkdir(parents=True)
    for number in range(5):
        (tmp_path / f".git/hooks/{number}").touch()
    assert git_config.runs(tmp_path / ".git") == ""
    (tmp_path / ".git/hooks/5").touch()
    assert git_config.runs(tmp_path / ".git") == "hooks, of which there are too many"


def test_work_trees_without_end_are_not_all_named(tmp_path, monkeypatch):
    monkeypatch.setattr("hypercode.safety.sandbox_policy._MOST_TREES", 3)
    for number in range(9):
        (tmp_path / f"worktrees/{number}").mkdir(parents=True)
    assert len(redirects(tmp_path)) <= 2 + 2 * 4
