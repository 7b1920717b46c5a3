"""The tool `ls`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from files_help import context, outcome, run

from hypercode.tools.base import ToolContext
from hypercode.tools.ls import ls


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def ctx(ws: Path) -> ToolContext:
    return context(ws)


async def test_listing(ctx: ToolContext, ws: Path) -> None:
    for name in ("src", ".git", "a b"):
        (ws / name).mkdir()
    (ws / "z.txt").write_text("12345")
    (ws / ".env").write_text("")
    (ws / "über.md").write_text("x")
    (ws / "new\nline\x1b[31m").write_text("")
    (ws / "\u202egpj.exe").write_text("")
    (ws / "in").symlink_to("src")
    (ws / "dangling").symlink_to("/nowhere\n")
    os.mkfifo(ws / "pipe")
    (ws / os.fsdecode(b"caf\xe9")).write_text("")
    assert (await run(ctx, ls)).split("\n") == [
        ".git/",
        "a b/",
        "src/",
        ".env  0",
        "'caf\\udce9'  0",
        "dangling -> '/nowhere\\n'",
        "in -> src",
        "'new\\nline\\x1b[31m'  0",
        "pipe  (pipe)",
        "z.txt  5",
        "über.md  1",
        "'\\u202egpj.exe'  0",
    ]
    assert await run(ctx, ls, path="src/") == "[the folder is empty]"
    assert await run(ctx, ls, path="in") == "[the folder is empty]"


async def test_errors(ctx: ToolContext, ws: Path) -> None:
    (ws / "f").write_text("")
    os.mkfifo(ws / "pipe")
    (ws / "out").symlink_to("/")
    got = [await outcome(ctx, ls, path=path) for path in ("f", "gone", "pipe", "..", "out", "")]
    assert [kind for kind, _ in got] == [
        "not_directory", "missing_file", "not_directory", "refused", "refused", "bad_arguments",
    ]  # fmt: skip
    assert "use read" in got[0][1]


async def test_outside_after_a_yes(ctx: ToolContext, ws: Path) -> None:
    assert await run(ctx, ls, person=True, path="..") == "ws/"


async def test_long_folder(ctx: ToolContext, ws: Path) -> None:
    for n in range(1200):
        (ws / f"{n:04d}").touch()
    lines = (await run(ctx, ls)).split("\n")
    assert (lines[0], lines[999]) == ("0000  0", "0999  0")
    assert lines[1000:] == ["[1000 of 1200 names are shown; use glob with a pattern]"]
