"""A long conversation in the chat: what fills the window, making room, and going back afterwards; help and examination."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from chat_terminal import Chat
from stage import answer, text

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
    s = stage(*answers, answer(text("THE SUMMARY")), answer(text("after it")))
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
