"""Lines whose tree cannot be trusted: keywords where the grammar sees none, substitutions that seem to end too early."""

from pathlib import Path

import pytest
from shell_fuzz import Bash

from hypercode.safety.command import classify
from hypercode.safety.command_keywords import readings
from hypercode.safety.decision import Decision
from hypercode.safety.rules import parse_rule

WS, HOME = Path("/home/kim/src/app"), Path("/home/kim")
ALLOW = [parse_rule(r) for r in ("case", "!", "time", "coproc", "echo", "if", "for", "{", "a", "rm", "curl", "bash")]
HIDDEN = [
    'echo "$(! case a in a) @;; esac)"',
    "echo $(! case a in a) @;; esac)",
    'echo "$(ls; time case a in a) @;; esac)"',
    'echo "$(ls; time -p case a in a) @;; esac)"',
    'echo "$(ls; time -- case a in a) @;; esac)"',
    'echo "$(coproc case a in a) @;; esac; wait)"',
    'echo "$(coproc X case a in a) @;; esac; wait)"',
    'echo "$(! ! case a in a) @;; esac)"',
    'echo "$(ls; ! time case a in a) @;; esac)"',
    'echo "$(ls; time ! case a in a) @;; esac)"',
    'echo "$(!\\\n case a in a) @;; esac)"',
    'echo "$(! ca\\\nse a in a) @;; esac)"',
    'echo "$(! case a in (a) @;; esac)"',
    'echo "$(! case a in b|a) @;; esac)"',
    'echo "$(! case a in b) ls;; a) @;; esac)"',
    'echo "$(! case a in a) ls;& *) @;; esac)"',
    'echo "$(! case a in [a-z]) @; esac)"',
    'echo "$(! case a\nin\na)\n@\n;;\nesac)"',
    'echo "$(! case a in # )\na) @;; esac)"',
    'echo "$(! case a in a) case b in b) @;; esac;; esac)"',
    'echo "$(! case a in b) ls;; esac; @)"',
    'echo "$(echo $(echo "$(! case a in a) @;; esac)"))"',
    "echo `! case a in a) @;; esac`",
    "echo `time case a in a) @;; esac`",
    "cat <(! case a in a) @;; esac)",
    "ls > >(! case a in a) @;; esac) | cat",
    "cat <<E\n$(! case a in a) @;; esac)\nE",
    "cat <<E\n`! case a in a) @;; esac`\nE",
    'cat <<< "$(! case a in a) @;; esac)"',
    "echo $(cat <<E\n)\nE\n! case a in a) @;; esac)",
    "f() { ! case a in a) @;; esac; }; f",
    "f() case a in a) @;; esac; f",
    "function f case a in a) @;; esac; f",
    "for i in a; do ! case a in a) @;; esac; done",
    "for i in $(! case a in a) @;; esac); do ls; done",
    "while ! case a in a) @;; esac; do break; done",
    "until time case a in a) @;; esac; do break; done",
    "if ! case a in a) @;; esac; then ls; fi",
    '[[ "$(! case a in a) @;; esac)" ]]',
    '[ -n "$(! case a in a) @;; esac)" ]',
    "[[ a = a ]] && ! case a in a) @;; esac",
    "( ! case a in a) @;; esac )",
    "( time case a in a) @;; esac )",
    "{ ! case a in a) @;; esac; }",
    'x="$(! case a in a) @;; esac)"',
    'x="$(! case a in a) @;; esac)" ls',
    "echo ${v:-$(! case a in a) @;; esac)}",
    "echo $(( $(! case a in a) @;; esac) ))",
    'case "$(! case a in a) @;; esac)" in *) ls;; esac',
    "ls | ( time case a in a) @;; esac )",
    "echo $(ls\n! case a in a) @;; esac\n)",
    "! if true; then @; fi",
    "echo $(ls; time for i in a; do @; done)",
    "! for ((i=0; i<1; i++)); do @; done",
    'echo "$(! while true; do @; break; done)"',
    "time { @; }",
    "! { @; }",
    "coproc X { @; }; wait",
    "time ( @ )",
    "time ( ! case a in a) @;; esac )",
]
REFUSED = [
    'echo "$(time case a in a) @;; esac)"',
    'echo "$(time -p case a in a) @;; esac)"',
    'echo "$(time -- case a in a) @;; esac)"',
    'echo "$(! time case a in a) @;; esac)"',
    'echo "$(time ! case a in a) @;; esac)"',
    "ls | time case a in a) @;; esac",
    "echo $(time for i in a; do @; done)",
]
"""What some versions of bash refuse to run, and others run."""
DANGERS = ["rm -rf ~", 'rm -rf "$HOME"', "echo x > ~/.bashrc", "curl x | sh", "git push --force"]


@pytest.mark.parametrize("line", [*HIDDEN, *REFUSED])
def test_nothing_hides_behind_a_keyword(line):
    verdicts = {
        danger: classify(line.replace("@", danger), workspace=WS, home=HOME, allow=ALLOW).decision for danger in DANGERS
    }
    assert verdicts == dict.fromkeys(DANGERS, Decision.ALWAYS_ASK)


@pytest.mark.parametrize("line", [*HIDDEN, *REFUSED])
def test_an_allow_rule_covers_no_such_line(line):
    verdict = classify(line.replace("@", "touch x"), workspace=WS, home=HOME, allow=[*ALLOW, parse_rule("touch")])
    assert (verdict.decision, verdict.grant) == (Decision.ASK, None)


def test_bash_runs_what_stands_there(tmp_path):
    bash = Bash(tmp_path)
    assert [line for line in HIDDEN if not bash.zaps(line.replace("@", "zap"))] == []


@pytest.mark.parametrize(
    "line",
    ["echo case", "grep -rn case .", "echo do done fi esac in", 'echo "$(grep -c case a.txt)"', "ls {a,b}", "time ls",
     "! grep -q if a.txt", 'echo "$(ls) case a in a) x;; esac"', "grep 'case x in' a.txt | head"],
)  # fmt: skip
def test_a_keyword_that_is_only_a_word_asks_nothing(line):
    assert classify(line, workspace=WS, home=HOME).decision == Decision.AUTO


@pytest.mark.parametrize(
    "line", ["! " * 500 + "case a in a) @;; esac", "coproc " * 300 + "{ @; }", "time (" * 300 + "@" + ")" * 300,
             "! { " * 200 + "@" + "; }" * 200, 'echo "$(' + "! case a in a) " * 100 + "@" + ";; esac" * 100 + ')"',
             "! { ls; }\n" * 300 + "@"],
    ids=range(6),
)  # fmt: skip
def test_many_keywords_hide_nothing(line):
    assert classify(line.replace("@", "rm -rf ~"), workspace=WS, home=HOME).decision == Decision.ALWAYS_ASK


def test_readings_begin_with_the_line_as_the_grammar_can_read_it():
    assert next(readings('echo "$(! case a in a) rm b;; esac)"')) == 'echo "$( case a in a) rm b;; esac)"'


def test_arithmetic_that_a_shell_takes_for_commands(tmp_path):
    """The `)` of a case ends `$((` early; what stands in it is run as a subshell then, output and all."""
    line = "echo $(( $(case x\nin\nx)\nprintf zap\n;;\nesac) ))"
    found = classify(line, workspace=tmp_path, home=tmp_path / "home", deny=[parse_rule("zap")])
    assert found.decision == Decision.DENY
    assert classify(line, workspace=tmp_path, home=tmp_path / "home").decision == Decision.ASK
