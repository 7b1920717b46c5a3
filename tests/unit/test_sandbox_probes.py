"""Commands in the box, looked at from outside; and the same in a weak box, to see that the probes can fail."""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from hypercode.process import child_environment, run_group
from hypercode.safety.own_git import own_git
from hypercode.safety.sandbox import Box, Policy

CASES = json.loads((Path(__file__).parents[1] / "cases/security/sandbox-probes.json").read_text())["cases"]
LIMIT = 20_000
OTHER = 61234
"""A user id that nobody has."""
USERS = ["me", "other"] if sys.platform == "linux" and os.geteuid() == 0 and shutil.which("setpriv") else ["me"]
pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")


class World:
    """A home with a workspace, things that must not be touched, and listeners on the host."""

    def __init__(self):
        self.base = Path(tempfile.mkdtemp(prefix="probe-", dir="/var/tmp"))
        self.base.chmod(0o755)
        self.home = self.base / "home"
        self.ws = self.home / "work"
        self.out = self.home / "other"
        self.listeners = Listeners()
        env = {**os.environ, "MY_SERVICE_SECRET": "CANARY-ENV"}
        self.host = subprocess.Popen(["sh", "-c", "sleep 3000; : CANARY-ARG"], env=env, start_new_session=True)

    def fresh(self, user):
        shutil.rmtree(self.home, ignore_errors=True)
        for name in ("temp", "quarantine"):
            shutil.rmtree(self.base / name, ignore_errors=True)
            (self.base / name).mkdir()
        for name, text in {
            "other/canary.txt": "canary",
            "keep/a.txt": "a",
            ".bashrc": "# rc",
            ".profile": "# rc",
            ".ssh/id_ed25519": "CANARY-S1",
            ".aws/credentials": "CANARY-S2",
            ".netrc": "CANARY-S3",
            "work/src/a.py": "print(1)\n",
        }.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git = ["git", "-C", str(self.ws), "-c", "user.name=n", "-c", "user.email=n@example.invalid"]
        setup = [
            ["init", "-q"],
            ["config", "user.name", "n"],
            ["config", "user.email", "n@example.invalid"],
            ["add", "."],
        ]
        for arguments in [*setup, ["commit", "-qm", "one"]]:
            subprocess.run([*git, *arguments], check=True)
        self.listeners.bind(self.out / "host.sock")
        (self.out / "host.sock").chmod(0o777)
        if user == "other":
            for path in [self.home, *self.home.rglob("*"), self.base / "temp"]:
                os.chown(path, OTHER, OTHER, follow_symlinks=False)

    def fill(self, text):
        names = {"WS": self.ws, "HOME": self.home, "OUT": self.out, "HOSTPID": self.host.pid, **self.listeners.names}
        for name, value in names.items():
            text = text.replace(f"{{{name}}}", str(value))
        return text.replace("sleep 7780", f"sleep 9{os.getpid()}")  # test runs side by side do not see each other's

    def close(self):
        self.listeners.close()
        with contextlib.suppress(OSError):
            os.killpg(self.host.pid, 9)
        self.host.wait()
        shutil.rmtree(self.base, ignore_errors=True)


class Listeners:
    def __init__(self):
        self.open = []
        self.tcp = self._serve(socket.AF_INET, ("127.0.0.1", 0), b"CANARY-TCP")
        abstract = f"hypercode-probe-{os.getpid()}"
        self._serve(socket.AF_UNIX, f"\0{abstract}", b"CANARY-ABS")
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.udp.setblocking(False)
        self.names = {"PORT": self.tcp.getsockname()[1], "UDP": self.udp.getsockname()[1], "ABS": abstract}

    def bind(self, path):
        self.names["SOCK"] = path
        self._serve(socket.AF_UNIX, str(path), b"CANARY-UNIX")

    def _serve(self, family, address, greeting):
        server = socket.socket(family)
        server.bind(address)
        server.listen()
        self.open.append(server)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    client.sendall(greeting)
                    client.close()

        threading.Thread(target=accept, daemon=True).start()
        return server

    def heard(self):
        try:
            return self.udp.recv(100)
        except BlockingIOError:
            return b""

    def close(self):
        for server in [*self.open, self.udp]:
            server.close()


def state(path):
    status = path.lstat()
    return path.read_bytes(), status.st_mode, status.st_mtime_ns, status.st_ino


def processes(text):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if text in line and folder.name != str(os.getpid()) and "pytest" not in line:
                found.append(line)
    return found


