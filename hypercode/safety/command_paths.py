"""What a path in a command means before anything is opened: inside or outside, secret, planted, precious.

Pure text: nothing on disk is looked at, links are not followed (the sandbox and the file guard do that).  A path may be
a pattern; it counts as a place when it could name it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase, translate
from functools import cache, lru_cache

from hypercode.safety.command_work import spend
from hypercode.safety.path_rules import HOME_SECRETS, KEY_FILES, SYSTEM_SECRETS

__all__ = ["device", "inside", "persistent", "precious", "project_secret", "resolve", "secret"]

_IN_HOME = {".npmrc", ".pypirc", ".envrc", ".env", ".authinfo*", ".cargo", ".yarnrc.yml"}
"""Secret in a home folder alone; in a project the names below decide."""

# Components in a row, anywhere in a path; patterns.  What the file guard refuses, and what only commands meet.
_SECRETS = [
    *(tuple(part.replace("@", " ") for part in row) for row in HOME_SECRETS if row not in {(name,) for name in _IN_HOME}),
    *SYSTEM_SECRETS,
    *(
        tuple(s.split("/"))
        for s in (
            ".config/hypercode", ".hypercode/*key*", "proc/*/environ", "proc/*/task/*/environ", "proc/*/mem", "proc/kcore",
            "dev/mem", "dev/kmem", "id_rsa", "id_dsa", "id_ecdsa*", "id_ed25519", "id_ed25519_sk", "*.kdbx", "*.keychain-db",
            "wallet.dat",
        )
    ),
]  # fmt: skip
_PROJECT = [
    *KEY_FILES, "key.txt", "secret", "secrets", "secret.*", "secrets.*", "*secret*.json", "*secret*.y*ml",
    "*secret*.toml", "*credentials*", "token.txt", "tokens.json", "master.key", "passwords*", "password.txt",
]  # fmt: skip
_NAMES = (
    "secrets.json",
    "secrets.yml",
    "secrets.env",
    "key.txt",
    "token.txt",
    "credentials.json",
    "server.key",
    "server.pem",
)
_ENDINGS = [known[2:] for known in KEY_FILES if re.fullmatch(r"\*\.\w+", known)]
_BACKUP = re.compile(r"(?:~|#|\.~\d+~|\.(?:bak|orig|old|save|swp|swo))+$|^#")  # what editors and careful people add
_TEMPLATES = ("example", "sample", "template", "dist", "defaults", "default")
_PERSISTENT = [
    tuple(s.split("/"))
    for s in (
        ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
        ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".config/fish",
        ".inputrc", ".xinitrc", ".xsession", ".xsessionrc", ".xprofile", ".pam_environment", ".vimrc", ".vim", ".config/nvim",
        ".emacs", ".emacs.d", ".screenrc", ".tmux.conf", ".config/tmux", ".gdbinit", ".lldbinit", ".pythonrc*",
        ".config/environment.d", ".config/autostart", ".config/systemd", ".local/share/systemd", ".config/git",
        ".gitconfig", ".config/pip", ".pip", ".condarc", ".ssh", ".gnupg", ".local/bin", "Library/LaunchAgents",
        "Library/LaunchDaemons", ".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".git/info",
        ".git/modules", ".git/worktrees", ".githooks", ".husky", ".envrc", ".mcp.json", ".vscode", ".idea", ".cursor",
        ".claude", ".codex", ".gemini", ".hypercode", ".config/hypercode", ".local/state/hypercode",
        ".local/share/hypercode", ".cache/hypercode", ".devcontainer", "etc", "boot", "usr", "bin", "sbin", "lib", "lib64",
        "var/spool/cron*", "sitecustomize.py", "usercustomize.py", "site-packages/*.pth", "authorized_keys*",
        ".config/kitty", ".config/alacritty", ".wgetrc", ".curlrc", ".npmrc", ".yarnrc*", ".pnp.cjs", ".rhosts", ".forward",
        ".direnvrc", ".config/direnv", ".pdbrc", ".irbrc", ".pryrc", ".Rprofile", ".config/zsh", ".oh-my-zsh",
    )
]  # fmt: skip
_EVERYTHING = re.compile(r"\?*\*[*?]*|[*?]*\[[!^][^]]*\]\*")  # patterns that all names, or all but a few, fit
_PROCESS_ROOT = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?root(?=/|$)")
_SYSTEM = {"etc", "boot", "usr", "bin", "sbin", "lib", "lib64"}
_DEVICES = ("null", "stdin", "stdout", "stderr", "fd", "tty", "zero", "random", "urandom", "full", "shm", "pts", "ptmx")
_SAFE_GIT = {"index.lock", "HEAD.lock", "MERGE_MSG", "COMMIT_EDITMSG", "shallow.lock", "config.lock"}


def resolve(text: str, folders: Iterable[str]) -> list[str]:
    """Absolute forms of a path, seen from each folder the shell may stand in; dots are folded, links are not.

    A pattern such as `.?` or `.*` also names the folder above (bash before 5.2, dash, zsh with an option).
    """
    texts = [text]
    if "." in text and any(c in text for c in "*?["):
        parts = text.split("/")
        texts += ["/".join(".." if _names_above(part) else part for part in parts)] * any(map(_names_above, parts))
    places = list(folders)
    spend(len(places) * len(texts) * _cost(text))
    paths = [_normal(posixpath.join(folder, form)) for folder in places for form in texts]
    return [*paths, *(_PROCESS_ROOT.sub("", p) or "/" for p in paths if "/root" in p and _PROCESS_ROOT.match(p))]


def _cost(path: str) -> int:
    """Steps for what is asked of a path later on; the answers are kept, so they cannot be counted where they are found."""
    parts = path.count("/") + 1
    if any(c in path for c in "*?["):
        return 20 + 40 * parts + len(path)
    return 6 + parts // 2 + len(path) // 50


def _names_above(part: str) -> bool:
    return (
        part.startswith(".") and part not in (".", "..") and any(c in part for c in "*?[") and fnmatchcase("..", part)
    )


def _normal(path: str) -> str:
    path = posixpath.normpath(path)
    return path[1:] if path.startswith("//") else path


def inside(path: str, folder: str) -> bool:
    """Whether an absolute path is the folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _could_be(part: str, known: str) -> bool:
    """Whether a component, perhaps a pattern, can name a known component, perhaps a pattern."""
    part, known = part.casefold(), known.casefold()
    if _pattern(known)(part):
        return True
    if not any(c in part for c in "*?["):
        return False
    hidden = known.startswith(".") and not part.startswith((".", "[", "\\"))
    return not hidden and bool(_pattern(part)(known))


