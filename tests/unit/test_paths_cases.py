"""Every case of the path collection: the decision, and what the tools then do."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from files_help import context, listing, outcome

from hypercode.safety.decision import Decision
from hypercode.safety.paths import FileGuard
from hypercode.tools.base import ToolContext
from hypercode.tools.edit import edit
from hypercode.tools.ls import ls
from hypercode.tools.read import read
from hypercode.tools.write import write

CASES = json.loads((Path(__file__).parents[1] / "cases/security/paths.json").read_text())["cases"]
RANK = {"auto": 0, "ask": 1, "always_ask": 2, "refuse": 3, "deny": 3}


class Place:
    """The made-up home with a workspace, a folder beside it, and the program's own files."""

    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.ws = self.home / "ws"
        self.ws.mkdir(parents=True)
        config, state = self.home / ".config/hypercode", self.home / ".local/state/hypercode"
        self.names = {
            "{WS}": self.ws,
            "{HOME}": self.home,
            "{OUT}": self.home / "out",
            "{JOURNAL}": state / "sessions/a.jsonl",
            "{PROJECT_CONFIG}": self.ws / ".hypercode/config.toml",
        }
        self.own = (config, state)

    def fill(self, text: str) -> str:
        for name, path in self.names.items():
            text = text.replace(name, str(path))
        return text

    def context(self) -> ToolContext:
        return context(self.ws, home=self.home, own=self.own)

    def set_up(self, kind: str, where: str, *rest: Any) -> None:
        path = Path(self.fill(where))
        (path if kind == "dir" else path.parent).mkdir(parents=True, exist_ok=True)
        match kind:
            case "file":
                path.write_text(rest[0])
            case "symlink":
                path.symlink_to(self.fill(rest[0]))
            case "hardlink":
                os.link(self.fill(rest[0]), path)
            case "fifo":
                os.mkfifo(path)
            case "socket":
                bind(path)
            case "sparse":
                with path.open("wb") as file:
                    file.truncate(rest[0])
            case "repeat":
                path.write_text(rest[0] * rest[1])
            case "hex":
                path.write_bytes(bytes.fromhex(rest[0]))
            case "file_mode":
                path.chmod(int(rest[0], 8))
            case "dir_ro":
                path.chmod(0o555)


def bind(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # socket names are short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("case", [c for c in CASES if c["op"] != "race"], ids=lambda case: case["id"])
async def test_path_case(case: dict[str, Any], tmp_path: Path) -> None:
    place = Place(tmp_path)
    read_only = any(step[0] == "dir_ro" for step in case["setup"])
    if read_only and os.geteuid() == 0:
        pytest.skip("root may write everywhere; test_read_only_folder does this as another user")
    for step in case["setup"]:
        place.set_up(*step)
    ctx, path, op = place.context(), place.fill(case["path"]), case["op"]
    before = listing(tmp_path)
    began = time.monotonic()
    verdict = ctx.files.decide(op, path)
    got, wanted = RANK[verdict.decision], RANK[case["decision"]]
    assert got >= wanted, verdict
    if case["kind"] == "control" or case["decision"] == "auto":
        assert verdict.decision is Decision.AUTO, verdict
    if op in ("read", "write", "edit", "ls"):
        kind, said = await call(ctx, op, path)
        if verdict.decision is Decision.AUTO:
            assert kind in (None, "not_found"), said
        else:
            assert kind is not None
            assert "Traceback" not in said
            assert listing(tmp_path) == before
    if case["decision"] == "auto" and case["kind"] == "too_large":
        assert "of 2000000" in said or "bytes]" in said
    assert time.monotonic() - began < 10


async def call(ctx: ToolContext, op: str, path: str) -> tuple[str | None, str]:
    if op == "read":
        return await outcome(ctx, read, path=path)
    if op == "ls":
        return await outcome(ctx, ls, path=path)
    if op == "write":
        return await outcome(ctx, write, path=path, content="new\n")
    await outcome(ctx, read, path=path)
    return await outcome(ctx, edit, path=path, edits=[{"old": "x", "new": "y"}])


async def test_read_only_folder(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("path-s-059 does this directly")
    workspace = Path("/tmp") / f"hypercode-test-{os.getpid()}"
    workspace.mkdir(mode=0o755)
    guard = FileGuard(workspace, home=tmp_path)
    try:
        os.seteuid(65534)
        verdict = guard.decide("write", "README.md")
        kind, said = await outcome(ToolContext(files=guard, spill=tmp_path), write, path="README.md", content="x")
    finally:
        os.seteuid(0)
        left = list(workspace.iterdir())
        workspace.rmdir()
    assert (verdict.decision, verdict.kind, kind, left) == (Decision.DENY, "io", "io", [])
    assert "not writable" in said
