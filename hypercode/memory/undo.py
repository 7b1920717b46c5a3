"""What tools changed in the files, and the way back.

A step is one tool call.  The file tools report what they replace (`FileGuard.on_change`); around a command the workspace is
compared before and after.  `undo` and `redo` go step by step, touch only files that are as the step left them, keep every
byte they remove, and use neither git nor its index, stash or refs.  Steps outlive the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from hypercode.memory.ignore_rules import parse_ignore
from hypercode.memory.undo_apply import bring_back
from hypercode.memory.undo_restore import Restore
from hypercode.memory.undo_store import Delta, Node, Step, Store
from hypercode.memory.workspace_diff import compare
from hypercode.memory.workspace_scan import DIGEST, SECRET, SLACK, Limits, Scan, scan
from hypercode.safety.facts import looks_binary
from hypercode.safety.paths import Change, FileGuard
from hypercode.safety.pending import Pending
from hypercode.safety.private_file import Unusable, read_private, replace_private

__all__ = ["MOST_STEPS", "STORE_BYTES", "Outcome", "Undo"]

STORE_BYTES = 200_000_000
"""How much is kept of a workspace, over all its sessions."""

MOST_STEPS = 500
"""How many steps of a workspace are kept, over all its sessions."""

_CACHE_LIMIT = 64_000_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an undo or redo did.  `step` is None where there was nothing to do.

    `restored` are paths, `refused` paths with the reason why they were left as they are, `notes` further sentences.
    """

    step: Step | None
    restored: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Open:
    """A step that is going on."""

    label: str
    missing: list[Path] = field(default_factory=list)
    step: Step | None = None


