"""Which folders' configuration may be read.

A repository can bring settings, commands, skills and instructions.  None of it is read before the person trusts the
folder, and a yes is bound to the folder's resolved path and to the content of everything it brings: when something is
added or changed the person is asked again, once per content.  What was hashed is what is used: the bytes are read once.
Instructions of folders further down are looked for only for the person who is asked, and each is bound by itself.

The person's yes is kept in the program's state folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from hypercode.errors import ConfigError, ToolError
from hypercode.safety import files
from hypercode.safety.path_rules import secret_name
from hypercode.safety.private_file import Unusable, locked, private_folder, put_aside, read_private, replace_private

__all__ = [
    "FOREIGN",
    "INSTRUCTIONS",
    "NESTED",
    "SETTINGS_LIMIT",
    "TEXT_LIMIT",
    "Item",
    "Trust",
    "TrustState",
    "project_file",
]

SETTINGS_LIMIT = 1 << 20
"""Bytes of a project's configuration file."""

TEXT_LIMIT = 1 << 18
"""Bytes of instructions, a command or a skill."""

INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md")
"""The names of a folder's instructions; the first that is there counts."""

NESTED = "nested instructions"
"""The kind of instructions in a folder below the trusted one."""

FOREIGN = frozenset({".git", ".hypercode", ".venv", "node_modules", "site-packages", "vendor", "venv"})
"""Folders whose instructions are not the project's."""

_STORE_LIMIT = 8 << 20
_MOST = 200
_REMEMBERED = 32
_FOLDER = ".hypercode"
_MOST_FOLDERS = 20_000


