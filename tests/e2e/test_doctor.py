"""`hypercode doctor`: what works, what does not, what to do.

Accounts, bills and servers are fakes on this machine that answer in the documented form; no real account is ever asked.
"""

import itertools
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from chat_terminal import Chat
from list_server import ListServer
from stage import HYPERCODE, answer, call, chunk, text

from hypercode import checkup
from hypercode.config import Config, Folders
from hypercode.doctor_box import Ground, attack, look_at_box
from hypercode.doctor_model import look_at_model
from hypercode.doctor_stream import measure
from hypercode.findings import Finding
from hypercode.llm.settings import ModelSettings
from hypercode.process import child_environment
from hypercode.safety.sandbox import Box, Entered

needs_box = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")


def examined(stage, *options, code=0, **environment):
    done = stage.run("doctor", "--json", *options, **environment)
    assert (done.returncode, done.stderr) == (code, ""), done.stdout
    answer = json.loads(done.stdout)
    assert answer["ok"] is (code == 0)
    return answer["findings"]


def of(findings, area):
    return [(f["level"], f["text"]) for f in findings if f["area"] == area]


def problems(findings):
    assert all(f["todo"] for f in findings if f["level"] != "ok"), "each says what to do"
    return [f["area"] for f in findings if f["level"] == "problem"]


# -- as a whole ------------------------------------------------------------------


@needs_box
def test_where_everything_works(stage):
    found = examined(stage())
    assert [(f["area"], f["level"]) for f in found] == [
        ("version", "ok"),
        ("terminal", "ok"),
        ("configuration", "ok"),
        ("workspace", "ok"),
        ("state", "ok"),
        ("cache", "ok"),
        ("ripgrep", "ok"),
        ("sandbox", "ok"),
        ("sandbox", "ok"),
        ("key", "ok"),
        ("network", "ok"),
        ("model", "ok"),
    ]
    assert "script/s is there" in of(found, "model")[0][1]
    assert "does not keep them from" in of(found, "sandbox")[0][1]
    assert all(f["todo"] == "" for f in found)


def test_the_text_says_the_same(stage):
    s = stage()
    (s.home / "hypercode").mkdir()
    (s.home / "hypercode/config.toml").write_text('colour = "\x1b[31m"\n')
    done = s.run("doctor")
    assert done.returncode == 1
    assert re.search(r"^ok       version        hypercode [0-9.]+ on CPython", done.stdout)
    assert re.search(r"^problem  configuration  .*config\.toml.*\n {24}to do: ", done.stdout, re.M)
    assert done.stdout.endswith("\nSomething that is needed is broken.\n")
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("columns", [80, 40])
def test_on_a_terminal_no_word_is_cut(stage, columns):
    s = stage()
    nobody = {"HYPERCODE_BASE_URL": "", "HYPERCODE_API_KEY": ""}
    piped = [line for line in s.run("doctor", **nobody).stdout.splitlines() if not line.startswith("ok       terminal")]
    with Chat(s, "doctor", columns=columns, rows=200, **nobody) as terminal:
        assert terminal.finish() == 1
        drawn = [line for line in terminal.lines if line]
    at = next(n for n, line in enumerate(drawn) if line.startswith("ok       terminal"))
    ends = next(n for n, line in enumerate(drawn) if n > at and not line.startswith(" "))
    del drawn[at:ends]
    assert "".join("".join(drawn).split()) == "".join("".join(piped).split()), "the same is said"
    words = {word for line in piped for word in line.split() if len(word) <= 36}
    assert words <= {word for line in drawn for word in line.split()}
    below = 24 if columns == 80 else 2
    assert {len(line) - len(line.lstrip()) for line in drawn} == {0, below}


def test_no_key_is_a_problem_and_nobody_is_asked(stage):
    started = time.monotonic()
    found = examined(stage(), code=1, HYPERCODE_BASE_URL="", HYPERCODE_API_KEY="")
    assert problems(found) == ["key"]
    assert of(found, "key") == [("problem", "There is no key for https://openrouter.ai/api/v1.")]
    assert of(found, "network") == []
    assert time.monotonic() - started < 30


def test_a_server_on_this_machine_needs_no_key(stage):
    assert "needs no key" in of(examined(stage(), HYPERCODE_API_KEY=""), "key")[0][1]


