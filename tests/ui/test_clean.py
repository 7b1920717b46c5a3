"""What reaches a terminal of text that others wrote."""

from __future__ import annotations

import json
import re
import timeit
import unicodedata
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypercode.ui.clean import Cleaner, Context, clean, keep_sgr, strip_sgr

CASES = json.loads((Path(__file__).parent.parent / "cases/security/terminal-text.json").read_text("utf-8"))["cases"]
CONTEXT: dict[str, Context] = {
    "model_text": "text",
    "provider_error": "text",
    "tool_output": "tool_output",
    "approval": "approval",
    "diff": "diff",
    "filename": "filename",
    "mcp_tool": "filename",
    "title": "filename",
}
ALL: tuple[Context, ...] = get_args(Context)
JUDGED: tuple[Context, ...] = ("approval", "diff", "filename")

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
DECEPTIVE = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)

# Much of everything that has a rule, in short strings, beside any character at all.
SPICE = [
    *"\r\n\t\x1b\x00\x07\x08\x0b\x0c\x0e\x7f\x85\x90\x9b\x9c\x9d[]()\\mKBJH;:0123456789?<>/.-_ abcs",
    *"сурѕοΑнѐж／：，！—–…é中\u0301\u034f\xa0\xad\u200b\u200c\u200d\u200e\u2028\u2029\u202e\u2066\u2069\ufe0f\ufeff⟨⟩␛",
    "\ud83d",
    "\ude00",
    "\U000e0041",
    "😀",
    "\x1b[31m",
    "\x1b[m",
    "\x1b[K",
    "\x1b(B",
    "\r\n",
    "U+202E",
]
texts = st.lists(st.sampled_from(SPICE) | st.characters(), max_size=24).map("".join)
contexts = st.sampled_from(ALL)


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_case_file(case: dict[str, str]) -> None:
    shown = clean(case["text"], CONTEXT[case["context"]])
    assert [s for s in case["must_show"] if s not in shown] == []
    assert [s for s in case.get("must_not_emit", []) if s in shown] == []
    assert CONTROL.findall(shown) == []
    if CONTEXT[case["context"]] in JUDGED:
        assert DECEPTIVE.findall(shown) == []


@given(texts, contexts)
def test_nothing_forbidden_comes_through(text: str, context: Context) -> None:
    shown = clean(text, context)
    assert CONTROL.findall(shown) == []
    assert shown.encode("utf-8").decode("utf-8") == shown
    if context in JUDGED:
        assert DECEPTIVE.findall(shown) == []
    if context == "filename":
        assert "\n" not in shown
        assert "\t" not in shown


@given(texts, contexts, st.data())
def test_pieces_give_the_same_as_the_whole(text: str, context: Context, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    cleaner = Cleaner(context)
    shown = "".join(cleaner.feed(text[a:b]) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))
    assert shown + cleaner.close() == clean(text, context)
    assert cleaner.close() == ""


@given(texts, contexts)
def test_cleaning_twice_changes_nothing(text: str, context: Context) -> None:
    once = clean(text, context)
    assert clean(once, context) == once


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"])))
def test_ordinary_text_is_not_touched(text: str) -> None:
    assert clean(text) == text
    assert clean(text, "tool_output") == text


@given(st.text(st.characters(max_codepoint=126, exclude_categories=["Cc"])), contexts)
def test_printable_ascii_is_not_touched_in_any_context(text: str, context: Context) -> None:
    assert clean(text, context) == text


@given(texts, st.sampled_from(JUDGED))
def test_where_a_person_decides_every_character_leaves_a_trace(text: str, context: Context) -> None:
    """One mark a character: what is shown is never shorter than what is there."""
    joined = re.sub("[\ud800-\udbff][\udc00-\udfff]", "😀", text)
    assert len(clean(text, context)) >= len(joined)


