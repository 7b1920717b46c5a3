"""Commands inside commands: what `env`, `sudo`, `sh -c`, `find -exec`, an interpreter's one-liner and the like would run.

Generous on purpose: every tail of a wrapper's words counts as a command, every word of it with a blank as a script.
The result is only held against deny rules and circuit breakers; a wrapper itself never runs unasked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from hypercode.safety.command_words import UNKNOWN, Form
from hypercode.safety.command_work import spend

__all__ = [
    "MAKES", "SHELLS", "base", "interprets", "literals", "recipes", "runs_any_tail", "scripts", "substituted", "tails", "with_input",
]  # fmt: skip

SHELLS = {
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "mksh",
    "ash",
    "fish",
    "csh",
    "tcsh",
    "rbash",
    "yash",
    "elvish",
    "nu",
    "pwsh",
    "powershell",
}
MAKES = {"make", "gmake"}
_INTERPRETER = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|php|lua|luajit|tclsh|guile|Rscript|julia|deno|bun|osascript|irb|ipython|erl|elixir|swift"
    r"|groovy|scala|jshell|awk|gawk|mawk|nawk|sed|gsed|ed|ex|vi|vim|nvim|emacs|expect|sqlite3|psql|mysql|gdb|lldb|bc|m4|make|gmake|ts-node|tsx)(?:[\d.]+)?"
)
_WRAPPERS = {
    "env", "command", "builtin", "exec", "nohup", "time", "timeout", "gtimeout", "nice", "ionice", "chrt", "stdbuf", "setsid",
    "xargs", "gxargs", "parallel", "watch", "strace", "ltrace", "flock", "busybox", "toybox", "unbuffer", "taskset", "numactl",
    "systemd-run", "sudo", "doas", "su", "pkexec", "runuser", "chroot", "unshare", "nsenter", "setpriv", "coproc", "ssh",
    "npx", "bunx", "uvx", "pipx", "script", "perf", "valgrind", "rlwrap", "fakeroot", "faketime", "proxychains", "proxychains4",
    "torsocks", "torify", "tsocks", "caffeinate", "chronic", "ifne", "entr", "hyperfine", "tmux", "screen", "dbus-run-session",
    "xvfb-run", "prlimit", "firejail", "bwrap", "cgexec", "choom", "cpulimit", "trap",
    "alias", "eval", "source", ".", "at", "batch",
    "sudoedit", "gosu", "su-exec", "dumb-init", "tini", "systemd-inhibit", "ts", "pee", "vipe", "run-parts", "start-stop-daemon",
    "daemonize", "rsh", "mosh", "eatmydata", "linux32", "linux64", "setarch", "i386", "x86_64", "ld.so", "then", "do", "else", "if",
    "while", "until", "elif", "!", "{", "cmd", "doit", "apptainer", "singularity", "lxc-attach", "machinectl", "complete", "compgen",
    "mapfile", "readarray", "bind", "ld-linux-x86-64.so.2", "sshpass", "setfacl", "annotate-output", "nixos-shell", "nix-shell",
    "watchexec", "dotenv", "dotenvx", "cross-env", "cross-env-shell", "env-cmd", "concurrently", "nodemon", "chokidar", "sg",
    "corepack", "rtk", "catchsegv", "capsh", "newgrp", "wsl", "gdb", "lldb", "rr", "socat", "just", "run0", "uftrace", "foreman",
    "honcho", "ansible", "pssh", "pdsh", "clush", "onchange", "reflex", "cargo-watch", "mprocs", "overmind",
    "find", "gfind", "fd", "fdfind", "rg", "man", "tar", "gtar", "rsync", "scp", "sftp", "zip", "sort", "split", "less", "more",
}  # fmt: skip
_RUNNERS = {
    "npm", "pnpm", "yarn", "bun", "uv", "poetry", "pipenv", "pdm", "rye", "hatch", "conda", "mamba", "micromamba", "bundle",
    "docker", "podman", "nerdctl", "kubectl", "oc", "docker-compose", "direnv", "nix", "pyenv", "rbenv", "nodenv", "mise", "asdf",
    "rustup", "cargo", "go", "gh", "op", "doppler", "aws-vault", "chamber", "vagrant", "tox", "nox", "lerna", "nx", "guix", "turbo",
    "bazel", "devbox", "devenv", "moon", "mage",
}  # fmt: skip
_EXTENSIONS = {"alias", "codespace", "cs", "extension", "ext", "copilot"}
_RUN_VERBS = {"exec", "run", "x", "dlx", "compose", "shell", "develop", "ssh", "create", "env", "explore"}
_GIT_RUNS = re.compile(
    r"bisect|rebase|submodule|filter-branch|difftool|mergetool|for-each-repo|-c|--config-env.*|--upload-pack.*|--receive-pack.*|--exec.*|-O.*|--open-files.*|--ext.*"
)
_MOST_HANDED, _LONGEST = 16, 4000
_PLACES = re.compile(r"\{[-\d./#%]*\}")
_QUOTE = re.compile("[\"'`]")
_LITERAL = {
    quote: re.compile(rf"{quote}({text}){quote}", re.S)
    for quote, text in {'"': r"(?:\\.|[^\"\\])*", "'": r"(?:\\.|[^'\\])*", "`": "[^`]*"}.items()
}


def interprets(name: str) -> bool:
    """Whether a program of this name reads a language of its own that can run commands."""
    return bool(_INTERPRETER.fullmatch(name))


def base(name: str) -> str:
    """The program's name without its folder."""
    return name.rsplit("/", 1)[-1]


