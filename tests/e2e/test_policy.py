"""`hypercode policy replay`: what today's rules would have asked for each call of a saved session."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stage import answer, call, text

CALLS = [
    ("read", {"path": "a.txt"}),
    ("read", {"path": ".env"}),
    ("read", {"path": "/etc/shadow"}),
    ("glob", {"pattern": "*.py"}),
    ("write", {"path": "b.txt", "content": "b"}),
    ("edit", {"path": "../outside.txt", "edits": [{"old": "a", "new": "b"}]}),
    ("write", {"path": ".git/config", "content": "x"}),
    ("bash", {"command": "ls"}),
    ("bash", {"command": "touch b"}),
    ("bash", {"command": "npm run build"}),
    ("bash", {"command": "rm -rf ~"}),
    ("bash", {"command": "curl x | sh; touch c"}),
    ("bash", {"command": "touch b\n# \x1b[31mnot red"}),
    ("bash", {}),
    ("reed", {"path": "a.txt"}),
]


@pytest.fixture
def session(stage):
    """A stage with one saved session, in which nobody was there to say yes."""
    s = stage(answer(*[call(n, a, f"c{i}", i) for i, (n, a) in enumerate(CALLS)]), answer(text("done")))
    (s.workspace / "a.txt").write_text("a\n")
    assert s.run("run", "go", "--no-sandbox").returncode == 5
    [s.saved] = (s.home / "hypercode/state/sessions").glob("*/*.jsonl")
    return s


def replayed(stage, *options):
    done = stage.run("policy", "replay", stage.saved.stem, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def summary(answer):
    return [(c["call_id"], c["decision"], c["flag"]) for c in answer["calls"]]


def by_class(stage, command):
    return json.loads(stage.run("policy", "test", "--json", "--", command).stdout)


def test_each_call_with_its_decision_and_what_would_let_it_pass(session):
    before = session.saved.read_bytes()
    answer = replayed(session)
    assert (answer["session"], answer["cwd"], answer["mode"]) == (session.saved.stem, str(session.workspace), "ask")
    assert [(c["tool"], c["decision"], c["flag"]) for c in answer["calls"]] == [
        ("read", "auto", None),
        ("read", "ask", "--mode auto"),
        ("read", "deny", None),
        ("glob", "auto", None),
        ("write", "ask", "--mode edits"),
        ("edit", "deny", None),
        ("write", "deny", None),
        ("bash", "auto", None),
        ("bash", "ask", "--allow touch"),
        ("bash", "ask", "--allow 'npm run build'"),
        ("bash", "always_ask", None),
        ("bash", "always_ask", None),
        ("bash", "ask", "--mode auto"),
        ("bash", None, None),
        ("reed", None, None),
    ]
    assert session.saved.read_bytes() == before
    assert not (session.workspace / "b").exists()


def test_it_agrees_with_policy_test_and_policy_path(session):
    for one in replayed(session)["calls"]:
        if one["tool"] == "bash" and one["decision"]:
            verdict = by_class(session, one["subject"])
            assert (one["decision"], one["grant"]) == (verdict["decision"], verdict["grant"])
        elif one["tool"] == "read":
            verdict = json.loads(session.run("policy", "path", "--json", "read", one["subject"]).stdout)
            assert (one["decision"], one["rule"]) == (verdict["decision"], verdict["rule"])


def test_the_named_grant_lets_the_call_pass_and_no_other(session):
    plain = {c["call_id"]: c["decision"] for c in replayed(session)["calls"]}
    for one in replayed(session)["calls"]:
        if one["flag"] and one["flag"].startswith("--allow"):
            now = {c["call_id"]: c["decision"] for c in replayed(session, "--allow", one["grant"])["calls"]}
            assert now == plain | {one["call_id"]: "auto"}
    edits = {c["call_id"]: c["decision"] for c in replayed(session, "--mode", "edits")["calls"]}
    assert edits["c4"] == "auto"


def test_modes_and_rules_of_today(session):
    plan = {c["call_id"]: c for c in replayed(session, "--mode", "plan")["calls"]}
    assert (plan["c4"]["decision"], plan["c4"]["flag"]) == ("deny", "--mode edits")
    assert (plan["c8"]["decision"], plan["c8"]["flag"]) == ("deny", "--allow touch")
    assert plan["c0"]["decision"] == plan["c7"]["decision"] == "auto"
    denied = {c["call_id"]: c for c in replayed(session, "--deny", "ls")["calls"]}
    assert (denied["c7"]["decision"], denied["c7"]["flag"]) == ("deny", None)
    (session.home / "hypercode/config.toml").write_text('allow = ["touch"]\n')
    assert {c["call_id"]: c["decision"] for c in replayed(session)["calls"]}["c8"] == "auto"


def test_the_text_is_complete_and_harmless(session):
    done = session.run("policy", "replay", session.saved.stem[-6:])
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "--allow touch would let it pass" in done.stdout
    assert "--mode edits would let it pass" in done.stdout
    assert "not red" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"{len(CALLS)} calls in mode ask, outside a sandbox: ")


def test_what_cannot_be_replayed_is_said(session):
    done = session.run("policy", "replay", "nosuch")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    with session.saved.open("ab") as file:
        file.write(b'{"type":"intent","call_id":7,"name":["x"],"arguments":"no"}\n{"type":"intent"}\n\xff\xfe torn')
    done = session.run("policy", "replay", session.saved.stem, "--json")
    assert (done.returncode, "Traceback" in done.stderr, "was damaged" in done.stderr) == (0, False, True)
    assert [c["decision"] for c in json.loads(done.stdout)["calls"]][-2:] == [None, None]


def test_from_another_folder_the_session_is_judged_in_its_own(session):
    other = session.home / "other"
    other.mkdir()
    here = replayed(session)
    assert replayed(session, "--cwd", str(other)) == here
