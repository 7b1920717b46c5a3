"""Every case of the edit collection, through the tools."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from files_help import context, outcome, raw

from hypercode.tools.edit import edit
from hypercode.tools.read import read
from hypercode.tools.write import write

CASES = json.loads((Path(__file__).parents[1] / "cases/edit-cases/edits.json").read_text())["cases"]


def set_up(case: dict[str, Any], workspace: Path) -> tuple[Path, Path]:
    """The path that is given to the tools, and the file behind it."""
    path = target = workspace / "file.txt"
    before = raw(case.get("before"))
    if case.get("kind") == "directory":
        path.mkdir()
    elif case.get("kind") == "symlink-loop":
        path.symlink_to("other.txt")
        (workspace / "other.txt").symlink_to("file.txt")
    elif before is not None:
        if case.get("via", "").startswith("symlink"):
            target = workspace / "real.txt"
            (workspace / "mid.txt").symlink_to("real.txt")
            path.symlink_to("mid.txt" if case["via"] == "symlink-chain" else "real.txt")
        target.write_bytes(before)
        if case.get("via") == "hardlink":
            os.link(path, workspace / "other.txt")
        if "mode" in case:
            target.chmod(int(str(case["mode"]), 8))
    return path, target


def change_behind(case: dict[str, Any], target: Path) -> None:
    if case.get("deleted_after_read"):
        target.unlink()
    elif case.get("changed_after_read") is not None:
        status = target.stat()
        if case.get("new_inode"):
            target.unlink()
        target.write_bytes(raw(case["changed_after_read"]) or b"")
        if case.get("keep_mtime"):
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
async def test_edit_case(case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    ctx = context(workspace)
    path, target = set_up(case, workspace)
    if case.get("read_first") is not False:
        await outcome(ctx, read, path="file.txt")
    change_behind(case, target)
    present = target.read_bytes() if target.is_file() else None
    mode = target.stat().st_mode if target.exists() else None
    names = sorted(workspace.iterdir())
    if case.get("fault", "").startswith("ENOSPC"):
        monkeypatch.setattr(os, "write", full)

    began = time.monotonic()
    if case.get("tool") == "write":
        arguments = {"content": (raw(case["content"]) or b"").decode()} if case["content"] is not None else {}
        results = [await outcome(ctx, write, path="file.txt", **arguments)]
    elif case.get("separate_calls"):
        results = [await outcome(ctx, edit, path="file.txt", edits=[e]) for e in case["edits"]]
    else:
        results = [await outcome(ctx, edit, path="file.txt", edits=case["edits"])]
    seconds = time.monotonic() - began

    after = target.read_bytes() if target.is_file() else None
    kinds = [kind for kind, _ in results if kind]
    said = "\n".join(text for _, text in results)
    assert any(accepted(a, kinds, said, after, present) for a in case["accept"]), (
        kinds,
        said[:500],
        after and after[:200],
    )
    assert seconds < case.get("max_seconds", 5) * 4
    if kinds:
        assert sorted(workspace.iterdir()) == names
        assert (target.stat().st_mode if target.exists() else None) == mode
    elif "mode" in case:
        assert target.stat().st_mode & 0o7777 == int(str(case["mode_after"]), 8)
    if case.get("via", "").startswith("symlink"):
        assert path.is_symlink()
    if case.get("via") == "hardlink":
        assert "split" in said
        assert (workspace / "other.txt").read_bytes() == present


def accepted(accept: dict[str, Any], kinds: list[str], said: str, after: bytes | None, present: bytes | None) -> bool:
    if "after" in accept:
        return not kinds and after == raw(accept["after"])
    hints = accept.get("hint_any")
    hinted = not hints or any(hint.lower() in said.lower() for hint in hints)
    return accept["error"] in kinds and hinted and after == present


def full(fd: int, data: bytes) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
