"""`hypercode demo`: a tour of a minute through the chat itself, with a scripted model instead of a real one.

Loop, tools, questions and screen are the chat's; project, configuration and state are in a temporary folder that is removed
at the end.  No setting and no key is read, no connection opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hypercode import events
from hypercode.agent import Result
from hypercode.config import Config, Folders, load
from hypercode.demo_script import EXPLAIN, FILES, INTRODUCTION, SCENES, SHOWN, Scene, reply
from hypercode.errors import ConfigError
from hypercode.llm.fake import ScriptedModel
from hypercode.logfile import open_log
from hypercode.safety.approval import Answer, Question
from hypercode.safety.private_file import lock
from hypercode.ui import commands, render
from hypercode.ui.clean import strip_sgr
from hypercode.ui.hooks import Choice, Hooks
from hypercode.ui.plain import PlainScreen
from hypercode.ui.repl import Chat
from hypercode.ui.style import Style

__all__ = ["Tour", "run", "sweep"]

MODEL = "scripted"
PIECE = 0.03
"""Seconds between two pieces of four characters, as a quick model writes."""
KEY = 0.028
"""Seconds between two typed characters."""
PAUSE = 1.0
"""Seconds between two scenes."""

_NEXT, _ALL, _STOP = Choice("n", "next"), Choice("a", "all the rest"), Choice("q", "stop")
_PREFIX = "hypercode-demo-"
_NEW = 60.0  # seconds
_OWN = ("HYPERCODE_", "OPENROUTER_", "OPENAI_")


def run(environ: Mapping[str, str], *, speed: float | None, instant: bool, step: bool, plain: bool) -> int:
    """Play the tour on the terminal, or as plain text where there is none, and return the exit code.

    `speed` is how many times as fast as usual, `instant` means without any pause (usual where stdout is no terminal), `step`
    asks before each scene.  Raises ConfigError for values that cannot be.
    """
    if speed is not None and not 0 < speed < float("inf"):
        raise ConfigError(f"must be a number above 0, not {speed:g}", key="--speed")
    watched = sys.stdin.isatty() and sys.stdout.isatty()
    if step and not watched:
        raise ConfigError("needs a terminal on which a key can be pressed", key="--step")
    instant = instant or (speed is None and not step and not sys.stdout.isatty())
    pace = 0.0 if instant else 1 / (speed or 1.0)
    with open_log(environ, debug=False):
        try:
            return asyncio.run(_play(environ, pace=pace, step=step, plain=plain, watched=watched))
        except KeyboardInterrupt:
            return 130


async def _play(environ: Mapping[str, str], *, pace: float, step: bool, plain: bool, watched: bool) -> int:
    """The tour in a folder of its own, which is gone afterwards whatever ended it."""
    ended = _ends_in_order()
    try:
        base = Path(tempfile.mkdtemp(prefix=_PREFIX))
        mine = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        lock(mine)
    except OSError as error:
        raise ConfigError(f"no temporary folder can be made ({error.strerror}); TMPDIR says where") from None
    sweep(base.parent)
    try:
        _write_project(base / "tea")
        tour = _tour(base, environ, pace=pace, step=step, plain=plain, watched=watched)
        return await tour.session()
    except asyncio.CancelledError:
        if not ended:
            raise
        return ended[0]
    finally:
        # A thread that still looks at files would make a folder anew.
        await asyncio.get_running_loop().shutdown_default_executor()
        shutil.rmtree(base, ignore_errors=True)
        os.close(mine)


def sweep(parent: Path) -> list[Path]:
    """Remove the folders of tours that were killed: those that no process holds a lock on any more."""
    removed = []
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                status = os.fstat(held)
                new = time.time() - status.st_mtime < _NEW  # its tour may not have got to the lock yet
                if status.st_uid == os.geteuid() and not new and lock(held):
                    shutil.rmtree(folder, ignore_errors=True)
                    removed.append(folder)
            finally:
                os.close(held)
    return removed


def _ends_in_order() -> list[int]:
    """Until the chat has its own handlers a signal cancels the tour; the exit code is in the list then."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    ended: list[int] = []

    def end(code: int) -> None:
        ended.append(code)
        if task is not None:
            task.cancel()

    for number, code in ((signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        loop.add_signal_handler(number, end, code)
    return ended


def _write_project(folder: Path) -> None:
    """The files that the tour is about.  Raises ConfigError where they cannot be written."""
    try:
        folder.mkdir()
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        why = f"the tour's files cannot be written in {folder.parent.parent} ({error.strerror})"
        raise ConfigError(f"{why}; TMPDIR names another place") from None


def _tour(base: Path, environ: Mapping[str, str], *, pace: float, step: bool, plain: bool, watched: bool) -> Tour:
    kept = {name: value for name, value in environ.items() if not name.startswith(_OWN)}
    own = kept | {"HYPERCODE_HOME": str(base / "own")}
    config = load(
        flags={"model": MODEL, "plain": plain or None}, environ={}, user_file=Folders.of(own).config_file, profile=None
    )
    python = "python3" if shutil.which("python3", path=own.get("PATH", os.defpath)) else shlex.quote(sys.executable)
    model = ScriptedModel(functools.partial(reply, python=python), delay=PIECE * pace, model=MODEL)
    return Tour(config, cwd=base / "tea", environ=own, model=model, pace=pace, step=step, watched=watched)


class Tour(Chat):
    """A chat whose messages are typed by the tour.  `pace` is the length of its pauses, 0 for none.

    The input line stays the person's.  Where nobody is there (not `watched`) the tour answers the questions itself.
    """

    def __init__(
        self,
        config: Config,
        *,
        cwd: Path,
        environ: Mapping[str, str],
        model: ScriptedModel,
        pace: float,
        step: bool,
        watched: bool,
    ) -> None:
        self._pace, self._step, self._watched = pace, step, watched
        super().__init__(config, cwd=cwd, environ=environ, complete=model.complete)
        self._stop_after = ""
        self._guiding: asyncio.Task[None] | None = None
        self.bus.on(events.TextDelta, self._stop_reply)

    def plain_screen(self, hooks: Hooks) -> PlainScreen:
        """Without a region the tour's messages are lines like others, and nothing is read where nobody is there."""
        if self._watched:
            return _Lines(hooks)
        nobody = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123
        return _Lines(Hooks(interrupt=lambda: self._end(130)), input=nobody)

    async def session(self, message: str = "", *, resume: str | None = None, pick: bool = False) -> int:
        """Play until the tour is over or the person leaves."""
        self._guiding = asyncio.ensure_future(self._guide())
        self._guiding.add_done_callback(self._report)
        try:
            return await super().session(message, resume=resume, pick=pick)
        finally:
            await _cancelled(self._guiding, *self._asides)

    async def _stop(self) -> None:
        if self._guiding is not None:  # it must not begin another scene meanwhile
            await _cancelled(self._guiding)
        await super()._stop()

    def _farewell(self) -> None:
        self.app.finish(Result(), code=self._code)
        if not self._code:
            self.screen.commit(["", *_what_next(self.transcript.style, self.screen.columns)])

    # -- the scenes --------------------------------------------------------------

    async def _guide(self) -> None:
        try:
            await self.screen.started()
            if self._boxing is not None:
                await asyncio.shield(self._boxing)
            self.transcript.say(INTRODUCTION)
            await self._rest(2 * PAUSE)
            for scene in SCENES:
                if scene.typed != "/undo" or self.app.undo.steps():
                    await self._show(scene)
            await self._rest(PAUSE)
        except EOFError:  # the person left, or was asked and did not want more
            pass
        self.leave()

    async def _show(self, scene: Scene) -> None:
        await self._idle()
        if self._step:
            await self._ask_whether(scene)
        caption = render.wrapped(f"── {scene.caption}", self.screen.columns)
        self.transcript.say([self.transcript.style(line, "bold") for line in caption], kind="scene")
        await self._rest(1.5 * PAUSE)
        await self._type(scene.typed)
        self._stop_after = SHOWN if scene.typed == EXPLAIN else ""
        if scene.typed == "/continue":  # by now the last reply may be one to a message of the person's
            commands.continue_reply(self)
        elif scene.typed.startswith("/"):
            await commands.run(self, scene.typed)
        else:
            self.submit(scene.typed)
        await self._idle()
        await self._rest(PAUSE)

    async def _ask_whether(self, scene: Scene) -> None:
        """Raises EOFError where the person has seen enough."""
        answer = await self.screen.ask([f"Next: {scene.typed}"], [_NEXT, _ALL, _STOP])
        if answer.key == _STOP.key:
            raise EOFError("enough")
        self._step = answer.key == _NEXT.key

    async def _type(self, text: str) -> None:
        """Let the message appear where it will stand; a run that the person began meanwhile comes first."""
        for end in range(1, len(text) + 1) if self._pace and not self.plain else ():
            if self.busy:
                await self._idle()
            line = render.user_lines(self.transcript.style, text[:end])
            self.screen.set_tail(["", *_cut(line, self.screen.columns)])
            await self._rest(KEY)
        await self._idle()
        if self.plain:
            kind = "command" if text.startswith("/") and text[1:] not in commands.SENT else "user"
            self.transcript.say(render.user_lines(self.transcript.style, text), kind=kind)

    def _stop_reply(self, event: events.TextDelta) -> None:
        """Ctrl-C in the middle of a reply, at the same place each time."""
        if self._stop_after:
            self._stop_after = self._stop_after.removeprefix(event.text)
            if not self._stop_after:
                self._interrupted_at = float(
                    "-inf"
                )  # neither with the person's before nor with the next is it a second one
                self.interrupt()
                self._interrupted_at = float("-inf")

    async def _idle(self) -> None:
        """Wait until no reply is written, nothing runs, and everything is drawn."""
        while self._task is not None:
            await asyncio.wait([self._task])
        await self.transcript.settled()

    async def _rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self._pace)

    async def _ask(self, question: Question) -> Answer | None:
        if self._watched:
            return await super()._ask(question)
        lines = render.question_lines(self.transcript.style, question)
        menu = "  ".join(f"[{c.key}] {c.label}" for c in render.choices(question))
        asked = [f"| {part}" for line in lines for part in line.split("\n")]
        self.transcript.say([*asked, menu, "? y"], kind="question")
        return Answer(True)


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _cut(lines: Sequence[str], columns: int) -> list[str]:
    """The lines of one style in rows of the terminal, as it would break them itself."""
    rows = []
    for line in lines:
        bare = strip_sgr(line)
        before, _, after = line.partition(bare)
        rows += [f"{before}{bare[at : at + columns]}{after}" for at in range(0, len(bare), columns)]
    return rows


_WHAT_NEXT = (
    ("export OPENROUTER_API_KEY=sk-or-…", "then `hypercode` in a folder of yours"),
    ("hypercode --local", "a model on this machine, without a key"),
    ("hypercode doctor", "what works on this machine, and what not"),
)


def _what_next(style: Style, columns: int) -> list[str]:
    """How one goes on after the tour."""
    lines = [style.bold("That was the tour; nothing of it is kept. What next?")]
    wide = columns >= 80
    for command, about in _WHAT_NEXT:
        if wide:
            lines.append(f"  {style.cyan(f'{command:<35}')}{about}")
        else:
            lines += [f"  {style.cyan(command)}", *render.wrapped(f"    {about}", columns)]
    return [row for line in lines for row in render.wrapped(line, columns)]


class _Lines(PlainScreen):
    """A plain screen that waits for no message; once its reader is gone the tour ends quietly."""

    def ready(self) -> None:
        """The messages are typed by the tour."""

    def commit(self, lines: Sequence[str], tail: Sequence[str] | None = None) -> None:
        """As its parent; raises nothing."""
        with self._reader():
            super().commit(lines, tail)

    def stream(self, text: str) -> None:
        """As its parent; raises nothing."""
        with self._reader():
            super().stream(text)

    def end_line(self) -> None:
        """As its parent; raises nothing."""
        with self._reader():
            super().end_line()

    @contextlib.contextmanager
    def _reader(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self.exit()
