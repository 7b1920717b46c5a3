"""Random shell lines run by a real bash that can only reach harmless programs and one, `zap`, that leaves a mark."""

import os
import random
import shutil
import subprocess
from pathlib import Path

from hypercode.safety.command import classify
from hypercode.safety.decision import Decision
from hypercode.safety.rules import parse_rule

TOOLS = ["ls", "cat", "grep", "head", "wc", "sort", "env", "xargs", "timeout", "sh", "bash", "sed", "find", "tr"]
COMMANDS = [
    "zap", "zap", "ls", "cat", "echo", "echo a", "cat <<E", "true", "head -1", "'zap'", "z\\ap", '"zap"', 'z""ap', "$'zap'",
    'sh -c "zap"', "eval 'zap'", "env zap", "command zap", "grep zap f", "x=zap", "$x", "x=", "y=$(zap)", "[ -f x ]",
    "[[ a = b ]]", "test a", "cd .", "exec zap", "time zap", "timeout 1 zap", "xargs zap", ". ./f", "printf zap", "echo zap",
    "sh", "bash", "f", "time", "!", "coproc", "read x", "sed -n p", "find . -name x", "find . -exec zap ;", "sort f",
    "let x=1", "export x=zap", "alias z=zap", "unset x", "set -- zap", "$1", '"$@"', "$@", "${x}", "trap zap EXIT", "exit",
    "return", "break", ":", "z?p", "{zap,a}", "z$@ap",
]  # fmt: skip
SYNTAX = [
    " ", "  ", "\n", ";", "; ", " && ", " || ", " | ", " |& ", " & ", "(", ")", "{ ", "; }", " $(", ")", "`", '"', "'", "\\",
    "\\\n", "\n\\\n", "\n\\", "\t", "<<E\n", "\nE\n", "<<'E'\n", "<<-E\n", '<<"E"\n', "<<\\E\n", " <<< ", " > o ", " >o", " 2>&1 ", " &> o ",
    " >| o ", " < f ", " <> o ", " >&2 ", " <(", " >(", "${x:-", "${x:+", "${x:=", "${x#", "${x//a/", "${#x}", "${!x}", "}",
    "$((", "))", "((", "$[", "]", "{a,", "{", ",", "case x in x) ", ";; ", " esac", "if ", " ; then ", " ; else ", " ; fi",
    "for i in ", " ; do ", " ; done", "while ", "until ", "function f ", "f() ", "f() {", " #", " # x\n", "#", "[[ ", " ]]",
    "[ ", " ]", "=", "$", "$'", '$"', "~", "*", "?", "!", "-n ", "-", "\r", "\x0b", "\xa0", "\x0c", "=(", " =~ ", "x=1 ",
    "x+=", "a[0]=", " 2>", " 3<", " <&3 ", " {fd}>o ", "! case x in x) ", "time case x in ", "x) ", "! { ", "coproc ", "select i in ", " in ", "do ", "then ", "E", "E\n", "\\$(", "\\`",
    '"$(', '")', " | sh", " | bash", "${x@P}", "${x@Q}", "$0", "$?", "$x", '"$x"', "@(a|b)", "+(a)", "\u2028", "é",
]  # fmt: skip
BEFORE = [
    "",
    "! ",
    "time ",
    "time -p ",
    "coproc ",
    "coproc X ",
    "! ! ",
    "! time ",
    "!\\\n ",
    "f() ",
    "function f ",
    "time -- ",
]
COMPOUND = [
    "case x in x) @;; esac", "case x in (x) @;; esac", "case x in a|x) @; esac", "case x in a) ls;; *) @;; esac", "case x\nin\nx)\n@\n;;\nesac",
    "case x in a) ls;; esac; @", "case x in x) ls;& y) @;; esac", 'case "$(@)" in *) true;; esac', "case x in # )\nx) @;; esac", "case x in [a-z]) @;; esac",
    "if true; then @; fi", "if @; then ls; fi", "for i in a; do @; done", "for ((i=0; i<1; i++)); do @; done", "while @; do break; done",
    "until true; do ls; done; @", "select i in a; do @; break; done", "{ @; }", "( @ )", "[[ a = a ]] && @", "ca\\\nse x in x) @;; esac", "@",
]  # fmt: skip
AROUND = [
    "@", "echo $(@)", 'echo "$(@)"', 'echo "a$(@)b" c', "echo `@`", 'echo "`@`"', "cat <(@)", "ls > >(@)", 'x="$(@)"', "x=$(@) ls", "cat <<E\n$(@)\nE",
    "cat <<E\n`@`\nE", '[[ "$(@)" ]]', '[ -n "$(@)" ]', "( @ )", "{ @; }", "for i in $(@); do ls; done", "f() { @; }; f", "if @; then ls; fi",
    "while @; do break; done", "echo ${x:-$(@)}", 'cat <<< "$(@)"', "ls | @", "$(@)", "echo $(ls\n@\n)", "echo $(ls # )\n@\n)", "echo $(( $(@) ))",
    'eval "$(@)"', "sh -c '@'", "@ | cat", "@ > o", "@ &\nwait", "echo $(cat <<E\n)\nE\n@\n)", "x=(a $(@))", "echo {a,$(@)}",
]  # fmt: skip
ZAP = parse_rule("zap")


