"""The tour: the chat itself with a scripted model, in real terminals and as a pipe; it leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from chat_terminal import FORBIDDEN, Chat
from demo_screens import CASES, captured, told
from readme_block import shown
from stage import HYPERCODE

from hypercode.demo_script import HIDDEN, SHOWN

CTRL_C, CTRL_D = "\x03", "\x04"
EDIT, COMMAND = "edit tea.py?", "Run this command?"
CUT, WHOLE, UNDONE = "it would say", "always between", "Taken back: edit tea.py"
CARD = "That was the tour; nothing of it is kept. What next?"
COLOURS = re.compile(rb"\x1b\[[0-9;]*m")

WATCH = """
import os, sys

def watch(event, args):
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"):
        note(event)
    elif event == "open" and isinstance(args[0], (str, bytes)) and os.fsdecode(args[0]).startswith(os.environ["WATCHED"]):
        note("open " + os.fsdecode(args[0]))

def note(text):
    with open(os.environ["NOTES"], "a") as file:
        file.write(text + "\\n")

note("watching")
sys.addaudithook(watch)
"""


@pytest.fixture
def tour(stage, tmp_path):
    """Begin a tour on a terminal; afterwards nothing of it is left, and nothing of the person's was touched."""
    s = stage()
    temp = tmp_path / "temp"
    temp.mkdir()
    before = sorted(s.home.rglob("*"))

    def begin(*arguments, speed="20", **options):
        return Chat(s, "demo", "--speed", speed, *arguments, TMPDIR=str(temp), **options)

    yield begin
    assert sorted(temp.iterdir()) == []
    assert sorted(s.home.rglob("*")) == before
    assert s.requests() == []


def answered(chat, *answers):
    """Answer the questions in order; an answer that is more than a key is a reason."""
    for question, answer in zip((EDIT, COMMAND), answers, strict=True):
        chat.wait(f"│ {question}")
        chat.send(answer)
        chat.wait(lambda: not any(f"│ {question}" in line for line in chat.visible))  # noqa: B023
    return chat


def test_the_whole_tour(tour):
    with tour() as chat:
        answered(chat, "y", "y")
        assert chat.finish() == 0
        assert chat.left_clean()
        assert chat.codes() == set()
        assert FORBIDDEN.findall(chat.raw) == []
        lines = told(chat.lines)
    assert lines == (CASES / "terminal.txt").read_text().splitlines()


@pytest.mark.parametrize(
    ("edit", "command", "said"),
    [
        ("n\r", "y", ["As you like: tea.py stays", "FAILED (failures=2)", "The tests fail as they did before"]),
        ("nuse zfill\r", "y", ['You said: "use zfill".', "FAILED (failures=2)", "The tests fail as they did before"]),
        ("n\r", "n\r", ["As you like", "Nothing was changed and nothing was run: you have the last word."]),
        ("y", "nlater\r", ["tea.py is changed, but not tested: you have the last word.", 'I have read why: "later".']),
        ("s", "a", ["both tests pass"]),
    ],
)
def test_each_answer_goes_on_well(tour, edit, command, said):
    with tour() as chat:
        answered(chat, edit, command)
        assert chat.finish() == 0
        text = " ".join(" ".join(chat.lines).split())
    assert [words for words in [*said, CUT, WHOLE, CARD] if words not in text] == []
    assert (UNDONE in text) == (edit in ("y", "s"))  # where nothing was changed there is nothing to take back
    assert ("both tests pass" in text) == (edit == "s")


def test_ctrl_c_of_the_person_stops_the_reply(tour):
    """It goes on from where it was stopped, not from where the tour would have stopped it."""
    with tour(speed="3") as chat:
        answered(chat, "y", "y")
        chat.shows("Behind the colon")
        chat.send(CTRL_C)
        assert chat.finish() == 0
        text = " ".join(" ".join(chat.lines).split())
    before, after = text.split("[aborted]")
    assert (CUT in before, CUT in after, WHOLE in after) == (False, True, True)


def test_ctrl_c_at_a_question_goes_on_with_the_next_scene(tour):
    with tour() as chat:
        chat.wait(EDIT)
        chat.send(CTRL_C)
        chat.shows("[aborted]", CUT, WHOLE)
        assert chat.finish() == 0
        text = "\n".join(chat.lines)
    assert (COMMAND in text, UNDONE in text, CARD in text) == (False, False, True)


