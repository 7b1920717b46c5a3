"""A saved session drawn again: the same lines as when it ran, at its pace, at once or step by step."""

import json
import re
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from chat_terminal import FORBIDDEN, Chat
from stage import answer, call, chunk, text

from hypercode import events
from hypercode.memory.history import rebuild
from hypercode.memory.records import encode, scan
from hypercode.messages import tool_result, user
from hypercode.ui.replay import scenes

MARKDOWN = "Some **bold** words.\n\n1. one\n2. two\n\n```python\nprint('hi')\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end."


def thinking(words):
    return {"reasoning_content": words}


def paced(words, gap_ms):
    pieces = [{"bytes": chunk(text(word)), "delay_ms": gap_ms} for word in re.findall(r"\S+\s*", words)]
    return {**answer(), "segments": [*pieces, {"bytes": chunk({}, "stop") + "data: [DONE]\n\n"}]}


def body(lines, first="> "):
    """What was drawn of the conversation: without greeting, input line, status and totals."""
    start = next(n for n, line in enumerate(lines) if line.startswith(first))
    return [line for line in lines[start:] if not re.match(r"\d+ turns?( · .*)?$|>$|script/s ", line)]


def trimmed(lines):
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines


def steady(lines):
    """Without what a clock said: how long a call took or thinking lasted."""
    return [re.sub(r"\s*\d+\.\d s(?= ·|$)", " T", line) for line in lines]


def written(stage, records, session="20260101-000000-abcdef"):
    """A session file with these records."""
    folder = stage.home / "hypercode/state/sessions/0123456789abcdef"
    folder.mkdir(parents=True, mode=0o700)
    path = folder / f"{session}.jsonl"
    path.write_bytes(
        b"".join(encode({"type": r[0], "time": r[1], "seq": n + 1, **r[2]}) for n, r in enumerate(records))
    )
    return path


def test_it_is_drawn_as_it_was(stage):
    """The chat's own lines and those of the replay are the same."""
    (edit := {"path": "a.txt", "edits": [{"old": "two", "new": "2"}]})
    s = stage(
        answer(thinking("Let me look."), text("I read it."), call("read", {"path": "a.txt"}, "c1")),
        answer(call("edit", edit, "c2"), call("bash", {"command": "seq 9; exit 3"}, "c3", 1)),
        answer(text(MARKDOWN)),
        answer(text("half"), close="abort"),
    )
    (s.workspace / "a.txt").write_text("one\ntwo\nthree\n")
    with Chat(s, "--mode", "auto", "--no-sandbox", "--max-retries", "0", rows=60) as chat:
        chat.prompt().say("work on\na.txt")
        chat.shows("The end.")
        chat.idle()
        chat.say("and more")
        chat.shows("half", "/continue goes on")
        chat.idle()
        chat.leave()
        then = trimmed(body(chat.lines))
    session = json.loads(s.run("sessions", "--json").stdout)[0]["session"]
    with Chat(s, "replay", session, "--instant", rows=60) as again:
        assert again.finish() == 0
        assert again.left_clean()
        assert FORBIDDEN.findall(again.raw) == []
        now = trimmed(body(again.lines))
    assert steady(now) == steady(then)
    assert any("-two" in line for line in now)
    with Chat(s, "replay", session, "--plain", rows=60) as plain:
        assert plain.finish() == 0
        assert b"\x1b" not in plain.raw
        assert "  2. two" in plain.lines or "2. two" in plain.lines
    piped = s.run("replay", session)
    assert (piped.returncode, piped.stderr) == (0, "")
    assert "> work on\n  a.txt\n" in piped.stdout


def test_its_own_pace_and_faster(stage):
    s = stage()
    start = 1_700_000_000.0
    pieces = [("partial", start + 1 + n / 4, {"text": f"word{n} "}) for n in range(8)]
    message = {"role": "assistant", "content": "".join(f"word{n} " for n in range(8))}
    path = written(
        s,
        [
            ("session", start, {"cwd": "/w", "model": "m"}),
            ("user", start + 600, {"message": user("a question")}),  # a person thinks for ten minutes
            *[(kind, at + 600, fields) for kind, at, fields in pieces],
            ("assistant", start + 603, {"message": message, "finish_reason": "stop"}),
            ("turn_end", start + 603, {"turn": 1, "outcome": "complete", "seconds": 2.0}),
        ],
    )
    took = {}
    for options in (("--speed", "1"), ("--speed", "10")):
        begun = time.monotonic()
        with Chat(s, "replay", path.stem, *options) as replay:
            replay.wait("word0")
            assert any("Ctrl-C stops" in line for line in replay.visible)
            assert replay.finish() == 0
            assert any("word7" in line for line in replay.lines)
            assert replay.left_clean()
        took[options[1]] = time.monotonic() - begun
    assert 4.9 < took["1"] < 60  # two seconds for the ten minutes, three more from the question to the end
    assert took["10"] < took["1"] - 2