@pytest.mark.parametrize(
    ("context", "text", "shown"),
    [
        ("text", "a\r\nb\rc\x85d", "a\nb\ncd"),
        ("text", "x\x1b[2Jy\x9b1mz\x7f", "x␛[2Jy␛1mz␡"),
        ("text", "\u202eab\u2066c\u2069 d\u2028e", "�ab�c� d\ne"),
        ("text", "a\u200bb\ufeffc\xadd\u2060e\U000e0041f", "abcdef"),
        ("text", "👨\u200d👩 ❤\ufe0f נכון", "👨\u200d👩 ❤\ufe0f נכון"),
        ("text", "\ud83d\ude00 \ud83d \ude00", "😀 � �"),
        ("text", "\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("tool_output", "\x1b[01;31m\x1b[Kred\x1b[m\x1b[K \x1b(Bx \x1b[8mhidden\x1b[0m", "red x hidden"),
        ("tool_output", "\x1b[2J\x1b[31", "␛[2J␛[31"),
        ("tool_output", "\x1b\x1b[31m[31mx", "␛[31mx"),
        ("approval", "ls\r\nrm\x08\x00", "ls␍\nrm␈␀"),
        ("approval", "git commit -m 'исправлено: он и она' … – ok", "git commit -m 'исправлено: он и она' … – ok"),
        ("approval", "cоpy хх", "c⟨U+043E⟩py ⟨U+0445⟩⟨U+0445⟩"),
        ("approval", "rm –rf ｒm a\xa0b ﬁle", "rm ⟨U+2013⟩rf ⟨U+FF52⟩m a⟨U+00A0⟩b ⟨U+FB01⟩le"),
        ("approval", "echo '修复：错误，好。' x：y", "echo '修复：错误，好。' x⟨U+FF1A⟩y"),
        ("approval", "a\udcffb", "a⟨U+DCFF⟩b"),
        ("diff", "+é … “x” Δt\r\n", "+é … “x” Δt␍\n"),
        ("diff", "+pаy", "+p⟨U+0430⟩y"),
        ("filename", "a\nb\t\r\x1b.txt", "a\\nb\\t\\r␛.txt"),
    ],
)
def test_rules(context: Context, text: str, shown: str) -> None:
    assert clean(text, context) == shown


def test_a_stream_shows_what_it_can_at_once() -> None:
    cleaner = Cleaner("tool_output")
    assert [cleaner.feed(d) for d in ("a\r", "\nb\x1b", "[3", "1mc", "\ud83d", "\ude00")] == [
        "a",
        "\nb",
        "",
        "c",
        "",
        "😀",
    ]
    assert cleaner.close() == ""


def test_no_character_of_a_script_is_called_false_by_itself() -> None:
    """Letters, digits and marks outside the compatibility blocks are left alone in a sentence of their own script."""
    for sentence in (
        "Файл не найден, попробуйте ещё раз",
        "Αρχείο δεν βρέθηκε",
        "ファイルが見つかりません",
        "파일을 찾을 수 없습니다",
        "לא נמצא",
        "dosya bulunamadı: çok ğüşö",
    ):
        for context in ALL:
            assert clean(sentence, context) == unicodedata.normalize("NFC", sentence)


def test_keep_sgr_keeps_colours_only() -> None:
    assert keep_sgr("\x1b[1;31mx\x1b[0m\ty") == "\x1b[1;31mx\x1b[0m\ty"
    assert keep_sgr("\x1b[31mx\x1b]0;t\x07\x1b[2J\x9b\r\n\x7f") == "\x1b[31mx␛]0;t␛[2J␡"
    assert strip_sgr("\x1b[1;31mx\x1b[m\x1b[0my") == "xy"


def test_an_ordinary_delta_costs_next_to_nothing() -> None:
    cleaner = Cleaner()
    assert min(timeit.repeat(lambda: cleaner.feed("abcd"), number=20_000, repeat=5)) / 20_000 < 5e-6
