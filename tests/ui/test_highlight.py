"""Colours line by line."""

from __future__ import annotations

import importlib.metadata

import pytest
from pygments.lexer import Lexer, RegexLexer
from pygments.token import Keyword, Text

from hypercode.ui import highlight
from hypercode.ui.highlight import Highlighter, find_lexer

SAMPLES = {
    "python": 'import os\n\n@cache\ndef f(a: int = 1) -> str:\n    """Doc {x}\n\n    more %s\n    """\n    s = \'\'\'a\nb\'\'\'\n    return f"{a!r} x" + "y"  # done\n',
    "javascript": "/**\n * Doc\n * @param {number} x\n */\nconst f = (x) => `a=${x}\nsecond ${1 + 2} line`; // end\nlet g = /ab+c/g;\n",
    "rust": '/* a\n /* nested */\n*/\nfn f(x: &\'a Vec<u8>) -> Result<(), String> {\n    let y = "a\nb"; // c\n    Ok(())\n}\n',
    "bash": "cat <<'EOF' > x\nif then \"\nEOF\necho \"a $HOME\nb\" | awk '{\n  print $1\n}' # done\n# it's\nfor i in 1 2; do :; done\n",
    "diff": "--- a\n+++ b\n@@ -1,3 +1,4 @@\n same\n-old\n+new\n",
    "json": '{\n  "a": [1, true, null, "x"],\n  "b": {"c": -1.5e3}\n}\n',
    "go": '/*\n comment\n*/\nvar s = `raw\nstring` + "x"\nfunc main() { return }\n',
    "css": "/* a\nb */\na:hover { color: red; }\n",
    "sql": "/* a\nb */ SELECT 'x\ny', 1 FROM t -- c\n",
    "html": '<!-- a\nb -->\n<p class="x">t</p>\n<script type="module">\nlet a = 1; /* x\ny */\n</script>\n<b>c</b>\n',
    "lua": "--[[ a\nb ]]\nlocal x = 1\n",
    "haskell": "{- a\nb -}\nmain = return ()\n",
    "yaml": "a: 1\nb:\n  - x  # c\n",
    "php": "<?php\n/* a\nb */\n$x = 'a\nb'; echo <<<EOT\nit's\nEOT;\necho 1;\n",
    "powershell": '<# a\nb #>\n$x = @"\nabc\n"@\nGet-Item x\n',
    "perl": "my $x = <<EOT;\nabc\nEOT\nprint 1;\n",
    "csharp": '/* a\nb */\nvar s = @"a\nb"; // c\nclass A {}\n',
    "java": '/** doc\n */\nclass A { String s = """\n a\n """; int f() { return 1; } }\n',
    "kotlin": '/* a\nb */\nval s = """a\nb""" // c\n',
    "ocaml": "(* a\nb *)\nlet x = 1\n",
    "toml": 'a = 1\n[b]\nc = "x"\n',
}


def cells(runs):
    return [(char, sgr) for text, sgr in runs for char in text if not char.isspace()]


def at_once(info: str, code: str):
    """Colours of the whole block lexed in one go, by line."""
    lexer, palette = find_lexer(info), highlight._palette(True)
    lines: list[list[tuple[str, str]]] = [[]]
    for _, kind, value in lexer.get_tokens_unprocessed(code):
        for k, piece in enumerate(value.split("\n")):
            if k:
                lines.append([])
            lines[-1].append((piece, highlight._style_of(palette, kind)))
    return [cells(line) for line in lines[:-1]]


@pytest.mark.parametrize("info", SAMPLES)
def test_line_by_line_is_as_in_one_go(info):
    code = SAMPLES[info]
    one = Highlighter(info, colour=True)
    lines = code.split("\n")[:-1]
    assert [cells(one.line(line)) for line in lines] == at_once(info, code)


@pytest.mark.parametrize("info", SAMPLES)
def test_text_is_unchanged_and_peeking_changes_nothing(info):
    one, two = Highlighter(info, colour=True), Highlighter(info, colour=True)
    for line in SAMPLES[info].split("\n"):
        for k in range(len(line)):
            assert "".join(text for text, _ in one.peek(line[:k])) == line[:k]
        assert one.peek(line) == one.line(line) == two.line(line)


