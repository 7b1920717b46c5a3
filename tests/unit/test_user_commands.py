"""The person's own slash commands."""

import os

import pytest

from hypercode.memory.user_commands import load
from hypercode.safety.trust import Trust


def commands(tmp_path, **texts):
    folder = tmp_path / "commands"
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    return load([folder], builtin=["help", "model"])


@pytest.mark.parametrize(
    ("body", "arguments", "message"),
    [
        ("Review $ARGUMENTS now", "a b", "Review a b now"),
        ("From $1 to $2.", "a b c", "From a to b."),
        ("From $1 to $2.", "'a b' c", "From a b to c."),
        ("From $1 to $2.", "it's here", "From it's to here."),
        ("Only $1[$2]", "x", "Only x[]"),
        ("$1 and $ARGUMENTS", "$2 $1", "$2 and $2 $1"),
        ("$ARGUMENTS", r"\1 \g<0> $$", r"\1 \g<0> $$"),
        ("It costs $100, ${1} and $ARGUMENTSX", "", "It costs $100, ${1} and $ARGUMENTSX"),
        (r"Literally \$1 and \$ARGUMENTS", "", "Literally $1 and $ARGUMENTS"),
        ("No place for it", "here it is", "No place for it\n\nhere it is"),
        ("No place for it", "", "No place for it"),
        ("A $1 B", "", "A  B"),
        ("!`touch pwn` and @/etc/passwd", "", "!`touch pwn` and @/etc/passwd"),
        ("$1", "two\nlines", "two"),
        ("$ARGUMENTS", "two\nlines", "two\nlines"),
    ],
)
def test_arguments(tmp_path, body, arguments, message):
    assert commands(tmp_path, c=body).found["c"].expand(arguments) == message


def test_the_head_describes_it(tmp_path):
    made = commands(
        tmp_path,
        fix="---\ndescription: Fix an issue\nargument-hint: [number] [branch]\n---\nFix $1.",
        plain="# Look at the tests\n\nand mend them",
        long="w" * 300,
    )
    assert made.names == {
        "fix": "[number] [branch] — Fix an issue",
        "long": "w" * 99 + "…",
        "plain": "Look at the tests",
    }
    assert made.found["fix"].expand("7") == "Fix 7."
    assert made.notices == ()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("help", "x", "/help is a command of hypercode itself"),
        ("Bad Name", "x", "is no name for a command"),
        ("x" * 41, "x", "is no name for a command"),
        ("empty", "---\ndescription: x\n---\n", "no text behind its head"),
        ("broken", "---\nx\n---\ny", "expected 'key: value'"),
        ("binary", "\0", "binary"),
        ("bidi", "a\u202eb", "U+202E"),
    ],
)
def test_what_cannot_be_taken_is_said(tmp_path, name, text, words):
    made = commands(tmp_path, **{name: text, "good": "Good."})
    assert set(made.found) == ({"good", "bidi"} if name == "bidi" else {"good"})
    assert len(made.notices) == 1
    assert words in made.notices[0]


def test_odd_files_do_not_stop_the_others(tmp_path):
    folder = tmp_path / "commands"
    folder.mkdir()
    os.mkfifo(folder / "pipe.md")
    (folder / "huge.md").touch()
    os.truncate(folder / "huge.md", 50 << 20)
    (folder / "folder.md").mkdir()
    (folder / "readme.txt").write_text("x")
    made = commands(tmp_path, good="Good.")
    assert list(made.found) == ["good"]
    assert len(made.notices) == 3
    assert load([tmp_path / "absent"]).notices == ()


def test_a_projects_commands_need_trust_and_never_win(tmp_path):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    theirs = project / ".hypercode" / "commands"
    theirs.mkdir(parents=True)
    for name in ("mine", "theirs", "help"):
        (theirs / f"{name}.md").write_text(f"Project's {name}.")
    mine = tmp_path / "commands"
    mine.mkdir()
    (mine / "mine.md").write_text("My own.")
    trust = Trust(tmp_path / "state")
    trust.grant(project)
    items = trust.accepted(project)
    assert list(load([mine], items, trusted=False).found) == ["mine"]
    (theirs / "theirs.md").write_text("Swapped after the yes.")
    made = load([mine], items, trusted=True, builtin=["help"])
    assert {n: (c.body, c.source) for n, c in made.found.items()} == {
        "mine": ("My own.", "user"),
        "theirs": ("Project's theirs.", "project"),
    }
    assert len(made.notices) == 2