def _runs(words: Sequence[Form]) -> bool:
    name = base(words[0].text)
    if name in _WRAPPERS or name in SHELLS or re.search(r"[*?\[\x00]", words[0].text):
        return True  # a name that is not known beforehand may be a wrapper's
    if name in ("gh", "glab"):
        return words[1].text in _EXTENSIONS if len(words) > 1 else False
    if name in _RUNNERS:
        return any(w.text in _RUN_VERBS for w in words[1:])
    return name == "git" and any(_GIT_RUNS.fullmatch(w.text) for w in words[1:])


def runs_any_tail(words: Sequence[Form]) -> bool:
    """Whether `tails` answers with every tail of the words."""
    name = base(words[0].text)
    return name not in ("git", "find", "gfind") and "-m" not in [w.text for w in words[:3]] and _runs(words)


def _handed_on(words: Sequence[Form]) -> list[Form]:
    """The arguments of a wrapper that may be commands: of `man` only its pagers, the rest are names of pages."""
    args = list(words[1:])
    if base(words[0].text) != "man":
        return args
    pagers = [b for a, b in pairwise(args) if re.fullmatch(r"-\w*[PH]|--pager|--html", a.text)]
    return [*pagers, *(a for a in args if re.match(r"-\w*[PH].|--(?:pager|html)=", a.text))]


