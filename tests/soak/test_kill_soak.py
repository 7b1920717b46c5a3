"""kill -9 at random moments of real sessions that stream and use tools: nothing that was shown is lost, the next request is
valid, nothing is left running."""

import json
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from kill_stage import HYPERCODE, TOKEN, Model, Place

RULE = 0.25  # seconds that streamed text may wait for its record
SLACK = 0.25  # and what a busy machine adds to a timer
LIVES = 10  # of one session


def text_in(records):
    """Everything the model said that the journal has, in whole or in pieces."""
    pieces = []
    for record in records:
        if record["type"] == "partial":
            pieces.append(record.get("text", ""))
        elif record["type"] == "assistant":
            pieces.append("\n" + (record["message"]["content"] or "") + "\n")
        else:
            pieces.append("\n")
    return "".join(pieces)


def state_of(records):
    """In what state the kill found the session."""
    last = next((r["type"] for r in reversed(records) if r["type"] not in ("notice", "session")), "nothing")
    return {"partial": "streaming", "user": "asked", "result": "between calls", "turn_end": "between turns"}.get(
        last, last
    )


# -- hypercode run -----------------------------------------------------------------


def cut_run(place, task, again, box, seconds):
    """Run a task, kill it `seconds` after its first line; the events it had announced, and the moment on their clock."""
    options = ["-c"] if again else []
    options += ["--mode", "auto", *([] if box else ["--no-sandbox"]), "--output", "jsonl"]
    process = subprocess.Popen(
        [HYPERCODE, "run", *options, task],
        cwd=place.workspace,
        env=place.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        said = []
        errors = threading.Thread(target=lambda: said.append(process.stderr.read()), daemon=True)
        errors.start()
        first = process.stdout.readline()
        begun = time.monotonic()
        if not first:
            errors.join(30)
        assert first, said
        rest = []  # read all the time: a pipe that is full stops the program, its clocks too
        output = threading.Thread(target=lambda: rest.append(process.stdout.read()), daemon=True)
        output.start()
        time.sleep(seconds)
        process.kill()
        killed = time.monotonic()
        output.join(30)
        errors.join(30)
    lines = (first + rest[0]).split(b"\n")[:-1]
    announced = [json.loads(line) for line in lines]
    return announced, announced[0]["time"] + killed - begun, process.wait()


def check_announced(announced, killed, records):
    """Everything that was on stdout is in the journal."""
    users = [r["message"]["content"] for r in records if r["type"] == "user"]
    replies = [r["message"] for r in records if r["type"] == "assistant"]
    intents = {r["call_id"]: r["arguments"] for r in records if r["type"] == "intent"}
    asked_for = {
        call["id"]: json.loads(call["function"]["arguments"]) for m in replies for call in m.get("tool_calls", [])
    }
    results = {r["message"]["tool_call_id"]: r["message"]["content"] for r in records if r["type"] == "result"}
    turns = [(r["turn"], r["outcome"]) for r in records if r["type"] == "turn_end"]
    said = ""
    for event in announced:
        match event["type"]:
            case "user_message":
                assert any(text.endswith(event["text"]) for text in users)
            case "assistant_message":
                assert event["message"] in replies
            case "tool_execution_start":
                assert asked_for[event["call_id"]] == event["arguments"]  # what it does is on disk before it does it
            case "tool_execution_end":
                assert intents[event["call_id"]] == asked_for[event["call_id"]]
                assert results[event["call_id"]] == event["output"]
            case "turn_end":
                assert (event["turn"], event["outcome"]) in turns
            case "turn_start":
                said = ""
            case "text_delta" if event["time"] <= killed - RULE - SLACK:
                said += event["text"]
    assert said in text_in(records)


def cut_runs(folder, count, seed):
    rng = random.Random(seed)
    states, slowest, tasks = Counter(), 0.0, []
    for session in range(0, count, LIVES):
        here = folder / f"s{session}"
        with Model(f"{seed}-{session}") as model:
            place = Place(here, model)
            box = bool(session // LIVES % 2)
            tasks = []
            for life in range(min(LIVES, count - session)):
                known = place.said()
                task = f"task {session}-{life}"
                announced, killed, code = cut_run(place, task, known, box, rng.random() * rng.choice([0.1, 1.0, 2.5]))
                slowest = max(slowest, place.quiet_after())
                if not place.said():
                    assert [e["type"] for e in announced if e["type"] != "notice"] == ["session_start"]
                    states["before the first record"] += 1
                    continue
                records = place.journal()
                check_announced(announced, killed, records)
                states["over" if code == 0 else state_of(records)] += 1
                if {"type": "user_message", "text": task} in [
                    {k: e.get(k) for k in ("type", "text")} for e in announced
                ]:
                    tasks.append(task)
            done = subprocess.run(
                [HYPERCODE, "run", *(["-c"] if tasks else []), "--mode", "auto", "--no-sandbox", "the last task"],
                cwd=place.workspace,
                env=place.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr
            place.quiet_after()
            assert model.wrong == []
            heard = "\n".join(m["content"] for m in model.requests[-1] if m["role"] == "user")
            assert [task for task in tasks if task not in heard] == []
    return states, slowest


# -- the chat ----------------------------------------------------------------------


def cut_chat(place, rng, again, box, task):
    """Talk in a chat and kill it; what stood on the screen half a second before, and what stood there last."""
    from chat_terminal import Chat

    options = [*(["-c"] if again else []), "--mode", "auto", *([] if box else ["--no-sandbox"])]
    with Chat(place, *options, columns=100, rows=30) as chat:
        chat.wait(lambda: any("drop it" in line or line.startswith(">") for line in chat.visible[-4:]))
        if any("drop it" in line for line in chat.visible):
            answer = rng.choice("cdl")
            chat.send(answer)
            chat.wait(lambda: not any("drop it" in line for line in chat.visible))
            if answer == "d":
                chat.wait(lambda: chat.draft not in (">", ""))
                chat.send("\r")
            elif answer == "l":
                chat.say(task)
        else:
            chat.say(task)
        until(chat, rng.random() * rng.choice([0.3, 1.0, 2.5]))
        before = list(chat.lines)
        until(chat, RULE + SLACK)
        last = list(chat.lines)
        chat.process.kill()
        chat.process.wait()
    return before, last


def until(chat, seconds):
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        chat.pump(min(left, 0.02))


def check_screen(before, last, records):
    text = text_in(records)
    assert [token for token in TOKEN.findall("\n".join(before)) if token not in text] == []
    users = [r["message"]["content"] for r in records if r["type"] == "user"]
    drawn = [line[2:] for line in last if line.startswith("> task")]
    # The line above the status line is being written; what waits is marked and not sent.
    assert [said for said in drawn[:-1] if not any(u.endswith(said) for u in users)] == []
    results = "\n".join(r["message"]["content"] for r in records if r["type"] == "result")
    over = [number for number, line in enumerate(last) if re.match(r"● bash", line)]
    shown = [out for n in over for line in last[n + 1 : n + 3] for out in re.findall(r"^  (out-\S+)", line)]
    assert [out for out in shown if out not in results] == []
    return len(TOKEN.findall("\n".join(before)))


def cut_chats(folder, count, seed):
    rng = random.Random(seed)
    states, tokens, slowest = Counter(), 0, 0.0
    for session in range(0, count, LIVES):
        with Model(f"{seed}-{session}") as model:
            place = Place(folder / f"c{session}", model)
            for life in range(min(LIVES, count - session)):
                known = place.said()
                before, last = cut_chat(place, rng, known, bool(session // LIVES % 2), f"task {session}-{life}")
                slowest = max(slowest, place.quiet_after())
                if not place.said():
                    assert not any(TOKEN.search(line) for line in last)
                    states["before the first record"] += 1
                    continue
                records = place.journal()
                tokens += check_screen(before, last, records)
                states[state_of(records)] += 1
            assert model.wrong == []
    return states, slowest, tokens


@pytest.mark.parametrize("part", [0, 1])
def test_a_dozen_runs_are_killed(tmp_path, part):
    states, _ = cut_runs(tmp_path, 6, seed=part)
    assert sum(states.values()) == 6


@pytest.mark.parametrize("part", [0, 1])
def test_eight_chats_are_killed(tmp_path, part):
    states, _, _ = cut_chats(tmp_path, 4, seed=part)
    assert sum(states.values()) == 4


@pytest.mark.soak
def test_three_hundred_and_fifty_runs_are_killed(tmp_path):
    states, slowest = cut_runs(tmp_path, 350, seed="soak")
    print(f"runs: {dict(states)}, nothing left after {slowest:.2f} s")
    assert {"streaming", "intent", "asked"} <= states.keys()


@pytest.mark.soak
def test_a_hundred_and_fifty_chats_are_killed(tmp_path):
    states, slowest, tokens = cut_chats(tmp_path, 150, seed="soak")
    print(f"chats: {dict(states)}, {tokens} words seen, nothing left after {slowest:.2f} s")
    assert {"streaming", "intent"} <= states.keys()
    assert tokens > 500
