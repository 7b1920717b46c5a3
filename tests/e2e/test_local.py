"""`--local` with a model server on this machine: found, chosen, labelled, asked without the person's key."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from chat_terminal import Chat
from local_fake import LocalFake

DOWN = "\x1b[B"
BIG = {"id": "big", "owned_by": "vllm", "max_model_len": 65536}
SMALL = {"id": "small", "owned_by": "vllm", "max_model_len": 8192}
KEYS = {"HYPERCODE_BASE_URL": "", "HYPERCODE_MODEL": "", "OPENROUTER_API_KEY": "sk-or-not-a-key"}
"""What a person with keys has: HYPERCODE_API_KEY, which the stage sets, with no word about the server it is for."""


@pytest.fixture
def local(stage, tmp_path):
    """A stage on which servers with these models run, whose ports are in the configuration."""
    running = []

    def start(*models, more=""):
        running.extend(LocalFake(*listed).__enter__() for listed in models)
        s = stage()
        home = s.home / "hypercode"
        home.mkdir()
        (home / "config.toml").write_text(f"local_ports = {[fake.port for fake in running]}\n{more}")
        return s, *running

    yield start
    for fake in running:
        fake.__exit__()


def test_run_without_a_key(local):
    s, fake = local([BIG])
    done = s.run("run", "--local", "say hello", **KEYS)
    where = f"big (vLLM at 127.0.0.1:{fake.port}, window 65,536 tokens)"
    assert (done.returncode, done.stdout) == (0, "zzhello\n"), done.stderr
    assert done.stderr == f"info: On this machine: {where}; no key is sent.\n"
    [(authorization, body)] = fake.posts
    assert (authorization, body["model"], fake.listed) == ("Bearer no-key", "big", [None])
    assert {"bash", "edit", "write"} < {tool["function"]["name"] for tool in body["tools"]}


def test_what_programs_get(local):
    s, fake = local([BIG])
    done = s.run("run", "--local", "--output", "jsonl", "say hello", **KEYS)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(e["type"], e.get("model"), e.get("level")) for e in events[:2]] == [
        ("session_start", "big", None),
        ("notice", None, "info"),
    ]
    assert (done.returncode, done.stderr, len(fake.posts)) == (0, "", 1)


def test_a_small_window_gets_a_short_prompt_and_three_tools(local):
    s, fake = local([SMALL])
    (s.workspace / "AGENTS.md").write_text("zzinstructions")
    s.run("run", "--local", "say hello", **KEYS)
    s.run("run", "--local", "--mode", "edits", "say hello", **KEYS)
    (_, short), (_, whole) = fake.posts
    assert [tool["function"]["name"] for tool in short["tools"]] == ["grep", "ls", "read"]
    assert len(short["messages"][0]["content"]) < 400
    assert len(whole["tools"]) >= 7
    assert len(whole["messages"][0]["content"]) > 1000


def test_run_takes_the_first_of_several_and_says_so(local):
    s, fake, other = local([BIG, {"id": "second"}], [{"id": "third"}])
    done = s.run("run", "--local", "say hello", **KEYS)
    assert "There are 3 models; -m chooses another one: second, third.\n" in done.stderr
    assert [body["model"] for _, body in fake.posts] == ["big"]
    done = s.run("run", "--local", "-m", "third", "say hello", **KEYS)
    assert (done.returncode, done.stdout, [body["model"] for _, body in other.posts]) == (0, "zzhello\n", ["third"])
    assert "There are" not in done.stderr
    done = s.run("run", "--local", "-m", "fourth", "say hello", **KEYS)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "hypercode: --model: no server on this machine has 'fourth'; there are: big, second, third\n"
    )


def test_a_server_that_is_gone_by_then_is_one_line(local):
    s, fake = local([BIG])
    fake.models = ()
    done = s.run("run", "--local", "-m", "big", "x", **KEYS)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"vLLM at 127.0.0.1:{fake.port}" not in done.stderr  # an empty list does not say who answered
    assert f"a model server at 127.0.0.1:{fake.port} has no model to talk to" in done.stderr


def test_the_chat_lets_the_person_pick(local):
    s, fake, other = local([BIG, {"id": "second"}], [SMALL])
    with Chat(s, "--local", columns=120, **KEYS) as chat:
        chat.wait("Which model on this machine?")
        chat.send(DOWN + DOWN + "\r")
        chat.wait(f"On this machine: small (vLLM at 127.0.0.1:{other.port}")
        chat.wait(lambda: chat.status.startswith("small · ask"))
        assert "There are 3 models" not in "\n".join(chat.lines)
        chat.say("hi")
        chat.shows("zzhello")
        chat.idle()
        assert "of 8.2k" in chat.status  # the meter knows the window
        chat.leave()
    [(_, body)] = other.posts
    assert (body["model"], fake.posts) == ("small", [])
    assert [tool["function"]["name"] for tool in body["tools"]] == ["grep", "ls", "read"]


def test_a_first_message_waits_for_the_pick(local):
    s, fake = local([BIG, {"id": "second"}])
    with Chat(s, "--local", "the first message", **KEYS) as chat:
        chat.wait("Which model on this machine?")
        chat.send("sec")
        chat.wait("(1 of 2)")
        chat.send("\r")
        chat.shows("zzhello", "> the first message")
        chat.idle()
        chat.leave()
    assert [body["model"] for _, body in fake.posts] == ["second"]


def test_a_plain_chat_lets_the_person_pick_by_number(local):
    s, fake = local([BIG, {"id": "second"}])
    with Chat(s, "--local", "--plain", **KEYS) as chat:
        chat.wait("number, words to look for")
        chat.send("2\r")
        chat.shows("On this machine: second")
        chat.say("hi")
        chat.shows("zzhello")
        chat.leave()
    assert [body["model"] for _, body in fake.posts] == ["second"]


def test_the_configuration_can_say_it_once_and_for_all(local):
    s, fake = local([BIG], more="local = true\n")
    with Chat(s, **KEYS) as chat:
        chat.prompt().shows("On this machine: big")
        chat.say("hi")
        chat.shows("zzhello")
        chat.idle()
        chat.leave()
    assert [authorization for authorization, _ in fake.posts] == ["Bearer no-key"]
    assert set(fake.listed) <= {None, "Bearer no-key"}


def test_while_the_prompt_is_read_the_screen_says_so(local):
    s, fake = local([BIG])
    fake.reading.clear()
    with Chat(s, "--local", "hi there", columns=120, **KEYS) as chat:
        chat.wait(lambda: re.search(r"reading the prompt [12]\.?\d* ?s", chat.status) is not None)
        fake.reading.set()
        chat.shows("zzhello")
        chat.idle()
        chat.leave()


def test_doctor_looks_at_it(local):
    s, fake = local([BIG])
    done = s.run("doctor", "--local", "--json", **KEYS)
    found = {(f["area"], f["level"]): f["text"] for f in json.loads(done.stdout)["findings"]}
    assert found["key", "ok"] == "A model on this machine needs no key, and none is sent."
    assert found["network", "ok"] == f"127.0.0.1:{fake.port} answers and lists 1 model."
    assert "big is there, 65,536 tokens of context" in found["model", "ok"]
    assert fake.listed == [None, "Bearer no-key"]


def test_doctor_says_what_to_install_or_start(local):
    s, _ = local([])
    done = s.run("doctor", "--local", "--json", "-m", "big", **KEYS)
    [model] = [f for f in json.loads(done.stdout)["findings"] if f["area"] == "model"]
    assert (done.returncode, model["level"]) == (1, "problem")
    assert model["text"].startswith("--model: a model server at 127.0.0.1")
