"""The status line fits its row, and what goes on is always in it."""

import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypercode.safety.approval import Mode
from hypercode.ui.render import cells
from hypercode.ui.status import ReplyClock, fitted, status_line
from hypercode.ui.style import Style

PARTS = {
    "model": "SmolLM2-135M-Instruct",
    "mode": "ask",
    "box": "box: bubblewrap",
    "context": "context 5% of 8.2k",
    "tokens": "100 tokens in all",
    "cost": "$0.01",
    "elapsed": "6.1 s",
    "going on": "reading the prompt 12 s",
}


def drawn(parts, width):
    return " · ".join(text for text in fitted(parts, width).values() if text)


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (
            128,
            "SmolLM2-135M-Instruct · ask · box: bubblewrap · context 5% of 8.2k · 100 tokens in all · $0.01 · 6.1 s"
            " · reading the prompt 12 s",
        ),
        (
            127,
            "SmolLM2-135M-Instruct · ask · box: bubblewrap · context 5% of 8.2k · $0.01 · 6.1 s · reading the prompt 12 s",
        ),
        (100, "SmolLM2-135M-Instruct · ask · box: bubblewrap · context 5% of 8.2k · $0.01 · reading the prompt 12 s"),
        (99, "SmolLM2-135M-Instruct · ask · box · context 5% of 8.2k · $0.01 · reading the prompt 12 s"),
        (80, "SmolLM2-135M-Instruct · ask · box · context 5% · $0.01 · reading the prompt 12 s"),
        (79, "SmolLM2-135M-Instruct · ask · box · context 5% · reading the prompt 12 s"),
        (60, "SmolLM2-135M-Instruct · ask · box · reading the prompt 12 s"),
        (50, "…5M-Instruct · ask · box · reading the prompt 12 s"),
        (44, "…5M-Instruct · ask · reading the prompt 12 s"),
        (40, "…nstruct · ask · reading the prompt 12 s"),
        (30, "ask · reading the prompt 12 s"),
        (20, "ask · reading the p…"),
    ],
)
def test_the_least_important_goes_first(width, line):
    assert drawn(PARTS, width) == line


def test_that_there_is_no_box_is_not_shortened_to_box():
    assert drawn(PARTS | {"box": "no box"}, 62) == "SmolLM2-135M-Instruct · ask · no box · reading the prompt 12 s"


@given(st.integers(8, 130), st.fixed_dictionaries({name: st.text("ab日 :", max_size=30) for name in PARTS}))
def test_it_never_takes_more_than_its_row(width, parts):
    assert cells(drawn(parts | {"mode": "ask"}, width)) <= width


@given(st.integers(44, 130), st.sampled_from(["", "waiting for you", "connecting 12 s, the server is silent"]))
def test_mode_and_what_goes_on_stay_whole(width, going_on):
    kept = fitted(PARTS | {"going on": going_on}, width)
    assert (kept["mode"], kept["going on"]) == ("ask", going_on)


class Drawing:
    """What the status line needs of a transcript."""

    style = Style()


def session(*, box=None, said="", turns=1, running=False):
    agent = SimpleNamespace(
        usage={"total_tokens": 100}, cost=0.5, turns=turns, running=running, context=SimpleNamespace(box=box)
    )
    return SimpleNamespace(
        agent=agent,
        config=SimpleNamespace(model="maker/name"),
        gate=SimpleNamespace(mode=Mode.PLAN),
        fit=SimpleNamespace(meter=SimpleNamespace(reading="100 tokens")),
        box_said=said,
    )


def test_the_parts_come_from_the_session():
    app = session(box=SimpleNamespace(kind="bubblewrap"), said="Sandbox: bubblewrap", running=True)
    drawing, clock = Drawing(), ReplyClock()
    line = status_line(app, drawing, clock=clock, going_on="writing 2.0 s", width=85)
    assert line == "maker/name · plan · box: bubblewrap · context 100 tokens · $0.50 · \x1b[1mwriting 2.0 s\x1b[0m"
    whole = status_line(app, drawing, clock=clock, going_on="")
    parts = "maker/name · plan · box: bubblewrap · context 100 tokens · 100 tokens in all · $0.50 · "
    assert whole.removeprefix(parts) == "0.0 s"


@pytest.mark.parametrize(
    ("box", "said", "shown"),
    [
        (None, "", "box …"),
        (None, "Sandbox: off — commands run with all your rights.", "no box"),
        (SimpleNamespace(kind="bubblewrap"), "Sandbox: bubblewrap", "box: bubblewrap"),
    ],
)
def test_no_box_is_said_once_that_is_known(box, said, shown):
    line = status_line(session(box=box, said=said, turns=0), Drawing(), clock=ReplyClock(), going_on="")
    assert line.split(" · ")[2] == shown


def test_the_time_is_that_of_the_reply(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    app, clock, other = session(turns=0), ReplyClock(), ReplyClock()

    def shown(at, clock=clock):
        nonlocal now
        now = at
        last = status_line(app, Drawing(), clock=clock, going_on="").split(" · ")[-1]
        return last if last.endswith(" s") else ""

    assert shown(1000.0) == ""
    assert shown(1042.0) == "", "the session is old, and nothing was asked"
    app.agent.running, app.agent.turns = True, 1
    assert shown(1050.0) == "0.0 s"
    assert shown(1050.5) == "0.5 s"
    app.agent.running = False
    assert shown(1050.7) == "0.7 s"
    assert shown(1174.0) == "0.7 s", "it stays what the reply took"
    assert shown(1174.0, other) == "", "another session has a time of its own"
    app.agent.running = True
    assert (shown(1200.0), shown(1325.0)) == ("0.0 s", "2 min 5 s")
    app.agent.running, app.agent.turns = False, 0
    assert shown(1326.0) == "", "a new conversation has had no reply"
