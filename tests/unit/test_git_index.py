"""What git tracks, by its index: read as git reads it, and never taken for more than it is."""

import os
import subprocess
import time

import pytest

from hypercode.safety import git_index
from hypercode.safety.git_index import Tracked


def git(folder, *words):
    identity = ["-c", "user.name=n", "-c", "user.email=n@example.invalid"]
    return subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True).stdout


def put(folder, **files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_the_index_is_read_as_git_reads_it(tmp_path, version):
    git(tmp_path, "init", "-q")
    names = ["a", "a.b/c", "a.b/cd", "ä/é", "long/" + "n" * 200, "z/.vscode/x"]
    put(tmp_path, **dict.fromkeys(names, "x"))
    git(tmp_path, "add", ".")
    put(tmp_path, later="x")
    git(tmp_path, "add", "-N", "later")  # needs version 3
    git(tmp_path, "update-index", "--index-version", version)
    put(tmp_path, unknown="x")
    tracked = Tracked()
    assert [tracked.holds(tmp_path / name) for name in [*names, "later", "z/.vscode", "a.b"]] == [True] * 9
    assert [tracked.holds(tmp_path / name) for name in ["unknown", "b/c", "a.b/x", ".vscode", "c"]] == [False] * 5
    whole = (tmp_path / ".git/index").read_bytes()
    for end in range(0, len(whole), 7):
        (tmp_path / ".git/index").write_bytes(whole[:end])
        assert Tracked().holds(tmp_path / "unknown") is None


@pytest.mark.parametrize("hash_", ["sha1", "sha256"])
@pytest.mark.parametrize("split", [False, True])
def test_split_indexes_and_both_hashes(tmp_path, hash_, split):
    git(tmp_path, "init", "-q", f"--object-format={hash_}")
    put(tmp_path, **{f"{number:03}/f": "x" for number in range(150)})
    git(tmp_path, "add", ".")
    if split:
        git(tmp_path, "update-index", "--split-index")
    git(tmp_path, "rm", "-q", "--cached", "--", "000/f", "003/f", *(f"{number:03}/f" for number in range(60, 140)))
    put(tmp_path, **{"new/f": "x", "010/f": "other"})
    git(tmp_path, "add", "new", "010")
    assert len(list((tmp_path / ".git").glob("sharedindex.*"))) == split
    tracked = Tracked()
    names = [f"{number:03}/f" for number in range(150)] + ["new/f", "new", "none"]
    known = set(git(tmp_path, "ls-files").decode().split()) | {"new"}
    assert [name for name in names if tracked.holds(tmp_path / name)] == [name for name in names if name in known]
    for shared in (tmp_path / ".git").glob("sharedindex.*"):
        shared.unlink()
        assert Tracked().holds(tmp_path / "none") is None


def test_an_extension_that_must_be_understood_is_not_passed_over(tmp_path):
    git(tmp_path, "init", "-q")
    put(tmp_path, a="x")
    git(tmp_path, "add", ".")
    index = tmp_path / ".git/index"
    data = index.read_bytes()
    index.write_bytes(data[:-20] + b"xnew\0\0\0\0" + data[-20:])
    assert Tracked().holds(tmp_path / "b") is None
    index.write_bytes(data[:-20] + b"XNEW\0\0\0\0" + data[-20:])
    assert (Tracked().holds(tmp_path / "a"), Tracked().holds(tmp_path / "b")) == (True, False)


def entry(name):
    return bytes(60) + min(len(name), 0xFFF).to_bytes(2, "big") + name + bytes(8 - (62 + len(name)) % 8)


def index(*names):
    return b"DIRC" + (2).to_bytes(4, "big") + len(names).to_bytes(4, "big") + b"".join(map(entry, names)) + bytes(20)


def test_a_folder_that_is_no_repository_vouches_for_nothing(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "sub/.git").mkdir(parents=True)
    (tmp_path / "sub/.git/index").write_bytes(index(b"AGENTS.md"))
    assert Tracked().holds(tmp_path / "sub/AGENTS.md") is False
    (tmp_path / "sub/.git/HEAD").touch()
    (tmp_path / "sub/.git/objects").mkdir()
    assert Tracked().holds(tmp_path / "sub/AGENTS.md") is False
    # there git calls the repository above its own
    put(tmp_path, **{"sub/CLAUDE.md": "x"})
    (tmp_path / ".git/index").write_bytes(index(b"sub/CLAUDE.md"))
    assert Tracked().holds(tmp_path / "sub/CLAUDE.md") is True


def test_nothing_in_the_git_folder_itself_is_tracked(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/index").write_bytes(index(b".GIT/config", b".git/config.worktree", b"a"))
    names = (".git/config.worktree", ".GIT/config", "a")
    assert [Tracked().holds(tmp_path / name) for name in names] == [False, False, True]


def test_nothing_is_tracked_without_a_repository(tmp_path):
    assert Tracked().holds(tmp_path / "x") is False
    put(tmp_path, **{".git": "gitdir: nowhere\n"})
    assert Tracked().holds(tmp_path / "x") is False
    (tmp_path / ".git").write_bytes(b"gitdir: a\0b")
    assert Tracked().holds(tmp_path / "x") is False


def test_a_repository_without_an_index_tracks_nothing(tmp_path):
    git(tmp_path, "init", "-q")
    assert Tracked().holds(tmp_path / "x") is False


PREFIXES = b"DIRC" + (4).to_bytes(4, "big") + (100_000).to_bytes(4, "big")
PREFIXES += b"".join(bytes(62) + b"\0" + b"n" * 3_000 + b"\0" if not n else bytes(63) + b"\0" for n in range(100_000))
PREFIXES += bytes(20)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("deep name", index(b"a/" * 300_000 + b"a")),
        ("blown-up prefixes", PREFIXES),
        ("many entries", b"DIRC" + (2).to_bytes(4, "big") + b"\xff" * 4 + bytes(1000)),
        ("long number", b"DIRC" + (4).to_bytes(4, "big") + (1).to_bytes(4, "big") + bytes(62) + b"\xff" * 1_000_000),
        ("sparse", None),
    ],
)
def test_an_index_that_would_explode_is_not_understood(tmp_path, kind, content):
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/index").write_bytes(content or b"DIRC")
    if content is None:
        os.truncate(tmp_path / ".git/index", 2**31 - 1)
    started = time.monotonic()
    assert Tracked().holds(tmp_path / "AGENTS.md") is None
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("name", ["index", "config", "commondir", "HEAD"])
def test_pipes_and_devices_are_not_read(tmp_path, name):
    git(tmp_path, "init", "-q")
    place = tmp_path / ".git" / name
    for make in (lambda: os.mkfifo(place), lambda: place.symlink_to("/dev/zero"), lambda: place.symlink_to("../pipe")):
        if os.path.lexists(tmp_path / "pipe"):
            os.unlink(tmp_path / "pipe")
        os.mkfifo(tmp_path / "pipe")
        place.unlink(missing_ok=True)
        make()
        expected = None if name in ("index", "config") else False
        assert Tracked().holds(tmp_path / "AGENTS.md") is expected


def test_all_indexes_together_have_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(git_index, "_MOST_BYTES", 700)
    for name in ("a", "b", "c"):
        put(tmp_path, **{f"{name}/{'n' * 200}": "x"})
        git(tmp_path / name, "init", "-q")
        git(tmp_path / name, "add", ".")
    tracked = Tracked()
    assert [tracked.holds(tmp_path / name / ("n" * 200)) for name in ("a", "b", "c")] == [True, None, None]


def test_an_index_that_is_being_written_or_still_to_come_says_nothing(tmp_path):
    git(tmp_path, "init", "-q")
    asked = []
    assert Tracked().holds(tmp_path / "AGENTS.md") is False
    assert Tracked(lambda place: asked.append(place) or True).holds(tmp_path / "AGENTS.md") is None
    assert asked == [str(tmp_path / ".git")]
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "x")
    git(tmp_path, "read-tree", "HEAD")
    assert Tracked(lambda _: True).holds(tmp_path / "AGENTS.md") is False
    (tmp_path / ".git/index.lock").touch()
    assert Tracked().holds(tmp_path / "AGENTS.md") is None
