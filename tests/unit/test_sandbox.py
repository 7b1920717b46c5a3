"""The box beside the probes: its parts, its profiles, what it puts away, and what it is called where it does not work."""

import asyncio
import contextlib
import errno
import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hypercode.process import child_environment, run_group
from hypercode.safety import sandbox, sandbox_bwrap, sandbox_macos, seccomp
from hypercode.safety.git_watch import Repositories
from hypercode.safety.paths import FileGuard
from hypercode.safety.sandbox import Box, Policy
from hypercode.safety.sandbox_policy import git_folders, protected, secret_places
from hypercode.safety.sandbox_watch import Watch, recover
from hypercode.tools.base import ToolContext
from hypercode.tools.bash import bash

GOLDEN = Path(__file__).parents[1] / "cases/security/sandbox-macos.sb"
BWRAP = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")


@pytest.fixture
def base():
    """Not below the temporary folder, which a box replaces by its own."""
    base = Path("/var/tmp") / f"box-{secrets.token_hex(6)}"
    base.mkdir()
    yield base
    shutil.rmtree(base)


@pytest.fixture
def policy(base):
    for name in ("home/work", "temp"):
        (base / name).mkdir(parents=True)
    return Policy((base / "home/work",), base / "home", base / "temp", base / "state/quarantine", own=(base / "state",))


@pytest.fixture
def run(policy):
    env = child_environment(os.environ, temp=policy.temp)
    box = Box.probe(policy, env)
    assert box.full, box.why

    async def run(command, profile="workspace", *, network=False, timeout=60):
        with box.enter(["/bin/bash", "-c", "--", command], profile, network=network) as entered:
            finished = await run_group(
                entered.argv,
                cwd=policy.workspace,
                env=env,
                timeout=timeout,
                pass_fds=entered.pass_fds,
                contained=entered.contained,
            )
        return finished.returncode, finished.output, entered.reports

    run.box = box
    return run


def git(folder, *arguments):
    subprocess.run(
        ["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e", *arguments], check=True, capture_output=True
    )


@pytest.fixture
def repository(policy):
    git(policy.workspace, "init", "-q")
    for name in ("user.name", "user.email"):
        git(policy.workspace, "config", name, "x")
    (policy.workspace / "a.txt").write_text("a\n")
    git(policy.workspace, "add", ".")
    git(policy.workspace, "commit", "-qm", "one")
    return policy.workspace


def alive(mark):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += [folder.name] if mark.encode() in (folder / "cmdline").read_bytes() else []
    return found


def lies(path):
    """Whether anything is there, a dangling link too."""
    return os.path.lexists(path)


# the filter

CALLS = """
import ctypes, os, json, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    answer = libc.syscall(number, *arguments)
    return ctypes.get_errno() if answer == -1 else 0
print(json.dumps([call(*words) for words in json.loads(sys.argv[1])]))
"""


@BWRAP
@pytest.mark.skipif(platform.machine() != "x86_64", reason="system call numbers of x86_64")
async def test_forbidden_calls_answer_eperm(policy, run):
    (policy.workspace / "calls.py").write_text(CALLS)
    machine = seccomp.MACHINES["x86_64"]
    x32_getpid = 0x40000000 + 39
    forbidden = [[number, 0, 0, 0, 0, 0, 0] for number in (*machine.forbidden, 425, 426, 427, 428, 442, x32_getpid)]
    forbidden += [
        [41, family, 2, 0] for family in (0, 1, 15, 16, 17, 38, 40)
    ]  # socket; 2 and 10 reach the box's own loopback only
    forbidden += [[16, 0, request] for request in (0x5412, 0x541C, 0x100005412)]  # ioctl, only the low half counts
    forbidden += [[56, flag | 17, 0, 0, 0, 0] for flag in (0x10000000, 0x20000, 0x40000000)]  # clone
    _, output, _ = await run(f"python3 calls.py '{json.dumps(forbidden)}'")
    assert json.loads(output) == [errno.EPERM] * len(forbidden)


@BWRAP
@pytest.mark.skipif(platform.machine() != "x86_64", reason="system call numbers of x86_64")
async def test_other_calls_work_and_clone3_is_missing(policy, run):
    (policy.workspace / "calls.py").write_text(CALLS)
    calls = [[39], [435, 0, 0], [16, 99, 0x5401]]
    _, output, _ = await run(f"python3 calls.py '{json.dumps(calls)}'")
    assert json.loads(output) == [0, errno.ENOSYS, errno.EBADF]


