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
    assert (plan["c8"]["decision"], plan["c8"]["flag"]) == ("deny", "--mode auto")
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


@pytest.mark.parametrize("resumed", [False, True])
def test_calls_that_a_crash_kept_from_their_question_are_judged_too(session, resumed):
    """Also when the session has gone on since; a call that was run is judged once."""
    records = [json.loads(line) for line in session.saved.read_bytes().splitlines()]
    whole = replayed(session)["calls"]
    last = next(n for n, r in enumerate(records) if r["type"] == "intent" and r["call_id"] == "c8")
    kept = session.saved.read_bytes().splitlines(True)[: last + 1]
    if resumed:
        owed = [f"c{n}" for n in range(8, len(CALLS))]
        results = [{"type": "result", "message": {"role": "tool", "tool_call_id": i, "content": "x"}} for i in owed]
        kept += [json.dumps({**result, "kind": "unknown"}).encode() + b"\n" for result in results]
    session.saved.write_bytes(b"".join(kept))
    assert replayed(session)["calls"] == whole


def test_calls_of_a_reply_that_was_cut_are_no_calls(stage):
    s = stage(answer(call("bash", {"command": "ls"}, "c1", 0), finish="length"), answer(text("done")))
    s.run("run", "go")
    [s.saved] = (s.home / "hypercode/state/sessions").glob("*/*.jsonl")
    assert b'"assistant"' in s.saved.read_bytes()
    assert replayed(s)["calls"] == []


def test_what_was_not_run_is_recorded_as_not_begun(session):
    """A kill between the record of a refused call and that of its result tells of nothing that was done."""
    records = [json.loads(line) for line in session.saved.read_bytes().splitlines()]
    begun = {r["call_id"] for r in records if r["type"] == "intent" and r.get("begun", True)}
    failed = {r["message"]["tool_call_id"] for r in records if r["type"] == "result" and r["is_error"]}
    assert {"c0", "c3", "c7"} <= begun
    assert not begun & failed


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (
            "ask",
            "ask\n  ask        pip install x   (not on the list of readers)\n  --allow 'pip install' would let it pass\n",
        ),
        ("auto", "auto\n  ask        pip install x   (not on the list of readers)\n  mode auto makes auto of ask\n"),
    ],
)
def test_what_a_mode_makes_of_a_command_is_said(stage, mode, said):
    assert stage().run("policy", "test", "--mode", mode, "--", "pip install x").stdout == said
