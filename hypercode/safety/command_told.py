"""What text an expansion gives, as far as the line itself tells: `$(echo …)`, `$(dirname …)`, `${x%…}`, `${x/a/b}`.

Nothing is run.  An answer says what may stand there, for deny rules and circuit breakers; a word that holds such an
expansion is never sure.
"""

from __future__ import annotations

import posixpath
import re
from base64 import b32decode, b64decode
from collections.abc import Callable, Mapping, Sequence
from fnmatch import translate
from itertools import islice

from hypercode.safety.command_work import LONGEST, spend

__all__ = ["altered", "filtered", "formatted", "given_here", "printed", "rows", "said"]

_LONGEST = 2000  # characters of an expansion, or of a value, beyond which nobody knows what it gives
_NESTED = 4  # substitutions inside one another that are followed
_WORD = re.compile(
    r"""(?:\\.|'[^']*'|"(?>\\.|\$\((?>[^()]|\([^()]*\))*+\)|[^"\\])*+"|\$\((?>[^()]|\([^()]*\))*+\)|<<<|[^\s'"\\|])+|\|""",
    re.S,
)
_QUOTED = re.compile(r"'[^']*'|\"(?>\\.|[^\"\\])*+\"|\\.|\$\((?>[^()]|\([^()]*\))*+\)|<<<", re.S)
_STANDS = re.compile(r"cd(?:\s+(?:--\s+)?([^\s;&|]+))?\s*(?:;|&&)\s*pwd(?:\s+-[LP])?")
_CHANGE = re.compile(r"\$\{(!?)([A-Za-z_]\w*)(?:\[(?:[@*]|[^\]$`(]+)\])?(?:(%%?|##?|//?|\^\^?|,,?|:|@)(.*))?\}", re.S)
_CODE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|0?([0-7]{1,3})|([nt\\]))")
_HERE = re.compile(r"<<-?[ \t]*['\"\\]?(\w+)['\"]?[^\n]*\n")
_PLACE = re.compile(r"%[-#0+ ]*\d*(?:\.\d+)?[a-zA-Z]|%%")

Expand = Callable[[str], list[str]]
Values = Mapping[str, frozenset[str]]