@BWRAP
@pytest.mark.parametrize(
    "command",
    [
        "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"ok\"); print(b.recv(9).decode())'",
        "python3 -c 'import asyncio; asyncio.run(asyncio.sleep(0)); print(\"ok\")'",
        "python3 -c 'from concurrent.futures import ThreadPoolExecutor as T; print(T().submit(str, \"ok\").result())'",
        'python3 -c \'import subprocess; print(subprocess.check_output(["echo", "ok"], text=True), end="")\'',
        'python3 -c \'import multiprocessing as m; print(m.get_context("fork").Pool(2).map(str, ["ok"])[0])\'',
        "git init -q /tmp/r && cd /tmp/r && git -c user.name=n -c user.email=e commit -q --allow-empty -m ok && git log --format=%s",
        "mktemp >/dev/null && echo $((1+1)) | sed 's/2/ok/'",
        "(sleep 0.05; echo ok) & wait",
    ],
)
async def test_ordinary_work_goes_on(run, command):
    assert await run(command) == (0, "ok\n", [])


SET_ID = [
    "cp /bin/true x; chmod u+s x",
    "cp /bin/true x; chmod g+s x",
    "cp /bin/true x; chmod 6755 x",
    "install -m 4755 /bin/true x",
    "cp -p /usr/bin/passwd x",
    "python3 -c \"import os; os.open('x', os.O_CREAT | os.O_WRONLY, 0o4755)\"",
    "python3 -c \"import os; os.open('x', os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o2755)\"",
    "python3 -c \"import os; os.fchmod(os.open('x', os.O_CREAT | os.O_WRONLY), 0o4755)\"",
    "python3 -c \"import os; os.mknod('x', 0o104755)\"",
    "python3 -c \"import os; fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o4755); os.link(f'/proc/self/fd/{fd}', 'x')\"",
    "mkdir x; chmod g+s x",
]


@BWRAP
@pytest.mark.parametrize("command", SET_ID)
async def test_no_file_gets_the_bits_that_lend_rights(policy, run, command):
    """Whoever runs such a file, outside as well, runs it with the rights of its owner."""
    code, output, _ = await run(command)
    made = policy.workspace / "x"
    assert not made.exists() or made.stat().st_mode & 0o6000 == 0, output
    assert code != 0, output


@BWRAP
async def test_ordinary_modes_and_files_go_on(policy, run):
    script = "import os, tempfile; tempfile.TemporaryFile(); os.open('made', os.O_CREAT | os.O_WRONLY, 0o7600 & 0o1777)"
    command = f'touch a; chmod 755 a; chmod +t .; install -m 700 a b; cp -a a c; mkfifo -m 644 f; python3 -c "{script}"'
    assert (await run(command))[:2] == (0, "")
    modes = {n: (policy.workspace / n).stat().st_mode & 0o7777 for n in ("a", "b", "c", "f")}
    assert modes == {"a": 0o755, "b": 0o700, "c": 0o755, "f": 0o644}


def test_every_jump_of_the_filter_ends_in_an_answer():
    for machine in seccomp.MACHINES:
        for families in ((), (2, 10, 16)):
            code = seccomp.program(machine, families)
            count = len(code) // 8
            operations = [int.from_bytes(code[8 * i : 8 * i + 2], "little") for i in range(count)]
            assert operations[-1] == 6
            for i in range(count):
                if operations[i] & 7 == 5:  # a jump
                    assert i + 1 + max(code[8 * i + 2], code[8 * i + 3]) < count


# what is seen and written


@BWRAP
async def test_secrets_are_masked_and_cannot_be_written(policy, run):
    for name in (".ssh/id", ".config/gh/hosts.yml", ".netrc", ".config/BraveSoftware/x", ".bash_history"):
        path = policy.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("CANARY\n")
    (policy.home / "real").mkdir()
    (policy.home / "real/creds").write_text("CANARY\n")
    (policy.home / ".aws").symlink_to("real")
    _, output, _ = await run(
        "cd ../; cat .ssh/id .config/gh/* .netrc .aws/creds real/creds .config/BraveSoftware/x .bash_history; "
        "touch .ssh/x .config/gh/x; echo x > .netrc; ls -A .ssh real .config/gh"
    )
    assert "CANARY" not in output
    assert output.count("No such file") + output.count("Read-only") >= 5
    assert sorted(p.name for p in (policy.home / ".ssh").iterdir()) == ["id"]
    assert (policy.home / ".netrc").read_text() == "CANARY\n"


@BWRAP
async def test_the_program_s_own_files_are_hidden_but_what_is_kept_for_reading(base, policy):
    (base / "state/kept").mkdir(parents=True)
    (base / "state/kept/output.txt").write_text("kept\n")
    (base / "state/journal.jsonl").write_text("CANARY\n")
    policy = Policy(
        policy.roots,
        policy.home,
        policy.temp,
        policy.quarantine,
        own=(base / "state",),
        readable=(base / "state/kept",),
    )
    env = child_environment(os.environ, temp=policy.temp)
    command = (
        f"cat {base}/state/kept/output.txt; cat {base}/state/journal.jsonl; touch {base}/state/kept/x {base}/state/y"
    )
    with Box.probe(policy, env).enter(["/bin/bash", "-c", "--", command]) as entered:
        done = await run_group(entered.argv, cwd="/", env=env, pass_fds=entered.pass_fds, contained=True)
    assert done.output.startswith("kept\n")
    assert "CANARY" not in done.output
    assert done.output.count("Read-only") == 2
    assert not (base / "state/y").exists()


