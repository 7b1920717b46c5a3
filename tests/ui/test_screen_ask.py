"""Questions: all of the text can be read, one key answers, nothing typed is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth
from screen_terminal import Terminal, driver

from hypercode.ui.clean import clean
from hypercode.ui.hooks import Answer, Choice
from hypercode.ui.screen_ask import Question
from hypercode.ui.screen_rows import fragments, row_width, wrap

CHOICES = [Choice("y", "yes"), Choice("A", "always"), Choice("w", "no, and say why", free_text=True)]


def text(rows: list) -> list[str]:  # type: ignore[type-arg]
    return ["".join(piece[1] for piece in row) for row in rows]


async def test_a_long_text_shows_head_and_tail_and_pages_through_all() -> None:
    question = Question([f"line {i}" for i in range(30)], CHOICES)
    assert text(question.view(60, 6)) == [
        "│ line 0",
        "│ line 1",
        "│ line 2",
        "│ ··· 25 of 30 rows not shown, PgDn reads on ···",
        "│ line 28",
        "│ line 29",
    ]
    seen = set(text(question.view(60, 6)))
    for _ in range(6):
        question.scroll(1)
        seen |= set(text(question.view(60, 6)))
    assert {f"│ line {i}" for i in range(30)} <= seen
    for _ in range(9):
        question.scroll(-1)
        question.view(60, 6)
    assert text(question.view(60, 6))[0] == "│ line 0"


@pytest.mark.parametrize("height", range(1, 12))
async def test_every_row_can_be_reached_at_any_height(height: int) -> None:
    question = Question([f"line {i}" for i in range(10)], CHOICES)
    seen: set[str] = set()
    for _ in range(20):
        rows = text(question.view(40, height))
        assert len(rows) <= height
        seen |= set(rows)
        question.scroll(1)
    assert {f"│ line {i}" for i in range(10)} <= seen


@pytest.mark.parametrize(
    ("command", "end"),
    [
        ("ls" + " " * 3000 + "; touch x", "; touch x"),
        ("ls" + "\n" * 60 + "touch x", "touch x"),
        ("echo " + "a" * 5000 + "; touch x", "; touch x"),
    ],
)
async def test_the_end_of_a_command_cannot_be_pushed_out_of_sight(command: str, end: str) -> None:
    rows = text(Question([clean(command, "approval")], CHOICES).view(80, 20))
    assert end in "".join(row[2:] for row in rows[-2:])
    assert rows[0].startswith(f"│ {command[:2]}")


async def test_text_that_imitates_a_question_has_the_bar_on_every_row() -> None:
    rows = text(Question(["Allow? [y/N] y\nls " + "x" * 200], CHOICES).view(40, 20))
    assert [row for row in rows if not row.startswith("│ ")] == []


async def test_choices_fit_or_show_their_keys() -> None:
    question = Question(["?"], CHOICES)
    assert text(question.choice_rows(80, 4)) == ["y yes  A always  w no, and say why"]
    assert text(question.choice_rows(18, 4)) == ["y yes  A always", "w no, and say why"]
    assert text(question.choice_rows(18, 1)) == ["y A w"]


async def test_the_legend_keeps_its_words_while_there_are_rows_for_them() -> None:
    gate = [
        Choice("y", "yes, once", short="yes once"),
        Choice("s", "yes, 'make test' for this session", short="session"),
        Choice("a", "always: saves the rule 'make test'", short="always"),
        Choice("n", "no (then say why, or Enter)", free_text=True, short="no"),
    ]
    question = Question(["?"], gate)
    assert text(question.choice_rows(40, 4)) == [
        "y yes, once",
        "s yes, 'make test' for this session",
        "a always: saves the rule 'make test'",
        "n no (then say why, or Enter)",
    ]
    assert text(question.choice_rows(40, 3)) == ["y yes once  s session  a always  n no"]
    assert text(question.choice_rows(30, 6)) == [
        "y yes, once",
        "s yes, 'make test' for this",
        "  session",
        "a always: saves the rule",
        "  'make test'",
        "n no (then say why, or Enter)",
    ]
    assert text(question.choice_rows(20, 1)) == ["y s a n"]


async def test_what_is_hidden_is_said_on_a_narrow_terminal_too() -> None:
    rows = text(Question([f"line {i}" for i in range(30)], CHOICES).view(30, 5))
    assert rows[2] == "│ ··· 26 rows hidden: PgDn ···"


async def test_keys_answer() -> None:
    for key, answer in (("y", Answer("y")), ("Y", Answer("y")), ("A", Answer("A"))):
        question = Question(["?"], CHOICES)
        question.press("x")
        question.press("a")
        assert not question.answer.done()
        question.press(key)
        question.press("A")
        assert await question.answer == answer


def test_wrapping_keeps_every_character_and_its_colour() -> None:
    line = "\x1b[1mab字cd\x1b[0m\te\x1b[31mf字字g"
    rows = wrap(line, 4)
    assert "".join(text(rows)) == "".join(text([fragments(line)]))
    assert text(rows) == ["ab字", "cd  ", "ef字", "字g"]
    assert [piece for row in rows for piece in row if "字" in piece[1]] == [
        ("bold", "ab字"),
        ("ansired", "f字"),
        ("ansired", "字g"),
    ]
    assert text(wrap("", 4)) == [""]


def test_rows_end_between_words() -> None:
    assert text(wrap("the server is not there, try again", 12)) == ["the server ", "is not ", "there, try ", "again"]
    assert text(wrap("see /a/path/longer/than/a/row now", 10)) == ["see ", "/a/path/lo", "nger/than/", "a/row now"]
    assert text(wrap("a" + " " * 12 + "b", 5)) == ["a    ", "     ", "   b"]


@given(st.text("ab日 -\t", max_size=80), st.integers(4, 20))
def test_no_character_is_lost_and_no_word_that_has_room_is_cut(line: str, width: int) -> None:
    rows = wrap(line, width)
    [whole] = text([fragments(line)])
    assert "".join(text(rows)) == whole
    assert max(map(row_width, rows)) <= width
    places = [0]
    for row in text(rows):
        places.append(places[-1] + len(row))
    for found in re.finditer(r"[^ ]+", whole):
        if get_cwidth(found[0]) <= width:
            assert not [place for place in places if found.start() < place < found.end()]


def test_an_answer_by_one_key_and_the_draft_survives() -> None:
    with Terminal(driver("--rate", "20", "--lines", "2")) as terminal:
        terminal.ready().send("ask rm -rf build\r")
        terminal.wait("yes, once")
        assert terminal.visible == [
            "│ $ rm -rf build",
            "y yes, once  s yes, for this session  a always  n no  w no, and say why",
            "STATUSBAR waiting for you",
        ]
        terminal.send("\x1b[200~y pasted\x1b[201~s")
        terminal.wait("[answer s '']")
        terminal.wait("PROMPT> y pasted")  # what is pasted is no answer, and not lost


@pytest.mark.parametrize("words", ["could you say why", "stop it, now", "are you sure", "yes, but why"])
def test_a_sentence_is_no_answer(words: str) -> None:
    """Whatever letter it begins with, typed as fast as a person types or in one burst; it is kept."""
    for pace in (0.0, 0.1):
        with Terminal(driver()) as terminal:
            terminal.ready().send("ask\r")
            terminal.wait("yes, once")
            for piece in words if pace else [words]:
                terminal.send(piece)
                terminal.pump(pace)
            terminal.wait("PROMPT> " + words)
            terminal.send("\r")  # the driver's question holds back what is typed
            terminal.wait("yes, once")
            terminal.send("s")
            terminal.wait("[answer s '']")
            terminal.wait("PROMPT> " + words)


@pytest.mark.parametrize(("word", "answer"), [("yes", "y"), ("no", "n"), ("always", "a"), ("YES!", "y")])
@pytest.mark.parametrize("pause", [0.0, 0.1])
def test_the_word_of_an_answer_and_enter_is_that_answer(word: str, answer: str, pause: float) -> None:
    with Terminal(driver()) as terminal:
        terminal.ready().send("ask\r")
        terminal.wait("yes, once")
        for piece in word if pause else [word]:
            terminal.send(piece)
            terminal.pump(pause)
        if not pause:
            terminal.wait(f"kept in the input line: {word}")
        terminal.send("\r")
        terminal.wait(f"[answer {answer} '']")
        terminal.wait(lambda: terminal.visible[-2:] == ["PROMPT>", "STATUSBAR idle"])


def test_what_waits_in_the_input_line_is_shown_and_no_answer() -> None:
    with Terminal(driver()) as terminal:
        terminal.ready().send("ask\r")
        terminal.wait("yes, once")
        terminal.send("help me")
        terminal.wait("kept in the input line: help me")
        terminal.send("\r")
        terminal.send("s")
        terminal.wait("[answer s '']")
        terminal.wait("PROMPT> help me")


def test_enter_behind_a_letter_answers_at_once() -> None:
    with Terminal(driver()) as terminal:
        terminal.ready().send("ask\r")
        terminal.wait("yes, once")
        terminal.send("y\r")
        terminal.wait("[answer y '']")


def test_a_reason_can_be_typed_or_not() -> None:
    with Terminal(driver()) as terminal:
        terminal.ready().send("ask\r")
        terminal.wait("yes, once")
        terminal.send("w")
        terminal.wait("no, and say why:")
        terminal.send("too\x1b")
        terminal.wait("yes, once")
        terminal.send("w")
        terminal.wait("no, and say why: too")
        terminal.send(" broad\r")
        terminal.wait("[answer w 'too broad']")
        terminal.wait(lambda: terminal.visible == ["[answer w 'too broad']", "PROMPT>", "STATUSBAR idle"])


def test_what_is_being_typed_when_a_question_appears_is_no_answer() -> None:
    with Terminal(driver("--lines", "400", "--rate", "200")) as terminal:
        terminal.ready().send("stream 15\r")
        terminal.wait("M00")
        terminal.send("ask\r")  # waits until the stream ends
        terminal.wait("waiting: ask")
        typed = ""

        def drafted() -> str:
            rows = [
                line.removeprefix("PROMPT> ").strip() for line in terminal.visible if line.startswith(("PROMPT>", " "))
            ]
            return "".join(rows)

        while not any(line.startswith("│ $") for line in terminal.visible):
            typed += "y"
            terminal.send("y")
            terminal.wait(lambda: len(drafted()) == len(typed))  # noqa: B023
        typed += "y"
        terminal.send("y")
        terminal.wait("yes, once")  # after a pause, and not answered yet
        terminal.send("n")
        terminal.wait("[answer n '']")
        terminal.wait(lambda: drafted() == typed)


def test_an_unknown_escape_sequence_does_not_answer() -> None:
    with Terminal(driver()) as terminal:
        terminal.ready().send("ask\r")
        terminal.wait("yes, once")
        terminal.send("\x1b[27;5;121~\x1b[99y")
        while terminal.pump(0.2):
            pass
        assert any("yes, once" in line for line in terminal.visible)
        terminal.send("y")
        terminal.wait("[answer y '']")


def test_escape_alone_declines_and_what_is_typed_behind_it_is_the_message() -> None:
    with Terminal(driver()) as terminal:
        terminal.ready().send("ask\r")
        terminal.wait("yes, once")
        terminal.send("\x1b")
        terminal.wait("[answer n '']")
        terminal.send("y and more")
        terminal.wait("PROMPT> y and more")
        assert [line for line in terminal.visible if "[answer" in line] == ["[answer n '']"]


def test_ctrl_c_reaches_the_caller_while_a_question_is_open() -> None:
    with Terminal(driver()) as terminal:
        terminal.ready().send("ask\r")
        terminal.wait("yes, once")
        terminal.send("\x03")
        terminal.wait("[interrupt]")
        assert any("yes, once" in line for line in terminal.visible)


def test_ctrl_d_declines() -> None:
    with Terminal(driver()) as terminal:
        terminal.ready().send("ask\r")
        terminal.wait("yes, once")
        terminal.send("\x04")
        terminal.wait("[answer n '']")
        terminal.send("ask\r")
        terminal.wait("yes, once")
        terminal.send("wtoo")
        terminal.wait(lambda: any("too" in line for line in terminal.visible))
        terminal.send("\x04")  # the line is not empty
        terminal.send("\x7f\x7f\x7f\x04")
        terminal.wait(lambda: terminal.visible.count("[answer n '']") == 2)
