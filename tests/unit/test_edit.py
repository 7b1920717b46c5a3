"""The tool `edit` and its matching core, beyond the case collection."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from edit_model import Sample, expected, got, samples
from files_help import context, listing, outcome, run
from hypothesis import given, settings

from hypercode.errors import ToolError
from hypercode.tools.base import Preview, ToolContext
from hypercode.tools.edit import Edit, edit
from hypercode.tools.explain import explain
from hypercode.tools.matching import apply
from hypercode.tools.read import read


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def ctx(ws: Path) -> ToolContext:
    return context(ws)


@settings(max_examples=300, deadline=None)
@given(samples())
def test_random_edits_agree_with_the_rules(sample: Sample) -> None:
    assert got(sample.data, sample.edits) == expected(sample.data, sample.edits)


def test_the_schema_the_model_sees() -> None:
    schema = edit.schema["function"]["parameters"]
    assert schema["required"] == ["path", "edits"]
    one = schema["$defs"]["Edit"] if "$defs" in schema else schema["properties"]["edits"]["items"]
    assert one["properties"] == {
        "old": {"type": "string"},
        "new": {"type": "string"},
        "replace_all": {"type": "boolean", "default": False},
    }
    assert (one["required"], one["additionalProperties"]) == (["old", "new"], False)


@pytest.mark.parametrize(
    "edits",
    [
        None,
        [],
        "text",
        [{"old": "a"}],
        [{"new": "a"}],
        [{"old": "a", "new": None}],
        [{"old": "a", "new": "b", "all": True}],
        [{"old": "a", "new": 1}],
    ],
)
async def test_bad_arguments(ctx: ToolContext, ws: Path, edits: object) -> None:
    (ws / "f").write_text("a")
    await run(ctx, read, path="f")
    kind, said = await outcome(ctx, edit, path="f", edits=edits)
    assert (kind, (ws / "f").read_text()) == ("bad_arguments", "a")
    assert "edits" in said


@pytest.mark.parametrize(
    "edits",
    [
        '[{"old": "a", "new": "b"}]',
        ['{"old": "a", "new": "b"}'],
        {"old": "a", "new": "b"},
        '{"old": "a", "new": "b"}',
    ],
)
async def test_edits_as_models_also_send_them(ctx: ToolContext, ws: Path, edits: object) -> None:
    (ws / "f").write_text("a")
    await run(ctx, read, path="f")
    await run(ctx, edit, path="f", edits=edits)
    assert (ws / "f").read_text() == "b"


async def test_an_edit_that_leaves_nothing_needs_a_word(ctx: ToolContext, ws: Path) -> None:
    (ws / "f").write_text("all of it\n")
    await run(ctx, read, path="f")
    edits = [{"old": "all of it\n", "new": ""}]
    assert await outcome(ctx, edit, path="f", edits=edits) == (
        "needs_confirmation",
        "needs_confirmation: the edit leaves nothing of f: it would have 0 bytes",
    )
    assert (ws / "f").read_text() == "all of it\n"
    await run(ctx, edit, person=True, path="f", edits=edits)
    assert (ws / "f").read_text() == ""


async def test_needs_a_read(ctx: ToolContext, ws: Path) -> None:
    (ws / "f").write_text("a")
    assert (await outcome(ctx, edit, path="f", edits=[{"old": "a", "new": "b"}]))[0] == "not_read"
    assert (ws / "f").read_text() == "a"


async def test_says_where(ctx: ToolContext, ws: Path) -> None:
    (ws / "f").write_text("a\nb\na\n")
    await run(ctx, read, path="f")
    said = await run(
        ctx, edit, path="f", edits=[{"old": "a", "new": "1", "replace_all": True}, {"old": "b", "new": "2"}]
    )
    assert said == "Edited f: 3 places changed (line 1, 2, 3 of the old text)"


async def test_parallel_calls_on_one_file(ctx: ToolContext, ws: Path) -> None:
    (ws / "f").write_text("".join(f"<{n}>\n" for n in range(25)))
    await run(ctx, read, path="f")
    calls = [outcome(ctx, edit, path="f", edits=[{"old": f"<{n}>", "new": f"[{n}]"}]) for n in range(25)]
    assert [kind for kind, _ in await asyncio.gather(*calls)] == [None] * 25
    assert (ws / "f").read_text() == "".join(f"[{n}]\n" for n in range(25))


async def test_preview_raises_the_same_errors_and_touches_nothing(ctx: ToolContext, ws: Path) -> None:
    (ws / "f").write_text("a\nb\n")
    (ws / "unread").write_text("a\n")
    await run(ctx, read, path="f")
    before = listing(ws)

    async def kind(path: str, *edits: Edit) -> str:
        with pytest.raises(ToolError) as error:
            await edit.preview(ctx, {"path": path, "edits": list(edits)})
        return error.value.kind

    ok = Edit("a", "A")
    assert await edit.preview(ctx, {"path": "f", "edits": [ok]}) == Preview("--- f\n+++ f\n@@ -1,2 +1,2 @@\n-a\n+A\n b")
    kinds = [
        await kind("unread", ok),
        await kind("gone", ok),
        await kind("f", Edit("z", "y")),
        await kind(".git/x", ok),
    ]
    assert kinds == ["not_read", "missing_file", "not_found", "refused"]
    assert listing(ws) == before


async def test_change_between_preview_and_call(ctx: ToolContext, ws: Path) -> None:
    (ws / "f").write_text("a\nb\n")
    await run(ctx, read, path="f")
    arguments = edit.validate({"path": "f", "edits": [{"old": "a", "new": "A"}]})
    await edit.preview(ctx, arguments)
    (ws / "f").write_text("a\nuser\n")
    with pytest.raises(ToolError, match=r"^stale: .*read it again"):
        await edit.call(ctx, arguments)
    assert (ws / "f").read_text() == "a\nuser\n"


async def test_protected_file_is_edited_only_after_a_yes(ctx: ToolContext, ws: Path) -> None:
    (ws / ".envrc").write_text("a\n")
    change = {"path": ".envrc", "edits": [{"old": "a", "new": "b"}]}
    await run(ctx, read, person=True, path=".envrc")
    assert ((await outcome(ctx, edit, **change))[0], (ws / ".envrc").read_text()) == ("refused", "a\n")
    assert ((await outcome(ctx, edit, True, **change))[0], (ws / ".envrc").read_text()) == (None, "b\n")


@pytest.mark.parametrize(
    ("data", "edits", "wanted"),
    [
        (b"a\r\nb", [Edit("a\n", "x\ny\n")], b"x\r\ny\r\nb"),
        (b"a\r\r\nb", [Edit("a\r", "x")], b"x\r\nb"),
        (b"a\r\nb", [Edit("a\r", "x")], "not_found"),
        (b"ab", [Edit("a", "x\r\ny")], b"x\r\nyb"),
        (b"a\nb\r\nc", [Edit("a", "x\ny")], b"x\ny\nb\r\nc"),
        (b"a\r\nb\nc", [Edit("c", "x\ny")], b"a\r\nb\nx\r\ny"),
        (b"a\nb\r\nc\r\n", [Edit("a\nb\n", "x\ny\n")], b"x\r\ny\r\nc\r\n"),
        (b"\xef\xbb\xbfa", [Edit("\ufeffa", "\ufeffb")], b"\xef\xbb\xbfb"),
        (b"\xef\xbb\xbf", [Edit("\ufeff", "b")], "empty_old"),
        (b"abc", [Edit("a", "1"), Edit("b", "2"), Edit("c", "3")], b"123"),
        (b"aXb", [Edit("X", "a"), Edit("a", "X")], b"Xab"),
        (b"ab", [Edit("ab", "x"), Edit("ab", "y")], "overlap"),
        (b"aba", [Edit("a", "x", True), Edit("ba", "y")], "overlap"),
        (b"a", [Edit("a", "\ud800")], "encoding"),
        (b"a", [Edit("\udfff", "b")], "encoding"),
        (b"caf\xe9", [Edit("caf\u00e9", "x")], "encoding"),
        (b"caf\xe9", [Edit("caf", "x")], b"x\xe9"),
    ],
)
def test_bytes(data: bytes, edits: list[Edit], wanted: bytes | str) -> None:
    assert got(data, edits) == wanted


HINTS = [
    ("def f():\n\treturn 1\n", "    return 1", ["line 2", "tab (U+0009", "4 × space (U+0020"]),
    ("x = 1 \t\ny\n", "x = 1\ny", ["line 1", "trailing whitespace", "U+0020", "U+0009"]),
    ("x = 1\ny\n", "x = 1  \ny", ["old has trailing whitespace"]),
    ("say \u201chi\u201d\n", 'say "hi"', ["quotation mark (U+201C", "U+201D"]),
    ("it\u2019s\n", "it's", ["U+2019"]),
    ("a\u2014b c\n", "a-b c", ["dash (U+2014 EM DASH)"]),
    ("a\u202fb\n", "a b", ["U+202F", "blank"]),
    ("ab\u200dcd\n", "abcd", ["invisible", "U+200D"]),
    ("abcd\n", "ab\ufeffcd", ["invisible", "U+FEFF", "the file has nothing"]),
    ("cafe\u0301\n", "caf\u00e9", ["normal form", "NFD", "NFC", "U+0301"]),
    ("caf\u00e9 x\n", "cafe\u0301", ["normal form"]),
    ("Total = 1\n", "total = 1", ["letter case", "'T'", "'t'"]),
    ("a\nb", "b\n", ["no newline at the end"]),
    ("a\nb\n", "     2\u2192b", ["line number", "line 2"]),
    ("a\nb\nc\n", "     1\ta\n     2\tb", ["line number", "line 1"]),
    ("if a:\n    b()\n    c()\n", "if a:\n  b()\n  c()", ["line 2", "2 × space", "line 3"]),
    ("p\u0430ss\n", "pass", ["U+0430 CYRILLIC"]),
    ("def compute_total(items):\n    return 1\n", "def compute_totals(items):\n    return 1", ["compute_total(items)", "line 1"]),
    ("x" * 5000 + "1" + "y" * 5000 + "\n", "x" * 5000 + "2" + "y" * 5000, ["column 5001", "'1'", "'2'"]),
    ("x = 2\n", "x = 1", ["already"]),
    ("", "x", ["empty"]),
    ("\n\n", "hello world", ["Nothing in the file is similar"]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "old", "hints"), HINTS)
def test_failed_match_names_the_difference(content: str, old: str, hints: list[str]) -> None:
    with pytest.raises(ToolError) as error:
        apply(content.encode(), [Edit(old, "x = 2")], explain)
    assert error.value.kind == "not_found"
    assert [hint for hint in hints if hint not in str(error.value)] == [], str(error.value)


@pytest.mark.parametrize(
    ("content", "old"),
    [
        ("".join(f"def function_{n}(argument, other):\n    return argument + {n}\n" for n in range(40_000)), "def functions(a):"),
        ("x" * 3_000_000, "y" * 1_000_000),
        ("a b " * 700_000, "a  b  c"),
        ("\n" * 3_000_000, "\n\nx\n\n"),
        ("ab\n" * 900_000, "ab\n" * 3_000 + "c"),
        ("0123456789abcdef\n" * 600_000, "needle"),
    ],
)  # fmt: skip
def test_explaining_takes_bounded_time(content: str, old: str) -> None:
    began = time.monotonic()
    with pytest.raises(ToolError, match=r"^not_found") as error:
        apply(content.encode(), [Edit(old, "z")], explain)
    assert time.monotonic() - began < 20
    assert len(str(error.value)) < 5_000


def test_counting_takes_bounded_time() -> None:
    began = time.monotonic()
    with pytest.raises(ToolError, match=r"^ambiguous: old occurs at least \d+ times \(line 1\)"):
        apply(b"a" * 5_000_000, [Edit("a" * 100_000, "b")], explain)
    with pytest.raises(ToolError, match=r"^ambiguous: old occurs at least 10000 times"):
        apply(b"a\n" * 2_000_000, [Edit("a", "b")], explain)
    assert time.monotonic() - began < 20