@BWRAP
async def test_further_roots_are_writable_and_their_repositories_not(base, policy):
    (base / "more").mkdir()
    git(base / "more", "init", "-q")
    policy = Policy((*policy.roots, base / "more"), policy.home, policy.temp, policy.quarantine)
    env = child_environment(os.environ, temp=policy.temp)
    box = Box.probe(policy, env)
    command = f"echo x > {base}/more/new; echo x > {base}/more/.git/new; echo x > {base}/elsewhere"
    with box.enter(["/bin/bash", "-c", "--", command]) as entered:
        await run_group(entered.argv, cwd="/", env=env, pass_fds=entered.pass_fds, contained=True)
    there = [(base / name).exists() for name in ("more/new", "more/.git/new", "elsewhere")]
    assert (there, box.describe()) == (
        [True, False, False],
        "Sandbox: bubblewrap — writes: this folder and 1 more; network: off; secrets hidden",
    )


@BWRAP
async def test_a_home_that_is_the_workspace_keeps_its_start_files(base, policy):
    home = policy.home
    (home / ".bashrc").write_text("# rc\n")
    (home / ".ssh").mkdir()
    (home / ".ssh/id").write_text("CANARY\n")
    policy = Policy((home,), home, policy.temp, policy.quarantine)
    env = child_environment(os.environ, temp=policy.temp)
    command = "echo bad >> .bashrc; echo bad > .zshenv; mkdir -p .config/autostart; cat .ssh/id; touch .ssh/new; echo ok > new"
    with Box.probe(policy, env).enter(["/bin/bash", "-c", "--", command]) as entered:
        done = await run_group(entered.argv, cwd=home, env=env, pass_fds=entered.pass_fds, contained=True)
    assert "CANARY" not in done.output
    assert (home / ".bashrc").read_text() == "# rc\n"
    assert [(home / name).exists() for name in (".zshenv", ".config", ".ssh/new", "new")] == [False, False, False, True]
    assert len(entered.reports) == 2


@BWRAP
async def test_processes_have_a_limit_for_a_normal_user(policy, run):
    """The kernel does not hold root to it."""
    user = 61235
    switch = (
        [shutil.which("setpriv"), f"--reuid={user}", f"--regid={user}", "--clear-groups"] if os.geteuid() == 0 else []
    )
    script = (
        "import os, time\n"
        "for i in range(2000):\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(60)\n"
        "    except OSError as error:\n"
        "        print(i, error.strerror, flush=True)\n"
        "        break\n"
    )
    with run.box.enter(["/usr/bin/python3", "-c", script]) as entered:
        done = await run_group(
            [*switch, *entered.argv], cwd="/", env={"PATH": "/usr/bin:/bin"}, pass_fds=entered.pass_fds, contained=True
        )
    count, reason = done.output.strip().split(" ", 1)
    assert (int(count) < sandbox_bwrap.PROCESSES, reason) == (True, "Resource temporarily unavailable")


@BWRAP
async def test_limits_are_set(run):
    _, output, _ = await run("ulimit -c; ulimit -f; ulimit -u")
    assert output == f"0\n{sandbox_bwrap.FILE_BLOCKS // 2}\n{sandbox_bwrap.PROCESSES}\n"


@BWRAP
async def test_nothing_is_left_after_a_timeout_or_a_cancellation(run):
    mark = f"8{secrets.randbelow(10**8):08d}"
    command = f"trap '' TERM; setsid sleep {mark} & (setsid bash -c 'sleep {mark} &') ; sleep {mark}; sleep {mark}"
    code, _, _ = await run(command, timeout=0.5)
    assert code == -9
    task = asyncio.create_task(run(command))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(500):
        if not alive(mark):
            break
        await asyncio.sleep(0.01)
    assert alive(mark) == []


@BWRAP
async def test_many_boxes_at_once(run):
    done = await asyncio.gather(*(run(f"echo {i} > {i}; cat {i}; sleep 0.05") for i in range(8)))
    assert done == [(0, f"{i}\n", []) for i in range(8)]


@BWRAP
async def test_the_network_on_is_the_host_s_but_no_path_sockets(run):
    _, output, _ = await run(
        "python3 -c \"import socket; socket.socket(); print('inet')\"; ls /sys/class/net; "
        'python3 -c "import socket; socket.socket(socket.AF_UNIX)" 2>&1 | tail -1',
        network=True,
    )
    assert output.splitlines()[0] == "inet"
    assert output.splitlines()[-1] == "PermissionError: [Errno 1] Operation not permitted"


