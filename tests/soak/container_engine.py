"""A container engine for tests: podman without the rights of root, with a store and settings of its own.

Everything that a machine or a test needs besides is settings (the server that containers talk to, how pip reaches its
registry, which storage and runtime work here), so that a documented command line can stay as it stands.

Where the tests run as root, podman runs as a user whom only a mount namespace knows, and what it starts lives in a process
namespace: both end with the process of the tests, and the machine keeps nothing of them.
"""

import ast
import contextlib
import itertools
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from clean_place import environment

DRIVERS = ("overlay", "vfs")
RUNTIMES = (None, "crun", "runc")
"""The engine's own choice first; crun, for one, knows nothing to do with the two kinds of control groups at once."""
SUBORDINATE = "600000:65536"
REACHES = {"index-url", "extra-index-url", "trusted-host", "proxy", "cert", "client-cert", "timeout"}
"""What in pip's configuration says how the registry is reached."""
KEEPER = """
set -e
mount --make-rshared /
mount -t overlay -o "lowerdir=$1/etc:/etc" overlay /etc
echo ready
while read -r _; do :; done
"""
"""The first process of the namespace, which ends with its input; a shell, since the engine waits until one takes note that
its monitors have ended.
"""


def last_line(ran):
    """What a program complained of."""
    return next((line for line in reversed(ran.stderr.splitlines()) if line.strip()), f"exit {ran.returncode}")


def list_of(words):
    """A list of strings, as the engine's configuration has it."""
    return json.dumps(list(words))


