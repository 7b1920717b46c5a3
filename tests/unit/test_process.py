"""Process groups: output, ends, limits, and that nothing stays behind."""

import asyncio
import json
import os
import resource
import secrets
import signal
import sys
import time
from pathlib import Path

import pytest

from hypercode import capture
from hypercode.process import Finished, child_environment, run_group

CASES = json.loads((Path(__file__).parents[1] / "cases/security/child-env.json").read_text())["cases"]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor is for Linux")


@pytest.fixture
def env(tmp_path):
    return child_environment(os.environ, temp=tmp_path)


@pytest.fixture
def run(tmp_path, env):
    async def run(command, **options):
        return await run_group(["/bin/bash", "-c", command], cwd=tmp_path, env=env, **options)

    return run


@pytest.fixture
def mark():
    """A number that only the processes of this test have in their command line."""
    return f"7{secrets.randbelow(10**8):08d}"


def processes(mark):
    """Living processes that hold the mark in their command line: id -> command line."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if mark in line:
            found[int(folder.name)] = line
    return found


def alive(mark):
    return list(processes(mark).values())


async def until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.01)


async def test_output_and_exit_code_come_back(run):
    finished = await run("echo out; echo err >&2; exit 7")
    assert (finished.output, finished.returncode, finished.timed_out) == ("out\nerr\n", 7, False)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGINT"])
async def test_a_signal_comes_back_as_a_negative_code(run, name):
    assert (await run(f"kill -{name[3:]} $$")).returncode == -getattr(signal, name)


async def test_standard_input_is_empty_and_there_is_no_terminal(run):
    finished = await run("cat; test -t 0 || echo none; (: </dev/tty) 2>/dev/null || echo 'no tty'", timeout=20)
    assert finished.output == "none\nno tty\n"


async def test_signals_have_their_default_effect_in_the_child(run):
    """Python ignores SIGPIPE; a child that did would print an error for each `| head`."""
    finished = await run("yes | head -1; sed -nE 's/^Sig(Blk|Ign):.//p' /proc/self/status")
    printed, *masks = finished.output.split()
    of_the_c_library = 0b11 << 31  # 32 and 33, which no program sets and a thread may inherit blocked
    assert (printed, [int(mask, 16) & ~of_the_c_library for mask in masks]) == ("y", [0, 0])


async def test_the_environment_is_exactly_the_given_one(tmp_path):
    given = {"PATH": os.defpath, "ODD": "a\nb=c\udcff", "EMPTY": ""}
    finished = await run_group(["/usr/bin/env", "-0"], cwd=tmp_path, env=given)
    assert finished.output == "PATH=" + os.defpath + "␀ODD=a\nb=c\ufffd␀EMPTY=␀"


async def test_only_the_standard_descriptors_are_open(run):
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        finished = await run("ls -C /proc/self/fd")
    finally:
        os.close(reader)
        os.close(writer)
    assert finished.output.split() == ["0", "1", "2", "3"]  # 3 is the folder that ls reads


async def test_a_descriptor_can_be_passed_on(run):
    reader, writer = os.pipe()
    os.write(writer, b"passed\n")
    os.close(writer)
    try:
        assert (await run(f"cat <&{reader}", pass_fds=[reader])).output == "passed\n"
    finally:
        os.close(reader)


async def test_a_command_that_cannot_start_is_an_oserror(tmp_path, env):
    with pytest.raises(FileNotFoundError):
        await run_group(["/bin/true"], cwd=tmp_path / "gone", env=env)
    with pytest.raises(OSError, match="too long"):
        await run_group(["/bin/echo", "x" * 3_000_000], cwd=tmp_path, env=env)


async def test_a_program_that_is_missing_says_so(tmp_path, env):
    if sys.platform == "linux":
        finished = await run_group(["/no/such/program"], cwd=tmp_path, env=env)
        assert (finished.returncode, finished.output) == (126, "/no/such/program: No such file or directory\n")
    with pytest.raises(FileNotFoundError):
        await run_group(["/no/such/program"], cwd=tmp_path, env=env, contained=True)


# what is printed


async def test_output_is_seen_while_the_command_runs(tmp_path, run):
    seen = []

    def show(text):
        seen.append(text)
        (tmp_path / "go").touch()  # the command goes on only once its first line was shown

    finished = await run("echo one; until test -e go; do sleep 0.01; done; echo two", on_output=show, timeout=30)
    assert (finished.returncode, seen) == (0, ["one\n", "two\n"])


async def test_a_character_split_over_two_writes_is_one_character(tmp_path, run):
    seen = []

    def show(text):
        seen.append(text)
        (tmp_path / "go").touch()

    command = r"printf 'a\xe2\x82'; until test -e go; do sleep 0.01; done; printf '\xac\xff\x00z\xf0\x9f'"
    finished = await run(command, on_output=show, timeout=30)
    assert (finished.output, "".join(seen), seen[0]) == ("a€\ufffd␀z\ufffd", "a€\ufffd␀z\ufffd", "a")


async def test_a_flood_is_shown_in_few_small_pieces(run):
    seen = []
    finished = await run("seq 1 3000000", on_output=seen.append)
    assert seen[0].startswith("1\n2\n")
    assert seen[-1].endswith("3000000\n")
    assert max(map(len, seen)) < 70_000
    assert len(seen) < 34 * finished.seconds + 5
    assert any("not shown here" in text for text in seen)


async def test_short_output_is_kept_whole(run, tmp_path):
    finished = await run("seq 1 200", limit_bytes=692, spill=tmp_path / "spill")
    assert finished.printed == capture.Printed("".join(f"{i}\n" for i in range(1, 201)), total=692)
    assert not (tmp_path / "spill").exists()


async def test_long_output_keeps_head_and_tail_and_the_whole_in_a_file(run, tmp_path):
    spill = tmp_path / "spill"
    printed = (await run("seq 1 200", limit_bytes=690, spill=spill)).printed
    whole = "".join(f"{i}\n" for i in range(1, 201))
    (file,) = spill.iterdir()
    assert file.read_text() == whole
    assert (file.stat().st_mode & 0o777, spill.stat().st_mode & 0o777) == (0o600, 0o700)
    assert printed == capture.Printed(whole[:345], whole[-345:], 692, True, file, 692)
    assert printed.gap == f"[... 692 bytes; left out here: the middle; the whole is in {file} ...]"
    assert printed.text == f"{whole[:345].rstrip()}\n{printed.gap}\n{whole[-345:]}"


async def test_no_character_is_cut_in_two_at_the_gap(run, tmp_path):
    printed = (await run("for i in {1..200}; do printf €; done", limit_bytes=100, spill=tmp_path / "spill")).printed
    assert (printed.head, printed.tail) == ("€" * 16, "€" * 16)


async def test_the_file_has_a_limit_too_and_says_so(run, tmp_path, monkeypatch):
    monkeypatch.setattr(capture, "SPILL_BYTES", 1000)
    printed = (await run("seq 1 2000", limit_bytes=100, spill=tmp_path / "spill")).printed
    assert printed.spilled.stat().st_size == 1000
    assert "8,893 bytes" in printed.gap
    assert f"its first 1,000 bytes are in {printed.spilled}" in printed.gap


async def test_a_spill_that_cannot_be_written_is_said(run, tmp_path):
    (tmp_path / "file").touch()
    printed = (await run("seq 1 2000", limit_bytes=100, spill=tmp_path / "file")).printed
    assert printed.spilled is None
    assert "could not be kept" in printed.gap
    assert printed.tail.endswith("2000\n")


async def test_memory_stays_flat(run, tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    finished = await run("head -c 300M /dev/zero", spill=tmp_path / "spill", on_output=lambda text: None, timeout=60)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert finished.printed.total == 300 * 1024 * 1024
    assert grown < 50, f"{grown} MB"


async def test_a_reader_can_have_enough(run):
    pieces = []

    def take(data):
        pieces.append(data)
        return False

    finished = await run("yes", take=take, timeout=30)
    assert (len(pieces), finished.timed_out, finished.seconds < 10) == (1, False, True)


# the end


async def test_a_timeout_ends_the_command(run):
    finished = await run("echo before; sleep 60", timeout=0.5)
    assert (finished.output, finished.timed_out) == ("before\n", True)
    assert finished.seconds < 5


@LINUX
@pytest.mark.parametrize(
    "command",
    [
        "sleep {0} & echo started",
        "sleep {0} & disown; setsid nohup sleep {0} >/dev/null 2>&1 & echo started",
        "(setsid bash -c '(sleep {0} & sleep {0}) &' &) ; echo started",
        "(trap '' TERM HUP INT; exec sleep {0}) & echo started",
        "(setsid bash -c 'trap \"\" TERM HUP; while :; do sleep {0}; done' &) ; echo started",
        "nohup env -i setsid sh -c 'sleep {0}; echo {0}' >/dev/null 2>&1 & echo started",
        "python3 -c 'import os,time\nif os.fork()==0:\n os.setsid()\n if os.fork()==0:\n  time.sleep({0})'; echo started",
    ],
)
async def test_nothing_is_left_when_the_command_ends(run, mark, command):
    finished = await run(command.format(mark), timeout=30)
    assert (finished.output, finished.returncode, finished.timed_out) == ("started\n", 0, False)
    assert (alive(mark), finished.seconds < 10) == ([], True)


STUBBORN = [
    "sleep {0}",
    "trap '' TERM INT HUP; sleep {0}; sleep {0}",
    "setsid sleep {0} & setsid nohup sleep {0} >/dev/null 2>&1 & sleep {0} & wait",
    "(setsid bash -c 'trap \"\" TERM HUP; while :; do sleep {0}; done' &) ; sleep {0}",
    "kill -STOP $$; sleep {0}",
    "python3 -c 'import os,time\nwhile True:\n if os.fork()==0:\n  os.setsid(); time.sleep({0})\n time.sleep(0.02)'",
]


@LINUX
@pytest.mark.parametrize("command", STUBBORN)
async def test_nothing_is_left_after_a_timeout(run, mark, command):
    finished = await run(command.format(mark), timeout=0.7)
    assert (finished.timed_out, alive(mark)) == (True, [])
    assert finished.seconds < 6


@LINUX
@pytest.mark.parametrize("command", STUBBORN)
async def test_nothing_is_left_after_a_cancellation(run, mark, command):
    task = asyncio.create_task(run(command.format(mark)))
    await until(lambda: alive(mark))
    await asyncio.sleep(0.1)
    start = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (alive(mark), time.monotonic() - start < 5) == ([], True)


@LINUX
@pytest.mark.parametrize("delay", [0, 0.001, 0.005, 0.01, 0.02, 0.04])
async def test_a_cancellation_at_the_start_leaves_nothing(run, mark, delay):
    task = asyncio.create_task(run(f"setsid sleep {mark} & sleep {mark}"))
    await asyncio.sleep(delay)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(mark) == []


async def test_two_cancellations_are_one(run, mark):
    task = asyncio.create_task(run(f"trap '' TERM; sleep {mark}; sleep {mark}"))
    await until(lambda: alive(mark))
    task.cancel()
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(mark) == []


async def test_what_was_printed_is_shown_before_a_cancellation_ends(run):
    seen = []
    task = asyncio.create_task(run("echo one; echo two; sleep 60", on_output=seen.append))
    await until(lambda: "two" in "".join(seen))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "".join(seen) == "one\ntwo\n"


@LINUX
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_nothing_is_left_when_the_program_itself_is_killed(tmp_path, mark, how):
    script = f"""
