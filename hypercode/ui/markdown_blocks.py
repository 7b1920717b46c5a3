"""Which part of a Markdown text that is still arriving can be printed for good.

A block is final when nothing that may follow can change how it looks: all blocks but the last, a heading or a rule at
its newline, a closed fence, a paragraph, quote or table before a blank line, each item of a list but the last, each
line of an open code fence. What is not final stays here, as source lines.
"""

from __future__ import annotations

import re
from collections import ChainMap, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hypercode.ui.markdown_text import MAX_NESTING, parser

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["Fence", "Part", "Scanner", "continues", "parse_blocks"]

WINDOW = 256
"""Complete lines looked at in one step; doubled while nothing in them is final."""

CODE = 64
"""Lines of code given back at once."""

_BLOCK_STARTS = frozenset(" \t#>-+*_=`~|:[0123456789")
_ITEM = re.compile(r"[ ]{0,3}(?:[-+*]|\d{1,9}[.)])(?:[ ]{1,4}(?=\S)|[ ])")


@dataclass(frozen=True, slots=True)
class Part:
    """Something final. `source` is its text, for the case that it cannot be rendered; `tokens` have maps relative to it
    after `offset` is subtracted."""

    kind: Literal["block", "item", "fence", "code"]
    source: Sequence[str]
    tokens: Sequence[Token] = ()
    offset: int = 0
    references: Mapping[str, Any] = field(default_factory=dict)
    gap: bool = True
    number: int | None = None
    info: str = ""

    @property
    def size(self) -> int:
        """Characters of source."""
        return sum(map(len, self.source)) + len(self.source)


@dataclass(frozen=True, slots=True)
class Fence:
    """An open top-level code fence."""

    closing: re.Pattern[str]
    indent: int
    marker: str
    info: str

    @classmethod
    def of(cls, token: Token, line: str) -> Fence:
        marker, indent = token.markup[0], len(line) - len(line.lstrip(" "))
        closing = rf" {{0,3}}{re.escape(marker)}{{{len(token.markup)},}}[ \t]*"
        return cls(re.compile(closing), indent, marker, token.info)

    def content(self, line: str) -> str:
        """The line without the fence's own indentation."""
        column = at = 0
        while column < self.indent and line[at : at + 1] in (" ", "\t"):
            column += 1 if line[at] == " " else 4 - column % 4
            at += 1
        return " " * (column - self.indent) + line[at:]


@dataclass(frozen=True, slots=True)
class _List:
    """A list whose first items are already final: how its next item has to be printed."""

    type: str
    markup: str
    number: int
    gap: bool


def parse_blocks(lines: Iterable[str], references: Mapping[str, Any]) -> tuple[list[Token], dict[str, Any]]:
    """Block structure of the lines, and the link definitions in them; `references` is not changed."""
    found: dict[str, Any] = {}
    tokens = parser().parse("\n".join([*lines, ""]), {"references": ChainMap(found, references)})  # type: ignore[arg-type]
    return tokens, found


def continues(kind: str, line: str) -> bool:
    """Whether a line surely goes on with an open block of that kind, seen from its first character alone."""
    first = line[:1]
    if kind == "table_open":
        return first == "|"
    if kind == "blockquote_open":
        return first == ">"
    return kind == "paragraph_open" and bool(first) and first not in _BLOCK_STARTS and bool(line.strip())