@pytest.mark.parametrize(
    ("info", "name"),
    [
        ("python", "Python"),
        ("Python title=x.py", "Python"),
        ("py", "Python"),
        ("{.python .numberLines}", "Python"),
        ("ts:src/main.ts", "TypeScript"),
        ("tsx", "TypeScript"),
        ("jsonc", "JSON"),
        ("sh", "Bash"),
        ("golang", "Go"),
        ("c++", "C++"),
        ("", None),
        ("text", None),
        ("no-such-language", None),
        ("```", None),
    ],
)
def test_names_of_languages(info, name):
    lexer = find_lexer(info)
    assert (lexer and lexer.name) == name


def test_unknown_names_do_not_scan_the_installed_packages(monkeypatch):
    def scanned(**_):
        raise AssertionError("entry points read")

    monkeypatch.setattr(importlib.metadata, "entry_points", scanned)
    size = highlight._named.cache_info().currsize
    assert [find_lexer(f"unknown{k}") for k in range(50)] == [None] * 50
    assert highlight._named.cache_info().currsize == size


def test_without_colours_only_weight_and_slant():
    one = Highlighter("python", colour=False)
    used = {sgr for line in SAMPLES["python"].split("\n") for _, sgr in one.line(line)}
    assert used == {"", "bold", "italic"}


def test_colours_are_the_terminals_own_and_readable_everywhere():
    allowed = {"", "bold", "dim", "italic", "red", "green", "magenta", "cyan", "bright_blue"}
    assert set(highlight._COLOURS.values()) <= allowed


class Broken(RegexLexer):
    """Fails at the word `fail`, in a callback as real ones do."""

    name = "Broken"

    def fails(self, match, ctx=None):
        raise ZeroDivisionError

    tokens = {"root": [(r"fail", fails), (r"if\b", Keyword), (r"\s+|.", Text)]}  # noqa: RUF012


class Lossy(Lexer):
    """Drops characters."""

    name = "Lossy"

    def get_tokens_unprocessed(self, text):
        yield 0, Keyword, text[:2]


@pytest.mark.parametrize(
    ("lexer", "expected"),
    [
        (Broken(), [[("if", "magenta"), (" x", "")], [("if fail", "")], [("if y", "")]]),
        (Lossy(), [[("if x", "")], [("if fail", "")], [("if y", "")]]),
    ],
)
def test_a_lexer_that_fails_leaves_plain_text(monkeypatch, lexer, expected):
    monkeypatch.setattr(highlight, "find_lexer", lambda info: lexer)
    one = Highlighter("x", colour=True)
    got = [one.line(line) for line in ("if x", "if fail", "if y")]
    assert [[(t, s) for t, s in runs if t] for runs in got] == expected or [
        "".join(t for t, _ in runs) for runs in got
    ] == ["if x", "if fail", "if y"]
    assert got[1:] == expected[1:]


def test_a_lexer_whose_callbacks_take_no_context_still_colours_lines():
    one = Highlighter("markdown", colour=True)
    assert one.line("# Title") == [("# Title", "bold")]
    assert one.line("```python")
    assert "".join(text for text, _ in one.line("plain *em*")) == "plain *em*"


def test_long_lines_have_no_colours_and_cost_nothing():
    one = Highlighter("python", colour=True)
    assert one.line("x = 1; " * 3000) == [("x = 1; " * 3000, "")]
    assert one.line("x = 1") == [("x = ", ""), ("1", "cyan")]


def test_nesting_that_never_ends_does_not_grow_without_bound():
    one = Highlighter("bash", colour=True)
    for _ in range(300):
        one.line("$(( $( ${a")
    assert len(one._state.stack) <= highlight.MAX_STACK


def test_work_is_linear_in_a_comment_that_goes_on(monkeypatch):
    one = Highlighter("c", colour=True)
    one.line("/* start")
    lexed = []
    monkeypatch.setattr(highlight, "_lex", lambda lexer, text, stack: lexed.append(text))
    assert [one.line(f" * line {k} it's") for k in range(500)] == [[(f" * line {k} it's", "dim")] for k in range(500)]
    assert lexed == []
