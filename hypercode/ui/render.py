"""Events and values turned into lines: text with colour codes, already clean.  No output happens here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hypercode.capture import NO_OUTPUT
from hypercode.findings import Finding
from hypercode.messages import typed
from hypercode.safety.approval import Answer, Question
from hypercode.ui.clean import clean, strip_sgr
from hypercode.ui.hooks import Choice
from hypercode.ui.style import Style

__all__ = [
    "answered",
    "argument_line",
    "banner",
    "cells",
    "choices",
    "count",
    "diff_lines",
    "duration",
    "error_lines",
    "finding_lines",
    "fit",
    "listed",
    "money",
    "notice_line",
    "question_lines",
    "result_lines",
    "user_lines",
    "wrapped",
]

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_WORD = re.compile(r"( *)([^ ]+)")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_OFF = "\x1b[0m"
_FIRST = ("path", "command", "pattern")
_ABORTED = re.compile(r"\[[^\[\]]*\]$")
_LEVELS = {"info": ("dim",), "warning": ("yellow",), "error": ("red",)}
_MARGIN = 24  # columns before the text of a finding
_NARROW = 50  # columns below which a list of two columns is not one
_FINDINGS = {"ok": ("green",), "warning": ("yellow",), "problem": ("red",)}
FOLDED_LINES = 5
_WHOLE = 1_000_000
_ENDING = re.compile(r"\[(?:exit code|ended by signal|could not be ended)[^\n]*\]\Z")


def fit(text: str, width: int) -> str:
    """The text cut to `width` cells, with an ellipsis where it was cut."""
    width = max(width, 1)
    if len(text) <= 4 * width and cells(text) <= width:
        return text
    head = text[: width - 1]
    while cells(head) > width - 1:
        head = head[:-1]
    return f"{head}…"


def wrapped(line: str, width: int) -> list[str]:
    """A line of our own wrapped between words, the further rows indented and in its colours; a longer word is left to the
    terminal."""
    if cells(strip_sgr(line)) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip(" "))] + "  "
    rows, used, colours = [""], 0, ""
    for gap, word in _WORD.findall(line):
        size = cells(strip_sgr(word))
        if used and used + len(gap) + size > max(width, 1):
            rows[-1] += _OFF if colours else ""
            rows.append(f"{indent}{colours}{word}")
            used = len(indent) + size
        else:
            rows[-1] += gap + word
            used += len(gap) + size
        for code in _COLOUR.findall(word):
            colours = "" if code in ("\x1b[m", _OFF) else colours + code
    return rows


def listed(first: str, text: str, *, margin: int, width: int, style: Style) -> list[str]:
    """An entry of a list in two columns, the second from `margin` on; on a narrow terminal the text has rows of its own."""
    return _beside(style.cyan(first), [text], margin, width, narrow=width < _NARROW)


def _beside(first: str, texts: Sequence[str], margin: int, width: int, *, narrow: bool) -> list[str]:
    """Texts in a column beside `first`, below it where it is `narrow`; wrapped where there is a `width`."""
    rows = [row for text in texts for row in _folded(text, width - (2 if narrow else margin))] if width else texts
    if narrow:
        return [first, *(f"  {row}" for row in rows)]
    room = margin - cells(strip_sgr(first))
    return [f"{first}{'':<{room}}{rows[0]}", *(f"{'':<{margin}}{row}" for row in rows[1:])]


def cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def duration(seconds: float) -> str:
    """A length of time as a person says it: 0.4 s, 12 s, 2 min 5 s."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def count(number: int) -> str:
    """A number of tokens or characters: 812, 12.3k, 1.2M."""
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.1f}k" if number < 999_950 else f"{number / 1_000_000:.1f}M"


def money(cost: float | None) -> str:
    """A billed cost in USD; empty where no provider has said."""
    if cost is None:
        return ""
    return f"${cost:.2f}" if cost >= 0.1 else f"${cost:.4f}"


