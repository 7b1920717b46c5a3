"""The tool `read`: windows, notes, odd files, memory."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from files_help import context, outcome, run

from hypercode.tools.base import MAX_RESULT_CHARACTERS, MAX_RESULT_LINES, ToolContext
from hypercode.tools.read import read


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def ctx(ws: Path) -> ToolContext:
    return context(ws)


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        (b"alpha\nbeta\n", {}, "     1\talpha\n     2\tbeta"),
        (b"a\r\nb\r\n", {}, "     1\ta\n     2\tb"),
        (b"a\rb\n", {}, "     1\ta\rb"),
        (b"a\n\nb\n", {}, "     1\ta\n     2\t\n     3\tb"),
        (b"a\n\n", {}, "     1\ta\n     2\t"),
        (b"\n", {}, "     1\t"),
        (b"", {}, "[the file is empty]"),
        (b"a\nb", {}, "     1\ta\n     2\tb\n[no newline at the end of the file]"),
        (b"\xef\xbb\xbfa\n", {}, "     1\ta"),
        ("a\u2028b\x0cc\x0bd\u0085e\n".encode(), {}, "     1\ta\u2028b\x0cc\x0bd\u0085e"),
        (b"1\n2\n3\n4\n", {"limit": 2}, "     1\t1\n     2\t2\n[lines 1-2 of 4; go on with offset=3]"),
        (b"1\n2\n3\n4\n", {"offset": 2, "limit": 2}, "     2\t2\n     3\t3\n[lines 2-3 of 4; go on with offset=4]"),
        (b"1\n2\n3\n4", {"offset": 4}, "     4\t4\n[lines 4-4 of 4: the end of the file]\n[no newline at the end of the file]"),
        (
            b"caf\xe9\nb\n",
            {},
            "     1\tcaf\ufffd\n     2\tb\n"
            "[not UTF-8: other bytes are shown as \ufffd and stay as they are when other places are edited]",
        ),
        (
            b"a\n" + b"b" * 10 + b"\xe2\x82",
            {"limit": 1},
            "     1\ta\n[lines 1-1 of 2; go on with offset=2]\n"
            "[not UTF-8: other bytes are shown as \ufffd and stay as they are when other places are edited]",
        ),
    ],
)  # fmt: skip
async def test_window(ctx: ToolContext, ws: Path, content: bytes, arguments: dict[str, int], said: str) -> None:
    (ws / "f").write_bytes(content)
    assert await run(ctx, read, path="f", **arguments) == said
    assert ctx.ledger.known(ws / "f") == hashlib.sha256(content).digest()


async def test_every_line_is_reached_by_going_on(ctx: ToolContext, ws: Path) -> None:
    lines = [f"{n} {'x' * (n % 300)}" for n in range(1, 6001)]
    (ws / "f").write_text("\n".join(lines) + "\n")
    got: list[str] = []
    offset = 1
    while offset <= len(lines):
        text = await run(ctx, read, path="f", offset=offset)
        assert len(text) <= MAX_RESULT_CHARACTERS
        assert text.count("\n") < MAX_RESULT_LINES
        assert "left out here" not in text
        got += [line.partition("\t")[2] for line in text.split("\n") if not line.startswith("[")]
        offset = len(got) + 1
        assert offset > len(lines) or f"go on with offset={offset}]" in text
    assert got == lines


async def test_long_lines_are_cut_and_named(ctx: ToolContext, ws: Path) -> None:
    (ws / "f").write_text("short\n" + "ü" * 3000 + "\n" + "é" * 2000 + "\nend\n")
    assert (await run(ctx, read, path="f")).split("\n") == [
        "     1\tshort",
        "     2\t" + "ü" * 2000 + "… [6000 bytes]",
        "     3\t" + "é" * 2000,
        "     4\tend",
        "[cut after 2000 characters: line 2; to see more use bash, for example cut -c or grep -o]",
    ]


async def test_window_across_pieces(ctx: ToolContext, ws: Path) -> None:
    """Lines that lie across the pieces in which a file is read."""
    lines = [f"{n:07d}{'y' * 90}" for n in range(40_000)]
    (ws / "f").write_text("\n".join(lines))
    for offset in (1, 10_700, 21_399, 39_999):
        text = await run(ctx, read, path="f", offset=offset, limit=5)
        shown = [line.partition("\t")[2] for line in text.split("\n") if not line.startswith("[")]
        assert shown == lines[offset - 1 : offset + 4]
        assert "of 40000" in text


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"MZ\0\1", "binary"),
        (b"\x1f\x8b\x08\x01abc", "binary"),
        (b"%PDF-1.7\n", "binary"),
        (bytes(range(1, 9)) * 20, "binary"),
        ("text".encode("utf-16"), "encoding"),
        (b"ansi \x1b[31mred\x1b[0m\n", None),
        ("\u043f\u0440\u0438\u0432\u0435\u0442\n".encode("cp1251"), None),
    ],
)
async def test_binary(ctx: ToolContext, ws: Path, content: bytes, kind: str | None) -> None:
    (ws / "f").write_bytes(content)
    assert (await outcome(ctx, read, path="f"))[0] == kind
    assert (ctx.ledger.known(ws / "f") is None) == (kind is not None)


async def test_errors(ctx: ToolContext, ws: Path) -> None:
    (ws / "d").mkdir()
    (ws / "f").write_text("1\n2\n")
    (ws / "loop").symlink_to("loop")
    results = {
        (path, offset, limit): (await outcome(ctx, read, path=path, offset=offset, limit=limit))[0]
        for path, offset, limit in [
            ("gone", 1, 1), ("d", 1, 1), ("f", 0, 1), ("f", 1, 0), ("f", 3, 1), ("f/x", 1, 1), ("loop", 1, 1), ("/etc/passwd", 1, 1),
        ]
    }  # fmt: skip
    assert results == {
        ("gone", 1, 1): "missing_file",
        ("d", 1, 1): "is_directory",
        ("f", 0, 1): "bad_arguments",
        ("f", 1, 0): "bad_arguments",
        ("f", 3, 1): "bad_arguments",
        ("f/x", 1, 1): "io",
        ("loop", 1, 1): "io",
        ("/etc/passwd", 1, 1): "refused",
    }
    assert ctx.ledger.known(ws / "f") is None


async def test_the_ledger_knows_the_file_by_its_real_path(ctx: ToolContext, ws: Path) -> None:
    (ws / "real").write_text("x")
    (ws / "link").symlink_to("real")
    await run(ctx, read, path="link")
    assert ctx.ledger.known(ws / "real") == hashlib.sha256(b"x").digest()


GROWTH = """
import asyncio, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from files_help import context, outcome
from hypercode.tools.read import read
ctx = context(Path(sys.argv[1]))
asyncio.run(outcome(ctx, read, path="small"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
results = [asyncio.run(outcome(ctx, read, path=path)) for path in ("sparse", "lines", "line")]
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
unit = 1 if sys.platform == "darwin" else 1024
print([kind for kind, _ in results], (after - before) * unit < 50_000_000)
"""


def test_memory(ws: Path) -> None:
    """10 GiB of holes, 90 MB of lines, one line of 20 MB."""
    (ws / "small").write_text("x\n")
    with (ws / "sparse").open("wb") as file:
        file.truncate(10_737_418_240)
    (ws / "lines").write_bytes(b"0123456789abcde\n" * 5_600_000)
    (ws / "line").write_bytes(b"y" * 20_000_000)
    here = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", GROWTH, str(ws), here], capture_output=True, text=True, check=True)
    assert done.stdout == "['too_large', None, None] True\n"
