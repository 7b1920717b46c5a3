"""The gate on loop variables, folders lost on the way, links and includes, and on what it must not make too much of."""

from pathlib import Path

import pytest

from hypercode.safety.command import classify
from hypercode.safety.decision import Decision
from hypercode.safety.rules import parse_rule

WS, HOME = Path("/home/kim/src/app"), Path("/home/kim")

AUTO = r"""
for f in a b; do ls $f; done
for _ in 1 2; do echo x; done
for f in ./*; do sort "$f"; done
for f in *; do sort -- "$f"; done
for f in *.py; do wc -l "$f"; done
for d in */; do ls "$d"; done
for d in */; do cd "$d"; ls; done
for d in a b; do (cd $d && ls); done
for p in '*.py'; do find . -name "$p"; done
echo "$(cd src; cat x)"
time ls; cat x
! cd src; cat x
cd src && cat x | head
cd src && (ls)
grep -rn x --include='*.py' .
rg x -g '*.py' -g '!*.env'
rg -uu x
ls -L
git log -L1,9:src/a.py
cat .env.example~
cat a.py~
"""

ASK = r"""
for PS4 in '$(touch x)'; do set -x; ls; done
for PATH in ./bin; do ls; done
for PWD in /etc; do ls; done
for IFS in a; do ls; done
for BASH_ENV in a; do ls; done
for GIT_PAGER in a; do git log; done
for OLDPWD in /; do ls; done
for http_proxy in a; do ls; done
for histchars in a; do ls; done
for Path in a; do ls; done
for PATH; do ls; done
for f in *; do find "$f"; done
for f in *; do sort "$f"; done
for f in *; do sed -n p "$f"; done
for f in *; do xxd "$f"; done
for f in ?a; do sort "$f"; done
for f in [-]*; do sort "${f}"; done
for f in *; do for g in "$f"; do sort "$g"; done; done
time cd ..; cat outside.txt
time -p cd ..; cat x
! cd ..; cat x
! time cd ..; cat x
echo "$(cd ..; cat outside.txt)"
echo "`cd ..; cat outside.txt`"
echo `cd ..; cat outside.txt`
cat <(cd ..; cat outside.txt)
echo ${x:-$(cd ..; cat x)}
cd nosuch; (cat ../x)
cd nosuch; cat ../x | head
for i in 1 2; do cat outside.txt; cd ..; done
for d in .*/; do cd "$d"; cat x; done
grep -R x .
grep -nR x .
grep --dereference-recursive x .
find -L . -name x
find . -follow
rg -L x
rg --follow x
fd -L x
ls -LR
ls -L --recursive
du -L
tree -l
grep -rh '' --include=.env .
grep -rh '' --include '.en?' .
grep -rh '' --include='?env' .
rg --hidden '' -g .env
rg --hidden '' -g '.{env,x}'
rg -uuu x
rg -u -u -u x
git log -L1,9:.env
git log -L 1,9:.env
cat .env~
cat server.key.bak
"""

# Asked, yet an answer may be kept: not a circuit breaker.
ONLY_ASK = r"""
cat /etc/os-release
cat /etc/hosts
head -3 ~/.bashrc
pytest *.py
ruff check *.py
awk 1 *.py
sed -n 1p *.py
sort *.py
find src -name '*.py' -exec wc -l {} +
"""

ALWAYS = r"""
for PS4 in '$(rm -rf ~)'; do set -x; ls; done
select PS4 in '$(rm -rf ~)'; do set -x; ls; done
for PROMPT_COMMAND in 'rm -rf ~'; do ls; done
for HYPERCODE_HOME in x; do ls; done
echo "$(cd /etc; head -1 shadow)"
echo "$(cd /proc/self; cat environ)"
cat /etc/hosts > /etc/x
sort -o /etc/hosts a
./cat /etc/hosts
sed -i s/a/b/ *.py
sed -ni 1p *.py
find src -name '*.py' -exec sed -i s/a/b/ {} +
cp a *.py
touch *.py
echo x > *.py
black .vscode/*.json
"""


def decide(command, *deny):
    return classify(command, workspace=WS, home=HOME, deny=[parse_rule(r) for r in deny]).decision


def rows(*tables):
    return [(c, d) for text, d in tables for c in text.strip().split("\n")]


@pytest.mark.parametrize(
    ("command", "decision"),
    rows((AUTO, Decision.AUTO), (ONLY_ASK, Decision.ASK), (ALWAYS, Decision.ALWAYS_ASK)),
)
def test_the_decision_is_exactly_this(command, decision):
    assert decide(command) == decision


@pytest.mark.parametrize("command", ASK.strip().split("\n"))
def test_at_least_asked(command):
    assert decide(command).rank >= Decision.ASK.rank


@pytest.mark.parametrize("keyword", ["for", "select"])
@pytest.mark.parametrize("name", ["PS4", "GIT_PAGER", "BASH_ENV", "PROMPT_COMMAND"])
def test_a_deny_rule_sees_the_code_a_loop_puts_in_a_variable(keyword, name):
    assert decide(f"{keyword} {name} in a '$(rm x)'; do ls; done", "rm") == Decision.DENY
