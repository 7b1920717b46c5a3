"""Markdown that arrives in pieces looks as if it had been printed at once."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading

import pytest
from markdown_help import LATE, TRAPS, bare, cut, mdstream_gen, stream
from rich.cells import cell_len

from hypercode.ui import markdown, markdown_elements
from hypercode.ui.clean import clean
from hypercode.ui.highlight import Highlighter
from hypercode.ui.markdown import Frame, MarkdownStream, render
from hypercode.ui.markdown_text import paint

WIDTHS = (80, 38, 20, 10)
TABLE = "| a | b |\n|---|---|\n" + "".join(f"| row {k} | `code` and *text* {k * k} |\n" for k in range(800)) + "\n"


@pytest.mark.parametrize("name", [name for name in TRAPS if name != LATE])
def test_traps_are_as_printed_at_once(name):
    text = TRAPS[name]
    for width in WIDTHS:
        expected = render(text, width, "standard")
        for size in (1, 4, 64, 0):
            assert stream(text, width, size=size) == expected, (width, size)


@pytest.mark.parametrize("seed", [1, 2, 3, 7])
def test_long_texts_are_as_printed_at_once(seed):
    text = mdstream_gen.text_for(512, seed)
    for width in WIDTHS:
        expected = render(text, width, "standard")
        assert [stream(text, width, size=size) for size in (4, 64, 0)] == [expected] * 3


@pytest.mark.parametrize("name", [*TRAPS, 1, 2, 3, 4, 5])
def test_no_word_is_lost(name):
    text = TRAPS[name] if name in TRAPS else mdstream_gen.text_for(512, name)
    for width in (80, 60):
        assert mdstream_gen.lost_text(text, "\n".join(bare(render(text, width, "standard")))) == []
    assert mdstream_gen.lost_text(text, "\n".join(bare(stream(text, 80)))) == []


@pytest.mark.parametrize("width", [80, 38, 20, 10])
def test_markers_appear_once_and_in_order(width):
    text = mdstream_gen.marked_text(150)
    assert mdstream_gen.check_markers("\n".join(bare(stream(text, width))), 150) == []


def test_a_late_definition_leaves_what_is_printed():
    for size in (1, 4, 64, 0):
        assert bare(stream(TRAPS[LATE], 80, size=size)) == ["See [the docs][d] and [d].", "", "More text."]
    assert bare(render(TRAPS[LATE], 80))[0].startswith("See the docs (https://example.com/docs) and d")


@pytest.mark.parametrize("text", ["[red]", ":smile:", "[/]", "Vec<String>", "<details>", "[bold]x[/bold]", "<b>x</b>"])
def test_foreign_markup_is_shown_literally(text):
    for block in ("{}", "- {}", "> {}", "| {} | x |\n|---|---|", "# {}", "```\n{}\n```", "**{}**"):
        assert text in "\n".join(bare(stream(block.format(text) + "\n", 80)))


DOCUMENT = """\
# Title

Text with **bold**,
*slanted* and `code`.
1. one
2. two

   more of two
   ```sh
   ls -l  |  wc
   ```
10. eleven
- a
  - b
    - c
- d

- e

> quote
>
> - item
---

| n | value |
|--:|:-----:|
| 1 | x |
| 22 | *yy* |

