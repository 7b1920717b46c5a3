"""The shell tool: what the model reads."""

import asyncio
import json
import os
import signal

import pytest

from hypercode.errors import ToolError
from hypercode.process import child_environment
from hypercode.safety.paths import FileGuard
from hypercode.tools import bash as module
from hypercode.tools.base import MAX_RESULT_CHARACTERS, MAX_RESULT_LINES, ToolContext
from hypercode.tools.bash import bash, plain, shell_line


@pytest.fixture
def ctx(tmp_path):
    workspace = tmp_path / "work"
    workspace.mkdir()
    temp = tmp_path / "temp"
    temp.mkdir()
    guard = FileGuard(workspace, home=tmp_path / "home")
    return ToolContext(guard, tmp_path / "spill", child_environment(os.environ, temp=temp))


async def call(ctx, command, **arguments):
    return await bash.call(ctx, bash.validate({"command": command, **arguments}))


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("echo hi", "hi"),
        ("echo out; echo err >&2", "out\nerr"),
        ("printf 'no line feed'", "no line feed"),
        ("true", "[no output]"),
        ("exit 7", "[no output]\n[exit code 7]"),
        ("echo x; false", "x\n[exit code 1]"),
        ("no-such-command-here", "bash: line 1: no-such-command-here: command not found\n[exit code 127]"),
        ("kill -9 $$", "[no output]\n[ended by signal 9, SIGKILL]"),
        ("sleep 60 & kill -TERM $!; wait $!", "[no output]\n[exit code 143]"),
        (r"printf 'a\0b\xff\xc3\xa9\n'", "a␀b\ufffdé"),
        (r"printf '\033[31mred\033[0m \033]0;title\007ok\r\n'", "red ok"),
        ("cat", "[no output]"),
        ("shopt -q restricted_shell || [[ a == a ]] && echo bash", "bash"),
        ("echo one\necho two", "one\ntwo"),
        ("-not-an-option", "bash: line 1: -not-an-option: command not found\n[exit code 127]"),
    ],
)
async def test_result(ctx, command, result):
    text = await call(ctx, command)
    assert text.replace("/bin/bash: ", "bash: ").replace("/usr", "") == result


async def test_it_runs_in_the_workspace_with_the_given_environment(ctx):
    assert await call(ctx, "pwd -P; echo $TMPDIR; echo $PAGER") == f"{ctx.workspace}\n{ctx.environment['TMPDIR']}\ncat"


async def test_a_folder_change_does_not_carry_over(ctx):
    await call(ctx, "cd /; X=1")
    assert await call(ctx, "pwd -P; echo $X") == str(ctx.workspace)


async def test_the_person_sees_it_live(ctx):
    seen = []
    ctx.output = lambda text: (seen.append(text), (ctx.workspace / "go").touch())
    await call(ctx, "echo one; until test -e go; do sleep 0.01; done; echo two", timeout=30)
    assert seen == ["one\n", "two\n"]


async def test_a_timeout_is_an_error_with_what_was_printed(ctx):
    with pytest.raises(ToolError) as caught:
        await call(ctx, "echo before; sleep 60", timeout=1)
    assert caught.value.kind == "timeout"
    assert str(caught.value) == (
        "timeout: the command did not end in time.\nbefore\n[timed out after 1 s; everything it had started was ended]"
    )


async def test_a_timeout_with_much_output_is_cut_as_well(ctx):
    with pytest.raises(ToolError) as caught:
        await call(ctx, "yes", timeout=1)
    text = str(caught.value)
    assert len(text) <= MAX_RESULT_CHARACTERS
    assert text.count("\n") <= MAX_RESULT_LINES
    assert text.endswith("y\n[timed out after 1 s; everything it had started was ended]")


@pytest.mark.parametrize("timeout", [0, 0.5, -1, 3601, 1e300, float("nan"), float("inf")])
async def test_timeout_has_bounds(ctx, timeout):
    with pytest.raises(ToolError, match="1 to 3600 seconds") as caught:
        await bash.call(ctx, {"command": "touch made", "timeout": timeout})
    assert caught.value.kind == "bad_arguments"
    assert not (ctx.workspace / "made").exists()


@pytest.mark.parametrize("command", ["", "  \n\t", "echo \0", "echo \ud800", "echo " + "x" * 200_000])
async def test_a_command_that_cannot_be_run_is_bad_arguments(ctx, command):
    with pytest.raises(ToolError) as caught:
        await bash.call(ctx, {"command": command})
    assert caught.value.kind == "bad_arguments"


