"""What a crash left undone, and where a conversation goes on after it, a rewind or a compaction."""

import json
import os
from dataclasses import replace

import pytest

from hypercode.events import UserMessage
from hypercode.memory.export import replay
from hypercode.memory.history import rebuild
from hypercode.memory.records import encode, scan
from hypercode.memory.unfinished import Unfinished, changed_since, unfinished
from hypercode.messages import attached, put_back, ran, tool_result, user

CUT = "[Your previous reply was broken off by the connection.]\n\n"


def call(call_id, name="bash", arguments='{"command":"ls"}'):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(text, *calls):
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def loaded(tmp_path, *records):
    """A session of these records; they are numbered from 1 and a second apart, from 1001 on."""
    lines = [
        encode({"type": kind, "time": 1001.0 + n, "seq": n + 1, **fields}) for n, (kind, fields) in enumerate(records)
    ]
    return rebuild(tmp_path / "s.jsonl", scan(b"".join(lines)))


SAID = ("user", {"message": user(f"{CUT}do it")})
ASKED = ("assistant", {"message": assistant("", call("c1"), call("c2", "write", '{"path":"a.txt","content":"x"}'))})
BEGUN = ("intent", {"call_id": "c1", "name": "bash", "arguments": {"command": "ls"}})
DONE = ("result", {"message": tool_result("c1", "out")})
BEGUN2 = ("intent", {"call_id": "c2", "name": "write", "arguments": {"path": "a.txt", "content": "x"}})
DONE2 = ("result", {"message": tool_result("c2", "out")})
TURN = ("turn_end", {"turn": 1, "outcome": "complete", "ttft": 0.1})
LS, WRITE = "bash ls", "write a.txt"


@pytest.mark.parametrize(
    ("records", "wanted"),
    [
        ([], None),
        ([SAID], Unfinished("do it", (), (), (), 0, True)),
        ([SAID, ("partial", {"text": " hal"}), ("partial", {"text": "f"})], Unfinished("do it", (), (), (), 4, False)),
        ([SAID, ("partial", {"reasoning": "hm"})], Unfinished("do it", (), (), (), 0, True)),
        ([SAID, ASKED], Unfinished("do it", (), (), (LS, WRITE), 0, False)),
        ([SAID, ASKED, BEGUN], Unfinished("do it", (), (LS,), (WRITE,), 0, False)),
        ([SAID, ASKED, BEGUN, DONE], Unfinished("do it", (LS,), (), (WRITE,), 0, False)),
        ([SAID, ASKED, BEGUN, DONE, BEGUN2], Unfinished("do it", (LS,), (WRITE,), (), 0, False)),
        ([SAID, ASKED, BEGUN, DONE, BEGUN2, DONE2, TURN], Unfinished("do it", (LS, WRITE), (), (), 0, True)),
        ([SAID, ("assistant", {"message": assistant("done")}), TURN], None),
        ([SAID, ("assistant", {"message": assistant("done")})], None),
        ([SAID, ("turn_end", {"turn": 1, "outcome": "error"})], None),
        ([SAID, ("turn_end", {"turn": 1, "outcome": "error"}), ("notice", {"text": "x"})], None),
        ([SAID, ASKED, BEGUN, ("user", {"message": user("next")})], Unfinished("next", (), (), (), 0, True)),
        ([SAID, ("user", {"message": user(ran("ls", "x")), "shell": {}})], Unfinished("do it", (), (), (), 0, True)),
        ([SAID, ("assistant", {"message": assistant("done")}), TURN, ("user", {"message": user(ran("ls", "x"))})], None),
        ([SAID, ("assistant", {"message": assistant("done")}), TURN, ("user", {"message": user(put_back("Taken back", ["a"]))})], None),
        ([("user", {"message": user(ran("ls", "x"))})], None),
        ([SAID, ("assistant", {"message": assistant("no")}), TURN, ("rewind", {"to": 2})], Unfinished("do it", (), (), (), 0, True)),
        ([SAID, ("assistant", {"message": assistant("no")}), TURN, SAID, ("rewind", {"to": 4})], None),
    ],
)  # fmt: skip
def test_what_is_unfinished(tmp_path, records, wanted):
    assert unfinished(loaded(tmp_path, *records)) == wanted


def test_a_call_that_never_began_is_answered_so_and_the_answers_are_owed(tmp_path):
    session = loaded(tmp_path, SAID, ASKED, BEGUN)
    unknown = tool_result("c1", "[interrupted: what this call did is not known]")
    not_run = tool_result("c2", "[not run: hypercode ended before this call]")
    assert session.messages == [SAID[1]["message"], ASKED[1]["message"], unknown, not_run]
    assert session.owed == [unknown, not_run]
    owed = [("session", {}), *(("result", {"message": message}) for message in session.owed)]
    after = loaded(tmp_path, SAID, ASKED, BEGUN, *owed, ("assistant", {"message": assistant("done")}), TURN)
    assert (after.messages, after.owed, after.notices) == ([*session.messages, assistant("done")], [], [])