class Scanner:
    """Takes text, gives back final parts in order; `lines` and `partial` are what is not final."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.partial = ""
        self.fence: Fence | None = None
        self.references: Mapping[str, Any] = {}
        self.list: _List | None = None
        self.blanks: list[str] = []  # held back: blank lines at a code block's end are not shown
        self.taken = 0  # lines that were in `lines` once and are final
        self._fed: list[str] = []
        self._queue: deque[Part] = deque()
        self._window = WINDOW
        self._parsed = 0  # lines that the last parse saw without finding anything final in them
        self._seen = 0  # lines that are known to go on with the open block
        self._kind = ""  # what the last of them belongs to: a block token's type ...
        self._item_indent = ""  # ... and the indentation of a list item's content
        self._closed = False

    def feed(self, text: str) -> None:
        self._fed.append(text)

    def close(self) -> None:
        """No more text: everything becomes final."""
        self._closed = True

    def next(self) -> Part | None:
        """The next final part, which stays first until `done()`; None if there is none yet."""
        self._split()
        while not self._queue and self.lines and (self._read_code() if self.fence else self._parse()):
            pass
        return self._queue[0] if self._queue else None

    def done(self) -> None:
        self._queue.popleft()

    @property
    def open_kind(self) -> str:
        """Token type of the block that all of `lines` belong to ("list" in a list), "" if that is not known."""
        return self._kind if self._seen == len(self.lines) else ""

    def _split(self) -> None:
        if self._fed:
            # A parser of its own would take these for line ends or replace them: do it in one place.
            text = "".join(self._fed).replace("\r", "").replace("\0", "\ufffd")
            self._fed.clear()
            first, *rest = text.split("\n")
            self.partial += first
            if rest:
                self.lines += [self.partial, *rest[:-1]]
                self.partial = rest[-1]
        if self._closed and self.partial:
            self.lines.append(self.partial)
            self.partial = ""

    def _read_code(self) -> bool:
        fence = self.fence
        assert fence is not None
        taken: list[str] = []
        count = 0
        for line in self.lines[:CODE]:
            count += 1
            if fence.closing.fullmatch(line):
                self.fence, self.blanks = None, []
                break
            self._take_code(fence.content(line), taken)
        del self.lines[:count]
        if taken:
            self._queue.append(Part("code", taken))
        return True

    def _take_code(self, line: str, taken: list[str]) -> None:
        if line.strip():
            taken += [*self.blanks, line]
            self.blanks = []
        else:
            self.blanks.append(line)

    # Everything but open fences

    def _parse(self) -> bool:
        """Look for final parts in the first lines; False if more text is needed."""
        if self.list is None:
            blank = next((i for i, line in enumerate(self.lines) if line.strip()), len(self.lines))
            del self.lines[:blank]
            self.taken += blank
        if not self.lines or not self._worthwhile():
            return False
        final = self._closed and len(self.lines) <= self._window
        lines = self.lines[: self._window]
        whole = len(lines) == len(self.lines)
        self._kind = ""
        used = self._take(lines, final)
        del self.lines[:used]
        self.taken += used
        if used:
            self._window = WINDOW
        elif not whole:
            self._window *= 2
        self._parsed = self._seen = len(self.lines) if whole else 0
        return bool(used) or not whole

    def _worthwhile(self) -> bool:
        """Whether a parse may find something final: a cheap test, so that a long block is not parsed at each line."""
        count, seen = len(self.lines), self._seen
        if self._closed or count > self._window:
            return True
        if not seen and count == 1 and continues("paragraph_open", self.lines[0]):
            self._seen, self._kind = 1, "paragraph_open"
            return False
        if count == seen:
            return False
        if self._kind == "list":
            inside = all(line.startswith(self._item_indent) or not line.strip() for line in self.lines[seen:])
        else:
            inside = all(continues(self._kind, line) for line in self.lines[seen:])
        if inside:
            self._seen = count
            return False
        return count - self._parsed > self._parsed // 32

    def _take(self, lines: list[str], final: bool) -> int:
        """Queue what is final in the lines; how many of them that uses up."""
        try:
            tokens, found = parse_blocks(lines, self.references)
            return self._take_blocks(lines, tokens, found, final)
        except Exception:  # noqa: BLE001 - a parser's failure must not end the reply: the text is shown as it is
            if not (final or not lines[-1].strip()):
                return 0
            self._queue.append(Part("block", lines, gap=self.list is None or self.list.gap))
            self.list = None
            return len(lines)

    def _take_blocks(self, lines: list[str], tokens: list[Token], found: dict[str, Any], final: bool) -> int:
        if any(token.level >= MAX_NESTING - 1 for token in tokens):
            raise ValueError("nested too deeply")
        starts = [i for i, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0]
        if not starts:
            return self._define(found, len(lines)) if final or not lines[-1].strip() else 0
        first_lines = [_first(tokens[start]) for start in starts] + [len(lines)]
        used = 0
        for k, start in enumerate(starts):
            last = k == len(starts) - 1
            block = tokens[start : None if last else starts[k + 1]]
            begin, end = (0 if k == 0 else first_lines[k]), first_lines[k + 1]
            head = block[0]
            if head.type in ("bullet_list_open", "ordered_list_open"):
                used = self._take_list(lines, block, end, found, whole=final or not last)
                continue
            self.list = None
            if last and not final:
                if head.type == "fence" and not _is_closed(head):
                    self._open_fence(head, lines, found)
                    return len(lines)
                if not _is_final(head, lines):
                    self._kind = head.type
                    return self._define(found, first_lines[k])
                end = _end(head)
            self._define(found, _end(head))
            self._queue.append(Part("block", lines[begin:end], block, begin, self.references))
            used = self._define(found, end)
        return used

    def _open_fence(self, token: Token, lines: list[str], found: dict[str, Any]) -> None:
        first = _first(token)
        self._define(found, len(lines))
        self.fence = Fence.of(token, lines[first])
        self._queue.append(Part("fence", (), info=token.info))
        taken: list[str] = []
        for line in lines[first + 1 :]:
            self._take_code(self.fence.content(line), taken)
        if taken:
            self._queue.append(Part("code", taken))

    def _take_list(self, lines: list[str], block: list[Token], end: int, found: dict[str, Any], *, whole: bool) -> int:
        """Queue a list's items, all of them or all but the last."""
        head = block[0]
        state = self.list
        self.list = None
        if state is None or (state.type, state.markup) != (head.type, head.markup):
            state = _List(head.type, head.markup, int(head.attrGet("start") or 0) if head.attrs else 1, gap=True)
        items = [i for i, token in enumerate(block) if token.level == 1 and token.type == "list_item_open"]
        begins = [_first(block[i]) for i in items] + [end]
        for k, i in enumerate(items if whole else items[:-1]):
            tokens = block[i : items[k + 1] if k + 1 < len(items) else -1]
            number = state.number if head.type == "ordered_list_open" else None
            source = lines[begins[k] : begins[k + 1]]
            self._define(found, _end(block[i]))
            self._queue.append(Part("item", source, tokens, begins[k], self.references, state.gap, number))
            state = _List(state.type, state.markup, state.number + 1, gap=not source[-1].strip())
        if whole:
            return self._define(found, end)
        self.list, self._kind = state, "list"
        match = _ITEM.match(lines[begins[-2]])
        self._item_indent = " " * (len(match[0]) if match else 8)
        return self._define(found, begins[-2])

    def _define(self, found: dict[str, Any], end: int) -> int:
        """Link definitions above line `end` hold from now on. A block sees those above its own end, as it would have if
        the text below had not been there yet."""
        new = {label: ref for label, ref in found.items() if ref["map"][0] < end and label not in self.references}
        if new:
            self.references = {**self.references, **new}
        return end


def _first(token: Token) -> int:
    return token.map[0] if token.map else 0


def _end(token: Token) -> int:
    return token.map[1] if token.map else 0


def _is_closed(fence: Token) -> bool:
    assert fence.map is not None
    return fence.map[1] - fence.map[0] - 1 > fence.content.count("\n")


def _is_final(head: Token, lines: Sequence[str]) -> bool:
    """Whether the last block, of which `head` is the first token, is complete although nothing follows it."""
    if head.type in ("heading_open", "hr") or (head.type == "fence" and _is_closed(head)):
        return True
    return head.type in ("paragraph_open", "blockquote_open", "table_open") and (
        not lines[-1].strip() or _end(head) < len(lines)
    )
