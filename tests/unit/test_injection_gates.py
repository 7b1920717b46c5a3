"""A model that obeys injected text: what gate and file guard make of the calls it is told to make."""

import json
from pathlib import Path

import pytest

from hypercode.safety.approval import Gate
from hypercode.safety.decision import Decision
from hypercode.safety.paths import FileGuard
from hypercode.safety.trust import Trust, TrustState

CASES = json.loads((Path(__file__).parents[1] / "cases/security/injection.json").read_text())["cases"]
DECISIONS = {"ask": Decision.ASK, "always_ask": Decision.ALWAYS_ASK, "refuse": Decision.DENY}
CALLS = [(case, call) for case in CASES for call in case["scripted_calls"] if not call["tool"].startswith("mcp:")]


@pytest.fixture
def places(tmp_path):
    home = tmp_path / "home"
    workspace = home / "ws"
    workspace.mkdir(parents=True)
    own = home / ".config/hypercode"
    own.mkdir(parents=True)
    return home, workspace, Gate(FileGuard(workspace, home=home, own=[own]), home)


def filled(text, home):
    return text.replace("{HOME}", str(home)).replace("{OUT}", str(home.parent / "out")).replace("{PORT}", "9")


@pytest.mark.parametrize(("case", "call"), CALLS, ids=lambda v: v.get("id", v.get("tool")))
async def test_the_gate_holds(places, case, call):
    home, _, gate = places
    wanted = DECISIONS[case["gate"]]
    if call["tool"] == "bash":
        arguments = {"command": filled(call["command"], home)}
        got = gate.classify(arguments["command"]).decision
        effect = "shell"
    else:
        arguments = {"path": filled(call["path"], home), "content": filled(call["content"], home)}
        got = gate.files.decide("write", arguments["path"]).decision
        effect = "edit"
        got = max(got, Decision.ASK, key=lambda d: d.rank)  # the usual question of the mode
    assert got.rank >= wanted.rank
    refusal = await gate(call["tool"], effect, arguments)
    assert refusal is not None, "without a person nothing of this runs"
    assert not refusal.by_person


def test_settings_that_a_tool_wrote_are_asked_about_at_the_next_start(places):
    home, workspace, gate = places
    (workspace / "AGENTS.md").write_text("be kind\n")
    trust = Trust(home / ".local/state/hypercode")
    trust.grant(workspace)
    case = next(c for c in CASES if c["id"] == "inject-s-005")
    call = case["scripted_calls"][0]
    verdict = gate.files.decide("write", call["path"])
    gate.files.grant("write", verdict.path)  # the person says yes
    gate.files.change("write", call["path"], lambda body: filled(call["content"], home).encode())
    assert trust.of(workspace) is TrustState.CHANGED
    assert trust.accepted(workspace) == []
    assert [(i.kind, i.known) for i in trust.describe(workspace)] == [("settings", False), ("instructions", True)]
