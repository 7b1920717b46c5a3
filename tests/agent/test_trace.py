"""Spans: whole trees, in the file and in OpenTelemetry, for every way in which a turn can end."""

import asyncio
import json
import logging
import os
import stat

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hypercode import events
from hypercode.agent import Result
from hypercode.errors import ModelUnavailable, StreamInterrupted
from hypercode.events import Bus
from hypercode.llm.fake import Call, script
from hypercode.messages import user
from hypercode.safety.redact import Redactor
from hypercode.trace import Trace, TraceFiles
from hypercode.trace_otel import NotConfigured, OtelSpans, open_otel

USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 4,
    "prompt_tokens_details": {"cached_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 1},
    "cost": 0.25,
}
TOKENS = {
    "gen_ai.usage.input_tokens": 10,
    "gen_ai.usage.output_tokens": 4,
    "gen_ai.usage.cache_read.input_tokens": 3,
    "gen_ai.usage.reasoning.output_tokens": 1,
}
TTFT = "gen_ai.response.time_to_first_chunk"
NOTICE = {"name": "hypercode.notice", "attributes": {"level": "warning"}}


class Traced:
    """A session of the harness with a trace that goes into a file and to OpenTelemetry's own exporter in memory."""

    def __init__(self, harness, *args, content=False, **settings):
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.h = harness(*args, **settings)
        app = self.h.app
        self.file = TraceFiles(app.folders.state / "traces", lambda text: app.bus.emit(events.Notice("warning", text)))
        self.trace = Trace(
            app.bus,
            [OtelSpans(provider.get_tracer("test")), self.file],
            session=lambda: app.session,
            model=lambda: {"gen_ai.provider.name": "test", "gen_ai.request.model": "m"},
            redactor=app.redactor,
            content=content,
        )
        self.session = app.session

    async def over(self, result=None):
        """End the session; its tree, which must be the same in both places."""
        if result is not None:
            self.h.app.finish(result)
        await self.trace.aclose()
        lines = [json.loads(line) for line in self.file.path_of(self.session).read_text().splitlines()]
        written = _tree([_from_file(line) for line in lines])
        assert _tree([_from_otel(span) for span in self.exporter.get_finished_spans()]) == written
        return written


def _from_file(line):
    assert line["end_unix_nano"] >= line["start_unix_nano"] > 1.6e18
    assert line["seconds"] == round((line["end_unix_nano"] - line["start_unix_nano"]) / 1e9, 6)
    error = line["attributes"].get("error.type")
    assert line["status"] == ("error" if error else "ok")
    marks = [{k: v for k, v in event.items() if k != "time"} for event in line["events"]]
    return line | {"start": line["start_unix_nano"], "end": line["end_unix_nano"], "events": marks}


def _from_otel(span):
    error = span.attributes.get("error.type")
    assert (span.status.status_code.name, span.status.description) == (("ERROR", error) if error else ("UNSET", None))
    attributes = {k: list(v) if isinstance(v, tuple) else v for k, v in span.attributes.items()}
    return {
        "trace_id": f"{span.context.trace_id:032x}",
        "span_id": f"{span.context.span_id:016x}",
        "parent_id": f"{span.parent.span_id:016x}" if span.parent else None,
        "name": span.name,
        "kind": span.kind.name.lower(),
        "start": span.start_time,
        "end": span.end_time,
        "attributes": attributes,
        "events": [{"name": e.name, "attributes": dict(e.attributes)} for e in span.events],
    }


def _tree(spans):
    """The one tree that the spans make: name, kind, attributes, events, children in the order of their beginnings."""
    assert len({span["trace_id"] for span in spans}) == 1
    assert len({span["span_id"] for span in spans}) == len(spans)
    by_id = {span["span_id"]: span for span in spans}

    def node(span):
        children = sorted((s for s in spans if s["parent_id"] == span["span_id"]), key=lambda s: s["start"])
        for child in children:
            assert span["start"] <= child["start"] <= child["end"] <= span["end"], "a span is inside its parent's"
        return (span["name"], span["kind"], span["attributes"], span["events"], [node(child) for child in children])

    roots = [span for span in spans if span["parent_id"] not in by_id]
    assert [span["parent_id"] for span in roots] == [None], "nothing hangs in the air"
    return node(roots[0])


