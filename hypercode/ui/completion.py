"""Tab: `/commands` at the start of the line, `@files` anywhere."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document

from hypercode.errors import ToolError
from hypercode.tools.ripgrep import ripgrep
from hypercode.ui.clean import clean

__all__ = ["completions", "fuzzy"]

_AT = re.compile(r'(?:^|[\s(\[])@("[^"\n]*|[^\s"]*)$')
_FRESH_FOR = 5.0
_MOST = 50


def fuzzy(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that have the pattern's letters in order, best first: few gaps, late in the path, short."""
    wanted = pattern.lower()
    letters = re.compile(".*?".join(map(re.escape, wanted)))
    scored = []
    for name in names:
        low = name.lower()
        found = letters.search(low)
        if found:
            in_name = wanted in low.rsplit("/", 1)[-1]
            scored.append((not in_name, wanted not in low, found.end() - found.start(), len(name), name))
    return [entry[-1] for entry in sorted(scored)[:_MOST]]


class _Completions(Completer):
    def __init__(self, workspace: Path, commands: Callable[[], dict[str, str]]) -> None:
        self._workspace = workspace
        self._commands = commands
        self._files: list[str] = []
        self._read_at = float("-inf")

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.startswith("/") and " " not in text and "\n" not in text:
            for name, about in self._commands().items():
                if name.startswith(text[1:]):
                    yield Completion("/" + name, -len(text), display_meta=about)
        elif found := _AT.search(text):
            for name in fuzzy(found[1].removeprefix('"'), self._listed()):
                quoted = f'"{name}"' if re.search(r"\s", name) else name
                yield Completion("@" + quoted, -len(found[1]) - 1, display=clean(name, "filename"))

    def _listed(self) -> list[str]:
        """The workspace's files as ripgrep lists them, .gitignore honoured, hidden ones left out; and the folders they are in."""
        if time.monotonic() - self._read_at > _FRESH_FOR:
            try:
                argv = [ripgrep(os.environ), "--files", "--no-messages", "--null"]
                done = subprocess.run(argv, cwd=self._workspace, capture_output=True, timeout=5, check=False)
                files = [n for n in done.stdout.decode("utf-8", "replace").split("\0") if n]
                self._files = [*files, *_folders(files)]
            except (OSError, ToolError, subprocess.TimeoutExpired):
                self._files = []
            self._read_at = time.monotonic()
        return self._files


def _folders(files: Iterable[str]) -> set[str]:
    """Every folder above the files, with a slash at its end."""
    found: set[str] = set()
    for name in files:
        while (name := name.rpartition("/")[0]) and f"{name}/" not in found:
            found.add(f"{name}/")
    return found


def completions(workspace: Path, commands: Callable[[], dict[str, str]]) -> Completer:
    """Completes commands and files in a thread, so that a large tree never holds up a key."""
    return ThreadedCompleter(_Completions(workspace, commands))