@contextlib.contextmanager
def inheritable(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def probe(world, case, user, strong=True):
    """Run a case; what does not hold, in words."""
    world.fresh(user)
    checks = [[world.fill(str(word)) for word in check] for check in case["checks"]]
    limits = [float(check[1]) for check in checks if check[0] == "timeout_s"]
    same = {check[1]: state(Path(check[1])) for check in checks if check[0] == "same"}
    world.listeners.heard()
    argv = ["/bin/bash", "-c", "--", world.fill(case["command"])]
    switch = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"] if user == "other" else []
    path = "/usr/local/bin:/usr/bin:/bin"
    reports = []
    with inheritable(world.out / "canary.txt") as leak:
        limit = limits[0] if limits else 30
        if strong:
            parent = {**os.environ, "MY_SERVICE_SECRET": "CANARY-ENV", "HOME": str(world.home), "PATH": path}
            policy = Policy((world.ws,), world.home, world.base / "temp", world.base / "quarantine")
            env = child_environment(parent, temp=policy.temp)
            box = Box.probe(policy, env)
            assert box.full, box.why
            with box.enter(argv) as entered:
                command = switch + entered.argv
                if switch:
                    command[0] = shutil.which("setpriv")
                finished = await run_group(
                    command, cwd=world.ws, env=env, timeout=limit, limit_bytes=LIMIT,
                    pass_fds=entered.pass_fds, contained=entered.contained,
                )  # fmt: skip
            reports = entered.reports
        else:
            weak = ["/usr/bin/bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-pid", *argv]
            env = {**os.environ, "MY_SERVICE_SECRET": "CANARY-ENV", "TMPDIR": str(world.base / "temp"), "PATH": path}
            finished = await run_group(weak, cwd=world.ws, env=env, timeout=limit, limit_bytes=LIMIT, pass_fds=[leak])
    await asyncio.sleep(0.2)  # the probes' own measure for left-over processes
    bad = [(check, check_fails(check, finished, world, same, reports)) for check in checks]
    return [f"{check}: {reason}" for check, reason in bad if reason], finished


def check_fails(check, finished, world, same, reports):
    kind, *rest = check
    output = finished.output
    place = Path(rest[0]) if rest else Path()
    match kind:
        case "stdout_has":
            return rest[0] not in output and (output or "nothing was printed")
        case "stdout_lacks":
            return rest[0] in output and output
        case "rc0":
            return finished.returncode != 0 and (finished.returncode, output)
        case "rc":
            return finished.returncode != int(rest[0]) and (finished.returncode, output)
        case "present":
            return not place.exists() and "it is missing"
        case "absent" | "host_absent":
            return os.path.lexists(place) and "it is there"
        case "absent_or_reported":
            return os.path.lexists(place) and not any(str(place) in report for report in reports) and "it is there"
        case "same":
            return (not place.exists() or state(place) != same[rest[0]]) and "it is not the same"
        case "max_s":
            return finished.seconds > float(rest[0]) and f"{finished.seconds} s"
        case "timeout_s":
            return False
        case "no_proc":
            return processes(rest[0])
        case "alive":
            return world.host.poll() is not None and "it is dead"
        case "output_cap":
            return len(output) > LIMIT + 1000 and len(output)
        case "udp_silent":
            return world.listeners.heard()
        case "tty_silent":
            return False  # has a test of its own
        case "max_bytes":
            return place.exists() and place.stat().st_size > int(rest[1]) and place.stat().st_size
        case "own_git_safe":
            marker, folder = Path(rest[0]), rest[1]
            for arguments in (["status", "--short"], ["diff"], ["log", "-1"]):
                subprocess.run(own_git(*arguments), cwd=folder, capture_output=True, check=False)
            return marker.exists() and "the marker is there"
    raise AssertionError(f"unknown check {kind}")


@pytest.fixture(scope="module")
def world():
    world = World()
    yield world
    world.close()


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
async def test_probe(world, case, user):
    bad, finished = await probe(world, case, user)
    assert bad == [], finished.output


@pytest.mark.parametrize("number", ["010", "016", "018", "024", "025", "027", "030", "031", "033"])
async def test_a_probe_fails_in_a_weak_box(world, number):
    """With its own process space and nothing else."""
    case = next(case for case in CASES if case["id"] == f"probe-s-{number}")
    bad, finished = await probe(world, case, "me", strong=False)
    assert bad != [], finished.output


@pytest.mark.soak
async def test_half_of_all_probes_fail_in_a_weak_box(world):
    failed = []
    for case in (case for case in CASES if case["threat"] != "resource"):
        bad, _ = await probe(world, case, "me", strong=False)
        failed += [case["id"]] if bad else []
    assert len(failed) >= 25, failed


def test_own_git_runs_nothing_of_a_planted_repository_where_plain_git_does(world):
    world.fresh("me")
    marker, bare = world.out / "pwn", world.ws / "bare"
    for name in ("objects", "refs"):
        (bare / name).mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/m\n")
    (bare / "config").write_text(
        f'[core]\nrepositoryformatversion = 0\nbare = false\nworktree = {bare}\nfsmonitor = "touch {marker}"\n'
    )
    for arguments in (["status", "--short"], ["diff"], ["log", "-1"]):
        subprocess.run(own_git(*arguments), cwd=bare, capture_output=True, check=False)
    assert not marker.exists()
    subprocess.run(["git", "status"], cwd=bare, capture_output=True, check=False)
    assert marker.exists()


def test_nothing_is_typed_into_the_terminal(world):
    """TIOCSTI and /dev/tty from the box of a program that has a terminal."""
    world.fresh("me")
    script = f"""
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from hypercode.process import child_environment, run_group
from hypercode.safety.sandbox import Box, Policy
base = Path({str(world.base)!r})
policy = Policy((base / "home/work",), base / "home", base / "temp", base / "quarantine")
env = child_environment(os.environ, temp=policy.temp)
box = Box.probe(policy, env)
command = '''python3 -c "
import fcntl, termios, os
for name in ('/dev/tty', '/dev/fd/0', '/dev/fd/1'):
    try:
        fd = os.open(name, os.O_RDWR)
        for c in 'TYPED': fcntl.ioctl(fd, termios.TIOCSTI, c.encode())
        print('typed')
    except OSError as error:
        print(error)
"'''
async def main():
    with box.enter(["/bin/bash", "-c", "--", command]) as entered:
        done = await run_group(entered.argv, cwd="/", env=env, pass_fds=entered.pass_fds, contained=entered.contained)
    os.set_blocking(0, False)
    try:
        heard = os.read(0, 100)
    except BlockingIOError:
        heard = b""
    print("HEARD", heard, "END", repr(done.output), "OVER", flush=True)
asyncio.run(main())
"""
    import pexpect

    child = pexpect.spawn(sys.executable, ["-c", script], timeout=30, encoding="utf-8", dimensions=(50, 2000))
    child.expect("HEARD (.*) END (.*) OVER")
    assert child.match[1] == "b''"
    assert "typed" not in child.match[2]
    child.close()
