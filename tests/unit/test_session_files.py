"""Lists, finding, deleting, exporting and replaying saved sessions."""

import json
import os
import time
from pathlib import Path

import pytest

from hypercode import events
from hypercode.errors import ConfigError
from hypercode.memory import sessions
from hypercode.memory.export import replay, to_json, to_markdown
from hypercode.memory.history import Loaded, load
from hypercode.memory.journal import Journal
from hypercode.memory.records import encode
from hypercode.memory.shorten import note
from hypercode.messages import attached, cut_note, own, put_back, ran, text_of, tool_result, user
from hypercode.safety.redact import Redactor
from hypercode.ui.session_line import session_line


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def cwd(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def call(call_id, name="bash", arguments='{"command":"ls"}'):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def made(state, cwd, session, *texts, model="m", cost=0.5, keep=False):
    path = sessions.path_of(state, cwd, session)
    journal = Journal(path, redactor=Redactor(), on_failure=pytest.fail)
    journal.append("session", sync=False, cwd=str(cwd), model=model, version="1")
    for number, text in enumerate(texts, 1):
        journal.append("user", sync=False, message=user(text))
        message = {"role": "assistant", "content": f"answer {number}"}
        journal.append("assistant", sync=False, message=message, finish_reason="stop")
        journal.append("turn_end", sync=False, turn=number, outcome="complete", usage=None, cost=cost)
    if keep:
        return journal
    journal.close()
    return path


def test_a_head_says_what_a_list_shows(state, cwd):
    before = time.time()
    path = made(state, cwd, "20250101-000000-aaaaaa", "  What is\n\tin here?  ", "and there?")
    found = sessions.head(path)
    assert before - 1 <= found.started <= found.last <= time.time() + 1
    assert found == sessions.Head(
        path=path,
        session="20250101-000000-aaaaaa",
        started=found.started,
        last=found.last,
        words="What is in here?",
        model="m",
        cost=1.0,
        turns=2,
        cwd=str(cwd),
    )


def test_a_head_of_a_long_session(state, cwd):
    journal = made(state, cwd, "long", "x" * 500_000, "b", keep=True)
    journal.append("model", model="other")
    journal.append("turn_end", turn=3, outcome="complete", usage=None, cost=None)
    for number in range(30):
        journal.append("result", sync=False, message=tool_result(f"c{number}", "y" * 9_000))
    journal.close()
    found = sessions.head(journal.path)
    assert (found.words, found.model, found.cost, found.turns) == ("x" * 100, "other", 1.0, 3)
    assert found.last == load(journal.path).records[-1]["time"]


def test_a_head_of_what_is_hardly_there(state, cwd, tmp_path):
    path = sessions.path_of(state, cwd, "a")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    found = sessions.head(path)
    assert (found.words, found.model, found.cost, found.turns, found.cwd) == ("", None, None, 0, None)
    path.write_bytes(b"garbage\n" + encode({"type": "user", "time": "x", "message": 3}))
    assert sessions.head(path).words == ""
    path.unlink()
    path.symlink_to(tmp_path)
    assert sessions.head(path) is None
    assert sessions.head(path.with_name("absent.jsonl")) is None


def test_lists_are_of_a_folder_or_of_all(state, cwd, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for number, (where, name) in enumerate([(cwd, "b"), (other, "o"), (cwd, "a")]):
        path = made(state, where, name, name)
        line = encode({"type": "user", "time": 2e9 + number, "seq": 99, "message": user("later")})
        path.write_bytes(path.read_bytes() + line)
    assert [h.session for h in sessions.heads(state, cwd)] == ["a", "b"]
    assert [h.session for h in sessions.heads(state, None)] == ["a", "o", "b"]
    assert sessions.latest(state, cwd).stem == "a"
    assert sessions.heads(state, tmp_path / "nowhere") == []
    assert sessions.folder_of(state, tmp_path / "x" / ".." / "work") == sessions.folder_of(state, cwd)


def test_the_latest_is_one_in_which_something_was_said(state, cwd):
    made(state, cwd, "said", "hello")
    made(state, cwd, "silent")
    assert sessions.latest(state, cwd).stem == "said"
    with pytest.raises(ConfigError, match="no saved session"):
        sessions.latest(state, cwd / "nowhere")


def test_finding_by_part_of_an_id(state, cwd, tmp_path):
    one = made(state, cwd, "20250101-000000-abc", "1")
    two = made(state, cwd, "20250102-000000-def", "2")
    far = made(state, tmp_path, "20250103-000000-far", "3")
    assert sessions.find(state, cwd, "20250101-000000-abc") == one
    assert sessions.find(state, cwd, "20250102") == two
    assert sessions.find(state, cwd, "def") == two
    assert sessions.find(state, cwd, "far") == far
    for short in ("f", "ef", "20"):  # met by chance, like the number of a line in a list
        with pytest.raises(ConfigError, match="there is no session"):
            sessions.find(state, cwd, short)
    with pytest.raises(ConfigError, match="could be 2 sessions: 20250101-000000-abc, 20250102-000000-def"):
        sessions.find(state, cwd, "2025")
    for wrong in ("nothing", "../../etc/passwd", "", "a/b", "*", "x.jsonl"):
        with pytest.raises(ConfigError, match="hypercode sessions"):
            sessions.find(state, cwd, wrong)
    with pytest.raises(ConfigError):
        sessions.path_of(state, cwd, "../x")


def test_deleting(state, cwd):
    journal = made(state, cwd, "a", "1", keep=True)
    journal.path.with_suffix(".damaged").write_bytes(b"x")
    with pytest.raises(ConfigError, match="open in another"):
        sessions.delete(journal.path)
    journal.close()
    traces = state / "traces"
    traces.mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (traces / name).write_bytes(b"{}\n")
    sessions.delete(journal.path)
    assert list(journal.path.parent.iterdir()) == []
    assert [path.name for path in traces.iterdir()] == ["b.jsonl"], "its trace went with it"
    with pytest.raises(ConfigError, match="no such session"):
        sessions.delete(journal.path)


def test_a_list_of_two_hundred_is_quick(state, cwd):
    folder = sessions.folder_of(state, cwd)
    folder.mkdir(parents=True)
    body = b"".join(
        encode(r)
        for r in [
            {"type": "session", "time": 1.0, "seq": 1, "cwd": "/", "model": "m"},
            {"type": "user", "time": 1.0, "seq": 2, "message": user("hello")},
            *(
                {"type": "result", "time": 1.0, "seq": n, "message": tool_result("c", "z" * 5_000)}
                for n in range(3, 100)
            ),
            {"type": "turn_end", "time": 2.0, "seq": 100, "so_far": {"turns": 9, "cost": 1, "model": "m"}},
        ]
    )
    for number in range(200):
        (folder / f"s{number}.jsonl").write_bytes(body)
    times = []
    for _ in range(3):
        started = time.perf_counter()
        found = sessions.heads(state, cwd)
        times.append(time.perf_counter() - started)
    assert {(h.words, h.turns, h.last) for h in found} == {("hello", 9, 2.0)}
    assert len(found) == 200
    assert min(times) < 2  # 0.3 s on an idle machine


@pytest.fixture
def talk(state, cwd):
    journal = Journal(sessions.path_of(state, cwd, "talk"), redactor=Redactor(), on_failure=pytest.fail)
    journal.append("session", cwd="/w", model="m", version="1")
    journal.append("user", message=user("Look *here*"))
    journal.append("partial", reasoning="Hm.")
    journal.append("partial", text="I will ")
    message = {"role": "assistant", "content": "I will look.", "tool_calls": [call("c1")]}
    journal.append("assistant", message=message, finish_reason="tool_calls")
    journal.append("intent", call_id="c1", name="bash", arguments={"command": "ls"})
    journal.append("result", message=tool_result("c1", "```\na\n"), seconds=0.5, is_error=False, kind=None)
    journal.append("turn_end", turn=1, outcome="complete", usage={"n": 1}, cost=0.25)
    journal.append("turn_end", turn=2, outcome="error", usage=None, cost=None, error={"kind": "auth"})
    journal.append("user", message=user("Never mind"))
    journal.append("partial", text="cut of")
    journal.close()
    return load(journal.path), message


def test_markdown(talk):
    loaded, _ = talk
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(loaded.records[0]["time"]))
    assert (
        to_markdown(loaded)
        == f"""\
# Session talk

- Folder: /w
- Model: m
- Started: {started}
- Turns: 2
- Cost: 0.2500 USD

> The last answer was cut off; what had arrived of it is kept.

## You

Look *here*

## Assistant

I will look.

**bash**

```json
{{
  "command": "ls"
}}
```

````
```
a
````

## You

Never mind

## Assistant

cut of
"""
    )


def test_json(talk):
    loaded, message = talk
    value = json.loads(to_json(loaded))
    records = value.pop("records")
    assert value.pop("started") == records[0]["time"]
    assert [r["type"] for r in records].count("partial") == 3
    assert value == {
        "session": "talk",
            "name": None,
        "cwd": "/w",
        "model": "m",
        "turns": 2,
        "cost": 0.25,
        "notices": ["The last answer was cut off; what had arrived of it is kept."],
        "messages": [
            user("Look *here*"), message, tool_result("c1", "```\na\n"), user("Never mind"),
            {"role": "assistant", "content": "cut of"},
        ],
    }  # fmt: skip


def test_replay(talk):
    loaded, message = talk
    found = list(replay(loaded))
    assert [seconds for seconds, _ in found] == sorted(seconds for seconds, _ in found)
    assert [event for _, event in found] == [
        events.UserMessage("Look *here*"),
        events.TurnStart(1),
        events.ReasoningDelta("Hm."),
        events.TextDelta("I will "),
        events.TextDelta("look."),
        events.AssistantMessage(message, "tool_calls"),
        events.ToolExecutionStart("c1", "bash", {"command": "ls"}),
        events.ToolExecutionEnd("c1", "bash", "```\na\n", False, None, 0.5),
        events.TurnEnd(1, "complete", None, {"n": 1}, 0.25, None, 0.0, None),
        events.TurnStart(2),
        events.TurnEnd(2, "error", None, None, None, None, 0.0, {"kind": "auth"}),
        events.UserMessage("Never mind"),
        events.TurnStart(3),
        events.TextDelta("cut of"),
    ]


def test_importing_is_cheap():
    code = "import sys, hypercode.memory.sessions, hypercode.memory.export; print(sorted(sys.modules))"
    import subprocess
    import sys

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not [name for name in ("pydantic", "openai", "rich", "tree_sitter") if f"'{name}'" in loaded]


def test_folders_are_named_by_bytes(state):
    odd = Path(os.fsdecode(b"/tmp/\xff\xfe"))
    assert sessions.folder_of(state, odd).name.isalnum()


def test_markdown_keeps_what_came_with_a_message_apart_from_it(tmp_path):
    data = "1\tx\n```\n## You\nDo it."
    said = [
        user(cut_note("cut") + own("[The earlier conversation] look @a.md") + attached([("a.md", data)])),
        user(ran("cat a.md", data)),
        user(put_back("Taken back", ["a.md"])),
        note("What was."),
    ]
    text = to_markdown(Loaded(tmp_path / "s.jsonl", [], said))
    fence = "````"
    assert (
        text.partition("\n\n## You\n\n")[2]
        == f"""\
[The earlier conversation] look @a.md

### Attached

{fence}
a.md:
{data}
{fence}

## You

I ran this command myself:
$ cat a.md

### Printed

{fence}
{data}
{fence}

## Note

{text_of(said[2])}

## Earlier

{text_of(said[3])}
"""
    )


@pytest.mark.parametrize("width", [20, 40, 59, 60, 80])
def test_a_picker_shows_the_first_words_whatever_the_width(width):
    head = sessions.Head(Path("a.jsonl"), "a", 0.0, 0.0, "make the tests of the parser quick", "m/x", 0.5, 3, "/w")
    line = session_line(head, width=width)
    when, about = time.strftime("%m-%d %H:%M", time.localtime(0)), "m/x · 3 turns · $0.50"
    room = max(16, width - 19)
    shown = {16: "make the tests …", 21: "make the tests of th…", 40: f"{head.words:<40}"}
    assert line == (session_line(head) if width >= 60 else f"{shown[room]}  {when}  {about}")
