"""A long conversation in the chat: what fills the window, making room, and going back afterwards; help and examination."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from chat_terminal import Chat, printed
from stage import answer, call, chunk, text

ESC = "\x1b"
LONG = " words and more words" * 400


def conversation(chat, turns):
    for number in range(turns):
        chat.prompt().say(f"question {number}")
        chat.shows(f"answer {number}")
        chat.idle()


def sizes(chat):
    """What the last /context said, in tokens by part."""
    start = max(n for n, line in enumerate(chat.lines) if line.startswith("system prompt"))
    found = {}
    for line in chat.lines[start:]:
        if match := re.match(r"([a-z ]+?) +~ *([\d.]+)(k?)", line):
            found[match[1]] = float(match[2]) * (1000 if match[3] else 1)
            if match[1] == "next request":
                return found
    raise AssertionError("\n".join(chat.lines[start:]))


def test_context_is_the_sum_of_its_parts_and_compact_makes_room(stage):
    answers = [answer(text(f"answer {n}{LONG}")) for n in range(6)]
    billed = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "cost": 0.5}
    s = stage(*answers, answer(text("THE SUMMARY"), usage=billed), answer(text("after it")))
    with Chat(s) as chat:
        conversation(chat, 6)
        chat.say("/context")
        chat.shows("next request")
        before = sizes(chat)
        assert set(before) == {"system prompt", "tools", "you", "replies", "next request"}
        assert abs(sum(before.values()) - 2 * before["next request"]) <= 200, "shown with three digits"
        chat.say("/compact keep the names")
        chat.shows("Made room")
        told = " ".join(chat.lines)
        assert told.index("Replaced by a summary: the 8 oldest messages") < told.index("Made room"), (
            "said before it goes"
        )
        chat.idle()
        chat.say("/context")
        chat.wait(lambda: "summary" in sizes(chat))
        after = sizes(chat)
        assert after["next request"] < before["next request"] / 2
        assert re.search(r"context ~[\d.]+k tokens", chat.visible[-1])
        chat.say("/rewind")
        chat.wait("search:")
        listed = [line for line in chat.visible if re.match(r"[▶ ] +\d  ", line)]
        assert listed == ["▶  1  question 5", "   2  question 4"], "the summary is no message of the person"
        chat.send(ESC)
        chat.prompt()
        chat.say("go on")
        chat.shows("after it")
        chat.idle()
        chat.leave()
    with Chat(s, "-c") as chat:
        chat.prompt().say("/cost")
        chat.shows("turns: 7", "tokens: 9 sent, 3 received", "billed: $0.5")
        chat.leave()
    assert json.loads(s.run("sessions", "--json").stdout)[0]["cost"] == 0.5
    *_, summarised, last = s.requests()
    assert "keep the names" in summarised["messages"][-1]["content"]
    assert "question 0" in summarised["messages"][-1]["content"]
    _, note, *rest = last["messages"]
    assert note["content"].endswith("\n\nTHE SUMMARY")
    assert [m["content"][:10] for m in rest] == ["question 4", "answer 4 w", "question 5", "answer 5 w", "go on"]


def test_help_about_one_word(stage):
    with Chat(stage()) as chat:
        chat.prompt().say("/help rewind")
        chat.shows("  Go back to before one of your messages")
        chat.say("/help vim")
        chat.shows("! Nothing in the help has 'vim'; /help shows all of it.")
        chat.say("/help editor")
        chat.shows("/editor", "  Write the message in $EDITOR (Ctrl-G).")
        chat.say("/help reply")
        chat.shows("Ctrl-C stops a reply, clears the line when idle, twice leaves")
        chat.leave()


def test_a_model_that_the_server_does_not_list(stage):
    s = stage(answer(text("never")))
    with Chat(s) as chat:
        chat.prompt().say("/model no/such-model")
        chat.shows("! The server's list has no 'no/such-model'; it is asked for nevertheless.", "model: no/such-model")
        chat.say("hi")
        chat.shows("No cassette for model")
        chat.idle()
        chat.leave()
    assert s.requests()[-1]["model"] == "no/such-model"


def test_doctor_in_the_chat(stage):
    s = stage()
    with Chat(s) as chat:
        chat.prompt().say("/doctor now")
        chat.shows("! /doctor, or /doctor stream")
        chat.say("/doctor")
        chat.wait(lambda: any("that is needed" in line for line in chat.lines))
        rows = [line for line in chat.lines if re.match(r"(ok|warning|problem) +\w", line)]
        assert {row.split()[1] for row in rows} >= {
            "version",
            "terminal",
            "configuration",
            "state",
            "ripgrep",
            "key",
            "network",
        }
        assert all(row[23] == " " and row[24] != " " for row in rows), "the texts stand in one column"
        chat.idle()
        chat.leave()
    assert s.requests() == [], "nothing was asked that could cost anything"


def test_doctor_in_the_chat_can_be_stopped_and_is_readable_when_narrow(stage):
    with Chat(stage(), columns=40) as chat:
        chat.prompt().say("/doctor")
        chat.wait(lambda: any("that is needed" in line for line in chat.lines))
        assert any(re.fullmatch(r"ok +version", line) for line in chat.lines)
        assert any(line.startswith("  hypercode ") for line in chat.lines)
        chat.idle()
        chat.leave()


REPLY = """\
A first paragraph that takes a while to arrive, word by word, and that is longer than a row.

