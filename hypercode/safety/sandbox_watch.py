"""Names in a workspace that must not appear or change unseen, and the quarantine for those that do.

A box cannot protect a name that does not exist without leaving a placeholder behind, so such names are noted before a
command and looked for after it.  The note is a file until then: a crash in between is found at the next start.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from hypercode.safety.git_watch import Repositories
from hypercode.safety.private_file import private_folder
from hypercode.safety.sandbox_policy import harmless_git

__all__ = ["Watch", "recover"]

_NOTE = "watching-*.json"


@dataclass(slots=True)
class Watch:
    """What was there before a command, and what to do about it afterwards.

    `missing` must not appear (`repositories` may, as long as they run nothing), `links` must stay the links they were,
    `nodes` the same file or folder (by inode), `texts` keep their content.  Below the `roots` git folders may appear and
    change as long as they run nothing that they did not run before (`places`); `walk` finds them.
    """

    quarantine: Path
    missing: list[str] = field(default_factory=list)
    repositories: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, tuple[int, int]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    beyond: bool = False
    walk: Repositories | None = None
    note: Path | None = None

    def add(self, path: Path, *, text: bool = False, repository: bool = False) -> None:
        """Note how a path is now; `text`: its content counts; `repository`: a git folder may be made there."""
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
        }
        descriptor = os.open(self.note, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            json.dump(content, file)

    def finish(self) -> list[str]:
        """Put away what appeared, bring back what was changed; one sentence for each."""
        reports = [*self._appeared(), *self._changed(), *self._planted()]
        if self.note:
            self.note.unlink(missing_ok=True)
            self.note = None
        return reports

    def _appeared(self) -> Iterable[str]:
        planted = [name for name in self.repositories if not harmless_git(Path(name))]
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

    def _planted(self) -> Iterable[str]:
        walk = self.walk or Repositories(map(Path, self.roots))
        found, beyond = walk.look(), self.beyond
        if walk.beyond and not beyond:
            yield (
                "There are more folders or repositories here now than are looked at after a command: look for a git repository "
                "that you did not make before you call git in one."
            )
        for name, said in found.items():
            if said and said != self.places.get(name):
                what = said.partition("\n")[0]
                bare = not name.endswith("/.git")  # without HEAD such a folder is just a folder
                away = f"HEAD: {self._put_away(f'{name}/HEAD')}" if bare else self._put_away(name)
                yield f"{name} is a git repository that would run a program ({what}) when git is called there. {away}"

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
