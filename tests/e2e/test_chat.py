"""The chat as a person meets it: the installed command in a real terminal, against a scripted server."""

import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from chat_terminal import FORBIDDEN, Chat
from stage import answer, call, chunk, text

UP, DOWN, SHIFT_TAB, CTRL_O, ALT_ENTER = "\x1b[A", "\x1b[B", "\x1b[Z", "\x0f", "\x1b\r"
PASTE = "\x1b[200~{}\x1b[201~"


def paced(words, gap_ms=30):
    """An answer whose words arrive one by one."""
    pieces = [{"bytes": chunk(text(word)), "delay_ms": gap_ms} for word in re.findall(r"\S+\s*", words)]
    end = {"bytes": chunk({}, "stop") + "data: [DONE]\n\n"}
    return {**answer(), "segments": [*pieces, end]}


def hanging(words):
    """An answer that does not end."""
    return answer(text(words), close="hang")


def last_user(stage, request=-1):
    """What the person last said in a request."""
    return [m["content"] for m in stage.requests()[request]["messages"] if m["role"] == "user"][-1]


# -- trust ---------------------------------------------------------------------


def test_what_a_folder_brings_is_shown_before_it_counts_and_asks_again_when_it_changes(stage):
    looks = [answer(call("read", {"path": "sub/x.txt"}, f"c{n}")) for n in range(2)]
    s = stage(
        looks[0],
        answer(text("zzone")),
        answer(text("zztwo")),
        looks[1],
        answer(text("zzthree")),
        answer(text("zzfour")),
    )
    (s.workspace / "sub").mkdir()
    (s.workspace / "AGENTS.md").write_text("Top says.\n")
    (s.workspace / "sub/AGENTS.md").write_text("Nested says.\n")
    (s.workspace / "sub/x.txt").write_text("x\n")
    with Chat(s) as chat:
        chat.prompt().say("look")
        chat.shows("not used: AGENTS.md", "Notes of sub/AGENTS.md are not followed:", "zzone")
        chat.idle()
        chat.say("/trust")
        chat.wait("yes, this content")
        assert all(any(words in line for line in chat.visible) for words in ("Top says.", "Nested says."))
        chat.send("y\r")
        chat.shows("Trusted, as it stands")
        chat.say("and now")
        chat.shows("zztwo")
        chat.leave()
    (s.workspace / "sub/AGENTS.md").write_text("Nested obeys.\n")
    with Chat(s, "-c") as chat:
        chat.prompt().say("look")
        chat.shows("Notes of sub/AGENTS.md are not followed:", "zzthree")
        chat.idle()
        chat.say("/trust off")
        chat.shows("This folder is not trusted any more.")
        chat.say("and now")
        chat.shows("zzfour")
        chat.leave()
    systems = [json.dumps(request["messages"][0]) for request in s.requests()]
    says = [("Top says" in each, "Nested says" in each, "Nested obeys" in each) for each in systems]
    no, both, top = (False, False, False), (True, True, False), (True, False, False)
    assert says == [no, no, both, top, top, no]


# -- sending -------------------------------------------------------------------


def test_a_message_and_its_answer(stage):
    s = stage(answer(text("Hello "), text("**world**.")))
    with Chat(s) as chat:
        chat.prompt().say("hi there")
        chat.shows("Hello world.")
        chat.idle()
        assert chat.leave() == 0
        assert chat.left_clean()
        assert chat.codes() == set()
        assert FORBIDDEN.findall(chat.raw) == []
        lines = chat.lines
    assert lines[lines.index("> hi there") :] == ["> hi there", "", "Hello world.", "", "1 turn · hypercode -c goes on"]
    assert last_user(s) == "hi there"


def test_new_lines_in_a_message(stage):
    s = stage(answer(text("zzdone")))
    with Chat(s) as chat:
        chat.prompt().send("one\ntwo" + ALT_ENTER + "three\\\rfour\r")
        chat.shows("zzdone")
        chat.leave()
    assert last_user(s) == "one\ntwo\nthree\nfour"


def test_a_message_at_once_waits_visibly_until_it_can_be_sent(stage):
    """The first message on the command line is there before the model's library is imported."""
    s = stage(answer(text("zzdone")))
    with Chat(s, "say it now") as chat:
        chat.wait(lambda: "sent as soon as it can be: say it now" in "\n".join(chat.visible) or bool(s.requests()))
        chat.send("a draft")
        chat.shows("zzdone", "> say it now")
        chat.idle()
        chat.wait("> a draft")
        assert "as soon as it can be" not in "\n".join(chat.lines)
        assert b"sent as soon as it can be" in chat.raw
        chat.send("\x03")
        chat.wait(lambda: chat.draft == ">")
        chat.leave()
    assert last_user(s) == "say it now"


