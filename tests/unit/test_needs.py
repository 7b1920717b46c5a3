"""What an approved command gets in the box."""

import pytest

from hypercode.safety.needs import Needs, Passes, needs_of

NETWORK, GIT = Needs(network=True), Needs(git=True)


@pytest.mark.parametrize(
    ("commands", "wanted"),
    [
        (["ls -la"], Needs()),
        (["git status"], Needs()),
        (["git commit -m 'x y'"], GIT),
        (["git push origin main"], Needs(True, True)),
        (["ls", "git add ."], GIT),
        (["npm test"], Needs()),
        (["npm install left-pad"], NETWORK),
        (["python3 -m pip install x"], NETWORK),
        (["/usr/bin/pip install x"], NETWORK),
        (["A=1 timeout 5 curl https://x.invalid"], NETWORK),
        (["pytest -q"], Needs()),
        (["echo 'unclosed"], Needs()),
        ([""], Needs()),
    ],
)
def test_needs(commands, wanted):
    assert needs_of(commands) == wanted


def test_a_pass_is_for_one_run_of_that_command():
    passes = Passes()
    passes.grant("git push", NETWORK)
    assert passes.take("git pull") == Needs()
    assert passes.take("git push") == NETWORK
    assert passes.take("git push") == Needs()


def test_in_words():
    assert (str(Needs()), str(NETWORK), str(Needs(True, True))) == ("", "the network", "the network and writing .git")