@pytest.mark.parametrize(
    "moment", ["A tour of a minute", "> the clock says 2:5", "Fixed, and both", "Behind the colon"]
)
def test_it_can_be_left_at_any_moment(tour, moment):
    """While something is said of the tour, while it types, while a reply is written, before it is stopped."""
    with tour(speed="4") as chat:
        if moment.startswith(("Fixed", "Behind")):
            answered(chat, "y", "y")
        chat.shows(moment)
        assert chat.leave() == 0
        assert chat.left_clean()
        assert chat.lines[-4] == CARD
        assert not any(UNDONE in line for line in chat.lines)


def test_a_message_of_the_person_is_answered_and_the_tour_goes_on(tour):
    with tour(speed="6") as chat:
        chat.prompt().say("what is your name?")
        chat.shows("> what is your name?", "That is beyond me")
        answered(chat, "y", "y")
        chat.shows("What was shown is kept")
        chat.say("and mine?")
        chat.shows("> and mine?")
        assert chat.finish() == 0
        text = "\n".join(chat.lines)
    assert text.count("That is beyond me") == 2
    assert (WHOLE in text, UNDONE in text, CARD in text) == (True, True, True)


def test_exit_and_twice_ctrl_c(tour):
    with tour() as chat:
        chat.prompt().say("/exit")
        assert chat.finish() == 0
        assert chat.lines[-4] == CARD
    with tour(speed="1") as chat:
        chat.shows("A tour of a minute")
        chat.send(CTRL_C)
        chat.wait("Ctrl-C again leaves")
        chat.send(CTRL_C)
        assert chat.finish() == 0
        assert chat.lines[-4] == CARD


def test_step_asks_before_each_scene(tour):
    with tour("--step") as chat:
        chat.wait("Next: the clock says")
        chat.send("n")
        answered(chat, "y", "y")
        chat.wait("Next: and how does")
        chat.send("q")
        assert chat.finish() == 0
        text = "\n".join(chat.lines)
    assert ("Behind the colon" in text, CARD in text) == (False, True)


def test_forty_columns(tour):
    with tour(columns=40, rows=20) as chat:
        answered(chat, "y", "y")
        assert chat.finish() == 0
        assert chat.left_clean()
        assert chat.codes() == set()
        text = " ".join(" ".join(chat.lines).split())
    assert [words for words in ["both tests pass", CUT, WHOLE, UNDONE, CARD] if words not in text] == []


def test_the_answers_keep_their_words_on_a_small_terminal(tour):
    with tour(columns=40, rows=15) as chat:
        chat.wait(lambda: chat.visible[-2:-1] == ["n no (then say why, or Enter)"])
        assert chat.visible[-4:-1] == ["y yes, once", "s yes, edits for this session", "n no (then say why, or Enter)"]
        chat.send("y")
        chat.wait(lambda: "a always: saves the rule 'python3 -m" in chat.visible and chat.visible[-2][:4] == "n no")
        assert chat.visible[-10:-1] == [
            "│ Run this command?",
            "│ python3 -m unittest",
            "│ (not on the list of readers)",
            "y yes, once",
            "s yes, 'python3 -m unittest' for this",
            "  session",
            "a always: saves the rule 'python3 -m",
            "  unittest'",
            "n no (then say why, or Enter)",
        ]
        chat.send("y")
        assert chat.finish() == 0


def test_no_color_and_a_dumb_terminal(tour):
    with tour(NO_COLOR="1") as chat:
        answered(chat, "y", "y")
        assert chat.finish() == 0
        codes = {code for found in COLOURS.findall(chat.raw) for code in found[2:-1].split(b";")}
        uncoloured = chat.lines
    assert codes <= {b"", b"0", b"1", b"2", b"3", b"7", b"22", b"23"}  # 7: the cursor in the input line
    with tour(TERM="dumb", rows=40) as chat:
        for question in (EDIT, COMMAND):
            chat.wait(f"| {question}")
            chat.wait(lambda: chat.visible[-1] == "?")
            chat.send("y\r")
        assert chat.finish() == 0
        assert b"\x1b" not in chat.raw
        assert chat.lines[-4] == CARD
    assert uncoloured[-4] == CARD


# -- without a terminal ------------------------------------------------------------


def piped(stage, tmp_path, *arguments, stdin="", **environment):
    temp = tmp_path / "temp"
    temp.mkdir(exist_ok=True)
    done = stage.run("demo", *arguments, stdin=stdin, TMPDIR=str(temp), **environment)
    assert sorted(temp.iterdir()) == []
    return done


def test_as_a_pipe_it_plays_at_once(stage, tmp_path):
    done = piped(stage(), tmp_path, stdin="n\nwhat is this?\n/exit\n")
    assert (done.returncode, done.stderr) == (0, "")
    lines = told(done.stdout.splitlines())
    assert lines == (CASES / "piped.txt").read_text().splitlines()
    assert SHOWN in done.stdout
    assert HIDDEN.strip() in done.stdout


