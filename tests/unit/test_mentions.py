"""Which words of a message name a file with `@`."""

import io
import os
import sys

import pytest

from hypercode.mentions import Mention, mentions
from hypercode.messages import Piped, attached, cut_note, spoken
from hypercode.oneshot import read_task

APP = Mention("src/app.py")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "src").mkdir()
    for name in ("src/app.py", "README", "a b.txt", "odd(1)", "größe.md"):
        (tmp_path / name).write_text("x\n")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "found", "missing"),
    [
        ("explain @src/app.py", [APP], []),
        ("@src/app.py", [APP], []),
        ("is it @src/app.py?\n(@src/app.py), [@./src/app.py]; @src/app.py…", [APP], []),
        ("@README and @src and @src/ and @odd(1).", [Mention(p) for p in ("README", "src", "odd(1)")], []),
        ("@größe.md", [Mention("größe.md")], []),
        ("@src/app.py:7 @src/app.py:3-9. @src/app.py#L4-L5", [Mention("src/app.py", *n) for n in ((7, 7), (3, 9), (4, 5))], []),
        ("@src/app.py:0 @src/app.py:9-3", [Mention("src/app.py", 1, 1), Mention("src/app.py", 9, 9)], []),
        ('@"a b.txt" @"a b.txt":2, @"no such"', [Mention("a b.txt"), Mention("a b.txt", 2, 2)], ["no such"]),
        ("@src/nope.py:3, @nope.TOML. @types/node", [], ["src/nope.py", "nope.TOML", "types/node"]),
        ("mail me@src/app.py or bob@example.com, @alice", [], []),
        ("@dataclass(frozen=True)\n@app.route('/x')\n@app.get(/x)\n    @pytest.fixture\n@x.setter", [], []),
        ("from '@angular/core' and `@src/app.py`", [], []),
        ("@ @. @.. @/ @~ @… @:3 @src/*.py @\ud800/x", [], []),
        ("is it\n\n<stdin>\n@src/app.py @nope.py", [APP], ["nope.py"]),
        ("@" + "x" * 300 + ".py @./README @" + "b" * 5000, [Mention("./README")], ["x" * 300 + ".py"]),
        ("@" + "a/" * 5000 + " @" + "!" * 100_000, [], ["a/" * 5000]),
    ],
)  # fmt: skip
def test_what_is_a_path(folder, text, found, missing):
    assert mentions(text, folder) == (found, missing)


def test_what_was_attached_is_no_word_of_the_person(folder):
    note, more = cut_note("cut"), attached([("a.py", "     1\tx"), ("b/", "c")])
    assert spoken(note + "look @a.py" + more) == (note, "look @a.py")
    assert more.endswith("]\na.py:\n     1\tx\n\nb/:\nc")
    assert attached([]) == ""


def test_one_file_under_several_names_is_one(folder):
    (folder / "link").symlink_to("src/app.py")
    text = f"@src/app.py @./src/app.py @../{folder.name}/src//app.py @link @{folder}/src/app.py @src/app.py:2 @link:2-2"
    assert mentions(text, folder) == ([APP, Mention("src/app.py", 2, 2)], [])


def test_of_very_many_names_the_first_are_looked_at(folder, monkeypatch):
    looked, exists = [], os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: looked.append(path) or exists(path))
    found, missing = mentions("@src/app.py " * 1000 + " ".join(f"@src/x{n}.py,,,,,,,," for n in range(100_000)), folder)
    assert (found, missing) == ([APP], [f"src/x{n}.py" for n in range(299)])
    assert len(looked) < 10_000


@pytest.mark.parametrize(
    ("words", "stdin", "task", "own"),
    [
        (["look", "@a"], "", "look @a", None),
        (["look", "@a"], "@b\n", "look @a\n\n<stdin>\n@b\n</stdin>", "look @a"),
        (["-"], "@b\n", "@b\n", ""),
        ([], "@b\n", "@b\n", ""),
        ([" "], "@b\n", "@b\n", ""),
    ],
)
def test_what_is_piped_in_is_no_word_of_the_person(monkeypatch, words, stdin, task, own):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
    read = read_task(words)
    assert read == task
    assert (read.words if isinstance(read, Piped) else None) == own