def test_a_cut_reply_and_the_one_that_goes_on_are_two(tmp_path):
    records = [
        SAID,
        ("partial", {"text": "half"}),
        ("session", {}),
        ("user", {"message": user("go on")}),
        ("partial", {"text": " a"}),
        ("assistant", {"message": assistant(" and half")}),
    ]
    session = loaded(tmp_path, *records)
    assert [m["content"] for m in session.messages] == [f"{CUT}do it", "half", "go on", " and half"]
    assert (session.broken, loaded(tmp_path, *records[:2]).broken) == ("", "ended")
    cut = ("turn_end", {"turn": 1, "outcome": "aborted", "ttft": 0.1})
    assert loaded(tmp_path, SAID, ("assistant", {"message": assistant("half")}), cut).broken == "aborted"


def test_what_changed_since(tmp_path):
    def file(name, at):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (at, at))

    def step(tool, name, number, *, failed=False):
        yield "intent", {"call_id": f"c{number}", "name": tool, "arguments": {"path": name}}
        yield "result", {"message": tool_result(f"c{number}", "x"), "is_error": failed}

    steps = [
        *step("read", "old.txt", 1),
        *step("edit", "new.txt", 2),
        *step("write", "gone.txt", 3),
        *step("read", "never-was.txt", 4, failed=True),
        *step("ls", "folder", 5),
        ("intent", {"call_id": "c6", "name": "write", "arguments": {"path": "flying.txt"}}),
        ("notice", {"text": "the last record"}),
    ]
    session = loaded(tmp_path, ("session", {"cwd": str(tmp_path)}), SAID, *steps)
    end = session.records[-1]["time"]
    file("old.txt", end - 100)
    file("new.txt", end + 1)
    file("flying.txt", end - 0.5)  # after the call began
    assert sorted(changed_since(session, tmp_path / "elsewhere")) == ["flying.txt", "gone.txt (gone)", "new.txt"]


def test_a_compaction_replaces_what_was_before_it(tmp_path):
    summary, second = user("[a summary]"), user("second")
    call_, long, short = assistant("", call("c1")), tool_result("c1", "long " * 100), tool_result("c1", "long …")
    before = [
        SAID,
        ("assistant", {"message": assistant("first answer")}),
        ("user", {"message": second}),
        ("assistant", {"message": call_}),
        ("intent", {"call_id": "c1", "name": "bash", "arguments": {}}),
        ("result", {"message": long}),
    ]
    shorter = ("compaction", {"messages": [summary, second, call_, short]})
    session = loaded(tmp_path, *before, shorter, ("assistant", {"message": assistant("done")}))
    assert session.messages == [summary, second, call_, short, assistant("done")]
    assert session.starts == [(0, 0), (3, 1)]
    assert session.notices == []
    back = loaded(tmp_path, *before, shorter, ("assistant", {"message": assistant("done")}), ("rewind", {"to": 3}))
    assert back.messages == [summary]
    odd = ("compaction", {"messages": ["text", {"role": "system", "content": "x"}, {"role": "user"}, user("kept")]})
    assert loaded(tmp_path, *before, odd).messages == [user("kept")]


WITH_FILE = [SAID, ("user", {"message": user(f"{CUT}do it" + attached([("a", "b")])), "replaces": 1})]


def test_a_message_whose_files_were_read_replaces_the_one_before_them(tmp_path):
    session = loaded(tmp_path, *WITH_FILE)
    assert session.messages == [WITH_FILE[1][1]["message"]]
    assert session.starts == [(2, 0)]
    assert [r["seq"] for r in session.current()] == [2]
    assert unfinished(session) == Unfinished("do it", (), (), (), 0, True)
    said = [e for _, e in replay(session) if isinstance(e, UserMessage)]
    assert said == [UserMessage("do it")]
    assert [e for _, e in replay(replace(session, records=session.current())) if isinstance(e, UserMessage)] == said
    more = loaded(tmp_path, *WITH_FILE, ("rewind", {"to": 2}))
    assert (more.messages, more.current()[1:]) == ([], [])


@pytest.mark.parametrize("number", [None, True, "1", [], {}, 0, 2, 99])
def test_a_message_that_replaces_what_is_not_there_is_one_more(tmp_path, number):
    session = loaded(tmp_path, SAID, ("user", {"message": user("more"), "replaces": number}))
    assert [m["content"] for m in session.messages] == [f"{CUT}do it", "more"]
    assert len([e for _, e in replay(session) if isinstance(e, UserMessage)]) == 2