def test_it_opens_no_connection_and_reads_nothing_of_the_persons(stage, tmp_path):
    s = stage()
    own = s.home / "hypercode"
    own.mkdir(mode=0o700)
    (own / "config.toml").write_text('api_key = "sk-test-not-a-key"\nmode = "plan"\nvi = true\n')
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    notes = tmp_path / "notes"
    watched = {"PYTHONPATH": str(tmp_path), "WATCHED": str(own), "NOTES": str(notes)}
    before = {path: path.read_bytes() for path in own.rglob("*")}
    done = piped(s, tmp_path, **watched)
    assert (done.returncode, done.stderr) == (0, "")
    # The first is this process; the others run inside the tour.
    assert set(notes.read_text().splitlines()) == {"watching"}
    assert {path: path.read_bytes() for path in own.rglob("*")} == before
    s.run("models", **watched)
    assert {"socket.connect", f"open {own / 'config.toml'}"} <= set(notes.read_text().splitlines())


def test_a_reader_that_goes_away_is_no_fault(stage, tmp_path):
    s, temp = stage(), tmp_path / "temp"
    temp.mkdir()
    line = f"set -o pipefail; {HYPERCODE} demo | head -n 1"
    done = subprocess.run(
        ["bash", "-c", line], env=s.environment(TMPDIR=str(temp)), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    assert sorted(temp.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--speed", "0"], "--speed: must be a number above 0, not 0"),
        (["--speed", "nan"], "--speed: must be a number above 0, not nan"),
        (["--step"], "--step: needs a terminal"),
    ],
)
def test_what_cannot_be_is_said(stage, tmp_path, arguments, words):
    done = piped(stage(), tmp_path, *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr


def test_where_no_folder_can_be_made(stage, tmp_path):
    """tempfile falls back to other places, so the last of them is taken away as well: no file may have a byte."""
    line = f"ulimit -f 0; export PYTHONDONTWRITEBYTECODE=1; exec {HYPERCODE} demo"
    s = stage()
    done = subprocess.run(["bash", "-c", line], env=s.environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "no temporary folder can be made" in done.stderr


# -- its end ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "moment", "code"),
    [
        (signal.SIGTERM, "A tour of a minute", 143),
        (signal.SIGTERM, EDIT, 143),
        (signal.SIGHUP, "> the clock", 129),
        (signal.SIGTERM, "Behind the colon", 143),
    ],
)
def test_a_signal_leaves_nothing_behind(tour, number, moment, code):
    with tour(speed="4") as chat:
        if moment.startswith("Behind"):
            answered(chat, "y", "y")
        chat.shows(moment)
        chat.process.send_signal(number)
        assert chat.finish() == code
        assert CARD not in "\n".join(chat.lines)


def test_ctrl_c_ends_it_where_nobody_can_answer(stage, tmp_path):
    s, temp = stage(), tmp_path / "temp"
    temp.mkdir()
    process = subprocess.Popen(
        [HYPERCODE, "demo", "--speed", "1"],
        env=s.environment(TMPDIR=str(temp)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        while "A tour of a minute" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err, CARD in out) == (130, "", False)
    assert sorted(temp.iterdir()) == []


def test_what_a_killed_tour_left_is_removed_by_the_next(stage, tmp_path):
    s, temp = stage(), tmp_path / "temp"
    temp.mkdir()

    def begun():
        process = subprocess.Popen(
            [HYPERCODE, "demo", "--speed", "0.1"],
            env=s.environment(TMPDIR=str(temp)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        while "A tour of a minute" not in process.stdout.readline():
            assert process.poll() is None
        return process

    with begun() as killed:
        killed.kill()
    [left] = temp.iterdir()
    with begun() as running:
        [other] = set(temp.iterdir()) - {left}
        foreign = temp / "hypercode-demo-link"
        foreign.symlink_to(tmp_path)
        for folder in (left, other):
            os.utime(folder, (1, 1))
        done = s.run("demo", "--instant", TMPDIR=str(temp))
        assert (done.returncode, done.stderr) == (0, "")
        assert set(temp.iterdir()) == {other, foreign}
        assert (other / "tea").is_dir()
        running.send_signal(signal.SIGTERM)
    assert sorted(temp.iterdir()) == [foreign]


def test_the_tour_in_readme_is_a_real_one():
    assert shown("demo_screens.py") == captured(), "python tests/e2e/demo_screens.py writes it anew"
