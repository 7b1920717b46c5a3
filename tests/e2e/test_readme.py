"""README tells the truth, and so do the other pages: every command in them is executed."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from clean_place import ROOT, copy_of_repository, once
from documented import PAGES, Place, commands, in_console, way
from readme_block import shown
from readme_run import captured

from hypercode.ui import commands as slash_commands


def test_the_run_in_readme_is_a_real_one():
    assert shown("readme_run.py") == captured(), "python tests/e2e/readme_run.py writes it anew"


@pytest.fixture
def place(request, stage, tmp_path_factory):
    """Where a command is executed; what takes long to make is made when the first asks for it."""

    def copies(kind):
        return once(tmp_path_factory, f"copy-for-{kind}", lambda folder: copy_of_repository(folder / "tree")) / "tree"

    installs = re.match(r"uv |pip |pipx |python3 -m venv", request.node.callspec.params["line"])
    return Place(stage, request.getfixturevalue("tools") if installs else None, copies)


@pytest.mark.parametrize("line", commands())
def test_a_documented_command_works(line, place):
    how = way(line)
    assert how is not None, f"nobody knows how to execute {line!r}; give it a row in WAYS of tests/e2e/documented.py"
    how(place, line)


def test_the_parser_sees_what_a_person_would_type():
    block = "hypercode run 'a # b' # `hypercode run --schema` says\n# only a remark\n\ngit diff | hypercode run x \\\n  -c\n"
    assert list(in_console(block)) == [
        "hypercode run 'a # b'",
        "hypercode run --schema",
        "git diff | hypercode run x   -c",
    ]
    assert list(in_console("$ hypercode -c  # on\noutput\n$ cat x\n")) == ["hypercode -c", "cat x"]
    assert way("hypercode frobnicate --all") is None
    assert {"uv run pytest", "hypercode doctor", ".ci/run"} <= set(commands())


def test_slash_commands_that_are_named_exist():
    slash_commands.discover()
    pages = " ".join((ROOT / name).read_text() for name in PAGES if (ROOT / name).exists())
    named = set(re.findall(r"`/([a-z-]+)`", pages))
    assert "undo" in named
    assert named - set(slash_commands.names()) == set()


@pytest.mark.parametrize("page", [name for name in PAGES if (ROOT / name).exists()])
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text())
    assert [link for link in links if "://" not in link and not ((ROOT / page).parent / link).exists()] == []
