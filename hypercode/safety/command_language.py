"""What the little programs do that `sed` and `jq` take among their arguments: only show, or also read, write and run."""

from __future__ import annotations

import re

from hypercode.safety.command_work import spend

__all__ = ["jq_looks_further", "jq_variables", "sed_files"]

_BRACKET = r"\[\^?+\]?+(?:\[:\w+:\]|\\[^\]\[\n]|[^\]\[\\\n])*+\]"
"""A set of characters, spelled so that every sed ends it at the same place.

Some take a delimiter in it for the end of the pattern; what is left is then no pattern, and they run nothing at all,
but may have opened the file of a `w` by then.
"""
_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/(?:\\[^\n]|{_BRACKET}|[^/\\\n\[])*+/[IM]*)"
_WHERE = re.compile(rf"[\s;]*+(?:{_ADDRESS}(?:\s*+,\s*+(?:{_ADDRESS}|[+~]\d+))?)?\s*+(?:!\s*+)*+")
_END = r"[ \t]*+(?=[;\n}#]|\Z)"
_PLAIN = re.compile(rf"(?:[=dDgGhHnNpPxzF}}]|[lqQ][ \t]*\d*){_END}|\{{|#[^\n]*")
_LABEL = re.compile(r"(?::[ \t]*[\w.-]+|[btT](?:[ \t]*[\w.-]+)?)(?:[ \t]*+(?=[;\n]|\Z)|[ \t]+(?=\}))|[btT](?=\})")
_TEXT = re.compile(r"[aic][ \t]*(?:\\\n?)?[^\\\n]+(?=\n|\Z)")
_READ = re.compile(r"r[ \t]*([^\s;}\\]+)(?=\n|\Z)")
_GAP = r"(?:\s|#[^\n]*(?:\n|\Z))*+"
_JQ_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*+\"", re.S)
_JQ_KEY = re.compile(r"[{,]\s*env\s*:(?!:)|\{\s*env\s*(?=[,}])")
_JQ_ENVIRONMENT = re.compile(
    rf"(?:(?<!\$)(?<!(?<!\.)\.)\benv\b|\${_GAP}ENV\b)(?:\.([A-Za-z_]\w*))?|\${_GAP}__prog_args"
)
_JQ_FURTHER = re.compile(
    rf"\${_GAP}__|\b(?:input_filename|get_search_list|halt_error|modulemeta)\b"
    rf"|\A{_GAP}(?:include|import|module)\s*[\"#@{{]"
)


def sed_files(script: str) -> list[str] | None:
    """The files that a script of `sed` reads besides its operands; None if it may do more than read and print."""
    files: list[str] = []
    at, end, labelled = 0, len(script.rstrip(" \t\n;")), False
    while at < end:
        spend(8)
        where = _WHERE.match(script, at)
        at = where.end() if where else at
        if match := _LABEL.match(script, at):
            labelled = True  # for some the label goes on to the end of the line
        elif script[at : at + 1] in ("s", "y"):
            match = _replaces(script, at)
        else:
            match = _PLAIN.match(script, at) or _TEXT.match(script, at) or _READ.match(script, at)
        if at < end and (match is None or (labelled and "\n" in match[0])):
            return None
        if match is not None:
            files += [match[1]] if match.re is _READ else []
            at = match.end()
    return files


def _replaces(script: str, at: int) -> re.Match[str] | None:
    """`s` or `y` with its flags, where those neither run nor write."""
    sign = script[at + 1 : at + 2]
    if not sign or sign.isalnum() or sign in "\\\n[]":
        return None
    other = rf"(?!{re.escape(sign)})"
    if script[at] == "y":
        body, new, flags = rf"(?:\\[^\n]|{other}[^\\\n])*+", rf"(?:\\[^\n]|{other}[^\\\n])*+", ""
    else:
        body, new, flags = rf"(?:\\[^\n]|{_BRACKET}|{other}[^\\\n\[])*+", rf"(?:\\.|{other}[^\\\n])*+", "[gpiImM0-9]*"
    sign = re.escape(sign)
    spend(5 + (len(script) - at) // 25)
    plain = rf"(?:\\.|{other}[^\\])*+"  # for some the delimiter ends the pattern inside a bracket too
    if re.compile(rf".{sign}{plain}{sign}{plain}{sign}[gpiImM0-9 \t]*w", re.S).match(script, at):
        return None
    return re.compile(rf".{sign}{body}{sign}{new}{sign}{flags}{_END}", re.S).match(script, at)


def jq_variables(program: str) -> list[str]:
    """The environment variables that a program of `jq` may show; an empty name stands for all of them."""
    spend(2 + len(program) // 10)
    if "#" not in program:  # a comment may hold half a string
        program = _JQ_STRING.sub('""', program) if "\\(" not in program else program
        program = _JQ_KEY.sub("{", program)
    return [match[1] or "" for match in _JQ_ENVIRONMENT.finditer(program)]


def jq_looks_further(program: str) -> bool:
    """Whether a program of `jq` may show the environment, or load what no argument names."""
    spend(len(program) // 20)
    return bool(jq_variables(program) or _JQ_FURTHER.search(program))