def argument_line(arguments: Mapping[str, Any]) -> str:
    """The arguments of a call in one line: path, command or pattern first, the rest by name, long values by size."""
    first = [clean(str(arguments[n]), "filename") for n in _FIRST if isinstance(arguments.get(n), str)]
    rest = [f"{clean(n, 'filename')}={_short(v)}" for n, v in arguments.items() if n not in _FIRST]
    return " ".join([*first, *rest])


def _short(value: Any) -> str:
    if isinstance(value, str) and len(value) > 40:
        return f"({count(len(value))} characters)"
    if isinstance(value, list):
        return f"({len(value)})"
    return clean(str(value), "filename")


def banner(
    style: Style,
    name: str,
    arguments: Mapping[str, Any],
    *,
    width: int,
    mark: str = "●",
    after: str = "",
    colour: str = "cyan",
) -> str:
    """One line for a tool call: mark, name, arguments, and what is to be said of its state."""
    name = clean(name, "filename")
    after = f"  {after}" if after else ""
    room = width - len(mark) - len(name) - len(after) - 2
    line = argument_line(arguments)
    about = f" {fit(line, room)}" if line and room > 3 else ""
    return f"{style(mark, colour)} {style(fit(name, width - 2), 'bold')}{about}{style.dim(after)}"


def result_lines(
    style: Style, output: str, *, is_error: bool, kind: str | None, width: int, shown: str = ""
) -> list[str]:
    """The folded result under a banner: how much there is, or what went wrong.

    `shown` is what the tool showed the person; where it is a diff, all of it is drawn.
    """
    if is_error:
        said = clean(output, "tool_output").strip().split("\n")
        # What was printed comes first in an aborted call's result; other errors begin with their kind.
        reason = _ABORTED.search(said[-1]) if kind == "aborted" else None
        last = _last_lines(style, shown, width) if shown and not shown.startswith("--- ") else []
        return [*last, f"  {style.red('✗')} {fit(reason[0] if reason else said[0], width - 4)}"]
    if shown.startswith("--- "):
        return [f"  {line}" for line in diff_lines(style, shown, width - 2)]
    text = clean(output, "tool_output").strip("\n")
    found = _ENDING.search(text)
    ending = [f"  {style.yellow(found[0])}"] if found and found[0] not in shown else []
    if shown:
        return [*_last_lines(style, shown, width), *ending]
    nothing = not text or text == NO_OUTPUT
    return ending or [f"  {style.dim(_lines_said(0 if nothing else len(text.split(chr(10)))))}"]


def _last_lines(style: Style, shown: str, width: int) -> list[str]:
    text = clean(shown, "tool_output").strip("\n")
    lines = text.split("\n") if text else []
    shown_lines = FOLDED_LINES + (len(lines) == FOLDED_LINES + 1)  # saying that one is hidden would take its place
    last = [f"  {style.dim(fit(line.expandtabs(4), width - 2))}" for line in lines[-shown_lines:]]
    hidden = len(lines) - shown_lines
    return [f"  {style.dim(f'… {_lines_said(hidden)} more above, Ctrl-O shows all')}", *last] if hidden > 0 else last


def _lines_said(number: int) -> str:
    return "no output" if not number else f"{number} line{'' if number == 1 else 's'}"


def diff_lines(style: Style, diff: str, width: int, limit: int = 60, *, named: bool = False) -> list[str]:
    """A unified diff with line numbers, additions green and removals red; long ones keep head and tail.

    `named` puts the file's name above it.
    """
    lines: list[str] = []
    old = new = 0
    for raw in clean(diff, "diff").split("\n"):
        if found := _HUNK.match(raw):
            if old or new:
                lines.append(style.dim("     ⋯"))
            old, new = int(found[1]), int(found[2])
        elif raw.startswith(("--- ", "+++ ")) and not old and not new:
            lines += [style.bold(fit(raw[4:], width))] * (named and not lines)
        elif raw.startswith("+"):
            lines.append(style.green(_numbered(new, "+", raw[1:], width)))
            new += 1
        elif raw.startswith("-"):
            lines.append(style.red(_numbered(old, "-", raw[1:], width)))
            old += 1
        elif raw.startswith(" "):
            lines.append(style.dim(_numbered(new, " ", raw[1:], width)))
            old, new = old + 1, new + 1
        elif raw:
            lines.append(style.dim(fit(raw, width)))
    if len(lines) <= limit + 1:
        return lines
    half = limit // 2
    return [*lines[:half], style.dim(f"     ⋯ {len(lines) - 2 * half} more lines ⋯"), *lines[-half:]]


