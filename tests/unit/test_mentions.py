"""Which words of a message name a file with `@`."""

import pytest

from hypercode.mentions import Mention, mentions
from hypercode.messages import attached, cut_note, spoken

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
        ("is it @src/app.py?\n(@src/app.py), [@./src/app.py]; @src/app.py…", [APP, Mention("./src/app.py")], []),
        ("@README and @src and @src/ and @odd(1).", [Mention(p) for p in ("README", "src", "src/", "odd(1)")], []),
        ("@größe.md", [Mention("größe.md")], []),
        ("@src/app.py:7 @src/app.py:3-9. @src/app.py#L4-L5", [Mention("src/app.py", *n) for n in ((7, 7), (3, 9), (4, 5))], []),
        ("@src/app.py:0 @src/app.py:9-3", [Mention("src/app.py", 1, 1), Mention("src/app.py", 9, 9)], []),
        ('@"a b.txt" @"a b.txt":2, @"no such"', [Mention("a b.txt"), Mention("a b.txt", 2, 2)], ["no such"]),
        ("@src/nope.py:3, @nope.TOML. @types/node", [], ["src/nope.py", "nope.TOML", "types/node"]),
        ("mail me@src/app.py or bob@example.com, @alice", [], []),
        ("@dataclass(frozen=True)\n@app.route('/x')\n@app.get(/x)\n    @pytest.fixture\n@x.setter", [], []),
        ("from '@angular/core' and `@src/app.py`", [], []),
        ("@ @. @.. @/ @~ @… @:3 @src/*.py @\ud800/x", [], []),
        ("sum it up\n\n<stdin>\n@src/app.py @nope.py", [], []),
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