async def test_many_lines_keep_head_and_tail_and_a_file(ctx):
    text = await call(ctx, "seq 1 5000; exit 3")
    (file,) = ctx.spill.iterdir()
    assert (file.read_text().startswith("1\n2\n"), "5000\n" in file.read_text()) == (True, True)
    assert text.startswith("1\n2\n")
    assert text.endswith("4999\n5000\n[exit code 3]")
    assert str(file) in text
    assert text.count("\n") <= MAX_RESULT_LINES + 1


@pytest.mark.parametrize(
    "command", ["seq 1 300000", "head -c 2M /dev/zero", "yes | head -c 3M", "seq 1 99999 | tr '\\n' ' '"]
)
async def test_long_output_is_cut_once_and_the_file_named(ctx, command):
    text = await call(ctx, f"{command}; exit 3")
    (file,) = ctx.spill.iterdir()
    assert str(file) in text
    assert len(text) <= MAX_RESULT_CHARACTERS
    assert text.count("\n") < MAX_RESULT_LINES
    assert text.count("left out here") == 1
    assert text.endswith("\n[exit code 3]")
    assert file.stat().st_mode & 0o777 == 0o600
    assert "\0" not in text


async def test_just_within_the_limit_comes_whole(ctx):
    text = await call(ctx, f"for i in {{1..{MAX_RESULT_CHARACTERS}}}; do printf €; done")
    assert text == "€" * MAX_RESULT_CHARACTERS


async def test_the_result_is_always_valid_json_text(ctx):
    text = await call(ctx, "head -c 20000 /dev/urandom; printf '\\xed\\xa0\\x80'")
    assert json.loads(json.dumps(text).encode()) == text
    text.encode()
    assert not [c for c in text if (c < " " and c not in "\n\t") or "\x7f" <= c <= "\x9f"]


async def test_a_cancellation_ends_the_command(ctx):
    started = asyncio.Event()
    ctx.output = lambda text: started.set()
    task = asyncio.create_task(call(ctx, "echo $$ >pid; sleep 300 & echo go; wait"))
    await asyncio.wait_for(started.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int((ctx.workspace / "pid").read_text()), signal.SIGKILL)


async def test_a_workspace_that_is_gone_is_said(ctx):
    ctx.workspace.rmdir()
    with pytest.raises(ToolError, match="is gone"):
        await call(ctx, "echo hi")


# which shell


def test_a_missing_bash_is_said_and_sh_used(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_SHELLS", ())
    argv, remark = shell_line("echo hi", {"PATH": f"{tmp_path}:."})
    assert (argv, remark) == (["/bin/sh", "-c", "--", "echo hi"], "[bash is not installed here: sh ran this]")


def test_bash_elsewhere_is_found_but_not_in_a_relative_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_SHELLS", ())
    (tmp_path / "bash").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    assert shell_line("x", {"PATH": f"/nowhere:{tmp_path}"})[0][0] == str(tmp_path / "bash")
    assert shell_line("x", {"PATH": "::."})[0][0] == "/bin/sh"


async def test_the_remark_is_in_the_result(ctx, monkeypatch):
    monkeypatch.setattr(module, "_SHELLS", ())
    ctx.environment = {"PATH": "/nowhere"}
    assert await call(ctx, "echo hi") == "[bash is not installed here: sh ran this]\nhi"


# text for the model


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\r\nb\r\r\nc\n", "a\nb\nc\n"),
        ("10%\r20%\r30%\n", "10%\n20%\n30%\n"),
        ("\x1b[1;31mbold\x1b[0m\x1b[K", "bold"),
        ("\x1b[?25lhidden\x1b[?25h", "hidden"),
        ("\x1b]8;;http://x.invalid\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1bP1;2|data\x1b\\x\x9b31mred", "xred"),
        ("\x1b]0;never ended\nnext line", "␛]0;never ended\nnext line"),
        ("\x1b(Bx\x1b7y\x1b=z", "xyz"),
        ("\x1b", "␛"),
        ("N\bNA\bA_\bx", "NAx"),
        ("\b\b", "␈␈"),
        ("bell\x07 del\x7f c1\x85", "bell␇ del␡ c1\ufffd"),
        ("tab\tstays", "tab\tstays"),
        ("\u202eleft as it is", "\u202eleft as it is"),
    ],
)
def test_plain(raw, shown):
    assert plain(raw) == shown