def test_what_is_typed_while_a_reply_streams_waits_and_is_sent(stage):
    s = stage(paced("one two three four five six seven eight nine ten " * 4), answer(text("zzsecond")))
    with Chat(s) as chat:
        chat.prompt().say("first")
        chat.wait("one two")
        for typed in ("n", "ne", "nex", "next"):
            chat.send(typed[-1])
            assert chat.wait(lambda: chat.draft == f"> {typed}") < 1.0  # promised: 0.1  # noqa: B023
        chat.send("\rdraft")
        chat.wait("sent with the next model call: next")
        chat.shows("zzsecond", "> next")
        chat.idle()
        assert chat.draft == "> draft"  # it survived two replies, and the commits of both
        assert "next model call" not in "\n".join(chat.visible)
        chat.send("\x03")
        chat.leave()
        order = [line for line in chat.lines if line in ("> first", "> next", "zzsecond")]
    assert order == ["> first", "> next", "zzsecond"]
    roles = [m["role"] for m in s.requests()[1]["messages"]]
    assert (roles, last_user(s)) == (["system", "user", "assistant", "user"], "next")


def test_up_takes_a_waiting_message_back(stage):
    s = stage(hanging("one two"), answer(text("zzsecond")))
    with Chat(s) as chat:
        chat.prompt().say("first")
        chat.wait("one two")
        chat.say("alpha")
        chat.say("beta")
        chat.wait("next model call: beta")
        chat.send(UP)
        chat.wait(lambda: chat.draft == "> beta" and "call: beta" not in "\n".join(chat.visible))
        assert "next model call: alpha" in "\n".join(chat.visible)
        chat.send("\x03")
        chat.shows("[aborted]")
        chat.wait(lambda: "> alpha" in chat.visible and "  beta" in chat.visible)  # what waited is in the line again
        chat.send("\r")
        chat.shows("zzsecond")
        chat.leave()
    assert last_user(s).endswith("alpha\nbeta")


@pytest.mark.parametrize("kind", ["!", "/"])
def test_a_message_behind_a_command_is_sent(kind, stage):
    """What was typed while a shell command of one's own ran is sent after it."""
    s = stage(answer(text("zzdone")))
    with Chat(s) as chat:
        chat.prompt().say("!echo begun; sleep 1" if kind == "!" else "/help")
        chat.shows("begun" if kind == "!" else "/exit")
        chat.say("and now")
        chat.shows("zzdone")
        chat.leave()
    assert last_user(s) == "and now"


def test_a_shell_line_during_a_reply_is_not_lost(stage):
    s = stage(hanging("one two"))
    with Chat(s) as chat:
        chat.prompt().say("first")
        chat.wait("one two")
        chat.say("!echo hello")
        chat.shows("Something is running")
        chat.wait(lambda: chat.draft == "> !echo hello")
        chat.send("\x03")
        chat.shows("[aborted]")
        chat.idle()
        chat.send("\r")
        chat.wait("● ! echo hello")
        chat.leave()


# -- approval --------------------------------------------------------------------


def asking(*commands_):
    return answer(*(call("bash", {"command": c}, f"c{n}", n) for n, c in enumerate(commands_)))


def results(stage, request=-1):
    return [m["content"] for m in stage.requests()[request]["messages"] if m["role"] == "tool"]


def test_yes_once_and_a_draft_that_survives(stage):
    s = stage(asking("touch one", "touch two"), answer(text("zzdone")))
    with Chat(s) as chat:
        chat.prompt().say("go")
        chat.wait("│ touch one")
        chat.wait("waiting for you")
        chat.send("y")
        chat.wait("│ touch two")
        chat.send("x")  # no answer, but the beginning of a message
        chat.wait(lambda: chat.draft == "> x")
        chat.wait("yes, once")  # after a pause letters are answers again
        chat.send("n\r")
        chat.shows("zzdone")
        assert results(s) == ["[no output]", "refused: the user said no"]
        assert [(s.workspace / name).exists() for name in ("one", "two")] == [True, False]
        assert chat.draft == "> x"
        chat.send("\x7f")
        chat.leave()


def test_a_draft_survives_the_question_and_is_no_answer(stage):
    s = stage({**asking("touch one"), "segments": [{"bytes": chunk(text("zzbegun ")), "delay_ms": 0}, *[{**seg, "delay_ms": 500} for seg in asking("touch one")["segments"]]]}, answer(text("zzdone")))  # fmt: skip
    with Chat(s) as chat:
        chat.prompt().say("go")
        chat.wait("zzbegun")
        chat.send("yes I type")
        chat.wait("│ touch one")
        chat.wait("yes, once")
        assert not (s.workspace / "one").exists()
        chat.send("y")
        chat.shows("zzdone")
        chat.idle()
        chat.wait(lambda: chat.draft == "> yes I type")
        assert (s.workspace / "one").exists()
        chat.send("\x03")
        chat.leave()


def test_yes_for_this_session(stage):
    s = stage(asking("touch one", "touch two"), asking("touch three"), answer(text("zzdone")))
    with Chat(s) as chat:
        chat.prompt().say("go")
        chat.wait("│ touch one")
        chat.send("s")
        chat.shows("zzdone")
        assert chat.raw.count(b"touch two") > 0
        assert b"\xe2\x94\x82 touch two" not in chat.raw  # never asked
        chat.leave()
    assert results(s) == ["[no output]"] * 3


