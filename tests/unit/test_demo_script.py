"""What the tour's model says, in every state the conversation can get into."""

import json

import pytest

from hypercode.demo_script import EXPLAIN, FILES, HIDDEN, SHOWN, TASK, reply
from hypercode.llm.fake import Call, Request
from hypercode.messages import cut_note, tool_result, user
from hypercode.ui.commands import CONTINUE

CUT = cut_note("stopped before its end")
EDITED = "Edited tea.py: 1 place changed (line 6 of the old text)"
NO, WHY = "refused: the user said no", "refused: the user said no: not *now*\nplease"
PASSED, FAILED = "..\nRan 2 tests in 0.000s\n\nOK", "FF\nFAILED (failures=2)\n[exit code 1]"
SORRY = "That is beyond me"


def calls(*names):
    wire = [{"id": f"c-{n}", "type": "function", "function": {"name": n, "arguments": "{}"}} for n in names]
    return {"role": "assistant", "content": "…", "tool_calls": wire}


def said(text):
    return {"role": "assistant", "content": text}


def happened(**results):
    """The task so far: each tool was called in a turn of its own and answered this."""
    times = {"read": len(FILES)}
    called = [(name, text) for name, text in results.items() for _ in range(times.get(name, 1))]
    return [user(TASK), *(m for name, text in called for m in (calls(name), tool_result(f"c-{name}", text)))]


def answer(messages, **options):
    """The reply's text, and its calls as name and arguments."""
    steps = reply(Request([{"role": "system", "content": "…"}, *messages], []), **options).steps
    return "".join(s for s in steps if isinstance(s, str)), [
        (s.name, s.arguments) for s in steps if isinstance(s, Call)
    ]


TESTS = ("bash", {"command": "python3 -m unittest"})
CHANGE = ("edit", {"path": "tea.py", "edits": [{"old": "{minutes}:{rest}", "new": "{minutes}:{rest:02}"}]})


def test_it_reads_changes_and_tests():
    first, second = FILES
    assert answer(happened())[1] == [("read", {"path": first})]
    assert answer(happened(read="…")[:3]) == ("", [("read", {"path": second})])
    assert answer(happened(read="…"))[1] == [CHANGE]
    assert answer(happened(read="…", edit=EDITED)) == ("Now the tests.", [TESTS])
    text, none = answer(happened(read="…", edit=EDITED, bash=PASSED))
    assert (text.startswith("Fixed, and both tests pass."), none) == (True, [])


def test_the_change_is_one_that_helps():
    """The tests of the project hold with it and not without it."""
    edit = CHANGE[1]["edits"][0]
    assert FILES["tea.py"].count(edit["old"]) == 1
    found = {}
    for text in (FILES["tea.py"], FILES["tea.py"].replace(edit["old"], edit["new"])):
        exec(text, space := {})
        found[text] = [space["clock"](seconds) for seconds in (125, 180)]
    assert list(found.values()) == [["2:5", "3:0"], ["2:05", "3:00"]]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (NO, "As you like: `tea.py` stays as it is."),
        (WHY, 'You said: "not *now* please". A real model would try again'),
        ("not_found: the text is not there\nmore", "That did not work: not_found: the text is not there. The tests"),
        ("[not run: the turn was stopped before its end]", "That did not work: [not run"),
    ],
)
def test_a_change_that_was_not_made(edit, words):
    text, asked = answer(happened(read="…", edit=edit))
    assert (text.startswith(words), asked) == (True, [TESTS])


@pytest.mark.parametrize(
    ("edit", "bash", "words"),
    [
        (
            EDITED,
            NO,
            "`tea.py` is changed, but not tested: you have the last word. `python3 -m unittest` runs the tests.",
        ),
        (
            EDITED,
            WHY,
            '`tea.py` is changed, but not tested: you have the last word. I have read why: "not *now* please".',
        ),
        (NO, NO, "Nothing was changed and nothing was run: you have the last word."),
        (NO, FAILED, "The tests fail as they did before"),
        (NO, PASSED, "The tests pass, though not by my doing."),
        (EDITED, FAILED, "`tea.py` is changed, but the tests did not pass"),
        (EDITED, PASSED + "\n[exit code 1]", "`tea.py` is changed, but the tests did not pass"),
    ],
)
def test_how_it_ends(edit, bash, words):
    text, asked = answer(happened(read="…", edit=edit, bash=bash))
    assert (text.startswith(words), asked) == (True, [])


@pytest.mark.parametrize("place", [1, len(SHOWN) // 2, len(SHOWN) - 1, len(SHOWN), len(SHOWN) + 5])
def test_a_cut_reply_goes_on_where_it_was_cut(place):
    whole = SHOWN + HIDDEN
    assert answer([user(EXPLAIN)]) == (whole, [])
    messages = [user(EXPLAIN), said(whole[:place]), user(CUT + CONTINUE)]
    assert answer(messages) == (whole[place:].lstrip(), [])
    between = [user(EXPLAIN), said(whole[:place]), user(CUT + "why?"), said("…"), user(CONTINUE)]
    assert answer(between) == (whole[place:].lstrip(), [])


def test_there_is_nothing_to_go_on_with():
    assert answer([user(EXPLAIN), said(SHOWN + HIDDEN), user(CONTINUE)]) == ("That was all of it.", [])
    assert answer([user(CONTINUE)])[0].startswith(SORRY)
    assert answer([user(TASK), said("Something else."), user(CONTINUE)])[0].startswith(SORRY)


def test_what_a_person_types_is_answered_once_and_the_scene_goes_on():
    assert answer([user("who are you?")])[0].startswith(SORRY)
    assert answer([])[0].startswith(SORRY)
    done = [*happened(read="…", edit=EDITED, bash=PASSED), said("Fixed.")]
    assert answer([*done, user("thanks")]) == answer([user("who are you?")])
    text, asked = answer([*happened(read="…"), user("wait")])
    assert (text.startswith(SORRY), asked) == (True, [CHANGE])
    after = [*happened(read="…"), user("wait"), calls("edit"), tool_result("c-edit", EDITED)]
    assert answer(after) == ("Now the tests.", [TESTS])


def test_the_interpreter_can_have_another_name():
    asked = answer(happened(read="…", edit=EDITED), python="/opt/py/bin/python")[1]
    assert asked == [("bash", {"command": "/opt/py/bin/python -m unittest"})]
    text = answer(happened(read="…", edit=NO, bash=NO), python="py")[0]
    assert "`py -m unittest` runs the tests" in text


def test_what_a_person_said_stays_one_short_line():
    text, _ = answer(happened(read="…", edit=f"refused: the user said no: {'long ' * 200}\n\n# x"))
    quoted = text.removeprefix("You said: ").split(". A real model")[0]
    assert (len(json.loads(quoted)), "\n" in quoted) == (200, False)
