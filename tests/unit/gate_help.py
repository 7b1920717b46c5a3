"""What the tests of the command gate share: a workspace in a home folder, and a line judged there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hypercode.safety.command import Verdict, classify
from hypercode.safety.decision import Decision
from hypercode.safety.rules import parse_rule

WS, HOME = Path("/home/kim/src/app"), Path("/home/kim")


def judged(
    command: str, *, allow: Iterable[str] = (), deny: Iterable[str] = (), workspace: Path = WS, home: Path = HOME
) -> Verdict:
    """The gate's verdict on a line, under rules as a person writes them."""
    rules = [[parse_rule(text) for text in texts] for texts in (allow, deny)]
    return classify(command, workspace=workspace, home=home, allow=rules[0], deny=rules[1])


def decided(command: str, deny: Iterable[str] = (), *, allow: Iterable[str] = ()) -> Decision:
    """The decision alone."""
    return judged(command, allow=allow, deny=deny).decision
