"""What the tour's model says: a function of the conversation, so that a no, a typed message or a stopped reply go on well.

Pure: texts, the files of the small project, and `reply`, which a `ScriptedModel` asks for the script of each request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypercode.llm.fake import Call, Reasoning, Request, Script, script
from hypercode.messages import Message, spoken, text_of
from hypercode.ui.commands import CONTINUE

__all__ = ["EXPLAIN", "FILES", "INTRODUCTION", "SCENES", "SHOWN", "TASK", "Scene", "reply"]

FILES = {
    "tea.py": '''\
"""How long the tea has to draw."""


def clock(seconds):
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}:{rest}"
''',
    "test_tea.py": """\
import unittest

from tea import clock


class TestClock(unittest.TestCase):
    def test_whole_minutes(self):
        self.assertEqual(clock(180), "3:00")

    def test_seconds_take_two_digits(self):
        self.assertEqual(clock(125), "2:05")
""",
}
"""The project in the temporary folder: one function with a fault, and its tests."""

TASK = "the clock says 2:5 where it should say 2:05: fix it and run the tests"
EXPLAIN = "and how does {rest:02} work? in detail, please"

INTRODUCTION = (
    "A tour of a minute. The model is a script; the rest is real: its tools, the questions, a small project in a temporary "
    "folder. No key is read, no connection opened.",
    "You answer the questions. Ctrl-C stops a reply, Ctrl-D leaves.",
)


@dataclass(frozen=True, slots=True)
class Scene:
    """One step of the tour: what is said of it before, and what is then typed."""

    caption: str
    typed: str


SCENES = (
    Scene("It reads unasked. Before it changes a file or runs a command it asks: y, or n and why.", TASK),
    Scene("Ctrl-C stops a reply at once. Press it, or the tour does it for you.", EXPLAIN),
    Scene("What was shown is kept, and the model knows where it was cut.", "/continue"),
    Scene("What it changed in files can be taken back.", "/undo"),
)

SHOWN = (
    "Behind the colon stands a *format specification*. Python gives it to the value's own `__format__` method, and what comes "
    "back is put into the text.\n\n"
    "For a whole number, `02` has two parts:\n\n"
    "- `2` is the least width: a shorter number gets something in front of it.\n"
    "- `0` says what: zeros instead of blanks.\n\n"
    "So 5 becomes `05`, 0 becomes `00`, and 42 stays `42`, for it is wide enough. Without the zero the clock would say `2: 5`; "
    "with a `3` it would say"
)
"""The long reply up to where the tour stops it."""
HIDDEN = (
    " `2:005`.\n\n"
    "The width is a least, never a most, so nothing is ever cut off: `{100:02}` is `100`. Here it cannot come to that, for the "
    "rest of a division by 60 is always between 0 and 59.\n"
)

_FIXED = """\
Fixed, and both tests pass.

| seconds | before | now |
|---|---|---|
| `clock(125)` | `2:5` | `2:05` |
| `clock(180)` | `3:0` | `3:00` |

`{rest:02}` writes the seconds with **two digits**; a zero fills the gap."""

_SORRY = "That is beyond me: I am the script of a tour. A real model answers where you set a key, or with `hypercode --local`."
_NO = "the user said no"


def reply(request: Request, *, python: str = "python3") -> Script:
    """The next reply in the conversation as it is: the scene goes on, whatever the person answered or typed meanwhile.

    `python` is how a shell calls the interpreter.
    """
    messages = request.messages
    place = _last(messages, "user", (TASK, EXPLAIN, CONTINUE))
    since = messages[place + 1 :] if place is not None else []
    typed = _last(messages, "user")
    strange = typed is not None and (place is None or typed > place) and _last(messages[typed:], "assistant") is None
    answered = next((m for m in reversed(since) if m.get("role") == "assistant"), None)
    over = place is None or (answered is not None and not answered.get("tool_calls"))
    if strange and over:
        return script(_SORRY)
    if place is None:
        return script(_SORRY)
    said = spoken(text_of(messages[place]))[1]
    steps = _task(_results(since), f"{python} -m unittest") if said == TASK else _talk(said, messages[:place])
    return Script((f"{_SORRY}\n\n", *steps.steps)) if strange else steps


def _last(messages: Sequence[Message], role: str, texts: Sequence[str] = ()) -> int | None:
    """The place of the last message of that role, where `texts` are given of one with such a text."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.get("role") == role and (not texts or spoken(text_of(message))[1] in texts):
            return place
    return None


