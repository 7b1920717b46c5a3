"""Own tools, listeners and traces in the installed command; nothing is imported from the folder that is worked in."""

import gzip
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from stage import answer, call, text

sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))
from chat_terminal import Chat

TOOLS = '''
from hypercode import ToolContext, tool

@tool("read")
async def weather(ctx: ToolContext, city: str) -> str:
    """The weather."""
    return f"sunny in {city}"

@tool("shell")
async def deploy(ctx: ToolContext, command: str) -> str:
    """Deploy."""
    (ctx.workspace / "deployed").write_text(command)
    return "done"

def attach(bus):
    bus.on(None, lambda event: None)
'''
LEAVES_A_MARK = "open(__file__ + '.was_run', 'w').close()\n"


def installed(folder):
    """A package with a tool, as an installer leaves it there."""
    info = folder / "sunny_tools-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "sunny_tools.py").write_text(TOOLS)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sunny-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[hypercode.tools]\nweather = sunny_tools:weather\ndeploy = sunny_tools:deploy\nnone = sunny_tools:none\n"
    )
    return str(folder)


def configure(stage, text):
    file = stage.home / "hypercode" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


def spans(stage):
    """The spans of the one trace there is."""
    (path,) = (stage.home / "hypercode" / "state" / "traces").iterdir()
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_tool_of_an_installed_package_is_run(stage, tmp_path):
    s = stage(answer(call("weather", {"city": "Ulm"}, "a")), answer(text("Sunny.")))
    done = s.run("run", "go", PYTHONPATH=installed(tmp_path / "site"))
    assert (done.stdout, done.returncode) == ("Sunny.\n", 0)
    assert s.requests()[1]["messages"][-1] == {"role": "tool", "tool_call_id": "a", "content": "sunny in Ulm"}
    assert done.stderr.count("left out") == 1
    assert "The tool none of the package sunny-tools is left out: AttributeError" in done.stderr.replace("\n", " ")


def test_in_the_chat_a_tool_that_runs_programs_asks_whatever_it_is_given(stage, tmp_path):
    s = stage(answer(call("deploy", {"command": "ls"}, "a")), answer(text("It is out.")))
    with Chat(s, PYTHONPATH=installed(tmp_path / "site")) as chat:
        chat.prompt().say("ship it")
        chat.shows('deploy {"command": "ls"}?', "no tool of hypercode's own; it may run programs")
        assert not (s.workspace / "deployed").exists()
        chat.send("y")
        chat.shows("It is out.")
        chat.idle()
        assert any("The tool none of the package sunny-tools is left out" in line for line in chat.lines)
        assert chat.leave() == 0
    assert (s.workspace / "deployed").read_text() == "ls"


def test_policy_replay_knows_the_tools_of_packages(stage, tmp_path):
    calls = [("weather", {"city": "Ulm"}), ("deploy", {"command": "ls"}), ("weather", {}), ("gone", {})]
    s = stage(answer(*[call(n, a, f"c{i}", i) for i, (n, a) in enumerate(calls)]), answer(text("done")))
    path = installed(tmp_path / "site")
    s.run("run", "go", PYTHONPATH=path)
    [saved] = (s.home / "hypercode/state/sessions").glob("*/*.jsonl")

    def replayed(*options, **environment):
        done = s.run("policy", "replay", saved.stem, "--json", *options, **environment)
        assert "Traceback" not in done.stderr
        return [(c["tool"], c["decision"], c["rule"], c["flag"]) for c in json.loads(done.stdout)["calls"]]

    unusable = ("weather", None, "its arguments are none that the tool takes", None)
    gone = ("gone", None, "there is no such tool", None)
    rule = "no tool of hypercode's own, and in no sandbox"
    assert replayed(PYTHONPATH=path) == [
        ("weather", "auto", "it names no path", None),
        ("deploy", "ask", rule, "--mode auto --no-sandbox"),
        unusable,
        gone,
    ]
    assert replayed("--mode", "auto", PYTHONPATH=path)[1] == ("deploy", "auto", rule, None)
    assert [c[2] for c in replayed()] == ["there is no such tool"] * 4
    (tmp_path / "site" / "sunny_tools.py").write_text("raise OSError('broken')")
    assert [c[2] for c in replayed(PYTHONPATH=path)] == ["there is no such tool"] * 4


