"""A scripted model that streams text and asks for tools, and readers of its requests and of the journal that share no code with
what they check."""

from __future__ import annotations

import json
import os
import random
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HYPERCODE = str(Path(sys.executable).with_name("hypercode"))
TOKEN = re.compile(r"w\d+x\d+y")
STEPS = 3  # tool calls of a task


def problems(messages):
    """What a strict provider would refuse in a request's messages."""
    found = []
    if not messages or messages[0]["role"] != "system":
        found.append("no system message")
    owed = []
    for place, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if owed:
            if role != "tool" or message.get("tool_call_id") != owed[0]:
                found.append(f"{place}: {owed[0]} is not answered, but {role} {message.get('tool_call_id')}")
                owed = []
            else:
                owed.pop(0)
                if not isinstance(content, str):
                    found.append(f"{place}: a result without text")
            continue
        if role == "tool":
            found.append(f"{place}: a result that nothing asked for")
        elif role in ("user", "system"):
            if not isinstance(content, str) or not content.strip():
                found.append(f"{place}: an empty message of {role}")
        elif role == "assistant":
            calls = message.get("tool_calls")
            if not calls and not (isinstance(content, str) and content.strip()):
                found.append(f"{place}: an empty reply")
            owed = [call["id"] for call in calls or []]
            if len(set(owed)) != len(owed):
                found.append(f"{place}: two calls of one id")
            for call in calls or []:
                if not isinstance(json.loads(call["function"]["arguments"]), dict):
                    found.append(f"{place}: arguments that are no object")
        else:
            found.append(f"{place}: role {role}")
    return found + [f"the end: {call_id} is not answered" for call_id in owed]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        raw = self.rfile.read(size)
        if len(raw) < size:
            return  # killed while it asked
        messages = json.loads(raw.decode("utf-8"))["messages"]
        number = self.server.noted(messages)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for data in self.server.reply(number, messages):
                self.wfile.write(data)
                self.wfile.flush()
        except OSError:
            pass  # the client was killed: what this is all about


class Model(ThreadingHTTPServer):
    """The server; `requests` are the messages of each request, `wrong` what was wrong with them."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, seed):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seed = seed
        self.requests = []
        self.wrong = []
        self._lock = threading.Lock()

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *exception):
        self.shutdown()
        self.server_close()

    def noted(self, messages):
        with self._lock:
            self.requests.append(messages)
            self.wrong += [f"request {len(self.requests)}: {what}" for what in problems(messages)]
            return len(self.requests)

    def reply(self, number, messages):
        """Words of their own for each request, then, while the task has had few calls, one or two calls."""
        rng = random.Random(f"{self.seed}-{number}")
        pace = rng.choice([0, 0.01, 0.03, 0.06])
        for place in range(rng.randint(3, 40)):
            yield self._chunk({"content": f"w{number}x{place}y "})
            time.sleep(pace * 2 * rng.random())
        last = max(place for place, message in enumerate(messages) if message["role"] == "user")
        had = sum(message["role"] == "tool" for message in messages[last:])
        calls = [self._call(rng, number, index) for index in range(rng.randint(1, 2))] if had < STEPS else []
        for index, (name, arguments) in enumerate(calls):
            text = json.dumps(arguments)
            head = {"index": index, "id": f"c{number}-{index}", "type": "function"}
            yield self._chunk({"tool_calls": [{**head, "function": {"name": name, "arguments": text[:9]}}]})
            time.sleep(rng.choice([0, 0.01, 0.05]))
            yield self._chunk({"tool_calls": [{"index": index, "function": {"arguments": text[9:]}}]})
        yield self._chunk({}, "tool_calls" if calls else "stop")
        yield b"data: [DONE]\n\n"

    def _call(self, rng, number, index):
        kind = rng.choice(["quick", "slow", "stubborn", "write"])
        if kind == "write":
            return "write", {"path": f"f{number}-{index}.txt", "content": f"line {number}\n" * rng.randint(1, 2000)}
        command = {
            "quick": f"echo out-{number}-{index}",
            "slow": f"echo out-{number}-{index}; sleep 0.{rng.randint(1, 4)}; echo done",
            "stubborn": f"echo out-{number}-{index}; (trap '' TERM HUP; setsid sleep 40 & sleep 0.3)",
        }[kind]
        return "bash", {"command": command}

    @staticmethod
    def _chunk(delta, finish=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({'id': 'g', 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n".encode()


class Place:
    """A workspace and a home for lives that are cut short."""

    def __init__(self, folder, model):
        self.home = folder / "home"
        self.workspace = self.home / "work"
        self.workspace.mkdir(parents=True)
        self.model = model

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HYPERCODE_", "OPENAI_", "OPENROUTER_"))}
        return kept | {
            "HOME": str(self.home),
            "HYPERCODE_HOME": str(self.home / "hypercode"),
            "HYPERCODE_BASE_URL": f"http://127.0.0.1:{self.model.server_port}/v1",
            "HYPERCODE_API_KEY": "sk-test-not-a-key",
            "HYPERCODE_MODEL": "script/s",
            **more,
        }

    def journal(self):
        """The records of what is saved, line by line; a last line that was cut is left out."""
        paths = sorted((self.home / "hypercode").glob("state/sessions/*/*.jsonl"))
        return [json.loads(line) for path in paths for line in path.read_bytes().split(b"\n")[:-1] if line]

    def said(self):
        """Whether the person has said anything by now."""
        return any(record["type"] == "user" for record in self.journal())

    def left_running(self):
        """Processes that are at work in this workspace."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    where = os.readlink(entry / "cwd")
                    if where.startswith(str(self.workspace)):
                        found.append((int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ")))
                except OSError:
                    pass
        return found

    def quiet_after(self, patience=20):
        """Seconds until nothing runs in the workspace any more."""
        start = time.monotonic()
        while left := self.left_running():
            assert time.monotonic() - start < patience, f"still running: {left}"
            time.sleep(0.02)
        return time.monotonic() - start
