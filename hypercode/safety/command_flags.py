"""Whether one command with these arguments is a plain reader: the table applied, and the few commands with a language.

`check` answers with the words it took for paths, so that the caller can look at where they lead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from hypercode.safety.command_language import jq_looks_further, sed_files
from hypercode.safety.command_paths import project_secret
from hypercode.safety.command_table import FIND_PLAIN, FIND_VALUE, TABLE, TEST_WORDS, VERSION, Spec
from hypercode.safety.command_words import Form, decode, forms
from hypercode.safety.command_work import spend

__all__ = ["Reading", "Refused", "arguments", "check"]


@dataclass(slots=True)
class Reading:
    """A command that only reads: what it is called, the files whose content or whose names it shows."""

    rule: str
    content: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    here: bool = True  # it looks at the folder it stands in


class Refused(Exception):
    """Not a plain reader; the text says by what."""


def check(name: str, args: Sequence[Form]) -> Reading | str:
    """What the command reads, or in a few words why it must ask."""
    versions = VERSION.get(name, "").split()
    if len(args) == 1 and args[0].text in versions:
        return Reading(f"read-only: {name} {args[0].text}", here=False)
    special = _SPECIAL.get(name)
    spec = TABLE.get(name)
    if special is None and spec is None:
        return "not on the list of readers"
    try:
        return special(name, args) if special else arguments(name, spec or Spec(), args)
    except Refused as reason:
        return str(reason)


def arguments(name: str, spec: Spec, args: Sequence[Form]) -> Reading:
    """The table's entry applied to the arguments.  Raises Refused for whatever is not in it."""
    out = Reading(f"read-only: {name}", here=spec.operands in ("paths", "names", "pattern", "git"))
    operands: list[Form] = []
    flags: set[str] = set()
    spend(2 + 3 * len(args))
    unrestricted = [a.text for a in args if re.fullmatch(r"-[\w.]*u[\w.]*|--unrestricted", a.text)]
    at, open_ = 0, True
    while at < len(args):
        form = args[at]
        at += 1
        if not form.sure:
            raise Refused("an argument is not known beforehand")
        if ((open_ and spec.risky) or spec.planted) and _any_name(form):
            raise Refused(f"a file name could be taken for a flag of {name}")
        if spec.planted and form.text.startswith("@"):
            raise Refused(f"arguments from a file: {name} {form.text}")
        if not open_ or form.text == "-" or not form.text.startswith("-"):
            operands.append(form)
        elif form.text == "--":
            open_ = False
            operands += [Form("--")] if spec.operands == "git" else []
        elif form.glob and not form.text.startswith("--"):
            raise Refused("a flag with a pattern in it")
        elif form.text.startswith("--"):
            if form.glob and (spec.operands == "git" or form.text[2:].split("=", 1)[0] in spec.files.split()):
                raise Refused("a flag with a pattern in it")
            at += _long(name, spec, form.text, args[at:], out, flags)
        else:
            at += _short(name, spec, form.text, args[at:], out, flags)
    if name == "ls" and flags & {"L", "dereference"} and flags & {"R", "recursive"}:
        raise Refused("follows links out of the folder: ls -LR")
    if name == "rg" and len(re.findall("u|--unrestricted", " ".join(unrestricted))) > 2:
        raise Refused("searches hidden and ignored files: rg -uuu")
    _operands(name, spec, operands, flags, out)
    return out


def _long(name: str, spec: Spec, text: str, rest: Sequence[Form], out: Reading, flags: set[str]) -> int:
    flag, equals, value = text[2:].partition("=")
    with_value, without = spec.long_value.split(), spec.long.split()
    flags.add(flag)
    if equals and flag in with_value:
        _value(spec, flag, value, out)
        return 0
    if not equals and flag in without:
        return 0
    if not equals and flag in with_value and rest:
        _value(spec, flag, _separate(name, rest), out)
        return 1
    raise Refused(f"flag not on the list: {name} --{flag}")


