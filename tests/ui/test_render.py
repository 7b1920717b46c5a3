"""Values and events turned into lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypercode.safety.approval import Question
from hypercode.safety.decision import Decision
from hypercode.ui import render
from hypercode.ui.partial_json import partial_arguments
from hypercode.ui.style import Style

PLAIN = Style(plain=True)
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n@@ -10,1 +10,2 @@\n ten\n+eleven\n"


def test_styles_go_with_the_terminal():
    assert Style()("x", "bold", "red") == "\x1b[1;31mx\x1b[0m"
    assert Style(colours=False)("x", "bold", "red") == "\x1b[1mx\x1b[0m"
    assert Style(plain=True)("x", "bold", "red") == "x"
    assert Style().red("") == ""
    with pytest.raises(AttributeError):
        _ = Style().mauve


def test_arguments_in_one_line():
    line = render.argument_line({"path": "a\n b\t.py", "content": "x" * 5_000, "edits": [1, 2], "limit": 3})
    assert line == r"a\n b\t.py content=(5.0k characters) edits=(2) limit=3"


def test_banner_fits_its_width():
    for width in (4, 10, 20, 40, 80):
        line = render.banner(PLAIN, "some_tool", {"path": "p" * 100}, width=width, after="3 s")
        assert len(line) <= max(width, 16)
    assert render.banner(PLAIN, "read", {"path": "a.py"}, width=40, after="0.1 s") == "● read a.py  0.1 s"


def test_diff_has_line_numbers():
    assert render.diff_lines(PLAIN, DIFF, 40) == [
        "   1  one",
        "   2 -two",
        "   2 +TWO",
        "   3  three",
        "     ⋯",
        "  10  ten",
        "  11 +eleven",
    ]


def test_a_long_diff_keeps_head_and_tail():
    long = "--- a\n+++ b\n@@ -0,0 +1,200 @@\n" + "".join(f"+line {i}\n" for i in range(1, 201))
    lines = render.diff_lines(PLAIN, long, 40, limit=10)
    assert lines[0] == "   1 +line 1"
    assert lines[5] == "     ⋯ 190 more lines ⋯"
    assert lines[-1] == " 200 +line 200"


def test_a_diff_line_that_looks_like_a_header_is_shown():
    lines = render.diff_lines(PLAIN, "--- a\n+++ b\n@@ -1,2 +1,1 @@\n x\n--- old header\n", 40)
    assert lines == ["   1  x", "   2 --- old header"]


def test_of_a_long_diff_never_a_single_line_is_left_out():
    diff = "--- a\n+++ b\n@@ -1,7 +1,7 @@\n" + "".join(f"+{n}\n" for n in range(7))
    assert render.diff_lines(PLAIN, diff, 40, limit=6) == [f"   {n + 1} +{n}" for n in range(7)]
    assert render.diff_lines(PLAIN, diff, 40, limit=4)[2] == "     ⋯ 3 more lines ⋯"


def test_results_fold():
    def lines(output, **kw):
        return render.result_lines(PLAIN, output, **({"is_error": False, "kind": None, "width": 60} | kw))

    assert lines("a\nb\n") == ["  2 lines"]
    assert lines("") == lines("[no output]") == ["  no output"]
    assert lines("not_found: no such text\nmore", is_error=True) == ["  ✗ not_found: no such text"]
    assert lines("x", shown="1\n2\n") == ["  1", "  2"]
    shown = "\n".join(map(str, range(1, 9)))
    assert lines("x", shown=shown) == ["  … 3 lines more above, Ctrl-O shows all", *(f"  {n}" for n in range(4, 9))]
    assert lines("x", shown="1\n2\n3\n4\n5\n6") == [f"  {n}" for n in range(1, 7)], "one line is shown, not counted"
    assert lines("x", shown="1\n2\n3\n4\n5\n6\n7")[:2] == ["  … 2 lines more above, Ctrl-O shows all", "  3"]
    assert lines("x", shown=DIFF)[1] == "     2 -two"


def test_errors_name_the_way_out():
    error = {"kind": "unavailable", "message": "overloaded"}
    assert render.error_lines(PLAIN, error, shown=False) == ["✗ overloaded", "  /retry asks again."]
    assert "/continue" in render.error_lines(PLAIN, error, shown=True)[1]


def test_questions_show_all_of_a_command():
    command = "echo " + "a" * 300 + "\n" * 60 + "rm -rf x"
    question = Question("bash", "shell", command, "", "rm writes", Decision.ASK, "rm")
    lines = render.question_lines(PLAIN, question)
    assert lines[0] == "Run this command?"
    assert "rm -rf x" in lines
    assert "\n".join(lines[1:-1]) == command
    edit = Question("edit", "edit", "a.py", DIFF, "edits ask", Decision.ASK, None)
    assert render.question_lines(PLAIN, edit)[:3] == ["edit a.py?", "   1  one", "   2 -two"]


def test_numbers():
    assert [render.duration(s) for s in (0.04, 9.94, 12.6, 59, 125)] == ["0.0 s", "9.9 s", "13 s", "59 s", "2 min 5 s"]
    assert [render.count(n) for n in (999, 12_345, 1_234_567)] == ["999", "12.3k", "1.2M"]
    assert [render.money(c) for c in (None, 0.00123, 1.5)] == ["", "$0.0012", "$1.50"]


def test_partial_arguments_fill_in():
    whole = json.dumps({"path": "src/a.py", "edits": [{"old": "x\n", "new": 'é"y'}], "n": 12})
    seen = [partial_arguments(whole[:i]) for i in range(len(whole) + 1)]
    assert seen[0] == {}
    assert seen[whole.index("src") + 3] == {"path": "src"}
    assert seen[whole.index(", ")]["path"] == "src/a.py"
    assert seen[-1] == json.loads(whole)
    paths = [s["path"] for s in seen if "path" in s]
    assert all("src/a.py".startswith(p) for p in paths)
    assert len(paths) > len(whole) / 2, "once begun, the path stays"


@given(st.text(max_size=60))
def test_partial_arguments_never_fail(text):
    assert isinstance(partial_arguments(text), dict)
    assert isinstance(partial_arguments('{"a": "' + text), dict)


def test_our_own_lines_wrap_between_words_and_keep_their_indentation():
    line = "  Ctrl-C stops a reply, clears the line when idle"
    assert render.wrapped(line, 80) == [line]
    assert render.wrapped(line, 24) == ["  Ctrl-C stops a reply,", "    clears the line when", "    idle"]
    coloured = Style().dim("one two three")
    assert render.wrapped(coloured, 8) == ["\x1b[2mone two\x1b[0m", "  \x1b[2mthree\x1b[0m"]
    assert render.wrapped("x" * 30, 10) == ["x" * 30]
    assert render.wrapped("日本語 日本語", 8) == ["日本語", "  日本語"]
    assert render.wrapped("a  b   c d", 9) == ["a  b   c", "  d"]
    mixed = f"{Style().red('one two')} three four"
    assert render.wrapped(mixed, 9) == ["\x1b[31mone two\x1b[0m", "  three", "  four"]


def test_what_is_cut_is_measured_in_cells():
    assert [render.fit("日本語", width) for width in (6, 5, 4, 1)] == ["日本語", "日本…", "日…", "…"]
    assert [render.fit("abcdef", width) for width in (6, 5, 0)] == ["abcdef", "abcd…", "…"]
    assert render.fit("x" * 1_000_000, 4) == "xxx…"


def test_a_list_keeps_its_two_columns():
    def listed(width):
        return render.listed("/word", "says what it is for, at some length", margin=9, width=width, style=PLAIN)

    assert listed(50) == ["/word    says what it is for, at some length"]
    assert render.listed("/word", "one two " * 7, margin=9, width=50, style=PLAIN) == [
        "/word    one two one two one two one two one two",
        "         one two one two",
    ]
    assert listed(30) == ["/word", "  says what it is for, at some", "  length"]


def test_a_diff_of_several_files_names_each_once():
    text = "--- a.sql\n+++ a.sql\n@@ -1,2 +1,1 @@\n x\n--- b\n"
    rows = ["   1  x", "   2 --- b"]
    assert render.diff_lines(PLAIN, text, 40) == rows
    assert render.diff_lines(PLAIN, text, 40, named=True) == ["a.sql", *rows]
    assert render.diff_lines(PLAIN, f"a.sql: file → nothing\n{text}", 40, named=True) == [
        "a.sql: file → nothing",
        *rows,
    ]
