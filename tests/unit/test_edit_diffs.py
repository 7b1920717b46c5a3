"""The diff that a person is shown before a file changes."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypercode.tools.diffs import unified

LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b"", b"long line"]), max_size=30)


@pytest.mark.parametrize(
    ("before", "after", "diff"),
    [
        (b"", b"a\n", "@@ -0,0 +1 @@\n+a"),
        (b"a\n", b"", "@@ -1 +0,0 @@\n-a"),
        (b"a", b"b", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file"),
        (b"a\r\n", b"a\n", "@@ -1 +1 @@\n-a\r\n+a"),
        (b"\xe9\n", b"x\n", "@@ -1 +1 @@\n-\ufffd\n+x"),
        (b"a\nb\nc\nd\ne\nf\n", b"a\nb\nc\nd\nE\nf\n", "@@ -2,5 +2,5 @@\n b\n c\n d\n-e\n+E\n f"),
    ],
)
def test_diff(before: bytes, after: bytes, diff: str) -> None:
    assert unified(before, after, "f") == f"--- f\n+++ f\n{diff}"


@settings(max_examples=60, deadline=None)
@given(LINES, LINES, st.booleans(), st.booleans())
def test_patch_makes_the_one_of_the_other(tmp_path_factory: pytest.TempPathFactory, a: list[bytes], b: list[bytes], x: bool, y: bool) -> None:  # fmt: skip
    before, after = b"\n".join(a) + b"\n" * x, b"\n".join(b) + b"\n" * y
    if before == after:
        return
    folder = tmp_path_factory.mktemp("patch")
    (folder / "f").write_bytes(before)
    patch = unified(before, after, "f") + "\n"
    done = subprocess.run(["patch", "-s", "f"], cwd=folder, input=patch.encode(), capture_output=True, check=False)
    assert (done.returncode, Path(folder / "f").read_bytes() if after else b"") == (0, after), (patch, done)


def test_long_diffs_are_bounded_in_length_and_time() -> None:
    before = b"".join(b"line %d\n" % n for n in range(300_000))
    began = time.monotonic()
    everywhere = unified(before, before.replace(b"line", b"LINE"), "f")
    one = unified(before, before.replace(b"line 250000\n", b"LINE\n"), "f")
    two = unified(before, before.replace(b"line 5\n", b"x\n").replace(b"line 299995\n", b"y\n"), "f")
    wide = unified(b"", b"z" * 1_000_000, "f")
    assert time.monotonic() - began < 20
    assert max(len(everywhere.split("\n")), len(two.split("\n"))) < 500
    assert "left out" in everywhere
    assert one == (
        "--- f\n+++ f\n@@ -249998,7 +249998,7 @@\n line 249997\n line 249998\n line 249999\n"
        "-line 250000\n+LINE\n line 250001\n line 250002\n line 250003"
    )
    assert len(wide) < 3_000