```python
def clock(seconds):
    minutes, rest = divmod(seconds, 60)
    return minutes, rest
```

| name | count |
|------|------:|
| tea  |     3 |

- one thing
- another thing

The *end* of it."""


def paced(words, gap_ms):
    pieces = [{"bytes": chunk(text(word)), "delay_ms": gap_ms} for word in re.findall(r"\S+\s*", words)]
    return {**answer(), "segments": [*pieces, {"bytes": chunk({}, "stop") + "data: [DONE]\n\n"}]}


@pytest.mark.parametrize("begun", ["A first", "def clock", "tea", "one thing"])
def test_what_is_said_while_a_reply_streams_leaves_the_reply_whole(stage, begun):
    """It stands between two blocks of the reply, never inside a word, a code block or a table."""
    s = stage(paced(REPLY, 15))
    with Chat(s) as chat:
        chat.prompt().say("go")
        chat.wait(begun)
        chat.say("/mode plan")
        chat.shows("The end of it.", "mode: plan")
        chat.idle()
        start = next(n for n, line in enumerate(chat.lines) if line.startswith("> go"))
        drawn = chat.lines[start + 2 :]
        chat.leave()
    at = drawn.index("> /mode plan")
    behind = at + 2
    assert drawn[at + 1] == "mode: plan"
    assert (at == 0 or drawn[at - 1] == "", drawn[behind] in ("", ">")) == (True, True), "lines of their own"
    whole = [*drawn[: at - 1], *drawn[behind:]] if at else drawn[behind + 1 :]
    expected = printed(REPLY, 80, 40)
    assert whole[: len(expected)] == expected


def test_a_start_with_a_message_keeps_the_reply_whole(stage):
    s = stage(paced(REPLY, 15))
    with Chat(s, "go on then") as chat:
        chat.shows("The end of it.", "Sandbox")
        chat.idle()
        drawn = [line for line in chat.lines if not line.startswith(("Sandbox", "hidden", "  hidden"))]
        chat.leave()
    expected = [line for line in printed(REPLY, 80, 40) if line]
    assert [line for line in drawn if line in expected] == expected


def test_what_commands_tell_the_model_is_no_task(stage):
    """A conversation that ended with a shell line or an undo was finished, and its title is what the person said."""
    edit = call("write", {"path": "made.txt", "content": "x"}, "c")
    s = stage(answer(edit, finish="tool_calls"), answer(text("made it")))
    with Chat(s, "--mode", "edits") as chat:
        chat.prompt().say("!echo first-of-all")
        chat.shows("first-of-all")
        chat.idle()
        chat.say("make a file")
        chat.shows("made it")
        chat.idle()
        chat.say("/undo")
        chat.shows("Taken back: write made.txt")
        chat.say("!echo last-of-all")
        chat.shows("last-of-all")
        chat.idle()
        chat.leave()
    [listed] = json.loads(s.run("sessions", "--json").stdout)
    assert listed["words"] == "make a file"
    with Chat(s, "-c") as chat:
        chat.shows("the last of it", "made it")
        chat.prompt()
        assert not [line for line in chat.lines if "not finished" in line]
        chat.say("/rewind")
        chat.wait("search:")
        assert [line for line in chat.visible if re.match(r"[▶ ] +\d  ", line)] == ["▶  1  make a file"]
        chat.send(ESC)
        chat.prompt()
        chat.leave()