def _short(name: str, spec: Spec, text: str, rest: Sequence[Form], out: Reading, flags: set[str]) -> int:
    if spec.count and re.fullmatch(r"-\d+", text):
        return 0
    for at, letter in enumerate(text[1:], 2):
        flags.add(letter)
        if letter in spec.value:
            value = text[at:]
            if not value and not rest:
                raise Refused(f"flag without its value: {name} -{letter}")
            _value(spec, letter, value or _separate(name, rest), out)
            return 0 if value else 1
        if letter in spec.attached:
            return 0
        if letter not in spec.short and not (spec.operands == "git" and letter.isdigit() and at > 2):
            raise Refused(f"flag not on the list: {name} -{letter}")
    return 0


def _separate(name: str, rest: Sequence[Form]) -> str:
    """A flag's value in a word of its own; one that looks like a flag could be read as one after all."""
    if not rest[0].sure or _any_name(rest[0]) or (rest[0].glob and not rest[0].alone):
        raise Refused("an argument is not known beforehand")
    if re.match(r"-\D", rest[0].text):
        raise Refused(f"a value that looks like a flag: {name} … {rest[0].text}")
    return rest[0].text


def _value(spec: Spec, flag: str, value: str, out: Reading) -> None:
    if flag in spec.files.split():
        out.content.append(value)
    if flag == "L" and spec.operands == "git" and ":" in value:
        out.content.append(value.rsplit(":", 1)[-1])
    if flag in ("include", "glob", "iglob", "g") and spec.pattern_by and _picks_secrets(value):
        raise Refused(f"may show secrets: {value}")
    if "%G" in value or "(signature" in value:
        raise Refused("runs the signature checker")


def _picks_secrets(value: str) -> bool:
    """Whether a pattern for the files to search singles out some that usually hold secrets."""
    texts = {value.replace("{", "").replace("}", ""), *(f.text for f in forms(decode(value), {}, ""))}
    names = {t.rsplit("/", 1)[-1] for t in texts if not t.startswith("!")}
    return any(project_secret(n) or (n.strip("*?.") and fnmatchcase(".env", n)) for n in names)


def _operands(name: str, spec: Spec, operands: list[Form], flags: set[str], out: Reading) -> None:
    texts = [o.text for o in operands]
    if spec.operands == "none" and texts:
        raise Refused(f"{name} with an operand")
    if not spec.least <= len(texts) <= spec.most or (spec.most < 100 and any(o.glob and not o.alone for o in operands)):
        raise Refused(f"{name} with this many operands may write")
    if spec.operands == "plus" and not all(t.startswith("+") for t in texts):
        raise Refused(f"{name} with this operand may write")
    if spec.operands == "pattern" and not flags & set(spec.pattern_by.split()):
        texts = texts[1:]
    if spec.operands in ("paths", "pattern"):
        out.content += [t for t in texts if t != "-"]
    elif spec.operands == "names":
        apart = name == "ls" and bool(flags & {"d", "directory"})
        out.names += [_listed(o) if apart and o.glob else o.text for o in operands]
    elif spec.operands != "git":
        out.names += [_listed(o) for o in operands if o.glob]
    elif spec.operands == "git":
        for text in texts:
            out.content += [text, *([text.rsplit(":", 1)[-1].strip("()/!^")] if ":" in text else [])]


def _listed(form: Form) -> str:
    """The folder whose names a pattern shows, where its wildcards stand in the last component alone."""
    above, _, last = form.text.rstrip("/").rpartition("/")
    if re.search(r"[*?\[]", above) or not last:
        return form.text
    return above or ("/" if form.text.startswith("/") else ".")


# -- commands with a language of their own ---------------------------------------------------------------------------

_FIND_PLAIN, _FIND_VALUE = set(FIND_PLAIN.split()), set(FIND_VALUE.split())


def _any_name(form: Form) -> bool:
    """Whether a word may become the name of a file that looks like a flag."""
    return form.glob and form.text[:1] in "*?["


