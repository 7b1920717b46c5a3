"""Shell lines of every shape that could cost the gate more than its length, each as long as one asks for."""

from collections.abc import Callable

__all__ = ["LINES"]

_REPEATED = {  # before, what is repeated, after
    "not": ("", "! ", "case x in x) ls;; esac"),
    "wrappers": ("", "nohup ", "ls"),
    "wrappers of scripts": ("", "bash -c ", "ls"),
    "eval": ("", "eval ", "ls"),
    "time": ("", "time case x in x) ", ""),
    "coproc": ("", "coproc a ", "ls"),
    "pipes": ("", "ls | ", "cat"),
    "pipes alone": ("", "|", ""),
    "lists": ("", "ls && ", "ls"),
    "lines": ("", "ls\n", ""),
    "redirects": ("ls ", "2>&1 ", ""),
    "input redirects": ("cat ", "< f ", ""),
    "signs": ("", ">", ""),
    "groups": ("", "{ ", ""),
    "subshells": ("", "(", "ls"),
    "closing": ("", ")", ""),
    "substitutions": ("echo ", "$(ls) ", ""),
    "substitutions open": ("echo ", "$(", ""),
    "substitutions glued": ('echo "', "$(ls)", '"'),
    "substitutions of cases": ("! echo ", "$(! case x in x) ls;; esac) ", ""),
    "process substitutions": ("cat ", "<(ls) ", ""),
    "backquotes": ("echo ", "`ls` ", ""),
    "backquotes in defaults": ('echo "${x:-', "`ls`", '}"'),
    "arithmetic": ("echo $((", "1+", "1))"),
    "arithmetic open": ("", "((", ""),
    "tests": ("[[ ", "-f a && ", "-f b ]]"),
    "assignments": ("", "a=1 ", "ls"),
    "values": ("; ".join(f"a=v{i}" for i in range(64)) + "; rm ", "$a", ""),
    "values in a loop": ("for a in " + " ".join(f"v{i}" for i in range(64)) + "; do ", "cat $a;", "done"),
    "braces": ("rm ", "{a,b}", ""),
    "braces open": ("rm ", "{a,", ""),
    "ranges": ("rm ", "{1..999999} ", ""),
    "quotes": ("echo ", "'a'", ""),
    "quotes open": ('echo "', "a\" '", ""),
    "escaped quotes": ("python -c '", '\\"', "'"),
    "escapes": ("echo ", "\\a", ""),
    "code in C's quotes": ("echo $'", "\\x41", "'"),
    "dollars": ("echo ", "$", ""),
    "defaults": ("echo ", "${a:-", ""),
    "here-document": ("cat <<'E'\n", "it's `x` $(y)\n", "E"),
    "here-document that expands": ("cat <<E\n", "$a `x` $(y)\n", "E"),
    "here-document of a shell": ("bash <<'E'\n", "ls x\n", "E"),
    "here-documents open": ("cat ", "<<E ", ""),
    "case": ("case x in ", "a) ls;; ", "esac"),
    "case words": ("", "case ", ""),
    "functions": ("", "f() ", "ls"),
    "functions of cases": ("", "f() case x in x) ls;; esac; ", ""),
    "if": ("", "if ls; then ", ""),
    "for": ("echo ", "for ", ""),
    "letters beyond ASCII": ("ls ", "é ", ""),
    "returns": ("", "ls\r", ""),
    "names with NUL": ("", "ls\0", ""),
    "globs": ("rm ", "*a*/*b* ", ""),
    "globs in one word": ("rm ", "?/*", ""),
    "long word": ("ls ); ", "a", ""),
    "blanks": ("psql -c 'delete", " ", "'"),
    "upwards": ("cat ", "../", "x"),
    "settings": ("rm ", "a=", ""),
    "arguments": ("cat ", "a ", ""),
    "fed shells": ("", "echo a | bash; ", ""),
    "fed wrappers": ("", "echo a | xargs rm; ", ""),
    "reads": ("", "echo a | read x; ", ""),
    "scripts": ("bash -c ", "'ls x' ", ""),
    "sed": ("sed '", ";", "x'"),
    "sed blanks": ("sed '1", " ", "x'"),
    "code": ('python -c "', "exec http ", '"'),
    "literals": ('python -c "', "'/etc/*a' ", 'remove"'),
    "editor": ("vim -c '", "\n", "x'"),
    "installs": ("pip ", "install ", ""),
    "statements": ("psql -c '", "delete from ", "'"),
    "uploads": ("curl ", "@", ".a"),
    "flags": ("curl -", "F", ""),
    "volumes": ("docker run ", "-v /:/x ", "a"),
    "git aliases": ("git ", "-c alias.x=log ", "x"),
    "arrays": ("", "a=(", ""),
    "unknown names": ("", "$x ", ""),
}


def _repeat(before: str, part: str, after: str) -> Callable[[int], str]:
    return lambda size: before + part * max(1, (size - len(before) - len(after)) // len(part)) + after


def _numbered(before: str, part: str, after: str) -> Callable[[int], str]:
    return lambda size: before + "".join(part.replace("@", str(i)) for i in range(size // (len(part) + 3))) + after


LINES: dict[str, Callable[[int], str]] = {
    **{name: _repeat(*parts) for name, parts in _REPEATED.items()},
    "cd": _numbered("", "cd a@; ", "rm x"),
    "cd in a loop": _numbered("while ls; do ", "cd a@; ", "rm x; done"),
    "values that double": lambda size: "; ".join(f"a{i}=$a{i - 1}$a{i - 1}" for i in range(size // 15)) + "; rm $a9",
    "variables": _numbered("", "a@=1 ", "ls"),
    "function names": _numbered("", "f@() { f@ | f@; }; ", ""),
    "loop of many": _numbered("for a in ", "v@ ", "; do cat $a; done"),
    "here-documents": _numbered("", "cat <<E@\nx\nE@\n", ""),
    "many names": _numbered("env ", "x@ ", ""),
    "many globs": _numbered("rm ", "*a@/b? ", ""),
}
"""By name: a function from a length in characters to a line of about that length."""
