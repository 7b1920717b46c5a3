"""What program text on a command line shows: of Python, Perl, JavaScript, `awk`, `sed` and the like.

Nothing is parsed: the text's literals and a few of its words are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hypercode.safety.command_danger import then
from hypercode.safety.command_language import jq_variables
from hypercode.safety.command_paths import device, persistent, precious, project_secret, secret
from hypercode.safety.command_unwrap import interprets, literals
from hypercode.safety.command_words import secret_name
from hypercode.safety.command_work import spend

if TYPE_CHECKING:
    from hypercode.safety.command_breakers import View

__all__ = ["code_breaker", "environment", "queries"]

_REMOVING_CODE = re.compile(
    r"rmtree|unlink|\bremove|rmdir|rmSync|rimraf|FileUtils|removedirs|\.rm\(|delete|rm_rf|rm_r\b|chmod|truncate|\bmove\(|rename|[\"'](?:rm|rmdir|shred)[\"']"
)
_WRITING_CODE = re.compile(r"open|write|>")
_ENVIRON_CODE = re.compile(r"environ|ENVIRON|getenv|process\.env|\bENV\b|%ENV|_ENV")
_ENVIRON_WHOLE = re.compile(
    r"(?:print|dumps|log|puts|pp?|pprint|inspect|var_dump|print_r|stringify|echo|dir|table|write)\b[\s(]*"
    r"(?:(?:dict|str|list|sorted|json\.dumps|JSON\.stringify)\(\s*)?(?:os\.environ|process\.env|%?ENV|getenv\(\s*\))"
    r"(?:\s*\.(?:to_h|inspect|items|values|copy)\b|(?!\s*[.\[\w{]))"
    r"|\bfor\b[^:;\n]{1,60}?\bin\s+(?:ENVIRON|os\.environ|process\.env)\b|Object\.(?:entries|values)\(\s*process\.env\s*\)|\A\s*process\.env\s*\Z"
)
_QUERIES = {"yq", "envsubst"}
_JQ = {"jq", "gojq", "jaq"}
_JQ_GIVEN = {"--arg", "--argjson", "--slurpfile", "--rawfile", "--argfile"}
_SHOWABLE = re.compile(
    r"HOME|PWD|USER|LOGNAME|SHELL|PATH|TERM|LANG|LC_\w+|TMPDIR|EDITOR|CI|TZ|HOSTNAME|VIRTUAL_ENV|\w+_ENV"
)
_ENVIRON_QUERY = re.compile(r"\$ENV\b|(?<![.\w\"'$])(?:str)?env\b")
_SENDS = re.compile(
    r"urlopen|urllib|requests\.|httpx|aiohttp|https?://|fetch\(|axios|XMLHttp|[Ss]ocket|net/http|Net::HTTP|LWP|ftplib|smtplib|\bcurl\b|\bwget\b"
)
_REMOVES_HERE = re.compile(
    r"(?:rmtree|rmSync|rm|rimraf|rm_rf|rm_r|removeSync|emptyDirSync)\s*\(?\s*"
    r"(?:os\.getcwd\(\)|(?:pathlib\.)?Path(?:\.cwd)?\(\)|process\.cwd\(\)|Dir\.pwd|getcwd\(\))\s*(?:[,);]|$)"
)
_GIVEN = re.compile(r"\bargv\b|\bARGV\b|\$1\b|@_|\bshift\b")
_KILLS_ALL = re.compile(r"\bkill(?:pg)?\s*\(?\s*(?:(?:-1|0)\b|['\"]?(?:SIG)?(?:KILL|TERM|9|15)['\"]?\s*,\s*-1\b)")
_SED_WRITES = re.compile(r"(?:^|[;\d$/|,#}{gpiImM\n])[^\S\n]*[wW][^\S\n]+([^\n;}]+)")
_EVALUATED = r"\b(?:exec|eval|instance_eval|vm\.run\w*)\b|(?<![.\w])(?:compile|Function)\b|(?:marshal|pickle)\.loads"
_DECODED = r"b64decode|b32decode|base64|\batob\b|unhexlify|fromhex|hex2bin|decompress|gzinflate|codecs|str_rot13"
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
                r"\bexec\(|\beval\(|os\.system|\|\s*(?:ba)?sh\b|then\(\s*(?:eval|Function)\b",
            ),
            (_EVALUATED, _DECODED),
            (_DECODED, _EVALUATED),
            (
                r"(?i:socket)|fsockopen|/inet/(?:tcp|udp)",
                r"dup2|pty\b|subprocess|/bin/(?:ba)?sh|exec|popen|getline|system",
            ),
        )
    ),
    re.S,
)
_FORKS = re.compile(
    r"os\.fork|fork\s+while|fork\(\)|" + then(r"while\s*+(?:\(\s*+)?(?:1|true)", "fork"), re.IGNORECASE | re.S
)


def queries(name: str) -> bool:
    """Whether a program of this name reads a language that can show the environment, though not run anything."""
    return name in _JQ | _QUERIES


def environment(name: str, texts: Sequence[str]) -> str:
    """Why a program that prints a variable, out of its own language, asks every time."""
    if name in _JQ:
        names = [n for text in _programs(texts) for n in jq_variables(text)]
        return "shows the environment" if any(secret_name(n) or not _SHOWABLE.fullmatch(n) for n in names) else ""
    for text in texts if interprets(name) or name in _QUERIES else ():
        spend(5 + len(text) // 5)
        if name not in _QUERIES and _ENVIRON_WHOLE.search(text):
            return "shows the environment"
        found = _ENVIRON_QUERY.search(text) if name in _QUERIES else _ENVIRON_CODE.search(text)
        if found and any(map(secret_name, [*literals(text), *re.findall(r"[A-Z_]{3,}", text)])):
            return "reads a secret variable"
    return ""


def _programs(texts: Sequence[str]) -> list[str]:
    """The arguments of `jq` that may be its program: the first two that no flag claims (one may be a flag's value)."""
    skip, operands = 0, []
    for text in texts:
        if skip or text.startswith("-"):
            skip = 2 if text in _JQ_GIVEN else max(0, skip - 1)
        else:
            operands.append(text)
    return operands[:2]


def code_breaker(view: View) -> str:
    """Why the program text among the arguments asks every time; empty if it need not."""
    for arg in view.args:
        code = arg.text
        if len(code) < 4 or not re.search(r"[\s(\"'`{]", code):
            continue
        spend(20 + len(code) // 2)
        if _FORKS.search(code):
            return "starts processes without end"
        if _FETCHED.search(code):
            return "runs what it downloads or decodes, or opens a shell to the network"
        if _KILLS_ALL.search(code):
            return "signals every process"
        removes = bool(_REMOVING_CODE.search(code))
        texts = list(dict.fromkeys(literals(code)))
        if _SENDS.search(code) and any(project_secret(p) for t in texts for w in t.split() for p in view.paths(w)):
            return "sends project secrets"
        if why := next(
            (
                why
                for text in [*texts, *_sed_files(view.name, code)]
                if (why := _named(view, code, text, removes=removes))
            ),
            "",
        ):
            return why
        if removes and re.search(r"expanduser|Path\.home|homedir|Dir\.home|\bHOME\b", code):
            return "removes something in the home folder"
        if removes and _GIVEN.search(code):
            texts = [a.text for a in view.args if a is not arg and not a.text.startswith("-")]
            if path := next((p for t in texts for p in view.paths(t) if precious(p, view.workspace, view.home)), ""):
                return f"removes what it is given: {path}"
        if _REMOVES_HERE.search(code):
            return "removes the folder it stands in"
    return ""


def _sed_files(name: str, code: str) -> Iterator[str]:
    """The files that a script of `sed` writes to."""
    if name in ("sed", "gsed"):
        yield from (m[1].strip() for m in _SED_WRITES.finditer(code))


def _named(view: View, code: str, text: str, *, removes: bool) -> str:
    """What is wrong with a path among the literals of some code."""
    writes = bool(_WRITING_CODE.search(code) or view.name in ("sed", "gsed"))
    spend(10 + len(code) // 10)
    text = re.sub(r"^[<>+|\s]+(?=\S)", "", text)
    text = re.sub(r"^(?:~|\$HOME)(?=/|$)", view.home.replace("\\", r"\\"), text)
    for path in view.paths(text) if text else ():
        if secret(path, view.workspace, view.home):
            return f"secret: {path}"
        if removes and (what := precious(path, view.workspace, view.home)):
            return f"removes {what}: {path}"
        if writes and device(path):
            return f"raw device or kernel switch: {path}"
        if ("/" in text or text.startswith(".")) and persistent(path, view.workspace, view.home) and writes:
            return f"plants or changes what runs later: {path}"
    return ""