@BWRAP
async def test_the_shell_tool_in_the_box(policy, run):
    seen = []
    guard = FileGuard(policy.workspace, home=policy.home)
    env = child_environment(os.environ, temp=policy.temp)
    ctx = ToolContext(guard, policy.temp / "spill", env, box=run.box, tell=seen.append)
    text = await bash.call(
        ctx, {"command": "echo hi; echo x > $TMPDIR/y && cat /tmp/y; echo {} > .mcp.json; touch /etc/x"}
    )
    lines = text.split("\n")
    assert lines[:2] == ["hi", "x"]
    assert lines[2:4] == ["touch: cannot touch '/etc/x': Read-only file system", "[exit code 1]"]
    assert lines[4].startswith(f"[sandbox: {policy.workspace}/.mcp.json appeared")
    assert (len(lines), [f"[{told}]" for told in seen]) == (5, lines[4:])


# names that appear


@BWRAP
@pytest.mark.parametrize(
    "command",
    [
        "echo '{{}}' > {0}",
        "mkdir -p {0}/deep && echo x > {0}/deep/file",
        "ln -s /etc/passwd {0}",
        "mkfifo {0}",
        "mkdir x && mv x {0}",
    ],
)
async def test_what_appears_is_put_away_and_reported(policy, run, command):
    _, _, reports = await run(command.format(".mcp.json"))
    assert not lies(policy.workspace / ".mcp.json")
    (report,) = reports
    assert report.startswith(
        f"{policy.workspace}/.mcp.json appeared; tools would obey it without asking. It was moved to "
    )
    assert lies(report.rpartition(" moved to ")[2].removesuffix("."))


@BWRAP
@pytest.mark.parametrize("profile", ["workspace", "git"])
@pytest.mark.parametrize(
    "make",
    [
        "git init -q",
        "git init -q -b trunk && git config user.name n && git config core.autocrlf input",
        "printf 'git init -q\\ngit add -A\\n' > setup.sh && sh setup.sh",
        "git init -q other && mv other/.git . && git -c user.name=n -c user.email=e commit -q --allow-empty -m x",
        "git init -q --bare store && git clone -q store new 2>/dev/null && mv new/.git .",
    ],
    ids=["init", "settings", "script", "moved", "clone"],
)
async def test_a_repository_that_runs_nothing_may_appear(policy, run, make, profile):
    assert await run(make, profile) == (0, "", [])
    assert git_folders(policy.workspace) == [policy.workspace / ".git"]
    assert await run("git status --porcelain >/dev/null; echo x 2>/dev/null > .git/config", profile) == (1, "", [])


@BWRAP
@pytest.mark.parametrize("profile", ["workspace", "git"])
@pytest.mark.parametrize(
    "plant",
    [
        "git config core.fsmonitor 'touch pwn'",
        "echo x > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "git config alias.x '!touch pwn'",
        "git config remote.origin.url 'ext::sh -c x'",
        "git config include.path x",
        "mkdir e; git config -f e/config core.sshCommand x; echo ../e > .git/commondir",
        "mv .git store; ln -s store .git",
        "mv .git store; echo 'gitdir: store' > .git",
    ],
)
async def test_a_new_repository_that_runs_something_or_leads_away_is_put_away(policy, run, plant, profile):
    _, _, reports = await run(f"git init -q && {plant}", profile)
    assert (len(reports), lies(policy.workspace / ".git")) == (1, False)


@BWRAP
@pytest.mark.parametrize(
    ("plant", "arm"),
    [
        ("echo ../e > .git/commondir", "mkdir e; git config -f e/config core.fsmonitor x"),
        ("echo : > h.sh; ln -s ../../h.sh .git/hooks/pre-commit", "chmod +x h.sh"),
    ],
)
async def test_a_new_repository_that_is_armed_later_is_put_away_then(policy, run, plant, arm):
    assert await run(f"git init -q && {plant}; sleep 0.2") == (0, "", [])
    _, _, reports = await run(arm)
    assert [report.partition(" is a git repository that")[0] for report in reports] == [f"{policy.workspace}/.git"]
    assert not lies(policy.workspace / ".git")


@BWRAP
async def test_links_that_were_replaced_are_made_anew(policy, run):
    (policy.workspace / "rules.md").write_text("real\n")
    (policy.workspace / "CLAUDE.md").symlink_to("rules.md")
    _, _, reports = await run("echo bad >> rules.md; rm CLAUDE.md; echo bad > CLAUDE.md")
    assert os.readlink(policy.workspace / "CLAUDE.md") == "rules.md"
    assert (policy.workspace / "rules.md").read_text() == "real\n"
    assert len(reports) == 1


@BWRAP
async def test_a_nested_repository_is_read_only_and_cannot_be_swapped(policy, run):
    nested = policy.workspace / "vendor/lib"
    nested.mkdir(parents=True)
    git(nested, "init", "-q")
    _, _, reports = await run(
        "echo x > vendor/lib/.git/hooks/post-checkout; mv vendor old && mkdir -p vendor/lib/.git && echo x > vendor/lib/.git/x"
    )
    assert not (nested / ".git/x").exists()
    assert not list(policy.workspace.glob("**/post-checkout"))
    assert len(reports) == 1
    assert "not what it was" in reports[0]


