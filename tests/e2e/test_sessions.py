"""Conversations are kept: resumed, listed, exported, deleted, rewound, after a crash too."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from chat_terminal import Chat
from stage import HYPERCODE, answer, call, text

ESC, DOWN = "\x1b", "\x1b[B"
ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")


def hanging(*deltas):
    return answer(*deltas, close="hang")


def said(stage, request=-1):
    """What the person and the model said in a request."""
    return [(m["role"], m["content"]) for m in stage.requests()[request]["messages"] if m["role"] != "system"]


def files(stage):
    return sorted((stage.home / "hypercode/state/sessions").glob("*/*.jsonl"))


def records(path):
    """Every record that is there whole."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def listed(stage, *options):
    return json.loads(stage.run("sessions", *options, "--json").stdout)


def picked(chat):
    """The marked line of a list."""
    return next((line for line in chat.visible if line.startswith("▶")), "")


# -- hypercode run ---------------------------------------------------------------


def test_run_goes_on_with_the_last_conversation(stage):
    s = stage(*[answer(text(f"answer {n}")) for n in range(5)])
    assert s.run("run", "one").stdout == "answer 0\n"
    assert s.run("run", "-c", "two").stdout == "answer 1\n"
    assert said(s) == [("user", "one"), ("assistant", "answer 0"), ("user", "two")]
    s.run("run", "another conversation")
    [first, other] = files(s)
    assert s.run("run", "-r", first.stem, "three").returncode == 0
    assert said(s)[-3:] == [("user", "two"), ("assistant", "answer 1"), ("user", "three")]
    assert s.run("run", "four", "-r").returncode == 0  # without an id: the last one, which is the first again
    assert said(s)[-3:] == [("user", "three"), ("assistant", "answer 3"), ("user", "four")]
    assert [r["type"] for r in records(other)] == ["session", "user", *["partial"] * 1, "assistant", "turn_end"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "-c", "x"], "no saved session in"),
        (["run", "-r", "abc", "x"], "no session 'abc'"),
        (["-c", "a sentence here"], "no saved session in"),
        (["run", "-c", "-r", "abc", "x"], "give one of them"),
        (["run", "--resume=../../etc/passwd", "x"], "no session"),
    ],
)
def test_what_cannot_be_resumed_is_said(stage, arguments, words):
    s = stage()
    done = s.run(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr


def test_a_cut_reply_is_told_to_the_model_when_the_conversation_goes_on(stage):
    s = stage(answer(text("half an ans"), close="abort"), answer(text("done")))
    assert s.run("run", "--max-retries", "0", "one").returncode == 4
    assert s.run("run", "-c", "two").returncode == 0
    note = "[Your previous reply was broken off by the connection.]\n\n"
    assert said(s) == [("user", "one"), ("assistant", "half an ans"), ("user", f"{note}two")]


def test_a_conversation_of_another_folder_goes_on_here(stage):
    s = stage(answer(text("a")), answer(text("b")))
    s.run("run", "one")
    other = s.home / "other"
    other.mkdir()
    done = s.run("--cwd", str(other), "run", "-r", files(s)[0].stem, "two")
    assert done.returncode == 0
    assert f"began in {s.workspace}; the tools work here, in {other}" in done.stderr
    assert len(files(s)) == 1


def test_two_processes_on_one_session(stage):
    """The second one is told, and goes on with a copy."""
    s = stage(answer(text("a")), hanging(text("zzfirst")), answer(text("zzsecond")))
    s.run("run", "one")
    [path] = files(s)
    with Chat(s, "-c") as chat:
        chat.prompt().say("two")
        chat.shows("zzfirst")
        done = s.run("run", "-c", "three")
        assert done.stdout == "zzsecond\n"
        assert f"The session {path.stem} is open in another hypercode; this is a copy of it" in done.stderr
        assert said(s)[:1] == [("user", "one")]
        refused = s.run("sessions", "delete", path.stem, "--yes")
        assert (refused.returncode, "is open in another hypercode" in refused.stderr) == (2, True)
        chat.send("\x03")
        chat.shows("[aborted]")
        chat.leave()
    copy = next(p for p in files(s) if p != path)
    assert [r["message"]["content"] for r in records(path) if r["type"] == "user"] == ["one", "two"]
    assert any(r["type"] == "copy" and r["of"] == path.stem for r in records(copy))
    [one, two, three] = [r["message"]["content"] for r in records(copy) if r["type"] == "user"]
    assert (one, two, three.endswith("]\n\nthree")) == ("one", "two", True)


@pytest.mark.parametrize("how", ["no folder", "full"])
def test_a_state_folder_that_cannot_be_written(stage, how):
    """It is said at once, the work goes on, and nothing is called saved."""
    s = stage(answer(text("the answer " * 3_000)))
    state = s.home / "hypercode/state"
    command = [HYPERCODE, "run", "one"]
    if how == "no folder":
        state.parent.mkdir(parents=True)
        state.write_text("a file")
    else:
        command = ["bash", "-c", f"ulimit -f 8; exec {HYPERCODE} run one"]
    done = subprocess.run(
        command,
        cwd=s.workspace,
        env=s.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.startswith("the answer")) == (0, True)
    assert done.stderr.count("This conversation is not being saved") == 1
    assert "saved" not in done.stderr.replace("is not being saved", "").replace("tried again", "")
    if how == "full":
        assert all(json.loads(line)["type"] for line in files(s)[0].read_bytes().splitlines())


def test_a_chat_that_is_not_saved_says_so(stage):
    s = stage(answer(text("zzanswer")))
    (s.home / "hypercode").mkdir()
    (s.home / "hypercode/state").write_text("a file")
    with Chat(s) as chat:
        chat.prompt().say("one")
        chat.shows("is not being saved", "zzanswer")
        chat.idle()
        assert chat.leave() == 0
        assert chat.lines[-2:] == ["! This conversation was not saved.", "1 turn"]


# -- the chat ----------------------------------------------------------------------


def test_the_chat_goes_on_and_shows_where_it_was(stage):
    s = stage(answer(text("first answer")), answer(text("second **answer**")), answer(text("zzthird")))
    s.run("run", "one")
    s.run("run", "-c", "two\nlines")
    with Chat(s, "-c") as chat:
        chat.shows("the last of it", "> two", "  lines", "second answer")
        assert not any("first answer" in line or "was not finished" in line for line in chat.lines)
        chat.prompt().say("three")
        chat.shows("zzthird")
        chat.leave()
    assert [content for role, content in said(s) if role == "user"] == ["one", "two\nlines", "three"]


def test_nothing_is_written_by_looking(stage):
    s = stage(answer(text("an answer")))
    s.run("run", "one")
    before = files(s)[0].read_bytes()
    with Chat(s, "-c") as chat:
        chat.shows("an answer")
        chat.idle()
        chat.leave()
    s.run("sessions", "show", files(s)[0].stem)
    s.run("replay", files(s)[0].stem)
    assert files(s)[0].read_bytes() == before


def test_a_first_message_goes_behind_what_is_shown(stage):
    s = stage(answer(text("old answer")), answer(text("zznew")))
    s.run("run", "one")
    with Chat(s, "-c", "go on with it") as chat:
        chat.shows("old answer", "zznew")
        chat.leave()
    assert said(s)[-1] == ("user", "go on with it")


def test_the_picker(stage):
    s = stage(*[answer(text(f"answer {n}"), usage={"cost": 0.25, "total_tokens": 3}) for n in range(4)])
    for words in ("about apples", "about pears", "about plums"):
        s.run("run", words)
        time.sleep(0.01)
    with Chat(s, "-r", columns=100) as chat:
        chat.wait("search:")
        rows = [line for line in chat.visible if " about " in line]
        assert [re.search(r"about \w+", row)[0] for row in rows] == ["about plums", "about pears", "about apples"]
        assert re.fullmatch(r"▶  1  \d{4}-\d\d-\d\d \d\d:\d\d  about plums  script/s · 1 turn · \$0.25", rows[0])
        chat.send(DOWN)
        chat.wait(lambda: "pears" in picked(chat))
        chat.send("apples 0.25")
        chat.wait(lambda: "apples" in picked(chat) and "(1 of 3)" in "\n".join(chat.visible))
        chat.send("x")
        chat.wait("nothing matches")
        chat.send("\x7f\r")
        chat.shows("the last of it", "> about apples", "answer 0")
        chat.prompt().say("/resume")
        chat.wait("search:")
        chat.send(ESC)
        chat.prompt()
        chat.say("/resume 1")  # the other two, the last one first
        chat.shows("answer 2")
        chat.idle()
        chat.say("go on")
        chat.shows("answer 3")
        chat.idle()
        chat.leave()
    assert said(s)[0] == ("user", "about plums")


def test_the_picker_on_a_plain_terminal(stage):
    s = stage(*[answer(text(f"answer {n}")) for n in range(4)])
    for words in ("about apples", "about pears", "more pears"):
        s.run("run", words)
    with Chat(s, "--plain", "-r") as chat:
        chat.wait("number, words")
        chat.send("pears\n")
        chat.wait(lambda: sum("more pears" in line for line in chat.visible) == 2)
        chat.send("nowhere\n")
        chat.shows("nothing matches")
        chat.send("2\n")
        chat.shows("> about pears", "answer 1")
        chat.prompt().send("go on\n")
        chat.shows("answer 3")
        assert "\x1b" not in chat.raw.decode()
        chat.leave()
    assert [c for role, c in said(s) if role == "user"] == ["about pears", "go on"]


def test_a_name(stage):
    s = stage(answer(text("answer 0")), answer(text("answer 1")), answer(text("answer 2")))
    with Chat(s) as chat:
        chat.prompt().say("about apples")
        chat.shows("answer 0")
        chat.idle()
        chat.say("/name The Great Rewrite")
        chat.shows("is called 'The Great Rewrite'")
        chat.say("/new")
        chat.shows("A new conversation begins")
        chat.say("something else")
        chat.shows("answer 1")
        chat.idle()
        chat.leave()
    assert [h["name"] for h in listed(s)] == [None, "The Great Rewrite"]
    assert s.run("run", "--resume=the great rewrite", "more").stdout == "answer 2\n"
    assert said(s)[0] == ("user", "about apples")
    assert listed(s)[0]["name"] == "The Great Rewrite"  # with a turn behind the name


def test_the_figures_are_those_of_the_session(stage):
    usage = {"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909, "cost": 0.25}
    s = stage(answer(text("one"), usage=usage), answer(text("two"), usage=usage))
    s.run("run", "begin")
    with Chat(s, "-c", columns=100) as chat:
        chat.prompt().say("/cost")
        chat.shows("turns: 1", "tokens: 900 sent, 9 received", "billed: $0.25")
        chat.say("on")
        chat.shows("two")
        chat.idle()
        chat.say("/cost")
        chat.shows("turns: 2", "tokens: 1800 sent, 18 received", "billed: $0.5")
        chat.wait(lambda: " · 1.8k tokens in all · $0.5" in chat.status)
        chat.say("/new")
        chat.wait(lambda: "tokens" not in chat.status and "$" not in chat.status)
        chat.say("/cost")
        chat.shows("turns: 0", "tokens: 0 sent, 0 received", "billed: the server does not say")
        chat.leave()


def test_each_conversation_takes_its_own_changes_back(stage):
    made = [answer(call("write", {"path": f"{n}.txt", "content": "x"}, f"c{n}")) for n in range(2)]
    s = stage(made[0], answer(text("zzone")), made[1], answer(text("zztwo")))
    with Chat(s, "--mode", "edits") as chat:
        chat.prompt().say("first")
        chat.shows("zzone")
        chat.idle()
        chat.say("/new")
        chat.shows("A new conversation begins")
        chat.say("second")
        chat.shows("zztwo")
        chat.idle()
        chat.leave()
    with Chat(s, "-c") as chat:
        chat.prompt().say("/undo")
        chat.shows("Taken back: write 1.txt")
        chat.say("/undo")
        chat.shows("There is nothing to undo in this conversation.")
        chat.say("/resume first")
        chat.shows("zzone")
        chat.prompt().say("/undo")
        chat.shows("Taken back: write 0.txt")
        chat.leave()
    assert not list(s.workspace.glob("*.txt"))


def test_rewind_keeps_both_pasts(stage):
    s = stage(*[answer(text(f"answer {n}")) for n in range(4)])
    with Chat(s) as chat:
        for number, words in enumerate(["alpha", "beta", "gamma"]):
            chat.prompt().say(words)
            chat.shows(f"answer {number}")
            chat.idle()
        chat.say("/rewind")
        chat.wait("search:")
        assert "gamma" in picked(chat)
        chat.send(DOWN + "\r")
        chat.shows("Went back")
        chat.wait(lambda: chat.draft == "> beta")
        chat.send(" instead\r")
        chat.shows("answer 3")
        chat.idle()
        chat.leave()
    assert [c for _, c in said(s)] == ["alpha", "answer 0", "beta instead"]
    [path] = files(s)
    there = [r["message"]["content"] for r in records(path) if r["type"] in ("user", "assistant")]
    assert there == ["alpha", "answer 0", "beta", "answer 1", "gamma", "answer 2", "beta instead", "answer 3"]
    s.run("run", "-c", "after")  # no answer is left: what matters is what is asked
    assert [c for _, c in said(s)] == ["alpha", "answer 0", "beta instead", "answer 3", "after"]
    replayed = s.run("replay", path.stem).stdout
    assert "gamma" in replayed
    assert "Went back to an earlier place" in replayed


def test_retry_is_remembered(stage):
    s = stage(*[answer(text(f"answer {n}")) for n in range(3)])
    with Chat(s) as chat:
        chat.prompt().say("alpha")
        chat.shows("answer 0")
        chat.idle()
        chat.say("/retry")
        chat.shows("answer 1")
        chat.idle()
        chat.leave()
    s.run("run", "-c", "beta")
    assert [c for _, c in said(s)] == ["alpha", "answer 1", "beta"]


def test_a_command_of_ones_own_is_remembered(stage):
    s = stage(answer(text("answer 0")), answer(text("answer 1")))
    with Chat(s) as chat:
        chat.prompt().say("!echo from-the-shell")
        chat.shows("● ! echo from-the-shell")
        chat.idle()
        chat.say("what was that?")
        chat.shows("answer 0")
        chat.idle()
        chat.leave()
    s.run("run", "-c", "and now?")
    told = "I ran this command myself:\n$ echo from-the-shell\nfrom-the-shell"
    assert [c for _, c in said(s)] == [told, "what was that?", "answer 0", "and now?"]
    assert "● ! echo from-the-shell" in s.run("replay", files(s)[0].stem).stdout


def test_export_from_the_chat(stage):
    s = stage(answer(text("the *answer*")))
    with Chat(s) as chat:
        chat.prompt().say("/export")
        chat.shows("nothing to export yet")
        chat.say("the question")
        chat.shows("the answer")
        chat.idle()
        chat.say("/export out.json")
        chat.wait(lambda: (s.workspace / "out.json").exists())
        chat.say("/export notes.md")
        chat.wait(lambda: "".join(chat.lines).count("Written to") == 2)
        chat.say("/export notes.md")
        chat.shows("exists already")
        chat.leave()
    data = json.loads((s.workspace / "out.json").read_text())
    assert [m["content"] for m in data["messages"]] == ["the question", "the *answer*"]
    assert "## Assistant\n\nthe *answer*\n" in (s.workspace / "notes.md").read_text()
    assert stat.S_IMODE((s.workspace / "notes.md").stat().st_mode) == 0o600


# -- after a crash -------------------------------------------------------------------


def crashed(s, *options, until=("partial", "zzhalf")):
    """A chat that is killed in the middle: once there is such a record, with these words in it."""
    kind, words = until
    with Chat(s, "--no-sandbox", "--mode", "auto", *options) as chat:
        chat.prompt().say("do the work")
        chat.shows("zzhalf")
        [path] = files(s)
        chat.wait(lambda: any(r["type"] == kind and words in json.dumps(r) for r in records(path)))
        chat.process.kill()
        chat.process.wait()


def test_a_crash_while_tools_ran(stage):
    s = stage(
        answer(
            call("write", {"path": "new.txt", "content": "x"}, "c1"), call("bash", {"command": "echo one"}, "c2", 1)
        ),
        answer(
            call("bash", {"command": "echo zzhalf; sleep 60"}, "c3"), call("bash", {"command": "echo two"}, "c4", 1)
        ),
        answer(text("zzdone")),
    )
    crashed(s, until=("intent", "zzhalf"))
    (s.workspace / "new.txt").write_text("somebody else")
    os.utime(s.workspace / "new.txt", (time.time() + 5, time.time() + 5))
    with Chat(s, "-c", "--no-sandbox", columns=110, rows=40) as chat:
        chat.wait("c continue")
        card = [line for line in chat.visible if line.startswith("│")]
        assert card[:6] == [
            "│ This task was not finished when hypercode ended: do the work",
            "│   had finished, is not run again: write new.txt",
            "│   had finished, is not run again: bash echo one",
            "│   had begun, what it did is not known: bash echo zzhalf; sleep 60",
            "│   asked for, had not begun: bash echo two",
            "│   changed since, of the files it had read or written: new.txt",
        ]
        assert re.fullmatch(r"│   the next request sends ~[\d.]+k tokens", card[6])
        chat.send("c")
        chat.shows("zzdone")
        chat.idle()
        chat.leave()
    messages = s.requests()[-1]["messages"][-3:]
    assert [m.get("content") for m in messages[1:]] == [
        "[interrupted: what this call did is not known]",
        "[not run: hypercode ended before this call]",
    ]
    assert (s.workspace / "new.txt").read_text() == "somebody else"
    s.run("run", "-c", "more")
    assert said(s)[-2:] == [("assistant", "zzdone"), ("user", "more")]
    assert "epaired" not in s.run("sessions", "show", files(s)[0].stem).stdout


def test_a_crash_while_the_person_was_asked(stage):
    """What was asked for and never allowed had not begun."""
    s = stage(answer(call("write", {"path": "zznew.txt", "content": "x"}, "c1")), answer(text("zzdone")))
    with Chat(s) as chat:
        chat.prompt().say("do the work")
        chat.wait("yes, once")
        os.kill(chat.process.pid, signal.SIGKILL)
        chat.finish()
    with Chat(s, "-c", columns=110) as chat:
        chat.wait("c continue")
        assert [line for line in chat.visible if line.startswith("│")][:2] == [
            "│ This task was not finished when hypercode ended: do the work",
            "│   asked for, had not begun: write zznew.txt",
        ]
        chat.send("c")
        chat.shows("zzdone")
        chat.idle()
        chat.leave()
    assert s.requests()[-1]["messages"][-1]["content"] == "[not run: hypercode ended before this call]"


def test_a_crash_while_the_answer_came(stage):
    s = stage(hanging(text("zzhalf of an answer")), answer(text("zzdone")))
    crashed(s)
    with Chat(s, "-c") as chat:
        chat.wait("c continue")
        assert any("in flight: 19 characters of an answer had come" in line for line in chat.visible)
        assert "zzhalf of an answer" in chat.lines
        chat.send("c")
        chat.shows("zzdone")
        chat.leave()
    [_, (_, half), (role, text_)] = said(s)
    assert (half, role) == ("zzhalf of an answer", "user")
    assert text_.startswith("[Your previous reply was broken off when the program ended.]\n\nContinue exactly")


def test_an_unfinished_task_is_dropped(stage):
    s = stage(answer(text("hello")), hanging(text("zzhalf")), answer(text("zzdone")))
    s.run("run", "hi")
    crashed(s, "-c")
    with Chat(s, "-c") as chat:
        chat.wait("d drop it")
        chat.send("d")
        chat.shows("Went back")
        chat.wait(lambda: chat.draft == "> do the work")
        chat.send(" better\r")
        chat.shows("zzdone")
        chat.leave()
    assert [c for _, c in said(s)] == ["hi", "hello", "do the work better"]


def test_an_unfinished_task_is_left_alone(stage):
    s = stage(hanging(text("zzhalf")), answer(text("zzdone")))
    crashed(s)
    with Chat(s, "--plain", "-c") as chat:
        chat.wait("[c] continue")
        chat.send("l\n")
        chat.prompt().send("something else\n")
        chat.shows("zzdone")
        chat.leave()
    note = "[Your previous reply was broken off when the program ended.]\n\n"
    assert [c for _, c in said(s)] == ["do the work", "zzhalf", f"{note}something else"]


# -- hypercode sessions --------------------------------------------------------------


@pytest.fixture
def kept(stage):
    """A stage with two conversations, one with text that no terminal should get."""
    s = stage(
        answer(text("plain answer")), answer(text("evil \x1b]0;title\x07 \x9b31m \u202e answer")), answer(text("c"))
    )
    s.run("run", "about apples")
    s.run("run", "about \x1b[31mred")
    return s


def test_sessions_are_listed(kept):
    lines = kept.run("sessions").stdout.splitlines()
    assert [ID.sub("ID", re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", line)) for line in lines] == [
        "ID  TIME  about ␛[31mred  script/s · 1 turn",
        "ID  TIME  about apples  script/s · 1 turn",
    ]
    other = kept.home / "other"
    other.mkdir()
    nothing = kept.run("--cwd", str(other), "sessions")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "no saved session in" in nothing.stderr
    assert kept.run("sessions", "list", "--cwd", str(other), "--all").stdout.count(str(kept.workspace)) == 2
    assert [h["words"] for h in listed(kept)] == ["about \x1b[31mred", "about apples"]
    assert set(listed(kept)[0]) == {
        "path", "session", "started", "last", "words", "model", "cost", "turns", "cwd", "name"
    }  # fmt: skip


def test_on_a_terminal_sessions_are_listed_in_columns(stage):
    s = stage(answer(text("a")), answer(text("b")))
    s.run("run", "short")
    s.run("run", "a question that has many more words than there is room for on one row of a terminal")
    folder = str(s.workspace)

    def drawn(columns, *options):
        with Chat(s, "sessions", *options, columns=columns) as terminal:
            assert terminal.finish() == 0
            lines = terminal.lines
        return [ID.sub("ID", re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", line)) for line in lines]

    assert drawn(80) == [
        "ID  TIME  a question that ha…  script/s · 1 turn",
        "ID  TIME  short                script/s · 1 turn",
    ]
    assert drawn(100) == [
        "ID  TIME  a question that has many more words th…  script/s · 1 turn",
        "ID  TIME  short                                    script/s · 1 turn",
    ]
    assert drawn(44) == [
        "ID  TIME",
        "  a question that has ma…  script/s · 1 turn",
        "ID  TIME",
        "  short  script/s · 1 turn",
    ]
    assert drawn(160 + len(folder), "--all")[1].endswith(f"short{' ' * 55}  script/s · 1 turn · {folder}")


def test_a_session_is_shown_and_exported(kept):
    evil, plain = (h["session"] for h in listed(kept))
    shown = kept.run("sessions", "show", evil).stdout
    assert "evil ␛]0;title ␛31m \ufffd answer" in shown
    assert json.loads(kept.run("sessions", "show", "--json", plain).stdout)["words"] == "about apples"
    assert "\x1b]0;title" in kept.run("sessions", "export", evil).stdout  # a file or pipe gets what was said
    data = json.loads(kept.run("sessions", "export", "--format", "json", plain[-6:]).stdout)
    assert [m["content"] for m in data["messages"]] == ["about apples", "plain answer"]
    out = kept.workspace / "out.md"
    assert kept.run("sessions", "export", plain, "out.md").returncode == 0
    assert (stat.S_IMODE(out.stat().st_mode), "plain answer" in out.read_text()) == (0o600, True)
    again = kept.run("sessions", "export", plain, "out.md")
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
    assert kept.run("sessions", "export", plain, "--format", "pdf").returncode == 2
    assert kept.run("sessions", "show", "202").stderr.startswith("hypercode: '202' could be 2 sessions:")


def test_json_on_a_terminal_harms_nothing(kept):
    evil = listed(kept)[0]["session"]
    with Chat(kept, "sessions", "export", evil, "--format", "json") as terminal:
        assert terminal.finish() == 0
        raw = terminal.raw.decode()
    assert "\x1b" not in raw
    assert "\x9b" not in raw
    assert json.loads(raw)["messages"][1]["content"] == "evil \x1b]0;title\x07 \x9b31m \u202e answer"


def test_sessions_are_deleted(kept):
    evil, plain = (h["session"] for h in listed(kept))
    refused = kept.run("sessions", "delete", plain)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    with Chat(kept, "sessions", "delete", plain) as terminal:
        terminal.wait("Delete for good?")
        terminal.send("\n")
        assert terminal.finish() == 2
    with Chat(kept, "sessions", "delete", plain) as terminal:
        terminal.wait("Delete for good?")
        terminal.send("y\n")
        assert terminal.finish() == 0
    assert [h["session"] for h in listed(kept)] == [evil]
    assert kept.run("sessions", "delete", evil, "--yes").returncode == 0
    assert listed(kept) == []
    assert kept.run("sessions", "delete", evil, "--yes").returncode == 2


@pytest.mark.parametrize("command", ["sessions show", "sessions export", "replay"])
def test_the_reader_may_go_away(kept, command):
    evil = listed(kept)[0]["session"]
    done = subprocess.run(
        ["bash", "-c", f"{HYPERCODE} {command} {evil} | true; echo ${{PIPESTATUS[0]}}"],
        cwd=kept.workspace,
        env=kept.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


# -- how long it takes ---------------------------------------------------------------


def test_ten_thousand_records_are_resumed_quickly(tmp_path):
    """In a second at most, measured against what the JSON alone takes, so that a busy machine changes nothing."""
    from hypercode.memory.journal import Journal, open_session
    from hypercode.messages import tool_result, user
    from hypercode.safety.redact import Redactor

    path = tmp_path / "s" / "long.jsonl"
    journal = Journal(path, redactor=Redactor(), on_failure=pytest.fail)
    journal.append("session", sync=False, cwd=str(tmp_path), model="m", version="1")
    for n in range(1_667):
        arguments = {"command": f"echo {n}"}
        function = {"name": "bash", "arguments": json.dumps(arguments)}
        calls = [{"id": f"c{n}", "type": "function", "function": function}]
        journal.append("user", sync=False, message=user(f"question {n} " * 20))
        journal.append("partial", sync=False, text="some words of an answer " * 10)
        message = {"role": "assistant", "content": "some words of an answer " * 40, "tool_calls": calls}
        journal.append("assistant", sync=False, message=message, finish_reason="tool_calls")
        journal.append("intent", sync=False, call_id=f"c{n}", name="bash", arguments=arguments)
        journal.append("result", sync=False, message=tool_result(f"c{n}", "output\n" * 100), seconds=0.1)
        journal.append("turn_end", sync=False, turn=n, outcome="complete", usage=None, cost=0.01)
    journal.close()

    def took(work):
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            work()
            best = min(best, time.process_time() - start)
        return best

    def resume():
        opened = open_session(path, redactor=Redactor(), on_failure=pytest.fail, fresh="f")
        assert (len(opened.loaded.records), len(opened.loaded.messages)) == (10_003, 5_001)
        opened.journal.close()

    bare = took(lambda: [json.loads(line) for line in path.read_bytes().splitlines()])
    whole = took(resume)
    print(f"{whole * 1000:.0f} ms, {whole / bare:.1f} times the JSON")
    assert whole < 8 * bare


def test_what_a_conversation_changed_can_be_taken_back_after_new_too(stage):
    """Right after /new it is the last change before it; once the new one changes files, only its own."""
    made = [answer(call("write", {"path": f"{n}.txt", "content": "x"}, f"c{n}")) for n in range(2)]
    s = stage(made[0], answer(text("zzone")), answer(text("zztalk")), made[1], answer(text("zztwo")))
    with Chat(s, "--mode", "edits") as chat:
        chat.prompt().say("first")
        chat.shows("zzone")
        chat.idle()
        chat.say("/new")
        chat.shows("A new conversation begins")
        chat.say("/diff")
        chat.shows("Nothing was changed in this conversation.")
        chat.say("/undo")
        chat.shows("Taken back: write 0.txt", "! This was done in the conversation before this one.")
        chat.say("/redo")
        chat.shows("Done again: write 0.txt")
        chat.say("talk")
        chat.shows("zztalk")
        chat.idle()
        chat.say("/new")
        chat.say("/undo")
        chat.wait(lambda: sum("Taken back: write 0.txt" in line for line in chat.lines) == 2)
        chat.say("/undo")
        chat.shows("There is nothing to undo in this conversation.")
        chat.say("second")
        chat.shows("zztwo")
        chat.idle()
        chat.process.kill()
        chat.process.wait()
    assert [p.name for p in s.workspace.glob("*.txt")] == ["1.txt"]
    with Chat(s, "-c") as chat:
        chat.prompt().say("/diff")
        chat.shows("1.txt: nothing → file")
        chat.say("/undo")
        chat.shows("Taken back: write 1.txt")
        chat.say("/redo")
        chat.shows("Done again: write 1.txt")
        chat.leave()


def test_what_a_reply_cost_outlives_a_kill_while_its_calls_run(stage):
    usage = {"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909, "cost": 0.1}
    asked = answer(call("bash", {"command": "echo zzhalf; sleep 60"}, "c1"), usage=usage)
    s = stage(asked, answer(text("zzdone"), usage=usage), answer(text("zzmore"), usage=usage))
    crashed(s, until=("intent", "zzhalf"))
    assert (listed(s)[0]["turns"], listed(s)[0]["cost"]) == (1, 0.1)
    with Chat(s, "-c", "--no-sandbox", columns=110, rows=40) as chat:
        chat.wait("c continue")
        assert chat.status.endswith(" · 909 tokens in all · $0.10")
        chat.send("c")
        chat.shows("zzdone")
        chat.idle()
        chat.say("more")
        chat.shows("zzmore")
        chat.wait(lambda: " · 2.7k tokens in all · $0.30 · " in chat.status)
        chat.leave()
    assert '"cost": 0.3,' in s.run("sessions", "--json").stdout


def test_doctor_does_not_go_on_about_a_crash_that_was_told_of(stage):
    s = stage(answer(call("bash", {"command": "echo zzhalf; sleep 60"}, "c1")), answer(text("zzdone")))
    crashed(s, until=("intent", "zzhalf"))
    with Chat(s, "-c", "--no-sandbox", columns=110, rows=40) as chat:
        chat.wait("c continue")
        chat.send("c")
        chat.shows("zzdone", "hypercode ended while this was going on: bash")
        chat.idle()
        chat.say("/doctor")
        chat.wait(lambda: any("that is needed" in line for line in chat.lines))
        found = [line for line in chat.lines if re.match(r"(ok|warning|problem) +configuration", line)]
        assert [line.split()[0] for line in found] == ["ok"], found
        chat.leave()


def test_the_status_line_shows_an_estimate_until_the_server_has_said(stage):
    usage = {"prompt_tokens": 4200, "completion_tokens": 9, "total_tokens": 4209}
    s = stage(answer(text("one"), usage=usage), hanging(text("zztwo")), answer(text("zzthree"), usage=usage))
    s.run("run", "begin")
    with Chat(s, "-c", columns=100) as chat:
        chat.shows("the last of it", "one")
        chat.wait(lambda: re.search(r" · context ~\d\.\dk tokens", chat.status))
        chat.say("/new")
        chat.shows("A new conversation begins")
        chat.wait(lambda: "context" not in chat.status)
        chat.say("on")
        chat.shows("zztwo")
        chat.wait(lambda: re.search(r" · context ~\d\.\dk tokens", chat.status))
        chat.send("\x03")
        chat.shows("[aborted]")
        chat.idle()
        chat.say("more")
        chat.shows("zzthree")
        chat.wait(lambda: " · context 4.2k tokens" in chat.status)
        chat.say("/rewind more")
        chat.shows("Went back to before")
        chat.wait(lambda: re.search(r" · context ~\d\.\dk tokens", chat.status))
        chat.send("\x03")
        chat.wait(lambda: chat.draft == ">")
        chat.leave()


def test_another_model_is_in_the_status_line_at_once(stage):
    with Chat(stage(), columns=100) as chat:
        chat.prompt().idle()
        chat.say("/model fake/other")
        chat.wait(lambda: chat.status.startswith("fake/other · "))
        chat.leave()


def test_a_compaction_that_brought_no_summary_leaves_the_conversation_as_it_is(stage):
    billed = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "cost": 0.02}
    answers = [answer(text(f"answer {n} " + "word " * 300)) for n in range(5)]
    s = stage(*answers, answer(text("I"), finish="content_filter", usage=billed), answer(text("zzafter")))
    with Chat(s, columns=100) as chat:
        for number in range(5):
            chat.prompt().say(f"question {number}")
            chat.shows(f"answer {number}")
            chat.idle()
        chat.say("/compact")
        chat.shows("The conversation stays as it is: the summary was cut off by the provider's content filter.")
        chat.shows("Having asked for it cost $0.0200.")
        chat.wait(lambda: " · $0.0200 · " in chat.status)
        chat.idle()
        chat.say("and now")
        chat.shows("zzafter")
        chat.idle()
        chat.leave()
    assert [content for role, content in said(s) if role == "user"] == [*(f"question {n}" for n in range(5)), "and now"]
    assert listed(s)[0]["cost"] == 0.02


def test_a_file_of_secrets_is_only_spoken_of_when_a_command_changed_it(stage):
    commands = ["cat other", "echo K=2 >> .env"]
    asked = [answer(call("bash", {"command": command}, f"c{n}")) for n, command in enumerate(commands)]
    s = stage(asked[0], answer(text("zzone")), asked[1], answer(text("zztwo")))
    (s.workspace / ".env").write_text("KEY=1")
    (s.workspace / "other").write_text("x")
    with Chat(s, "--no-sandbox", "--mode", "auto", columns=140) as chat:
        chat.prompt().say("first")
        chat.shows("zzone")
        chat.idle()
        assert not [line for line in chat.lines if "holds secrets" in line]
        chat.say("second")
        chat.shows("zztwo")
        chat.idle()
        told = [line for line in chat.lines if "holds secrets" in line]
        chat.leave()
    assert len(told) == 1
    assert "cannot be undone for 1 file whose content is not kept, as it usually holds secrets" in told[0]