def test_nothing_listens(stage):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = examined(stage(), code=1, HYPERCODE_BASE_URL=f"http://127.0.0.1:{port}/v1")
    assert problems(found) == ["network"]


# -- configuration and folders ------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"model = ", "is not valid TOML"),
        (b"\xff\xfe", "is not UTF-8"),
        (b'modell = "x"', "did you mean 'model'"),
        (b'mode = "yolo"', "must be one of"),
        (b'allow = ["$(x"]', "allow"),
        (b'add_dirs = ["/no/such/folder"]', "is not a folder"),
        (b'base_url = "ftp://x"', "is not an http(s) URL"),
    ],
)
def test_a_broken_configuration_is_a_finding_and_no_key_is_sent_anywhere(stage, content, words):
    s = stage()
    (s.home / "hypercode").mkdir()
    (s.home / "hypercode/config.toml").write_bytes(content)
    with ListServer({"/models": {"data": []}}) as server:
        base_url = {} if b"base_url" not in content else {"HYPERCODE_BASE_URL": ""}
        found = examined(s, code=1, **({"HYPERCODE_BASE_URL": server.base_url} | base_url))
        assert server.asked == []
    assert problems(found) == ["configuration"]
    assert words in of(found, "configuration")[0][1]
    assert of(found, "key") == [
        ("warning", "Key and model were not looked at, because the configuration cannot be used.")
    ]
    assert of(found, "version")[0][0] == "ok"


def test_a_key_that_others_can_read_is_told(stage):
    s = stage()
    file = s.home / "hypercode/config.toml"
    file.parent.mkdir()
    file.write_text('api_key = "sk-kept-in-the-file"\n')
    file.chmod(0o644)
    done = s.run("doctor", "--json")
    found = json.loads(done.stdout)["findings"]
    assert of(found, "configuration") == [("warning", f"{file} can be read, with the key in it, by others.")]
    assert "sk-kept" not in done.stdout
    file.chmod(0o600)
    assert of(examined(s), "configuration") == [("ok", f"{file} is as it should be.")]


def test_what_a_project_brings_untrusted_is_told(stage):
    s = stage()
    (s.workspace / ".hypercode").mkdir()
    (s.workspace / ".hypercode/config.toml").write_text('model = "x"\n')
    [(level, told)] = of(examined(s), "configuration")[:1]
    assert (level, "not trusted" in told) == ("warning", True)


def test_folders_that_cannot_be_used(stage):
    s = stage()
    (s.home / "hypercode").mkdir()
    (s.home / "hypercode/state").write_text("a file in its place")
    (s.home / "hypercode/cache").mkdir()
    (s.home / "hypercode/cache").chmod(0o755)
    found = examined(s, code=1)
    assert problems(found) == ["state"]
    assert [f["level"] for f in found if f["area"] == "cache"] == ["ok"], "it is closed to others by looking"
    assert stat.S_IMODE((s.home / "hypercode/cache").stat().st_mode) == 0o700


def test_a_folder_that_is_none(stage):
    found = examined(stage(), "--cwd", "/no/such/folder", code=1)
    assert "/no/such/folder is not a folder" in of(found, "configuration")[0][1]


async def test_without_ripgrep(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    finding = await checkup._ripgrep({"PATH": str(tmp_path)})
    assert (finding.level, "grep and glob do not work" in finding.text) == ("problem", True)
    (tmp_path / "rg").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "rg").chmod(0o755)
    finding = await checkup._ripgrep({"PATH": str(tmp_path)})
    assert (finding.level, "exit code 3" in finding.text) == ("problem", True)


