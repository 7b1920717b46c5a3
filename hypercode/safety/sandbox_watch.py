"""Names in a workspace that must not appear or change unseen, and the quarantine for those that do.

A box cannot protect a name that does not exist without leaving a placeholder behind, so such names are noted before a
command and looked for after it.  The note is a file until then: a crash in between is found at the next start.

The same names below the roots are put away where they appear, but for what comes from elsewhere as a whole: what git tracks
there, what has the content of such a file that was there before, what a package or a virtual environment brought.  Of the
first the person is told; so it is with what was there and changed, and with what only steers tools.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hypercode.safety.git_index import Tracked
from hypercode.safety.git_watch import Folder, Repositories
from hypercode.safety.obeyed import comes_with_packages, last_change, must_not_appear, recorded, state_of
from hypercode.safety.private_file import private_folder

__all__ = ["Watch", "recover"]

_NOTE = "watching-*.json"
_MOST_TOLD = 10
_SLACK = 20_000_000  # ns by which the clock of a file system may lag behind


@dataclass(slots=True)
class Watch:
    """What was there before a command, and what to do about it afterwards.

    `missing` must not appear (`repositories` may, as long as they run nothing), `links` must stay the links they were,
    `nodes` the same file or folder (by inode), `texts` keep their content.  Below the `roots` git folders may appear and
    change as long as they run nothing that they did not run before (`places`); `walk` finds them.  So it finds what
    programs obey (`names`, with the state of each; None: not looked at); `folders` is where it had been.  `unsure`: there
    was more than was looked at, so only what was changed after `started` (ns) counts as new.
    """

    quarantine: Path
    missing: list[str] = field(default_factory=list)
    repositories: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, tuple[int, int]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] | None = None
    unsure: bool = False
    started: int = 0
    folders: Mapping[str, Folder] | None = None
    beyond: bool = False
    walk: Repositories | None = None
    note: Path | None = None

    def add(self, path: Path, *, text: bool = False, repository: bool = False) -> None:
        """Note how a path is now; `text`: its content counts; `repository`: a harmless git folder may be made there."""
        try:
            status = path.lstat()
        except OSError:
            (self.repositories if repository else self.missing).append(str(path))
            return
        if path.is_symlink():
            self.links[str(path)] = os.readlink(path)
        elif text:
            self.texts[str(path)] = path.read_bytes().decode("utf-8", "surrogateescape")
        else:
            self.nodes[str(path)] = (status.st_dev, status.st_ino)

    def below(self, roots: Iterable[Path], walk: Repositories) -> None:
        """Note the git folders below some folders, as the walk finds them now."""
        self.roots, self.walk, self.places = [str(root) for root in roots], walk, walk.look()
        self.beyond = walk.beyond

    def obeyed(self) -> None:
        """Note what programs obey there, as the same walk found it, but for what has been added by itself."""
        if self.walk is not None:
            self.names, self.folders = self.walk.obeyed(self._added()), self.walk.folders
            self.beyond, self.unsure, self.started = self.walk.beyond, self.walk.own_beyond, time.time_ns() - _SLACK

    def start(self) -> None:
        """Write the note.  Raises OSError."""
        private_folder(self.quarantine)
        self.note = self.quarantine / f"watching-{secrets.token_hex(8)}.json"
        content = {
            "process": os.getpid(),
            "missing": self.missing,
            "repositories": self.repositories,
            "links": self.links,
            "nodes": self.nodes,
            "texts": self.texts,
            "roots": self.roots,
            "places": self.places,
            "names": self.names,
            "unsure": self.unsure,
            "started": self.started,
        }
        descriptor = os.open(self.note, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            json.dump(content, file)

    def finish(self) -> list[str]:
        """Put away what appeared, bring back what was changed; one sentence for each."""
        walk = self.walk or Repositories(map(Path, self.roots))
        reports = [*self._appeared(), *self._changed(), *self._planted(walk), *self._obeyed(walk)]
        if walk.beyond and not self.beyond:
            reports.append(
                "There are more folders or repositories here now than are looked at after a command: look for a git repository "
                "or settings that you did not make before you call git or open an editor in one."
            )
        if self.note:
            self.note.unlink(missing_ok=True)
            self.note = None
        return reports

    def _added(self) -> set[str]:
        return {*self.missing, *self.repositories, *self.links, *self.nodes, *self.texts}

    def _appeared(self) -> Iterable[str]:
        planted = [name for name in self.repositories if os.path.islink(name) or not os.path.isdir(name)]
        for name in [*self.missing, *planted]:
            if os.path.lexists(name):
                yield f"{name} appeared; tools would obey it without asking. {self._put_away(name)}"

    def _changed(self) -> Iterable[str]:
        for name, target in self.links.items():
            if _link(name) != target:
                away = self._put_away(name) if os.path.lexists(name) else "It was gone."
                with contextlib.suppress(OSError):
                    os.symlink(target, name)
                yield f"{name} was no longer the link it was. {away} The link was made anew."
        for name, node in self.nodes.items():
            if _node(name) != tuple(node):
                away = self._put_away(name) if os.path.lexists(name) else "Nothing is in its place."
                yield f"{name} is not what it was before; the original was moved or deleted. {away}"
        for name, text in self.texts.items():
            if _content(name) != text:
                away = self._put_away(name) if os.path.lexists(name) else "It was gone."
                with contextlib.suppress(OSError):
                    Path(name).write_bytes(text.encode("utf-8", "surrogateescape"))
                yield f"{name} was changed. {away} The old content was brought back."

    def _planted(self, walk: Repositories) -> Iterable[str]:
        for name, said in walk.look().items():
            if said and said != self.places.get(name):
                what = said.partition("\n")[0]
                bare = not name.endswith("/.git")  # without HEAD such a folder is just a folder
                away = f"HEAD: {self._put_away(f'{name}/HEAD')}" if bare else self._put_away(name)
                yield f"{name} is a git repository that would run a program ({what}) when git is called there. {away}"

    def _obeyed(self, walk: Repositories) -> Iterable[str]:
        if self.names is None:
            return
        found = walk.obeyed(self._added())
        own = (name for name in self.names if not walk.filled_by_tools(name) and not _packed(name, walk))
        before = {(os.path.basename(name), self.names[name]) for name in own}
        tracked, left, away = Tracked(), list[str](), list[str]()
        for name, state in found.items():
            appeared = name not in self.names
            if state == self.names.get(name) or (appeared and self.unsure and last_change(name) < self.started):
                continue
            packed = _packed(name, walk)
            if self._was_known(name, state, before) or (packed and self._came_whole(name)):
                continue
            kept = packed or walk.filled_by_tools(name) or tracked.holds(Path(name))
            if appeared and must_not_appear(name) and not kept:
                away.append(f"{name} appeared; tools would obey it without asking. {self._put_away(name)}")
            else:
                left.append(f"{name} ({'new' if appeared else 'changed'})")
        yield from away[:_MOST_TOLD]
        if len(away) > _MOST_TOLD:
            yield f"{len(away) - _MOST_TOLD} more such files or folders appeared and were moved to {self.quarantine}."
        if left:
            rest = f" and {len(left) - _MOST_TOLD} more" if len(left) > _MOST_TOLD else ""
            yield (
                "Tools obey without asking what was made or changed while the command ran: "
                f"{', '.join(left[:_MOST_TOLD])}{rest}. It was left in place; look at it before you go on."
            )

    def _was_known(self, name: str, state: str, before: set[tuple[str, str]]) -> bool:
        """Whether a thing of that name and content was there before, so that it was only copied or moved."""
        base = os.path.basename(name)
        fixed = (place for place in (*self.nodes, *self.links) if os.path.basename(place) == base)
        return (base, state) in before or any(state_of(place) == state for place in fixed)

    def _came_whole(self, name: str) -> bool:
        """Whether a package brought it: its folder is new as well, or the package's own list has it as it is."""
        if self.folders is None:
            return False
        folder = os.path.dirname(name)
        known, node = self.folders.get(folder), _node(folder)
        return known is None or node is None or known.inode != node[1] or recorded(name)

    def _put_away(self, name: str) -> str:
        place = self.quarantine / secrets.token_hex(8)
        try:
            place.mkdir(parents=True, mode=0o700)
            shutil.move(name, place / Path(name).name)
        except (OSError, shutil.Error) as error:
            return f"It could NOT be moved away ({error}); look at it before you go on."
        return f"It was moved to {place / Path(name).name}."


def recover(quarantine: Path) -> list[str]:
    """Finish the watches of processes that died in between; one sentence for each thing that was put right."""
    reports: list[str] = []
    for note in sorted(quarantine.glob(_NOTE)):
        try:
            content = json.loads(note.read_text(encoding="ascii"))
            process = int(content.pop("process"))
            watch = Watch(quarantine, note=note, **content)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            note.unlink(missing_ok=True)
            continue
        if process == os.getpid() or not _alive(process):
            reports += watch.finish()
    return reports


def _packed(name: str, walk: Repositories) -> bool:
    return comes_with_packages(name, walk.root_of(name))


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _link(name: str) -> str | None:
    with contextlib.suppress(OSError):
        return os.readlink(name)
    return None


def _node(name: str) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        status = os.lstat(name)
        return status.st_dev, status.st_ino
    return None


def _content(name: str) -> str | None:
    with contextlib.suppress(OSError):
        return Path(name).read_bytes().decode("utf-8", "surrogateescape")
    return None
