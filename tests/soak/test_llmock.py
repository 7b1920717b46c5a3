"""A judge that nobody here wrote: each fault of llmock against `hypercode run`, and llmock's verdict on the client.

llmock comes from the package registry, into an environment of its own.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from stage import HYPERCODE

pytestmark = pytest.mark.soak

VERSION = "llmock==0.2.2"

FAULTS = [
    # what llmock does, options, exit code, what it finds in the client, a part of what the person is told
    ("nothing", [], [], 0, [], ""),
    ("429", [{"type": "fail", "status": 429, "retry_after": 1}], [], 0, [], ""),
    ("429 without a time", [{"type": "fail", "status": 429}], [], 0, [], ""),
    *((str(s), [{"type": "fail", "status": s}], [], 0, [], "") for s in (408, 409, 504)),
    *((str(s), [{"type": "fail", "status": s, "times": 2}], [], 0, [], "") for s in (500, 502, 503, 529)),
    *((str(s), [{"type": "fail", "status": s}], [], 1, [], f"({s}") for s in (400, 401, 403, 404, 422)),
    ("500 for ever", [{"type": "fail", "status": 500, "times": None}], ["--max-retries", "1"], 1, [], "(500"),
    ("late", [{"type": "delay", "seconds": 1}], [], 0, [], ""),
    ("slow", [{"type": "slow_first_token", "seconds": 1}], [], 0, [], ""),
    ("refused", [{"type": "stream_fault", "kind": "disconnect", "after_chunks": 0}], [], 0, [], ""),
    # shown text cannot be taken back, so it is not asked for again: the person is told that the reply broke off
    ("broken", [{"type": "stream_fault", "kind": "disconnect", "after_chunks": 3}], [], 4, ["gave_up"], "broke in the middle"),
    ("short", [{"type": "stream_fault", "kind": "truncate", "after_chunks": 3}], [], 4, ["truncated_stream_accepted"], "broke off"),
    ("nothing came", [{"type": "stream_fault", "kind": "truncate", "after_chunks": 0}], [], 0, [], ""),
    (
        "stalled",
        [{"type": "stream_fault", "kind": "stall", "after_chunks": 3, "stall_seconds": 30}],
        ["--idle-timeout", "1"],
        4,
        [],
        "fell silent",
    ),
    # a line that is no JSON is passed over, and said
    ("odd line", [{"type": "stream_fault", "kind": "malformed", "after_chunks": 3}], [], 0, ["malformed_chunk_ignored"], "unreadable"),
    ("half a call", [{"type": "tool_fault", "kind": "malformed_arguments"}], [], 0, [], "not run"),
    ("unknown tool", [{"type": "tool_fault", "kind": "unknown_tool"}], [], 0, [], "✗"),
]  # fmt: skip


@pytest.fixture(scope="module")
def llmock(tmp_path_factory):
    """The program; skips where no registry can be reached, but fails in CI."""
    folder = tmp_path_factory.mktemp("llmock")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    got = subprocess.run(
        [folder / "venv/bin/pip", "install", "--quiet", "--retries", "1", "--timeout", "20", VERSION],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if got.returncode:
        why = f"llmock cannot be had: {(got.stderr.strip() or 'pip says nothing').splitlines()[-1]}"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return folder / "venv/bin/llmock"


@pytest.fixture
def server(llmock):
    """A fresh llmock's address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serve = [
        llmock,
        "serve",
        "--port",
        str(port),
        "--log-level",
        "error",
        "--response-style",
        "varied",
        "--tool-mode",
        "off",
    ]
    with subprocess.Popen(serve, stdout=subprocess.DEVNULL) as running:
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(url)
            yield url
        finally:
            running.terminate()


def wait_for(url):
    deadline = time.monotonic() + 60
    while True:
        try:
            return ask(f"{url}/_llmock/scenario")
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def ask(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=30) as answer:
        return json.load(answer)


@pytest.mark.parametrize(
    ("behaviors", "options", "code", "found", "told"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS]
)
def test_fault(server, tmp_path, behaviors, options, code, found, told):
    if behaviors:
        ask(f"{server}/_llmock/scenario", {"behaviors": behaviors})
    (tmp_path / "work").mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HYPERCODE_", "OPENAI_", "OPENROUTER_"))}
    done = subprocess.run(
        [HYPERCODE, "run", "say something", *options],
        cwd=tmp_path / "work",
        env={
            **kept,
            "HOME": str(tmp_path),
            "HYPERCODE_HOME": str(tmp_path / "h"),
            "HYPERCODE_BASE_URL": f"{server}/v1",
            "HYPERCODE_MODEL": "gpt-4o",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    verdict = ask(f"{server}/_llmock/verdict")
    assert (done.returncode, sorted({f["code"] for f in verdict["findings"]})) == (code, sorted(found)), (
        done.stderr,
        verdict,
    )
    assert told in done.stderr
    assert "Traceback" not in done.stderr