def session(conversation, *tasks, **more):
    ended = {"hypercode.outcome": "complete", "hypercode.exit_code": 0, **more}
    return ("session", "internal", {"gen_ai.conversation.id": conversation, **ended}, [], list(tasks))


def task(conversation, *turns, marks=(), **more):
    about = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "hypercode",
        "gen_ai.conversation.id": conversation,
    }
    return ("invoke_agent hypercode", "internal", about | more, list(marks), list(turns))


def turn(number, *parts, marks=(), **more):
    return ("turn", "internal", {"hypercode.turn": number, **more}, list(marks), list(parts))


def chat(conversation, *, marks=(), finish="stop", **more):
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": conversation,
        "gen_ai.provider.name": "test",
        "gen_ai.request.model": "m",
    }
    finished = {"gen_ai.response.finish_reasons": [finish]} if finish else {}
    return ("chat m", "client", about | finished | more, list(marks), [])


def tool(name, call_id, **more):
    about = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call_id,
    }
    return (f"execute_tool {name}", "internal", about | more, [], [])


def without_times(tree):
    """The tree without the seconds to the first piece of each answer, and those."""
    times = []

    def strip(node):
        name, kind, attributes, marks, children = node
        if TTFT in attributes:
            times.append(attributes[TTFT])
        kept = {k: v for k, v in attributes.items() if k != TTFT}
        return (name, kind, kept, marks, [strip(child) for child in children])

    return strip(tree), times


ERROR = {"error.type": "interrupted"}


async def test_an_answer(harness):
    t = Traced(harness, [script("Hello", usage=USAGE)])
    tree, times = without_times(await t.over(await t.h.run("hi")))
    c = t.session
    cost = {"hypercode.cost_usd": 0.25}
    assert tree == session(c, task(c, turn(1, chat(c, **TOKENS, **cost)), **TOKENS))
    assert len(times) == 1
    assert 0 <= times[0] < 5


async def test_tools_and_two_turns_are_one_task(harness):
    calls = [Call("read", {"path": "n.md"}, "a"), Call("read", {"path": "none"}, "b")]
    t = Traced(harness, [script("Looking.", *calls, usage=USAGE), script("Two.", usage=USAGE)])
    (t.h.workspace / "n.md").write_text("x")
    tree, _ = without_times(await t.over(await t.h.run()))
    c = t.session
    priced = {**TOKENS, "hypercode.cost_usd": 0.25}
    assert tree == session(
        c,
        task(
            c,
            turn(
                1,
                chat(c, finish="tool_calls", **priced),
                tool("read", "a"),
                tool("read", "b", **{"error.type": "missing_file"}),
            ),
            turn(2, chat(c, **priced)),
            **{name: 2 * count for name, count in TOKENS.items()},
        ),
    )


async def test_each_message_is_a_task(harness):
    t = Traced(harness, ["one", "two"])
    await t.h.run("a")
    tree, _ = without_times(await t.over(await t.h.run("b")))
    c = t.session
    assert tree == session(c, task(c, turn(1, chat(c))), task(c, turn(2, chat(c))))


async def test_an_abort_while_the_model_writes(harness):
    writing = asyncio.Event()
    t = Traced(harness, [script("some", asyncio.Event(), "never")])
    t.h.app.bus.on(events.TextDelta, lambda e: writing.set())
    running = asyncio.create_task(t.h.run())
    await writing.wait()
    t.h.agent.abort()
    result = await running
    tree, _ = without_times(await t.over(result))
    c, error = t.session, {"error.type": "aborted"}
    ended = {"hypercode.outcome": "aborted", "hypercode.exit_code": 130}
    turns = turn(1, chat(c, finish=None, **error), **error)
    assert tree == session(c, task(c, turns, **error), **ended, **error)