# -- the terminal -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "size", "level", "words"),
    [
        ({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}, (24, 80), "ok", "256 colours, utf8, 80 × 24"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}, (24, 80), "ok", "24-bit colours"),
        ({"TERM": "xterm", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}, (24, 80), "ok", "no colours"),
        ({"TERM": "dumb", "LC_ALL": "C.UTF-8"}, (24, 80), "warning", "plain lines"),
        ({"TERM": "xterm", "LC_ALL": "C.UTF-8"}, (6, 30), "warning", "30 × 6"),
        ({"TERM": "xterm", "PYTHONIOENCODING": "latin-1"}, (24, 80), "warning", "not UTF-8"),
    ],
)
def test_what_the_terminal_can_do(stage, environment, size, level, words):
    s = stage()
    kept = {k: v for k, v in s.environment().items() if k not in ("NO_COLOR", "COLORTERM", "FORCE_COLOR")}
    child = pexpect.spawn(
        HYPERCODE,
        ["doctor"],
        cwd=str(s.workspace),
        env=kept | environment,
        dimensions=size,
        encoding="latin-1",
        timeout=60,
    )
    child.expect(pexpect.EOF)
    child.close()
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    lines = child.before.encode("latin-1").decode(encoding).splitlines()
    begun = next(n for n, line in enumerate(lines) if line.split()[1:2] == ["terminal"])
    below = itertools.takewhile(lambda line: line.startswith(" "), lines[begun + 1 :])
    assert lines[begun].split()[0] == level
    assert words in " ".join(" ".join([lines[begun], *below]).split())
    assert "\x1b" not in child.before


# -- key and model -------------------------------------------------------------------

KEY = {"data": {"label": "k", "usage": 1.5, "limit_remaining": None, "is_free_tier": False}}
LIST = {"data": [{"id": "a/b", "context_length": 8192, "supported_parameters": ["tools"]}, {"id": "a/c"}]}


async def looked(tmp_path, answers, model="a/b", **options):
    with ListServer({"/models": LIST} | answers) as server:
        settings = ModelSettings(base_url=server.base_url, api_key="sk-test-not-a-key", model=model, connect_timeout=5)
        found = await look_at_model(settings, tmp_path, **options)
        assert not any("sk-test" in f.text + f.todo for f in found)
        return [(f.area, f.level, f.text) for f in found], server


@pytest.mark.parametrize(
    ("key", "credits", "level", "text"),
    [
        (KEY, {"data": {"total_credits": 10, "total_usage": 2.25}}, "ok",
         "The key is accepted; 1.50 USD used with it; 7.75 USD of credits left."),
        (KEY, (403, {"error": {"code": 403, "message": "Only management keys"}}), "ok",
         "The key is accepted; 1.50 USD used with it."),
        ({"data": {"usage": 0, "limit_remaining": 4.5, "is_free_tier": True}}, {"data": {}}, "ok",
         "The key is accepted; 0.00 USD used with it; 4.50 USD of its limit left; free tier (free models: 20 requests a "
         "minute, 50 a day until credits have been bought)."),
        ({"data": {"usage": 5, "limit_remaining": 0}}, {"data": {}}, "warning",
         "The key is accepted; 5.00 USD used with it; 0.00 USD of its limit left."),
        (KEY, {"data": {"total_credits": 5, "total_usage": 5.5}}, "warning",
         "The key is accepted; 1.50 USD used with it; -0.50 USD of credits left."),
        ({"data": ["odd"]}, {"data": {"total_credits": "many", "total_usage": True}}, "ok", "The key is accepted."),
    ],
)  # fmt: skip
async def test_the_account(tmp_path, key, credits, level, text):
    found, server = await looked(tmp_path, {"/key": key, "/credits": credits}, account=True)
    assert found == [
        ("key", level, text),
        ("network", "ok", f"127.0.0.1:{server.http.server_address[1]} answers and lists 2 models."),
        ("model", "ok", "a/b is there, 8,192 tokens of context; can use tools."),
    ]
    assert sorted(server.asked) == ["/credits", "/key", "/models"]
    assert set(server.keys) == {"Bearer sk-test-not-a-key"}


async def test_the_account_is_asked_for_at_openrouter_only(tmp_path):
    _, server = await looked(tmp_path, {"/key": KEY, "/credits": KEY})
    assert server.asked == ["/models"]


async def test_a_key_that_is_refused(tmp_path):
    no = (401, {"error": {"code": 401, "message": "User not found: sk-test-not-a-key"}})
    found, _ = await looked(tmp_path, {"/key": no}, account=True)
    assert [(area, level) for area, level, _ in found] == [("key", "problem"), ("network", "ok"), ("model", "ok")]
    found, _ = await looked(tmp_path, {"/models": no})
    assert [(area, level) for area, level, _ in found] == [("key", "problem")], "although a list was kept"