def test_ctrl_c_stops_it(stage):
    s = stage()
    pieces = [("partial", 1e9 + n, {"text": f"word{n} "}) for n in range(100)]
    path = written(s, [("session", 1e9, {}), ("user", 1e9, {"message": user("q")}), *pieces])
    with Chat(s, "replay", path.stem) as replay:
        replay.wait("word1")
        replay.send("\x03")
        assert replay.finish() == 0
        assert replay.left_clean()
    assert "word50" not in "\n".join(replay.lines)


@pytest.mark.parametrize("plain", [False, True])
def test_step_by_step(stage, plain):
    s = stage(answer(text("first")), answer(text("second")), answer(text("third")))
    for words in ("one", "two", "three"):
        s.run("run", *(["-c"] if words != "one" else []), words)
    session = json.loads(s.run("sessions", "--json").stdout)[0]["session"]
    enter = "\n" if plain else ""
    with Chat(s, "replay", session, "--step", *(["--plain"] if plain else [])) as replay:
        replay.wait("Next: what you said.")
        assert "> one" not in replay.lines
        replay.send("n" + enter)
        replay.wait("Next: the reply.")
        assert "> one" in replay.lines
        assert "first" not in replay.lines
        replay.send("n" + enter)
        replay.wait(lambda: "first" in replay.lines)
        replay.wait(lambda: "Next: what you said." in "\n".join(replay.visible[-4:]))
        replay.send("a" + enter)
        assert replay.finish() == 0
        assert [line for line in replay.lines if line in ("first", "second", "third")] == ["first", "second", "third"]
    with Chat(s, "replay", session, "--step") as replay:
        replay.wait("Next: what you said.")
        replay.send("q")
        assert replay.finish() == 0
        assert "> one" not in replay.lines


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--step"], "needs a terminal"),
        (["--speed", "0"], "must be a number above 0"),
        (["--speed", "inf"], "must be a number above 0"),
    ],
)
def test_what_cannot_be(stage, options, words):
    s = stage(answer(text("first")))
    s.run("run", "one")
    session = json.loads(s.run("sessions", "--json").stdout)[0]["session"]
    done = s.run("replay", session, *options)
    assert (done.returncode, done.stdout, words in done.stderr) == (2, "", True)
    assert s.run("replay", "nothing-of-it").returncode == 2


def test_thinking_lasts_as_long_as_it_did(stage):
    s = stage()
    path = written(
        s,
        [
            ("session", 100.0, {}),
            ("user", 100.0, {"message": user("q")}),
            ("partial", 101.0, {"reasoning": "some words of thought"}),
            ("partial", 108.5, {"text": "the answer"}),
            ("assistant", 109.0, {"message": {"role": "assistant", "content": "the answer"}, "finish_reason": "stop"}),
            ("turn_end", 109.0, {"turn": 1, "outcome": "complete"}),
        ],
    )
    assert "thought for 7.5 s · 4 words" in s.run("replay", path.stem).stdout


@pytest.mark.parametrize(
    ("reason", "why"), [("MAX_TOKENS", "its length limit"), ("SAFETY", "the provider's content filter"), ("STOP", None)]
)
def test_a_cut_answer_is_told(stage, reason, why):
    s = stage()
    path = written(
        s,
        [
            ("session", 100.0, {"cwd": "/w", "model": "m"}),
            ("user", 100.0, {"message": user("q")}),
            ("assistant", 109.0, {"message": {"role": "assistant", "content": "half"}, "finish_reason": reason}),
            ("turn_end", 109.0, {"turn": 1, "outcome": "complete", "finish_reason": reason}),
        ],
    )
    shown = s.run("replay", path.stem).stdout
    assert ("The answer was cut by" in shown) is (why is not None)
    assert (why or "half") in shown


def test_hostile_text_stays_text(stage):
    s = stage()
    evil = "\x1b]0;title\x07\x1b[2J\x9b31m \u202e [/red]"
    calls = [{"id": "c1", "type": "function", "function": {"name": f"bash{evil}", "arguments": "{}"}}]
    path = written(
        s,
        [
            ("session", 1.0, {"cwd": f"/w{evil}", "model": evil}),
            ("name", 1.0, {"name": evil}),
            ("user", 1.0, {"message": user(evil)}),
            ("partial", 1.0, {"reasoning": evil}),
            ("assistant", 1.0, {"message": {"role": "assistant", "content": evil, "tool_calls": calls}}),
            ("intent", 1.0, {"call_id": "c1", "name": f"bash{evil}", "arguments": {"command": evil}}),
            ("result", 1.0, {"message": tool_result("c1", evil), "shown": evil, "is_error": False}),
            ("notice", 1.0, {"level": evil, "text": evil}),
            ("turn_end", 1.0, {"turn": 1, "outcome": "error", "error": {"message": evil}, "ttft": 0.1}),
        ],
    )
    for options in ((), ("--instant",), ("--speed", "50"), ("--plain",)):
        with Chat(s, "replay", path.stem, *options) as replay:
            assert replay.finish() == 0
            assert FORBIDDEN.findall(replay.raw) == []
            assert replay.codes() == set()
            assert "\x9b" not in replay.raw.decode("utf-8", "replace")
    for options in (("sessions", "show", path.stem), ("sessions", "--all")):
        assert "\x1b" not in s.run(*options).stdout


