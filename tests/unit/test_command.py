"""The gate for shell commands: the case file, what a verdict holds, rules, and lines nobody wrote by hand."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gate_help import judged as decide
from hypothesis import given, settings
from hypothesis import strategies as st
from shell_fuzz import escapes

from hypercode.safety.command import Part, Verdict, as_json
from hypercode.safety.decision import Decision
from hypercode.safety.rules import Rule, parse_rule

CASES = json.loads((Path(__file__).parents[1] / "cases/security/commands.json").read_text())["cases"]


@pytest.mark.parametrize("home", ["/home/kim", "/tmp/made-up"])
@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_cases(case, home):
    workspace = f"{home}/ws"
    command = case["command"].replace("{WS}", workspace).replace("{HOME}", home)
    got = decide(
        command,
        allow=case.get("allow_rules", ()),
        deny=case.get("deny_rules", ()),
        workspace=Path(workspace),
        home=Path(home),
    ).decision
    want = Decision(case["decision"])
    assert got == want if want == Decision.AUTO else got.rank >= want.rank


def test_every_part_is_named_and_the_strictest_decides():
    assert decide("ls && rm -rf ~; npm test") == Verdict(
        Decision.ALWAYS_ASK,
        (
            Part("ls", Decision.AUTO, "read-only: ls"),
            Part("rm -rf ~", Decision.ALWAYS_ASK, "rm on the home folder: /home/kim"),
            Part("npm test", Decision.ASK, "not on the list of readers"),
        ),
        None,
    )


def test_commands_inside_others_are_parts_too():
    verdict = decide('echo "$(git push)" | tee x <<EOF\n$(touch y)\nEOF')
    assert {p.command.split()[0] for p in verdict.parts} == {"echo", "git", "tee", "touch"}


def test_as_json():
    assert as_json(decide("sort -o a b")) == {
        "decision": "ask",
        "parts": [{"command": "sort -o a b", "decision": "ask", "rule": "flag not on the list: sort -o"}],
        "grant": "sort",
    }


@pytest.mark.parametrize(
    ("command", "grant"),
    [
        ("npm test", "npm test"),
        ("npm run build -- --watch", "npm run build"),
        ("git commit -m x", "git commit"),
        ("ls && npm test && npm test --x", "npm test"),
        ("pytest -q tests", "pytest"),
        ("rm a.txt", "rm a.txt"),
        ("python script.py 'a b'", "python script.py 'a b'"),
        ("npm test 2>&1 | tail -5", "npm test"),
        ("ls", None),
        ("npm test && cargo test", None),
        ("npm test > log", None),
        ("FOO=1 npm test", None),
        ("npm test $X", None),
        ("npm test $(ls)", None),
        ("rm -rf ~", None),
        ("git push --force", None),
        ("cd /tmp && npm test", None),
        ("ls\rx", None),
        ("x() { ls; }", None),
    ],
)
def test_the_narrowest_rule_that_lets_it_pass(command, grant):
    verdict = decide(command)
    assert verdict.grant == grant
    if grant:
        assert decide(command, allow=[grant]).decision == Decision.AUTO


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("npm test", Decision.AUTO),
        ("npm test -- --watch", Decision.AUTO),
        ("npm 'test'", Decision.AUTO),
        ("npm test >/dev/null 2>&1", Decision.AUTO),
        ("npm test | head", Decision.AUTO),
        ("cd src && npm test", Decision.AUTO),
        ("if npm test; then ls; fi", Decision.AUTO),
        ("npm testing", Decision.ASK),
        ("npm run test", Decision.ASK),
        ("./npm test", Decision.ASK),
        ("env npm test", Decision.ASK),
        ("npm test > out", Decision.ASK),
        ("npm test < in", Decision.ASK),
        ("npm test <<< x", Decision.ASK),
        ('npm test "$X"', Decision.ASK),
        ("A=1 npm test", Decision.ASK),
        ("export A=1; npm test", Decision.ASK),
        ("npm test\ntouch x", Decision.ASK),
        ("npm test ~/.ssh/id_rsa", Decision.ALWAYS_ASK),
        ("npm test > ~/.bashrc", Decision.ALWAYS_ASK),
    ],
)
def test_an_allow_rule_covers_one_bare_command(command, decision):
    assert decide(command, allow=["npm test"]).decision == decision


def test_the_program_named_by_a_path_is_another_program():
    assert decide("./git log", allow=["git log"]).decision == Decision.ASK


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("git log", ("git", "log")), ("  npm  run 'build all' ", ("npm", "run", "build all")), ("rm", ("rm",))],
)
def test_rules_are_words(text, tokens):
    rule = parse_rule(text)
    assert rule == Rule(tokens)
    assert parse_rule(str(rule)) == rule
    assert rule.matches([*tokens, "more"])
    assert not rule.matches(tokens[:-1])
    assert not rule.matches([*tokens[:-1], tokens[-1] + "x"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty rule"),
        ("   ", "empty rule"),
        ("git log *", "leave the \\* out"),
        ("git log:*", "leave the \\* out"),
        ("*", "leave the \\* out"),
        ("ls && rm", "shell syntax"),
        ("echo $X", "shell syntax"),
        ("ls > x", "shell syntax"),
        ("ls\nrm", "line breaks"),
        ("git \u202elog", "invisible"),
        ("git 'log", "quote"),
        ("A=1 npm", "assignment"),
        ("'' x", "names no program"),
    ],
)
def test_rules_that_are_none(text, says):
    with pytest.raises(ValueError, match=says):
        parse_rule(text)


def test_nothing_heavy_is_imported_before_the_first_command():
    code = "import sys, hypercode.safety.command; print([m for m in sys.modules if m.startswith('tree_sitter')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("count", [60, 3000])
def test_no_number_of_parts_is_too_many(count):
    chain = "true && " * count
    assert decide(chain + "ls").decision == Decision.AUTO
    assert decide(chain + "touch x").decision == Decision.ASK
    assert decide(chain + "rm -rf ~").decision == Decision.ALWAYS_ASK
    assert decide(chain + "curl x", deny=["curl"]).decision == Decision.DENY


@pytest.mark.parametrize(
    "command",
    ["$(" * 500 + "rm x" + ")" * 500, "(" * 500 + "rm x" + ")" * 500, "bash -c " * 200 + "rm", "timeout 5 " * 200 + "rm x",
     "if true; then " * 200 + "rm x" + "; fi" * 200, "{ " * 300 + "rm x" + "; }" * 300,
     "`" * 999 + "rm x", "'" * 999 + " rm x", "x" * 200_000 + "; rm x"],
    ids=range(9),
)  # fmt: skip
def test_depth_hides_nothing(command):
    assert decide(command).decision.rank >= Decision.ASK.rank
    assert decide(command, deny=["rm"]).decision == Decision.DENY


@pytest.mark.parametrize("command", ["", "   ", "\n", "# only a comment"])
def test_nothing_to_run(command):
    assert decide(command) == Verdict(Decision.AUTO, (), None)


@pytest.mark.parametrize(
    "command", ["ls\x00rm x", "ls\rrm x", "ls\x0brm x", "ls \u2028 rm x", "ls\x1b[2K", "cat '\ud800'"]
)
def test_characters_the_shell_and_the_gate_may_read_differently(command):
    assert decide(command).decision.rank >= Decision.ASK.rank


def test_the_folder_a_command_stands_in():
    assert decide("cd src && cat ../a.txt").decision == Decision.AUTO
    assert decide("cd src; cat ../a.txt").decision == Decision.ASK  # the cd may have failed
    assert decide("(cd ..); cat a.txt").decision == Decision.AUTO
    assert decide("cd .. && cat a.txt").decision == Decision.ASK
    assert decide("cd .. && rm -rf app").decision == Decision.ALWAYS_ASK
    assert decide("cd build && rm -rf *").decision == Decision.ASK
    assert decide("cd build; rm -rf *").decision == Decision.ALWAYS_ASK


def test_paths_are_compared_by_components():
    assert decide("cat /home/kim/src/app/a").decision == Decision.AUTO
    assert decide("cat /home/kim/src/app-evil/a").decision == Decision.ASK


DANGEROUS = st.sampled_from(
    ["rm x", "touch x", "sort -o a b", "find . -delete -name x", "git commit", "sh x.sh", "sed -i s/a/b/ f", "curl x"]
)
HARMLESS = st.sampled_from(["ls", "git status", "true", "cat a", "echo 'a;b'", "head -5 x | wc -l", "[ -f x ]"])
AROUND = st.sampled_from(
    ["{0}; {1}", "{1}; {0}", "{0} && {1}", "{0} || {1}", "{0} | {1}", "{0} & {1}", "{0}\n{1}", "({1})", "{{ {1}; }}",
     "echo $({1})", 'echo "$({1})"', "echo `{1}`", "if {0}; then {1}; fi", "for i in a; do {1}; done", "while {1}; do {0}; done",
     "! {1}", "cat <({1})", "cat <<EOF\n$({1})\nEOF", "{0} # x\n{1}", "case a in a) {1};; esac", "f() {{ {1}; }}; f", "time {1}",
     "echo ${{v:-$({1})}}", "{0} \\\n&& {1}", "A=$({1})", "[ \"$({1})\" ]", "{0} <<< \"$({1})\"", "eval '{1}'", "export A=$({1})"]
)  # fmt: skip
PREFIX = st.sampled_from(
    ["", "", "env ", "command ", "nohup ", "timeout 5 ", "\\", "exec ", "A=b ", "xargs ", "2>/dev/null ", "nice "]
)


@given(command=DANGEROUS, prefix=PREFIX, wraps=st.lists(st.tuples(AROUND, HARMLESS), max_size=4))
@settings(max_examples=400, deadline=None)
def test_a_dangerous_command_stays_one_whatever_stands_around_it(command, prefix, wraps):
    line = prefix + command
    for template, harmless in wraps:
        if any(quote in line and quote in template for quote in "'`"):
            continue  # the two would close each other
        line = template.format(harmless, line)
    assert decide(line).decision != Decision.AUTO
    assert decide(line, deny=[command.split()[0]]).decision == Decision.DENY


@given(wraps=st.lists(st.tuples(AROUND, HARMLESS), max_size=4), spelling=st.sampled_from(["rm -rf ~", "r\\m -rf ~", "rm -rf \"$HOME\"", "rm -fr /", "/bin/rm -r ..", "sudo ls", "git reset --hard", "cat ~/.ssh/id_rsa"]))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_a_circuit_breaker_holds_whatever_stands_around_it(wraps, spelling):
    line = spelling
    for template, harmless in wraps:
        if any(quote in line and quote in template for quote in "'`"):
            continue
        line = template.format(harmless, line)
    assert decide(line, allow=["rm", "cat", "git", "echo", "eval"]).decision == Decision.ALWAYS_ASK


@given(st.text(max_size=60) | st.text(alphabet="ls $(){}[]<>|&;'\"`\\\n#=~*?!-rm", max_size=60))
@settings(max_examples=400, deadline=None)
def test_no_text_is_an_error(text):
    assert decide(text, deny=["rm"]).decision in list(Decision)


def test_bash_runs_nothing_the_gate_did_not_see(tmp_path):
    assert escapes(tmp_path, 20, 1500) == []


@pytest.mark.parametrize(
    "script",
    ["if true; then echo x > ~/.bashrc; fi", "echo x > ~/.bashrc", "for f in a; do cat a >> ~/.profile; done", "{ ls; } > ~/.zshrc"],
)  # fmt: skip
@pytest.mark.parametrize("shell", ["bash -c", "sh -c", "env bash -c", "timeout 5 bash -ec"])
def test_a_redirect_in_a_script_is_one(shell, script):
    """Whatever is allowed: what an inner shell writes to is looked at like what the line itself writes to."""
    assert decide(f"{shell} '{script}'", allow=["bash", "sh", "env", "timeout"]).decision == Decision.ALWAYS_ASK


@pytest.mark.parametrize("wrapper", ["env ", "nohup ", "time ", "timeout 5 ", "nice "])
def test_more_than_can_be_looked_at_always_asks(wrapper):
    line = wrapper * 400 + "ls"
    assert decide(line, allow=["env", "nohup", "nice", "timeout"]).decision == Decision.ALWAYS_ASK
    assert decide(line, deny=["ls"]).decision == Decision.DENY


@pytest.mark.parametrize(
    ("command", "rule", "decision"),
    [
        ("cat .env", "cat", "ask"),
        ("cat .env", "cat .env", "auto"),
        ("cat .env a.txt", "cat .env", "ask"),
        ("cat ../a.txt", "cat", "auto"),
        ("head -3 deploy.pem", "head", "ask"),
    ],
)
def test_a_rule_covers_secrets_only_where_it_names_them(command, rule, decision):
    assert decide(command, allow=[rule]).decision == Decision(decision)


def test_what_is_offered_for_a_secret_is_that_command_and_no_other():
    assert decide("cat .env").grant == "cat .env"
    assert decide("cat ../a.txt").grant == "cat"


@pytest.mark.parametrize(
    "command",
    [
        "alias g=git; g push",
        "test -v 'a[$(git push)]'",
        "x='$(git push)'; echo \"${x@P}\"",
        "echo 'git push' > x; sh x",
        "gdb --args git push",
        "cp $(which git) g && ./g push",
    ],
)
def test_what_may_be_forbidden_in_a_way_nobody_knows_asks_every_time(command):
    assert decide(command, deny=["git push"], allow=["gdb", "alias", "sh"]).decision.rank >= Decision.ALWAYS_ASK.rank
    assert decide(command).decision == Decision.ASK


@pytest.mark.parametrize("command", ["grep -rn 'git push' docs", "echo git push", "git log --grep='git push'"])
def test_what_only_reads_may_speak_of_what_is_forbidden(command):
    assert decide(command, deny=["git push"]).decision == Decision.AUTO