@lru_cache(4096)
def _pattern(text: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(translate(text)).match


def _holds(parts: list[str], known: tuple[str, ...]) -> bool:
    """Whether the components stand in a row; a lone name must be spelled out by more than wildcards."""
    for at in range(len(parts) - len(known) + 1):
        window = parts[at : at + len(known)]
        spelled = len(known) > 1 or sum(c not in "*?[]!." for c in window[0]) >= min(2, len(known[0].strip("*.")))
        dotted = known[0].startswith(".") and window[0].startswith(".")
        if (spelled or dotted) and all(map(_could_be, window, known)):
            rooted = known[0] in ("etc", "proc", "dev") and at > 0
            if not rooted and not _any_wild(window, known):
                return True
    return False


@cache
def _spelled(which: str) -> re.Pattern[str]:
    """All of a list as one expression, for paths without wildcards."""
    rows = {"secret": _SECRETS, "persistent": [k for k in _PERSISTENT if k[0] not in _SYSTEM and k[0] != "var"]}[which]
    out = []
    for known in rows:
        body = "/".join(
            re.sub(r"\(\?s:(.*)\)\\[Zz]", r"\1", translate(part.casefold())).replace(".*", "[^/]*") for part in known
        )
        out.append((r"^" if known[0] in ("etc", "proc", "dev") else r"(?:^|/)") + body + r"(?:/|$)")
    return re.compile("|".join(out))


def _any(parts: list[str], which: str, rows: Iterable[tuple[str, ...]]) -> bool:
    text = "/".join(parts).casefold()
    if not re.search(r"[*?\[]", text):
        return bool(_spelled(which).search(text))
    return any(_holds(parts, known) for known in rows)


def _any_wild(window: list[str], known: tuple[str, ...]) -> bool:
    """Only wildcards where a name below no known root would have to be meant, as in `src/*/*`."""
    return known[0] not in ("etc", "run", "proc", "dev") and all(not p.strip("*?") for p in window)


@lru_cache(4096)
def secret(path: str, workspace: str, home: str) -> bool:
    """Whether an absolute path is, or could be, a key store, a password file, another program's memory or the like."""
    if _any(_below(path, workspace), "secret", _SECRETS):
        return True
    below = posixpath.relpath(path, home).split("/") if inside(path, home) else []
    return len(below) >= 1 and any(_could_be(below[0], name) for name in _IN_HOME if below[0] != "*")


@lru_cache(4096)
def project_secret(path: str) -> bool:
    """Whether a name inside a project usually holds secrets (`.env`, keys), templates of such files left out."""
    name = path.rsplit("/", 1)[-1].casefold()
    name = _BACKUP.sub("", name) or name
    if name.rsplit(".", 1)[-1] in _TEMPLATES or not name:
        return False
    if name in _PROJECT or not re.search(r"[*?\[]", name):
        return any(_pattern(known)(name) for known in _PROJECT) or "/.git/config" in path + "/"
    if name.startswith((".", "[")) and any(_could_be(name, k) for k in (".env", ".env.local", ".env.production")):
        return True
    stem, _, ending = name.partition(".")
    ending = ending.rsplit(".", 1)[-1]
    if sum(c not in "*?[]" for c in stem) >= 2 and any(_could_be(name, k) for k in _NAMES):
        return True
    return sum(c not in "*?[]!^-" for c in ending) >= 2 and any(_could_be(ending, k) for k in _ENDINGS)


@lru_cache(4096)
def persistent(path: str, workspace: str, home: str) -> bool:
    """Whether a write there plants something that runs later, or changes the program's own or the system's settings."""
    parts = _below(path, workspace)
    if (not inside(path, workspace) and parts[0].casefold() in _SYSTEM | {"var"}) or parts[0][:1] in ("*", "?", "["):
        system = [k for k in _PERSISTENT if k[0] in _SYSTEM or k[0] == "var"]
        if any(len(parts) >= len(k) and all(map(_could_be, parts, k)) for k in system if not inside(path, workspace)):
            return True
    return _any(parts, "persistent", [k for k in _PERSISTENT if k[0] not in _SYSTEM and k[0] != "var"])


def precious(path: str, workspace: str, home: str) -> str:
    """Why the removal of a whole path is a loss that no rule may cover; empty if it is not."""
    if path == "/" or path == "/*":
        return "the whole disk"
    folder, _, last = path.rpartition("/")
    folder = (folder or "/") if last == "." or _EVERYTHING.fullmatch(last) else path
    if folder == workspace:
        return "the workspace itself"
    if folder == home:
        return "the home folder"
    if inside(workspace, folder) or inside(home, folder):
        return "a folder above"
    if _matches(path, workspace) or _matches(path, home):
        return "a pattern that covers the workspace or home"
    parts = path[len(workspace) :].strip("/").split("/") if inside(path, workspace) else []
    if ".git" in parts and parts[-1] not in _SAFE_GIT:
        return "the repository with its history"
    if parts and parts[0].startswith(".") and _could_be(parts[0], ".git") and len(parts) == 1:
        return "a pattern that covers the repository"
    if inside(path, workspace):
        return ""
    return "" if _temporary(path, home) else "files outside the workspace"


def _below(path: str, workspace: str) -> list[str]:
    """The components that count: those of the workspace's own place do not."""
    return (path[len(workspace) :] if inside(path, workspace) else path).strip("/").split("/")


def _matches(path: str, target: str) -> bool:
    if not any(c in path for c in "*?["):
        return False
    parts, wanted = path.strip("/").split("/"), target.strip("/").split("/")
    return len(parts) <= len(wanted) and all(map(_could_be, parts, wanted))


def _temporary(path: str, home: str) -> bool:
    return any(
        inside(path, t) and path != t and path != t + "/*" for t in ("/tmp", "/var/tmp", "/private/tmp")
    ) and not (inside(path, home))


def device(path: str) -> bool:
    """Whether an absolute path is a raw device or a switch of the kernel."""
    if path.startswith("/dev/"):
        return path.split("/")[2] not in _DEVICES
    return path.startswith(("/proc/sys", "/sys/")) or path == "/proc/sysrq-trigger"
