"""The file guard: what a tool may do with a path, and the only door through which tools open and change files.

`decide` answers by name and by what lies there.  Opening decides once more, on what was really opened: `AUTO` passes,
`ASK` and `ALWAYS_ASK` need a grant for exactly that operation and real path, `DENY` never passes.  So forgetting to ask
means refused, never allowed.

For changes `AUTO` means that only the usual question of the mode remains; that one is asked by the gate.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypercode.errors import ToolError
from hypercode.safety import facts, files
from hypercode.safety.bounded_read import KERNEL
from hypercode.safety.decision import Decision
from hypercode.safety.files import Body, Change
from hypercode.safety.path_rules import HIDDEN_GLOBS, Op, Places, judge, never_listed, secret_name
from hypercode.safety.pending import Pending

__all__ = ["MAX_BYTES", "Body", "Change", "FileGuard", "Op", "OpenNode", "PathVerdict", "glob_base"]

MAX_BYTES = 32_000_000
"""The largest file that is held in memory, to be edited or replaced."""

_GRANTED = (Decision.ASK, Decision.ALWAYS_ASK)


@dataclass(frozen=True, slots=True)
class PathVerdict:
    """What may happen with a path.  `path` is where it really leads, `rule` the reason in words.

    `kind` is the error kind where the decision is `DENY`: `refused` where a rule says no; `is_directory`, `not_regular`,
    `too_large`, `binary`, `io`, `bad_arguments` where what lies there makes the operation impossible.
    """

    decision: Decision
    rule: str
    path: Path
    kind: str = "refused"

    def error(self) -> ToolError:
        """The refusal in words for the model."""
        if self.kind == "refused" and self.decision in _GRANTED:
            return ToolError("refused", f"{self.path}: needs a person's yes ({self.rule})")
        return ToolError(self.kind, f"{self.path}: {self.rule}")


@dataclass(frozen=True, slots=True)
class OpenNode:
    """An open file or folder: its descriptor, the real path of that descriptor, and its status."""

    fd: int
    path: Path
    status: os.stat_result


class FileGuard:
    """Guards a workspace and further roots.

    `own` are the program's configuration, state and cache, which tools never touch; `readable` are folders that may
    always be read although they are outside or `own` (kept outputs, skills).  `pending` is a folder of the program's state
    in which half-written files are noted, so that `sweep` finds them after a crash.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        extra_roots: Sequence[Path] = (),
        home: Path,
        own: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        pending: Path | None = None,
    ) -> None:
        self.workspace = _resolved(workspace)
        own_paths = dict.fromkeys([*map(_resolved, own), *(Path(os.path.abspath(path)) for path in own)])
        self._places = Places(
            roots=tuple(dict.fromkeys([self.workspace, *map(_resolved, extra_roots)])),
            home=_resolved(home),
            own=tuple(own_paths),
            readable=tuple(map(_resolved, readable)),
        )
        self._pending = Pending(pending)
        self._once: Counter[tuple[str, Path]] = Counter()
        self._always: set[tuple[str, Path]] = set()
        self.changing = threading.RLock()
        """Held by whoever reads, decides and replaces; so changes of one process never overtake each other."""
        self.on_change: Callable[[Change], None] = lambda change: None
        """Called after each replacement, while `changing` is held."""

    @property
    def roots(self) -> tuple[Path, ...]:
        """The workspace and the further roots, links followed."""
        return self._places.roots

    def add_root(self, path: Path) -> None:
        """Treat one more folder like the workspace."""
        places = self._places
        roots = tuple(dict.fromkeys([*places.roots, _resolved(path)]))
        self._places = Places(roots, places.home, places.own, places.readable)

    def sweep(self) -> list[Path]:
        """Remove what killed processes left half written; to be called once at the start."""
        return self._pending.sweep()

    # decisions

    def decide(self, op: Op, path: str) -> PathVerdict:
        """What may happen with a path as a tool gave it; never raises.  For `glob` the path is a pattern."""
        try:
            target = self._locate(glob_base(path) if op == "glob" else path)
        except ToolError as error:
            return PathVerdict(Decision.DENY, str(error).partition(": ")[2], self.workspace, error.kind)
        except OSError as error:
            return PathVerdict(Decision.DENY, files.reason(error), self.workspace, "io")
        if op in ("write", "edit") and path.endswith("/"):
            return PathVerdict(Decision.DENY, "it names a folder, not a file", target, "is_directory")
        return self._judge(op, target)

    def _judge(self, op: Op, target: Path) -> PathVerdict:
        decision, rule = judge(op, target, self._places)
        if decision is Decision.DENY:
            return PathVerdict(decision, rule, target)
        try:
            fact = facts.look(op, target, self._places, self._size_limit(op), sniff=decision is Decision.AUTO)
        except OSError as error:
            return PathVerdict(Decision.DENY, files.reason(error), target, "io")
        if fact is None or fact.decision.rank <= decision.rank:
            return PathVerdict(decision, rule, target)
        return PathVerdict(fact.decision, fact.rule, target, fact.kind)

    def _size_limit(self, op: Op) -> int:
        return facts.MAX_READ_BYTES if op == "read" else MAX_BYTES

    def _locate(self, path: str) -> Path:
        if not path or not path.strip():
            raise ToolError("bad_arguments", "the path is empty")
        if "\0" in path:
            raise ToolError("bad_arguments", "the path holds a NUL character")
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise ToolError("bad_arguments", "the path holds half a surrogate pair") from None
        if path == "~" or path.startswith("~/"):
            path = f"{self._places.home}/{path[2:]}"
        elif path.startswith("~"):
            path = os.path.expanduser(path)  # another account's home where there is one, else a plain name
        return Path(files.follow(os.path.join(self.workspace, path), forbidden=self._is_magic))

    def _is_magic(self, link: str) -> bool:
        """Whether a link is one of the kernel's (`/proc/self/fd/0`): it leads to a descriptor or process, not to a path."""
        return link.startswith(KERNEL) and self._places.root_of(Path(link)) is None

    # grants

    def grant(self, op: Op, path: Path, *, once: bool = True) -> None:
        """Note a yes for one operation on the real path of a verdict; for the next time only, or for the session."""
        if once:
            self._once[op, path] += 1
        else:
            self._always.add((op, path))

    def _spend(self, op: Op, path: Path) -> bool:
        if self._once[op, path] > 0:
            self._once[op, path] -= 1
            return True
        return (op, path) in self._always

    def _authorised(self, op: Op, path: str, *, peek: bool = False) -> PathVerdict:
        verdict = self.decide(op, path)
        granted = peek or self._spend(op, verdict.path)
        if verdict.decision is Decision.DENY or (verdict.decision in _GRANTED and not granted):
            raise verdict.error()
        return verdict

    # doors

    @contextlib.contextmanager
    def open(self, op: Op, path: str, *, folder: bool = False, peek: bool = False) -> Iterator[OpenNode]:
        """An open regular file, or folder, to read from.

        `peek` is for previews, which show a person what they are asked about: no grant is needed, and what was read must
        not reach the model.

        Raises ToolError `refused`, `missing_file`, `is_directory`, `not_regular`, `too_large`, `binary`, `io`, ….
        """
        verdict = self._authorised(op, path, peek=peek)
        try:
            fd = files.open_node(verdict.path, folder=folder)
        except OSError as error:
            raise files.failure(error, path) from None
        try:
            real = files.real_path(fd)
            if real != verdict.path and self._judge(op, real).decision is not Decision.AUTO:
                raise ToolError("refused", f"{path}: it leads elsewhere since it was looked at; try again")
            yield OpenNode(fd, real, os.fstat(fd))
        except OSError as error:
            raise files.failure(error, path) from None
        finally:
            os.close(fd)

    def read(self, path: str, *, limit: int = MAX_BYTES, op: Op = "read", peek: bool = False) -> Body:
        """A whole file of at most `limit` bytes.  Raises as `open`."""
        with self.open(op, path, peek=peek) as node:
            return Body(node.path, b"".join(files.chunks(node.fd, limit)), node.status)

    def change(self, op: Op, path: str, compute: Callable[[Body | None], bytes]) -> Change:
        """Replace a file's content, all or nothing, by what `compute` makes of the present one (None: there is none).

        The old content is compared once more just before the new one takes its place.  Mode, owner and links are kept; a
        missing file and its folders are made.  Raises ToolError: those of `compute`, `stale`, `not_read`, and as `open`.
        """
        verdict = self._authorised(op, path)
        root = self._places.root_of(verdict.path)
        if root is None or verdict.path == root:
            raise verdict.error()
        private = secret_name(verdict.path, root)
        with self.changing:
            try:
                change = files.replace(
                    root, verdict.path, compute, limit=MAX_BYTES, pending=self._pending, private=private
                )
            except OSError as error:
                raise files.failure(error, path) from None
            self.on_change(change)
        return change

    # searches

    def search_root(self, op: Op, path: str) -> Path:
        """The real folder or file in which a search may start.  Raises as `open`.  For `glob` the path is a pattern."""
        verdict = self._authorised(op, path)
        if not verdict.path.exists():
            raise ToolError("missing_file", f"{path}: there is no such file or folder")
        return verdict.path

    @property
    def hidden_globs(self) -> tuple[str, ...]:
        """Names that searches must never open or print, as globs to exclude, without regard to letter case."""
        own = sorted({f"**/{path.parent.name}/{path.name}" for path in self._places.own})
        return (*HIDDEN_GLOBS, *own)

    def hidden(self, path: Path, root: Path) -> bool:
        """Whether a find of a search that started in `root` must not be shown: secret, or leading out of it by a link."""
        with contextlib.suppress(ToolError, OSError):
            real = Path(files.follow(str(path), forbidden=self._is_magic))
            return any(self._hidden(place, root) for place in {path, real})
        return True

    def withheld(self, paths: Iterable[Path]) -> set[Path]:
        """Which files must not be shown although their names say nothing: other names (hard links) of files with secrets."""
        linked: dict[tuple[int, int], list[Path]] = {}
        for path in paths:
            with contextlib.suppress(OSError):
                status = path.stat()
                if status.st_nlink > 1:
                    linked.setdefault((status.st_dev, status.st_ino), []).append(path)
        secret = facts.secret_nodes(self._places) if linked else set()
        return {path for node, names in linked.items() if node in secret for path in names}

    def _hidden(self, path: Path, root: Path) -> bool:
        decision, _ = judge("read", path, self._places)
        inside = decision is Decision.AUTO or path.is_relative_to(root)
        return decision is Decision.DENY or not inside or never_listed(path, self._places.root_of(path))


def glob_base(pattern: str) -> str:
    """The folder in which a glob pattern starts: its components up to the first with a wildcard.

    Raises ToolError `refused` for a pattern that leaves that folder again.
    """
    parts = pattern.split("/")
    plain = next((i for i, part in enumerate(parts) if re.search(r"[*?\[{]", part)), max(len(parts) - 1, 0))
    rest = "/".join(parts[plain:])
    if ".." in re.split(r"[/{},]", rest) or re.search(r"[{,]\s*[/~]", rest):
        raise ToolError("refused", f"{pattern}: the pattern leaves its folder; give that folder as the path instead")
    return "/".join(parts[:plain]) or ("/" if pattern.startswith("/") else "." if pattern else "")


def _resolved(path: Path) -> Path:
    with contextlib.suppress(OSError):
        return Path(files.follow(os.path.abspath(path), forbidden=lambda link: False))
    return Path(os.path.abspath(path))
