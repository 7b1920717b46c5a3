"""Circuit breakers: what asks every time, in every mode, whatever rules are stored.

Home, root, the workspace itself, work git cannot bring back, privilege, secrets, persistence, raw devices, code and data
crossing the network in the dangerous direction, the program's own settings.  A reason in words, or an empty string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hypercode.safety.command_code import code_breaker, environment, queries
from hypercode.safety.command_danger import ALWAYS, ALWAYS_WITH, NETWORK, VERBED, danger_verbs
from hypercode.safety.command_flags import Reading
from hypercode.safety.command_git import git_breaker, git_verb
from hypercode.safety.command_network import carries, sends
from hypercode.safety.command_paths import device, inside, persistent, precious, project_secret, resolve, secret
from hypercode.safety.command_script import Simple
from hypercode.safety.command_table import TABLE
from hypercode.safety.command_unwrap import base, interprets
from hypercode.safety.command_words import UNKNOWN, Form, forms, secret_name
from hypercode.safety.command_work import spend

__all__ = ["View", "breaker", "indirect_breaker", "narrows", "places", "redirect_breaker"]

_REMOVERS = {
    "rm",
    "rmdir",
    "unlink",
    "shred",
    "srm",
    "wipe",
    "rimraf",
    "trash",
    "trash-put",
    "gio",
    "mv",
    "truncate",
    "scrub",
}
_OTHERS = {
    "find",
    "gfind",
    "fd",
    "fdfind",
    "kill",
    "pkill",
    "killall",
    "tee",
    "dd",
    "touch",
    "printenv",
    "patch",
    "tar",
    "unzip",
    "nerdctl",
}
FILTERS = {
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-regex",
    "-iregex",
    "-newer",
    "-mtime",
    "-mmin",
    "-size",
    "-empty",
    "-wholename",
    "-perm",
}
"""Tests of `find` that make its result less than everything."""


def narrows(texts: Sequence[str]) -> bool:
    """Whether the arguments of `find` hold a test that leaves little: not one that is negated, or that everything passes."""
    for before, text, value in zip(["", *texts], texts, [*texts[1:], ""], strict=False):
        if text in FILTERS and before not in ("!", "-not") and (text == "-empty" or value.strip("*?./")):
            return True
    return False


_PLACELESS = {"cd", "pushd", "popd", "pwd", "echo", "printf", "true", "false", ":", "test", "[", "[["}
_UNPACKERS = {"tar", "gtar", "bsdtar", "unzip", "patch", "7z", "cpio"}
_COPIERS = {"cp", "mv", "ln", "install", "rsync", "scp", "link", "ditto"}
_WRITERS = _COPIERS | _REMOVERS | {
    "tee", "dd", "touch", "sed", "chmod", "chown", "patch", "truncate", "curl", "wget", "tar", "unzip", "make",
}  # fmt: skip
_EVERY = re.compile(r"/\*(\.\w+)$")  # every file of a kind, which is not meant for one that something runs later
_IN_PLACE = re.compile(r"-[a-zA-Z]*i|--in")


@dataclass(frozen=True, slots=True)
class View:
    """One command as it may run: its name, its arguments, where the shell may stand, what it was found in.

    `reading` is set for a command known to only read: then its own account of its paths is taken.
    """

    name: str
    args: tuple[Form, ...]
    simple: Simple
    folders: frozenset[str]
    workspace: str
    home: str
    reading: Reading | None = None
    tail: bool = False  # found among a wrapper's words, which were looked at for secrets already

    def paths(self, text: str) -> list[str]:
        """A text as absolute paths from everywhere the shell may stand."""
        return resolve(text, self.folders)


def places(view: View) -> Iterator[str]:
    """Absolute paths the arguments may name, also behind `=`, `@`, `:` or glued to a flag; unknown parts as `*`."""
    texts = [a.text for a in view.args]
    if view.reading is not None:
        texts = [*view.reading.content, *view.reading.names]
    for text in texts:
        spend(4 + len(text) // 30)
        text = text.replace(UNKNOWN, "*")
        pieces = {text, text.lstrip("@<"), *re.split(r"[=@:,<]", text)}
        if text.startswith("-") and not text.startswith("--"):
            pieces.add(text[2:].lstrip("@<"))
        for piece in pieces:
            if piece and len(piece) < 4096 and "\n" not in piece and piece.strip("*"):
                yield from view.paths(re.sub(r"^~(?=/|$)", view.home.replace("\\", r"\\"), piece))


def breaker(view: View) -> str:
    """Why this command asks every time; empty if it need not."""
    name, args = view.name, view.args
    if view.tail and not _known(name):
        return ""
    spend(5 + len(args) + len(view.simple.words))
    texts = [a.shortest for a in args]
    if name in ALWAYS and not set(texts or [""]) <= ALWAYS_WITH.get(name, set()):
        return f"{ALWAYS[name]}: {name}"
    if name.startswith(("mkfs", "fsck.", "docker-credential-", "git-credential")):
        return f"formats a disk or shows stored passwords: {name}"
    return (
        danger_verbs(name, texts)
        or ((git_breaker(args) or git_breaker([a for a in args if a.shortest])) if name == "git" else "")
        or (git_breaker((Form(name[4:]), *args)) if name.startswith("git-") else "")
        or environment(name, [a.text for a in args])
        or _secrets(view)
        or _destroys(view)
        or _writes(view)
        or _container(view)
        or _signals(view, texts)
        or sends(view.name, texts, view.simple)
        or ("" if view.tail else carries(name, texts, view.simple, lambda t: any(map(project_secret, view.paths(t)))))
        or (code_breaker(view) if interprets(name) else "")
    )


def _known(name: str) -> bool:
    """Whether any breaker has something to say about a program; of a wrapper's many tails most are no program at all."""
    return (
        name in ALWAYS or name in NETWORK or name in VERBED or name in _REMOVERS or name in _COPIERS or name in _OTHERS
        or name.startswith(("mkfs", "fsck.", "git", "docker-")) or interprets(name) or queries(name)
    )  # fmt: skip


