"""What the file guard keeps secret, commands and searches keep secret as well: one list, three readers."""

from pathlib import Path

import pytest

from hypercode.safety.command import classify
from hypercode.safety.decision import Decision
from hypercode.safety.path_rules import HIDDEN_GLOBS, HOME_SECRETS, KEY_FILES, SYSTEM_SECRETS, Places, judge

HOME, WORKSPACE = Path("/home/me"), Path("/home/me/work")
PLACES = Places((WORKSPACE,), HOME)


def spelled(row):
    """A path that the row means."""
    return "/".join(row).replace("@", " ").replace("*", "x")


def asked(path):
    return classify(f'cat "{path}"', workspace=WORKSPACE, home=HOME).decision


@pytest.mark.parametrize("row", HOME_SECRETS, ids=spelled)
def test_places_in_the_home_folder(row):
    path = HOME / spelled(row)
    assert judge("read", path, PLACES)[0] is Decision.DENY
    assert asked(path) is Decision.ALWAYS_ASK
    assert asked(path / "inside") is Decision.ALWAYS_ASK
    assert "/".join(("**", *row) if len(row) > 1 else row).replace("@", " ") in HIDDEN_GLOBS


@pytest.mark.parametrize("row", SYSTEM_SECRETS, ids=spelled)
def test_places_of_the_system(row):
    path = Path("/", spelled(row))
    assert judge("read", path, PLACES)[0] is Decision.DENY
    assert asked(path) is Decision.ALWAYS_ASK


@pytest.mark.parametrize("name", KEY_FILES)
def test_names_in_a_project(name):
    path = WORKSPACE / name.replace("*", "x")
    assert judge("read", path, PLACES)[0] is Decision.ASK
    assert asked(path).rank >= Decision.ASK.rank
    assert name in HIDDEN_GLOBS


@pytest.mark.parametrize("name", [".env.example", "id_rsa.pub", "keys.py", "src/secret_names.txt", ".envoy"])
def test_names_that_only_look_like_it(name):
    assert judge("read", WORKSPACE / name, PLACES)[0] is Decision.AUTO
    assert asked(WORKSPACE / name) is Decision.AUTO


@pytest.mark.parametrize(
    ("command", "least"),
    [
        ("cat .?/x", Decision.ASK),
        ("cat .[.]/x", Decision.ASK),
        ("cat src/.?/.?/x", Decision.ASK),
        ("ls .?", Decision.ASK),
        ("rm -rf .?", Decision.ALWAYS_ASK),
        ("rm -rf .*", Decision.ALWAYS_ASK),
        ("rm -rf src/.?/.?", Decision.ALWAYS_ASK),
    ],
)
def test_a_pattern_that_some_shells_read_as_the_folder_above(command, least):
    got = classify(command, workspace=WORKSPACE, home=HOME).decision
    assert got.rank >= least.rank


@pytest.mark.parametrize("command", ["cat */x", "cat src/.?", "ls src/a.?", "cat .??"])
def test_a_pattern_that_stays_inside(command):
    assert classify(command, workspace=WORKSPACE, home=HOME).decision is Decision.AUTO