async def test_a_silent_server_is_given_up(tmp_path):
    started = time.monotonic()
    found, _ = await looked(tmp_path, {"/models": None, "/key": None}, account=True, seconds=0.3)
    assert [(area, level) for area, level, _ in found] == [("key", "problem"), ("network", "problem")]
    assert "did not answer within 0.3 s" in found[0][2]
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("answers", "model", "wanted"),
    [
        ({}, "a/nope", ("model", "warning", "The server does not list a/nope.")),
        ({"/models": {"data": [{"id": "a/b", "supported_parameters": []}]}}, "a/b",
         ("model", "problem", "a/b cannot use tools.")),
        ({}, "a/c", ("model", "ok", "a/c is there; the server does not say whether it can use tools.")),
        ({"/models": {"data": [{"id": "x/y"}, 7]}}, "x/y",
         ("network", "warning", "1 entries of the model list could not be understood and are left out.")),
    ],
)  # fmt: skip
async def test_the_model(tmp_path, answers, model, wanted):
    found, _ = await looked(tmp_path, answers, model)
    assert wanted in found


async def test_a_server_without_a_list_may_have_the_model(tmp_path):
    found, _ = await looked(tmp_path, {"/models": (404, {"error": {"message": "no such thing"}})})
    assert [(area, level) for area, level, _ in found] == [("model", "warning")]


def test_ways_that_come_one_a_line_are_one_line():
    finding = Finding("model", "problem", "text", "With uv: uv sync\n  With pip: pip install x\n")
    assert finding == Finding("model", "problem", "text", "With uv: uv sync · With pip: pip install x")


# -- the workspace -----------------------------------------------------------------