def _secrets(view: View) -> str:
    stands = [f for f in view.folders if not re.search(r"[*?\[\x00]", f)]
    if view.name not in _PLACELESS and any(secret(f, view.workspace, view.home) for f in stands):
        return "in a folder of secrets"
    for path in () if view.tail else places(view):
        if _only_listed(view, path):
            continue
        if secret(path, view.workspace, view.home):
            return f"secret: {path}"
        if path.startswith("/dev/") and device(path) and (view.reading is None or path in view.reading.content):
            return f"raw device: {path}"
    if view.name in NETWORK and any(map(project_secret, places(view))):
        return "sends project secrets"
    if view.name in ("test", "[", "[["):
        return ""
    words = [*view.simple.words, *view.simple.stdin]
    names = [v for w in words for v in w.variables if secret_name(v)]
    if names:
        return f"uses a secret variable: {names[0]}"
    if view.name in ("printenv", "declare", "typeset", "export") and any(
        secret_name(a.text) for a in view.args if "=" not in a.text
    ):
        return "shows a secret variable"
    if view.name in ("declare", "typeset", "local") and any(re.match(r"-\w*n", a.text) for a in view.args):
        return next(("gives a secret variable another name" for a in view.args if secret_name(a.text)), "")
    return ""


def _only_listed(view: View, path: str) -> bool:
    """A pattern such as `.*` inside the workspace, of which a program shows names and sizes and nothing else."""
    if not re.fullmatch(r"\.[*?]+|\.*\[[!^].\][*?]*", path.rsplit("/", 1)[-1]) or not inside(path, view.workspace):
        return False
    if view.reading is None:
        return _only_reads(view) and TABLE[view.name].operands == "names"
    return path not in {p for t in view.reading.content for p in view.paths(t)}


def indirect_breaker(simple: Simple, values: Mapping[str, frozenset[str]]) -> str:
    """A secret variable shown under another name, by `${!name}`."""
    for word in simple.words:
        for name in re.findall(r"\$\{!(\w+)[^\w*@]", word.raw) if "${!" in word.raw else ():
            if shown := next(filter(secret_name, values.get(name, ())), ""):
                return f"uses a secret variable: {shown}"
    return ""


