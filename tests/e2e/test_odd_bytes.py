"""Bytes that are no text, on their way from a command or a model to the request, the journal and stdout."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stage import answer, call, text

ODD = {
    "invalid": r"printf 'a\377\376b'",
    "half a surrogate": r"printf 'a\355\240\200b'",
    "nul": r"printf 'a\0b'",
    "cut character": r"printf 'a\303'",
    "overlong": r"printf 'a\300\257b'",
    "beyond": r"printf 'a\364\220\200\200b'",
}


def strict(value):
    """The value as UTF-8; raises where half a surrogate pair is in it."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize("kind", ODD)
def test_what_a_command_prints(stage, kind):
    s = stage(answer(call("bash", {"command": ODD[kind]}, "c")), answer(text("ok")))
    done = s.run("run", "go", "--output", "jsonl", "--mode", "auto", "--no-sandbox")
    assert done.returncode == 0, done.stderr
    told = s.requests()[1]["messages"][-1]["content"]
    assert told.startswith("a")
    assert "\0" not in told
    strict(s.requests()[1])
    for line in done.stdout.splitlines():
        strict(json.loads(line))
    [journal] = (s.home / "hypercode/state/sessions").rglob("*.jsonl")
    lines = journal.read_bytes().decode("utf-8").splitlines()
    assert [json.loads(line) for line in lines]


def test_what_a_model_sends(stage):
    """Half a surrogate pair in a text and in arguments: it is shown, kept and sent back as a replacement character."""
    first = answer(text("a\ud83d"), text(" b\udc00"), call("bash", {"command": "echo x\ud83d"}, "c"))
    s = stage(first, answer(text("ok")), answer(text("again")))
    done = s.run("run", "go", "--output", "jsonl", "--mode", "auto", "--no-sandbox")
    assert done.returncode in (0, 5), done.stderr
    assert s.run("run", "-c", "more").returncode == 0
    for request in s.requests():
        strict(request)
    [journal] = (s.home / "hypercode/state/sessions").rglob("*.jsonl")
    for line in journal.read_bytes().decode("utf-8").splitlines():
        json.loads(line)