def _talk(said: str, before: Sequence[Message]) -> Script:
    if said == EXPLAIN:
        return script(SHOWN, HIDDEN)
    texts = [text_of(m).removeprefix(f"{_SORRY}\n\n") for m in before if m.get("role") == "assistant"]
    whole = SHOWN + HIDDEN
    shown = next((text for text in reversed(texts) if text and whole.startswith(text)), None)
    return script(_SORRY if shown is None else whole[len(shown) :].lstrip() or "That was all of it.")


def _results(since: Sequence[Message]) -> dict[str, str]:
    """What each tool answered, the last time it was called; each reading by its number, `read 1` and so on."""
    names = {call["id"]: call["function"]["name"] for m in since for call in m.get("tool_calls") or []}
    results: dict[str, str] = {}
    for message in since:
        if message.get("role") == "tool":
            name = names.get(message["tool_call_id"], "")
            results[f"read {_readings(results) + 1}" if name == "read" else name] = text_of(message)
    return results


def _readings(results: Mapping[str, str]) -> int:
    return sum(name.startswith("read ") for name in results)


def _task(results: dict[str, str], tests: str) -> Script:
    if "bash" in results:
        return script(_outcome(results.get("edit", ""), results["bash"], tests))
    if "edit" in results:
        return script(_after_edit(results["edit"]), Call("bash", {"command": tests}))
    done = _readings(results)
    if done == len(FILES):
        change = {"old": "{minutes}:{rest}", "new": "{minutes}:{rest:02}"}
        return script(
            "The seconds are written as they are, so `5` stays `5`. They need two digits.",
            Call("edit", {"path": "tea.py", "edits": [change]}),
        )
    next_file = Call("read", {"path": list(FILES)[done]})
    if done:
        return script(next_file)
    return script(
        Reasoning(
            "A zero is lost. The function must write the seconds without padding; the tests will say what is wanted."
        ),
        "I'll read the function and its tests first.",
        next_file,
    )


def _after_edit(result: str) -> str:
    if _changed(result):
        return "Now the tests."
    if _NO not in result:
        return f"That did not work: {result.splitlines()[0]}. The tests will show where we are."
    if why := _why(result):
        return (
            f"You said: {json.dumps(why, ensure_ascii=False)}. A real model would try again with that in mind; a script cannot, so "
            "`tea.py` stays as it is. The tests will show where that leaves us."
        )
    return "As you like: `tea.py` stays as it is. The tests will show where that leaves us."


def _outcome(edited: str, tested: str, tests: str) -> str:
    if _NO in tested:
        why = f" I have read why: {json.dumps(_why(tested), ensure_ascii=False)}." if _why(tested) else ""
        state = "`tea.py` is changed, but not tested" if _changed(edited) else "Nothing was changed and nothing was run"
        return f"{state}: you have the last word.{why} `{tests}` runs the tests."
    if "\nOK" in tested and "\n[exit code " not in tested:
        return _FIXED if _changed(edited) else "The tests pass, though not by my doing."
    if _changed(edited):
        return "`tea.py` is changed, but the tests did not pass; what they printed stands above."
    return "The tests fail as they did before: `clock(125)` says `2:5`. Nothing was changed."


def _changed(result: str) -> bool:
    return result.startswith("Edited ")


def _why(result: str) -> str:
    """What the person said with a no; empty where they said nothing."""
    return " ".join(result.partition(_NO)[2].removeprefix(":").split())[:200]
