"""Going round in circles: the same call that gives the same result again and again, or calls that arrive cut or damaged.

`LoopGuard` counts; it asks nobody and decides nothing.  A run has one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

__all__ = ["REFUSALS", "TIMES", "LoopGuard", "call_key"]

TIMES = 3
"""How often a call may give the same result; before the next try a person is asked, and a yes lets as many more through."""

REFUSALS = 5
"""After how many replies with such tries that nobody was there to allow, with no progress between them, a run ends; or
without one call between them that could be run."""

_NEW_EACH_TIME = re.compile(
    r"output-[0-9a-f]{8,}\.txt"  # the file that has the whole of a long output
    r"|\b\d+(?:\.\d+)? ?(?:[mµn]?s|sec|secs|seconds?|minutes?)\b"  # how long it took
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?"  # the time of day
    r"|\b0x[0-9a-f]{6,}\b"  # an address
)
"""What differs in two results that say the same."""


def call_key(name: str, arguments: Mapping[str, Any] | str) -> str:
    """What makes two calls the same: the tool and its arguments, however they are ordered or spaced."""
    return json.dumps([name, arguments], sort_keys=True, default=str)


class LoopGuard:
    """How often each call of a run gave which result.

    A first successful change of a file is progress: what is done after it is not the same any more, so that "edit, test,
    edit, test" goes on for as long as the edits are new ones.  A change that is repeated is none, so that undoing and doing
    the same edit is noticed.
    """

    def __init__(self) -> None:
        self._results: dict[str, Counter[bytes]] = {}
        self._granted: Counter[str] = Counter()
        self._changes: set[str] = set()
        self._refused = 0
        self._refused_now = False
        self._unusable = 0
        self._unusable_now = False

    @property
    def hopeless(self) -> bool:
        """Whether the model goes on with what it was refused, or with calls that cannot be run."""
        return max(self._refused, self._unusable) >= REFUSALS

    def stuck(self, call: str) -> int:
        """How often this call (a `call_key`) gave one and the same result; 0 where it may be tried unasked."""
        results = self._results.get(call)
        most = max(results.values()) if results else 0
        return most if most >= TIMES + self._granted[call] else 0

    def let_through(self, call: str) -> None:
        """A person wants it tried again."""
        self._granted[call] = self.stuck(call) or self._granted[call]

    def next_reply(self) -> None:
        """The model has read what became of its calls before, and has sent others."""
        self._refused_now = self._unusable_now = False

    def not_run(self) -> None:
        """A call arrived cut or damaged.  A reply counts once."""
        self._unusable += not self._unusable_now
        self._unusable_now = True

    def refuse(self) -> None:
        """Nobody was there who could let it through.  A reply counts once: of a refusal the model reads only after it."""
        self._refused += not self._refused_now
        self._refused_now = True

    def note(self, call: str, result: str, *, changed: bool = False) -> None:
        """A try and its result, which may be an error; `changed` says that it changed a file."""
        self._unusable = 0
        progress = changed and call not in self._changes
        if progress:
            self._refused = 0
            self._changes.add(call)
            for other in [other for other in self._results if other not in self._changes]:
                del self._results[other]
                self._granted.pop(other, None)
        digest = sha256(_NEW_EACH_TIME.sub("…", result).encode("utf-8", "replace")).digest()
        self._results.setdefault(call, Counter())[digest] += 1