def _destroys(view: View) -> str:
    texts = [a.shortest for a in view.args]
    operands = [t for t in texts if not t.startswith("-")]
    recursive = any(re.match(r"-\w*[rR]|--recursive", t) for t in texts)
    if view.name in _REMOVERS:
        targets = operands[:-1] if view.name == "mv" and len(operands) > 1 else operands
        if view.simple.recovered:  # a pattern such as !(x), cut at its bracket
            targets = [t[:-1] + "*" if t == "!" or t.endswith("/!") else t for t in targets]
    elif view.name in ("chmod", "chown", "chgrp") and not recursive:
        targets = [t for t in operands[1:] if any(view.workspace != p and _above(p, view) for p in view.paths(t))]
    elif view.name in ("chmod", "chown", "chgrp", "setfacl", "chattr") and recursive:
        targets = [
            t
            for t in operands[1:]
            if not any(
                precious(p, view.workspace, view.home) in ("files outside the workspace", "the workspace itself")
                for p in view.paths(t)
            )
        ]
    elif view.name in ("find", "gfind", "fd", "fdfind"):
        targets = _find_targets(view, texts)
    elif view.name == "rsync" and any(t.startswith("--del") or t == "--remove-source-files" for t in texts):
        targets = operands
    else:
        return ""
    if view.name == "chmod" or (view.name in ("rm",) and "--no-preserve-root" in texts):
        targets = [*targets, "/"] if "--no-preserve-root" in texts else targets
    for target in targets:
        for path in view.paths(target) if target else ():
            path = path + "/*" if target.endswith("/*") and not path.endswith("/*") else path
            why = precious(path, view.workspace, view.home)
            if why:
                return f"{view.name} on {why}: {path}"
    return ""


def _above(path: str, view: View) -> bool:
    return path == view.home or inside(view.home, path) or inside(view.workspace, path)