def printed(text: str, expand: Expand, values: Values) -> list[str] | None:
    """What a command substitution prints, or None where that cannot be told; `expand` gives the texts of a word."""
    inner = (text[2:-1] if text.startswith("$(") else text[1:-1]).strip()
    if len(inner) > _LONGEST or inner.count("$(") > _NESTED:
        return None
    spend(20 + len(inner) // 4)
    if there := _STANDS.fullmatch(inner):
        return expand(there[1] or "~")
    if re.search(r"[;&<>\n`]|\|\|", _QUOTED.sub("", inner)):
        return None
    told: list[str] | None = None
    for at, words in enumerate(_stages(_WORD.findall(inner))):
        name = words[0].rsplit("/", 1)[-1] if words else ""
        args = [t for w in words[1:] for t in expand(w)]
        if sum(map(len, args)) > _LONGEST:
            return None
        told = filtered(told or [], name, args) if at else _output(name, args, values)
        if told is None:
            return None
    return told


def given_here(text: str) -> list[str]:
    """The texts of here-documents inside the substitutions of a word, as in `"$(cat <<E … E)"`."""
    if "<<" not in text:
        return []
    spend(10 + len(text) // 10)
    out = []
    for head in islice(_HERE.finditer(text), 4):
        end = re.compile(rf"^[ \t]*{head[1]}[ \t]*$", re.M).search(text, head.end())
        out.append(text[head.end() : end.start() if end else len(text)])
    return out


def _stages(words: Sequence[str]) -> list[list[str]]:
    stages: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            stages.append([])
        else:
            stages[-1].append(word)
    return stages


def filtered(texts: Sequence[str], name: str, args: Sequence[str]) -> list[str] | None:
    """What a filter such as `rev` or `base64 -d` makes of some texts, or None for one that is not followed."""
    spend(5 + sum(map(len, texts)) // 10)
    if name in ("cat", "tee", "xargs") and not [a for a in args if a.startswith("-")]:
        return list(texts)
    if name == "rev":
        return ["\n".join(line[::-1] for line in t.split("\n")) for t in texts]
    if name in ("base64", "base32") and any(re.fullmatch(r"-[dD]|--decode", a) for a in args):
        decode = b64decode if name == "base64" else b32decode
        return [t for text in texts if (t := _decoded(decode, text))]
    if name == "xxd" and any("r" in a for a in args):
        return [t for text in texts if (t := _decoded(bytes.fromhex, text))]
    if name == "tr" and len(args) == 2 and len(args[0]) == len(args[1]):
        return [t.translate(str.maketrans(args[0], args[1])) for t in texts]
    return None


def _decoded(decode: Callable[[str], bytes], text: str) -> str:
    try:
        return decode(text.strip()).decode("utf-8", "replace")
    except ValueError:
        return ""


def _output(name: str, args: list[str], values: Values) -> list[str] | None:
    operands = [a for a in args if not a.startswith("-")]
    if name in ("echo", "printf", "print"):
        return [said(name, args)]
    if name == "pwd":
        return sorted(values.get("PWD", ()))
    if name in ("realpath", "readlink"):
        return operands or None
    if name == "dirname":
        return [posixpath.dirname(o) or "." for o in operands] or None
    if name == "basename":
        return [posixpath.basename(o.rstrip("/")) for o in operands[:1]] or None
    if name in ("which", "type", "command", "whereis"):
        return operands[-1:] or None
    if "<<<" in args[:-1]:
        at = args.index("<<<")
        return filtered(args[at + 1 : at + 2], name, [*args[:at], *args[at + 2 :]])
    return _of_git(args, values) if name == "git" else None


def _of_git(args: list[str], values: Values) -> list[str] | None:
    if args[:1] != ["rev-parse"]:
        return None
    if "--show-toplevel" in args:
        return sorted(values.get("PWD", ()))
    if "--git-path" in args[:-1]:
        return [f".git/{args[-1]}"]
    return [".git"] if re.fullmatch(r"--(?:absolute-)?git-(?:common-)?dir", args[-1]) else None


def said(name: str, args: Sequence[str]) -> str:
    """What `echo` or `printf` of these texts prints."""
    if name == "printf":
        args = args[1:] if args[:1] == ["--"] else args
        args = args[2:] if args[:1] == ["-v"] else args
        return formatted(args[0], args[1:]) if args else ""
    flags = [a for a in args[:2] if re.fullmatch(r"-[neE]+", a)]
    text = " ".join(args[len(flags) :])
    return _CODE.sub(_character, text) if any("e" in f for f in flags) else text


def formatted(pattern: str, args: Sequence[str]) -> str:
    """What `printf` makes of its arguments; numbers and quoting are left as they are."""
    spend(5 + (len(pattern) + sum(map(len, args))) // 10)
    pattern = _CODE.sub(_character, pattern)
    pending = list(args)

    def fill(place: re.Match[str]) -> str:
        if place[0] == "%%" or not pending:
            return "%" if place[0] == "%%" else ""
        return _CODE.sub(_character, pending.pop(0)) if place[0][-1] == "b" else pending.pop(0)

    out = [_PLACE.sub(fill, pattern)]
    takes = bool(_PLACE.search(pattern.replace("%%", "")))
    while pending and takes and len(out) * len(pattern) < LONGEST:
        out.append(_PLACE.sub(fill, pattern))
    return "".join(out)


def _character(code: re.Match[str]) -> str:
    if code[3]:
        return {"n": "\n", "t": "\t"}.get(code[3], "\\")
    number = int(code[1], 16) if code[1] else int(code[2], 8)
    return chr(number) if 0 < number < 256 else ""


def altered(text: str, expand: Expand, values: Values) -> list[str] | None:
    """The values of `${name}` with an operation on it (a part cut off or replaced, a name that is looked up)."""
    match = _CHANGE.fullmatch(text) if len(text) <= _LONGEST and text.count("$(") <= _NESTED else None
    known = values.get(match[2]) if match else None
    if match is None or known is None or any(len(v) > _LONGEST for v in known):
        return None
    if match[1]:
        known = frozenset(v for name in known for v in values.get(name, ()))
    spend(20 * len(known))
    out = {t for v in sorted(known)[:64] for t in _operated(v, match[3] or "", match[4] or "", expand)}
    return sorted(out) or None


def _operated(value: str, operation: str, rest: str, expand: Expand) -> list[str]:
    if operation[:1] in ("^", ","):
        change = str.upper if operation[0] == "^" else str.lower
        return [change(value) if len(operation) == 2 else change(value[:1]) + value[1:]]
    if operation == ":":
        place = re.fullmatch(r"\s*\(?(-?\d+)\)?(?::(-?\d+))?", rest)
        if not place:
            return [value]
        start = int(place[1][:6]) if int(place[1][:6]) >= 0 else max(0, len(value) + int(place[1][:6]))
        length = int(place[2][:6]) if place[2] else len(value)
        return [value[start : start + length if length >= 0 else length]]
    if operation[:1] in ("%", "#"):
        return [_cut(value, operation, p) for p in expand(rest) or [""]]
    if operation[:1] == "/":
        pattern, _, new = re.sub(r"\\/", "\0", rest).partition("/")
        return [
            re.sub(_expression(p.lstrip("#%")), lambda _, n=n: n, value, count=0 if operation == "//" else 1)
            for p in expand(pattern.replace("\0", "/")) or [""]
            for n in expand(new.replace("\0", "/")) or [""]
            if p and len(value) * len(n) < LONGEST
        ] or [value]
    return [value]


def _cut(value: str, operation: str, pattern: str) -> str:
    """The value without the shortest (or, with the sign doubled, longest) head or tail that fits the pattern."""
    spend(2 * len(value) + len(pattern))
    fits = re.compile(_expression(pattern), re.S).fullmatch
    places = range(len(value) + 1)
    if operation[0] == "#":
        ends = places if len(operation) == 1 else reversed(places)
        return next((value[end:] for end in ends if fits(value[:end])), value)
    starts = reversed(places) if len(operation) == 1 else places
    return next((value[:start] for start in starts if fits(value[start:])), value)


def _expression(pattern: str) -> str:
    return re.sub(r"\(\?s:(.*)\)\\[Zz]", r"(?s:\1)", translate(pattern[:200]), flags=re.S)


def rows(texts: Sequence[str]) -> list[str]:
    """The words in some texts, as a program that reads its arguments from its input takes them."""
    spend(sum(len(t) for t in texts) // 20)
    return [word for text in texts for word in text.split()]
