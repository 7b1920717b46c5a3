"""`@path` in a message of the person: the file goes with it, through the same gate as a call of the tool `read`.

`@src/app.py`, `@src/app.py:10-40` (lines), `@"a name with blanks.txt"`; a folder gives its names.  An address like
`me@example.com` and a decorator name no file and stay what they are.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypercode.errors import ToolError
from hypercode.messages import Piped, attached
from hypercode.safety.decision import Decision
from hypercode.tools.base import MAX_RESULT_CHARACTERS, cap

if TYPE_CHECKING:
    from hypercode.execution import Approve
    from hypercode.safety.paths import Op
    from hypercode.tools.base import Toolbox, ToolContext

__all__ = ["MAX_FILES", "Attached", "Mention", "attach", "mentions"]

MAX_FILES = 20
"""How many files and folders of one message are attached."""

_RESULTS = 3  # as many results of the longest kind may be attached to one message; for a small model it is one
_LEAST = 200  # characters that are worth to be attached
_NAMED = 3  # of names about which there is one thing to be said so many are listed
_PUNCTUATION = 10  # characters behind a name that may be the sentence's own
_LOOKED_AT = 300  # different names of one message; each may cost some ten looks at the disk
_NAME = 80  # characters of a name in a notice
_SAID = 300  # characters of a notice about one name
_PATH = 4096  # characters; no system has longer paths
_MENTION = re.compile(r'(?:^|(?<=[\s(\[]))@(?:"([^"\n]+)"(\S*)|([^\s"\'`<>|?@][^\s"`<>|?@]*))')
_LINES = re.compile(r"(?::|#L)(\d{1,9})(?:-L?(\d{1,9}))?$")
_WINDOW = re.compile(r"\[lines (\d+-\d+ of \d+)\b")
_PLAIN = re.compile(r"[\w.~+,=%-]*(?:/[\w.~+,=%-]*)*")
_FILE = re.compile(
    r".+\.(?:"
    r"bash|bat|c|cc|cfg|cjs|conf|cpp|cs|css|csv|cxx|dart|diff|env|erl|ex|exs|fish|go|"
    r"gradle|h|hpp|hs|html|ini|ipynb|java|jpeg|jpg|js|json|jsonl|jsx|kt|lock|log|lua|md|"
    r"mjs|ml|mm|patch|pdf|php|pl|png|proto|ps1|py|pyi|r|rb|rs|rst|scala|sh|sql|svelte|"
    r"svg|swift|tex|tf|toml|ts|tsv|tsx|txt|vue|xml|yaml|yml|zig|zsh"
    r")",
    re.IGNORECASE,
)


log = logging.getLogger("hypercode")


@dataclass(frozen=True, slots=True)
class Mention:
    """What a message names with `@`: a path, and the lines that are wanted of it (`last` 0: to the end)."""

    path: str
    first: int = 1
    last: int = 0

    def __str__(self) -> str:
        lines = f"{self.first}-{self.last}" if self.last > self.first else str(self.first)
        return f"{self.path}:{lines}" if self.last else self.path


@dataclass(slots=True)
class Attached:
    """What goes with a message.

    `text` stands behind it, `said` are lines for the person, `refused` counts what was refused for want of a person or a
    permission.
    """

    text: str = ""
    said: list[str] = field(default_factory=list)
    refused: int = 0


def mentions(text: str, workspace: str | os.PathLike[str]) -> tuple[list[Mention], list[str]]:
    """What a message names with `@` and is there, and the names that look like a path but lead nowhere.

    Each file (or part of one) once, however it is spelt.  Relative paths start in the workspace.  Of a message with very many
    names the first are looked at.  It may take long where the disk is slow: for a thread.
    """
    return _search(text, workspace)[:2]


def _search(text: str, workspace: str | os.PathLike[str]) -> tuple[list[Mention], list[str], bool]:
    """What `mentions` finds, and whether it has looked at every name."""
    found: dict[tuple[str, int, int], Mention] = {}
    missing: dict[str, None] = {}
    names: set[str] = set()
    for match in _MENTION.finditer(text):
        name = match[1] + _lines_of(match[2]) if match[1] else match[3]
        if name in names:
            continue
        if len(names) == _LOOKED_AT:
            return list(found.values()), list(missing), False
        names.add(name)
        mention = next((m for m in _readings(name) if _exists(workspace, m.path)), None)
        if mention is not None:
            place = os.path.realpath(_absolute(workspace, mention.path))
            found.setdefault((place, mention.first, mention.last), mention)
        elif (bare := _bare(name)) and (match[1] or _looks_like_a_path(bare)):
            missing[bare] = None
    return list(found.values()), list(missing), True


async def attach(text: str, tools: Toolbox, context: ToolContext, approve: Approve) -> Attached:
    """Read what a message names with `@`, as far as it may be read; where it may only be read with a yes, that is asked for.

    Only a person's own words name files, not what was piped in behind them.  Where the model has no tool `read` nothing is
    attached either.
    """
    done = Attached()
    words = text.words if isinstance(text, Piped) else text
    if "@" not in words or "read" not in tools.names:
        return done
    found, missing, whole = await asyncio.to_thread(_search, words, context.workspace)
    parts: list[tuple[str, str]] = []
    left = context.most if context.most < MAX_RESULT_CHARACTERS else _RESULTS * context.most
    over = [str(mention) for mention in found[MAX_FILES:]]
    for mention in found[:MAX_FILES]:
        if left < _LEAST:
            over.append(str(mention))
            continue
        try:
            content = await _content(mention, tools, context, approve, done, min(left, context.most))
        except Exception:
            log.exception("%s could not be attached", _short(mention.path))
            _say_no(done, mention, "reading it failed inside; the details are in the log")
            continue
        if content is not None:
            left -= len(content)
            parts.append((str(mention), content))
    if over:
        done.said.append(f"not attached: {_listed(over)}: too much for one message; the model can read it")
    if missing:
        done.said.append(f"no file {_listed(missing)}; sent as text")
    if not whole:
        done.said.append(f"only the first {_LOOKED_AT} names with @ were looked for")
    done.text = attached(parts)
    return done


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(_short, names[:_NAMED])) + more


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME // 2]}…{name[-_NAME // 2 :]}"


def _say_no(done: Attached, mention: Mention, why: str) -> None:
    done.said.append(f"not attached: {_short(mention.path)}: {why if len(why) <= _SAID else f'{why[:_SAID]}…'}")


async def _content(
    mention: Mention, tools: Toolbox, context: ToolContext, approve: Approve, done: Attached, most: int
) -> str | None:
    """What the model is shown of a mention; None where nothing of it may be shown or can be."""
    folder = _is_folder(context.workspace, mention.path)
    operation: Op = "ls" if folder else "read"
    verdict = context.files.decide(operation, mention.path)
    if verdict.decision is Decision.DENY:
        done.refused += verdict.kind == "refused"
        _say_no(done, mention, verdict.rule)
        return None
    try:
        tool = tools.find(operation)
        values = tool.validate({"path": mention.path, **({} if folder else _window(mention))})
        refusal = await approve(tool.name, tool.effect, values)
        if refusal is not None:
            done.refused += refusal.for_want
            if not refusal.hint:  # else the gate has told
                _say_no(done, mention, refusal.text)
            return None
        whole = await tool.function(context, **values)
    except ToolError as error:
        _say_no(done, mention, str(error).removeprefix(f"{error.kind}: "))
        return None
    content = cap(whole, context.spill, most)
    size = _names(whole) if folder else _size(whole)
    done.said.append(f"attached {_short(mention.path)}, {size}{'' if content is whole else '; its middle is left out'}")
    return content


def _window(mention: Mention) -> dict[str, Any]:
    if not mention.last:
        return {}
    return {"offset": mention.first, "limit": mention.last - mention.first + 1}


def _size(shown: str) -> str:
    """How much of a file the result of `read` shows, in words."""
    if window := _WINDOW.search(shown[-1000:]):
        return f"lines {window[1]}"
    lines = sum(line[:6].strip().isdigit() for line in shown.split("\n"))
    return "empty" if not lines else "1 line" if lines == 1 else f"{lines} lines"


def _names(shown: str) -> str:
    names = sum(not line.startswith("[") for line in shown.split("\n"))
    return "empty" if not names else "1 name" if names == 1 else f"{names} names"


# -- which words are paths --------------------------------------------------------------


def _readings(name: str) -> Iterator[Mention]:
    """What a word behind `@` may mean, the longest first: it may end with punctuation of the sentence, or with lines."""
    for _ in range(_PUNCTUATION):
        yield Mention(name)
        if lines := _LINES.search(name):
            first = max(int(lines[1]), 1)
            yield Mention(name[: lines.start()], first, max(int(lines[2] or first), first))
        if name[-1].isalnum() or name[-1] in "/_" or len(name) == 1:
            return
        name = name[:-1]


def _bare(name: str) -> str:
    """The shortest reading of a word: without punctuation behind it and without lines."""
    return [mention.path for mention in _readings(name)][-1] if name.strip("./~") else ""


def _lines_of(behind: str) -> str:
    """The lines that stand behind a quoted name, if they do."""
    found = _LINES.match(behind.rstrip(".,;:!?)]"))
    return found[0] if found else ""


def _looks_like_a_path(name: str) -> bool:
    return bool(_PLAIN.fullmatch(name)) and ("/" in name or _FILE.fullmatch(name) is not None)


def _exists(workspace: str | os.PathLike[str], path: str) -> bool:
    try:
        named = len(path) <= _PATH and any(map(str.isalnum, path))
        return named and os.path.exists(_absolute(workspace, path))
    except ValueError:  # half a surrogate pair
        return False


def _is_folder(workspace: str | os.PathLike[str], path: str) -> bool:
    return os.path.isdir(_absolute(workspace, path))


def _absolute(workspace: str | os.PathLike[str], path: str) -> str:
    return os.path.join(workspace, os.path.expanduser(path))