FSMONITOR = "git -C {0} config core.fsmonitor 'touch pwn'"
PLANTS = [
    ("sub", "git init -q sub; " + FSMONITOR.format("sub")),
    ("a/b/c/d/e", "mkdir -p a/b/c/d; git init -q a/b/c/d/e; " + FSMONITOR.format("a/b/c/d/e")),
    ("node_modules/x", "mkdir node_modules; git init -q node_modules/x; " + FSMONITOR.format("node_modules/x")),
    (
        "sub",
        "git init -q sub; printf '#!/bin/sh\\ntouch pwn\\n' > sub/.git/hooks/post-index-change; chmod +x sub/.git/hooks/post-*",
    ),
    ("sub", "git init -q sub; printf '[alias]\\n\\tst = !touch pwn\\n' >> sub/.git/config"),
    ("sub", "git init -q sub; printf '[include] path = ../../x\\n' >> sub/.git/config"),
    ("sub", "git init -q sub; printf '[filter \"x\"]\\nclean = touch pwn\\n' >> sub/.git/config"),
    ("sub", "git init -q sub; git -C sub config diff.external 'touch pwn'"),
    (
        "sub",
        "mkdir sub; git init -q --bare store; git config -f store/config core.sshCommand x; echo 'gitdir: ../store' > sub/.git",
    ),
    ("sub", "git init -q t; mkdir sub; mv t/.git sub/.git; git -C sub config core.hooksPath ../hooks"),
]
BARE = "mkdir -p {0}/objects {0}/refs; echo 'ref: refs/heads/m' > {0}/HEAD; printf '[core]\\nbare = false\\nfsmonitor = touch pwn\\n' > {0}/config"


@BWRAP
@pytest.mark.parametrize(("place", "command"), PLANTS)
async def test_a_repository_below_that_would_run_something_is_put_away(policy, run, place, command):
    code, output, reports = await run(f"set -e; {command}")
    assert code == 0, output
    mine = [r for r in reports if r.startswith(f"{policy.workspace}/{place}/.git is a git repository that would run")]
    assert len(mine) == 1, reports
    assert not lies(policy.workspace / place / ".git")
    assert lies(mine[0].rpartition(" moved to ")[2].removesuffix("."))


@BWRAP
@pytest.mark.parametrize("place", ["bare", "deep/er/bare", "."])
async def test_a_bare_layout_that_would_run_something_is_put_away(policy, run, place):
    folder = policy.workspace / place
    _, _, reports = await run(BARE.format(place))
    assert len(reports) == 1
    assert "core.fsmonitor" in reports[0]
    assert not lies(folder / "HEAD")
    done = await asyncio.to_thread(subprocess.run, ["git", "status"], cwd=folder, capture_output=True, check=False)
    assert (done.returncode, list(policy.workspace.rglob("pwn"))) == (128, [])


@BWRAP
async def test_a_bare_layout_in_several_commands(policy, run):
    steps = [s.strip() for s in BARE.format("x").split(";")]
    reports = [(await run(step))[2] for step in [steps[2].replace("> x", "> y"), steps[0], steps[2], steps[1]]]
    assert [len(r) for r in reports] == [0, 0, 0, 1]
    assert sorted(os.listdir(policy.workspace / "x")) == ["config", "objects", "refs"]


@BWRAP
async def test_a_harmless_repository_below_stays(policy, run):
    command = (
        "git init -q one && cd one && git config user.name n && git config user.email e && git commit -q --allow-empty -m x"
        " && git config core.autocrlf input && cd .. && git clone -q one two && git clone -q --bare one three.git"
        " && git -C two config core.fsmonitor false && git -C one worktree add -q ../four"
    )
    assert await run(command) == (0, "", [])
    assert [lies(policy.workspace / p) for p in ("one/.git", "two/.git", "three.git/HEAD", "four/.git")] == [True] * 4


@BWRAP
async def test_what_was_there_before_stays_until_it_changes(policy, run):
    for name in ("node_modules/d", "bare"):
        (policy.workspace / name).mkdir(parents=True)
    git(policy.workspace / "node_modules/d", "init", "-q")
    git(policy.workspace / "bare", "init", "-q", "--bare")
    git(policy.workspace / "bare", "config", "alias.x", "!own")
    assert await run("true") == (0, "", [])
    _, _, reports = await run(
        "git -C node_modules/d config core.fsmonitor ./x; git config -f bare/config alias.x '!other'"
    )
    (report,) = reports
    assert f"{policy.workspace}/bare (would run alias.x)" in report
    assert f"{policy.workspace}/node_modules/d/.git (would run core.fsmonitor). It was left in place" in report


