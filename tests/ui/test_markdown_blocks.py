"""What is final when, and how tables are laid out."""

from __future__ import annotations

import pytest
from markdown_help import bare, cut
from rich.cells import cell_len

from hypercode.ui.markdown import render
from hypercode.ui.markdown_blocks import Scanner, continues


def parts(scanner: Scanner) -> list[tuple[str, list[str]]]:
    taken = []
    while (part := scanner.next()) is not None:
        taken.append((part.kind, [line for line in part.source if line.strip()]))
        scanner.done()
    return taken


def code_and_text(taken: list[tuple[str, list[str]]]) -> list[str]:
    """The lines without fences: a block that arrives slowly is an open fence first."""
    return [line for _, lines in taken for line in lines if not line.startswith("```")]


@pytest.mark.parametrize(
    ("text", "final", "held"),
    [
        ("para", [], ["para"]),
        ("para\n", [], ["para"]),
        ("para\nmore\n\n", [("block", ["para", "more"])], []),
        ("para\n\nnext", [("block", ["para"])], ["next"]),
        ("# head\n", [("block", ["# head"])], []),
        ("# head", [], ["# head"]),
        ("title\n=====\n", [("block", ["title", "====="])], []),
        ("---\n", [("block", ["---"])], []),
        ("- a\n", [], ["- a"]),
        ("- a\n\n", [], ["- a"]),
        ("- a\n- b\n- c\n", [("item", ["- a"]), ("item", ["- b"])], ["- c"]),
        ("- a\n\n  more\n- b\n", [("item", ["- a", "  more"])], ["- b"]),
        ("- a\n  - b\n  - c\n", [], ["- a", "  - b", "  - c"]),
        ("- a\n- b\n\ntext\n", [("item", ["- a"]), ("item", ["- b"])], ["text"]),
        ("- a\n* b\n", [("item", ["- a"])], ["* b"]),
        ("    code\n\n", [], ["    code"]),
        ("    code\n\ntext\n", [("block", ["    code"])], ["text"]),
        ("> a\n> b\n", [], ["> a", "> b"]),
        ("> a\nlazy\n\n", [("block", ["> a", "lazy"])], []),
        ("| a |\n|---|\n| b |\n", [], ["| a |", "|---|", "| b |"]),
        ("| a |\n|---|\n| b |\n\n", [("block", ["| a |", "|---|", "| b |"])], []),
        ("```py\na\n", [("fence", []), ("code", ["a"])], []),
        ("```\na\n\n\n", [("fence", []), ("code", ["a"])], []),
        ("```\na\n\nb\n```\nend", [("block", ["```", "a", "b", "```"])], ["end"]),
        ("text\n```\na\n", [("block", ["text"]), ("fence", []), ("code", ["a"])], []),
        ("- a\n  ```\n  b\n", [], ["- a", "  ```", "  b"]),
        ("[a]: http://x\n\n", [], []),
    ],
)
def test_what_is_final(text, final, held):
    for size in (0, 1):
        scanner, taken = Scanner(), []
        for delta in cut(text, size):
            scanner.feed(delta)
            taken += parts(scanner)
        if not size:
            assert [part for part in taken if part[1] or part[0] == "fence"] == final
        assert code_and_text(taken) == code_and_text(final)
        assert [line for line in [*scanner.lines, scanner.partial] if line.strip()] == held
        scanner.close()
        rest = [line for _, lines in parts(scanner) for line in lines]
        assert rest == ([] if text.startswith("[a]") else held)


def test_items_remember_their_number_and_the_blank_line_above():
    scanner, seen = Scanner(), []
    for line in ["7. a", "7. b", "", "7. c", "   more", "", "", "9. d", "", "end", ""]:
        scanner.feed(line + "\n")
        while (part := scanner.next()) is not None:
            seen.append((part.kind, part.number, part.gap, part.source[0]))
            scanner.done()
    assert seen == [
        ("item", 7, True, "7. a"),
        ("item", 8, False, "7. b"),
        ("item", 9, True, "7. c"),
        ("item", 10, True, "9. d"),
        ("block", None, True, "end"),
    ]


