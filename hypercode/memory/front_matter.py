"""The head of a Markdown file between two lines of `---`: a safe part of YAML, read without a YAML library.

Understood: `key: value` with plain, quoted, folded (`>`) and literal (`|`) texts, texts that go on in indented lines, one level
of indented keys, and lists in brackets or with dashes.  Every value is text.  Anchors, aliases, tags and flow mappings are
refused; nothing is ever made into an object.
"""

from __future__ import annotations

import re

from hypercode.messages import well_formed

__all__ = ["FrontMatterError", "Value", "parse", "split"]

Value = str | list[str] | dict[str, str]

_KEY = re.compile(r"(?P<key>[A-Za-z_][\w.-]*)\s*:(?:\s+(?P<value>.*))?$")
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?\s*(?:#.*)?$")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", " ": " ", "0": "", "r": ""}
_MOST_LINES = 400


class FrontMatterError(ValueError):
    """The head cannot be understood; the text says why and in which line of the file."""


def split(text: str) -> tuple[dict[str, Value], str]:
    """The head as keys and values, and the text behind it; a text without a head has no keys.  Raises FrontMatterError."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        raise FrontMatterError("line 1: the head has no end; it needs a second line of ---")
    if end > _MOST_LINES:
        raise FrontMatterError(f"the head has more than {_MOST_LINES} lines")
    return parse([line.rstrip("\r") for line in lines[1:end]], first=2), "\n".join(lines[end + 1 :]).strip("\n")


def parse(lines: list[str], *, first: int = 1) -> dict[str, Value]:
    """The keys of a head; `first` is the number of its first line in the file.  Raises FrontMatterError."""
    values: dict[str, Value] = {}
    position = 0
    while position < len(lines):
        line, number = lines[position], first + position
        if not line.strip() or line.lstrip().startswith("#"):
            position += 1
            continue
        found = _KEY.match(line)
        if found is None:
            raise FrontMatterError(f"line {number}: expected 'key: value', not {line.strip()[:60]!r}")
        end = _end_of_value(lines, position + 1)
        if found["key"] in values:
            raise FrontMatterError(f"line {number}: {found['key']} is there twice")
        values[found["key"]] = _value((found["value"] or "").strip(), lines[position + 1 : end], number)
        position = end
    return values


def _end_of_value(lines: list[str], position: int) -> int:
    """Where the lines that belong to a key end: indented ones, empty ones between them, and dashes of a list."""
    end = position
    while position < len(lines):
        line = lines[position]
        if line.startswith((" ", "\t", "- ")) or line == "-":
            end = position + 1
        elif line.strip():
            break
        position += 1
    return end


def _value(head: str, more: list[str], number: int) -> Value:
    if _BLOCK.match(head):
        return _block(head, more)
    rest = [line.strip() for line in more]
    if head and not head.startswith("#"):
        return _scalar_or_list(" ".join([head, *(r for r in rest if r)]), number)
    rest = [r for r in rest if r and not r.startswith("#")]
    if rest and all(r == "-" or r.startswith("- ") for r in rest):
        return [_scalar(r[1:].strip(), number) for r in rest]
    if rest and _KEY.match(rest[0]):
        return _mapping(rest, number)
    return _scalar(" ".join(rest), number)


def _mapping(lines: list[str], number: int) -> dict[str, str]:
    values: dict[str, str] = {}
    for offset, line in enumerate(lines, 1):
        found = _KEY.match(line)
        if found is None:
            raise FrontMatterError(f"line {number + offset}: expected 'key: value', not {line[:60]!r}")
        values[found["key"]] = _scalar((found["value"] or "").strip(), number + offset)
    return values


def _block(head: str, lines: list[str]) -> str:
    """A text in indented lines: `|` keeps its line breaks, `>` joins lines to paragraphs."""
    depth = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    texts = [line[depth:].rstrip() for line in lines]
    if head.startswith("|"):
        return "\n".join(texts).strip("\n")
    paragraphs = re.split(r"\n{2,}", "\n".join(texts).strip("\n"))
    return "\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)


def _scalar_or_list(text: str, number: int) -> Value:
    if not text.startswith("["):
        return _scalar(text, number)
    if not text.endswith("]"):  # no list: `[file] <line>`
        return text
    parts = re.findall(r'\s*"(?:[^"\\]|\\.)*"|\s*\'(?:[^\']|\'\')*\'|[^,]+', text[1:-1])
    return [_scalar(part.strip(), number) for part in parts if part.strip()]


def _scalar(text: str, number: int) -> str:
    if text.startswith('"'):
        return _double_quoted(text, number)
    if text.startswith("'"):
        found = re.match(r"'((?:[^']|'')*)'\s*(?:#.*)?$", text)
        if found is None:
            raise FrontMatterError(f"line {number}: the quote has no end")
        return found[1].replace("''", "'")
    if text[:1] in ("&", "*", "!", "{", "%", "@", "`"):
        raise FrontMatterError(f"line {number}: a value that begins with {text[0]} has to stand in quotes")
    return re.sub(r"(^|\s)#.*$", "", text).strip()


def _double_quoted(text: str, number: int) -> str:
    found = re.match(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?$', text)
    if found is None:
        raise FrontMatterError(f"line {number}: the quote has no end")

    def escape(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code else _ESCAPES.get(match[3], match[3])

    return well_formed(re.sub(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", escape, found[1]))