def test_a_planted_repository_of_a_crash_is_found_at_the_next_start(policy):
    git(policy.workspace, "init", "-q", "old")
    git(policy.workspace / "old", "config", "alias.x", "!own")
    watch = Watch(policy.quarantine)
    watch.below(policy.roots, Repositories(policy.roots))
    watch.start()
    git(policy.workspace, "init", "-q", "new")
    git(policy.workspace / "new", "config", "core.fsmonitor", "x")
    note = json.loads(watch.note.path.read_text())
    watch.note.path.write_text(json.dumps({**note, "began": 1}))  # another process of that number
    (report,) = recover(policy.quarantine)
    assert report.startswith(
        f"{policy.workspace}/new/.git is a git repository that would run a program (core.fsmonitor)"
    )
    assert lies(policy.workspace / "old/.git")


def test_looking_again_lists_only_what_has_changed(policy, monkeypatch):
    for number in range(40):
        (policy.workspace / f"{number}/src").mkdir(parents=True)
    aged = time.time_ns() + 10**9
    monkeypatch.setattr(time, "time_ns", lambda: aged)
    walk = Repositories(policy.roots)
    assert walk.look() == {}
    (policy.workspace / "7/src/.git").mkdir()
    (policy.workspace / "7/src/.git/HEAD").touch()
    listed, real = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (listed.append(path), real(path))[1])
    assert walk.look() == {f"{policy.workspace}/7/src/.git": ""}
    assert listed == [f"{policy.workspace}/7/src", policy.workspace / "7/src/.git/hooks"]


async def test_a_crash_in_between_is_found_at_the_next_start(policy):
    script = """
import sys, os
from pathlib import Path
from hypercode.safety.sandbox_watch import Watch
watch = Watch(Path(sys.argv[1]))
watch.add(Path(sys.argv[2]))
watch.start()
Path(sys.argv[2]).write_text("planted")
os._exit(9)
"""
    name = policy.workspace / ".mcp.json"
    root = str(Path(__file__).parents[2])
    arguments = [sys.executable, "-c", script, str(policy.quarantine), str(name)]
    process = await asyncio.create_subprocess_exec(*arguments, env={**os.environ, "PYTHONPATH": root})
    await process.wait()
    assert name.exists()
    (report,) = recover(policy.quarantine)
    assert report.startswith(f"{name} appeared")
    assert not name.exists()
    assert recover(policy.quarantine) == []


def test_a_watch_of_a_living_program_is_left_alone(policy):
    watch = Watch(policy.quarantine)
    watch.add(policy.workspace / ".mcp.json")
    watch.start()
    (policy.workspace / ".mcp.json").touch()
    assert (recover(policy.quarantine), watch.note.path.exists()) == ([], True)
    assert len(watch.finish()) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"process": "x"}', '{"process": 1, "more": 2}', "\0"])
def test_a_damaged_note_is_no_error(policy, content):
    policy.quarantine.mkdir(parents=True)
    (policy.quarantine / "watching-1.json").write_text(content)
    assert recover(policy.quarantine) == []


# git


@BWRAP
async def test_the_git_profile_lets_commit_but_not_plant(repository, run):
    code, output, reports = await run("echo b > b.txt && git add . && git commit -qm two && git log --format=%s", "git")
    assert (code, output, reports) == (0, "two\none\n", [])
    before = (repository / ".git/config").read_bytes()
    _, _, reports = await run(
        "git config core.fsmonitor x; echo x > .git/hooks/pre-commit; echo ../e > .git/commondir; mv .git g; rm -rf .git/hooks; "
        "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes; echo x > .git/config.worktree",
        "git",
    )
    assert (repository / ".git/config").read_bytes() == before
    assert not (repository / "g").exists()
    assert [
        (repository / ".git" / n).exists()
        for n in ("hooks/pre-commit", "commondir", "info/attributes", "config.worktree")
    ] == [False] * 4
    assert sorted(report.split(" ")[0].rpartition(".git/")[2] for report in reports) == [
        "commondir",
        "config.worktree",
        "info/attributes",
    ]


@BWRAP
async def test_hooks_are_off_in_the_git_profile(repository, run):
    hook = repository / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    code, _, _ = await run("git commit -q --allow-empty -m two", "git")
    assert (code, (repository / "ran").exists()) == (0, False)


@BWRAP
async def test_a_linked_work_tree(base, repository, policy):
    git(repository, "worktree", "add", "-q", str(base / "home/tree"))
    policy = Policy((base / "home/tree",), policy.home, policy.temp, policy.quarantine)
    assert git_folders(policy.workspace) == [repository / ".git/worktrees/tree", repository / ".git"]
    env = child_environment(os.environ, temp=policy.temp)
    box = Box.probe(policy, env)

    async def run(command, profile):
        with box.enter(["/bin/bash", "-c", "--", command], profile) as entered:
            done = await run_group(
                entered.argv, cwd=policy.workspace, env=env, pass_fds=entered.pass_fds, contained=True
            )
        return done.returncode, entered.reports

    assert (await run("git commit -q --allow-empty -m no", "workspace"))[0] != 0
    assert await run("git commit -q --allow-empty -m two", "git") == (0, [])
    await run("echo 'gitdir: /tmp/evil' > .git; echo /tmp/e > $(git rev-parse --git-dir)/commondir; rm -f .git", "git")
    assert (base / "home/tree/.git").read_text() == f"gitdir: {repository}/.git/worktrees/tree\n"
    assert (repository / ".git/worktrees/tree/commondir").read_text() == "../..\n"