def test_definitions_hold_from_their_place_on_and_the_first_wins():
    scanner, seen = Scanner(), []
    for delta in cut("[a]: http://1\n\nx [a]\n\n[a]: http://2\n[b]: http://3\n\ny [b]\n\n- [c]: http://4\n\nz\n\n", 1):
        scanner.feed(delta)
        while (part := scanner.next()) is not None:
            seen.append((part.source[-1].strip() or part.source[0], {k: v["href"] for k, v in part.references.items()}))
            scanner.done()
    assert seen == [
        ("x [a]", {"A": "http://1"}),
        ("y [b]", {"A": "http://1", "B": "http://3"}),
        ("- [c]: http://4", {"A": "http://1", "B": "http://3", "C": "http://4"}),
        ("z", {"A": "http://1", "B": "http://3", "C": "http://4"}),
    ]


def test_a_half_arrived_definition_is_not_remembered():
    scanner = Scanner()
    scanner.feed("[d]: http://exa")
    assert parts(scanner) == []
    scanner.feed("mple.com/x\n\n[d]\n\n")
    scanner.next()
    assert scanner.references["D"]["href"] == "http://example.com/x"


@pytest.mark.parametrize(
    ("kind", "line", "expected"),
    [
        ("table_open", "| a", True), ("table_open", "a | b", False), ("blockquote_open", "> x", True), ("blockquote_open", "x", False),
        ("paragraph_open", "word", True), ("paragraph_open", "字", True), ("paragraph_open", "", False), ("paragraph_open", "- x", False),
        ("paragraph_open", "1. x", False), ("paragraph_open", "=", False), ("paragraph_open", "`x`", False), ("list", "x", False), ("", "x", False),
    ],
)  # fmt: skip
def test_lines_that_surely_continue(kind, line, expected):
    assert continues(kind, line) is expected


# Tables


def table(text: str, width: int) -> list[str]:
    return bare(render(text, width))


WIDE = (
    "| Name | Description |\n|---|:-:|\n| width | how many cells there are in one row of the terminal |\n| 字 | b |\n"
)


def test_a_table_that_fits():
    assert table("| a | b | c |\n|:--|:-:|--:|\n| long | 字 | 1 |\n| x | y | 1000 |\n", 40) == [
        "a    │ b  │    c",
        "─────┼────┼─────",
        "long │ 字 │    1",
        "x    │ y  │ 1000",
    ]


def test_the_widest_column_gives_way():
    assert table(WIDE, 40) == [
        "Name  │           Description",
        "──────┼─────────────────────────────────",
        "width │ how many cells there are in one",
        "      │       row of the terminal",
        "字    │                b",
    ]


def test_without_room_rows_become_lists():
    assert table("| Key | Value |\n|---|---|\n| parameters | description |\n| b | |\n", 18) == [
        "Key: parameters", "Value: description", "", "Key: b", "Value:",
    ]  # fmt: skip
    assert table("| parameters | descriptions |\n|---|---|\n", 12) == ["parameters", "descriptions"]


@pytest.mark.parametrize("width", [5, 10, 20, 33, 40, 60, 80])
def test_tables_fit_and_lose_nothing(width):
    rows = table(WIDE + "| `a|b` | more | **x** |\n", width)
    assert all(cell_len(row) <= width for row in rows)
    joined = "".join("".join(rows).split())
    letters = sorted(char for char in joined if char not in "│─┼:")
    wanted = "NameDescriptionwidthhowmanycellsthereareinonerowoftheterminal字b`ab`morex"
    for char in wanted.replace("`", ""):
        assert char in letters


def test_cells_beyond_the_head_are_kept():
    assert table("| a | b |\n|---|---|\n| `x | y` | z |\n| 1 | 2 | 3 | 4 |\n", 40)[2:] == [
        "`x │ y` | z",
        "1  │ 2 | 3 | 4",
    ]
    assert table("> | a |\n> |---|\n> | x | y |\n", 40)[-1] == "▌ x | y"