```text
 code  with   blanks

\tand a tab
```
![picture](p.png) and [link](http://x.y)
"""

SHOWN = """\
Title

Text with bold, slanted and code.

 1. one
 2. two

    more of two
    ls -l  |  wc
 3. eleven

 • a
    ◦ b
       ▪ c
 • d

 • e

▌ quote
▌
▌  • item

────────────────────────

 n │ value
───┼──────
 1 │   x
22 │  yy

 code  with   blanks

\tand a tab

picture (p.png) and link (http://x.y)"""


def test_what_a_document_looks_like():
    assert "\n".join(bare(render(DOCUMENT, 80, "standard"))) == SHOWN
    assert "\n".join(bare(stream(DOCUMENT, 80))) == SHOWN


def test_styles():
    rows = render("# A\n\n## B\n\n- **c** `d`\n\n> e\n", 80, "standard")
    assert rows == [
        "\x1b[1;4;35mA\x1b[0m", "", "\x1b[1;35mB\x1b[0m", "",
        "\x1b[36m • \x1b[0m\x1b[1mc\x1b[0m \x1b[36md\x1b[0m", "", "\x1b[2m▌ \x1b[0me",
    ]  # fmt: skip


def test_without_colours_there_is_only_weight_and_slant():
    text = "".join(TRAPS.values()) + mdstream_gen.text_for(400)
    rows = stream(text, 80, color=None)
    codes = {code for sgr in re.findall(r"\x1b\[([0-9;]*)m", "\n".join(rows)) for code in sgr.split(";")}
    assert codes <= {"0", "1", "3", "4", "9"}
    assert bare(rows) == bare(stream(text, 80))


def test_code_is_copied_as_it_is():
    code = ["#!/bin/sh", "", "  indented  =  1", "\ttab", "x" * 300, "字" * 90, 'if [ -n "$a" ]; then # [red]', "    "]
    text = "text\n```sh\n" + "\n".join(code) + "\n\n```\nend\n"
    for width in (80, 20):
        rows = bare(stream(text, width))
        assert rows == ["text", "", *code[:-1], "", "end"]


def test_no_escape_but_sgr_and_no_blanks_at_the_end():
    for text in (*TRAPS.values(), mdstream_gen.text_for(400, 4)):
        for row in stream(text, 38):
            (plain,) = bare([row])
            assert clean(plain) == plain
            assert "\n" not in plain
            assert row == row.rstrip()
            assert row.count("\x1b[0m") * 2 == row.count("\x1b[")


@pytest.mark.parametrize("depth", [12, 40, 60, 200])
def test_deep_nesting_is_shown(depth):
    for text in (
        ">" * depth + " last\n",
        "".join("  " * k + f"- l{k}\n" for k in range(depth)) + "  " * depth + "last",
    ):
        for width in (38, 10):
            assert "last" in "".join(bare(stream(text, width, size=len(text) // 5)))


# The tail


def test_the_tail_is_the_end_of_what_would_be_printed():
    for name, text in {**TRAPS, "long": mdstream_gen.text_for(500, 6)}.items():
        if name in (LATE, "para_no_newline", "long_line"):
            continue
        one, printed, position = MarkdownStream(80, color="standard"), [], 0
        for delta in cut(text, 9):
            one.feed(delta)
            position += len(delta)
            frame = one.frame(tail_rows=12)
            printed += frame.commit
            partial = text[:position].rpartition("\n")[2]
            # Not yet shown: lines that may become something else, blank lines and fences that may end a code block.
            if not any(char.isalpha() for char in partial) or partial.startswith(("|", "`", "~")):
                continue
            expected = render(text[:position], 80, "standard")
            if any(cell_len(row) > 80 for row in bare(expected)):
                continue
            got = printed + frame.tail
            if len(frame.tail) == 12:
                got, expected = got[-12:], expected[-12:]
            assert bare(got) == bare(expected), (name, position)


@pytest.mark.parametrize(
    ("text", "tail"),
    [
        ("Hello wor", ["Hello wor"]),
        ("text\n-", ["text"]),
        ("text\n===", ["text"]),
        ("#", []),
        ("**", []),
        ("1.", []),
        ("1. a", [" 1. a"]),
        ("- a\n  -", [" • a"]),
        ("| a | b", ["a │ b", "──┼──"]),
        ("| a | b |\n|--", ["a │ b", "──┼──"]),
        ("| a | b |\n|---|---|\n| 1", ["a │ b", "──┼──", "1 │"]),
        ("```py", []),
        ("```py\nx = 1", ["x = 1"]),
        ("```py\nx = 1\n``", []),
        ("> ```\n> a\n> b", ["▌ a", "▌ b"]),
        ("[d]: http", []),
    ],
)
def test_what_an_open_end_shows(text, tail):
    one = MarkdownStream(80, color="standard")
    one.feed(text)
    assert bare(one.frame(tail_rows=12).tail) == tail


def test_committed_and_open_blocks_are_apart_by_one_blank_row():
    one = MarkdownStream(80)
    one.feed("one\n\ntwo")
    assert one.frame(tail_rows=12) == Frame(["one"], ["", "two"])
    one.feed("\n\n- a\n- b")
    assert one.frame(tail_rows=12) == Frame(["", "two"], ["", " • a", " • b"])
    one.feed("\n- c")
    assert one.frame(tail_rows=12) == Frame(["", " • a"], [" • b", " • c"])
    one.feed("\n\n```\nx\ny")
    assert one.frame(tail_rows=12) == Frame([" • b", " • c", "", "x"], ["y"])
    assert one.close() == ["y"]


@pytest.mark.parametrize("text", [
    "word " * 5000, "x" * 20_000, "- item " + "word " * 5000, "```\n" + "x" * 20_000, "```\n" + "字\t" * 9000, TABLE[:20_000],
    "> quote of some words\n" * 900, "- a\n" + "  - nested item\n" * 900, "- a\n\n  ```python\n" + "  x = 1  # y\n" * 900,
    "some line of a paragraph\n" * 900, "text\n\n" + "    code\n" * 2000, "a | b\n---|---\n" + "c | d\n" * 2000,
])  # fmt: skip
def test_a_long_open_block_has_a_full_tail_of_bounded_cost(text):
    one = MarkdownStream(80, color="standard")
    first = len(text) // 2
    one.feed(text[:first])
    one.frame(tail_rows=12)
    for delta in cut(text[first : first + 2000], 40):
        one.feed(delta)
        frame = one.frame(tail_rows=12)
        source = one._tail._source("", 1360)
        assert sum(len(line) for line in source) <= 3 * 1360 + 1360
        if one._scanner.fence is None or one._scanner.partial:
            assert len(frame.tail) >= 10
    assert all(len(row) <= 80 for row in bare(frame.tail))


def test_an_unchanged_tail_is_not_rendered_again():
    one = MarkdownStream(80)
    one.feed("some *text*")
    assert one.frame(tail_rows=12).tail is one.frame(tail_rows=12).tail
    assert one.frame(tail_rows=0).tail == []
    one.resize(6)
    assert one.frame(tail_rows=12).tail == ["some", "\x1b[3mtext\x1b[0m"]


def test_resize_holds_for_the_next_block():
    one = MarkdownStream(80)
    one.feed("one two three\n\none two three\n\n")
    assert one.frame(tail_rows=5).commit == ["one two three", "", "one two three"]
    one.resize(7)
    one.feed("one two three\n\n")
    assert one.frame(tail_rows=5).commit == ["", "one two", "three"]


# Failures


def test_a_block_that_cannot_be_rendered_is_shown_as_source(monkeypatch):
    def broken(*args, **kwargs):
        raise KeyError("broken")

    monkeypatch.setattr(markdown_elements, "table", broken)
    text = "one *two*\n\n| a | *b* |\n|---|---|\n| 1 | 2 |\n\nthree *four*\n"
    for size in (1, 4, 0):
        rows = stream(text, 80, size=size, color=None)
        assert rows == [
            "one \x1b[3mtwo\x1b[0m", "", "| a | *b* |", "|---|---|", "| 1 | 2 |", "", "three \x1b[3mfour\x1b[0m",
        ]  # fmt: skip
    assert render(text, 80) == rows


def test_a_parser_that_fails_leaves_the_text(monkeypatch):
    real = markdown.parse_blocks

    def broken(lines, references):
        if any("trap" in line for line in lines):
            raise RecursionError
        return real(lines, references)

    monkeypatch.setattr("hypercode.ui.markdown_blocks.parse_blocks", broken)
    monkeypatch.setattr("hypercode.ui.markdown_tail.parse_blocks", broken)
    assert stream("*one*\n\n- trap *x*\n- y\n\n*two*\n", 80, color=None, size=4) == [
        "\x1b[3mone\x1b[0m", "", "- trap *x*", "- y", "", "\x1b[3mtwo\x1b[0m",
    ]  # fmt: skip


def test_a_highlighter_that_fails_leaves_plain_code(monkeypatch):
    class Failing:
        name = "Failing"

        def get_tokens_unprocessed(self, text):
            raise ZeroDivisionError

    monkeypatch.setattr("hypercode.ui.highlight.find_lexer", lambda info: Failing())
    assert stream("a\n\n```x\nif 1:\n    pass\n```\n\nb\n", 80) == ["a", "", "if 1:", "    pass", "", "b"]


# Without holding up the event loop


async def test_frames_from_a_coroutine_are_the_same():
    text = mdstream_gen.text_for(400, 3) + "\n\n" + TABLE
    one, rows = MarkdownStream(80, color="standard"), []
    for delta in cut(text, 300):
        one.feed(delta)
        rows += (await one.aframe(tail_rows=12)).commit
    assert rows + await one.aclose() == render(text, 80, "standard")


async def test_a_large_block_is_rendered_in_a_thread(monkeypatch):
    where = []
    real = MarkdownStream._rendered

    def noted(self, part):
        where.append((part.size > markdown.LARGE, threading.current_thread() is threading.main_thread()))
        return real(self, part)

    monkeypatch.setattr(MarkdownStream, "_rendered", noted)
    one = MarkdownStream(80)
    one.feed("text\n\n" + TABLE + "end")
    frame = await one.aframe(tail_rows=12)
    assert where == [(False, True), (True, False)]
    assert len(frame.commit) == 804
    assert frame.tail == ["", "end"]


async def test_what_a_cancelled_frame_took_is_not_lost(monkeypatch):
    text = "*text*\n\n" + TABLE + "end\n"
    one, release = MarkdownStream(80), threading.Event()
    entered = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def held(function, *args):
        entered.set()
        await loop.run_in_executor(None, release.wait)
        return function(*args)

    monkeypatch.setattr(asyncio, "to_thread", held)
    one.feed(text)
    task = asyncio.create_task(one.aframe(tail_rows=12))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    assert one.close() == render(text, 80)


async def test_the_loop_goes_on_beside_a_large_table_and_a_long_line(monkeypatch):
    """The thread that draws a large block waits until the event loop has done something else meanwhile."""
    loop, waited = asyncio.get_running_loop(), []
    real = MarkdownStream._rendered

    def beside(self, part):
        if threading.current_thread() is not threading.main_thread():
            beaten = threading.Event()
            loop.call_soon_threadsafe(beaten.set)
            waited.append(beaten.wait(60))
        return real(self, part)

    monkeypatch.setattr(MarkdownStream, "_rendered", beside)
    text = TABLE + "word " * 4000 + "\n\n" + "x" * 20_000 + "\n\n"
    one, rows = MarkdownStream(80, color="standard"), []
    for delta in cut(text, 4000):
        one.feed(delta)
        rows += (await one.aframe(tail_rows=12)).commit
    assert rows + await one.aclose() == render(text, 80, "standard")
    assert waited == [True] * 3  # the table, the paragraph, the long word


# Resources


def test_committed_text_is_not_kept():
    one = MarkdownStream(80, color="standard")
    for _ in range(20):
        for delta in cut(mdstream_gen.text_for(300, 5) + "\n\nend\n\n", 60):
            one.feed(delta)
            one.frame(tail_rows=12)
        scanner = one._scanner
        assert (scanner.lines, scanner.partial, scanner._fed, list(scanner._queue), one._ready) == ([], "", [], [], [])


@pytest.mark.parametrize("unit", [
    "- item *x*\n", "word *x* ", "line of text\n", "> quote\n", "| a | b |\n", "  - nested\n", "x = 1\n", "[a{}]: http://x\n", "# H\n",
    "1. a\n\n   b\n\n", "\n", "`" , "[", "```\n", "    code\n",
])  # fmt: skip
def test_work_grows_with_the_text(unit, monkeypatch):
    """Characters handed to the parser per character of text: a fixed number, not one that grows."""

    def work(count: int) -> int:
        parsed = 0
        real = markdown.parse_blocks

        def counted(lines, references):
            nonlocal parsed
            parsed += sum(map(len, lines)) + len(lines)
            return real(lines, references)

        monkeypatch.setattr("hypercode.ui.markdown_blocks.parse_blocks", counted)
        one = MarkdownStream(80)
        one.feed("| a | b |\n|---|---|\n" if unit.startswith("|") else "")
        for k in range(count):
            one.feed(unit.format(k))
            one._advance()
        one.close()
        monkeypatch.undo()
        return parsed

    small, large = work(150), work(1200)
    assert large <= 8 * 3.2 * max(small, 100)


def test_the_renderer_is_imported_when_it_is_needed():
    program = (
        "import sys\nimport hypercode.ui.markdown as m\n"
        "heavy = {'rich.markdown', 'rich.console', 'markdown_it', 'pygments'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "m.warm_up()\nassert 'markdown_it' in sys.modules and 'pygments.lexers.python' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_code_of_a_stream_is_coloured_as_the_highlighter_says():
    code = ["def f(x):", '    """Doc', "    more", '    """', "    return x  # done"]
    rows = stream("```python\n" + "\n".join(code) + "\n```\n", 80)
    one = Highlighter("python", colour=True)
    assert rows == [paint(one.line(line)).rstrip() for line in code]
