"""The installed command against a model that is scripted on a real socket."""

import json
import os
import subprocess
import sys
from pathlib import Path

from replay import ReplayServer

HYPERCODE = str(Path(sys.executable).with_name("hypercode"))


def chunk(delta, finish=None, **more):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "gen-1", "object": "chat.completion.chunk", "model": "demo/m", "choices": [choice], **more}
    return f"data: {json.dumps(body)}\n\n"


def text(words):
    return {"content": words}


def call(name, arguments, call_id, index=0):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}


def answer(*deltas, finish=None, usage=None, close="clean", hang_after=None):
    """One reply of the model as a cassette; without `finish`, tool_calls where there is a call, else stop."""
    finish = finish or ("tool_calls" if any("tool_calls" in d for d in deltas) else "stop")
    body = "".join(map(chunk, deltas))
    if close == "clean":
        body += chunk({}, finish, **({"usage": usage} if usage else {})) + "data: [DONE]\n\n"
    return {
        "family": "made",
        "why": "made",
        "source": "made",
        "http": {"status": 200, "headers": {"Content-Type": "text/event-stream"}},
        "segments": [{"bytes": body}],
        "close": close,
        "expect": {"outcome": "complete"},
    }


class Stage:
    """A workspace, a home, and a scripted server; `run` runs the installed command there."""

    def __init__(self, tmp_path, answers):
        self.home = tmp_path / "home"
        self.workspace = self.home / "work"
        self.workspace.mkdir(parents=True)
        cassettes = tmp_path / "cassettes"
        cassettes.mkdir()
        for number, cassette in enumerate(answers):
            name = f"a{number}"
            (cassettes / f"{name}.json").write_text(json.dumps({"id": name, **cassette}))
        script = [f"a{n}" for n in range(len(answers))]
        self.server = ReplayServer(cassettes, scripts={"s": script})

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HYPERCODE_", "OPENAI_", "OPENROUTER_"))}
        return kept | {
            "HOME": str(self.home),
            "HYPERCODE_HOME": str(self.home / "hypercode"),
            "HYPERCODE_BASE_URL": self.server.base_url,
            "HYPERCODE_API_KEY": "sk-test-not-a-key",
            "HYPERCODE_MODEL": "script/s",
            **more,
        }

    def run(self, *arguments, stdin="", timeout=60, **environment):
        return subprocess.run(
            [HYPERCODE, *arguments],
            cwd=self.workspace,
            env=self.environment(**environment),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            errors="surrogatepass",
        )

    def requests(self):
        return [r["body"] for r in self.server.requests]