def tails(words: Sequence[Form]) -> Iterator[list[Form]]:
    """The commands that a wrapper's remaining words may be."""
    name, args = base(words[0].text), _handed_on(words)
    if name == "git":
        yield from _git_alias(args)
    if re.fullmatch(r"python[\d.]*|pypy[\d.]*", name) and "-m" in [a.text for a in args]:
        yield args[[a.text for a in args].index("-m") + 1 :]
    elif not _runs(words):
        return
    split = next((i for i, a in enumerate(args) if name == "parallel" and a.text.startswith(":::")), 0)
    if split:
        yield from _in_parallel([a.text for a in args[:split]], [a.text for a in args[split + 1 :]])
        args = [a for a in args if not a.text.startswith(":::") and a.text != "{}"]
    starts: Sequence[int] = range(len(args))
    if name in ("find", "gfind"):
        starts = [i + 1 for i, a in enumerate(args) if a.text in ("-exec", "-execdir", "-ok", "-okdir")]
    elif name == "git":
        starts = [
            i + 1 for i, a in enumerate(args) if a.text in ("run", "foreach", "-x", "--exec", "--extcmd", "--recursive")
        ]
    roots = [] if name == "git" else [a for a in args[:4] if re.fullmatch(r"\w[\w-]*", a.text)]
    for start in starts:
        end = next(
            (i for i in range(start, len(args)) if name.endswith("find") and args[i].text in (";", "+")), len(args)
        )
        spend(1 + (end - start) // 10)
        yield args[start:end]
        for root in roots if name.endswith("find") and any(a.text == "{}" for a in args[start:end]) else ():
            yield [root if a.text == "{}" else a for a in args[start:end]]


def _in_parallel(command: Sequence[str], given: Sequence[str]) -> Iterator[list[Form]]:
    """The commands of `parallel` whose words hold places such as `{}` and `{1}`, filled from behind `:::`."""
    text = " ".join(command)
    if not _PLACES.search(text) or len(text) > _LONGEST:
        return
    for value in [t for t in given if not t.startswith(":::")][:_MOST_HANDED]:
        spend(5 + len(text) // 20)
        yield [Form(t) for t in _PLACES.sub(value.replace("\\", r"\\"), text).split()]


def with_input(words: Sequence[Form], handed: Sequence[Form]) -> Iterator[list[Form]]:
    """The tails of `xargs` and its kind with what they get from their input, behind it or in the place marked for it."""
    marks = _marks([w.text for w in words]) if handed else []
    for tail in tails(words):
        marked = [i for i, w in enumerate(tail) if any(m in w.text for m in marks)]
        if not marked:
            yield [*tail, *handed]
            continue
        for piece in [*handed[:_MOST_HANDED], Form(" ".join(h.text for h in handed[:_MOST_HANDED]), handed=True)]:
            spend(2 + len(tail))
            yield [_filled(w, marks, piece) if i in marked else w for i, w in enumerate(tail)] + [Form("", handed=True)]


def _marks(texts: Sequence[str]) -> list[str]:
    """What stands for a line of the input: `{}`, or what `-I` names."""
    out = ["{}"]
    for text, follows in zip(texts[1:], [*texts[2:], ""], strict=False):
        match = re.fullmatch(r"(?:-I|-i|--replace=)(.*)", text, re.S)
        if match and (mark := match[1] or (follows if text == "-I" else "")):
            out.append(mark)
    return list(dict.fromkeys(out))[:_MOST_HANDED]


def _filled(word: Form, marks: Sequence[str], piece: Form) -> Form:
    text = word.text
    for mark in marks:
        if text.count(mark) * len(piece.text) > _LONGEST:
            return Form(UNKNOWN, sure=False, handed=True)
        text = text.replace(mark, piece.text)
    return Form(text, word.glob or piece.glob, False, handed=True)


def substituted(text: str) -> Iterator[str]:
    """The commands of the substitutions in a text that is evaluated later."""
    if "$(" not in text and "`" not in text:
        return
    spend(20 + len(text) // 5)
    for part in text.split("$(")[1:9]:
        yield part
        if ")" in part:
            yield part[: part.rindex(")")]
    yield from text.split("`")[1:9:2]


def _git_alias(args: list[Form]) -> Iterator[list[Form]]:
    spend(len(args))
    for at, arg in enumerate(args):
        match = re.fullmatch(r"(?:-c)?alias\.([\w-]+)=(.*)", arg.text, re.S)
        if match and not match[2].startswith("!"):
            spend(10 + len(args) // 5)
            use = next((i for i in range(at + 1, len(args)) if args[i].text == match[1]), len(args))
            yield [Form("git"), *(Form(t) for t in match[2].split()), *args[use + 1 :]]


def scripts(words: Sequence[Form], covered: bool = False) -> Iterator[str]:
    """Texts among the words that a shell, somewhere down the line, would read as commands.

    `covered`: the words were looked at before, as a tail of another wrapper's.
    """
    name, args = base(words[0].text), _handed_on(words)
    if name == "eval" or (name in ("ssh", "watch", "su", "trap", "then") and len(args) > 1):
        yield " ".join(a.text for a in args)
    if name in MAKES:
        yield from (t for a in args if re.search(r"\s", a.text) for t in recipes(a.text))
    if covered or not _runs(words):
        return
    spend(sum(8 + len(a.text) // 20 for a in args))
    for arg in args:
        text = re.sub(r"^(?:--?[\w-]+=|-[A-Za-z](?=\S))", "", arg.text)
        for candidate in dict.fromkeys(
            [arg.text, text, text.rsplit("=", 1)[-1], re.sub(r"^.*?=!?", "", text, flags=re.S)]
        ):
            if re.search(r"[\s;&|`($]" if name in SHELLS else r"[\s;&|`(]", candidate.strip()):
                yield candidate.lstrip("+!:")


def recipes(text: str) -> Iterator[str]:
    """What a makefile, or a part of one, may run."""
    spend(len(text) // 10)
    yield from (line for part in re.split(r"[=:;\n]", text) if (line := part.strip().lstrip("@-+ \t")))


def literals(code: str) -> list[str]:
    """The string literals of a piece of program text."""
    spend(len(code) // 20)
    found: list[str] = []
    end, unclosed = 0, set[str]()
    for quote in _QUOTE.finditer(code):
        if quote.start() >= end and quote[0] not in unclosed:
            literal = _LITERAL[quote[0]].match(code, quote.start())
            if literal is None:  # then none of the same kind behind it is closed either
                unclosed.add(quote[0])
                continue
            end = literal.end()
            spend(2)
            found.append(re.sub(r"\\(.)", r"\1", literal[1], flags=re.S))
    return found
