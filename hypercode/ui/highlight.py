"""Syntax highlighting of code that arrives line by line.

A line's colours depend on that line and the lines above it, never on what follows: a line can be printed for good as
soon as its newline is there, and printing a whole block at once gives the same colours. Lexers are Pygments'; its
modules are imported at first use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]
    from pygments.token import _TokenType  # type: ignore[import-untyped]

    Tokens = list[tuple[_TokenType, str]]

__all__ = ["Highlighter", "Run", "find_lexer"]

Run = tuple[str, str]
"""A piece of text and its style, as Rich writes it ("bold magenta", "" for none)."""

MAX_LINE = 2_000
"""Longer lines (minified code, data) are shown without colours: characters."""
MAX_STACK = 64

# Names models write behind a fence that Pygments does not know.
_ALIASES = {"jsx": "javascript", "tsx": "typescript", "jsonc": "json", "dotenv": "ini", "env": "ini", "svelte": "html", "vue": "html", "svg": "xml", "mdx": "markdown", "node": "javascript"}  # fmt: skip

# Standard colours only, none of them unreadable on a light or on a dark background (no white, black, yellow). All kinds
# of strings look alike: lexers tell a docstring from a string only when its end is known.
_COLOURS = {
    "Keyword": "magenta",
    "Keyword.Constant": "cyan",
    "Keyword.Type": "cyan",
    "Name.Builtin": "cyan",
    "Name.Builtin.Pseudo": "magenta",
    "Name.Class": "bright_blue",
    "Name.Function": "bright_blue",
    "Name.Decorator": "magenta",
    "Name.Exception": "cyan",
    "Name.Namespace": "bright_blue",
    "Name.Tag": "bright_blue",
    "Name.Attribute": "cyan",
    "Name.Variable": "cyan",
    "Operator.Word": "magenta",
    "Literal.String": "green",
    "Literal.Number": "cyan",
    "Comment": "dim",
    "Comment.Preproc": "magenta",
    "Comment.PreprocFile": "green",
    "Generic.Deleted": "red",
    "Generic.Inserted": "green",
    "Generic.Subheading": "cyan",
    "Generic.Heading": "bold",
    "Generic.Prompt": "dim",
    "Generic.Emph": "italic",
    "Generic.Strong": "bold",
    "Generic.Traceback": "red",
    "Generic.Error": "red",
}
_MONOCHROME = {
    "Keyword": "bold",
    "Comment": "italic",
    "Generic.Heading": "bold",
    "Generic.Emph": "italic",
    "Generic.Strong": "bold",
}

_BRACKETS = (("/*", "*/"), ("{-", "-}"), ("--[[", "]]"), ("<!--", "-->"), ("<#", "#>"), ("#=", "=#"))
_EMBEDDED = re.compile(r"<(script|style)\b[^<>]*>\s*$", re.IGNORECASE)
_EMBEDDED_END = re.compile(r"</(?:script|style)", re.IGNORECASE)
_HEREDOC = re.compile(r"<<<?[-~]?\s*['\"]?\\?([A-Za-z_]\w*)['\"]?")


@cache
def _palette(colour: bool) -> dict[Any, str]:
    """Token type -> style, filled as types are seen."""
    from pygments.token import string_to_tokentype

    return {string_to_tokentype(name): style for name, style in (_COLOURS if colour else _MONOCHROME).items()}


def _style_of(palette: dict[Any, str], kind: Any) -> str:
    known = palette.get(kind)
    if known is None:
        known = palette[kind] = _style_of(palette, kind.parent) if kind.parent is not None else ""
    return known


@cache
def _lexer_names() -> dict[str, str]:
    # Pygments' own look-up scans the installed packages' entry points for every unknown name (tens of milliseconds).
    from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]

    return {alias: name for name, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases}


def find_lexer(info: str) -> Lexer | None:
    """The lexer for a fence's info string (`python`, `{.py}`, `ts:main.ts`, `Go title=x`), None if there is none."""
    word = re.split(r"[\s,:]", info.strip().lstrip("{.").lower(), maxsplit=1)[0].rstrip("}")
    return _lexer(word) if word else None


@cache
def _named(name: str) -> Lexer | None:
    from pygments.lexers import find_lexer_class

    kind = find_lexer_class(name)
    return kind() if kind is not None else None


def _lexer(word: str) -> Lexer | None:
    # Only known names reach the cache: what a model writes behind a fence is unbounded.
    name = _lexer_names().get(_ALIASES.get(word, word))
    return None if name in (None, "Text only") else _named(name)


@dataclass(frozen=True, slots=True)
class _State:
    """Where the lexer stands at the start of a line."""

    stack: tuple[str, ...] = ("root",)
    opener: str = ""  # an open token that one regular expression matches as a whole ("/*", "<<EOF\n") ...
    closer: str = ""  # ... what ends it ...
    kind: Any = None  # ... and its token type
    embedded: tuple[Lexer, _State] | None = None  # the language of a <script> or <style> and where it stands


def _unfinished(line: str) -> list[tuple[str, str]]:
    """(opener, closer) of the tokens `line` may leave open; whether it does, the lexer decides."""
    found = [pair for pair in _BRACKETS if line.rfind(pair[0]) > line.rfind(pair[1])]
    if "<<" in line:
        found += [(match[0] + "\n\n", "\n" + match[1]) for match in _HEREDOC.finditer(line)]
    if line.endswith(('@"', "@'")):  # PowerShell
        found.append((line[-2:] + "\n", f"\n{line[-1]}@"))
    found += [(quote, quote) for quote in "'\"`" if line.count(quote) % 2]
    return found