def _find(name: str, args: Sequence[Form]) -> Reading:
    out = Reading("read-only: find")
    at, roots = 0, True
    while at < len(args):
        form, text = args[at], args[at].text
        at += 1
        if not form.sure or _any_name(form) or (form.glob and text[:1] in "-("):
            raise Refused("an argument is not known beforehand")
        roots = roots and not (text.startswith("-") or text in ("!", "(", ")", ","))
        if roots or text in ("-H", "-P"):
            roots = True
            out.names += [] if text.startswith("-") else [text]
        elif text in _FIND_VALUE and at < len(args) and args[at].sure and (args[at].alone or not _any_name(args[at])):
            out.names += [args[at].text] if text in ("-newer", "-anewer", "-cnewer", "-samefile") else []
            at += 1
        elif text not in _FIND_PLAIN:
            raise Refused(f"runs or writes by flag: find {text}")
    return out


_FD = Spec(
    "pattern", "HIusiaFg0pl1q",
    "hidden no-ignore case-sensitive ignore-case absolute-path fixed-strings glob print0 full-path list-details "
    "no-ignore-vcs quiet unrestricted strip-cwd-prefix",
    "tedESj", "type extension max-depth min-depth exact-depth exclude size changed-within changed-before max-results color threads",
    risky=True,
)  # fmt: skip


def _sed(name: str, args: Sequence[Form]) -> Reading:
    out = Reading("read-only: sed")
    scripts: list[str] = []
    operands: list[str] = []
    at, open_ = 0, True
    while at < len(args):
        form, text = args[at], args[at].text
        at += 1
        known = bool(scripts or operands)  # the script, which file names must not become
        if not form.sure or (form.glob and (not known or (open_ and text[:1] in "*?[-"))):
            raise Refused("an argument is not known beforehand")
        if open_ and text == "--":
            open_ = False
        elif open_ and (text in ("-e", "--expression") or (re.fullmatch(r"-[nErsuz]+e", text))) and at < len(args):
            if not args[at].sure or args[at].glob:
                raise Refused("an argument is not known beforehand")
            scripts.append(args[at].text)
            at += 1
        elif open_ and text.startswith("--expression="):
            scripts.append(text.split("=", 1)[1])
        elif open_ and text.startswith("-") and text != "-":
            longs = (
                "--quiet",
                "--silent",
                "--regexp-extended",
                "--separate",
                "--unbuffered",
                "--null-data",
                "--posix",
                "--sandbox",
                "--debug",
            )
            if text not in longs and not re.fullmatch(r"-[nErsuz]+", text):
                raise Refused(f"flag not on the list: sed {text}")
        else:
            operands.append(text)
    if not scripts:
        scripts, operands = operands[:1], operands[1:]
    for script in scripts:
        files = sed_files(script)
        if files is None:
            raise Refused("a sed script that is not only printing and replacing")
        out.content += files
    out.content += [o for o in operands if o != "-"]
    return out


def _text(name: str, args: Sequence[Form]) -> Reading:
    """A command that shows its arguments as they are; only a pattern among them looks at the disk."""
    return arguments(name, Spec("text"), [Form("--"), *args])


def _printf(name: str, args: Sequence[Form]) -> Reading:
    if args and re.match(r"-(?!-)", args[0].text):
        raise Refused("printf with a flag sets a variable")
    if args and _any_name(args[0]):
        raise Refused("a file name could be taken for a flag of printf")
    pattern = args[1:2] if args and args[0].text == "--" else args[:1]
    if any(re.search(r"%[^%a-zA-Z(]*n", form.text.replace("%%", "")) for form in pattern):
        raise Refused("printf that sets a variable")
    return _text(name, args)


_TESTS = set(TEST_WORDS.split())
_COMPARE = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}


def _test(name: str, args: Sequence[Form]) -> Reading:
    out = Reading(f"read-only: {name}")
    for at, form in enumerate(args):
        if not form.sure or (name != "[[" and _any_name(form)):
            raise Refused("an argument is not known beforehand")
        if form.text in _COMPARE:
            sides = [args[i].text if 0 <= i < len(args) else "" for i in (at - 1, at + 1)]
            if not all(re.fullmatch(r"[+-]?\d+", s) for s in sides):
                raise Refused("a comparison that may evaluate its text")
        elif form.text.startswith("-") and form.text not in _TESTS:
            raise Refused(f"not on the list: {name} {form.text}")
        elif form.text not in _TESTS and form.text not in ("]", "]]"):
            out.names += [form.text] if at and args[at - 1].text in ("-e", "-f", "-d", "-s", "-r") else []
    return out