async def test_an_abort_while_a_tool_runs(harness):
    t = Traced(
        harness, [script(Call("bash", {"command": "echo on; sleep 60"}, "s"))], allow=["echo", "sleep"], sandbox=False
    )
    running = asyncio.create_task(t.h.run())
    on = asyncio.Event()
    t.h.app.bus.on(events.ToolOutput, lambda e: on.set())
    await on.wait()
    t.h.agent.abort()
    tree, _ = without_times(await t.over(await running))
    c, error = t.session, {"error.type": "aborted"}
    ended = {"hypercode.outcome": "aborted", "hypercode.exit_code": 130}
    parts = [chat(c, finish="tool_calls"), tool("bash", "s", **error)]
    assert tree == session(c, task(c, turn(1, *parts, **error), **error), **ended, **error)


@pytest.mark.parametrize(
    ("raised", "outcome", "kind", "code", "status"),
    [
        (ModelUnavailable("overloaded", status=503), "error", "unavailable", 1, 503),
        (StreamInterrupted("broke off"), "interrupted", "interrupted", 4, None),
    ],
)
async def test_a_failure(harness, raised, outcome, kind, code, status):
    t = Traced(harness, [script("part", raised)])
    tree, _ = without_times(await t.over(await t.h.run()))
    c, error = t.session, {"error.type": kind}
    http = {"http.response.status_code": status} if status else {}
    ended = {"hypercode.outcome": outcome, "hypercode.exit_code": code}
    turns = turn(1, chat(c, finish=None, **http, **error), **error)
    assert tree == session(c, task(c, turns, **error), **ended, **error)


async def test_repetitions_are_marks_on_the_model_call(harness):
    notice = events.Notice("warning", "retrying in 0.5 s (busy), try 2 of 5")
    t = Traced(harness, [script(notice, notice, "there")])
    tree, _ = without_times(await t.over(await t.h.run()))
    c = t.session
    assert tree == session(c, task(c, turn(1, chat(c, marks=[NOTICE, NOTICE]))))


async def test_a_limit_ends_the_task_with_the_session(harness):
    t = Traced(harness, [script(Call("ls", {}, "a"))], max_turns=1)
    result = await t.h.run()
    tree, _ = without_times(await t.over(result))
    c, error = t.session, {"error.type": "limit_turns"}
    ended = {"hypercode.outcome": "limit", "hypercode.exit_code": 3}
    one = turn(1, chat(c, finish="tool_calls"), tool("ls", "a"))
    assert tree == session(c, task(c, one, marks=[NOTICE], **error), **ended, **error)


async def test_what_a_fault_left_open_is_closed(harness):
    t = Traced(harness, [])
    bus = t.h.app.bus
    bus.emit(events.TurnStart(1))
    bus.emit(events.ToolExecutionStart("x", "read", {}))
    bus.emit(events.TurnStart(2))
    tree, _ = without_times(await t.over(Result()))
    c, lost = t.session, {"error.type": "lost"}
    first = turn(1, chat(c, finish=None, **lost), tool("read", "x", **lost), **lost)
    assert tree == session(c, task(c, first, turn(2, chat(c, finish=None, **lost), **lost)))


async def test_nothing_that_was_said_is_recorded_unless_asked_for(harness):
    words = ["SAID", "ANSWERED", "READ", "FAILED"]
    scripts = [script("ANSWERED", Call("read", {"path": "n.md"}, "a")), script(ModelUnavailable("FAILED"))]

    async def recorded(content):
        t = Traced(harness, scripts, content=content)
        (t.h.workspace / "n.md").write_text("READ")
        await t.h.run("SAID")
        await t.over(Result())
        text = t.file.path_of(t.session).read_text()
        return [json.loads(line) for line in text.splitlines()], [word for word in words if word in text]

    assert (await recorded(False))[1] == []
    spans, found = await recorded(True)
    assert found == words
    by_name = {}
    for span in spans:
        by_name.setdefault(span["name"], span["attributes"])
    agent, read, asked = by_name["invoke_agent hypercode"], by_name["execute_tool read"], by_name["chat m"]
    assert json.loads(agent["gen_ai.input.messages"]) == [user("SAID")]
    assert json.loads(read["gen_ai.tool.call.arguments"]) == {"path": "n.md"}
    assert "READ" in read["gen_ai.tool.call.result"]
    assert json.loads(asked["gen_ai.output.messages"])[0]["content"] == "ANSWERED"