class TrustState(StrEnum):
    """What the person has said about a folder: nothing, yes to what it brings now, or yes to something else."""

    UNKNOWN = "unknown"
    TRUSTED = "trusted"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a project brings.

    `kind` is settings, command, skill, instructions or nested instructions.  `data` is None where it cannot be used, and `error` says why, to
    follow its name in a sentence.  `known`: the person has said yes to this content at this place before.
    """

    path: Path
    kind: str
    data: bytes | None = field(default=None, repr=False)
    error: str = ""
    known: bool = False

    @property
    def digest(self) -> str:
        """What a yes is bound to."""
        return f"unusable: {self.error}" if self.data is None else sha256(self.data).hexdigest()

    @property
    def text(self) -> str:
        """The whole content, to be shown; it is foreign text.  Bytes that are no UTF-8 are replaced."""
        return (self.data or b"").decode("utf-8", "replace")


class Trust:
    """The person's word on folders, kept in `<state_folder>/trust.json`.

    `own` are the program's own folders: what lies in them is the person's, not the project's.  `notices` says what is
    wrong with the store; then nothing is trusted.
    """

    def __init__(self, state_folder: Path, *, own: Sequence[Path] = ()) -> None:
        self._path = state_folder / "trust.json"
        self._own = tuple(Path(os.path.realpath(path)) for path in own)
        self.notices: list[str] = []

    def of(self, folder: Path) -> TrustState:
        """Whether the folder is trusted with what it brings now.  Of an unknown folder nothing is read."""
        return self._look(folder)[0]

    def accepted(self, folder: Path) -> list[Item]:
        """What a trusted folder brings, as the person accepted it: use these bytes.  Empty where it is not trusted."""
        state, items = self._look(folder)
        return items if state is TrustState.TRUSTED else []

    def present(self, folder: Path) -> list[Path]:
        """What there is to trust, by name alone: nothing is opened.  Where it is empty nobody needs to be asked."""
        return [item.path for item in _found(_real(folder), self._own)]

    def describe(self, folder: Path) -> list[Item]:
        """What trust would let in, with its content, for the person who is asked."""
        real = _real(folder)
        entry = self._entries().get(str(real), {})
        return [*self._read(real, entry), *self._read(real, entry, _nested)]

    def known(self, folder: Path) -> dict[str, list[str]]:
        """The digests that the person has said yes to, by the path of the item."""
        found: dict[str, list[str]] = self._entries().get(str(_real(folder)), {}).get("items", {})
        return found

    def grant(self, folder: Path, shown: Sequence[Item] | None = None) -> None:
        """Keep the person's yes to what was `shown` (from `describe`); without it, to what is there now.

        Raises ConfigError where it cannot be kept.
        """
        real = _real(folder)
        items = self.describe(folder) if shown is None else shown
        with self._changing() as entries:
            entry = entries.pop(str(real), {"accepted": [], "items": {}})
            entry["accepted"] = _with(entry["accepted"], _fingerprint([i for i in items if i.kind != NESTED]))
            for item in items:
                place = str(item.path)
                entry["items"][place] = _with(entry["items"].get(place, []), item.digest)
            entries[str(real)] = entry

    def revoke(self, folder: Path) -> bool:
        """Forget every yes to the folder; whether there was one.  Raises ConfigError."""
        with self._changing() as entries:
            return entries.pop(str(_real(folder)), None) is not None

    def folders(self) -> list[Path]:
        """The folders that have ever been trusted."""
        return [Path(name) for name in self._entries()]

    # -- looking -----------------------------------------------------------------

    def _look(self, folder: Path) -> tuple[TrustState, list[Item]]:
        real = _real(folder)
        entry = self._entries().get(str(real))
        if entry is None:
            return TrustState.UNKNOWN, []
        items = self._read(real, entry)
        same = not items or _fingerprint(items) in entry["accepted"]
        return (TrustState.TRUSTED if same else TrustState.CHANGED), items

    def _read(
        self, real: Path, entry: dict[str, Any], source: Callable[[Path], Iterator[Item]] | None = None
    ) -> list[Item]:
        top = _top(real)
        known = entry.get("items", {})
        items = [item if item.error else _filled(item, top) for item in _found(real, self._own, source)]
        return [replace(item, known=item.digest in known.get(str(item.path), [])) for item in items]

    # -- the store ---------------------------------------------------------------

    def _entries(self) -> dict[str, Any]:
        try:
            return _parsed(read_private(self._path, _STORE_LIMIT))
        except Unusable as problem:
            self._tell(f"{self._path} {problem}: no folder counts as trusted.")
            return {}

    def _tell(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)

    def _changing(self) -> _Changing:
        return _Changing(self._path, self._tell)


class _Changing:
    """The entries of a store while they are changed, under its lock; written back when no exception came."""

    def __init__(self, path: Path, tell: Any) -> None:
        self._path = path
        self._tell = tell

    def __enter__(self) -> dict[str, Any]:
        try:
            private_folder(self._path.parent)
            self._lock = locked(self._path.with_suffix(".lock"))
            self._lock.__enter__()
        except OSError as error:
            raise _not_kept(self._path, error) from None
        try:
            self._entries = self._usable()
        except OSError as error:
            self._lock.__exit__(None, None, None)
            raise _not_kept(self._path, error) from None
        return self._entries

    def _usable(self) -> dict[str, Any]:
        try:
            return _parsed(read_private(self._path, _STORE_LIMIT))
        except Unusable as problem:
            place = put_aside(self._path)
            self._tell(f"{self._path} {problem}; it was moved to {place.name} and a new one was begun.")
            return {}

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                content = {"version": 1, "folders": self._entries}
                replace_private(self._path, json.dumps(content, indent=1).encode("ascii"))
        except OSError as error:
            raise _not_kept(self._path, error) from None
        finally:
            self._lock.__exit__(None, None, None)


def _not_kept(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"cannot be written ({error.strerror}); nothing was changed", file=str(path))


def _parsed(data: bytes | None) -> dict[str, Any]:
    """The entries of a store.  Raises Unusable for anything that this program would not have written."""
    if data is None:
        return {}
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise Unusable("is damaged") from None
    if not isinstance(content, dict) or content.get("version") != 1 or not isinstance(content.get("folders"), dict):
        raise Unusable("is damaged, or from a newer hypercode")
    entries: dict[str, Any] = content["folders"]
    if not all(map(_is_entry, entries.values())):
        raise Unusable("is damaged")
    return entries


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.keys() != {"accepted", "items"} or not isinstance(entry["items"], dict):
        return False
    return all(
        isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        for texts in (entry["accepted"], *entry["items"].values())
    )


def _with(texts: list[str], text: str) -> list[str]:
    return [*(t for t in texts if t != text), text][-_REMEMBERED:]


def _fingerprint(items: Sequence[Item]) -> str:
    return sha256(json.dumps(sorted([str(item.path), item.digest] for item in items)).encode("ascii")).hexdigest()


# -- what a project brings -----------------------------------------------------------


def project_file(folder: Path) -> Path | None:
    """The project's configuration file; None where there is none.  Nothing is opened, and nothing is said about trust."""
    path = _real(folder) / _FOLDER / "config.toml"
    return path if os.path.lexists(path) else None