import asyncio, os, signal
from hypercode.process import run_group
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` and `&` make everything below them ignore these
signal.signal(signal.SIGINT, signal.default_int_handler)
command = "setsid sleep {mark} & trap '' TERM; sleep {mark}; sleep {mark}"
asyncio.run(run_group(["/bin/bash", "-c", command], cwd="/", env={{"PATH": os.environ["PATH"]}}))
"""
    root = Path(__file__).parents[2]
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, env={**os.environ, "PYTHONPATH": str(root)}, stderr=asyncio.subprocess.DEVNULL
    )
    sleeping = f"sleep {mark}"
    await until(lambda: sum(line.startswith(sleeping) for line in alive(mark)) == 2)
    program.send_signal(how)
    await program.wait()
    await until(lambda: not alive(mark))


async def test_a_contained_command_is_ended_by_its_process_alone(tmp_path, env):
    finished = await run_group(["/bin/sleep", "60"], cwd=tmp_path, env=env, timeout=0.3, contained=True)
    assert (finished.returncode, finished.timed_out, finished.seconds < 5) == (-signal.SIGKILL, True, True)


async def test_a_stranger_who_holds_the_pipe_does_not_hold_the_call(tmp_path, env, mark):
    """As where there is no supervisor: a child that left the group keeps the pipe open."""
    command = ["/bin/bash", "-c", f"setsid sleep {mark} & echo started; sleep 0.2"]
    try:
        finished = await run_group(command, cwd=tmp_path, env=env, contained=True, timeout=30)
        assert (finished.output, finished.seconds < 5) == ("started\n", True)
    finally:
        for pid in processes(mark):
            os.kill(pid, signal.SIGKILL)


async def test_many_at_once(run):
    results = await asyncio.gather(*(run(f"echo {i}; sleep 0.05; exit {i}") for i in range(12)))
    assert [(r.output, r.returncode) for r in results] == [(f"{i}\n", i) for i in range(12)]


async def test_descriptors_are_given_back(run):
    await run("true")
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    for _ in range(5):
        await run("echo x")
        await run("sleep 5", timeout=0.05)
    assert (len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0) == before


def test_finished_shows_what_was_printed():
    assert Finished(0, capture.Printed("x\n", total=2), False, 0.1).output == "x\n"


# the environment of children


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_environment_case(case, tmp_path):
    name, kind = case["name"], case["in_child"]
    child = child_environment({"PATH": "/bin", name: "CANARY"}, temp=tmp_path)
    if kind == "keep":
        assert child[name] == "CANARY"
    elif kind == "set":
        assert child[name] not in ("CANARY", "")
    else:
        assert name not in child
        assert "CANARY" not in child.values()


@pytest.mark.parametrize(
    "name",
    """OPENROUTER_KEY GEMINI_API_KEY HF_TOKEN SLACK_BOT_TOKEN PGPASSWORD VAULT_ADDR AZURE_CLIENT_SECRET KUBECONFIG GPG_AGENT_INFO
    SSH_AGENT_PID DISPLAY WAYLAND_DISPLAY XAUTHORITY XDG_RUNTIME_DIR DOCKER_HOST LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES ENV
    SHELLOPTS BASHOPTS PS4 IFS CDPATH GLOBIGNORE BASH_FUNC_ls%% GIT_DIR GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_SSH_COMMAND GIT_SSH
    GIT_PROXY_COMMAND GIT_TEMPLATE_DIR GIT_EXEC_PATH PYTHONPATH PYTHONHOME PYTHONINSPECT PERL5OPT PERL5LIB RUBYOPT NODE_OPTIONS
    JAVA_TOOL_OPTIONS _JAVA_OPTIONS CLASSPATH LESSOPEN LESS RIPGREP_CONFIG_PATH HTTP_PROXY https_proxy HYPERCODE_API_KEY
    HYPERCODE_HOME LC_SECRET MAKEFLAGS CLOUDSDK_AUTH_ACCESS_TOKEN SUDO_ASKPASS TMUX STY""".split(),  # noqa: SIM905
)
def test_whatever_may_hold_a_secret_or_start_something_is_dropped(name, tmp_path):
    assert "CANARY" not in child_environment({name: "CANARY"}, temp=tmp_path).values()


def test_the_user_can_let_names_and_patterns_pass_but_never_the_program_s_own(tmp_path):
    parent = dict.fromkeys(
        ["AWS_PROFILE", "AWS_REGION", "GITHUB_TOKEN", "HYPERCODE_API_KEY", "OPENROUTER_API_KEY", "PAGER", "TMPDIR"], "v"
    )
    child = child_environment(
        parent, temp=tmp_path, keep=["AWS_*", "GITHUB_TOKEN", "HYPERCODE_*", "OPENROUTER_API_KEY", "*R"]
    )
    assert {name for name, value in child.items() if value == "v"} == {
        "AWS_PROFILE",
        "AWS_REGION",
        "GITHUB_TOKEN",
        "PAGER",
    }
    assert child["TMPDIR"] == str(tmp_path)


def test_there_is_always_a_path(tmp_path):
    assert child_environment({}, temp=tmp_path)["PATH"] == os.defpath