@needs_box
@pytest.mark.parametrize(("mode", "level", "code"), [("ask", "problem", 1), ("plan", "warning", 0)])
def test_a_folder_on_a_disk_that_cannot_be_written(stage, mode, level, code):
    s = stage()
    read_only = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", s.workspace, s.workspace]
    words = [*read_only, HYPERCODE, "doctor", "--json", "--no-sandbox", "--mode", mode]
    done = subprocess.run(words, cwd=s.workspace, env=s.environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (code, ""), done.stdout
    (found,) = [f for f in json.loads(done.stdout)["findings"] if f["area"] == "workspace"]
    text = f"{s.workspace} cannot be written (its file system is read-only): edits and commands that make files fail."
    assert (found["level"], found["text"]) == (level, text)
    assert "Mount it for writing, or work in a copy: --cwd FOLDER." in found["todo"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize(("mode", "said"), [(0o500, "cannot be written (its mode"), (0o300, "cannot be read")])
def test_a_folder_whose_mode_is_against_it(stage, mode, said):
    s = stage()
    s.workspace.chmod(mode)
    try:
        (found,) = [f for f in examined(s, "--no-sandbox", code=1) if f["area"] == "workspace"]
    finally:
        s.workspace.chmod(0o700)
    assert (found["level"], said in found["text"], "chmod u+" in found["todo"]) == ("problem", True, True)
    assert list(s.workspace.iterdir()) == []


# -- the sandbox -------------------------------------------------------------------

HELD = [
    "the folder can be written",
    "a write outside is refused",
    "a secret is hidden",
    "the network is off",
    ".git is read-only",
    "no process lives on",
]


async def attacked(box_of):
    with Ground.laid() as ground:
        environment = child_environment({**os.environ, "HOME": str(ground.home)}, temp=ground.policy.temp)
        return await attack(box_of(ground.policy, environment), ground, environment), ground.base


@needs_box
async def test_the_box_holds_and_the_ground_is_gone():
    result, base = await attacked(Box.probe)
    assert result == (HELD, [])
    assert not base.exists()


async def test_the_attacks_get_through_where_there_is_no_box():
    """Only what the supervisor of processes does holds there, so the attacks can fail."""
    (held, through), _ = await attacked(lambda policy, environment: Box.none(policy, ""))
    assert (held, through) == ([HELD[0], HELD[5]], HELD[1:5])


@needs_box
@pytest.mark.parametrize(("mode", "level"), [("ask", "warning"), ("auto", "problem")])
async def test_without_bubblewrap(monkeypatch, mode, level):
    monkeypatch.setattr("hypercode.safety.sandbox.find_bwrap", lambda path, policy: None)
    [finding] = await look_at_box(Config(mode=mode), {"PATH": "/usr/bin:/bin"})
    assert (finding.level, finding.text.startswith("Sandbox: none — every command asks.")) == (level, True)
    assert "bubblewrap 0.8" in finding.todo


@pytest.mark.skipif(
    Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").exists(), reason="AppArmor has advice of its own"
)
async def test_bubblewrap_without_namespaces_needs_no_installing(monkeypatch, tmp_path):
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace, likely' >&2\nexit 1\n")
    bwrap.chmod(0o755)
    monkeypatch.setattr("hypercode.safety.sandbox.find_bwrap", lambda path, policy: str(bwrap))
    [finding] = await look_at_box(Config(), {"PATH": "/usr/bin:/bin"})
    assert "This system does not let bubblewrap make namespaces (bwrap: No permissions" in finding.text
    assert finding.todo.startswith("Allow user namespaces: ")


async def test_bubblewrap_in_a_container_that_hides_parts_of_proc_needs_no_installing(monkeypatch, tmp_path):
    bwrap = tmp_path / "bwrap"
    bwrap.write_text(
        '#!/bin/sh\necho "bwrap: Can\'t mount proc on /newroot/proc: Operation not permitted" >&2\nexit 1\n'
    )
    bwrap.chmod(0o755)
    monkeypatch.setattr("hypercode.safety.sandbox.find_bwrap", lambda path, policy: str(bwrap))
    [finding] = await look_at_box(Config(), {"PATH": "/usr/bin:/bin"})
    assert "Parts of /proc are hidden here" in finding.text
    assert "(bwrap: Can't mount proc on /newroot/proc: Operation not permitted)" in finding.text
    assert "--security-opt unmask=ALL" in finding.todo
    assert "Install" not in finding.todo


@needs_box
async def test_a_box_that_does_not_hold_is_a_problem(monkeypatch):
    monkeypatch.setattr(Box, "wrap", lambda self, argv, *rest, **more: Entered(list(argv)))
    found = await look_at_box(Config(), {"PATH": "/usr/bin:/bin"})
    assert [f.level for f in found] == ["ok", "problem"]
    assert "a secret is hidden" in found[1].text


async def test_the_sandbox_switched_off():
    [finding] = await look_at_box(Config(sandbox=False), {})
    assert (finding.level, finding.text) == ("warning", "Sandbox: off — commands run with all your rights.")


# -- a stream ----------------------------------------------------------------------


def slowly(*deltas, finish, pause=15):
    """One reply, a delta at a time."""
    segments = [{"bytes": chunk(delta), "delay_ms": pause} for delta in deltas]
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "cost": 0.000125}
    return answer(finish=finish) | {
        "segments": [*segments, {"bytes": chunk({}, finish, usage=usage) + "data: [DONE]\n\n"}],
    }


def pieces(arguments):
    return [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in arguments]


NOTE = [
    {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "note", "arguments": ""}}]},
    *pieces(['{"text', '": "ships', " and more", '"}']),
]


async def measured(stage, *answers, **options):
    s = stage(*answers)
    settings = ModelSettings(base_url=s.server.base_url, api_key="k", model="script/s")
    return [(f.level, f.text) for f in await measure(settings, **options)], s


async def test_a_steady_stream(stage):
    sea = [text(f"word{n} ") for n in range(10)]
    found, s = await measured(stage, slowly(*sea, *NOTE, finish="tool_calls"))
    first, banner, steady, own, bill = (told for _, told in found)
    assert re.fullmatch(r"First sign after \d+\.\d\d s \(promise: 10 s\)\.", first)
    lead = re.match(r"The tool was named (\d+) ms before its call was whole", banner)
    assert int(lead[1]) >= 30, "four pieces, 15 ms each"
    assert re.match(r"\d+ pieces, \d+ ms apart, \d+\.\d\d s at most \(promise: 3 s\)\.", steady)
    assert re.search(r"own share: \d+\.\d ms at most .* \(promise: 50 ms\)\.", own)
    assert bill == "Answered by demo/m; billed: 0.000125 USD."
    assert [level for level, _ in found[:3]] == ["ok"] * 3
    [request] = s.requests()
    assert [tool["function"]["name"] for tool in request["tools"]] == ["note"]
    assert request["max_tokens"] == 1000