def _real(folder: Path) -> Path:
    return Path(os.path.realpath(folder))


def _top(real: Path) -> Path:
    """The folder of the repository that holds the project; the project itself where there is none."""
    return next((path for path in (real, *real.parents) if os.path.lexists(path / ".git")), real)


def _found(real: Path, own: Sequence[Path], source: Callable[[Path], Iterator[Item]] | None = None) -> Iterator[Item]:
    for item in (source or _candidates)(real):
        place = Path(os.path.realpath(item.path.parent)) / item.path.name
        if not any(place.is_relative_to(folder) for folder in own):
            yield item


def _candidates(real: Path) -> Iterator[Item]:
    settings = project_file(real)
    if settings is not None:
        yield Item(settings, "settings")
    top = _top(real)
    yield from _listed(real / _FOLDER / "commands", top, "command", lambda name: name if name.endswith(".md") else "")
    yield from _listed(real / _FOLDER / "skills", top, "skill", lambda name: f"{name}/SKILL.md")
    for folder in (real, *real.parents):
        names = [folder / name for name in INSTRUCTIONS if os.path.lexists(folder / name)]
        yield from (Item(path, "instructions") for path in names[:1])
        if folder == top:
            return


def _nested(real: Path) -> Iterator[Item]:
    """Instructions in the folders below, so many as can be shown."""
    yield from islice(_below(real), _MOST)


def _below(real: Path) -> Iterator[Item]:
    for folder, folders, names in islice(os.walk(real), _MOST_FOLDERS):
        folders[:] = sorted(set(folders) - FOREIGN)
        if (here := next((n for n in INSTRUCTIONS if n in (*names, *folders)), None)) and Path(folder) != real:
            yield Item(Path(folder, here), NESTED)


def _listed(folder: Path, top: Path, kind: str, wanted: Any) -> Iterator[Item]:
    if not os.path.lexists(folder):
        return
    if not _real(folder).is_relative_to(top):
        yield Item(folder, kind, error="is a link that leads out of the project")
        return
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, _MOST + 1))
    except OSError as error:
        yield Item(folder, kind, error=f"cannot be read ({error.strerror})")
        return
    if len(names) > _MOST:
        yield Item(folder, kind, error=f"holds more than {_MOST} names; none of them is used")
        return
    paths = [folder / wanted(name) for name in names if wanted(name)]
    yield from (Item(path, kind) for path in paths if os.path.lexists(path))


def _filled(item: Item, top: Path) -> Item:
    """The item with its content, or with the reason why it has none."""
    limit = SETTINGS_LIMIT if item.kind == "settings" else TEXT_LIMIT
    try:
        real = Path(os.path.realpath(item.path))
        if not real.is_relative_to(top):
            return replace(item, error="is a link that leads out of the project")
        if secret_name(real, top):
            return replace(item, error="is a link to a file that usually holds secrets")
        fd = files.open_node(real)
        try:
            if files.real_path(fd) != real:
                return replace(item, error="was moved while it was read")
            return replace(item, data=b"".join(files.chunks(fd, limit)))
        finally:
            os.close(fd)
    except ToolError:
        return replace(item, error=f"is larger than {limit >> 10} KiB")
    except OSError as error:
        return replace(item, error=f"cannot be used: {files.reason(error)}")