async def test_secrets_are_taken_out_everywhere(harness, tmp_path):
    key = "correct-horse-battery-staple"
    exporter, bus = InMemorySpanExporter(), Bus()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    files = TraceFiles(tmp_path / "t", pytest.fail)
    trace = Trace(
        bus,
        [OtelSpans(provider.get_tracer("test")), files],
        session=lambda: "s",
        model=lambda: {"gen_ai.request.model": key},
        redactor=Redactor([key]),
        content=True,
    )
    bus.emit(events.UserMessage(key))
    bus.emit(events.TurnStart(1))
    bus.emit(events.Notice("warning", key))
    bus.emit(events.ToolExecutionStart("a", key, {key: key}))
    bus.emit(events.ToolExecutionEnd("a", key, key, False, None, 0.1))
    await trace.aclose()
    text = files.path_of("s").read_text() + "".join(span.to_json() for span in exporter.get_finished_spans())
    assert key not in text
    assert text.count("[redacted: key]") > 10


async def test_another_conversation_is_another_file_and_tree(harness):
    t = Traced(harness, ["one", "two"])
    await t.h.run()
    first = t.session
    t.h.app.new_conversation()
    assert t.h.app.session != first
    await t.h.run()
    await t.trace.aclose()
    for name in (first, t.h.app.session):
        lines = [json.loads(line) for line in t.file.path_of(name).read_text().splitlines()]
        tree, _ = without_times(_tree([_from_file(line) for line in lines]))
        attributes = {"gen_ai.conversation.id": name}
        assert tree == ("session", "internal", attributes, [], [task(name, turn(1, chat(name)))])


async def test_the_files_are_private_and_a_folder_that_fails_is_said_once(harness, tmp_path):
    told = []
    files, bus = TraceFiles(tmp_path / "deep" / "traces", told.append), Bus()
    trace = Trace(bus, [files], session=lambda: "s", model=dict, redactor=Redactor())
    previous = os.umask(0)
    try:
        bus.emit(events.UserMessage("x"))
        await trace.aclose()
    finally:
        os.umask(previous)
    path = files.path_of("s")
    assert [stat.S_IMODE(p.stat().st_mode) for p in (path, path.parent)] == [0o600, 0o700]
    whole = path.read_bytes()
    path.rename(tmp_path / "kept")
    path.mkdir()
    for _ in range(3):
        bus.emit(events.TurnStart(1))
    assert told == [f"The trace cannot be written to {path} (Is a directory); the session goes on."]
    path.rmdir()
    (tmp_path / "kept").rename(path)
    await trace.aclose()
    assert path.read_bytes().startswith(whole + b"\n"), "what was torn ends its line"
    names = [json.loads(line)["name"] for line in path.read_text().splitlines() if line]
    assert names[:2] == ["invoke_agent hypercode", "session"]
    assert names[-2:] == ["invoke_agent hypercode", "session"]


async def test_a_sink_that_fails_ends_with_one_notice_and_the_others_go_on(tmp_path, caplog):
    class Broken:
        def begin(self, span):
            raise KeyError("inside")

        finish = begin

        async def aclose(self):
            raise AssertionError("it is no longer a sink")

    bus, seen = Bus(), []
    bus.on(events.Notice, seen.append)
    files = TraceFiles(tmp_path, pytest.fail)
    trace = Trace(bus, [Broken(), files], session=lambda: "s", model=dict, redactor=Redactor())
    with caplog.at_level(logging.CRITICAL, "hypercode"):
        bus.emit(events.UserMessage("x"))
        await trace.aclose()
    assert seen == [events.Notice("warning", "A trace failed and ends here; the details are in the log.")]
    names = [json.loads(line)["name"] for line in files.path_of("s").read_text().splitlines()]
    assert names == ["invoke_agent hypercode", "session"]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"OTEL_TRACES_EXPORTER": "console"}, "between the answers"),
        ({"OTEL_TRACES_EXPORTER": "zipkinn"}, "no exporter zipkinn"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "smoke"}, "not supported"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "otlp_proto_grpc",
        ),
    ],
)
def test_variables_that_cannot_be_followed_are_said(variables, words):
    with pytest.raises(NotConfigured, match=words):
        open_otel(variables)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
        {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
        {"OTEL_SERVICE_NAME": "x"},
    ],
)
def test_without_an_exporter_nothing_is_sent(variables):
    assert open_otel(variables) is None