def test_git_folders_of_no_repository(policy):
    assert git_folders(policy.workspace) == []
    (policy.workspace / ".git").write_text("gitdir: ../nowhere\n")
    assert git_folders(policy.workspace) == []


# lists


def test_secret_places_are_what_exists_outermost_only(policy):
    (policy.home / ".ssh").mkdir()
    (policy.home / ".docker").mkdir()
    (policy.home / ".docker/config.json").touch()
    (policy.home / ".CONFIG").mkdir()
    (policy.home / ".CONFIG/GH").mkdir()
    policy.quarantine.mkdir(parents=True)
    below = [path for path in secret_places(policy) if path.is_relative_to(policy.home.parent)]
    assert below == [
        policy.home / ".CONFIG/GH",
        policy.home / ".docker/config.json",
        policy.home / ".ssh",
        policy.quarantine.parent,
    ]


def test_tokens_of_services_are_secret_places_and_what_lies_beside_them_is_not(policy):
    names = (".cache/huggingface/token", ".cache/huggingface/hub/x", ".circleci/cli.yml", ".circleci/config.yml", ".Xauthority",
             ".config/stripe/config.toml", ".fly/config.yml", ".fly/bin/fly", ".config/pip/pip.conf")  # fmt: skip
    for name in names:
        (policy.home / name).parent.mkdir(parents=True, exist_ok=True)
        (policy.home / name).touch()
    below = [path for path in secret_places(policy) if path.is_relative_to(policy.home)]
    assert [str(path.relative_to(policy.home)) for path in below] == [
        ".Xauthority", ".cache/huggingface/token", ".circleci/cli.yml", ".config/stripe", ".fly/config.yml",
    ]  # fmt: skip


def test_a_secret_place_that_holds_the_workspace_is_not_masked(base, policy):
    inside = policy.home / ".config/gh/work"
    inside.mkdir(parents=True)
    assert policy.home / ".config/gh" not in secret_places(
        Policy((inside,), policy.home, policy.temp, policy.quarantine)
    )


def test_nested_repositories_are_found_but_not_in_tool_folders(policy):
    for name in ("a", "b/c", "node_modules/d", "1/2/3/4"):
        (policy.workspace / name / ".git").mkdir(parents=True)
    found = [
        str(p.relative_to(policy.workspace))
        for p in protected(policy, Repositories(policy.roots).git_folders())
        if p.name == ".git"
    ]
    assert found == [".git", "a/.git", "b/c/.git", "1/2/3/4/.git"]


# without a box


def test_no_bubblewrap_is_no_box(policy, monkeypatch):
    monkeypatch.setattr(sandbox_bwrap, "_SYSTEM", ())
    box = Box.probe(policy, {"PATH": f"/nowhere:{policy.workspace}"})
    assert (box.kind, box.full) == ("none", False)
    assert box.describe() == "Sandbox: none — every command asks. Install bubblewrap (0.8 or newer) for one."
    assert box.wrap(["a", "b"]) == sandbox.Entered(["a", "b"])
    with box.enter(["a"]) as entered:
        assert (entered.argv, entered.pass_fds, entered.contained) == (["a"], (), False)


def test_a_bwrap_in_the_workspace_is_not_taken(policy, monkeypatch):
    monkeypatch.setattr(sandbox_bwrap, "_SYSTEM", ())
    (policy.workspace / "bwrap").touch(mode=0o755)
    (policy.home / "bwrap").touch(mode=0o755)
    assert sandbox_bwrap.find_bwrap(f".::{policy.workspace}", policy) is None
    assert sandbox_bwrap.find_bwrap(str(policy.home), policy) == str(policy.home / "bwrap")


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'bwrap: Unknown option --disable-userns' >&2; exit 1", "bubblewrap is too old; 0.8 or newer is needed."),
        (
            "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1",
            "make namespaces (bwrap: setting up uid map: Permission denied)",
        ),
        ("echo odd >&2; exit 1", "bubblewrap failed: odd."),
        ("exit 1", "bubblewrap failed: no reason given."),
        ("exec sleep 60", "bubblewrap could not be run"),
    ],
)
def test_a_bubblewrap_that_does_not_work_is_no_box(policy, monkeypatch, script, why):
    monkeypatch.setattr(sandbox, "_PROBE_SECONDS", 0.5)
    fake = policy.home / "bwrap"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sandbox_bwrap, "_SYSTEM", (str(fake),))
    box = Box.probe(policy, {"PATH": os.defpath})
    assert box.kind == "none"
    assert why in box.why


