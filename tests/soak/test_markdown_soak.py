"""The long versions of the Markdown checks: many seeds, all sizes, random documents, 64k streams."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "ui"))
from markdown_help import bare, cut, mdstream_gen, stream

from hypercode.ui.markdown import MarkdownStream, render, warm_up

pytestmark = pytest.mark.soak

LINES = [
    "- item", "* star", "+ plus", "1. one", "2. two", "10. ten", "3) paren", "> quote", ">", "> - quoted item", "```", "```python", "~~~",
    "````", "    indented", "\tTab", "# H", "## H2 ##", "---", "===", "***", "- - -", "| a | b |", "|---|---|", "| 1 | 2 |", "a | b",
    "text with *em* and `code`", "**bold", "[ref][d]", "[d]: http://x.y", "[e]: <http://a b>", '"title"', "  continued", "   three",
    "      six", "", "", "", "  ", "\\", "line  ", "x\\", "/* c", "*/", "'''", '"""', "def f():", "字字字。字", "&#10; &amp;", "<div>",
    "![i](u)", "- [ ] t", "  - nested", "    - deeper", "   1. n", "  ```", "  > q", "-", "1.", "> ```", "`a", "b`", "|", "|a|b|c|",
    "\t- t", "-\tx", "-      five", ": x", "~~s~~", "_u_", "www.x.y", "<http://a/%1b>",
]  # fmt: skip


def soup(r: random.Random) -> str:
    """A document of block starts that belong nowhere."""
    lines = []
    for _ in range(r.randint(1, 25)):
        indent = " " * r.choice([0, 0, 0, 1, 2, 3, 4, 5]) if r.random() < 0.25 else ""
        lines.append(indent + r.choice(LINES) + (" " + r.choice(LINES) if r.random() < 0.3 else ""))
    return "\n".join(lines) + r.choice(["", "\n", "\n\n"])


def arriving(text: str, width: int, r: random.Random) -> list[str]:
    one, rows, position = MarkdownStream(width, color="standard"), [], 0
    while position < len(text):
        size = r.choice([1, 2, 5, 20, 100])
        one.feed(text[position : position + size])
        position += size
        if r.random() < 0.8:
            rows += one.frame(tail_rows=r.choice([0, 1, 3, 12])).commit
    return rows + one.close()


@pytest.mark.parametrize("part", range(8))
def test_random_documents_are_as_printed_at_once(part):
    for seed in range(part * 600, part * 600 + 600):
        r = random.Random(seed)
        text, width = soup(r), r.choice([80, 40, 20, 10, 3])
        defines = "[d]:" in text or "[e]:" in text  # printed text stays; then only the sizes have to agree
        expected = stream(text, width, size=0) if defines else render(text, width, "standard")
        assert arriving(text, width, r) == expected, (seed, width, text)


@pytest.mark.parametrize("seed", range(20, 60))
def test_long_texts(seed):
    text = mdstream_gen.text_for(2048, seed)
    for width in (80, 38, 20, 10):
        expected = render(text, width, "standard")
        for size in (4, 64, 0):
            assert stream(text, width, size=size) == expected, (width, size)
    assert mdstream_gen.lost_text(text, "\n".join(bare(render(text, 80)))) == []


@pytest.mark.parametrize("deltas", [16_384, 65_536])
def test_long_streams(deltas):
    text = mdstream_gen.text_for(deltas)
    assert stream(text, 80, size=16) == render(text, 80, "standard")


def test_cpu_grows_with_the_text():
    """Frames of four deltas, as at 100 deltas a second."""

    def seconds(deltas: int) -> float:
        pieces = cut(mdstream_gen.text_for(deltas), 16)
        start = time.process_time()
        one = MarkdownStream(80, color="standard")
        for piece in pieces:
            one.feed(piece)
            one.frame(tail_rows=12)
        one.close()
        return time.process_time() - start

    warm_up()
    small, middle, large = (min(seconds(deltas) for _ in range(2)) for deltas in (4096, 16_384, 65_536))
    assert middle / small <= 8
    assert large / middle <= 5


def test_replies_in_one_session_cost_the_same():
    text = mdstream_gen.text_for(1024, 9)
    costs = []
    for _ in range(20):
        start = time.process_time()
        stream(text, 80, size=16)
        costs.append(time.process_time() - start)
    assert sorted(costs[10:])[5] <= 2 * sorted(costs[:10])[5]