def _find_targets(view: View, texts: Sequence[str]) -> list[str]:
    acts = [
        t for t in texts if t in ("-delete", "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
    ]
    removes = "-delete" in texts or any(base(t) in _REMOVERS | {"chmod", "chown", "sh", "bash", "xargs"} for t in texts)
    if not acts or not removes:
        return []
    roots = []
    for text in texts:
        if text.startswith(("-", "(", "!")) and text not in ("-H", "-L", "-P"):
            break
        roots.append(text)
    filtered = narrows(texts)
    inner = [
        r
        for r in roots or ["."]
        if any(precious(p, view.workspace, view.home) != "the workspace itself" for p in view.paths(r))
    ]
    return inner if filtered else roots or ["."]


def _writes(view: View) -> str:
    """Paths that something later runs, or raw devices, named by a command that does not merely read."""
    for path in [p for t in _outputs(view) for p in view.paths(t)]:
        own = path.endswith("/.git") or (path in (view.home, "/") and view.name in _UNPACKERS)
        if own or persistent(path, view.workspace, view.home) or device(path):
            return f"plants or changes what runs later: {path}"
    if view.reading is not None or (
        view.name == "git" and git_verb(view.args)[1] not in ("clone", "init", "mv", "worktree", "apply", "")
    ):
        return ""
    operands = [a.shortest for a in view.args if not a.text.startswith("-")]
    reads = _only_reads(view)
    in_place = any(_IN_PLACE.match(a.text) for a in view.args)
    writes = bool({view.name, *map(base, operands)} & (_WRITERS if in_place else _WRITERS - {"sed"}))
    extra: list[str] = []
    if view.name in _COPIERS and len(operands) > 1:
        extra = [f"{operands[-1]}/{source.rstrip('/').rsplit('/', 1)[-1]}" for source in operands[:-1]]
    for path in [*places(view), *(p for e in extra for p in view.paths(e))]:
        if device(path):
            return f"raw device or kernel switch: {path}"
        planted = persistent(path if writes else _EVERY.sub(r"/x\1", path), view.workspace, view.home)
        if planted and not reads and not _runs_from(view, path):
            return f"plants or changes what runs later: {path}"
    return ""


def _outputs(view: View) -> list[str]:
    """Files and folders that flags, or the last place, name as what is written to."""
    if view.reading is not None or view.name not in _UNPACKERS | _COPIERS | {"git"}:
        return []
    texts = [a.shortest for a in view.args]
    operands = [t for t in texts if not t.startswith("-")]
    out = operands[-1:] if view.name in _COPIERS and len(operands) > 1 else []
    out += operands[2:3] if view.name == "git" and operands[:2] == ["bundle", "create"] else []
    letters = {"git": "o", "unzip": "d", "patch": "do", "7z": "o"}.get(view.name, "C")
    for text, follows in zip(texts, [*texts[1:], ""], strict=False):
        match = re.fullmatch(
            rf"--(?:output|output-directory|directory|one-top-level)=(.*)|-[{letters}](.+)", text, re.S
        )
        if match:
            out.append(match[1] or match[2])
        elif re.fullmatch(rf"--(?:output|output-directory|directory)|-\w*[{letters}]", text):
            out.append(follows)
    return [re.sub(r"/\.?$", "", t) or "/" for t in out if t]


def _only_reads(view: View) -> bool:
    """A program of the table that no flag makes write, found under its plain name."""
    spec, words = TABLE.get(view.name), view.simple.words
    return spec is not None and not spec.risky and bool(words) and words[0].raw == view.name


def _runs_from(view: View, path: str) -> bool:
    """A program named by its full path, as in `env /usr/bin/make`, or a system file that is only an input."""
    system = path.startswith(("/usr/", "/bin/", "/sbin/", "/lib"))
    return not inside(path, view.home) and system and view.name not in _WRITERS


def _container(view: View) -> str:
    if view.name not in ("docker", "podman", "nerdctl", "docker-compose"):
        return ""
    texts = [a.shortest for a in view.args]
    for at, text in enumerate(texts):
        if re.match(
            r"--(?:privileged|cap-add|device|security-opt)|--(?:pid|ipc|uts|userns|net|network|cgroupns)(?:=host|$)",
            text,
        ) and ("=" in text or text[2:].startswith(("priv", "cap", "dev", "sec")) or texts[at + 1 : at + 2] == ["host"]):
            return f"container with the host's powers: {text}"
        value = texts[at + 1] if text in ("-v", "--volume", "--mount") and at + 1 < len(texts) else ""
        value = value or (
            re.sub(r"^(?:-v=?|--volume=|--mount=?)", "", text) if re.match(r"-v.|--volume=|--mount=", text) else ""
        )
        source = re.search(r"(?:source|src)=([^,]*)", value)
        host = source[1] if source else value.split(":", 1)[0]
        if host.startswith(("/", ".", "~")) and not all(inside(p, view.workspace) for p in view.paths(host)):
            return f"container with a folder of the host: {host}"
    return ""


def _signals(view: View, texts: Sequence[str]) -> str:
    if view.name == "kill" and any(t in ("-1", "0", "1") for t in texts):
        return "signals every process"
    if view.name == "kill" and any("PPID" in w.variables or "hypercode" in w.raw for w in view.simple.words):
        return "signals this program"
    if view.name in ("pkill", "killall", "skill", "slay"):
        wide = any(re.match(r"-\w*[uU]$|--u", t) for t in texts) or any(t in (".", ".*", "", "-1") for t in texts)
        if wide or any(t in ("hypercode", "init", "systemd", "sshd") for t in texts):
            return f"signals many processes: {view.name}"
    return ""


def redirect_breaker(
    simple: Simple, folders: frozenset[str], workspace: str, home: str, values: dict[str, frozenset[str]]
) -> str:
    """The same for the files a command's input and output are tied to."""
    for redirect in simple.redirects:
        for form in forms(redirect.target, values, home) if redirect.target else ():
            text = form.text.replace(UNKNOWN, "*")
            if text.startswith(("/dev/tcp/", "/dev/udp/")):
                return "the shell's own network connection"
            spend(5)
            for path in resolve(text, folders) if text.strip("*") else ():
                if secret(path, workspace, home):
                    return f"secret: {path}"
                if ">" in redirect.op and device(path):
                    return f"raw device or kernel switch: {path}"
                if ">" in redirect.op and persistent(path, workspace, home):
                    return f"plants or changes what runs later: {path}"
    return ""
