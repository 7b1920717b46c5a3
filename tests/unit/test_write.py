"""The tool `write`."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from files_help import context, listing, outcome, run

from hypercode.safety.files import Change
from hypercode.tools.base import Preview, Tool, ToolContext
from hypercode.tools.edit import edit
from hypercode.tools.read import read
from hypercode.tools.write import write


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def ctx(ws: Path) -> ToolContext:
    return context(ws)


async def test_new_file(ctx: ToolContext, ws: Path) -> None:
    assert await run(ctx, write, path="a/b.txt", content="1\r\n2\n\0é") == "Made a/b.txt: 3 lines, 8 bytes"
    assert (ws / "a/b.txt").read_bytes() == "1\r\n2\n\0é".encode()
    assert await run(ctx, write, path="empty", content="") == "Made empty: 0 lines, 0 bytes"
    assert (ws / "empty").read_bytes() == b""


async def test_what_was_written_is_known(ctx: ToolContext, ws: Path) -> None:
    await run(ctx, write, path="f", content="1")
    assert await run(ctx, write, path="f", content="2\n") == "Overwrote f: 1 line, 2 bytes"
    assert (ws / "f").read_bytes() == b"2\n"


async def test_an_empty_file_is_filled_and_a_full_one_is_not_emptied_unasked(ctx: ToolContext, ws: Path) -> None:
    (ws / "f").write_text("important\n")
    (ws / "e").write_text("")
    for path in "fe":
        await run(ctx, read, path=path)
    assert await outcome(ctx, write, path="e", content="") == (
        "no_change",
        "no_change: e already has exactly this content; nothing was written.",
    )
    assert (await outcome(ctx, write, path="f", content="")) == (
        "needs_confirmation",
        "needs_confirmation: an empty write: f has 1 line, 10 bytes and would have 0 bytes",
    )
    assert (ws / "f").read_text() == "important\n"
    assert await run(ctx, write, person=True, path="f", content="") == "Overwrote f: 0 lines, 0 bytes"


@pytest.mark.parametrize("data", [b"\0\1\2" * 99, "text".encode("utf-16")])
async def test_what_cannot_be_read_is_not_overwritten_and_not_asked_to_be_read(
    ctx: ToolContext, ws: Path, data: bytes
) -> None:
    (ws / "f").write_bytes(data)
    kind, said = await outcome(ctx, write, path="f", content="x\n")
    assert (kind, (ws / "f").read_bytes()) == ("binary", data)
    assert said == "binary: f exists and is no text; write does not overwrite it. Move it away if you must."


async def test_says_what_an_overwrite_loses(ctx: ToolContext, ws: Path) -> None:
    (ws / "f").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    await run(ctx, read, path="f")
    said = await run(ctx, write, path="f", content="a\nc\n")
    assert said == (
        "Overwrote f: 2 lines, 4 bytes. The byte-order mark is gone. The line endings were CRLF and are LF now"
    )


async def test_errors_change_nothing(ctx: ToolContext, ws: Path) -> None:
    (ws / "unread").write_text("x")
    (ws / "stale").write_text("x")
    (ws / "same").write_text("x")
    (ws / "d").mkdir()
    for path in ("stale", "same"):
        await run(ctx, read, path=path)
    (ws / "stale").write_text("y")
    before = listing(ws)
    got = {
        path: (await outcome(ctx, write, path=path, content=content))[0]
        for path, content in {
            "unread": "n", "stale": "n", "same": "x", "d": "n", "d/": "n", "same/x": "n", "half": "\ud83d", "": "n",
            ".git/x": "n", "../x": "n", "/dev/null": "n", ".vscode/x": "n",
        }.items()
    }  # fmt: skip
    assert got == {
        "unread": "not_read",
        "stale": "stale",
        "same": "no_change",
        "d": "is_directory",
        "d/": "is_directory",
        "same/x": "io",
        "half": "encoding",
        "": "bad_arguments",
        ".git/x": "refused",
        "../x": "refused",
        "/dev/null": "refused",
        ".vscode/x": "refused",
    }
    assert listing(ws) == before


async def test_preview(ctx: ToolContext, ws: Path) -> None:
    (ws / "f").write_text("a\nb\nc\n")
    await run(ctx, read, path="f")
    before = listing(ws)
    assert await write.preview(ctx, {"path": "new/g", "content": "1\n2"}) == Preview(
        "--- new/g\n+++ new/g\n@@ -0,0 +1,2 @@\n+1\n+2\n\\ No newline at end of file"
    )
    assert await write.preview(ctx, {"path": "f", "content": "a\nB\nc\n"}) == Preview(
        "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c"
    )
    assert listing(ws) == before


async def test_many_at_once(ctx: ToolContext, ws: Path) -> None:
    results = await asyncio.gather(*(outcome(ctx, write, path="f", content=str(n)) for n in range(20)))
    assert [text for kind, text in results if kind] == []
    assert (ws / "f").read_text() in {str(n) for n in range(20)}
    assert os.listdir(ws) == ["f"]


@pytest.mark.parametrize(
    ("tool", "arguments"), [(write, {"content": "2"}), (edit, {"edits": [{"old": "1", "new": "2"}]})]
)
async def test_a_preview_waits_for_a_change_that_is_being_noted(
    ctx: ToolContext, ws: Path, tool: Tool, arguments: dict[str, Any]
) -> None:
    """Written, but not yet known as written: what is asked about in that moment is not "not_read"."""
    loop, done = asyncio.get_running_loop(), threading.Event()
    previews: list[Future[Preview | None]] = []

    def between(change: Change) -> None:
        shown = tool.preview(ctx, tool.validate({"path": "f", **arguments}))
        previews.append(asyncio.run_coroutine_threadsafe(shown, loop))
        previews[0].add_done_callback(lambda _: done.set())
        done.wait(0.1)  # a preview that does not wait would be through by then

    ctx.files.on_change = between
    await run(ctx, write, path="f", content="1")
    shown = await asyncio.wrap_future(previews[0])
    assert shown is not None
    assert shown.text.splitlines()[-2:] == ["+2", "\\ No newline at end of file"]