def test_damaged_and_odd_records_are_drawn_as_far_as_they_go(stage):
    s = stage()
    odd = [
        ("session", "never", {"cwd": 3, "model": []}),
        ("user", None, {"message": "no object"}),
        ("user", 5.0, {"message": user("a question")}),
        ("intent", 6.0, {"call_id": 7, "name": None, "arguments": 3}),
        ("result", 6.0, {"message": None, "shown": -4}),
        ("result", 6.0, {"message": tool_result("c9", "x"), "shown": [1]}),
        ("partial", 7.0, {"text": 3, "reasoning": {}}),
        ("rewind", 7.0, {"to": "there"}),
        ("turn_end", 7.0, {"turn": "x", "outcome": 3, "seconds": "long", "error": "text", "usage": 1, "cost": "much"}),
        ("user", 8.0, {"message": user("x"), "shell": {"command": 4, "kind": 5, "seconds": "s"}}),
        ("from the future", 8.0, {"x": 1}),
    ]
    path = written(s, odd)
    with path.open("ab") as file:
        file.write(b'{"type":"user","mess')
    done = s.run("replay", path.stem)
    assert (done.returncode, done.stderr) == (0, "")
    assert "> a question" in done.stdout
    assert s.run("run", "-r", path.stem, "x").returncode in (0, 1)
    assert s.run("sessions", "--all", "--json").returncode == 0


def session_of(tmp_path, *records):
    lines = [encode({"type": kind, "time": float(n), "seq": n, **fields}) for n, (kind, fields) in enumerate(records)]
    return rebuild(tmp_path / "s.jsonl", scan(b"".join(lines)))


def said(words, **about):
    return ("user", {"message": user(words), **about})


@pytest.mark.parametrize(
    "stopped",
    [
        [said("two @b"), ("rewind", {"to": 1})],
        [said("two @b"), ("notice", {"level": "warning", "text": "x"}), ("rewind", {"to": 1})],
        [said("two @b"), said("two @b", replaces=1), ("rewind", {"to": 1})],
        [said("two @b"), said("two @b", replaces=1), ("rewind", {"to": 2}), ("rewind", {"to": 1})],
        [said("two @b"), ("rewind", {"to": 1}), said("two @b"), ("rewind", {"to": 3})],
    ],
)
def test_a_message_that_was_stopped_while_its_files_were_read_is_shown_once(tmp_path, stopped):
    end = ("assistant", {"message": {"role": "assistant", "content": "done"}})
    session = session_of(tmp_path, said("one"), *stopped, said("two @b"), end)
    shown = [event for _, event in scenes(session)]
    assert [event.text for event in shown if isinstance(event, events.UserMessage)] == ["one", "two @b"]
    assert not any("Went back" in event.text for event in shown if isinstance(event, events.Notice))


def test_what_a_person_took_back_is_shown(tmp_path):
    end = ("turn_end", {"turn": 1, "outcome": "error", "ttft": None})
    session = session_of(tmp_path, said("one"), end, ("rewind", {"to": 0}), said("other"))
    shown = [event for _, event in scenes(session)]
    assert [event.text for event in shown if isinstance(event, events.UserMessage)] == ["one", "other"]
    assert any("Went back" in event.text for event in shown if isinstance(event, events.Notice))


def test_a_call_that_had_not_begun_is_not_drawn_as_one_that_had(tmp_path):
    asked = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
    reply = ("assistant", {"message": {"role": "assistant", "content": "", "tool_calls": [asked]}})
    noted = ("intent", {"call_id": "c1", "name": "bash", "arguments": {"command": "ls"}, "begun": False})
    result = ("result", {"message": tool_result("c1", "refused: no"), "is_error": True, "kind": "refused"})

    def drawn(*records):
        shown = [event for _, event in scenes(session_of(tmp_path, said("one"), reply, *records))]
        return [type(e) for e in shown if isinstance(e, events.ToolExecutionStart | events.ToolExecutionEnd)]

    assert drawn(noted) == []
    assert drawn(noted, result) == [events.ToolExecutionStart, events.ToolExecutionEnd]
