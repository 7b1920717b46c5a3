"""Styled text in terminal rows: wrapping, folding, painting, and Markdown's inline syntax as styled text.

Widths are Rich's (`rich.cells`); nothing else decides where a row ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, chop_cells
from rich.color import ColorSystem
from rich.style import Style

from hypercode.ui.clean import clean
from hypercode.ui.highlight import Run

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["MAX_NESTING", "Inline", "fold", "paint", "parser", "restyle", "styles", "text_width", "wrap"]

MAX_NESTING = 90
_SIXTEEN = ColorSystem.STANDARD  # the terminal's own colours, whatever else it could show
"""Block levels the parser may open (a list takes two). Deeper text would be dropped by it without a word."""

# Every one of them is one cell wide for Rich, whatever stands beside it.
_NARROW = re.compile(r"[ -~\xa0-\xac\xae-\u02ff\u0370-\u0482\u2010-\u2027\u2190-\u21ff\u2500-\u25fc]*").fullmatch
# Entities (`&#13;`, `&#x202e;`) and percent-encoded autolinks bring back what the text was cleaned of.
_UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u180e\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
).search
# Nothing in a line without these is inline syntax (`html` and `linkify` are off).
_SYNTAX = re.compile(r"[\n\\`*_~\[\]<&!]").search

_CJK = r"\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
_CLOSING = r"\u3001\u3002\u3009\u300b\u300d\u300f\u3011\u3015\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\u30fc"
_OPENING = r"\u3008\u300a\u300c\u300e\u3010\u3014\uff08"
_UNITS = re.compile(rf"[{_OPENING}]*(?:[^\s{_CJK}]+|[{_CJK}])[{_CLOSING}]*")
_SHORT = 500  # characters; longer texts are not remembered
_BRACKETS = 100  # the parser looks for the end of each open one: with more at once the text is shown as it is
_WORDS = re.compile(r"\S+")


@cache
def parser() -> MarkdownIt:
    """The one parser: CommonMark with tables and strikethrough, no HTML; blocks only, inline text is parsed on demand."""
    from markdown_it import MarkdownIt

    md = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}).enable(["strikethrough", "table"])
    md.core.ruler.disable(["inline", "text_join"])
    return md


@cache
def styles(colour: bool) -> Mapping[str, str]:
    """Rich styles by element; without colours only weight, slant and underline."""
    both = {
        "strong": "bold",
        "em": "italic",
        "s": "strike",
        "link": "underline",
        "h1": "bold underline",
        "h2": "bold",
        "h3": "bold",
        "h4": "bold italic",
        "th": "bold",
    }
    if not colour:
        return both | {"code": "bold", "url": "", "bullet": "", "rule": "", "bar": ""}
    return both | {
        "code": "cyan",
        "url": "dim",
        "bullet": "cyan",
        "rule": "dim",
        "bar": "dim",
        "h1": "bold underline magenta",
        "h2": "bold magenta",
    }


def text_width(text: str) -> int:
    """Cells `text` takes."""
    return len(text) if text.isascii() else cell_len(text)


def restyle(runs: Iterable[Run], style: str) -> list[Run]:
    """The runs with `style` under their own."""
    return [(text, f"{style} {own}" if own and style else own or style) for text, own in runs]


def paint(runs: Iterable[Run]) -> str:
    """One row as a string; SGR is the only kind of escape sequence in it and is reset at its end."""
    return "".join([_drawn(style).render(text, color_system=_SIXTEEN) if style else text for text, style in runs])


@lru_cache(maxsize=256)
def _drawn(style: str) -> Style:
    return Style.parse(style)


def fold(runs: Sequence[Run], width: int) -> list[list[Run]]:
    """Cut at the right margin as a terminal does, losing nothing; tabs become spaces."""
    text = "".join([piece for piece, _ in runs])
    if "\t" in text:
        runs = [(piece.replace("\t", "    "), style) for piece, style in runs]
        text = text.replace("\t", "    ")
    if text_width(text) <= width:
        return [list(runs)]
    return _cut(runs, _chopped(text, 0, width))


def wrap(runs: Sequence[Run], width: int, *, words: bool = False) -> list[list[Run]]:
    """Wrap at blanks and between ideographs; a longer word is cut. A newline in the text is a new row.

    With `words` ideographs without blanks between them are one word: where rows have something between them, as in
    quotes and tables, a word that is whole can still be searched for and copied.
    """
    units = _WORDS if words else _UNITS
    text = "".join([piece for piece, _ in runs])
    if len(text) <= width and text.isascii() and "\n" not in text and text[-1:] != " ":
        return [list(runs)] if text else []
    spans: list[tuple[int, int]] = []
    start = 0
    for line in text.split("\n"):
        spans += (
            _narrow_rows(text, start, start + len(line), width) if _NARROW(line) else _rows(line, start, width, units)
        )
        start += len(line) + 1
    return _cut(runs, spans)


def _depth(text: str) -> int:
    """How many square brackets are open at once."""
    return max(accumulate((char == "[") - (char == "]") for char in text))


def _harmless(text: str) -> str:
    return re.sub(r"\s", " ", clean(text)) if _UNSAFE(text) else text


def _narrow_rows(text: str, start: int, end: int, width: int) -> list[tuple[int, int]]:
    spans = []
    while end - start > width:
        at = start + width
        if text[at] != " ":
            at = text.rfind(" ", start, at)
            if at <= start:
                spans.append((start, start + width))
                start += width
                continue
        next_start = at
        while next_start < end and text[next_start] == " ":
            next_start += 1
        spans.append((start, at))
        start = next_start
    spans.append((start, end))
    trimmed = [(first, first + len(text[first:last].rstrip(" "))) for first, last in spans]
    return [(first, last) for first, last in trimmed if last > first] or trimmed[:1]


def _rows(line: str, offset: int, width: int, units: re.Pattern[str]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = end = column = 0
    for match in units.finditer(line):
        cells = text_width(match[0])
        gap = match.start() - end
        if column + gap + cells <= width:
            column += gap + cells
            end = match.end()
            continue
        if end > start:
            spans.append((offset + start, offset + end))
        start, end, column = match.start(), match.end(), cells
        if cells > width:
            *full, last = _chopped(match[0], start, width)
            spans += [(offset + a, offset + b) for a, b in full]
            start, column = last[0], cell_len(line[last[0] : end])
    return [*spans, (offset + start, offset + end)] if end > start or not spans else spans


def _chopped(text: str, offset: int, width: int) -> list[tuple[int, int]]:
    spans = []
    start = 0
    for piece in chop_cells(text, max(1, width)):
        if piece:
            spans.append((offset + start, offset + start + len(piece)))
            start += len(piece)
    if spans and start < len(text):  # characters without a width at the end
        spans[-1] = (spans[-1][0], offset + len(text))
    return spans or [(offset, offset + len(text))]


def _cut(runs: Sequence[Run], spans: Iterable[tuple[int, int]]) -> list[list[Run]]:
    """One list of runs for each (start, end) of the joined text; spans are in order and do not overlap."""
    rows = []
    index = begin = 0
    for start, end in spans:
        row: list[Run] = []
        while index < len(runs):
            text, style = runs[index]
            piece = text[max(0, start - begin) : end - begin]
            if piece:
                row.append((piece, style))
            if begin + len(text) > end:
                break
            begin += len(text)
            index += 1
        rows.append(row)
    return rows


class Inline:
    """Inline syntax to runs, with a bounded memory of what it has parsed (a live tail asks for the same text again)."""

    _KEEP = 256

    def __init__(self, *, colour: bool) -> None:
        self._styles = styles(colour)
        self._known: dict[str, list[Run]] = {}
        self._painted: dict[tuple[str, int, str, bool], list[str]] = {}

    def runs(self, content: str, references: Mapping[str, Any]) -> list[Run]:
        """The runs of one paragraph, heading or cell. `references` are the link definitions seen so far."""
        if not _SYNTAX(content):
            return [(_harmless(content), "")] if content else []
        keep = len(content) < _SHORT and not (references and "[" in content)
        known = self._known.get(content) if keep else None
        if known is None:
            known = self._parsed(content, references)
            if keep:
                if len(self._known) >= self._KEEP:
                    self._known.clear()
                self._known[content] = known
        return known

    def _parsed(self, content: str, references: Mapping[str, Any]) -> list[Run]:
        if content.count("[") > _BRACKETS and _depth(content) > _BRACKETS:
            return [(_harmless(content), "")]
        tokens: list[Token] = []
        md = parser()
        md.inline.parse(content, md, {"references": references}, tokens)
        return self._flatten(tokens)

    def rows(self, content: str, references: Mapping[str, Any], width: int, style: str, *, words: bool) -> list[str]:
        """The same, wrapped and painted."""
        key = (content, width, style, words) if len(content) < _SHORT and not (references and "[" in content) else None
        if key is not None and (known := self._painted.get(key)) is not None:
            return known
        runs = self.runs(content, references)
        rows = [paint(row) for row in wrap(restyle(runs, style) if style else runs, width, words=words)]
        if key is not None:
            if len(self._painted) >= self._KEEP:
                self._painted.clear()
            self._painted[key] = rows
        return rows

    def _flatten(self, tokens: Sequence[Token]) -> list[Run]:
        runs: list[Run] = []
        open_styles: list[str] = []
        links: list[tuple[str, int]] = []
        style = ""
        for token in tokens:
            kind = token.type
            if kind in ("text", "text_special"):
                if token.content:
                    runs.append((_harmless(token.content), style))
            elif kind == "code_inline":
                runs += restyle([(_harmless(token.content), self._styles["code"])], style)
            elif kind == "softbreak":
                runs.append((" ", style))
            elif kind == "hardbreak":
                runs.append(("\n", style))
            elif kind == "image":
                runs += restyle([*self._flatten(token.children or ()), *self._target(token.attrGet("src"), "")], style)
            elif kind in ("strong_open", "em_open", "s_open", "link_open"):
                open_styles.append(self._styles[kind.removesuffix("_open")])
                if kind == "link_open":
                    links.append((str(token.attrGet("href") or ""), len(runs)))
                style = " ".join(open_styles)
            elif kind in ("strong_close", "em_close", "s_close", "link_close"):
                open_styles.pop()
                style = " ".join(open_styles)
                if kind == "link_close":
                    href, first = links.pop()
                    label = "".join(text for text, _ in runs[first:])
                    runs += restyle(self._target(href, label), style)
            elif token.content:
                runs.append((_harmless(token.content), style))
        return runs

    def _target(self, href: object, label: str) -> list[Run]:
        """Where a link leads, said in text: the terminal's own hyperlinks hide it."""
        target = _harmless(str(href or ""))
        if not target or target in (label, f"mailto:{label}"):
            return []
        return [(" (", ""), (target, self._styles["url"]), (")", "")]