class Undo:
    """The steps of a session in a workspace.

    `store_folder` is a folder of the program's state for all workspaces; `skip` are folders never looked into (the
    program's own).  `notify` is told, on the event loop, what is not covered and not yet `said`.  Where the store cannot be used nothing is
    recorded, and `problem` says so.
    """

    def __init__(
        self,
        store_folder: Path,
        guard: FileGuard,
        *,
        session: str,
        skip: Sequence[Path] = (),
        pending: Path | None = None,
        notify: Callable[[str], object] = lambda text: None,
        limits: Limits | None = None,
        limit: int = STORE_BYTES,
        said: set[str] | None = None,
    ) -> None:
        self._guard = guard
        self._skip = [Path(os.path.realpath(path)) for path in (store_folder, *skip)]
        self._pending = Pending(pending)
        self._notify = notify
        self._limits = limits or Limits(total_bytes=limit // 2)
        self._lock = threading.RLock()
        self._scanning = threading.Lock()
        self._open: ContextVar[_Open | None] = ContextVar("open_step", default=None)
        self._last: Scan | None = None
        self._said: set[str] = set() if said is None else said
        self._steps: list[Step] = []
        self._notes: list[str] = []
        self.problem = ""
        digest = sha256(os.fsencode(guard.workspace)).hexdigest()[:16]
        folder = store_folder / digest
        self._cache = folder / "seen.json"
        try:
            self._store = Store(folder, session, limit=limit)
            self._running = folder / "sessions" / session / "running"
            self._begin()
        except OSError as error:
            self.problem = f"Undo is off: {folder} cannot be used ({error.strerror})."
            self._notes.append(self.problem)

    def _begin(self) -> None:
        self._notes += bring_back(self._store)
        self._steps, lost = self._store.load()
        if lost:
            self._notes.append(f"{lost} step{'s' * (lost != 1)} of this session cannot be read and cannot be undone.")
        with contextlib.suppress(Unusable):
            if (label := read_private(self._running, 10_000)) is not None:
                self._running.unlink(missing_ok=True)
                text = label.decode("utf-8", "replace")
                self._notes.append(f"The last run ended during {text!r}; what that changed cannot be undone.")

    def close(self) -> None:
        """Write what is known of the workspace, and let go of the store."""
        if not self.problem:
            with contextlib.suppress(OSError), self._lock:
                self._save_seen()
                self._store.close()

    # -- recording -----------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def step(
        self, label: str, *, path: str | None = None, scan: bool = False
    ) -> AsyncIterator[Callable[[], bool]]:
        """A step around a tool call.  `path` is what a file tool changes; `scan`: compare the workspace, for a command.

        `label` is kept on disk: hand it over without secrets.  What was changed is recorded however the call ends; what is
        given says then whether anything was.
        """
        opened = _Open(label[:500], self._missing(path) if path else [])
        token = self._open.set(opened)
        before: Scan | None = None
        try:
            if scan and not self.problem:
                before = await asyncio.to_thread(self._look)
                before.started = self._note_running(opened.label)
            yield lambda: opened.step is not None
        finally:
            self._open.reset(token)
            if before is not None:
                await _to_its_end(asyncio.to_thread(self._after, opened, before))
            elif opened.step is not None:
                await _to_its_end(asyncio.to_thread(self._made_folders, opened))
            for note in self.take_notes():
                self._notify(note)

    def take_notes(self) -> list[str]:
        """What is to be said since the last time, such as what is not covered."""
        with self._lock:
            notes, self._notes = [note for note in self._notes if note not in self._said], []
            self._said.update(notes)
        return notes

    def warm_up(self) -> None:
        """Look at the workspace for the first time, so that the first command need not wait; for a thread."""
        if not self.problem:
            self._look()

    def record(self, change: Change) -> None:
        """Take a change of a file tool; for `FileGuard.on_change`.  Never raises: what cannot be kept is said."""
        if self.problem:
            return
        try:
            mode = stat.S_IMODE(os.lstat(change.path).st_mode)
            before = None if change.before is None else self._kept(change.before, mode)
            delta = Delta(str(change.path), before, self._kept(change.after, mode))
            opened = self._open.get() or _Open(f"change {change.path.name}")
            self._add(opened, [delta], [])
        except OSError as error:
            with self._lock:
                self._notes.append(f"The change of {change.path} cannot be undone: {error.strerror}.")

    def _kept(self, data: bytes, mode: int) -> Node:
        return Node("file", mode, len(data), self._store.put(data))

    def _missing(self, path: str) -> list[Path]:
        """The folders on the way to a path that do not exist yet."""
        parents = self._guard.decide("write", path).path.parents
        return [folder for folder in parents if self._root(folder) and not os.path.lexists(folder)]

    def _made_folders(self, opened: _Open) -> None:
        made = [Path(folder) for folder in opened.missing if folder.is_dir()]
        with contextlib.suppress(OSError):
            deltas = [Delta(str(p), None, Node("folder", stat.S_IMODE(p.stat().st_mode))) for p in made]
            self._add(opened, deltas, [])

    def _add(self, opened: _Open, deltas: Sequence[Delta], notes: Sequence[str]) -> None:
        """Add to the step and write it at once.  Raises OSError."""
        with self._lock:
            step = opened.step or Step(self._next(), opened.label, time.time(), ())
            merged = {delta.path: delta for delta in step.deltas}
            for delta in deltas:
                first = merged.get(delta.path)
                merged[delta.path] = replace(delta, before=first.before, came=first.came) if first else delta
            differ = (delta for delta in merged.values() if delta.before != delta.after)
            changed = tuple(sorted(differ, key=lambda delta: delta.path))
            if not changed and opened.step is None:
                return
            step = replace(step, deltas=changed, notes=(*step.notes, *notes))
            self._store.save(step)
            self._put(step)
            opened.step = step

    def _put(self, step: Step) -> None:
        """Give the step its place in the list; what was undone before a new one cannot be done again."""
        if self._steps and step.number <= self._steps[-1].number:
            self._steps = [step if s.number == step.number else s for s in self._steps]
            return
        while self._steps and self._steps[-1].undone is not None:
            self._store.drop(self._steps.pop())
        self._steps.append(step)

    def _next(self) -> int:
        return self._steps[-1].number + 1 if self._steps else 1

    # -- commands ------------------------------------------------------------------

    def _note_running(self, label: str) -> int:
        """Note that a command runs; the moment, by the clock of file systems, in ns."""
        try:
            replace_private(self._running, label.encode("utf-8", "replace"), sync=False)
            return self._running.stat().st_ctime_ns
        except OSError:
            return time.time_ns() - SLACK

    def _look(self) -> Scan:
        with self._scanning:
            known = self._last or self._seen()
            found = self._scan(known)
            fresh, self._last = self._last is None, found
            if found.read:
                with contextlib.suppress(OSError):
                    self._save_seen()
        if fresh:
            with self._lock:
                self._notes += found.notes(without={SECRET})  # of these only changes are told
        return found

    def _after(self, opened: _Open, before: Scan) -> None:
        with self._scanning:
            after = self._scan(before, follow_rules=True)
            self._last = after
        deltas, notes = compare(before, after)
        try:
            self._add(opened, deltas, notes)
            self._running.unlink(missing_ok=True)
            self._trim()
        except OSError as error:
            notes.append(f"What {opened.label!r} changed cannot be undone: {error.strerror}.")
        with self._lock:
            self._notes += notes

    def _scan(self, known: Scan, *, follow_rules: bool = False) -> Scan:
        return scan(
            self._guard.roots,
            known=known,
            keep=self._store.put,
            limits=self._limits,
            skip=self._skip,
            follow_rules=follow_rules,
        )

    def _trim(self) -> None:
        if self._store.written < self._store.limit // 10 and len(self._steps) <= MOST_STEPS:
            return
        with self._lock:
            rows = (self._last or self._seen()).files.values()
            dropped = self._store.trim((row[DIGEST] for row in rows if row[DIGEST]), most=MOST_STEPS)
            self._steps, _ = self._store.load()
            self._save_seen()
            if dropped:
                some = f"{dropped} step{'s' * (dropped != 1)}"
                self._notes.append(
                    f"The oldest {some} cannot be undone any more: {self._store.limit / 1e6:g} MB are kept."
                )

    def _seen(self) -> Scan:
        """What an earlier process knew of the workspace."""
        try:
            content = json.loads(read_private(self._cache, _CACHE_LIMIT) or b"{}")
            self._store.written += int(content.get("written", 0))
            rules = {path: parse_ignore(text) for path, text in content["rules"].items()}
            return Scan(files={path: row for path, row in content["files"].items() if len(row) == 8}, rules=rules)
        except (Unusable, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return Scan()

    def _save_seen(self) -> None:
        if self._last is not None:
            rules = {path: rules.text for path, rules in self._last.rules.items() if rules}
            content = {"written": self._store.written, "rules": rules, "files": self._last.files}
            replace_private(self._cache, json.dumps(content, separators=(",", ":")).encode("ascii"), sync=False)

    # -- back and forth --------------------------------------------------------------

    def steps(self) -> list[Step]:
        """The steps of this session, oldest first; the undone ones stand last."""
        return list(self._steps)

    def undo(self) -> Outcome:
        """Undo the last step that is not undone.  Files that are not as it left them are refused and stay."""
        with self._guard.changing, self._lock:
            step = next((s for s in reversed(self._steps) if s.undone is None), None)
            if step is None:
                return Outcome(None, notes=(self.problem or "There is nothing to undo in this conversation.",))
            return self._go(step, range(len(step.deltas)), back=True)

    def redo(self) -> Outcome:
        """Do again what was undone last."""
        with self._guard.changing, self._lock:
            step = next((s for s in self._steps if s.undone is not None), None)
            if step is None:
                return Outcome(None, notes=(self.problem or "There is nothing to do again.",))
            return self._go(step, step.undone or (), back=False)

    def _go(self, step: Step, places: Sequence[int], *, back: bool) -> Outcome:
        work = Restore(self._root, self._store, self._pending)
        done = work.run({place: step.deltas[place] for place in places}, back=back)
        after = replace(step, undone=tuple(done) if back else None)
        notes = [*work.notes, *(step.notes if back else ())]
        if not places:
            notes.append("Nothing of this step had been undone.")
        self._steps = [after if s.number == step.number else s for s in self._steps]
        try:
            self._store.save(after)
        except OSError as error:
            notes.append(f"That this was done could not be written down ({error.strerror}).")
        restored = tuple(self._shown(step.deltas[place].path) for place in done)
        refused = tuple((self._shown(path), reason) for path, reason in work.refused)
        return Outcome(after, restored, refused, tuple(notes))

    def _root(self, path: Path) -> Path | None:
        held = (root for root in self._guard.roots if path.is_relative_to(root) and path != root)
        return max(held, key=lambda root: len(root.parts), default=None)

    def _shown(self, path: str) -> str:
        return os.path.relpath(path, self._guard.workspace) if self._root(Path(path)) else path

    # -- the difference ----------------------------------------------------------------

    def diff(self, draw: Callable[[bytes, bytes, str], str], *, since: int = 1) -> list[str]:
        """What the steps from number `since` on changed and nobody undid, file by file; `draw` compares two contents."""
        first: dict[str, Node | None] = {}
        last: dict[str, Node | None] = {}
        for step in self._steps:
            if step.undone is None and step.number >= since:
                for delta in step.deltas:
                    first.setdefault(delta.path, delta.before)
                    last[delta.path] = delta.after
        changed = sorted(path for path in first if first[path] != last[path])
        return ["\n".join(self._drawn(path, first[path], last[path], draw)) for path in changed]

    def _drawn(
        self, path: str, before: Node | None, after: Node | None, draw: Callable[[bytes, bytes, str], str]
    ) -> Iterator[str]:
        name = self._shown(path)
        if before is None or after is None or before.kind != after.kind:
            yield f"{name}: {_named(before)} → {_named(after)}"
        elif before.mode != after.mode:
            yield f"{name}: mode {before.mode:o} → {after.mode:o}"
        one, other = self._bytes(before), self._bytes(after)
        if one is None or other is None:
            yield f"{name}: the content is not kept"
        elif one != other:
            binary = looks_binary(one[:8192]) or looks_binary(other[:8192])
            yield f"{name}: binary, {len(one)} → {len(other)} bytes" if binary else draw(one, other, name)

    def _bytes(self, node: Node | None) -> bytes | None:
        if node is None or node.kind != "file":
            return b""
        return self._store.get(node.digest) if node.digest else None


def _named(node: Node | None) -> str:
    return "nothing" if node is None else {"other": "a link or special file"}.get(node.kind, node.kind)


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Await something that must not be left half done: a cancellation comes after it."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError
