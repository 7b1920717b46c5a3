"""Replacing files: all or nothing, what is kept, what a second writer or a full disk does."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from files_help import listing

from hypercode.errors import ToolError
from hypercode.safety import files
from hypercode.safety.files import Body, Change
from hypercode.safety.paths import FileGuard
from hypercode.safety.pending import Pending


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def guard(ws: Path) -> FileGuard:
    return FileGuard(ws, home=ws.parent / "home", pending=ws.parent / "state/pending")


def put(guard: FileGuard, path: str, data: bytes) -> Change:
    return guard.change("write", path, lambda body: data)


def kind_of(guard: FileGuard, path: str, data: bytes = b"new") -> str:
    with pytest.raises(ToolError) as error:
        put(guard, path, data)
    return error.value.kind


def test_new_file_in_new_folders(guard: FileGuard, ws: Path) -> None:
    old = os.umask(0o027)
    try:
        change = put(guard, "a/b/c.txt", b"new")
        put(guard, ".env.example", b"")
        guard.grant("write", ws / ".env")
        put(guard, ".env", b"KEY=1")
    finally:
        os.umask(old)
    assert change == Change(ws / "a/b/c.txt", None, b"new", ())
    modes = {str(p.relative_to(ws)): oct(p.stat().st_mode & 0o7777) for p in ws.rglob("*")}
    assert modes == {"a": "0o750", "a/b": "0o750", "a/b/c.txt": "0o640", ".env.example": "0o640", ".env": "0o600"}
    assert list((ws.parent / "state/pending").iterdir()) == []


@pytest.mark.parametrize("mode", [0o400, 0o444, 0o600, 0o640, 0o755, 0o666, 0o4755, 0o2770])
def test_mode_is_kept(guard: FileGuard, ws: Path, mode: int) -> None:
    target = ws / "f"
    target.write_bytes(b"old")
    target.chmod(mode)
    put(guard, "f", b"new")
    assert (target.read_bytes(), oct(target.stat().st_mode & 0o7777)) == (b"new", oct(mode))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_owner_is_kept(guard: FileGuard, ws: Path) -> None:
    (ws / "f").write_bytes(b"old")
    os.chown(ws / "f", 1234, 4321)
    put(guard, "f", b"new")
    status = (ws / "f").stat()
    assert ((ws / "f").read_bytes(), status.st_uid, status.st_gid) == (b"new", 1234, 4321)


@pytest.mark.skipif(sys.platform != "linux", reason="extended attributes by descriptor")
def test_extended_attributes_are_kept(guard: FileGuard, ws: Path) -> None:
    (ws / "f").write_bytes(b"old")
    try:
        os.setxattr(ws / "f", "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    put(guard, "f", b"new")
    assert os.getxattr(ws / "f", "user.note") == b"kept"


def test_links_are_kept(guard: FileGuard, ws: Path) -> None:
    (ws / "real").mkdir()
    (ws / "real/f").write_bytes(b"old")
    (ws / "one").symlink_to("two")
    (ws / "two").symlink_to("real/f")
    (ws / "new").symlink_to("real/made")
    put(guard, "one", b"1")
    put(guard, "new", b"2")
    links = [(p.name, str(p.readlink())) for p in sorted(ws.iterdir()) if p.is_symlink()]
    assert links == [("new", "real/made"), ("one", "two"), ("two", "real/f")]
    assert ((ws / "real/f").read_bytes(), (ws / "real/made").read_bytes()) == (b"1", b"2")


def test_who_writes_in_between_wins(guard: FileGuard, ws: Path) -> None:
    target = ws / "f"
    target.write_bytes(b"old")

    def slow(body: Body | None) -> bytes:
        status = target.stat()
        target.write_bytes(b"OLD")
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        return b"mine"

    with pytest.raises(ToolError, match=r"^stale"):
        guard.change("edit", "f", slow)
    assert listing(ws) == {"f": (target.stat().st_mode, b"OLD")}


def test_who_deletes_in_between_is_told(guard: FileGuard, ws: Path) -> None:
    (ws / "f").write_bytes(b"old")

    def slow(body: Body | None) -> bytes:
        (ws / "f").unlink()
        return b"mine"

    with pytest.raises(ToolError, match=r"^stale"):
        guard.change("edit", "f", slow)
    assert listing(ws) == {}


def test_a_file_that_appears_in_between_is_not_overwritten(guard: FileGuard, ws: Path) -> None:
    def slow(body: Body | None) -> bytes:
        assert body is None
        (ws / "a").mkdir()
        (ws / "a/f").write_bytes(b"theirs")
        return b"mine"

    with pytest.raises(ToolError, match=r"^not_read"):
        guard.change("write", "a/f", slow)
    assert (ws / "a/f").read_bytes() == b"theirs"
    assert [p.name for p in (ws / "a").iterdir()] == ["f"]


def test_without_hard_links_a_new_file_still_comes_and_never_over_another(
    guard: FileGuard, ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*names: object, **where: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    def slow(body: Body | None) -> bytes:
        (ws / "b").write_bytes(b"theirs")
        return b"mine"

    monkeypatch.setattr(os, "link", link)
    put(guard, "a", b"new")
    with pytest.raises(ToolError, match=r"^not_read"):
        guard.change("write", "b", slow)
    assert {p.name: p.read_bytes() for p in ws.iterdir()} == {"a": b"new", "b": b"theirs"}


def test_folder_swapped_for_a_link_while_computing(guard: FileGuard, ws: Path) -> None:
    (ws / "d").mkdir()
    (ws / "d/f").write_bytes(b"old")
    out = ws.parent / "out"

    def slow(body: Body | None) -> bytes:
        (ws / "d").rename(out)  # the folder leaves the workspace, and a link takes its place
        (ws / "d").symlink_to(out)
        return b"mine"

    with pytest.raises(ToolError, match=r"^io"):
        guard.change("edit", "d/f", slow)
    assert listing(out) == {"f": ((out / "f").stat().st_mode, b"old")}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("call", ["write", "fsync", "rename", "fchmod"])
def test_a_failing_disk_leaves_all_as_it_was(
    guard: FileGuard, ws: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    def fail(*arguments: object, **where: object) -> None:
        raise OSError(code, os.strerror(code))

    (ws / "f").write_bytes(b"old")
    before = listing(ws)
    monkeypatch.setattr(files.os, call, fail)
    assert kind_of(guard, "f") == "io"
    if call in ("write", "fsync"):
        assert kind_of(guard, "new/deep/f") == "io"
    monkeypatch.undo()
    assert listing(ws) == before


def test_file_size_limit(ws: Path) -> None:
    (ws / "f").write_bytes(b"old")
    script = (
        "import sys; from pathlib import Path; from hypercode.safety.paths import FileGuard\n"
        "FileGuard(Path(sys.argv[1]), home=Path('/nowhere')).change('write', 'f', lambda body: b'x' * 100_000)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(ws)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )
    assert "io: f: larger than the file size limit allows" in done.stderr
    assert listing(ws) == {"f": ((ws / "f").stat().st_mode, b"old")}


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KB, where this machine lets us have one."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs root on Linux")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], check=False).returncode:
        pytest.skip("mount is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full(tiny_disk: Path) -> None:
    guard = FileGuard(tiny_disk, home=Path("/nowhere"))
    put(guard, "f", b"old" * 10_000)
    before = listing(tiny_disk)
    with pytest.raises(ToolError, match="no space left") as error:
        put(guard, "f", b"new" * 20_000)
    assert error.value.kind == "io"
    assert listing(tiny_disk) == before


def test_changes_are_announced_with_both_contents(guard: FileGuard) -> None:
    seen: list[Change] = []
    guard.on_change = seen.append
    put(guard, "f", b"1")
    put(guard, "f", b"2")
    assert [(c.path.name, c.before, c.after) for c in seen] == [("f", None, b"1"), ("f", b"1", b"2")]


def test_too_large_to_replace(guard: FileGuard, ws: Path) -> None:
    with (ws / "f").open("wb") as file:
        file.truncate(10_737_418_240)
    assert kind_of(guard, "f") == "too_large"


def test_sweep_leaves_what_a_living_writer_has_in_hand(tmp_path: Path) -> None:
    pending, temp = Pending(tmp_path / "pending"), tmp_path / ".hypercode-0011223344556677.tmp"
    temp.write_bytes(b"half")
    with pending.record(temp):
        assert Pending(tmp_path / "pending").sweep() == []
        assert temp.exists()
        kept = (tmp_path / "pending").joinpath(next((tmp_path / "pending").iterdir()).name).read_bytes()
    (tmp_path / "pending/dead.path").write_bytes(kept)
    assert Pending(tmp_path / "pending").sweep() == [temp]
    assert (temp.exists(), list((tmp_path / "pending").iterdir())) == (False, [])


def test_sweep_removes_nothing_but_half_written_files(tmp_path: Path) -> None:
    folder = tmp_path / "pending"
    folder.mkdir()
    (tmp_path / "precious.txt").write_text("x")
    (tmp_path / ".hypercode-aa.tmp").symlink_to("precious.txt")
    for number, path in enumerate([tmp_path / "precious.txt", tmp_path / ".hypercode-aa.tmp", tmp_path / "gone"]):
        (folder / f"{number}.path").write_bytes(os.fsencode(path))
    assert Pending(folder).sweep() == []
    assert (tmp_path / "precious.txt").read_text() == "x"
    assert list(folder.iterdir()) == []


def test_no_record_is_no_reason_not_to_write(ws: Path) -> None:
    (ws.parent / "state").write_text("a file where the folder should be")
    guard = FileGuard(ws, home=ws.parent / "home", pending=ws.parent / "state/pending")
    assert put(guard, "f", b"1").after == b"1"
    assert guard.sweep() == []