class Bash:
    """A bash in a folder of its own, with a path that holds the tools above and `zap`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark = folder / "work", folder / "mark"
        self.tools = folder / "bin"
        self.tools.mkdir(parents=True)
        self.folder.mkdir()
        for tool in TOOLS:
            (self.tools / tool).symlink_to(shutil.which(tool))
        (self.tools / "zap").write_text(f"#!/bin/sh\n: > {self.mark}\n")
        (self.tools / "zap").chmod(0o755)

    def zaps(self, line: str) -> bool:
        """Whether running the line really runs zap."""
        self.mark.unlink(missing_ok=True)
        for left in self.folder.iterdir():  # a file of an earlier line, named zap, that `eval "$(ls)"` would find
            left.unlink()
        try:
            subprocess.run(
                [shutil.which("bash"), "-c", line], env={"PATH": str(self.tools), "HOME": str(self.folder)},
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10,
            )  # fmt: skip
        except (subprocess.TimeoutExpired, ValueError):
            pass
        return self.mark.exists()

    def escape(self, line: str) -> str:
        """How the gate is wrong about a line; empty if it is not."""
        here = {"workspace": self.folder, "home": Path("/home/kim")}
        plain, denied = classify(line, **here).decision, classify(line, **here, deny=[ZAP]).decision
        if plain != Decision.AUTO and denied == Decision.DENY:
            return ""
        return f"{plain} unasked, {denied} when forbidden: {line!r}" if self.zaps(line) else ""


def nested(rnd: random.Random) -> str:
    """A command inside compound commands and substitutions, most of them well formed."""
    line = rnd.choice(COMMANDS) if rnd.random() < 0.5 else "zap"
    for _ in range(rnd.randint(1, 3)):
        line = rnd.choice(BEFORE) + rnd.choice(COMPOUND).replace("@", line)
        line = rnd.choice(AROUND).replace("@", line)
    return line


def lines(seed: int, count: int):
    rnd = random.Random(seed)
    for _ in range(count):
        if rnd.random() < 0.3:
            yield nested(rnd)
            continue
        pieces = []
        for _ in range(rnd.randint(1, 7)):
            pieces.append(rnd.choice(SYNTAX) if rnd.random() < 0.55 else rnd.choice(COMMANDS))
            pieces.append(" " if rnd.random() < 0.4 else "")
        yield "".join(pieces)


def escapes(folder: Path, seed: int, count: int) -> list[str]:
    bash = Bash(folder)
    assert bash.zaps("zap")
    assert not bash.zaps("ls")
    return [wrong for line in lines(seed, count) if (wrong := bash.escape(line))]


def seed_from_environment() -> int:
    return int(os.environ.get("SHELL_FUZZ_SEED", "1"))
