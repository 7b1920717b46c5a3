"""A streamed reply as a terminal shows it: the real transcript and screen, in a pty under pyte and in tmux."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from chat_terminal import FORBIDDEN, Reader, fed, mdstream_gen, preview, printed, write_text
from mdstream_gen import TRAPS, check_markers, lost_text, marked_text, text_for
from measure_prompt import flicker
from screen_terminal import BEGIN, END, Terminal, Tmux

from hypercode.ui.clean import clean

LATE = "reference_late"  # a link whose definition follows: what is printed stays printed


def streamed(path: Path, *options: str, columns: int = 80, rows: int = 24, **environment: str) -> Terminal:
    """The terminal after a reply was streamed to its end, left as it has to be left."""
    with Terminal(preview(path, *options), columns, rows, env=environment) as terminal:
        assert terminal.finish() == 0
        assert terminal.left_clean()
        assert terminal.codes() == set()
        assert FORBIDDEN.findall(terminal.raw) == []
    return terminal


@pytest.mark.parametrize("name", sorted(set(TRAPS) - {LATE}))
def test_a_trap_streamed_is_the_trap_printed(name, tmp_path):
    text = TRAPS[name]
    columns = 38 if name in ("table", "wide_margin", "long_line", "deep", "markup") else 80
    terminal = streamed(
        write_text(tmp_path, text), "--rate", "500", "--size", str(1 + len(text) // 60), columns=columns
    )
    assert terminal.lines == printed(text, columns, 24)


@pytest.mark.parametrize(
    ("columns", "rows", "size"), [(80, 24, 4), (38, 24, 64), (80, 8, 1), (200, 50, 0), (20, 4, 16), (10, 4, 16)]
)
def test_a_long_reply_streamed_is_the_reply_printed(columns, rows, size, tmp_path):
    text = text_for(300 if size == 1 else 1000)
    terminal = streamed(write_text(tmp_path, text), "--rate", "1500", "--size", str(size), columns=columns, rows=rows)
    assert terminal.lines == printed(text, columns, rows)
    if columns >= 38:
        assert lost_text(clean(text), "\n".join(terminal.lines)) == []


def test_printed_at_once_is_what_the_tests_compare_with(tmp_path):
    text = text_for(400)
    with Terminal(preview(write_text(tmp_path, text), "--whole"), 80, 24) as terminal:
        assert terminal.finish() == 0
        assert terminal.lines == printed(text, 80, 24)


@pytest.mark.parametrize("case", ["long", "escapes", "wide_margin"])
def test_tmux_agrees(case, tmp_path):
    """In a fresh pane, whose first row the region touches; with the clipboard and title untouched."""
    text = text_for(700) if case == "long" else TRAPS[case]
    path = write_text(tmp_path, text)
    screens = []
    for options in (["--rate", "700"], ["--whole"]):
        folder = tmp_path / options[0]
        folder.mkdir()
        with Tmux(folder, preview(path, *options), 80, 24) as tmux:
            tmux.run("select-pane", "-T", "mine")
            tmux.wait(tmux.done.exists)
            screens.append(tmux.lines())
            assert tmux.done.read_text() == "0\n"
            assert tmux.run("show-buffer") == ""
            assert (
                tmux.run("display-message", "-p", "#{pane_title} #{cursor_flag} #{alternate_on}").strip() == "mine 1 0"
            )
    assert screens[0] == screens[1]


def test_markers_while_keys_are_typed_all_the_while(tmp_path):
    text = marked_text(150)
    with Terminal(preview(write_text(tmp_path, text), "--rate", "400", "--size", "8"), 80, 24) as terminal:
        terminal.wait("M00")
        number = 0
        while terminal.process.poll() is None:
            number += 1
            terminal.send(f"k{number}" + ("\r" if number % 7 == 0 else ""))
            terminal.pump(0.03)
        assert terminal.finish() == 0
        assert number > 5
        assert check_markers("\n".join(terminal.lines)) == []
        assert "M00150" in "".join(terminal.lines).replace(" ", "")
        assert [
            line for line in terminal.lines if "waiting: " in line or line.startswith(">") or "preview" in line
        ] == []


def check_resized(lines: list[str], count: int) -> None:
    got = [int(m) for m in re.findall(r"M(\d{5})", re.sub(r"\s+", "", "".join(lines)))]
    assert sorted(set(got)) == list(range(1, len(set(got)) + 1))
    assert len(set(got)) >= count
    assert len(got) - len(set(got)) <= 36  # what is live when the width changes: at most 12 rows with 3 markers each
    assert [line for line in lines if line.startswith("> ") or line == "preview"] == []


@pytest.mark.parametrize("dragged", [True, False], ids=["dragged", "narrowed once"])
def test_resizing_loses_nothing(dragged, tmp_path):
    path = write_text(tmp_path, marked_text(200))
    with Tmux(tmp_path, preview(path, "--rate", "700", "--size", "4"), 80, 24) as tmux:
        tmux.wait("M0001")
        for i in range(20 if dragged else 1):
            tmux.resize(80 - 2 * (i % 11) if dragged else 41, 24 - i % 5)
            time.sleep(0.1 if dragged else 0)
        tmux.wait(tmux.done.exists)
        check_resized(tmux.lines(), 200)


def test_frames_are_whole_and_the_input_line_stays(tmp_path):
    """Each frame is one write; of all of them at most three leave the screen without input line or status line."""
    log = tmp_path / "log"
    text = text_for(500)
    with Terminal(preview(write_text(tmp_path, text), "--rate", "300", log=log), 80, 24) as terminal:
        assert terminal.finish() == 0
        assert terminal.lines == printed(text, 80, 24)
    frames = [json.loads(line)[1] for line in log.read_text("utf-8").splitlines()]
    assert [
        f for f in frames if not (f.startswith(BEGIN) and f.endswith(END) and f.count(BEGIN) == f.count(END) == 1)
    ] == []
    flushes, marks = flicker(log, 80, 24, ["> ", "preview"])
    assert flushes > 20
    assert {mark: gone["flushes_without"] <= 3 for mark, gone in marks.items()} == {"> ": True, "preview": True}
    assert sum(map(len, frames)) / len(text) <= 25


@pytest.mark.parametrize("case", ["table", "line", "long"])
def test_nothing_holds_up_the_event_loop(case, tmp_path):
    """A table of 800 rows, a line of 20 000 characters, a long reply. Measured in tests/bench; here, that no step is of another order."""
    text = {
        "table": "| a | b | c |\n|---|---|---|\n"
        + "".join(f"| {i} | word {i} | `x{i}` |\n" for i in range(800))
        + "\nend\n",
        "line": "word " * 4000 + "\n\nend\n",
        "long": text_for(2000),
    }[case]
    log = tmp_path / "log"
    with Terminal(
        preview(write_text(tmp_path, text), "--rate", "2000", "--size", "64" if case != "long" else "8", log=log),
        80,
        24,
    ) as terminal:
        assert terminal.finish() == 0
    figures = json.loads(Path(f"{log}.loop").read_text())
    assert figures["step_ms"] <= 1000  # its own work; how late the loop is in all is measured in tests/bench


@pytest.mark.parametrize("how", ["key", "signal"])
@pytest.mark.parametrize("point", [0.1, 0.6])
def test_an_abort_is_shown_at_once(how, point, tmp_path):
    text = text_for(1000)
    with Terminal(preview(write_text(tmp_path, text), "--rate", "400"), 80, 24) as terminal:
        terminal.wait("STREAMSTART")
        deadline = time.monotonic() + point * 2
        while time.monotonic() < deadline:
            terminal.pump()
        if how == "key":
            terminal.send("\x03")
        else:
            terminal.process.send_signal(signal.SIGINT)
        terminal.wait("[aborted]")
        assert terminal.finish() == 0
        assert terminal.left_clean()
        assert [line for line in terminal.lines if line][-1] == "[aborted]"
        shown = terminal.lines
        rest = "".join("".join(shown[:-1]).split())
        assert rest[:200] == "".join("".join(printed(text, 80, 24)).split())[:200]


def test_an_abort_while_a_large_table_is_committed(tmp_path):
    """Whether it comes just before or during the commit, which takes some 0.2 s in a thread."""
    text = (
        "| a | b |\n|---|---|\n"
        + "".join(f"| {i} | word {i} |\n" for i in range(1500))
        + "\nend\n\n"
        + "more\n\n" * 20_000
    )
    with Reader(preview(write_text(tmp_path, text), "--rate", "50", "--size", "2000"), 80, 24) as terminal:
        terminal.wait("word 13")
        terminal.send("\x03")
        # Reading only: a terminal in Python takes seconds for 1500 rows. Measured: 5..25 ms.
        assert terminal.reads(b"[aborted]") < 1.0
        assert terminal.finish() == 0
        rows = [int(row) for row in re.findall(r"word (\d+)$", "\n".join(terminal.lines), re.M)]
        assert rows == list(range(len(rows)))
        assert len(rows) > 1300


def test_at_most_four_rows_less_than_the_terminal_has_are_live(tmp_path):
    text = "\n".join(f"row {i} of a paragraph that is not finished" for i in range(50)) + " and on" * 200
    with Terminal(preview(write_text(tmp_path, text), "--rate", "100", "--size", "40"), 44, 8) as terminal:
        terminal.wait("and on and on")
        terminal.pump(0.2)
        assert len(terminal.lines) <= 8 - 4 + 2
        terminal.send("\x03")
        terminal.finish()
        assert sum("row 7 of" in line for line in terminal.lines) == 1


def test_a_code_block_can_be_copied(tmp_path):
    """As tmux joins wrapped rows again: the lines of the source, no blanks before or after, long ones whole."""
    code = ["def f(x):", "    return {", "        'k': x,", "", "    }  # " + "long " * 40 + "end", "\tindented = 1"]
    path = write_text(tmp_path, "text\n\n```python\n" + "\n".join(code) + "\n```\n\nend\n")
    with Tmux(tmp_path, preview(path, "--rate", "500"), 60, 20) as tmux:
        tmux.wait(tmux.done.exists)
        lines = tmux.run("capture-pane", "-p", "-J", "-S", "-").split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("def f"))
    assert lines[first : first + len(code)] == [line.expandtabs(8) for line in code]


def test_colours_of_streamed_code_are_those_of_code_printed_at_once(tmp_path):
    text = (
        "```python\ndef f():\n    '''doc\n    more'''\n    return 1  # c\n```\n\n```c\n/** long\n * comment\n */\nint x = 1;\n```\n\n"
        '```rust\nfn main() { let s = "a"; }\n```\n\n```diff\n-a\n+b\n```\n\n```json\n{"a": [1, true, "x"]}\n```\n'
    )
    path = write_text(tmp_path, text)
    cells = []
    for options in (["--rate", "300"], ["--whole"]):
        with Terminal(preview(path, *options), 80, 60) as terminal:
            terminal.finish()
            rows = range(len(terminal.lines))
            cells.append(
                [
                    [(c.data, c.fg, c.bold, c.italics) for x in range(40) for c in [terminal.screen.buffer[y][x]]]
                    for y in rows
                ]
            )
    assert cells[0] == cells[1]
    assert len({fg for row in cells[0] for _, fg, _, _ in row}) > 3


def test_columns_in_the_environment_do_not_count(tmp_path):
    text = "word " * 60
    terminal = streamed(write_text(tmp_path, text), "--rate", "500", COLUMNS="40", LINES="10")
    assert terminal.lines == printed(text, 80, 24)


def test_no_color_leaves_weight_and_slant(tmp_path):
    path = write_text(tmp_path, "# H\n\n**bold** `code`\n\n```python\nx = 'a'\n```\n")
    terminal = streamed(path, "--rate", "500", NO_COLOR="1")
    codes = {int(code or 0) for sgr in re.findall(rb"\x1b\[([0-9;]*)m", terminal.raw) for code in sgr.split(b";")}
    assert codes <= {0, 1, 2, 3, 4, 7, 9, 22, 23, 24, 27}
    assert "bold code" in terminal.lines


def test_foreign_markup_is_on_the_screen_as_it_is(tmp_path):
    text = "[red]text[/red] [/] :smile: Vec<String> <details>x</details>\n\n- [bold]b[/bold] Map<K, V>\n"
    terminal = streamed(write_text(tmp_path, text), "--rate", "500")
    assert terminal.lines == [
        "[red]text[/red] [/] :smile: Vec<String> <details>x</details>",
        "",
        " • [bold]b[/bold] Map<K, V>",
    ]


def test_a_block_that_cannot_be_rendered_is_shown_as_it_is_and_the_reply_goes_on(tmp_path):
    """The renderer is broken on purpose, in the program that draws."""
    path = write_text(tmp_path, "before\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1\n```\n\nafter\n")
    broken = (
        "import sys, hypercode.ui.markdown_elements as e, hypercode.ui.highlight as h, hypercode.ui.preview as p\n"
        "def fail(*a, **k): raise RuntimeError('as asked')\n"
        "e.Renderer.block = (lambda old: lambda self, node, place: fail() if 'table' in node.token.type else old(self, node, place))(e.Renderer.block)\n"
        "sys.exit(p.main(sys.argv[1:]))\n"
    )
    with Terminal([sys.executable, "-c", broken, str(path), "--rate", "300"], 80, 24) as terminal:
        assert terminal.finish() == 0
        assert terminal.lines == ["before", "", "| a | b |", "|---|---|", "| 1 | 2 |", "", "x = 1", "", "after"]


def test_a_file_that_cannot_be_read_is_one_clear_message(tmp_path):
    (tmp_path / "bad").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "none", tmp_path / "bad", tmp_path):
        done = subprocess.run(preview(path), capture_output=True, text=True, check=False)
        assert (done.returncode, "cannot be read as text" in done.stderr, "Traceback" in done.stderr) == (
            2,
            True,
            False,
        )


def test_the_comparison_itself_sees_a_lost_line():
    assert fed("a\r\nb\r\n", 10, 3) != fed("a\r\n", 10, 3)
    assert mdstream_gen.check_markers("M00001 M00003") != []