class Highlighter:
    """Colours one code block. `line()` takes its lines in order; `peek()` shows one that is not complete yet.

    Never raises for what a lexer does: where a lexer fails, the rest of the block is shown without colours.
    """

    def __init__(self, info: str, *, colour: bool) -> None:
        self._state = _State()
        self._lexer: Lexer | None = None
        self._palette: dict[Any, str] = {}
        self._stateful = False
        try:
            self._lexer = find_lexer(info)
            if self._lexer is not None:
                from pygments.lexer import ExtendedRegexLexer, RegexLexer

                self._palette = _palette(colour)
                self._stateful = isinstance(self._lexer, RegexLexer) and not isinstance(self._lexer, ExtendedRegexLexer)
        except Exception:  # noqa: BLE001 - a lexer is foreign code; the text matters more than its colours
            self._lexer = None

    def line(self, text: str) -> list[Run]:
        """Colour the next line (no newline in it)."""
        runs, self._state = self._colour(text, self._state)
        return runs

    def peek(self, text: str) -> list[Run]:
        """Colour `text` as the next line without taking it."""
        lexer, stateful = self._lexer, self._stateful
        runs, _ = self._colour(text, self._state)
        self._lexer, self._stateful = lexer, stateful  # what fails on half a line may work on the whole line
        return runs

    def _colour(self, text: str, state: _State) -> tuple[list[Run], _State]:
        if self._lexer is None or len(text) > MAX_LINE:
            return [(text, "")], state
        if self._stateful:
            try:
                return self._advance(text, state, self._lexer)
            except Exception:  # noqa: BLE001 - callbacks that want a context of their own, unbounded recursion, ...
                self._stateful = False
        try:
            tokens = [(kind, value) for _, kind, value in self._lexer.get_tokens_unprocessed(text + "\n")]
            return self._runs(tokens, 0, text), state
        except Exception:  # noqa: BLE001
            self._lexer = None
            return [(text, "")], state

    def _advance(self, text: str, state: _State, lexer: Lexer) -> tuple[list[Run], _State]:
        if state.embedded is not None:
            if _EMBEDDED_END.search(text) is None:
                runs, inner = self._advance(text, state.embedded[1], state.embedded[0])
                return runs, _State(embedded=(state.embedded[0], inner))
            state = _State()
        if state.closer and state.closer.strip() not in text:
            return [(text, _style_of(self._palette, state.kind))], state
        opener = state.opener
        if state.stack[-1] == "heredoc-double" and text.startswith('"@'):
            opener = "\n"  # PowerShell's rule wants the newline before it
        source = opener + text
        tokens, stack = _lex(lexer, source + "\n", state.stack)
        following = _State(stack)
        for start, closer in _unfinished(source):
            longer, after = _lex(lexer, f"{source}\n{closer}\n", state.stack)
            kind = _token_across(longer, len(source), start)
            if kind is not None:
                tokens, following = longer, _State(after, start, closer, kind)
                break
        if lexer.name == "HTML" and (match := _EMBEDDED.search(text)):
            inner_lexer = _named("JavaScript" if match[1].lower() == "script" else "CSS")
            following = _State(embedded=(inner_lexer, _State())) if inner_lexer is not None else following
        return self._runs(tokens, len(opener), text), following

    def _runs(self, tokens: Tokens, skip: int, text: str) -> list[Run]:
        """The tokens without their first `skip` characters, cut at the end of `text`, neighbours of a colour joined."""
        runs: list[Run] = []
        size = 0
        for kind, value in tokens:
            if skip:
                value, skip = value[skip:], max(0, skip - len(value))
            value = value[: len(text) - size]
            if not value:
                continue
            size += len(value)
            style = _style_of(self._palette, kind)
            if runs and (runs[-1][1] == style or value.isspace()):
                runs[-1] = (runs[-1][0] + value, runs[-1][1])
            else:
                runs.append((value, style))
        if "".join(value for value, _ in runs) != text:  # a lexer that drops or changes characters
            return [(text, "")]
        return runs


def _lex(lexer: Lexer, text: str, stack: tuple[str, ...]) -> tuple[Tokens, tuple[str, ...]]:
    from pygments.lexer import ExtendedRegexLexer, LexerContext

    context = LexerContext(text, 0, list(stack))
    # Works on any RegexLexer: only `_tokens` is used, and the context shows the stack where the text ends.
    produced = ExtendedRegexLexer.get_tokens_unprocessed(lexer, context=context)
    tokens = [(kind, value) for _, kind, value in produced]
    after = context.stack
    return tokens, tuple(after if len(after) <= MAX_STACK else [after[0], *after[1 - MAX_STACK :]])


def _token_across(tokens: Tokens, newline: int, opener: str) -> Any:
    """The type of the token that holds the newline at that offset if it is what `opener` opened."""
    start = 0
    for kind, value in tokens:
        if start <= newline < start + len(value):
            head = opener.rstrip("\n")
            begins = value.startswith(head) or value.lstrip("$@").startswith(head)
            begins = begins or (
                head.startswith("<<") and "String" in tuple(kind)
            )  # some lexers make several tokens of it
            return kind if begins and start + len(value) > newline + 1 else None
        start += len(value)
    return None
