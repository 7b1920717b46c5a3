"""What a program that talks to the network would carry out: the output of a command, files, its input, a shell."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hypercode.safety.command_danger import NETWORK
from hypercode.safety.command_script import Simple
from hypercode.safety.command_work import spend

__all__ = ["carries", "sends"]

_SERVICES = {
    "gh", "glab", "hub", "az", "gcloud", "logger", "twine", "npm", "pnpm", "yarn", "pip", "pip3", "uv", "poetry", "cargo", "gem", "docker",
    "podman", "git", "kubectl", "heroku", "vercel", "netlify", "wrangler", "firebase", "supabase", "hf", "huggingface-cli",
}  # fmt: skip
"""Programs that hand what they are given to a server, though that is not all they do."""
_LOOKED_AT = 4000  # characters of a text
_UPLOADERS = {"gh", "glab", "hub", "az", "gcloud", "logger", "twine", "hf", "huggingface-cli"}
_REMOTE_VERBS = {
    "git": {"push", "pull", "fetch", "clone", "ls-remote", "remote", "submodule", "request-pull", "send-email"},
    "docker": {"push", "login", "pull"},
    "podman": {"push", "login", "pull"},
}


def sends(name: str, texts: Sequence[str], simple: Simple) -> str:
    """Data that leaves: command output or files handed to a program that talks to the network."""
    if name not in NETWORK:
        return ""
    words = simple.words
    if any(w.holes & {"command_substitution", "process_substitution", "unknown"} for w in words):
        return f"could carry data out: {name} with the output of a command"
    joined = " ".join(texts)
    local = re.search(r"(?:^|[/@\s])(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?=[:/\s]|$)", joined)
    if local and name in ("curl", "wget", "http", "https", "xh"):
        return ""
    if name in ("curl", "wget", "http", "https", "xh", "aria2c") and _uploads(texts):
        return f"uploads a file: {name}"
    if name in (
        "nc",
        "ncat",
        "netcat",
        "socat",
        "telnet",
        "mail",
        "mailx",
        "sendmail",
        "mutt",
        "openssl",
        "ftp",
        "tftp",
        "ssh",
    ) and (simple.piped or simple.stdin or any("<" in r.op for r in simple.redirects)):
        return f"sends its input away: {name}"
    if name in ("sftp", "lftp") and any(re.search(r"\bm?put\b|mirror\s+-\S*R", w.raw) for w in (*words, *simple.stdin)):
        return f"uploads a file: {name}"
    operands = [t for t in texts if not t.startswith("-")]
    if name in ("scp", "rsync", "rclone", "sftp") and len(operands) > 1 and ":" in operands[-1]:
        return f"uploads a file: {name}"
    if re.search(r"(?:-e|-c|--exec|--sh-exec|(?i:EXEC|SYSTEM|SHELL):)", joined) and name in (
        "nc",
        "ncat",
        "netcat",
        "socat",
    ):
        return f"gives a shell to the network: {name}"
    return ""


def carries(name: str, texts: Sequence[str], simple: Simple, is_secret: Callable[[str], bool]) -> str:
    """A project's secrets handed to a program that talks to a server of its own: their text, or the file itself."""
    if name not in _SERVICES or (name in _REMOTE_VERBS and _REMOTE_VERBS[name].isdisjoint(texts)):
        return ""
    inner = [p.alt for w in (*simple.words, *simple.stdin) for p in w.pieces if p.kind == "hole" and p.alt]
    given = [part for text in inner for part in re.split(r"[\s()`'\"<>|;&$]+", text[:_LOOKED_AT])]
    if name in _UPLOADERS:
        given += [part for text in texts for part in re.split(r"[=@]", text[:_LOOKED_AT])]
        given += [r.target.raw for r in simple.redirects if r.target is not None and r.op == "<"]
    spend(2 * len(given))
    return f"sends project secrets: {name}" if any(is_secret(part) for part in given if part) else ""


def _uploads(texts: Sequence[str]) -> bool:
    """Whether the arguments of a program that talks to a web server hand it a file."""
    for text, follows in zip(texts, [*texts[1:], ""], strict=False):
        flag, equals, value = text.partition("=")
        value = value if equals else follows
        if flag in ("--upload-file", "--post-file", "--body-file") or (flag == "--json" and value.startswith("@")):
            return True
        if re.fullmatch(r"--(?:form|data(?:-\w+)?)", flag):
            said = re.match(r"\S*", value)
            if said and (re.search(r"=[@<]", said[0]) if flag == "--form" else "@" in said[0]):
                return True
        letters = re.match(r"-(\w+)", text)
        glued = re.match(r"\S*", text[1:] if letters and len(text) > 2 else follows)
        if letters and glued:
            given = glued[0] + (follows if text[-1:] in ("d", "F", "T") else "")
            sends = {"T": bool(text[2:] or follows), "F": "=@" in given or "=<" in given, "d": "@" in given}
            if any(sends.get(letter, False) for letter in letters[1]):
                return True
    last = texts[-1].split()[-1:] if texts else []
    return bool(last) and "@" in last[0][1:] and bool(re.search(r"\.\w+\Z", last[0].rsplit("@", 1)[-1]))