def _numbered(number: int, sign: str, text: str, width: int) -> str:
    text = text.expandtabs(4)
    return fit(f"{number:>4} {sign}{text}", width) if width > 20 else fit(f"{sign}{text}", width)


def notice_line(style: Style, level: str, text: str) -> list[str]:
    """A notice, one line for each line of its text."""
    mark = {"info": "·", "warning": "!", "error": "✗"}.get(level, "·")
    return [style(f"{mark} {line}", *_LEVELS.get(level, ("dim",))) for line in clean(text).split("\n")]


def error_lines(style: Style, error: Mapping[str, Any], *, shown: bool) -> list[str]:
    """Why a turn failed, and the way out."""
    lines = [style.red(f"✗ {line}") for line in clean(str(error.get("message", ""))).split("\n")]
    way_out = "What was shown is kept. /continue goes on, /retry asks again." if shown else "/retry asks again."
    if error.get("kind") in ("auth", "quota"):
        way_out = "Then /retry."
    return [*lines, style.dim(f"  {way_out}")]


def finding_lines(style: Style, finding: Finding, width: int = 0) -> list[str]:
    """What an examination found, in columns, and what to do about it; wrapped where there is a `width`."""
    level = style(f"{finding.level:<8}", *_FINDINGS[finding.level])
    texts = [*clean(finding.text).split("\n"), *([f"to do: {clean(finding.todo, 'filename')}"] if finding.todo else [])]
    return _beside(f"{level} {finding.area}", texts, _MARGIN, width, narrow=0 < width < 2 * _MARGIN)


def _folded(text: str, width: int) -> list[str]:
    import textwrap  # 2 ms that the prompt need not wait for

    return textwrap.wrap(text, max(width, 8), break_on_hyphens=False) or [""]


def user_lines(style: Style, text: str) -> list[str]:
    """What the person said, as it stands above the reply; of a command that stands for a message, the command."""
    first, *rest = clean(typed(text)).rstrip("\n").split("\n")
    return [style(f"> {first}", "bold", "cyan"), *(style(f"  {line}", "cyan") for line in rest)]


def question_lines(style: Style, question: Question) -> list[str]:
    """A question of the gate: what will run, whole, and why it is asked."""
    if question.is_command:
        lines = [style.bold("Run this command?"), *clean(question.subject, "approval").split("\n")]
        size = len(question.subject)
        if size > 500:
            lines.append(style.dim(f"({size} characters, {question.subject.count(chr(10)) + 1} lines)"))
    else:
        lines = [style.bold(f"{question.tool} {clean(question.subject, 'filename')}?")]
        diff = question.detail.startswith("--- ")
        lines += diff_lines(style, question.detail, _WHOLE, limit=400) if diff else _detail(question)
    return [*lines, style.dim(f"({clean(question.reason, 'filename')})")]


def answered(key: str, reason: str) -> Answer:
    """The person's word, by the key of the choice that was taken."""
    return (
        Answer(False, reason=reason) if key == "n" else Answer(True, {"s": "session", "a": "always"}.get(key, "once"))
    )


def choices(question: Question) -> list[Choice]:
    """What can be answered to it."""
    answers = [Choice("y", "yes, once", short="yes once")]
    if question.remembers:
        what = "edits" if question.effect == "edit" else f"{question.rule!r}"
        answers.append(Choice("s", f"yes, {what} for this session", short="session"))
        if question.rule:
            answers.append(Choice("a", f"always: saves the rule {question.rule!r}", short="always"))
    return [*answers, Choice("n", "no (then say why, or Enter)", free_text=True, short="no")]


def _detail(question: Question) -> Sequence[str]:
    return clean(question.detail, "diff").split("\n") if question.detail else []