def test_always_is_kept_for_the_next_session(stage):
    s = stage(asking("touch one"), answer(text("zzdone")), asking("touch two"), answer(text("zzagain")))
    with Chat(s) as chat:
        chat.prompt().say("go")
        chat.wait("│ touch one")
        chat.wait("always")
        chat.send("a")
        chat.shows("zzdone")
        chat.idle()
        chat.leave()
    with Chat(s) as chat:
        chat.prompt().say("go")
        chat.shows("zzagain")
        assert b"\xe2\x94\x82 touch two" not in chat.raw
        chat.leave()
    assert [(s.workspace / name).exists() for name in ("one", "two")] == [True, True]


def test_no_and_why_goes_to_the_model(stage):
    s = stage(asking("touch one"), answer(text("zzdone")))
    with Chat(s) as chat:
        chat.prompt().say("go")
        chat.wait("│ touch one")
        chat.send("n")
        chat.wait("say why")
        chat.send("use trash instead\r")
        chat.shows("zzdone")
        chat.leave()
    assert results(s) == ["refused: the user said no: use trash instead"]


def test_an_edit_shows_its_diff_and_escapes_in_it(stage):
    s = stage(
        answer(call("write", {"path": "a.txt", "content": "alpha\n\x1b[31mbeta\n"}, "c1")), answer(text("zzdone"))
    )
    with Chat(s) as chat:
        chat.prompt().say("go")
        chat.wait("write a.txt?")
        chat.wait("+␛[31mbeta")
        chat.send("y")
        chat.shows("zzdone")
        assert chat.codes() == set()
        chat.leave()
    assert (s.workspace / "a.txt").read_text() == "alpha\n\x1b[31mbeta\n"


def test_foreign_escapes_stay_text_wherever_they_stand(stage):
    """In prose, code, tables, tool names, arguments, tool results and errors."""
    evil = "\x1b]52;c;aGFja2Vk\x07\x1b[2J\x9b31m\x1b]0;title\x07"
    (deltas := []).append(text(f"a{evil}b\n\n```\n{evil}\n```\n\n| {evil} | b |\n|---|---|\n| c | d |\n\n"))
    deltas.append({"reasoning": f"hm {evil}"})
    deltas.append(call("bash", {"command": f"printf '{evil}'; echo zzran"}, "c1", 0))
    deltas.append(call(f"no{evil}", {evil: evil}, "c2", 1))
    error = {**answer(), "http": {"status": 400, "headers": {}}, "framing": "length"}
    error["segments"] = [{"bytes": json.dumps({"error": {"message": f"zzbad {evil}"}})}]
    s = stage(answer(*deltas), error)
    with Chat(s, columns=120, rows=50) as chat:
        chat.prompt().say("go")
        chat.wait("Run this command?")
        chat.send("y")
        chat.shows("zzran", "zzbad")
        chat.idle()
        chat.send(CTRL_O)
        chat.shows("␛]52;c;aGFja2Vk")
        assert chat.codes() == set()
        assert FORBIDDEN.findall(chat.raw) == []
        chat.leave()
        assert chat.left_clean()


# -- modes, commands, shell lines --------------------------------------------------


@pytest.mark.parametrize("unboxed", [False, True])
def test_shift_tab_cycles_the_mode(unboxed, stage):
    with Chat(stage(), *(["--no-sandbox"] if unboxed else [])) as chat:
        chat.prompt()
        chat.wait(lambda: unboxed or "Sandbox" in "\n".join(chat.lines))
        modes = ["ask", "edits", "plan", "auto"] if unboxed or " · box: " in chat.status else ["ask", "edits", "plan"]
        for mode in [*modes[1:], modes[0]]:
            chat.send(SHIFT_TAB)
            chat.wait(lambda: f" · {mode} · " in chat.status)  # noqa: B023
        chat.leave()


@pytest.mark.parametrize("columns", [80, 40])
def test_the_help_keeps_its_columns(columns, stage):
    with Chat(stage(), columns=columns, rows=200) as chat:
        chat.prompt().say("/help")
        chat.shows("Up takes it back" if columns == 80 else "takes it back")
        drawn = [line.rstrip() for line in chat.lines]
        chat.leave()
    first = next(n for n, line in enumerate(drawn) if line.startswith("/add-dir"))
    listed = drawn[first : drawn.index("", first)]
    margin = re.match(r"/add-dir +", listed[0]).end() if columns == 80 else 2
    if columns == 80:
        assert all(line[0] in "/ " and line[margin - 1] == " " and line[margin] != " " for line in listed)
    else:
        assert all(re.fullmatch(r"/[\w-]+|  \S.*", line) for line in listed)
    assert [line for line in listed if line.startswith(" ")] != [], "some are longer than a row"
    said = [line.split()[0] for line in listed if line.startswith("/")]
    assert said == sorted(said)
    context = listed[next(n for n, line in enumerate(listed) if line.startswith("/context")) :]
    words = " ".join(line[margin:] if columns == 80 or line.startswith(" ") else "" for line in context[:3]).split()
    assert words[:8] == ["Show", "what", "fills", "the", "context,", "by", "part;", "~"]


