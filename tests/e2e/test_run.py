"""`hypercode run` from outside: stdout, stderr, exit codes, requests."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from hypercode import __version__
from hypercode.cli import COMMANDS
from hypercode.events import SCHEMA_VERSION

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))
from chat_terminal import Chat
from stage import HYPERCODE, answer, call, text

needs_box = pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "cost": 0.25}


def test_the_answer_is_all_of_stdout(stage):
    s = stage(answer(text("Hello "), text("**world** 中文\x1b[2J")))
    done = s.run("run", "hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello **world** 中文␛[2J\n", "")


def test_tools_are_banners_on_stderr_and_results_go_back(stage):
    s = stage(answer(text("Looking. "), call("read", {"path": "n.md"}, "c1")), answer(text("Two lines.")))
    (s.workspace / "n.md").write_text("alpha\nbeta\n")
    done = s.run("run", "what", "is", "in", "n.md?")
    assert (done.returncode, done.stdout) == (0, "Looking. \n\nTwo lines.\n")
    assert done.stderr == "→ read n.md\n"
    first, second = s.requests()
    assert first["messages"][-1] == {"role": "user", "content": "what is in n.md?"}
    assert (first["stream"], sorted(t["function"]["name"] for t in first["tools"])) == (
        True,
        ["bash", "edit", "glob", "grep", "ls", "read", "write"],
    )
    result = second["messages"][-1]
    assert (result["role"], result["tool_call_id"]) == ("tool", "c1")
    assert "beta" in result["content"]


def test_on_a_terminal_what_is_said_beside_the_answer_is_wrapped_between_words(stage):
    refusal = {"error": {"code": 400, "message": "the words of this message are many, " * 4 + "and then it ends"}}
    refused = {**answer(), "http": {"status": 400, "headers": {}}, "framing": "length"}
    refused["segments"] = [{"bytes": json.dumps(refusal)}]
    pattern = "several words  that the banner of the call shows"
    s = stage(answer(call("grep", {"pattern": pattern}, "c1")), refused)
    with Chat(s, "run", "look", columns=40) as terminal:
        assert terminal.finish() == 1
        drawn = terminal.lines
    assert drawn[:2] == ["→ grep several words  that the banner of", "  the call shows"]
    begun = next(n for n, line in enumerate(drawn) if line.startswith("error: "))
    message = drawn[begun:]
    assert " ".join(line.strip() for line in message).endswith(
        f" (400): {refusal['error']['message']}. Pick another model (/model or -m); with --debug the log has an outline of"
        " the request."
    )
    assert len(message) > 3
    assert {line[:2] for line in message[1:]} == {"  "}


def test_json_is_one_object(stage):
    s = stage(answer(call("ls", {}, "c1"), usage=USAGE), answer(text("done"), usage=USAGE))
    done = s.run("run", "go", "--output", "json")
    got = json.loads(done.stdout)
    assert got.pop("session")
    assert got == {
        "text": "done",
        "outcome": "complete",
        "turns": 2,
        "usage": {"prompt_tokens": 14, "completion_tokens": 6, "total_tokens": 20, "cost": 0.5},
        "cost": 0.5,
        "model": "script/s",
        "refused": 0,
        "error": None,
    }


def test_json_lines_follow_the_schema(stage):
    s = stage(answer(text("a"), call("ls", {}, "c1")), answer(text("b")))
    lines = [json.loads(line) for line in s.run("run", "go", "--output", "jsonl").stdout.splitlines()]
    schema = json.loads(s.run("run", "--schema").stdout)
    assert schema["version"] == SCHEMA_VERSION
    for line in lines:
        assert list(line) == list(schema["events"][line["type"]]["fields"]), line
    assert [line["type"] for line in lines] == [
        *["session_start", "user_message", "turn_start", "text_delta", "tool_call_start", "tool_call_delta"],
        *["assistant_message", "tool_execution_start", "tool_execution_end", "turn_end"],
        *["turn_start", "text_delta", "assistant_message", "turn_end", "session_end"],
    ]
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    assert (lines[0]["version"], lines[0]["cwd"]) == (__version__, str(s.workspace))
    assert (lines[-1]["exit_code"], lines[-1]["outcome"], lines[-1]["turns"]) == (0, "complete", 2)


@pytest.mark.parametrize(
    ("answers", "arguments", "code", "words"),
    [
        ([answer(text("half"), finish="length")], [], 4, "cut by its length limit"),
        ([answer(text("half"), finish="content_filter")], [], 4, "cut by the provider's content filter"),
        ([answer(text("half"), close="abort")], [], 4, "error:"),
        ([answer(call("ls", {}, "c"))] * 3, ["--max-turns", "2"], 3, "limit of 2 turns"),
        ([answer(call("bash", {"command": "touch x"}, "c")), answer(text("ok"))], [], 5, "--allow 'touch'"),
        ([answer(call("write", {"path": "x", "content": "y"}, "c")), answer(text("ok"))], [], 5, "--mode edits"),
        ([], [], 1, "error:"),
    ],
)
def test_exit_codes(stage, answers, arguments, code, words):
    s = stage(*answers)
    done = s.run("run", "go", *arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (s.workspace / "x").exists()
    if "half" in str(answers):
        assert done.stdout == "half\n"


def test_nothing_is_said_twice(stage):
    two = call("write", {"path": "x", "content": "y"}, "c1"), call("write", {"path": "y", "content": "y"}, "c2", 1)
    s = stage(answer(*two), answer(call("read", {"path": "nope"}, "c3")))
    done = s.run("run", "go", "--max-turns", "2")
    assert (done.returncode, done.stdout) == (3, "")
    said = done.stderr.splitlines()
    assert [line.partition(" ")[0] for line in said] == ["→", "warning:", "→", "warning:", "→", "", "warning:"]
    assert said[0] == "→ write x content=y"
    assert said[1].startswith("warning: Refused for want of a person: write 'x' ")
    assert said[2] == "→ write y content=y"
    assert said[5].startswith("  ✗ missing_file: ")
    assert "limit" in said[6]


def test_a_limit_is_said_once_beside_an_object(stage):
    done = stage(answer(call("ls", {}, "c1"))).run("run", "go", "--max-turns", "1", "--output", "json")
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (3, "limit")
    assert done.stderr == f"warning: {json.loads(done.stdout)['error']['message']}\n"


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        (["run"], {}, "there is no task"),
        (["run", "x", "--output", "xml"], {}, "--output"),
        (["run", "x", "--frobnicate"], {}, "--frobnicate"),
        (["run", "x", "--mode", "yolo"], {}, "--mode: must be one of"),
        (["run", "x", "--max-turns", "0"], {}, "at least 1"),
        (["run", "x", "--cwd", "/nowhere/at/all"], {}, "not a folder"),
        (["run", "x", "--profile", "p"], {}, "no profile 'p'"),
        (["run", "x", "--base-url", "ftp://x"], {}, "not an http(s) URL"),
        (["run", "x", "--base-url", "http://[bad"], {}, "not an http(s) URL"),
        (["run", "x", "--base-url", "http://a b/"], {}, "not an http(s) URL"),
        (["run", "x", "--allow", ""], {}, "allow"),
        (["runn"], {}, "hypercode run 'runn'"),
        (
            ["run", "x"],
            {"HYPERCODE_BASE_URL": "https://far.invalid/v1", "HYPERCODE_API_KEY": ""},
            "hypercode/config.toml: api_key: there is no key for https://far.invalid/v1: export HYPERCODE_API_KEY=",
        ),
        (["run", "x"], {"HYPERCODE_BASE_URL": "http://far.invalid/v1"}, "plain http"),
    ],
)
def test_wrong_use_is_one_clear_message(stage, arguments, environment, words):
    s = stage(answer(text("never")))
    done = s.run(*arguments, **environment)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert s.requests() == []


@pytest.mark.parametrize("box", [pytest.param([], marks=needs_box), ["--no-sandbox"]])
def test_a_search_that_nobody_was_asked_about_finds_no_secrets(stage, box):
    s = stage(answer(call("bash", {"command": "grep -rn zzkey ."}, "c")), answer(text("done")))
    (s.workspace / ".env").write_text("A=zzkey1\n")
    (s.workspace / "a.txt").write_text("zzkey is in .env\n")
    done = s.run("run", "go", *box)
    result = s.requests()[1]["messages"][-1]["content"]
    if box:
        assert (done.returncode, "it may show secrets (.env)" in result) == (5, True)
        assert "it may show secrets (.env), and there is no sandbox to hide them" in done.stderr
    else:
        assert (done.returncode, result) == (0, "./a.txt:1:zzkey is in .env")


@needs_box
def test_auto_runs_inside_the_sandbox(stage):
    command = "touch inside; touch ../outside; echo $TMPDIR; touch /tmp/x && ls /tmp"
    s = stage(answer(call("bash", {"command": command}, "c")), answer(text("ok")))
    done = s.run("run", "x", "--mode", "auto")
    assert done.returncode == 0, done.stderr
    assert (s.workspace / "inside").exists()
    assert not (s.home / "outside").exists()
    assert not os.path.exists("/tmp/x")
    assert list((s.home / "hypercode/cache/temp").iterdir()) == [], "the session's temporary folder goes with it"


@needs_box
def test_an_approved_commit_may_write_the_repository(stage):
    commit = "git commit -q --allow-empty -m x && git log --oneline | wc -l"
    s = stage(*[answer(call("bash", {"command": commit}, "c")), answer(text("ok"))] * 2)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x.invalid"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], cwd=s.workspace, check=True, env=s.environment())
    for key, value in (("user.name", "x"), ("user.email", "x@x.invalid")):
        subprocess.run(["git", "config", key, value], cwd=s.workspace, check=True)
    s.run("run", "x", "--mode", "auto")
    assert "exit code" in s.requests()[1]["messages"][-1]["content"], "unasked, .git is read-only"
    s.run("run", "x", "--mode", "auto", "--allow", "git commit")
    assert s.requests()[3]["messages"][-1]["content"].strip() == "2"


def test_a_typo_in_the_configuration_names_file_and_key(stage):
    s = stage(answer(text("never")))
    file = s.home / "hypercode/config.toml"
    file.parent.mkdir()
    file.write_text('modell = "x"\n')
    done = s.run("run", "x")
    assert (done.returncode, done.stderr) == (
        2,
        f"hypercode: {file}: modell: there is no such setting; did you mean 'model' or 'models'?\n",
    )


def test_a_missing_key_is_one_line_with_file_and_key(stage):
    done = stage().run("run", "x", HYPERCODE_BASE_URL="", HYPERCODE_API_KEY="")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "hypercode/config.toml: api_key: there is no key for https://openrouter.ai/api/v1" in line
    assert "export OPENROUTER_API_KEY=…" in line
    assert "--local" in line


def test_stdin(stage):
    s = stage(*[answer(text("ok"))] * 4)
    s.run("run", "-", stdin="the task")
    s.run("run", "explain", stdin="PIPED")
    s.run("a first message", stdin="")
    s.run("-m", "script/s", "run", "--", "--max-turns=x")
    said = [r["messages"][-1]["content"] for r in s.requests()]
    assert said == ["the task", "explain\n\n<stdin>\nPIPED\n</stdin>", "a first message", "--max-turns=x"]


def test_a_key_goes_to_its_server_alone(stage):
    s = stage(answer(text("ok")))
    done = s.run("run", "x", OPENROUTER_API_KEY="sk-or-secret", HYPERCODE_API_KEY="")
    assert done.returncode == 0, "a server on this machine needs no key"
    assert "sk-or-secret" not in json.dumps(s.server.requests)


def test_no_key_in_a_child(stage):
    s = stage(answer(call("bash", {"command": "env"}, "c")), answer(text("ok")))
    s.run("run", "x", "--mode", "auto", "--no-sandbox", OPENROUTER_API_KEY="sk-or-secret")
    shown = s.requests()[1]["messages"][-1]["content"]
    assert "PATH=" in shown
    assert "sk-or-secret" not in shown
    assert "sk-test-not-a-key" not in shown


def test_a_closed_pipe_is_quiet(stage):
    s = stage(answer(*[text("word " * 100)] * 200))
    shell = f"{HYPERCODE} run go 2>err | head -c 1; cat err; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", shell], cwd=s.workspace, env=s.environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.removeprefix("w").strip() in ("", "0"), done.stdout


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_stop_the_run_and_its_children(stage, number, code):
    command = "echo started > started; sleep 307"
    s = stage(answer(text("begun"), call("bash", {"command": command}, "c")))
    process = subprocess.Popen(
        [HYPERCODE, "run", "go", "--output", "jsonl", "--mode", "auto", "--no-sandbox"],
        cwd=s.workspace,
        env=s.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not (s.workspace / "started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    lines = [json.loads(line) for line in process.communicate(timeout=20)[0].splitlines()]
    assert process.returncode == code
    assert (lines[-1]["type"], lines[-1]["outcome"], lines[-1]["exit_code"]) == ("session_end", "aborted", code)
    assert lines[-2]["outcome"] == "aborted"
    running = subprocess.run(["pgrep", "-f", "^sleep 307"], capture_output=True, text=True).stdout
    assert running == ""


def test_debug_says_where_the_log_is(stage):
    done = stage(answer(text("ok"))).run("run", "x", "--debug")
    path = Path(done.stderr.splitlines()[0].removeprefix("log: "))
    assert path.stat().st_mode & 0o777 == 0o600
    assert "sk-test-not-a-key" not in path.read_text()
    assert "TurnEnd" in path.read_text()
    assert " DEBUG request: model=" in path.read_text()


def test_without_a_place_for_its_own_files_it_says_what_it_lacks(stage):
    s = stage(answer(text("zzanswer")))
    (s.home / "hypercode").mkdir()
    (s.home / "hypercode/cache").write_text("a file")
    (s.home / "hypercode/state").write_text("a file")
    lacks = f"It needs {s.home}/hypercode/cache"
    done = s.run("run", "x", "--mode", "auto")
    assert (done.returncode, done.stdout) == (2, "")
    assert lacks in done.stderr
    assert "HYPERCODE_HOME names another place" in done.stderr
    done = s.run("run", "x", "--debug")
    assert (done.returncode, done.stdout) == (0, "zzanswer\n")
    assert done.stderr.startswith(f"log: none, {s.home}/hypercode/state/logs/")


def test_config_commands(stage):
    s = stage()
    assert s.run("config", "path").stdout.splitlines()[0] == f"configuration {s.home}/hypercode/config.toml"
    made = s.run("config", "init")
    path = Path(made.stdout.strip())
    assert path.stat().st_mode & 0o777 == 0o600
    example = path.read_text()
    path.write_text('api_key = "sk-pasted-by-somebody"\n')
    again = s.run("config", "init")
    assert (again.returncode, again.stdout) == (2, "")
    assert f"{path}: exists already" in again.stderr
    assert "`hypercode config init --stdout` prints every setting" in again.stderr
    assert s.run("config", "init", "--stdout").stdout == example
    assert path.read_text() == 'api_key = "sk-pasted-by-somebody"\n'
    shown = s.run("config", "show").stdout.splitlines()
    assert f'base_url = "{s.server.base_url}"   # HYPERCODE_BASE_URL' in shown
    assert "max_turns = 50   # default" in shown
    assert "# max_cost =   # default" in shown
    assert f"# api_key = (set, not shown)   # {path}" in shown


def test_what_config_shows_is_a_configuration(stage):
    s = stage()
    text = """
        max_cost = 1e-5
        sandbox = false
        allow = ["git log", 'echo "x"', "odd \\u0007\\u007f\\U000e0001 \\\\ 中"]
        provider = {order = ["a b"], "odd key" = {x = 1.5, y = true}, "ü" = 3}
        headers = {Authorization = "Bearer abcdefghijklmnopqrstuvwxyz0123456789"}
        [profiles.near]
        base_url = "http://127.0.0.1:8080/v1"
        """
    path = s.home / "hypercode/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    shown = s.run("config").stdout
    written, read = tomllib.loads(text), tomllib.loads(shown)
    assert written.pop("headers")
    assert {key: read[key] for key in written} == written
    assert [line[:11] for line in shown.splitlines() if "headers" in line] == ["# headers ="], (
        "not whole, not to be copied"
    )
    path.write_text(shown)
    again = tomllib.loads(s.run("config", "show").stdout)
    assert {**again, "headers": None} == {**read, "headers": None}


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing keeps root from writing")
def test_a_configuration_that_cannot_be_written(stage):
    s = stage()
    (s.home / "hypercode").mkdir(mode=0o500)
    done = s.run("config", "init")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be written (Permission denied); `hypercode config init --stdout`" in done.stderr


@pytest.mark.parametrize(
    ("home", "folder", "why"),
    [
        ("/proc/hypercode", "/proc/hypercode", "No such file or directory"),
        ("{home}/file/below", "{home}/file/below", "Not a directory"),
        ("{home}/file", "{home}/file", "a file is in its place"),
        ("{home}/" + 300 * "n", "{home}/" + 300 * "n", "File name too long"),
        ("{home}/loop", "{home}/loop", "a file is in its place"),
    ],
)
def test_a_configuration_whose_folder_cannot_be_made(stage, home, folder, why):
    s = stage()
    (s.home / "file").touch()
    (s.home / "loop").symlink_to("loop")
    home, folder = home.format(home=s.home), folder.format(home=s.home)
    done = s.run("config", "init", HYPERCODE_HOME=home)
    what = (
        f"cannot be written: the folder {folder} cannot be made ({why}); `hypercode config init --stdout` prints what"
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"hypercode: {home}/config.toml: {what} would be in it\n"


def test_a_word_that_is_no_command_is_answered_with_both_ways(stage):
    s = stage(answer(text("zzhello")))
    done = s.run("-c", "hello", "you")
    wanted = (
        "there is no command 'hello'; to send it: hypercode run -c 'hello you', or in a chat: hypercode -c 'hello you'"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"hypercode: {wanted}\n")
    done = s.run("--foo", "hello")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "Error: No such option: --foo")
    with Chat(s, "--plain", "--", "hello") as chat:
        chat.shows("zzhello")


@pytest.mark.parametrize("command", ["replay", "sessions show", "sessions export", "sessions delete", "policy replay"])
def test_where_a_session_is_to_be_named_it_is_said_what_lists_them(stage, command):
    done = stage().run(*command.split())
    assert done.returncode == 2
    assert "Missing argument 'SESSION" in done.stderr
    assert "`hypercode sessions` lists those of this folder" in done.stderr


def test_version_is_quick_and_right(stage):
    assert stage().run("--version").stdout == f"hypercode {__version__}\n"


def test_help_names_every_command(stage):
    s = stage()
    shown = s.run("--help").stdout
    assert all(f"\n  {name} " in shown for name in COMMANDS)
    assert "--version" in shown


@pytest.mark.parametrize("group", [[], ["config"], ["policy"], ["sessions"]])
def test_help_cuts_no_sentence(stage, group):
    listed = stage().run(*group, "--help").stdout.partition("Commands:")[2]
    assert listed.count("\n") > 3
    assert "..." not in listed


def test_policy(stage):
    s = stage()
    got = json.loads(s.run("policy", "test", "--json", "--", "git status && rm -rf build").stdout)
    assert (got["decision"], [p["decision"] for p in got["parts"]]) == ("ask", ["auto", "ask"])
    assert json.loads(s.run("policy", "path", "--json", "read", "/etc/shadow").stdout)["decision"] != "auto"
    assert os.listdir(s.workspace) == []


@needs_box
@pytest.mark.parametrize("mode", ["edits", "auto"])
def test_the_first_command_of_a_run_is_in_the_box_already(stage, mode):
    command = "touch ~/escaped; ls /proc | grep -c '^[0-9]'"
    s = stage(answer(call("bash", {"command": command}, "c")), answer(text("ok")))
    s.run("run", "go", "--mode", mode)
    shown = s.requests()[1]["messages"][-1]["content"]
    assert not (s.home / "escaped").exists(), shown
    assert int(shown.split("\n")[-1]) < 10, shown


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_a_closed_descriptor_is_no_fault(stage, closed):
    s = stage(answer(text("fine")))
    shell = f"{HYPERCODE} run go {closed}"
    done = subprocess.run(["bash", "-c", shell], cwd=s.workspace, env=s.environment(), capture_output=True, text=True)
    assert "Traceback" not in done.stdout + done.stderr
    assert "fault of hypercode" not in done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("output", ["text", "jsonl", "json"])
def test_an_answer_that_cannot_be_written_is_an_error(stage, output):
    s = stage(answer(text("lost")))
    shell = f"{HYPERCODE} run go --output {output} > /dev/full"
    done = subprocess.run(["bash", "-c", shell], cwd=s.workspace, env=s.environment(), capture_output=True, text=True)
    assert done.returncode == 1
    assert "could not be written: No space left on device" in done.stderr


def test_a_folder_that_is_gone_is_wrong_use(stage):
    s = stage()
    shell = f"mkdir gone && cd gone && rmdir ../gone && {HYPERCODE} run go"
    done = subprocess.run(["bash", "-c", shell], cwd=s.workspace, env=s.environment(), capture_output=True, text=True)
    assert (done.returncode, "the current folder is gone" in done.stderr) == (2, True), done.stderr


def test_policy_shows_odd_characters_harmlessly(stage):
    shown = stage().run("policy", "test", "--", "ls \x1b[2J").stdout
    assert "\x1b" not in shown


def test_a_file_named_with_at_goes_with_the_task(stage):
    s = stage(answer(text("Fine.")))
    (s.workspace / "a.md").write_text("alpha\n")
    done = s.run("run", "sum up @a.md @gone.md", stdin="@a.md @other.md")
    assert (done.returncode, done.stdout) == (0, "Fine.\n")
    assert "info: attached a.md, 1 line\ninfo: no file gone.md; sent as text\n" in done.stderr
    [message] = [m["content"] for m in s.requests()[0]["messages"] if m["role"] == "user"]
    assert message.startswith("sum up @a.md @gone.md\n\n<stdin>\n@a.md @other.md\n</stdin>\n\n[Attached")
    assert message.endswith("\na.md:\n     1\talpha")


@pytest.mark.parametrize(
    ("file", "arguments", "said"),
    [
        ('[headers]\n"X Bad" = "1"\n', [], '{file}: headers."X Bad": is no name of an HTTP header'),
        ('[headers]\nX-Bad = "ä"\n', [], "{file}: headers.X-Bad: has a value that no HTTP header can carry"),
        ('add_dirs = ["/"]\n', [], "{file}: add_dirs: / is the whole disk"),
        ("", ["--add-dir", "/"], "--add-dir: / is the whole disk"),
        ("", ["-m", "a/b", "--local-model", "x.gguf"], "-m: not with x.gguf (--local-model), itself a model"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(stage, file, arguments, said):
    s = stage()
    path = s.home / "hypercode" / "config.toml"
    path.parent.mkdir()
    path.write_text(file)
    done = s.run("run", *arguments, "hi")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"hypercode: {said.format(file=path)}")
    assert s.requests() == []


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (
            {},
            "The key that was sent is refused; it came from HYPERCODE_API_KEY. Set another one there, or start the server"
            " without one.",
        ),
        (
            {"HYPERCODE_API_KEY": "", "OPENROUTER_API_KEY": "sk-or-not-for-others"},
            "No key was sent: set one with HYPERCODE_API_KEY, or api_key in the configuration, or start the server without"
            " one. A key for openrouter.ai is never sent elsewhere.",
        ),
    ],
)
def test_a_server_that_refuses_says_whether_a_key_was_sent(stage, given, advice):
    refused = {**answer(), "http": {"status": 401, "headers": {}}, "segments": [{"bytes": '{"error": "no"}'}]}
    s = stage(refused)
    done = s.run("run", "go", **given)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: {s.server.base_url.split('/')[2]} (401): no. {advice}\n"


def test_a_file_that_is_not_there_is_not_spoken_of_as_if_it_were(stage):
    s = stage()
    none = {"HYPERCODE_API_KEY": "", "HYPERCODE_BASE_URL": "https://far.invalid/v1"}
    path = s.home / "hypercode/config.toml"
    made = ", or set it in this file, which `hypercode config init` makes; a model on this machine"
    assert made in s.run("run", "x", **none).stderr
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    assert ", or set it in this file; a model on this machine" in s.run("run", "x", **none).stderr


def test_a_command_that_failed_says_so_on_stderr(stage):
    calls = [call("bash", {"command": c}, f"c{i}", i) for i, c in enumerate(["exit 7", "true", "kill -9 $$"])]
    s = stage(answer(*calls), answer(text("Done.")))
    done = s.run("run", "go", "--mode", "auto", "--no-sandbox")
    assert [line for line in done.stderr.splitlines() if line.startswith("  ")] == [
        "  exit code 7",
        "  ended by signal 9, SIGKILL",
    ]