@pytest.mark.parametrize("how", ["command", "module"])
def test_nothing_is_imported_from_the_current_folder(stage, how):
    s = stage(answer(text("hello")))
    work = s.workspace
    installed(work)
    for name in ("sunny_tools", "rich", "typer", "openai", "platformdirs", "httpx2", "sitecustomizer"):
        (work / f"{name}.py").write_text(LEAVES_A_MARK)
    configure(s, 'listeners = ["sunny_tools:attach"]\n')
    if how == "module":
        done = subprocess.run(
            [sys.executable, "-m", "hypercode", "run", "go"],
            cwd=work,
            env=s.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
    else:
        done = s.run("run", "go", PYTHONPATH=":.:")
    assert (done.stdout, done.returncode) == ("hello\n", 0)
    assert not list(work.glob("*.was_run"))
    told = "The listener sunny_tools:attach is left out: there is no installed module sunny_tools."
    assert told in done.stderr
    assert {t["function"]["name"] for t in s.requests()[0]["tools"]}.isdisjoint({"weather"})


def test_a_module_of_the_workspace_that_is_on_the_path_is_refused(stage):
    s = stage(answer(text("hello")))
    path = installed(s.workspace / "lib")
    (s.workspace / "lib" / "sunny_tools.py").write_text(LEAVES_A_MARK)
    configure(s, 'listeners = ["sunny_tools:attach"]\n')
    done = s.run("run", "go", PYTHONPATH=path)
    assert (done.stdout, done.returncode) == ("hello\n", 0)
    assert "sunny_tools:attach is left out: the module sunny_tools lies in the folder that is worked in" in done.stderr
    assert "weather of the package sunny-tools is left out: it lies in the folder that is worked in." in done.stderr
    assert not list(s.workspace.rglob("*.was_run"))


def test_a_trace_is_off_until_it_is_asked_for_and_its_path_is_said(stage):
    s = stage(answer(text("one")), answer(text("two")))
    s.run("run", "go")
    assert not (s.home / "hypercode" / "state" / "traces").exists()
    configure(s, "trace = true\n")
    done = s.run("run", "go")
    assert (done.stdout, done.returncode) == ("two\n", 0)
    (path,) = (s.home / "hypercode" / "state" / "traces").iterdir()
    assert f"trace: {path}" in done.stderr.replace("\n", "")
    assert [span["name"] for span in spans(s)] == ["chat script/s", "turn", "invoke_agent hypercode", "session"]
    asked = spans(s)[0]["attributes"]
    assert (asked["server.address"], asked["gen_ai.provider.name"]) == ("127.0.0.1", "127.0.0.1")
    assert "go" not in path.read_text()


class Collector(ThreadingHTTPServer):
    """A server that takes spans as OTLP."""

    def __init__(self):
        self.spans = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                request = ExportTraceServiceRequest.FromString(body)
                collector.spans += [
                    (resource, span)
                    for resource in request.resource_spans
                    for scope in resource.scope_spans
                    for span in scope.spans
                ]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args):
                pass

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def collector():
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_spans_go_where_the_standard_variables_say(stage, collector):
    s = stage(answer(call("ls", {}, "a")), answer(text("done")))
    configure(s, "trace = true\n")
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    done = s.run("run", "go", OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
    assert (done.stdout, done.returncode) == ("done\n", 0)
    sent = {span.span_id.hex(): (span.name, span.parent_span_id.hex() or None) for _, span in collector.spans}
    assert sent == {span["span_id"]: (span["name"], span["parent_id"]) for span in spans(s)}
    assert len(sent) == 7
    resource = {a.key: a.value.string_value for a in collector.spans[0][0].resource.attributes}
    assert resource["service.name"] == "hypercode"


def test_nothing_is_sent_without_trace(stage, collector):
    s = stage(answer(text("done")))
    assert s.run("run", "go", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.server_port}").returncode == 0
    assert collector.spans == []


def test_a_server_that_takes_no_spans_costs_neither_answer_nor_screen(stage):
    s = stage(answer(text("done")))
    configure(s, "trace = true\n")
    done = s.run("run", "go", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1")
    assert (done.stdout, done.returncode) == ("done\n", 0)
    assert [line for line in done.stderr.splitlines() if "Traceback" in line or "Exception" in line] == []
    assert len(spans(s)) == 4


EMBEDDED = """
import asyncio, os
from pathlib import Path
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from hypercode import Config, ScriptedModel, build

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

async def main():
    complete = ScriptedModel(["hi"]).complete
    app = build(Config(trace=True), cwd=Path.cwd(), environ=os.environ, complete=complete)
    with trace.get_tracer("outside").start_as_current_span("outside"):
        await app.agent.run("go")
        await app.aclose()

asyncio.run(main())
spans = exporter.get_finished_spans()
names = {span.context.span_id: span.name for span in spans}
print([(span.name, names.get(span.parent.span_id) if span.parent else None) for span in spans])
"""


def test_a_program_that_embeds_it_gets_the_spans_below_its_own(stage):
    s = stage()
    done = subprocess.run(
        [sys.executable, "-c", EMBEDDED],
        cwd=s.workspace,
        env=s.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout.strip() == str(
        [
            ("chat openrouter/auto", "turn"),
            ("turn", "invoke_agent hypercode"),
            ("invoke_agent hypercode", "session"),
            ("session", "outside"),
            ("outside", None),
        ]
    )
