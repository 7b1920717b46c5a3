"""Put the paths of a step back, or forth again: what may be touched, and in which order."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from pathlib import Path

from hypercode.errors import ToolError
from hypercode.memory.undo_apply import look, make_folder, put_file, remove_file, remove_folder, set_mode
from hypercode.memory.undo_store import Delta, Node, Store
from hypercode.safety import files
from hypercode.safety.pending import Pending

__all__ = ["Restore"]


class Restore:
    """One run over the paths of a step.  `refused` and `notes` say what was left as it is, and why.

    `root_of` names the folder below which a path may be changed, None where it may not.
    """

    def __init__(self, root_of: Callable[[Path], Path | None], store: Store, pending: Pending) -> None:
        self._root_of = root_of
        self._store = store
        self._pending = pending
        self.refused: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self._done: set[int] = set()

    def run(self, deltas: Mapping[int, Delta], *, back: bool) -> list[int]:
        """Go back to what was before the step (or forth, to what it made of it); the places that are so now.

        Files go first, then the folders that are empty then, deepest first; then folders and files come.
        """
        jobs = [_Job(place, Path(d.path), d, back) for place, d in deltas.items()]
        ready = [job for job in jobs if self._attempt(job, self._check)]
        deepest = sorted(ready, key=lambda job: len(job.path.parts), reverse=True)
        for job in deepest:
            if job.here_is("file") and not job.wanted_is("file"):
                self._attempt(job, self._remove_file)
        for job in deepest:
            if job.here_is("folder") and not job.wanted_is("folder"):
                self._attempt(job, self._remove_folder)
        for job in reversed(deepest):
            if job.wanted_is("folder") and not job.failed:
                self._attempt(job, self._make_folder)
        for job in reversed(deepest):
            if job.wanted_is("file") and not job.failed:
                self._attempt(job, self._put_file)
        for job in deepest:
            if job.wanted_is("folder") and not job.failed:
                self._attempt(job, self._folder_mode)
        return sorted(self._done)

    def _attempt(self, job: _Job, act: Callable[[_Job], bool]) -> bool:
        """Do one thing for a path; a failure is its refusal."""
        try:
            going_on = act(job)
        except ToolError as error:
            self._refuse(job, str(error).partition(": ")[2])
        except OSError as error:
            self._refuse(job, files.reason(error))
        else:
            return going_on
        return False

    def _refuse(self, job: _Job, why: str) -> None:
        job.failed = True
        self._done.discard(job.place)
        self.refused.append((str(job.path), why))

    def _check(self, job: _Job) -> bool:
        """Whether there is something to do for the path.  Raises ToolError where it must not be touched."""
        root = self._root_of(job.path)
        if root is None:
            raise ToolError("refused", "it lies outside the folders of this session")
        job.root = root
        here, wanted = job.here, job.wanted
        if wanted is None and job.came:
            raise ToolError("refused", "it is older than the step and may have been moved here, so it is left")
        for node in (here, wanted):
            if node is not None and node.kind == "other":
                raise ToolError("refused", "it is, or was, a link or special file; those are left alone")
            if node is not None and node.why:
                raise ToolError("refused", f"its content is not kept: {node.why}")
        found = look(root, job.path)
        job.found = found
        same_mode = found is None or wanted is None or found.mode == wanted.mode
        if _alike(found, wanted) and (same_mode or not _alike(found, here)):
            if here is None and wanted is not None and not same_mode:
                set_mode(root, job.path, wanted.mode)  # an earlier try was killed just before this
            self._done.add(job.place)
            return False
        if not _alike(found, here):
            raise ToolError("stale", "it was changed by somebody else since")
        if wanted is not None and wanted.kind == "file":
            job.data = self._store.get(wanted.digest)
            if job.data is None:
                raise ToolError("refused", "the kept content is gone or damaged")
        return True

    def _remove_file(self, job: _Job) -> bool:
        assert job.here is not None
        remove_file(job.root, job.path, job.here.digest, self._store)
        if job.wanted is None:
            self._done.add(job.place)
        return True

    def _remove_folder(self, job: _Job) -> bool:
        try:
            remove_folder(job.root, job.path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or job.wanted is not None:
                raise
            self.notes.append(f"The folder {job.path} is not empty and stays.")
            return False
        if job.wanted is None:
            self._done.add(job.place)
        return True

    def _make_folder(self, job: _Job) -> bool:
        if not job.here_is("folder"):
            assert job.wanted is not None
            make_folder(job.root, job.path, job.wanted.mode)
        self._done.add(job.place)
        return True

    def _put_file(self, job: _Job) -> bool:
        assert job.wanted is not None
        assert job.data is not None
        old = job.here if job.here is not None and job.here.kind == "file" else None
        if old is None or old.digest != job.wanted.digest:
            notes = put_file(job.root, job.path, old.digest if old else None, job.data, self._store, self._pending)
            self.notes += [f"{job.path}: {note}" for note in notes]
        if old is None or (job.found is not None and job.found.mode == old.mode):
            set_mode(job.root, job.path, job.wanted.mode)
        elif old.mode != job.wanted.mode:
            self.notes.append(f"{job.path}: somebody else changed its mode since, and it stays.")
        self._done.add(job.place)
        return True

    def _folder_mode(self, job: _Job) -> bool:
        assert job.wanted is not None
        if not job.here_is("folder") or (job.found is not None and job.here and job.found.mode == job.here.mode):
            set_mode(job.root, job.path, job.wanted.mode)
        return True


class _Job:
    """A path with what should lie there now (`here`), what shall lie there (`wanted`) and what was `found`."""

    def __init__(self, place: int, path: Path, delta: Delta, back: bool) -> None:
        self.place = place
        self.path = path
        self.here, self.wanted = (delta.after, delta.before) if back else (delta.before, delta.after)
        self.came = delta.came and back
        self.root = Path("/")
        self.found: Node | None = None
        self.data: bytes | None = None
        self.failed = False

    def here_is(self, kind: str) -> bool:
        return self.here is not None and self.here.kind == kind and not self.failed

    def wanted_is(self, kind: str) -> bool:
        return self.wanted is not None and self.wanted.kind == kind


def _alike(one: Node | None, other: Node | None) -> bool:
    """The same kind with the same content; the mode may differ."""
    if one is None or other is None:
        return one is other
    return (one.kind, one.digest) == (other.kind, other.digest)
