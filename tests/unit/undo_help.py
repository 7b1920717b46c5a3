"""What the tests of undo share: a workspace, its undo, and calls the way the agent makes them."""

import asyncio
import subprocess
from pathlib import Path

from hypercode.memory.undo import Undo
from hypercode.safety.paths import FileGuard


class Bench:
    """A workspace with a guard whose changes go to undo."""

    def __init__(self, base: Path, session: str = "s", **options):
        self.base = base
        self.ws = base / "ws"
        self.ws.mkdir(exist_ok=True)
        self.options = options
        self.said = []
        self.open(session)

    def open(self, session="s"):
        pending = self.base / "state/pending"
        self.guard = FileGuard(self.ws, home=self.base / "home", own=[self.base / "state"], pending=pending)
        self.undo = Undo(
            self.base / "state/undo",
            self.guard,
            session=session,
            skip=[self.base / "state"],
            pending=pending,
            notify=self.said.append,
            **self.options,
        )
        self.guard.on_change = self.undo.record

    def restart(self, session="s"):
        self.undo.close()
        self.open(session)

    def write(self, path, content):
        """A file tool."""
        data = content.encode() if isinstance(content, str) else content

        async def call():
            async with self.undo.step(f"write {path}", path=path):
                await asyncio.to_thread(self.guard.change, "write", path, lambda body: data)

        asyncio.run(call())

    def command(self, command):
        """A command: a shell line, or a function that does what one would."""

        def run():
            if callable(command):
                command()
            else:
                subprocess.run(["/bin/sh", "-c", command], cwd=self.ws, check=False, stderr=subprocess.DEVNULL)

        async def call():
            async with self.undo.step(str(command), scan=True):
                await asyncio.to_thread(run)

        asyncio.run(call())

    def tick(self):
        """Return when the clock of the file system has moved on: what was written before is older than what comes."""
        probe = self.base / "probe"
        probe.write_text("")
        first = probe.stat().st_ctime_ns
        while probe.stat().st_ctime_ns <= first:
            probe.write_text("")

    def tree(self):
        """Every path below the workspace: the mode, and a file's content or a link's target."""
        found = {}
        for path in sorted(self.ws.rglob("*")):
            status = path.lstat()
            content = None
            if path.is_symlink():
                content = str(path.readlink())
            elif path.is_file():
                content = path.read_bytes()
            found[str(path.relative_to(self.ws))] = (oct(status.st_mode), content)
        return found

    def steps(self):
        return [(step.label, step.undone is None) for step in self.undo.steps()]