def test_a_machine_without_a_filter_has_no_box(policy, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert (
        Box.probe(policy, {}).describe()
        == "Sandbox: none — every command asks. There is no filter for riscv64 machines."
    )


# macOS


def test_the_profile_for_macos(tmp_path):
    """Untested on a Mac: this only keeps the text from changing unseen."""
    work, home = tmp_path / 'pro"ject (1)', tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    work.mkdir()
    (tmp_path / "kept").mkdir()
    git(work, "init", "-q")
    policy = Policy((work,), home, tmp_path / "temp", tmp_path / "state/quarantine", readable=(tmp_path / "kept",))
    text = "\n".join(
        sandbox_macos.profile(policy, protected(policy, ()), git=git_, network=git_) for git_ in (False, True)
    )
    place = sandbox_macos._below(policy.home.parent).removeprefix('(regex #"^').removesuffix('(/|$)")')
    lines = [line for line in text.replace(place, "@").split("\n") if "@" in line or "[eE][tT][cC]" not in line]
    lines = [line for line in lines if "[vV][aA][rR]/[sS]" not in line]
    assert "\n".join(lines) == GOLDEN.read_text()


# repositories that are planted in more than one step


@BWRAP
@pytest.mark.parametrize(
    "plant",
    [
        "git init -q sub; git init -q y; mv y/.git 'sub/.git/evil '; mkdir x; printf 'gitdir: ../sub/.git/evil \\n' > x/.git;"
        " git config -f 'sub/.git/evil /config' core.fsmonitor ./pwn",
        "git init -q sub; mkdir 'sub/.git/inner '; cp -r sub/.git/objects sub/.git/refs 'sub/.git/inner ';"
        " printf 'inner \\n' > sub/.git/commondir; git config -f 'sub/.git/inner /config' core.fsmonitor ./pwn",
    ],
    ids=["pointer", "commondir"],
)
async def test_blanks_belong_to_a_name(policy, run, plant):
    """As git reads a pointer: only the line end is cut off."""
    _, _, reports = await run(plant)
    assert ["core.fsmonitor" in report for report in reports] == [True]


@BWRAP
@pytest.mark.parametrize(
    ("plant", "arm"),
    [
        ("mkdir inner; echo ../../inner > sub/.git/commondir", "git config -f inner/config core.fsmonitor ./pwn"),
        (
            "echo : > h.sh; ln -s ../../../h.sh sub/.git/hooks/post-index-change",
            "chmod +x h.sh",
        ),
        ("rm -rf sub/.git/hooks; mkdir hk; echo : > hk/post-checkout; ln -s ../../hk sub/.git/hooks", "chmod +x hk/*"),
        ("echo : > sub/.git/hooks/post-checkout", "chmod +x sub/.git/hooks/post-checkout"),
    ],
    ids=["commondir", "linked hook", "linked hooks", "hook"],
)
async def test_what_is_armed_later_is_seen(policy, run, plant, arm):
    """In a folder that tools fill, where repositories are only looked at and not closed."""
    (policy.workspace / "node_modules").mkdir()
    assert await run(f"cd node_modules; git init -q sub; {plant}; sleep 0.2") == (0, "", [])
    _, _, reports = await run(f"cd node_modules; {arm}")
    assert [report.split(" is a git repository that would run")[0] for report in reports] == [
        f"{policy.workspace}/node_modules/sub/.git"
    ]


@BWRAP
async def test_empty_places_hide_no_repository_and_too_many_are_said(policy, run, monkeypatch):
    monkeypatch.setattr("hypercode.safety.git_watch._MOST_PLACES", 20)
    many = "mkdir -p $(seq -f 'a%g/.git' 30); git init -q z; git config -f z/.git/config core.fsmonitor ./pwn"
    _, _, reports = await run(many)
    assert ["core.fsmonitor" in report for report in reports] == [True]
    _, _, reports = await run("for n in $(seq 30); do cp -r z b$n; mkdir b$n/.git; : > b$n/.git/HEAD; done")
    assert [report.partition(" than are looked at")[0] for report in reports] == [
        "There are more folders or repositories here now"
    ]


@BWRAP
def test_secrets_of_the_workspace_can_be_hidden(policy, run):
    work = policy.workspace
    secret = (
        *(".env", "sub/.env.local", "sub/server.pem", "sub/secrets/token"),
        *("sub/secrets/a/b/c/token", "a/.config/gh/hosts.yml", "a/.aws/b/c/d/e"),
    )
    for name in (*secret, "sub/.env.example", "sub/secrets.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(f"zz {name}\n")
    command = ["/bin/sh", "-c", "grep -rn zz . | sort; cat .env sub/*.pem"]
    box = run.box
    for hidden, seen in ((False, 11), (True, 2)):
        with box.enter(command, hidden=hidden) as entered:
            done = subprocess.run(entered.argv, pass_fds=entered.pass_fds, capture_output=True, text=True, check=False)
        assert len(done.stdout.splitlines()) == seen, done.stdout
        assert entered.reports == []
    assert done.stdout.splitlines() == [
        "./sub/.env.example:1:zz sub/.env.example",
        "./sub/secrets.py:1:zz sub/secrets.py",
    ]
