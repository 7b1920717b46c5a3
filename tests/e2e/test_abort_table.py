"""Ctrl-C in every phase of a turn, in a real terminal against a scripted server on a real socket.

Each time: what was shown stays and is marked, the next request is well-formed and accepted, nothing is left running, the
server sees the hang-up, and the prompt can be used again.
"""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from chat_terminal import Chat
from stage import answer, call, chunk, text

PROMISED = 0.1
"""Seconds until the prompt can be used; a busy machine gets five times as much."""

SLEEPERS = "touch mark; sleep 4321 & (sleep 4321 &) ; echo started; sleep 4321"


def stream(*deltas, **more):
    """An answer that never ends."""
    return {**answer(*deltas, close="hang"), **more}


PHASES = {
    # phase: (the first answer, what is on the screen by then, the keys that lead there)
    "connecting": (stream(http=None), "connecting", ""),
    "silent": (stream(), "reading the prompt", ""),
    "text": (stream(text("Once upon "), text("a time")), "Once upon a time", ""),
    "reasoning": (stream({"reasoning": "Let me think."}), "∴ Let me think.", ""),
    "half a tool call": (
        {**stream(text("So: "), call("bash", {}, "c1")), "segments": [{"bytes": "".join(map(chunk, [text("So: "), {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"comm'}}]}]))}]},
        "○ bash",
        "",
    ),
    "running tool": (answer(text("So: "), call("bash", {"command": SLEEPERS}, "c1")), "Run this command?", "y"),
    "approval open": (answer(text("So: "), call("bash", {"command": SLEEPERS}, "c1")), "Run this command?", ""),
    "retry wait": ({**answer(), "http": {"status": 429, "headers": {"Retry-After": "60", "Content-Type": "application/json"}}, "segments": [{"bytes": '{"error": {"message": "slow down"}}'}], "framing": "length"}, "retrying", ""),
}  # fmt: skip

HISTORY = {
    # phase: what the next request has between the first message and the second
    "connecting": [],
    "silent": [],
    "text": [("assistant", "Once upon a time")],
    "reasoning": [],
    "half a tool call": [("assistant", "So: ")],
    "running tool": [("assistant", "So: "), ("tool", "started\n[aborted by user]")],
    "approval open": [("assistant", "So: "), ("tool", "[aborted by user]")],
    "retry wait": [],
}
WAS_SHOWN = ("text", "reasoning", "half a tool call", "running tool", "approval open")
"""The phases in which the model is told that its reply was cut. Thinking alone cannot be sent back, and is only told of."""
ENDS_AT_SERVER = ("connecting", "silent", "text", "reasoning", "half a tool call")


def sleepers():
    """The processes of the running tool."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"sleep\x004321" in (folder / "cmdline").read_bytes():
                found.append((int(folder.name), (folder / "environ").read_bytes()))
        except OSError:
            pass
    return found


def children_of(home):
    """Those of them that this test started."""
    return [pid for pid, environ in sleepers() if str(home).encode() in environ]


@pytest.mark.parametrize("how", ["key", "signal"])
@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c(phase, how, stage, record_property):
    if how == "signal" and phase not in ("text", "running tool"):
        pytest.skip("the signal takes the key's way; two phases show it")
    first, shown, keys = PHASES[phase]
    s = stage(first, answer(text("zzdone")))
    with Chat(s) as chat:
        chat.prompt().say("first")
        chat.wait(lambda: len(s.requests()) == 1)
        chat.shows(shown)
        if keys:
            chat.send(keys)
            chat.wait(lambda: len(children_of(s.home)) >= 3)
        hung_up = len(s.server.ends)
        if how == "key":
            chat.send("\x03")
        else:
            os.kill(chat.process.pid, signal.SIGINT)
        marked = chat.wait("[aborted]")
        chat.send("k")
        usable = marked + chat.wait(
            lambda: chat.draft == "> k" and "box" in chat.status and not re.search("connecting|reading", chat.status)
        )
        record_property("usable_ms", round(usable * 1000))
        print(f"{phase} by {how}: prompt usable after {usable * 1000:.0f} ms")
        assert usable < 5 * PROMISED
        if phase in ENDS_AT_SERVER:
            chat.wait(lambda: len(s.server.ends) > hung_up, 5)
            assert s.server.ends[-1]["client_gone"]
        chat.idle()
        assert children_of(s.home) == []
        chat.say("\x7fsecond")
        chat.shows("zzdone")
        chat.idle()
        lines = chat.lines
        assert chat.leave() == 0
        assert chat.left_clean()

    if phase in ("text", "half a tool call", "running tool", "approval open"):
        words = "Once upon a time" if phase == "text" else "So:"
        assert [line for line in lines if line in (words, "[aborted]")] == [words, "[aborted]"]
    assert sum("[aborted]" in line for line in lines) == 1
    request = s.requests()[-1]["messages"]
    assert request[0]["role"] == "system"
    assert request[1] == {"role": "user", "content": "first"}
    between = [(m["role"], m.get("content")) for m in request[2:-1]]
    assert between == HISTORY[phase]
    assert request[-1]["role"] == "user"
    assert request[-1]["content"].endswith("second")
    assert ("stopped before its end" in request[-1]["content"]) == (phase in WAS_SHOWN)
    calls = [c["id"] for m in request for c in m.get("tool_calls", [])]
    assert calls == [m["tool_call_id"] for m in request if m["role"] == "tool"]
    for one in (c for m in request for c in m.get("tool_calls", [])):
        json.loads(one["function"]["arguments"])


def test_a_second_ctrl_c_leaves_while_the_first_is_still_at_work(stage):
    s = stage(stream(text("Once upon a time")))
    with Chat(s) as chat:
        chat.prompt().say("first")
        chat.shows("Once upon a time")
        started = time.monotonic()
        chat.send("\x03\x03")
        assert chat.finish() == 0
        assert time.monotonic() - started < 5
        assert chat.left_clean()
        assert "[aborted]" in chat.lines