def pip_configuration(folder):
    """The volumes with which pip in a build reaches the registry as pip does here; indexes in files stay behind."""
    command = [sys._base_executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    found = {name: ast.literal_eval(value) for name, value in re.findall(r"^[\w:]+\.([\w-]+)=('.*')$", listed, re.M)}
    options = {name: value for name, value in found.items() if name in REACHES}
    if certificates := os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE"):
        options.setdefault("cert", certificates)
    volumes, lines = [], ["[global]"]
    for name, value in options.items():
        if name in ("cert", "client-cert"):
            volumes.append(f"{value}:/etc/pip/{name}:ro")
            lines.append(f"{name} = /etc/pip/{name}")
        elif urls := [word for word in value.split() if not word.startswith("file:")]:
            lines.append(f"{name} = {' '.join(urls)}")
    (folder / "pip.conf").write_text("\n".join(lines) + "\n")
    return [*volumes, f"{folder / 'pip.conf'}:/etc/pip.conf:ro"]


class Engine:
    """Podman; `uid` is the user it runs as.  A context manager; entering skips where there is none that could work."""

    def __init__(self, folder):
        self.folder = folder
        self.uid = os.getuid() or next(n for n in itertools.count(20_000) if not known(n))
        self._keeper = None
        self._driver, self._runtime = DRIVERS[0], RUNTIMES[0]

    def __enter__(self):
        if not shutil.which("podman"):
            pytest.skip("there is no podman here")
        if os.getuid() == 0:
            self._keep()
        return self

    def __exit__(self, *exc):
        try:
            for self._driver in DRIVERS:
                if self._place.exists():
                    self.run("podman rm --all --force; podman unshare rm -rf home/.local", cwd=self._place)
                    self._end_pause()
        finally:
            if self._keeper:
                self._keeper.communicate()  # the end of its input is the end of all in its namespace

    def give(self, path):
        """The folder with all in it belongs to the user as whom the engine runs."""
        for one in (path, *path.rglob("*")):
            os.chown(one, self.uid, self.uid if self._keeper else -1, follow_symlinks=False)
        return path

    def new_folder(self, name, **files):
        """A folder of that user's with these files."""
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))
        for file, content in files.items():
            (folder / file).write_text(content)
        return self.give(folder)

    def argv(self, line, *, cwd, variables=None, inside=None, volumes=()):
        """A line of a shell as a command: with these variables, and with those `inside` each container."""
        more = {"CONTAINERS_CONF": str(self._configuration(inside, volumes)), "STORAGE_DRIVER": self._driver}
        more |= {"XDG_RUNTIME_DIR": str(self._place / "run"), "TERM": "xterm-256color", **(variables or {})}
        variables = environment(self._place / "home", self._place / "cache", "/usr/sbin", "/sbin", **more)
        words = [f"{name}={value}" for name, value in variables.items()]
        command = ["env", "-i", f"--chdir={cwd}", *words, "bash", "-c", line]
        if not self._keeper:
            return command
        spaces = f"/proc/{self._keeper.pid}/ns"
        enter = ["nsenter", f"--mount={spaces}/mnt", f"--pid={spaces}/pid_for_children"]
        return [*enter, "setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", *command]

    def run(self, line, *, timeout=120, **more):
        """Run a line of a shell, without a terminal, and say how it went."""
        return subprocess.run(
            self.argv(line, **more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def with_image(self, image):
        """Have this image and settings with which a container of it runs; skips where that cannot be."""
        reasons = []
        for self._driver in DRIVERS:
            for folder in (self._place, self._place / "home", self._place / "run"):
                folder.mkdir(mode=0o700)
                self.give(folder)
            if failed := self._have(image):
                reasons.append(f"{self._driver}: {failed}")
                continue
            for self._runtime in RUNTIMES:
                if self._runtime and not shutil.which(self._runtime):
                    continue
                ran = self.run(f"podman run --rm {image} python -c ''", cwd=self._place)
                if ran.returncode == 0:
                    return
                reasons.append(f"{self._driver}, {self._runtime or 'its own runtime'}: {last_line(ran)}")
        pytest.skip("no container runs here: " + "; ".join(reasons))

    @property
    def _place(self):
        return self.folder / self._driver

    def _configuration(self, inside, volumes):
        """The engine's settings: the machine's network, where the tests' servers are, and no control groups to manage."""
        lines = ["[containers]", 'netns = "host"', f"volumes = {list_of(volumes)}"]
        if inside is not None:  # a proxy would be asked for the tests' server too
            lines += [f"env = {list_of(f'{name}={value}' for name, value in inside.items())}", "http_proxy = false"]
        lines += ["[engine]", 'cgroup_manager = "cgroupfs"', 'events_logger = "file"']
        lines += [f'runtime = "{self._runtime}"'] if self._runtime else []
        path = self.folder / "containers.conf"
        path.write_text("\n".join(lines) + "\n")
        return path

    def _keep(self):
        """The namespaces in which the engine runs as a user without rights, who is in no file of the machine."""
        etc = self.folder / "etc"
        etc.mkdir()
        line = f"tester:x:{self.uid}:"
        for name, more in {"passwd": f"{self.uid}::{self.folder}:/bin/bash", "group": ""}.items():
            (etc / name).write_text(f"{Path('/etc', name).read_text()}{line}{more}\n")
        for name in ("subuid", "subgid"):
            (etc / name).write_text(f"tester:{SUBORDINATE}\n")
        spaces = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        keeper = subprocess.Popen([*spaces, "bash", "-c", KEEPER, "keeper", self.folder], text=True, **pipes)
        if keeper.stdout.readline() != "ready\n":
            pytest.skip(f"no namespaces for podman can be made here: {keeper.communicate()[1].strip()}")
        self._keeper = keeper

    def _end_pause(self):
        """End the process with which podman holds its namespaces for the next call."""
        path = self._place / "run/libpod/tmp/pause.pid"
        if path.exists() and not self._keeper:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGKILL)

    def _have(self, image):
        """Pull the image, or make one that can stand in for it; why neither went."""
        pulled = self.run(f"podman pull --quiet {image}", cwd=self._place, timeout=900)
        if pulled.returncode == 0:
            return ""
        why = f"{image} cannot be pulled ({last_line(pulled)})"
        archive = self.folder / "stand-in.tar"
        if not archive.exists() and (failed := make_stand_in(archive)):
            return f"{why}, and {failed}"
        imported = self.run(f"podman import --quiet {archive} {image}", cwd=self._place, timeout=300)
        return last_line(imported) if imported.returncode else ""


def known(uid):
    """Whether the machine has this user."""
    try:
        return bool(pwd.getpwuid(uid))
    except KeyError:
        return False


def make_stand_in(archive):
    """Debian with a `python` and `pip` that may install where they are, as in Python's own images; why it went wrong."""
    if os.getuid() or not shutil.which("debootstrap"):
        return "nothing can stand in for it without root and debootstrap"
    root = archive.with_suffix("")
    packages = "--include=python3,python3-pip,ca-certificates"
    command = ["debootstrap", "--variant=minbase", packages, "stable", root]
    made = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if made.returncode:
        return f"debootstrap makes nothing to stand in for it: {(made.stdout + made.stderr).strip().splitlines()[-1]}"
    for marker in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()
    (root / "usr/bin/python").symlink_to("python3")
    left_out = [f"--exclude=./{name}/*" for name in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc")]
    subprocess.run(["tar", "-C", root, *left_out, "-cf", archive, "."], check=True, timeout=300)
    shutil.rmtree(root)
    return ""


@contextlib.contextmanager
def engine():
    """An engine in a folder of its own, of which nothing stays.

    Its name is short, since podman cleans nothing up, and waits 20 s for that, where its own folder has over 50 characters.
    """
    place = os.environ.get("TMPDIR", "/var/tmp")  # images are large for a folder that is kept in memory
    folder = Path(tempfile.mkdtemp(prefix="podman-", dir=place))
    folder.chmod(0o755)
    try:
        with Engine(folder) as made:
            yield made
    finally:
        shutil.rmtree(folder)
