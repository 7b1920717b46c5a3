"""No terminal: the answer as text, one JSON object, or JSON lines; banners and progress on stderr.

Each class listens to the bus and writes as things happen.  stdout gets the answer and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from typing import Any, TextIO

from hypercode import events
from hypercode.events import Bus, Event, to_dict
from hypercode.messages import cut_by, well_formed
from hypercode.safety.own_process import silence
from hypercode.ui.clean import Cleaner, clean
from hypercode.ui.render import argument_line, fit, wrapped

__all__ = ["JsonLines", "JsonObject", "Output", "Text", "columns", "laid_out", "schema", "write_line"]

_FAILED = re.compile(r"^\[((?:exit code|timed out|ended by|could not) [^\]\n]*)\]\s*\Z", re.MULTILINE)
"""How `bash` ends its output where a command did not succeed."""
_REFUSALS = ("refused", "needs_confirmation")
"""The kinds of errors of a call of which a notice tells, too."""


def columns(stream: TextIO) -> int:
    """The width in cells of the terminal that a stream writes to; 0 where it is none, or does not know."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


class Output:
    """stdout as a listener sees it.

    `gone` is called once when the reader went away, or when it cannot be written (`failure` says why then); further text
    is dropped.
    """

    def __init__(self, stream: TextIO, gone: Callable[[], None]) -> None:
        self.stream = stream
        self.closed = False
        self.failure = ""
        self.at_line_start = True
        self._gone = gone

    def write(self, text: str) -> None:
        """Write and flush; nothing that UTF-8 or the locale cannot carry stops it."""
        if self.closed or not text:
            return
        try:
            self.stream.write(text)
            self.stream.flush()
        except UnicodeEncodeError:
            encoding = self.stream.encoding or "ascii"
            self.write(text.encode(encoding, "replace").decode(encoding))
        except (OSError, ValueError) as error:
            self.closed = True
            if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                self.failure = f"the answer could not be written: {error.strerror}"
            silence(self.stream)
            self._gone()
        self.at_line_start = text.endswith("\n")


class Text:
    """The answer as plain text while it streams; a line on `err` for each tool, notice and failure.

    What a notice has said, with what would have allowed it, is not said again as the result of the call or the session.
    """

    def __init__(self, bus: Bus, out: Output, err: TextIO) -> None:
        self._out = out
        self._err = err
        self._cleaner = Cleaner()
        self._banner: str | None = None
        self._paragraph = False
        self._cut = ""
        self._noticed = ""
        self._refusals = 0  # said, and not yet the result of their calls
        bus.on(events.TextDelta, self._text)
        bus.on(events.ToolCallStart, self._call)
        bus.on(events.ToolExecutionStart, self._start)
        bus.on(events.ToolExecutionEnd, self._end)
        bus.on(events.TurnEnd, self._turn_end)
        bus.on(events.Notice, self._notice)
        bus.on(events.SessionEnd, self._session_end)

    def _notice(self, event: events.Notice) -> None:
        self._line(f"{event.level}: {clean(event.text)}")
        self._noticed = event.text
        self._refusals += event.text.startswith("Refused")

    def _text(self, event: events.TextDelta) -> None:
        text = self._cleaner.feed(event.text)
        if text and self._paragraph:
            text, self._paragraph = "\n" + text, False
        self._out.write(text)

    def _turn_end(self, event: events.TurnEnd) -> None:
        self._cut = cut_by(event.finish_reason)
        self._out.write(self._cleaner.close())
        self._cleaner = Cleaner()
        if not self._out.at_line_start:
            self._out.write("\n")
            self._paragraph = True
        self._close_banner()

    def _call(self, event: events.ToolCallStart) -> None:
        if self._banner is not None:
            return  # the calls of a reply run in order: this line becomes the first one's
        self._fresh_line()
        self._banner = event.name
        self._write(f"→ {clean(event.name, 'filename')}")

    def _start(self, event: events.ToolExecutionStart) -> None:
        about = fit(argument_line(event.arguments), 120)
        if self._banner == event.name:
            begun = f"→ {clean(event.name, 'filename')}"
            self._write(laid_out(self._err, f"{begun} {about}").removeprefix(begun) + "\n")
            self._banner = None
        else:
            self._line(f"→ {clean(event.name, 'filename')} {about}")

    def _end(self, event: events.ToolExecutionEnd) -> None:
        if event.kind in _REFUSALS and self._refusals:
            self._refusals -= 1
        elif event.is_error:
            first = clean(event.output).split("\n", 1)[0]
            self._line(f"  ✗ {first[:200]}")
        elif event.name == "bash" and (failed := _FAILED.search(event.output)):
            self._line(f"  {failed[1]}")

    def _session_end(self, event: events.SessionEnd) -> None:
        if self._out.closed:
            return
        if event.error is not None:
            if event.error["message"] != self._noticed:
                self._line(f"error: {clean(event.error['message'])}")
        elif event.outcome == "aborted":
            self._line("stopped")
        elif event.outcome == "complete" and self._cut:
            self._line(f"error: the answer was cut by {self._cut}")

    def _line(self, text: str) -> None:
        self._close_banner()
        self._fresh_line()
        write_line(self._err, text)

    def _close_banner(self) -> None:
        if self._banner is not None:
            self._banner = None
            self._write("\n")

    def _fresh_line(self) -> None:
        """Where both streams are the same terminal a banner begins on a line of its own."""
        if not self._out.at_line_start and self._out.stream.isatty() and self._err.isatty():
            self._write("\n")
            self._out.at_line_start = self._paragraph = True

    def _write(self, text: str) -> None:
        _write(self._err, text)