@pytest.mark.parametrize("files", [[], [WITH_FILE[1]]])
def test_a_message_that_is_taken_back_leaves_the_cut_before_it_to_be_told(tmp_path, files):
    cut = [SAID, ("assistant", {"message": assistant("ha")}), ("turn_end", {"outcome": "aborted", "ttft": 0.1})]
    more = [("user", {"message": user("more")}), *((kind, {**fields, "replaces": 4}) for kind, fields in files)]
    assert loaded(tmp_path, *cut).broken == "aborted"
    assert loaded(tmp_path, *cut, *more).broken == ""
    assert loaded(tmp_path, *cut, *more, ("rewind", {"to": 3 + len(more)})).broken == "aborted"
    assert loaded(tmp_path, *cut, *more, ("rewind", {"to": 2})).broken == ""


def again(name, **arguments):
    """A reply of a server that numbers the calls of each reply anew, and what is noted before its call is run."""
    asked = ("assistant", {"message": assistant("", call("call_0", name, json.dumps(arguments)))})
    return [asked, ("intent", {"call_id": "call_0", "name": name, "arguments": arguments})]


GIVEN = ("result", {"message": tool_result("call_0", "out")})
WRONG = ("result", {"message": tool_result("call_0", "missing_file: …"), "is_error": True})


def test_calls_that_are_numbered_anew_in_each_reply_are_paired_in_order(tmp_path):
    before = [SAID, *again("read", path="a.md"), GIVEN, TURN]
    running = loaded(tmp_path, *before, *again("bash", command="rm zzz"))
    assert unfinished(running) == Unfinished("do it", ("read a.md",), ("bash rm zzz",), (), 0, False)
    assert running.messages[-1] == tool_result("call_0", "[interrupted: what this call did is not known]")
    asked = loaded(tmp_path, *before, *again("bash", command="rm zzz")[:1])
    assert unfinished(asked) == Unfinished("do it", ("read a.md",), (), ("bash rm zzz",), 0, False)
    assert asked.messages[-1] == tool_result("call_0", "[not run: hypercode ended before this call]")
    assert asked.notices == []
    both = loaded(tmp_path, *before, *again("bash", command="rm zzz"), GIVEN, TURN)
    assert unfinished(both) == Unfinished("do it", ("read a.md", "bash rm zzz"), (), (), 0, True)


def test_a_call_that_had_begun_when_a_rewind_goes_back_to_it_is_not_said_to_be_not_run(tmp_path):
    later = [("user", {"message": user("next")}), ("assistant", {"message": assistant("done")}), TURN]
    session = loaded(tmp_path, SAID, *again("bash", command="rm zzz"), *later, ("rewind", {"to": 4}))
    assert session.messages[-1] == tool_result("call_0", "[interrupted: what this call did is not known]")


def test_files_of_calls_that_are_numbered_anew(tmp_path):
    """A call that failed says nothing of the others with its number."""
    (tmp_path / "a.md").write_text("a")
    read = [SAID, *again("read", path="a.md"), GIVEN, *again("read", path="b.md"), WRONG]
    assert changed_since(loaded(tmp_path, *read), tmp_path) == ["a.md"]


NOT_BEGUN = ("intent", {**BEGUN[1], "begun": False})


def test_a_call_that_was_refused_has_not_begun(tmp_path):
    """It is noted only with its result; where a kill comes between the two, nothing of it was done."""
    session = loaded(tmp_path, SAID, ASKED, NOT_BEGUN)
    assert unfinished(session) == Unfinished("do it", (), (), (LS, WRITE), 0, False)
    assert session.messages[2:] == [tool_result(i, "[not run: hypercode ended before this call]") for i in ("c1", "c2")]
    assert (session.in_flight, session.notices) == ([], [])
    refused = loaded(tmp_path, SAID, ASKED, NOT_BEGUN, DONE)
    assert unfinished(refused) == Unfinished("do it", (LS,), (), (WRITE,), 0, False)


def test_what_was_noted_of_a_refused_call_is_known_in_a_damaged_session_too(tmp_path):
    records = [("user", 1, SAID[1]), ("assistant", 2, ASKED[1]), ("intent", 3, NOT_BEGUN[1])]
    lines = [encode({"type": kind, "time": 1.0, "seq": n, **fields}) for kind, n, fields in records]
    session = rebuild(tmp_path / "s.jsonl", scan(b"".join([*lines, b'{"type":"no'])))
    unknown = tool_result("c2", "[interrupted: what this call did is not known]")
    assert session.messages[2:] == [tool_result("c1", "[not run: hypercode ended before this call]"), unknown]
