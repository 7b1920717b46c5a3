"""Names in a workspace that must not appear or change unseen, and what is done about those that do.

A box cannot protect a name that does not exist without leaving a placeholder behind, so such names are noted before a
command and looked for after it.  The note is a file until then: a crash in between is found at the next start.

The same names below the roots are put away where they appear, but for what comes from elsewhere as a whole: what git tracks
there, what has the content of such a file that was there before, what a package or a virtual environment brought.  Of the
first the person is told; so it is with what was there and changed, and with what only steers tools.

Nothing is moved that the command cannot have made: what is mounted read-only in the box, and, after a crash, what was changed
when the command had ended.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypercode.safety.git_index import Tracked
from hypercode.safety.git_named import shared
from hypercode.safety.git_watch import Folder, Repositories
from hypercode.safety.obeyed import (
    Records,
    came_whole,
    comes_with_packages,
    last_change,
    must_not_appear,
    state_of,
)
from hypercode.safety.private_file import put_aside
from hypercode.safety.put_away import make_link, make_text, put_away
from hypercode.safety.watch_note import Note, notes, read_note
from hypercode.safety.watch_seen import Seen, content_of, git_changed_later, inode_of, link_of, moved_later, node_of
from hypercode.safety.watch_words import MOST_NAMED, each, on_one_line, some

__all__ = ["Seen", "Watch", "recover"]

_ROUNDS = 10  # of looking again, since what was put away may have hidden more
_SLACK = 20_000_000  # ns by which the clock of a file system may lag behind
_NOTED = (
    *("missing", "never", "repositories", "links", "nodes", "texts", "fixed"),
    *("roots", "places", "names", "unsure", "beyond", "started", "mounted", "stood", "without"),
)


@dataclass(slots=True)
class Watch:
    """What was there before a command, and what to do about it afterwards.

    `missing` must not appear unless git brings it, `never` at all (`repositories` may, as long as they run nothing), `links`
    must stay the links they were, `nodes` the same file or folder (by device and inode), `texts` keep their content; the box
    itself keeps what is `fixed`, and what is `mounted` as long as the folder around it is the one it was (`stood`).  Below the `roots` git folders may appear and change as long as they run nothing that they did
    not run before (`places`); `walk` finds them.  So it finds what programs obey (`names`, with the state of each; None: not
    looked at); `folders` is where it had been, `seen` what there was before.  `unsure`: there was more than was looked at, so
    only what was changed after `started` (ns) counts as new.  `until` (ns): the command of a program that died ran no longer.
    """

    quarantine: Path
    missing: list[str] = field(default_factory=list)
    never: list[str] = field(default_factory=list)
    repositories: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, tuple[int, int]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    fixed: list[str] = field(default_factory=list)
    mounted: list[str] = field(default_factory=list)
    stood: dict[str, int] = field(default_factory=dict)
    without: list[str] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] | None = None
    unsure: bool = False
    started: int = 0
    folders: Mapping[str, Folder] | None = None
    beyond: bool = False
    unseen: int = 0
    walk: Repositories | None = None
    seen: Seen = field(default_factory=Seen)
    note: Note | None = None
    until: int | None = None
    left: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def add(
        self,
        path: Path,
        *,
        text: bool = False,
        repository: bool = False,
        never: bool = False,
        fixed: bool | None = None,
    ) -> None:
        """Note how a path is now; `text`: its content counts; `repository`: a harmless git folder may be made there; `never`: not
        even git brings it; `fixed`: what is there is mounted, and (True) so are the folders above it up to what cannot be written."""
        name = str(path)
        try:
            status = path.lstat()
        except OSError:
            (self.never if never else self.repositories if repository else self.missing).append(name)
            if repository:
                self.seen.missed.add(name)
            return
        if stat.S_ISLNK(status.st_mode):
            self.links[name] = link_of(name) or ""
            return
        if text and (content := content_of(name)) is not None:
            self.texts[name] = content
        else:
            self.nodes[name] = (status.st_dev, status.st_ino)
        if fixed:
            self.fixed.append(name)
        elif fixed is not None:
            self.mounted.append(name)
            self._stand([os.path.dirname(name)])

    def _stand(self, folders: Iterable[str]) -> None:
        self.stood.update((folder, inode_of(folder) or 0) for folder in folders)

    def below(self, roots: Iterable[Path], walk: Repositories) -> None:
        """Note the git folders below some folders, as the walk finds them now."""
        self.roots, self.walk, self.places = [str(root) for root in roots], walk, walk.look()
        self.beyond, self.without = walk.beyond, walk.without
        self._stand(self.roots)

    def obeyed(self) -> None:
        """Note what programs obey there, as the same walk found it, but for what has been added by itself."""
        if self.walk is not None:
            self.names, self.folders = self._found(self.walk), self.walk.folders
            self.beyond, self.unsure, self.started = self.walk.beyond, self.walk.own_beyond, time.time_ns() - _SLACK
            self.unseen = self.walk.unseen
            self._see(self.walk)

    def start(self) -> None:
        """Write the note.  Raises OSError."""
        self.note = Note(self.quarantine, {name: getattr(self, name) for name in _NOTED})

    def finish(self) -> list[str]:
        """Put away what appeared, bring back what was changed; one sentence for each.  What cannot be looked at is one too."""
        walk = self.walk or Repositories(map(Path, self.roots), without=map(Path, self.without))
        tracked = Tracked(lambda place: place not in self.places and bool(walk.root_of(place)))
        reports = [
            *each(self.missing, lambda name: self._appeared(name, tracked)),
            *each(self.never, self._appeared),
            *each(self.repositories, self._led_away),
            *each(self.links, self._link_changed),
            *each(self.nodes, self._node_changed),
            *each(self.texts, self._text_changed),
            *each(["What lies below"], lambda _: self._planted(walk)),
            *each(["What programs obey"], lambda _: self._obeyed(walk, tracked)),
            *each(["The rest"], lambda _: self._summed_up(walk)),
        ]
        if self.note:
            reports += each([str(self.note.path)], self._forget)
        return [on_one_line(report) for report in reports]

    def _forget(self, _: str) -> Iterable[str]:
        note, self.note = self.note, None
        if note:
            note.remove()
        return ()

    def _added(self) -> set[str]:
        return {*self.missing, *self.never, *self.repositories, *self.links, *self.nodes, *self.texts}

    def _held(self, name: str) -> bool:
        """Whether the box held in place what was there."""
        folder = os.path.dirname(name)
        return name in self.fixed or (name in self.mounted and self.stood.get(folder) == inode_of(folder))

    def _moved_later(self, name: str) -> bool:
        root = min((root for root in self.roots if name.startswith(f"{root}/")), key=len, default="")
        return self.until is not None and bool(root) and moved_later(name, root, self.stood, self.until)

    def _by_command(self, name: str) -> bool:
        """Whether the command can have made or removed what is or was there."""
        if self.until is None:
            return True
        if self._moved_later(name):
            return False
        if os.path.lexists(name):
            return last_change(name) <= self.until
        folder = os.path.dirname(name)
        return not os.path.lexists(folder) or os.lstat(folder).st_ctime_ns <= self.until

    def _all_gone(self, name: str) -> bool:
        """Whether, after a crash, not even the folder is there: nothing can be obeyed in it."""
        return self.until is not None and not os.path.lexists(os.path.dirname(name))

    def _appeared(self, name: str, tracked: Tracked | None = None) -> Iterator[str]:
        if not os.path.lexists(name):
            return
        if tracked is not None and self._was_known(name, state_of(name)):
            return
        yield from self._dealt_with(name, "new", tracked)

    def _dealt_with(self, name: str, how: str, tracked: Tracked | None, *, stays: bool = False) -> Iterator[str]:
        """What comes of something that tools obey: only what the command made goes, and of that not what `stays` or git brings."""
        if not self._by_command(name):
            self.foreign.append(name)
        elif stays or (tracked is not None and tracked.holds(Path(name)) is not False):
            self.left.append(f"{name} ({how})")
        else:
            yield f"{name} appeared; tools would obey it without asking. {put_away(name, self.quarantine)}"

    def _led_away(self, name: str) -> Iterable[str]:
        return self._appeared(name) if os.path.islink(name) or not os.path.isdir(name) else ()

    def _link_changed(self, name: str) -> Iterator[str]:
        target = self.links[name]
        if link_of(name) == target or self._all_gone(name):
            return
        if not self._by_command(name):
            self.foreign.append(name)
            return
        away = put_away(name, self.quarantine) if os.path.lexists(name) else "It was gone."
        made = "The link was made anew." if make_link(name, target) else "The link could NOT be made anew."
        yield f"{name} was no longer the link it was. {away} {made}"

    def _node_changed(self, name: str) -> Iterator[str]:
        device, inode = self.nodes[name]
        node = node_of(name)
        # the number of a device can be another after a start
        same = node is not None and node[1] == inode and (node[0] == device or self.until is not None)
        if same or self._all_gone(name):
            return
        if self._held(name) or not self._by_command(name):
            self.foreign.append(name)
            return
        away = put_away(name, self.quarantine) if node is not None else "Nothing is in its place."
        yield f"{name} is not what it was before; the original was moved or deleted. {away}"

    def _text_changed(self, name: str) -> Iterator[str]:
        text = self.texts[name]
        if content_of(name) == text or self._all_gone(name):
            return
        folder = os.path.dirname(name)
        if self._held(name) or not self._by_command(name):
            self.foreign.append(name)
        elif not os.path.lexists(folder):
            if not any(f.startswith(f"{folder}/") for f in self.texts if f < name):
                yield f"{folder} is gone; git no longer knows the work tree that it was about."
        else:
            away = put_away(name, self.quarantine) if os.path.lexists(name) else "It was gone."
            back = make_text(name, text.encode("utf-8", "surrogateescape"))
            yield f"{name} was changed. {away} The old content {'was' if back else 'could NOT be'} brought back."

    def _planted(self, walk: Repositories) -> Iterable[str]:
        found = walk.look()
        news = [name for name, said in found.items() if said and said != self.places.get(name)]
        reports = list(each(news, lambda name: self._would_run(name, found, walk)))
        self.seen.appeared |= {name for name in found if not self._is_persons(name, found)}
        return reports

    def _would_run(self, name: str, found: Mapping[str, str], walk: Repositories) -> Iterator[str]:
        what = found[name].partition("\n")[0]
        common = shared(name)  # so that all of it comes from there
        known = self._is_persons(common or name, found)
        if common and known and found.get(common) == self.places.get(common):
            return
        if self._moved_later(name) or (self.until is not None and git_changed_later(name, self.until)):
            self.foreign.append(name)
            return
        outside = common and not walk.root_of(common)  # where no command can make a repository know of a tree
        if known or outside:  # one of theirs is not taken away for what was changed elsewhere
            self.left.append(f"{name} (would run {what})")
            return
        bare = not name.endswith("/.git")  # without HEAD such a folder is just a folder
        away = f"HEAD: {put_away(f'{name}/HEAD', self.quarantine)}" if bare else put_away(name, self.quarantine)
        yield f"{name} is a git repository that would run a program ({what}) when git is called there. {away}"

    def _is_persons(self, name: str, found: Mapping[str, str]) -> bool:
        """Whether a repository was there before the command, if only in another place from which it is gone."""
        if name in self.seen.missed:
            return False
        if name in self.nodes or name in self.texts:
            return self._held(name) or name not in self.seen.appeared
        gone = (place for place, said in self.places.items() if said and said == found.get(name) and place not in found)
        return (name in self.places or any(True for _ in gone)) and name not in self.seen.appeared

    def _obeyed(self, walk: Repositories, tracked: Tracked) -> Iterable[str]:
        if self.names is None:
            return ()
        if self.until is not None:
            self._see(walk)
        away, records = list[str](), Records()
        for _ in range(_ROUNDS):
            now = list(self._judged_all(self._found(walk), walk, tracked, records))
            away += now
            if not now:
                break
            walk.look()
        if len(away) > MOST_NAMED:
            rest = f"{len(away) - MOST_NAMED} more such files or folders appeared and were moved to {self.quarantine}."
            return [*away[:MOST_NAMED], rest]
        return away

    def _found(self, walk: Repositories) -> dict[str, str]:
        """What programs obey, but for what has been added by itself; of that it is noted what was there before a command."""
        added = self._added()
        found = walk.obeyed(added)
        if self.names is None:
            self.seen.add((os.path.basename(name), state) for name, state in found.items() if name in added)
        return {name: state for name, state in found.items() if name not in added}

    def _judged_all(
        self, found: Mapping[str, str], walk: Repositories, tracked: Tracked, records: Records
    ) -> Iterator[str]:
        return each(found, lambda name: self._judged(name, found[name], walk, tracked, records))

    def _judged(self, name: str, state: str, walk: Repositories, tracked: Tracked, records: Records) -> Iterator[str]:
        names = self.names or {}
        appeared = name not in names
        if state == names.get(name) or (appeared and self.unsure and last_change(name) < self.started):
            return
        packed = _packed(name, walk)
        if self._was_known(name, state) or (packed and came_whole(name, self.folders or {}, records)):
            return
        stays = packed or walk.filled_by_tools(name) or not appeared or not must_not_appear(name)
        yield from self._dealt_with(name, "new" if appeared else "changed", tracked, stays=stays)

    def _summed_up(self, walk: Repositories) -> Iterator[str]:
        left, foreign = (list(dict.fromkeys(names)) for names in (self.left, self.foreign))
        if left:
            yield (
                f"Tools obey without asking what was made or changed while the command ran: {some(left)}. "
                "It was left in place; look at it before you go on."
            )
        if foreign:
            when = "while the command ran" if self.until is None else "since a command began whose hypercode was ended"
            yield (
                f"Not by the command, which cannot have done it, but {when} this was made, changed or removed: "
                f"{some(foreign)}. It was left as it is."
            )
        if (walk.beyond and not self.beyond) or walk.unseen > self.unseen:
            yield (
                "There are more folders or repositories here now than are looked at after a command: look for a git repository "
                "or settings that you did not make before you call git or open an editor in one."
            )

    def _see(self, walk: Repositories) -> None:
        own = (n for n in self.names or () if not walk.filled_by_tools(n) and not _packed(n, walk))
        self.seen.add((os.path.basename(name), (self.names or {})[name]) for name in own)

    def _was_known(self, name: str, state: str) -> bool:
        """Whether a thing of that name and content was there before, so that it was only copied or moved."""
        base = os.path.basename(name)
        fixed = (place for place in (*self.nodes, *self.links) if os.path.basename(place) == base)
        return (base, state) in self.seen or any(state_of(place) == state for place in fixed)


def recover(quarantine: Path) -> list[str]:
    """Finish the watches of programs that died in between; one sentence for each thing that was found.  Raises nothing."""
    try:
        left = notes(quarantine)
    except OSError as error:
        return [f"What commands left when hypercode was ended cannot be looked for ({error})."]
    reports = each([str(note) for note in left], lambda note: _recovered(Path(note), quarantine))
    return [on_one_line(report) for report in reports]


def _recovered(note: Path, quarantine: Path) -> Iterable[str]:
    try:
        read = read_note(note)
        if read is None:
            return ()
        content, until = read
        watch = Watch(quarantine, until=until, **_noted(content))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):  # torn: the command had not begun yet
        try:
            note.unlink(missing_ok=True)
        except OSError:
            put_aside(note)
        return ()
    try:
        reports = watch.finish()
        note.unlink(missing_ok=True)
    except Exception:
        put_aside(note)
        raise
    return reports


def _noted(content: dict[str, Any]) -> dict[str, Any]:
    """Raises TypeError for what no watch writes."""
    kinds = {name: type(getattr(Watch(Path()), name)) for name in _NOTED if name != "names"}
    for name, value in content.items():
        if not isinstance(value, kinds.get(name, dict | None)):
            raise TypeError(name)
    return content


def _packed(name: str, walk: Repositories) -> bool:
    return comes_with_packages(name, walk.root_of(name))