@pytest.mark.parametrize(
    ("cassette", "words"),
    [
        (slowly(*[text(f"{n} ") for n in range(9)], finish="stop"), "did not call the tool"),
        (
            slowly(*[text(f"{n} ") for n in range(9)], call("note", {"text": "x"}, "c"), finish="tool_calls"),
            "in one piece",
        ),
        (slowly(*[text(f"{n} ") for n in range(9)], *NOTE, finish="tool_calls", pause=0), "came all at once"),
    ],
)
async def test_what_is_less_than_promised_is_a_warning(stage, cassette, words):
    if cassette["segments"][0].get("delay_ms") == 0:
        cassette = cassette | {"segments": [{"bytes": "".join(part["bytes"] for part in cassette["segments"])}]}
    found, _ = await measured(stage, cassette)
    assert [level for level, told in found if words in told] == ["warning"]


@pytest.mark.parametrize(
    ("cassette", "words"),
    [
        (answer(text("half "), close="abort"), "1 pieces had come"),
        (answer(), "answered with nothing"),
        (answer(text("half "), close="hang"), "not over after 1 s"),
    ],
)
async def test_a_stream_that_fails_is_a_problem(stage, cassette, words):
    found, _ = await measured(stage, cassette, seconds=1 if "1 s" in words else 30)
    [(level, told)] = found
    assert (level, words in told) == ("problem", True), told


def test_the_stream_is_measured_only_when_asked_for(stage):
    s = stage(slowly(*[text(f"{n} ") for n in range(9)], *NOTE, finish="tool_calls"))
    assert of(examined(s), "stream") == []
    assert s.requests() == []
    assert len(of(examined(s, "--stream"), "stream")) == 5
    assert len(s.requests()) == 1


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder in which nobody can make one")
def test_the_sandbox_is_tried_with_the_folders_of_a_session(stage):
    found = examined(stage(), code=1, HYPERCODE_HOME="/proc/hypercode")
    (box,) = [f for f in found if f["area"] == "sandbox"]
    why = "It needs /proc/hypercode, which cannot be made (No such file or directory); HYPERCODE_HOME names another place."
    assert (box["level"], box["text"]) == ("warning", f"Sandbox: none — every command asks. {why}")
    assert box["todo"].startswith("Make that folder one that you can write to")


@needs_box
async def test_the_temporary_folder_of_a_session_is_used_and_left_as_it_was(tmp_path):
    folders = Folders.of({"HYPERCODE_HOME": str(tmp_path)})
    found = await look_at_box(Config(), {"PATH": os.environ["PATH"]}, folders)
    assert [f.level for f in found] == ["ok", "ok"]
    assert list((tmp_path / "cache/temp").iterdir()) == []


@needs_box
@pytest.mark.parametrize("place", ["a.txt", "new.txt", "folder/new.txt"])
def test_a_change_on_a_disk_that_cannot_be_written_says_so(stage, place):
    """What the doctor says of the folder is what the model is told of a file in it."""
    edits = [{"old": "a", "new": "b"}]
    change = (
        ("edit", {"path": place, "edits": edits}) if place == "a.txt" else ("write", {"path": place, "content": "b"})
    )
    s = stage(
        answer(call("read", {"path": "a.txt"}, "c1", 0), call(*change, "c2", 1)),
        answer(text("done")),
    )
    (s.workspace / "a.txt").write_text("a\n")
    words = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", s.workspace, s.workspace, HYPERCODE]
    words += ["run", "go", "--no-sandbox", "--mode", "edits", "--output", "jsonl"]
    done = subprocess.run(words, cwd=s.workspace, env=s.environment(), capture_output=True, text=True, timeout=60)
    ends = [e for e in map(json.loads, done.stdout.splitlines()) if e["type"] == "tool_execution_end"]
    (said,) = [e["output"] for e in ends if e["call_id"] == "c2"]
    assert said.endswith(f"the folder {s.workspace} is not writable: its file system is read-only")
    assert said.startswith("io: ")
