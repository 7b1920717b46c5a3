"""A text file drawn as if it were a reply that streams: for looking at the drawing, and for checking it from outside.

    python -m hypercode.ui.preview FILE [--rate N] [--size K]     through the chat's own transcript and screen
    python -m hypercode.ui.preview FILE --whole                   the same text printed at once

Both leave the same lines in the terminal.  What is typed meanwhile stands in the input line; Enter lists it as waiting; Ctrl-C
stops the reply; Ctrl-D leaves at once.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from hypercode import events
from hypercode.events import Bus
from hypercode.ui import markdown
from hypercode.ui.clean import clean
from hypercode.ui.hooks import Hooks
from hypercode.ui.screen import Screen
from hypercode.ui.screen_output import TerminalOutput
from hypercode.ui.transcript import Transcript

__all__ = ["Preview", "main"]


class Preview:
    """A screen without an agent: the reply comes from a text."""

    def __init__(self) -> None:
        self._bus = Bus()
        self._waiting: list[str] = []
        self._reply: asyncio.Task[None] | None = None
        hooks = Hooks(submit=self._submit, interrupt=self._interrupt, eof=self._leave, take_back=self._take_back)
        self._screen = Screen(hooks)
        self._transcript = Transcript(self._bus, self._screen)

    async def show(self, text: str, *, rate: float, size: int) -> None:
        """Stream the text in deltas of `size` characters (0: one delta), `rate` a second (0: as fast as they are taken)."""
        drawing = asyncio.create_task(self._transcript.draw())
        self._screen.set_status("preview")
        self._reply = asyncio.create_task(self._stream(text, rate, size or len(text) or 1))
        try:
            await self._screen.run()
        finally:
            self._reply.cancel()
            await asyncio.gather(self._reply, return_exceptions=True)
            await self._transcript.settled()
            drawing.cancel()

    async def _stream(self, text: str, rate: float, size: int) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        outcome = "aborted"
        self._bus.emit(events.TurnStart(1))
        try:
            for number, start in enumerate(range(0, len(text), size)):
                # On a fixed beat; without a rate the others get their turn all the same.
                await asyncio.sleep(max(0.0, started + number / rate - loop.time()) if rate else 0)
                self._bus.emit(events.TextDelta(text[start : start + size]))
            outcome = "complete"
        finally:
            self._bus.emit(events.TurnEnd(1, outcome, None, None, None, None, round(loop.time() - started, 3), None))
        await self._transcript.settled()
        self._screen.exit()

    def _submit(self, text: str) -> None:
        self._waiting.append(text)
        self._list_waiting()

    def _take_back(self) -> str | None:
        text = self._waiting.pop() if self._waiting else None
        self._list_waiting()
        return text

    def _list_waiting(self) -> None:
        self._screen.set_queued([f"waiting: {clean(text, 'filename')}" for text in self._waiting])

    def _interrupt(self) -> None:
        if self._reply is not None and not self._reply.done():
            self._transcript.mark_aborted()
            self._reply.add_done_callback(lambda _: self._leave())
            self._reply.cancel()
        else:
            self._leave()

    def _leave(self) -> None:
        self._screen.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and draw; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m hypercode.ui.preview", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", help="UTF-8 text")
    parser.add_argument("--rate", type=float, default=100.0, help="deltas a second; 0: as fast as they are taken")
    parser.add_argument("--size", type=int, default=4, help="characters a delta; 0: the whole text in one")
    parser.add_argument("--whole", action="store_true", help="print the whole text at once instead")
    options = parser.parse_args(arguments)
    if options.rate < 0 or options.size < 0:
        parser.error("--rate and --size are not negative")
    try:
        # Half a surrogate pair cannot be UTF-8, but a server can send one: here it stands as its three bytes.
        text = Path(options.file).read_bytes().decode("utf-8", "surrogatepass")
    except (OSError, UnicodeDecodeError) as error:
        parser.error(f"{options.file} cannot be read as text: {error}")
    if options.whole:
        terminal = TerminalOutput()
        rows = markdown.render(clean(text), terminal.get_size().columns, terminal.colors)
        sys.stdout.write("".join(f"{row}\n" for row in rows))
        return 0
    markdown.warm_up()
    asyncio.run(Preview().show(text, rate=options.rate, size=options.size))
    return 0


if __name__ == "__main__":
    sys.exit(main())