class JsonLines:
    """Each event as one JSON object a line, flushed line by line."""

    def __init__(self, bus: Bus, out: Output) -> None:
        self._out = out
        self._started = time.monotonic()
        bus.on(None, self._event)

    def _event(self, event: Event) -> None:
        entry = to_dict(event)
        line = {"type": entry.pop("type"), "time": round(time.monotonic() - self._started, 6), **entry}
        self._out.write(_json(line) + "\n")


class JsonObject:
    """One object at the end of the session; notices go to `err`."""

    def __init__(self, bus: Bus, out: Output, err: TextIO) -> None:
        self._out = out
        self._err = err
        self._session: events.SessionStart | None = None
        self._text: list[str] = []
        self._noticed = ""
        bus.on(events.SessionStart, self._start)
        bus.on(events.TurnStart, lambda e: self._text.clear())
        bus.on(events.TextDelta, lambda e: self._text.append(e.text))
        bus.on(events.Notice, self._notice)
        bus.on(events.SessionEnd, self._end)

    def _notice(self, event: events.Notice) -> None:
        write_line(self._err, f"{event.level}: {clean(event.text)}")
        self._noticed = event.text

    def _start(self, event: events.SessionStart) -> None:
        self._session = event

    def _end(self, event: events.SessionEnd) -> None:
        session = self._session
        entry = {
            "text": "".join(self._text),
            "outcome": event.outcome,
            "turns": event.turns,
            "usage": event.usage,
            "cost": event.cost,
            "session": session.session if session else None,
            "model": session.model if session else None,
            "refused": event.refused,
            "error": event.error,
        }
        self._out.write(_json(entry) + "\n")
        if event.error is not None and event.error["message"] != self._noticed:
            write_line(self._err, f"error: {clean(event.error['message'])}")


def schema() -> dict[str, Any]:
    """The event schema: for each `type` its fields with their types, and the version."""
    import typing

    kinds = {}
    for kind in typing.get_args(Event):
        kinds[events.event_name(kind)] = {
            "description": " ".join((kind.__doc__ or "").split()),
            "fields": {"type": "str", "time": "float", **{n: str(t) for n, t in kind.__annotations__.items()}},
        }
    return {"version": events.SCHEMA_VERSION, "events": kinds}


def write_line(stream: TextIO, text: str) -> None:
    """Write what a person is told, and flush; a stream that is gone is no reason to stop."""
    _write(stream, laid_out(stream, text) + "\n")


def laid_out(stream: TextIO, text: str) -> str:
    """The text, wrapped between words where a person reads it on a terminal."""
    width = columns(stream)
    return "\n".join(row for line in text.split("\n") for row in wrapped(line, width)) if width else text


def _write(stream: TextIO, text: str) -> None:
    """Write and flush a progress text; a stream that is gone or too narrow for it is no reason to stop."""
    try:
        stream.write(text)
        stream.flush()
    except UnicodeEncodeError:
        stream.write(text.encode("ascii", "replace").decode())
    except (OSError, ValueError):
        pass


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if well_formed(text) == text else json.dumps(value)
