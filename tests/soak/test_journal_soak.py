"""kill -9 at random moments: what was acknowledged is there, and the session goes on."""

import random
import select
import subprocess
import sys
import time

import pytest

from hypercode.memory.history import load
from hypercode.memory.journal import open_session
from hypercode.messages import text_of, user
from hypercode.safety.redact import Redactor

WRITER = """
import os, sys
from pathlib import Path
from hypercode.memory.journal import Journal, open_session
from hypercode.messages import tool_result, user
from hypercode.safety.redact import Redactor

path, sync = Path(sys.argv[1]), sys.argv[2] == "sync"
common = {"redactor": Redactor(["sk-or-v1-0123456789abcdef"]), "on_failure": sys.exit}
opened = open_session(path, fresh="copy", **common) if path.exists() else None
journal = opened.journal if opened else Journal(path, **common)
assert opened is None or opened.copy_of is None

def acknowledge(kind, text):
    os.write(1, f"{journal.seq} {kind} {text}\\n".encode())

number = 0
while True:
    number += 1
    name = f"{os.getpid()}-{number}"
    assert journal.append("user", sync=sync, message=user(name + " é中😀" * (number % 50)))
    acknowledge("user", name)
    for piece in range(3):
        assert journal.append("partial", sync=False, text=f"{name}.{piece} ")
        acknowledge("partial", f"{name}.{piece}")
    call = {"id": name, "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    message = {"role": "assistant", "content": "x" * (number % 7 * 1000) or None, "tool_calls": [call]}
    assert journal.append("assistant", sync=sync, message=message, finish_reason="tool_calls")
    acknowledge("assistant", name)
    assert journal.append("intent", sync=sync, call_id=name, name="bash", arguments={"command": "ls"})
    acknowledge("intent", name)
    assert journal.append("result", sync=sync, message=tool_result(name, "out"), seconds=1, is_error=False, kind=None)
    acknowledge("result", name)
    assert journal.append("turn_end", sync=sync, turn=number, outcome="complete", usage=None, cost=0.01)
    acknowledge("turn_end", name)
"""


def killed(path, sync, seconds):
    """Run the writer, kill it `seconds` after its first line, and return what it had acknowledged."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path), sync], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 60)[0]
        time.sleep(seconds)
        process.kill()
        output = process.stdout.read()
    lines = output.decode().split("\n")
    return [line.split() for line in lines[:-1]]


def seen(record):
    """The record in the words of an acknowledgement."""
    kind, message = record["type"], record.get("message")
    match kind:
        case "user":
            return text_of(message).split()[0]
        case "partial":
            return record["text"].strip()
        case "assistant":
            return message["tool_calls"][0]["id"]
        case "intent":
            return record["call_id"]
        case "result":
            return message["tool_call_id"]


def kill_and_look(path, sync, seconds):
    acknowledged = killed(path, sync, seconds)
    assert acknowledged
    loaded = load(path)
    there = {str(record["seq"]): record for record in loaded.records}
    assert len(there) == len(loaded.records)
    names = [(seq, kind, name) for seq, kind, name in acknowledged if kind != "turn_end"]
    assert [entry for entry in names if (there[entry[0]]["type"], seen(there[entry[0]])) != entry[1:]] == []
    last = loaded.records[-1]
    if last["type"] == "partial":
        assert loaded.partial.endswith(last["text"])
        assert loaded.messages[-1] == {"role": "assistant", "content": loaded.partial}
    if last["type"] == "intent":
        assert [r["call_id"] for r in loaded.in_flight] == [last["call_id"]]
        assert text_of(loaded.messages[-1]) == "[interrupted: what this call did is not known]"

    before = path.read_bytes()
    opened = open_session(path, redactor=Redactor(), on_failure=pytest.fail, fresh="fresh")
    assert opened.copy_of is None
    assert opened.journal.append("user", message=user("after"))
    opened.journal.close()
    assert path.read_bytes().startswith(before)
    assert load(path).messages[-1] == user("after")
    return len(acknowledged), loaded.records


def kills(tmp_path, count):
    rng = random.Random(4)
    total = 0
    for number in range(count):
        path = tmp_path / f"{number // 10}.jsonl"  # ten lives a file
        sync = "sync" if number % 2 else "fast"
        total += kill_and_look(path, sync, rng.random() * 0.05)[0]
    assert total > count * 5


def test_twenty_kills(tmp_path):
    kills(tmp_path, 20)


@pytest.mark.soak
def test_five_hundred_kills(tmp_path):
    kills(tmp_path, 500)
