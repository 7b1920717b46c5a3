"""Runs one of our programs in this process and notes what it does to the terminal and to the event loop.

    python chat_probe.py LOG hypercode.ui.preview FILE --rate 100
    python chat_probe.py LOG hypercode -m some/model

LOG gets one line a write: [seconds, text].  LOG.loop gets, at the end, the longest delay of a 5 ms heartbeat (`late_ms`) and the
longest single step of the loop in CPU time (`step_ms`), which a busy machine does not change.
"""

import asyncio
import json
import runpy
import sys
import time
from pathlib import Path

from hypercode.ui.screen import Screen
from hypercode.ui.screen_output import TerminalOutput

BEAT = 0.005


def note_writes(log):
    send = TerminalOutput._send
    start = time.monotonic()

    def noted(self, data):
        send(self, data)
        log.write(json.dumps([round(time.monotonic() - start, 4), data.decode("utf-8", "replace")]) + "\n")

    TerminalOutput._send = noted


def note_steps(figures):
    run = asyncio.Handle._run

    def noted(self):
        begin = time.thread_time()
        run(self)
        figures["step_ms"] = max(figures["step_ms"], (time.thread_time() - begin) * 1000)

    asyncio.Handle._run = noted


def note_beats(figures, path):
    serve = Screen.run

    async def beat():
        while True:
            due = time.monotonic() + BEAT
            await asyncio.sleep(BEAT)
            figures["late_ms"] = max(figures["late_ms"], (time.monotonic() - due) * 1000)

    async def noted(self):
        beating = asyncio.create_task(beat())
        try:
            await serve(self)
        finally:
            beating.cancel()
            path.write_text(json.dumps(figures))  # now: the program may end without another chance

    Screen.run = noted


def main():
    path, module, *arguments = sys.argv[1:]
    figures = {"late_ms": 0.0, "step_ms": 0.0}
    sys.argv = [module, *arguments]
    with Path(path).open("w", buffering=1, encoding="utf-8") as log:
        note_writes(log)
        note_steps(figures)
        note_beats(figures, Path(f"{path}.loop"))
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
