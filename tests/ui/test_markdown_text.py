"""Wrapping, folding and inline syntax."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from hypercode.ui import markdown_text
from hypercode.ui.markdown_text import Inline, fold, paint, parser, restyle, wrap

CLUSTERS = ["a", "b ", "yz", " ", "  ", "字", "。", "终", "é", "—", "🚀", "👨\u200d👩", "❤\ufe0f", "한", "e\u0301"]


def texts(rows):
    return ["".join(text for text, _ in row) for row in rows]


def inline(source: str, references=None):
    return Inline(colour=True).runs(source, references or {})


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("one two three", 20, ["one two three"]),
        ("one two three", 7, ["one two", "three"]),
        ("one  two", 4, ["one", "two"]),
        ("one two ", 7, ["one two"]),
        ("abcdefghij kl", 4, ["abcd", "efgh", "ij", "kl"]),
        ("a\nb", 10, ["a", "b"]),
        ("naïve café — “quoted” text", 12, ["naïve café —", "“quoted”", "text"]),
        ("终端渲染", 4, ["终端", "渲染"]),
        ("终端，渲染", 4, ["终", "端，", "渲染"]),
        ("abc终端", 5, ["abc终", "端"]),
        ("한국어 문장", 6, ["한국어", "문장"]),
        ("🚀🚀🚀", 4, ["🚀🚀", "🚀"]),
        ("字", 1, ["字"]),
        ("", 5, []),
    ],
)
def test_wrap(text, width, expected):
    assert texts(wrap([(text, "")], width)) == expected


def test_words_of_ideographs_can_be_kept_whole():
    assert texts(wrap([("ab 终端渲染", "")], 9)) == ["ab 终端渲", "染"]
    assert texts(wrap([("ab 终端渲染", "")], 9, words=True)) == ["ab", "终端渲染"]


def test_styles_follow_the_text_across_rows():
    rows = wrap([("one ", ""), ("two three", "bold"), (" four", "")], 7)
    assert rows == [[("one ", ""), ("two", "bold")], [("three", "bold")], [("four", "")]]
    assert [paint(row) for row in rows] == ["one \x1b[1mtwo\x1b[0m", "\x1b[1mthree\x1b[0m", "four"]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(CLUSTERS), max_size=12).map("".join), st.sampled_from(["", "bold", "cyan"])),
        max_size=8,
    ),
    st.integers(2, 30),
    st.booleans(),
)
def test_wrapping_loses_nothing_and_fits(runs, width, words):
    rows = wrap(runs, width, words=words)
    whole = "".join(text for text, _ in runs)
    assert re.sub(r"\s", "", "".join(texts(rows))) == re.sub(r"\s", "", whole)
    assert all(cell_len(row) <= width for row in texts(rows))
    assert all(row == row.rstrip(" ") for row in texts(rows))
    styled = [(char, sgr) for text, sgr in runs for char in text if not char.isspace()]
    assert [(char, sgr) for row in rows for text, sgr in row for char in text if not char.isspace()] == styled


@settings(max_examples=100, deadline=None)
@given(st.text("ab 字é🚀\t", max_size=40), st.integers(2, 20))
def test_folding_loses_nothing_and_fits(text, width):
    rows = texts(fold([(text, "green")], width))
    assert "".join(rows) == text.replace("\t", "    ")
    assert all(cell_len(row) <= width for row in rows)


def test_characters_taken_for_one_cell_are_one_cell():
    """Whatever the fast path of wrapping takes for narrow, Rich measures as narrow, also beside each other."""
    narrow = [chr(code) for code in range(0x20, 0x3000) if markdown_text._NARROW(chr(code))]
    assert len(narrow) > 500
    assert [char for char in narrow if cell_len(char) != 1] == []
    assert cell_len("".join(narrow)) == len(narrow)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("plain text.", [("plain text.", "")]),
        ("a **b *c*** `d`", [("a ", ""), ("b ", "bold"), ("c", "bold italic"), (" ", ""), ("d", "cyan")]),
        ("~~gone~~", [("gone", "strike")]),
        ("**`x`**", [("x", "bold cyan")]),
        ("one\ntwo", [("one", ""), (" ", ""), ("two", "")]),
        ("one  \ntwo", [("one", ""), ("\n", ""), ("two", "")]),
        ("[docs](http://x.y/z)", [("docs", "underline"), (" (", ""), ("http://x.y/z", "dim"), (")", "")]),
        ("<http://x.y>", [("http://x.y", "underline")]),
        ("<me@x.y>", [("me@x.y", "underline")]),
        ("![alt](i.png)", [("alt", ""), (" (", ""), ("i.png", "dim"), (")", "")]),
        ("Vec<String> <b>", [("Vec<String> <b>", "")]),
        ("[red]x[/red] [/] :smile:", [("[red]x[/red] [/] :smile:", "")]),
        ("a\\*b &amp; c", [("a", ""), ("*", ""), ("b ", ""), ("&", ""), (" c", "")]),
        ("**open", [("**", ""), ("open", "")]),
    ],
)
def test_inline(source, expected):
    def joined(runs):
        out = []
        for text, sgr in runs:
            if out and out[-1][1] == sgr:
                out[-1] = (out[-1][0] + text, sgr)
            else:
                out.append((text, sgr))
        return out

    assert joined(inline(source)) == joined(expected)


def test_references_are_those_handed_in():
    references = {"D": {"href": "http://x.y", "title": ""}}
    one = Inline(colour=True)
    assert one.runs("see [d]", {}) == [("see [d]", "")]
    assert one.runs("see [d]", references)[1] == ("d", "underline")
    assert one.runs("see [d]", {}) == [("see [d]", "")]


@pytest.mark.parametrize(
    "source",
    ["&#27;[31m", "&#x9b;2J", "&#13;a", "&#10;a", "&#x202e;a", "&#x2066;a", "<http://x.y/%1b]0;t%07>", "![&#x1b;c](x)", "&ZeroWidthSpace;a", "a\tb"],
)  # fmt: skip
def test_no_control_character_comes_back_through_entities(source):
    text = "".join(text for text, _ in inline(source))
    assert text
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", text)


@settings(max_examples=200, deadline=None)
@given(st.text("ab .,:;-+=#|(){}'\"$%^/?1é字", max_size=40))
def test_text_without_syntax_is_what_the_parser_says(source):
    source = source.strip()
    tokens = []
    parser().inline.parse(source, parser(), {}, tokens)
    assert "".join(text for text, _ in inline(source)) == "".join(token.content for token in tokens)


def test_memory_of_parsed_text_is_bounded():
    one = Inline(colour=True)
    for k in range(2000):
        one.rows(f"text *{k}*", {}, 80, "", words=False)
    assert len(one._known) <= 256
    assert len(one._painted) <= 256


@pytest.mark.parametrize("source", ["[" * 20_000, "[" * 8_000 + "]" * 8_000, "![" * 9_000])
def test_brackets_without_end_are_shown_as_they_are(source):
    assert inline(source) == [(source, "")]


def test_restyle_puts_a_style_below():
    assert restyle([("a", ""), ("b", "cyan")], "bold") == [("a", "bold"), ("b", "bold cyan")]
    assert restyle([("a", "cyan")], "") == [("a", "cyan")]