def test_the_commands(stage):
    """Each is listed once and can be called; none of them breaks anything or leaves a traceback."""
    s = stage(answer(text("# zzfirst\n\n*answer*"), usage={"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "cost": 0.25}), *[answer(text(f"zzmore{n}")) for n in range(4)])  # fmt: skip
    (s.home / "editor.sh").write_text('#!/bin/sh\necho edited > "$1"\n')
    (s.home / "editor.sh").chmod(0o755)
    with Chat(s, rows=50, EDITOR=str(s.home / "editor.sh"), VISUAL="") as chat:
        chat.prompt().say("/help")
        chat.shows("/exit", "Up takes it back")
        listed = [
            line.split()[0] for line in chat.lines if re.match(r"/\w+ ", line) and not line.startswith("/help shows")
        ]
        assert listed == sorted(set(listed))
        assert {
            f"/{name}"
            for name in [
                "help",
                "model",
                "mode",
                "new",
                "retry",
                "continue",
                "raw",
                "copy",
                "cost",
                "context",
                "editor",
                "exit",
            ]
        } <= set(listed)
        chat.say("hello")
        chat.shows("zzfirst")
        chat.idle()
        chat.say("/retry")
        chat.shows("zzmore0")
        assert chat.lines[chat.lines.index("zzmore0") - 2 :][:2] == [
            "Asked again; the model no longer has the answer above.",
            "",
        ]
        chat.idle()
        chat.say("go on")
        chat.shows("zzmore1")
        chat.idle()
        chat.say("/cost")
        chat.shows("turns: 3", "7 sent, 3 received", "billed: $0.25")
        chat.say("/context")
        chat.shows("system prompt", "tool")
        chat.say("/raw")
        chat.wait(lambda: chat.lines.count("zzmore1") == 2)
        chat.say("/model other/m")
        chat.shows("model: other/m")
        chat.say("/mode plan")
        chat.shows("mode: plan")
        chat.say("/mode yolo")
        chat.shows("There is no mode 'yolo'")
        assert b"\x1b]52" not in chat.raw
        chat.say("/copy")
        chat.shows("Copied")
        assert b"\x1b]52;c;" in chat.raw
        chat.say("/editor")
        chat.wait(lambda: chat.draft == "> edited")
        chat.send("\x03")
        chat.wait(lambda: chat.draft == ">")
        chat.say("/new")
        chat.shows("A new conversation begins")
        chat.say("/exit")
        assert chat.finish() == 0
        assert chat.left_clean()
        assert "Traceback" not in "\n".join(chat.lines)
        assert "fault of hypercode" not in "\n".join(chat.lines)
    first, again, on = (r["messages"] for r in s.requests())
    assert again == first
    assert [m["role"] for m in on] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("words", ["exit", "quit", "/quit", "/q"])
def test_the_words_of_other_programs_leave_too(stage, words):
    s = stage()
    with Chat(s) as chat:
        chat.prompt().say(words)
        assert chat.finish() == 0
    assert not s.requests()


def test_the_words_of_other_programs_are_commands_too(stage):
    s = stage(answer(text("zzone")), answer(text("zztwo")))
    with Chat(s) as chat:
        chat.prompt().say("?")
        chat.shows("Enter sends")
        chat.say("hi")
        chat.shows("zzone")
        chat.idle()
        chat.say("/clear")
        chat.shows("A new conversation begins")
        chat.say("hello")
        chat.shows("zztwo")
        chat.leave()
    assert [m["content"] for m in s.requests()[1]["messages"][1:]] == ["hello"]


def test_a_slash_right_after_escape_is_a_slash(stage):
    s = stage()
    with Chat(s) as chat:
        chat.prompt().send("\x1b/help cost\r")
        chat.shows("/cost")
        chat.leave()
    assert not s.requests()


def test_a_whole_reply_is_not_continued(stage):
    s = stage(answer(text("zzone")), answer(text("zzhalf"), finish="length"), answer(text("zzrest")))
    with Chat(s) as chat:
        chat.prompt().say("hi")
        chat.shows("zzone")
        chat.idle()
        chat.say("/continue")
        chat.shows("The last reply is whole")
        chat.say("more")
        chat.shows("/continue goes on")
        chat.idle()
        chat.say("/continue")
        chat.shows("zzrest")
        chat.leave()
    assert len(s.requests()) == 3


def test_an_unknown_command_names_the_nearest_and_loses_nothing(stage):
    s = stage(answer(text("zzdone")))
    with Chat(s) as chat:
        chat.prompt().say("/modle other words")
        chat.shows("There is no command /modle. The nearest is /mode")
        chat.wait(lambda: chat.draft == ">")
        chat.send("\x1b[A")
        chat.wait(lambda: chat.draft == "> /modle other words")
        chat.send("\x03")
        chat.wait(lambda: chat.draft == ">")
        chat.say("/etc/passwd is a path")  # not a command
        chat.shows("zzdone")
        chat.leave()
    assert last_user(s) == "/etc/passwd is a path"


def test_shell_lines(stage):
    """`!` is shown to the model, `!!` is not; both are shown to the person."""
    s = stage(answer(text("zzdone")))
    with Chat(s) as chat:
        chat.prompt().say("!echo shared-$((1+1))")
        chat.wait("● ! echo shared")
        chat.wait(lambda: "  shared-2" in chat.lines)
        chat.idle()
        chat.say("!!echo zzhidden-$((2+2))")
        chat.wait("● !! echo zzhidden")
        chat.wait(lambda: "  zzhidden-4" in chat.lines)
        chat.idle()
        chat.say("!echo zzpart; sleep 999")
        chat.wait(lambda: "running" in chat.status and "  zzpart" in chat.lines)
        chat.send("\x03")
        chat.wait("✗ [stopped]")
        assert chat.lines[chat.lines.index("  ✗ [stopped]") - 1] == "  zzpart"  # what was shown stays
        chat.idle()
        s.workspace.rename(s.home / "elsewhere")
        chat.say("!true")
        chat.shows("✗ io: the workspace")
        (s.home / "elsewhere").rename(s.workspace)
        chat.idle()
        chat.say("what did I do?")
        chat.shows("zzdone")
        chat.leave()
        assert "fault of hypercode" not in "\n".join(chat.lines)
        assert "[aborted]" not in "\n".join(chat.lines)
    sent = json.dumps(s.requests()[0])
    assert "shared-2" in sent
    assert "$ echo zzpart; sleep 999\\nzzpart\\n[stopped]" in sent
    assert "zzhidden" not in sent
    assert subprocess.run(["pgrep", "-f", "sleep 999"], capture_output=True, check=False).stdout == b""


def test_completion_of_commands_and_files(stage):
    s = stage(answer(text("zzdone")))
    subprocess.run(["git", "init", "-q", str(s.workspace)], check=True)
    (s.workspace / "deep").mkdir()
    for name in ("deep/parser.py", "deep/printer.py", "notes with blank.txt", "ignored.log"):
        (s.workspace / name).write_text("x")
    (s.workspace / ".gitignore").write_text("*.log\n")
    with Chat(s) as chat:
        chat.prompt().send("/mod")
        chat.wait(" /model ")
        chat.send("\x03")
        chat.wait(lambda: chat.draft == ">")
        chat.send("read @parspy")
        chat.wait(lambda: any("deep/parser.py" in line and not line.startswith(">") for line in chat.visible))
        chat.send("\t")
        chat.wait(lambda: chat.draft == "> read @deep/parser.py")
        chat.send("\x03")
        chat.wait(lambda: chat.draft == ">")
        chat.send("@dee")
        chat.wait(lambda: any("deep/" in line and not line.startswith(">") for line in chat.visible))
        chat.send("\t")
        chat.wait(lambda: chat.draft == "> @deep/")
        chat.send("\x03")
        chat.wait(lambda: chat.draft == ">")
        chat.send("read @deep/parser.py and @blank")
        chat.wait(lambda: any("notes with blank.txt" in line and not line.startswith(">") for line in chat.visible))
        chat.send("\t")
        chat.wait(lambda: chat.draft == '> read @deep/parser.py and @"notes with blank.txt"')
        chat.send(" and @ignored")
        chat.pump(0.5)
        assert "@ignored.log" not in "\n".join(chat.visible)
        chat.send("\r")
        chat.shows("zzdone", "· attached deep/parser.py, 1 line", "· attached notes with blank.txt, 1 line")
        chat.leave()
    said, _, files = last_user(s).partition("\n\n[Attached")
    assert said == 'read @deep/parser.py and @"notes with blank.txt" and @ignored'
    assert "\ndeep/parser.py:\n     1\tx\n" in files
    assert "\nnotes with blank.txt:\n     1\tx\n" in files


def test_a_command_that_becomes_a_message_is_shown_as_it_was_typed(stage):
    s = stage(answer(text("zzfirst"), finish="length"), answer(text("zzsecond")))
    with Chat(s) as chat:
        chat.prompt().say("/init")
        chat.shows("zzfirst", "> /init")
        chat.idle()
        chat.say("/continue")
        chat.shows("zzsecond", "> /continue")
        chat.idle()
        assert "AGENTS.md" not in "\n".join(chat.lines)
        assert "Continue exactly" not in "\n".join(chat.lines)
        chat.say("/rewind")
        chat.wait("  2  /init")
        assert any("▶  1  /continue" in line for line in chat.visible)
        chat.send("\x1b")
        chat.wait(lambda: chat.draft == ">")
        assert "AGENTS.md" not in "\n".join(chat.lines)
        chat.leave()
    assert "AGENTS.md" in last_user(s, 0)
    assert "Continue exactly" in last_user(s, 1)
    with Chat(s, "-c") as chat:
        chat.shows("> /continue", "zzsecond")
        chat.say("/rewind continue")
        chat.wait(lambda: chat.draft == "> /continue")
        chat.send("\x03")
        chat.leave()


def test_a_long_paste_is_folded_and_sent_whole(stage):
    s = stage(answer(text("zzdone")))
    lines = "\r\n".join(f"line {n}" for n in range(20))
    with Chat(s) as chat:
        chat.prompt().send("see: " + PASTE.format(lines))
        chat.wait(lambda: chat.draft == "> see: [pasted 20 lines #1]")
        chat.send("\r")
        chat.shows("zzdone")
        chat.leave()
    assert last_user(s) == "see: " + "\n".join(f"line {n}" for n in range(20))


def test_the_history_is_kept_across_runs(stage):
    s = stage(answer(text("zzdone")))
    with Chat(s) as chat:
        chat.prompt().say("remember me")
        chat.shows("zzdone")
        chat.idle()
        chat.say("!!echo two")
        chat.wait("● !! echo two")
        chat.idle()
        chat.leave()
    with Chat(s) as chat:
        chat.prompt().send(UP)
        chat.wait(lambda: chat.draft == "> !!echo two")
        chat.send(UP)
        chat.wait(lambda: chat.draft == "> remember me")
        chat.send("\x03\x12remem")
        chat.wait("remember me")
        chat.send("\x07\x03")
        chat.send("\x03")
        chat.finish()
    files = [p for p in (s.home / "hypercode").rglob("history/*") if p.is_file()]
    assert [oct(p.stat().st_mode & 0o777) for p in files] == ["0o600"]


def test_ctrl_o_shows_what_was_folded(stage):
    s = stage(answer(call("bash", {"command": "seq 1 40"}, "c1")), answer(text("zzdone")))
    with Chat(s, rows=60) as chat:
        chat.prompt().say("go")
        chat.shows("zzdone", "35 lines more above")
        chat.idle()
        assert "17" not in [line.strip() for line in chat.lines]
        chat.send(CTRL_O)
        chat.wait(lambda: [line.strip() for line in chat.lines].count("17") == 1)
        chat.leave()


def test_ctrl_c_when_idle(stage):
    """It clears the line; twice within a second it leaves."""
    with Chat(stage()) as chat:
        chat.prompt().send("some words")
        chat.wait("> some words")
        cleared = time.monotonic()
        chat.send("\x03")
        chat.wait(lambda: chat.draft == ">")
        chat.wait(lambda: time.monotonic() > cleared + 1.1)
        chat.send("\x03")
        chat.wait("Ctrl-C again leaves")
        chat.wait(lambda: "leaves" not in chat.status)  # after a second it no longer does
        chat.send("\x03")
        chat.wait("Ctrl-C again leaves")
        chat.send("\x03")
        assert chat.finish() == 0
        assert chat.left_clean()


@pytest.mark.parametrize("way", ["ctrl-d", "exit", "term", "hangup", "during a reply"])
def test_the_terminal_is_as_it_was(way, stage):
    s = stage(hanging("one two"))
    with Chat(s) as chat:
        chat.prompt()
        if way == "during a reply":
            chat.say("go")
            chat.wait("one two")
        match way:
            case "ctrl-d" | "during a reply":
                chat.send("\x04")
            case "exit":
                chat.say("/exit")
            case "term":
                os.kill(chat.process.pid, 15)
            case "hangup":
                os.kill(chat.process.pid, 1)
        assert chat.finish() == {"term": 143, "hangup": 129}.get(way, 0)
        assert chat.left_clean()
        assert not any(line.startswith("script/s") for line in chat.lines)


# -- odd terminals ------------------------------------------------------------------

REPLY = "# Title\n\nzzbegin some **bold** words and `code` that go on for a while.\n\n- item\n\n```python\nx = 1\n```\n\nzzend\n"


@pytest.mark.parametrize(("columns", "rows"), [(40, 24), (20, 24), (10, 24), (80, 8), (80, 4), (10, 4)])
def test_small_terminals(columns, rows, stage):
    s = stage(paced(REPLY, 10), asking("touch one"), answer(text("zzdone")))
    with Chat(s, columns=columns, rows=rows) as chat:
        chat.prompt().say("hi")
        chat.shows("zzend")
        chat.pump(0.2)
        chat.say("go")
        chat.wait(lambda: len(s.requests()) == 2)
        chat.wait(lambda: any(line.startswith("y ") for line in chat.visible) and "│" in "".join(chat.visible))
        chat.send("y")
        chat.shows("zzdone")
        flat = re.sub(r"\s+", "", "".join(chat.lines))
        assert [flat.count(word) for word in ("zzbegin", "zzend", "zzdone")] == [1, 1, 1]
        assert chat.leave() == 0
        assert chat.left_clean()
    assert (s.workspace / "one").exists()


def test_resizing_while_a_reply_streams(stage):
    words = " ".join(f"W{n:03d}" for n in range(150))
    s = stage(paced(words, 10))
    with Chat(s) as chat:
        chat.prompt().say("hi")
        chat.wait("W005")
        for columns, rows in ((60, 20), (50, 24), (80, 12), (100, 30)):
            chat.resize(columns, rows)
            chat.pump(0.1)
        chat.shows("W149")
        chat.idle()
        chat.leave()
        flat = "".join(chat.lines)
        assert all(f"W{n:03d}" in flat for n in range(150))


def test_a_hundred_interrupts_from_elsewhere_leave_in_order(stage):
    """Whatever falls into the end of the session, into that of the event loop and into that of the interpreter."""
    s = stage(answer(text("zzdone")))
    with Chat(s) as chat:
        before = termios.tcgetattr(chat.master)
        chat.prompt().say("hi")
        chat.shows("zzdone")
        chat.idle()
        until = time.monotonic() + 20
        while chat.process.poll() is None and time.monotonic() < until:
            chat.process.send_signal(signal.SIGINT)
            chat.pump(0.003)
        assert chat.finish() == 0
        assert termios.tcgetattr(chat.master) == before
        assert chat.raw.rfind(b"\x1b[?2004l") > chat.raw.rfind(b"\x1b[?2004h")
        assert "Traceback" not in "\n".join(chat.lines)
        assert chat.visible[-1] == "1 turn · hypercode -c goes on"


def test_the_clock_of_a_shell_line_is_its_own(stage):
    s = stage()
    with Chat(s) as chat:
        chat.prompt().say("!sleep 1.2")
        chat.shows("no output")
        chat.idle()
        chat.say("!sleep 30")
        chat.wait(lambda: "running !" in chat.status)
        assert re.search(r"running !( 0\.\d s)?$", chat.status)
        chat.send("\x03")
        chat.shows("[stopped]")
        chat.idle()
        chat.leave()


def test_the_status_line_fits_a_window_that_was_resized_while_idle(stage):
    s = stage(answer(text("zzdone"), usage={"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909}))
    with Chat(s) as chat:
        chat.prompt().say("hi")
        chat.shows("zzdone")
        chat.idle()
        wide = r"script/s · ask · box: bubblewrap · context 909 tokens · [\d.]+ s"
        chat.wait(lambda: re.fullmatch(wide, chat.status))
        chat.resize(40, 24)
        chat.wait(lambda: chat.status == "script/s · ask · box")
        chat.resize(80, 24)
        chat.wait(lambda: re.fullmatch(wide, chat.status))
        chat.leave()


@pytest.mark.parametrize("plain", [[], ["--plain"]])
def test_ctrl_d_at_an_approval_is_a_no_and_no_end(plain, stage):
    s = stage(asking("touch one"), answer(text("zzfirst")), answer(text("zzsecond")))
    end = "\n" if plain else "\r"
    with Chat(s, *plain) as chat:
        chat.wait(lambda: any(line.startswith(">") for line in chat.visible))
        chat.send(f"go{end}")
        chat.wait("yes, once")
        chat.send("\x04")
        chat.shows("zzfirst")
        chat.send(f"more{end}")
        chat.shows("zzsecond")
        chat.send("\x04")
        assert chat.finish() == 0
    assert results(s, 1) == ["refused: the user said no"]
    assert not (s.workspace / "one").exists()


def test_in_four_rows_it_is_said_that_not_all_of_a_question_is_seen(stage):
    s = stage(asking("touch one"), answer(text("zzdone")))
    with Chat(s, rows=4) as chat:
        chat.prompt().say("go")
        chat.wait("2 of 3 rows not shown, PgDn")
        chat.send("\x1b[6~")
        chat.wait("│ touch one")
        chat.send("y\r")
        chat.shows("zzdone")
        chat.leave()


def test_a_retry_counts_down_in_the_status_line(stage):
    busy = {**answer(), "http": {"status": 429, "headers": {"Retry-After": "3", "Content-Type": "application/json"}}}
    s = stage({**busy, "segments": [{"bytes": '{"error": {"message": "slow down"}}'}]}, answer(text("zzdone")))
    with Chat(s) as chat:
        chat.prompt().say("hi")
        for left in (3, 2, 1):
            chat.wait(lambda: f"retrying in {left} s" in chat.status)  # noqa: B023
        chat.shows("zzdone")
        chat.leave()


@pytest.mark.parametrize("how", ["--plain", "TERM=dumb"])
def test_a_plain_terminal_gets_the_source_and_no_escapes(how, stage):
    s = stage(answer(text(REPLY + "\x1b[2J")), asking("touch one"), answer(text("zzdone")))
    arguments, environment = (["--plain"], {}) if how == "--plain" else ([], {"TERM": "dumb"})
    with Chat(s, *arguments, **environment) as chat:
        chat.wait(lambda: chat.visible[-1:] == [">"])
        chat.send("hi\n")
        chat.shows("zzend")
        chat.send("go\n")
        chat.wait("[y] yes, once")
        chat.send("y\n")
        chat.shows("zzdone")
        chat.send("/help\n")
        chat.shows("Enter sends · a trailing \\ goes on in a new line")
        chat.send("/editor\n")
        chat.shows("A plain terminal has no message to edit")
        assert not any(word in line for line in chat.lines for word in ("Tab completes", "Shift-Tab", "Ctrl-L"))
        chat.send("\x04")
        assert chat.finish() == 0
        assert b"\x1b" not in chat.raw
        assert not any(line.startswith("> hypercode") for line in chat.lines)
        assert "not sent" not in "\n".join(chat.lines)
        assert "# Title" in chat.lines
        assert "zzbegin some **bold** words and `code` that go on for a while." in chat.lines
        assert "```python" in chat.lines
    assert (s.workspace / "one").exists()


def test_without_a_terminal_a_sentence_is_a_task(stage):
    s = stage(answer(text(REPLY + "\x1b[2J")))
    done = s.run("say it now")
    assert (done.returncode, done.stdout) == (0, REPLY + "␛[2J\n")
    assert "\x1b" not in done.stderr


def test_no_color(stage):
    s = stage(answer(text(REPLY)), asking("touch one"), answer(text("zzdone")))
    with Chat(s, NO_COLOR="1") as chat:
        chat.prompt().say("hi")
        chat.shows("zzend")
        chat.idle()
        chat.say("go")
        chat.wait("│ touch one")
        chat.send("y")
        chat.shows("zzdone")
        chat.leave()
        codes = {int(code or 0) for sgr in re.findall(rb"\x1b\[([0-9;]*)m", chat.raw) for code in sgr.split(b";")}
    assert codes <= {0, 1, 2, 3, 4, 7, 9, 22, 23, 24, 27}


@pytest.mark.parametrize("plain", [False, True])
def test_a_locale_without_utf8(plain, stage):
    s = stage(answer(text("Grüße 中文 zzdone\n\n- item\n")), asking("touch one"), answer(text("zzend")))
    with Chat(
        s, *(["--plain"] if plain else []), LANG="C", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
    ) as chat:
        if plain:
            chat.wait(lambda: chat.visible[-1:] == [">"])
        else:
            chat.prompt()
        chat.send("hi\n" if plain else "hi\r")
        chat.shows("zzdone")
        chat.pump(0.3)
        chat.send("go\n" if plain else "go\r")
        chat.wait("yes, once")
        chat.send("y\n" if plain else "y")
        chat.shows("zzend")
        chat.send("\x04")
        assert chat.finish() == 0
        assert "Traceback" not in "\n".join(chat.lines)


def test_columns_in_the_environment_do_not_count(stage):
    s = stage(answer(text("word " * 30)))
    with Chat(s, COLUMNS="40", LINES="10") as chat:
        chat.prompt().say("hi")
        chat.wait(lambda: any(len(line) > 70 and line.startswith("word") for line in chat.lines))
        chat.leave()


# -- tool calls as they stream ------------------------------------------------------


def test_a_tools_name_is_shown_below_the_text_while_its_arguments_stream(stage):
    pieces = [
        {"bytes": chunk(text("I will look "))},
        {"bytes": chunk(text("first."))},
        {"bytes": chunk({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "grep", "arguments": ""}}]})},
        {"bytes": chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"pattern": "nee'}}]}), "delay_ms": 700},
        {"bytes": chunk({"tool_calls": [{"index": 0, "function": {"arguments": 'dle"}'}}]}) + chunk({}, "tool_calls") + "data: [DONE]\n\n", "delay_ms": 300},
    ]  # fmt: skip
    s = stage({**answer(), "segments": pieces}, answer(text("zzdone")))
    (s.workspace / "hay.txt").write_text("a needle\n")
    with Chat(s) as chat:
        chat.prompt().say("go")
        chat.wait("○ grep")
        shown = chat.visible
        assert shown.index("I will look first.") < next(n for n, line in enumerate(shown) if line.startswith("○ grep"))
        chat.shows("zzdone")
        chat.leave()
        lines = chat.lines
    start = lines.index("> go")
    assert re.sub(r"  \d\.\d s$", "", lines[start + 4]) == "● grep needle"
    assert lines[start : start + 4] == ["> go", "", "I will look first.", ""]
    assert "○" not in "".join(lines)


def test_undo_does_not_say_that_it_took_back_what_it_could_not(stage):
    s = stage(answer(call("write", {"path": "d/new.txt", "content": "x\n"}, "c")), answer(text("zzdone")))
    (s.workspace / "d").mkdir()
    with Chat(s, "--mode", "edits") as chat:
        chat.prompt().say("go")
        chat.shows("zzdone")
        chat.idle()
        (s.workspace / "d").rename(s.home / "away")
        (s.workspace / "d").symlink_to(s.home / "away")
        chat.say("/undo")
        chat.shows("Not taken back: write d/new.txt", "not d/new.txt: its links lead in a circle")
        chat.leave()
        assert not [line for line in chat.lines if line.startswith("Taken back")]
    assert (s.home / "away/new.txt").read_text() == "x\n"


def test_a_plain_terminal_shows_the_first_message_and_always_a_prompt(stage):
    s = stage(answer(text("zzhello")))
    with Chat(s, "--plain", "a first message") as chat:
        chat.wait(lambda: {"> a first message", "zzhello", ">"} <= set(chat.lines))
        drawn = [line for line in chat.lines if line]
        assert drawn.index("> a first message") < drawn.index("zzhello") < drawn.index(">") == len(drawn) - 1
        chat.send("/nonsense\n")
        chat.shows("There is no command /nonsense")
        chat.wait(lambda: [line for line in chat.lines if line][-1] == ">")
