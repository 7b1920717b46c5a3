"""Circuit breakers: what asks every time, in every mode, whatever rules are stored.

Home, root, the workspace itself, work git cannot bring back, privilege, secrets, persistence, raw devices, code and data
crossing the network in the dangerous direction, the program's own settings.  A reason in words, or an empty string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hypercode.safety.command_danger import ALWAYS, ALWAYS_WITH, NETWORK, VERBED, danger_verbs, then
from hypercode.safety.command_flags import Reading
from hypercode.safety.command_git import git_breaker, git_verb
from hypercode.safety.command_network import sends
from hypercode.safety.command_paths import device, inside, persistent, precious, project_secret, resolve, secret
from hypercode.safety.command_script import Simple
from hypercode.safety.command_table import TABLE
from hypercode.safety.command_unwrap import base, interprets, literals
from hypercode.safety.command_words import UNKNOWN, Form, forms, secret_name
from hypercode.safety.command_work import spend

__all__ = ["FILTERS", "View", "breaker", "places", "redirect_breaker"]

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
_COPIERS = {"cp", "mv", "ln", "install", "rsync", "scp", "link", "ditto"}
_WRITERS = _COPIERS | _REMOVERS | {
    "tee", "dd", "touch", "sed", "chmod", "chown", "patch", "truncate", "curl", "wget", "tar", "unzip", "make",
}  # fmt: skip
_REMOVING_CODE = re.compile(
    r"rmtree|unlink|\bremove|rmdir|rmSync|rimraf|FileUtils|removedirs|\.rm\(|delete|rm_rf|rm_r\b|chmod|truncate|\bmove\(|rename"
)
_EVERY = re.compile(r"/\*(\.\w+)$")  # every file of a kind, which is not meant for one that something runs later
_IN_PLACE = re.compile(r"-[a-zA-Z]*i|--in")
_ENVIRON_CODE = re.compile(r"environ|getenv|process\.env|\bENV\b|%ENV|_ENV")
_FETCHED = re.compile(
    "|".join(
        f"(?:{then(first, second)})"
        for first, second in (
            (
                r"(?:exec|eval|compile|Function|instance_eval|vm\.run\w*|runpy)\b",
                "urlopen|urllib|requests|http|fetch|LWP|open-uri|curl|wget|socket",
            ),
            (
                r"urlopen|requests\.|httpx|fetch\(|https?://|curl|wget",
                r"\bexec\(|\beval\(|os\.system|\|\s*(?:ba)?sh\b",
            ),
            ("(?i:socket)", r"dup2|pty\b|subprocess|/bin/(?:ba)?sh|exec"),
        )
    ),
    re.S,
)
_FORKS = re.compile(
    r"os\.fork|fork\s+while|fork\(\)|" + then(r"while\s*+(?:\(\s*+)?(?:1|true)", "fork"), re.IGNORECASE | re.S
)


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
        or (git_breaker(args) if name == "git" else "")
        or (git_breaker((Form(name[4:]), *args)) if name.startswith("git-") else "")
        or _secrets(view)
        or _destroys(view)
        or _writes(view)
        or _container(view)
        or _signals(view, texts)
        or sends(view.name, texts, view.simple)
        or (_code(view) if interprets(name) else "")
    )


def _known(name: str) -> bool:
    """Whether any breaker has something to say about a program; of a wrapper's many tails most are no program at all."""
    return (
        name in ALWAYS or name in NETWORK or name in VERBED or name in _REMOVERS or name in _COPIERS or name in _OTHERS
        or name.startswith(("mkfs", "fsck.", "git", "docker-")) or interprets(name)
    )  # fmt: skip


def _secrets(view: View) -> str:
    for path in () if view.tail else places(view):
        if secret(path, view.workspace, view.home):
            return f"secret: {path}"
        if path.startswith("/dev/") and device(path) and (view.reading is None or path in view.reading.content):
            return f"raw device: {path}"
    if view.name in NETWORK and any(map(project_secret, places(view))):
        return "sends project secrets"
    if view.name in ("test", "[", "[["):
        return ""
    names = [v for w in view.simple.words for v in w.variables if secret_name(v)]
    if names:
        return f"uses a secret variable: {names[0]}"
    if view.name in ("printenv", "declare", "typeset", "export") and any(
        secret_name(a.text) for a in view.args if "=" not in a.text
    ):
        return "shows a secret variable"
    return ""


def _destroys(view: View) -> str:
    texts = [a.shortest for a in view.args]
    operands = [t for t in texts if not t.startswith("-")]
    recursive = any(re.match(r"-\w*[rR]|--recursive", t) for t in texts)
    if view.name in _REMOVERS:
        targets = operands[:-1] if view.name == "mv" and len(operands) > 1 else operands
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
    filtered = any(t in FILTERS for t in texts)
    inner = [
        r
        for r in roots or ["."]
        if any(precious(p, view.workspace, view.home) != "the workspace itself" for p in view.paths(r))
    ]
    return inner if filtered else roots or ["."]


def _writes(view: View) -> str:
    """Paths that something later runs, or raw devices, named by a command that does not merely read."""
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
    if view.name == "kill" and any("PPID" in w.variables for w in view.simple.words):
        return "signals this program"
    if view.name in ("pkill", "killall", "skill", "slay"):
        wide = any(re.match(r"-\w*[uU]$|--u", t) for t in texts) or any(t in (".", ".*", "", "-1") for t in texts)
        if wide or any(t in ("hypercode", "init", "systemd", "sshd") for t in texts):
            return f"signals many processes: {view.name}"
    return ""


def _code(view: View) -> str:
    for arg in view.args:
        code = arg.text
        if len(code) < 4 or not re.search(r"[\s(\"'`{]", code):
            continue
        spend(20 + len(code) // 2)
        if _FORKS.search(code):
            return "starts processes without end"
        if _FETCHED.search(code):
            return "runs what it downloads, or opens a shell to the network"
        texts = list(dict.fromkeys(literals(code)))
        removes, writes = bool(_REMOVING_CODE.search(code)), bool(re.search(r"open|write|>", code))
        if _ENVIRON_CODE.search(code) and any(map(secret_name, [*texts, *re.findall(r"[A-Z_]{3,}", code)])):
            return "reads a secret variable"
        for text in texts:
            for path in (
                view.paths(re.sub(r"^(?:~|\$HOME)(?=/|$)", view.home.replace("\\", r"\\"), text)) if text else ()
            ):
                if secret(path, view.workspace, view.home):
                    return f"secret: {path}"
                if removes and precious(path, view.workspace, view.home):
                    return f"removes {precious(path, view.workspace, view.home)}: {path}"
                if ("/" in text or text.startswith(".")) and persistent(path, view.workspace, view.home) and writes:
                    return f"plants or changes what runs later: {path}"
        if removes and re.search(r"expanduser|Path\.home|homedir|Dir\.home|\bHOME\b", code):
            return "removes something in the home folder"
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