_JQ_GIVEN = {"--arg": False, "--argjson": False, "--slurpfile": True, "--rawfile": True}
"""Flags of `jq` with a name and a value, and whether the value is a file."""


def _jq(name: str, args: Sequence[Form]) -> Reading:
    rest: list[Form] = []
    files: list[str] = []
    at = 0
    while at < len(args):
        form = args[at]
        reads = _JQ_GIVEN.get(form.text) if not form.glob else None
        if reads is None:
            rest.append(form)
            at += 1
            continue
        given = args[at + 1 : at + 3]
        if len(given) < 2 or not all(g.sure and not g.glob for g in given):
            raise Refused("an argument is not known beforehand")
        files += [given[1].text] if reads else []
        at += 3
    out = arguments(name, TABLE["jq"], rest)
    out.content += files
    program = next((form for form in rest if not form.text.startswith("-")), Form("."))
    if (program.glob and program.alone) or any(jq_looks_further(form.text) for form in rest):
        raise Refused("jq that reads the environment or other files")
    return out


def _ps(name: str, args: Sequence[Form]) -> Reading:
    for form in args:
        if not form.sure or not re.fullmatch(r"-?[aux]+|-[eflAFTHjLw]+|-[pC]|\d+|--forest|[a-z]{2,}\d*", form.text):
            raise Refused("ps that may show environments")
        if re.fullmatch(r"[a-z]*e[a-z]*", form.text):
            raise Refused("ps that may show environments")
    return Reading("read-only: ps", here=False)


def _printenv(name: str, args: Sequence[Form]) -> Reading:
    known = {"HOME", "PWD", "USER", "SHELL", "LANG", "PATH", "TERM", "EDITOR", "VIRTUAL_ENV", "TMPDIR", "LOGNAME"}
    if not args or not all(a.text in known or a.text.startswith("LC_") for a in args):
        raise Refused("shows the environment")
    return Reading("read-only: printenv", here=False)


def _command(name: str, args: Sequence[Form]) -> Reading:
    if len(args) < 2 or args[0].text not in ("-v", "-V") or not all(a.sure for a in args):
        raise Refused("runs its argument")
    return Reading("read-only: command -v", here=False)


def _set(name: str, args: Sequence[Form]) -> Reading:
    if not args or not re.fullmatch(
        r"(?:[-+][eux]*o pipefail|[-+][eux]+|[-+][eux]+ [-+]o pipefail)", " ".join(a.text for a in args)
    ):
        raise Refused("changes or shows the shell")
    return Reading("shell option", here=False)


_PIP = {
    "list": Spec("none", "lev", "local user editable not-required verbose", "", "format exclude"),
    "show": Spec("text", "fv", "files verbose", least=1, risky=True),
    "check": Spec("none"),
}


def _pip(name: str, args: Sequence[Form]) -> Reading:
    if not args or args[0].text not in _PIP or not args[0].sure:
        raise Refused("not on the list of readers")
    return arguments(f"{name} {args[0].text}", _PIP[args[0].text], args[1:])


def _id(name: str, args: Sequence[Form]) -> Reading:
    return arguments(name, Spec("text", TABLE["id"].short, TABLE["id"].long, most=1), args)


_SPECIAL: dict[str, Callable[[str, Sequence[Form]], Reading]] = {
    "find": _find,
    "fd": lambda name, args: arguments(name, _FD, args),
    "fdfind": lambda name, args: arguments(name, _FD, args),
    "sed": _sed,
    "printf": _printf,
    "echo": _text,
    "test": _test,
    "[": _test,
    "[[": _test,
    "jq": _jq,
    "ps": _ps,
    "printenv": _printenv,
    "command": _command,
    "set": _set,
    "id": _id,
    "pip": _pip,
    "pip3": _pip,
}
