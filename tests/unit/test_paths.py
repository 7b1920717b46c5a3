"""The file guard: where paths lead, what may happen there, and that opening decides once more."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from hypercode.errors import ToolError
from hypercode.safety.decision import Decision
from hypercode.safety.path_rules import Op
from hypercode.safety.paths import FileGuard, glob_base

AUTO, ASK, ALWAYS, DENY = Decision


class World:
    def __init__(self, base: Path) -> None:
        self.home, self.out = base / "home", base / "out"
        self.ws = self.home / "ws"
        self.own = self.home / "hc"
        for folder in (self.ws, self.out, self.own):
            folder.mkdir(parents=True)
        self.guard = FileGuard(self.ws, home=self.home, own=[self.own], readable=[self.own / "outputs"])

    def decide(self, op: Op, path: str) -> Decision:
        return self.guard.decide(op, path).decision


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(
    ("op", "path", "decision"),
    [
        ("read", "src/new.py", AUTO),
        ("write", "a/../b.txt", AUTO),
        ("write", ".github/workflows/ci.yml", AUTO),
        ("write", "docs/.gitignore", AUTO),
        ("write", "...", AUTO),
        ("write", "gitconfig", AUTO),
        ("write", "~draft.txt", AUTO),
        ("write", "sub/", DENY),
        ("write", ".", DENY),
        ("write", "..", DENY),
        ("write", "/", DENY),
        ("read", " ", DENY),
        ("read", "\ud800", DENY),
        ("read", "x" * 5000, DENY),
        ("read", "a/" * 3000, DENY),
        ("read", "~nobody-here-by-that-name/x", AUTO),
        ("read", "~root/.ssh/id_rsa", DENY),
        # secrets: in the project they ask, elsewhere they ask each time or are refused
        ("read", ".env.local", ASK),
        ("read", "deploy/prod.env", ASK),
        ("read", ".ENV", ASK),
        ("read", "certs/server.pem", ASK),
        ("read", "id_ed25519", ASK),
        ("read", "id_ed25519.pub", AUTO),
        ("read", "example.env", AUTO),
        ("read", ".env.sample", AUTO),
        ("read", "environment.py", AUTO),
        ("read", "credentials.py", AUTO),
        ("read", "keys.txt", AUTO),
        ("read", ".git/HEAD", AUTO),
        ("read", ".git/config", ASK),
        ("edit", ".env", ASK),
        ("write", "new.key", ASK),
        ("read", "../../out/.env", ALWAYS),
        ("read", "../../out/id_rsa", ALWAYS),
        ("read", "~/.ssh/known_hosts", DENY),
        ("read", "~/.SSH/id_rsa", DENY),
        ("ls", "~/.gnupg", DENY),
        ("grep", "~/.aws", DENY),
        ("read", "~/.bash_history", DENY),
        ("read", "~/Library/Application Support/Google/Chrome/Default/Cookies", DENY),
        ("read", "/home/somebody/.netrc", DENY),
        ("read", "/etc/shadow", DENY),
        ("read", "/etc/ssh/ssh_host_ed25519_key", DENY),
        ("read", "/run/secrets/token", DENY),
        ("read", "/etc/passwd", ASK),
        ("read", "/proc/1/environ", DENY),
        ("read", "/proc/self/root/etc/passwd", DENY),
        ("read", "/proc/self/cwd/x", DENY),
        ("read", "/dev/fd/0", DENY),
        ("read", "/dev/tty", DENY),
        ("read", "/dev/../etc/passwd", ASK),
        ("read", "/sys/kernel/notes", DENY),
        ("ls", "/proc", DENY),
        # what version control, editors, shells and assistants run
        ("write", ".git", DENY),
        ("write", ".git./config", DENY),
        ("write", ".g\u200cit/config", DENY),
        ("write", "GIT~1/config", DENY),
        ("edit", "sub/.Git/HEAD", DENY),
        ("write", ".hg/hgrc", DENY),
        ("write", ".vscode/tasks.json", ALWAYS),
        ("write", "sub/.VSCode/tasks.json", ALWAYS),
        ("write", ".idea/workspace.xml", ALWAYS),
        ("write", ".mcp.json", ALWAYS),
        ("write", ".envrc", ALWAYS),
        ("write", ".husky/pre-commit", ALWAYS),
        ("write", ".hypercode/commands/a.md", ALWAYS),
        ("read", ".hypercode/config.toml", AUTO),
        ("write", "demo.code-workspace", ALWAYS),
        ("write", "AGENTS.md", ASK),
        ("write", "sub/CLAUDE.md", ASK),
        ("write", ".gitmodules", ASK),
        ("write", "AGENTS.md.txt", AUTO),
        # outside nothing is changed
        ("write", "/tmp/x", DENY),
        ("edit", "/etc/passwd", DENY),
        ("write", "~/x", DENY),
        ("write", "~/.config/autostart/x.desktop", DENY),
        # the program's own
        ("read", "~/hc/config.toml", DENY),
        ("write", "~/hc/config.toml", DENY),
        ("read", "~/hc/outputs/output-1.txt", AUTO),
        ("write", "~/hc/outputs/output-1.txt", DENY),
        # patterns
        ("glob", "*.py", AUTO),
        ("glob", "**/../../x", DENY),
        ("glob", "{../../out,src}/*", DENY),
        ("glob", "{/etc,src}/*", DENY),
        ("glob", "~/*", ASK),
        ("glob", "~/.ssh/*", DENY),
        ("glob", "/*", ASK),
        ("glob", "", DENY),
    ],
)
def test_decisions(world: World, op: Op, path: str, decision: Decision) -> None:
    assert world.decide(op, path) is decision, world.guard.decide(op, path)


@pytest.mark.parametrize(
    ("pattern", "base"),
    [
        ("src/**/*.py", "src"),
        ("*.py", "."),
        ("src/app.py", "src"),
        ("app.py", "."),
        ("/etc/*", "/etc"),
        ("/*", "/"),
        ("../**/*.txt", ".."),
        ("a/[bc]/d", "a"),
        ("a..b/*", "a..b"),
    ],
)
def test_glob_base(pattern: str, base: str) -> None:
    assert glob_base(pattern) == base


def test_home_as_workspace_is_still_guarded(tmp_path: Path) -> None:
    guard = FileGuard(tmp_path, home=tmp_path)
    cases = {
        "notes.txt": AUTO,
        ".bashrc": DENY,
        ".ssh/config": DENY,
        ".config/systemd/user/x.service": DENY,
        "dotfiles/.bashrc": AUTO,
    }
    assert {path: guard.decide("write", path).decision for path in cases} == cases
    assert guard.decide("read", ".ssh/config").decision is DENY


def test_verdict_names_the_real_path_and_the_kind(world: World) -> None:
    (world.ws / "real").mkdir()
    (world.ws / "link").symlink_to("real")
    verdict = world.guard.decide("write", "link/../link/a.txt")
    assert (verdict.decision, verdict.path) == (AUTO, world.ws / "real/a.txt")
    kinds = {"real": "is_directory", "nul\0": "bad_arguments", "loop": "io", "bin": "binary", "wide": "encoding"}
    (world.ws / "loop").symlink_to("loop")
    (world.ws / "bin").write_bytes(b"\x89PNG\r\n\x1a\n")
    (world.ws / "wide").write_bytes("text".encode("utf-16"))
    assert {path: world.guard.decide("read", path).kind for path in kinds} == kinds
    (world.ws / "file").write_text("x")
    assert world.guard.decide("ls", "file").kind == "not_directory"
    assert world.guard.decide("write", "file/below.txt").kind == "io"


def test_workspace_given_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "name").symlink_to("ws")
    guard = FileGuard(tmp_path / "name", home=tmp_path / "home")
    assert guard.workspace == tmp_path / "ws"
    assert guard.decide("write", str(tmp_path / "name/a")).decision is AUTO
    assert guard.decide("write", str(tmp_path / "ws/a")).decision is AUTO


def test_further_roots(world: World) -> None:
    (world.out / "a.txt").write_text("x")
    path = str(world.out / "a.txt")
    assert (world.decide("read", path), world.decide("write", path)) == (ASK, DENY)
    world.guard.add_root(world.out)
    assert (world.decide("read", path), world.decide("write", path)) == (AUTO, AUTO)
    assert world.guard.roots == (world.ws, world.out)
    assert world.guard.change("write", path, lambda body: b"y").before == b"x"


def test_opening_needs_a_grant_for_that_operation_and_file(world: World) -> None:
    secret, other = world.out / "a.txt", world.out / "b.txt"
    secret.write_text("A")
    other.write_text("B")

    def read(path: Path) -> str:
        try:
            return world.guard.read(str(path)).data.decode()
        except ToolError as error:
            return error.kind

    assert read(secret) == "refused"
    world.guard.grant("grep", secret)
    assert read(secret) == "refused"
    world.guard.grant("read", secret)
    assert (read(other), read(secret), read(secret)) == ("refused", "A", "refused")
    world.guard.grant("read", secret, once=False)
    assert (read(secret), read(secret), read(other)) == ("A", "A", "refused")


def test_no_grant_opens_what_is_denied(world: World) -> None:
    target = world.ws / ".git/config"
    target.parent.mkdir()
    target.write_text("x")
    world.guard.grant("write", target, once=False)
    with pytest.raises(ToolError, match="refused"):
        world.guard.change("write", ".git/config", lambda body: b"y")
    assert target.read_text() == "x"


def test_grant_does_not_follow_a_link_that_was_turned(world: World) -> None:
    for name in ("a.txt", "b.txt"):
        (world.out / name).write_text(name)
    link = world.ws / "link"
    link.symlink_to(world.out / "a.txt")
    world.guard.grant("read", world.guard.decide("read", "link").path)
    link.unlink()
    link.symlink_to(world.out / "b.txt")
    with pytest.raises(ToolError, match="refused"):
        world.guard.read("link")


def test_peek_shows_without_a_grant_but_never_what_is_denied(world: World) -> None:
    (world.ws / ".env").write_text("A=1")
    assert world.guard.read(".env", op="edit", peek=True).data == b"A=1"
    (world.home / ".netrc").write_text("x")
    with pytest.raises(ToolError, match="refused"):
        world.guard.read("~/.netrc", peek=True)


def test_second_name_of_a_secret_is_the_secret(world: World) -> None:
    for place in (".ssh/id_ed25519", "hc/config.toml"):
        secret = world.home / place
        secret.parent.mkdir(exist_ok=True)
        secret.write_text("CANARY")
        os.link(secret, world.ws / "harmless.txt")
        assert world.decide("read", "harmless.txt") is DENY
        (world.ws / "harmless.txt").unlink()


def test_second_name_outside_asks_before_a_change_and_stays_as_it_was(world: World) -> None:
    (world.out / "n.txt").write_text("x")
    os.link(world.out / "n.txt", world.ws / "n.txt")
    (world.ws / "a.txt").write_text("x")
    (world.ws / "sub").mkdir()
    os.link(world.ws / "a.txt", world.ws / "sub/b.txt")
    assert (world.decide("read", "n.txt"), world.decide("edit", "n.txt")) == (AUTO, ASK)
    assert (world.decide("edit", "a.txt"), world.decide("write", "sub/b.txt")) == (AUTO, AUTO)
    world.guard.grant("edit", world.ws / "n.txt")
    change = world.guard.change("edit", "n.txt", lambda body: b"y")
    assert ((world.ws / "n.txt").read_text(), (world.out / "n.txt").read_text()) == ("y", "x")
    assert "split" in change.notes[0]


def test_a_bare_repository_is_not_written_to(world: World) -> None:
    for name in ("objects", "refs"):
        (world.ws / "bare" / name).mkdir(parents=True)
    assert world.decide("write", "bare/config") is AUTO
    (world.ws / "bare/HEAD").write_text("ref: refs/heads/main\n")
    assert world.decide("write", "bare/config") is DENY
    assert world.decide("write", "bare/hooks/post-checkout") is DENY


@pytest.mark.parametrize("order", list(itertools.permutations(["HEAD", "objects/a", "refs/a", "config"])))
def test_a_bare_repository_is_not_completed_in_any_order(world: World, order: tuple[str, ...]) -> None:
    decisions = []
    for name in order:
        decisions.append(world.decide("write", f"bare/{name}"))
        if decisions[-1] is AUTO:
            (world.ws / "bare" / name).parent.mkdir(parents=True, exist_ok=True)
            (world.ws / "bare" / name).write_text("x")
    last = max(order.index(name) for name in ("HEAD", "objects/a", "refs/a"))
    assert decisions == [DENY if place == last else AUTO for place in range(4)]


@pytest.mark.parametrize("order", [("HEAD", "commondir"), ("commondir", "HEAD")])
def test_nor_is_one_that_borrows_the_rest(world: World, order: tuple[str, str]) -> None:
    assert world.decide("write", order[0]) is AUTO
    (world.ws / order[0]).write_text("x")
    assert world.decide("write", order[1]) is DENY


def test_what_searches_hide(world: World) -> None:
    (world.ws / "out").symlink_to(world.out)
    (world.ws / "in").symlink_to("src")
    names = {
        "src/a.py": False,
        "in/a.py": False,
        "out/a.py": True,
        ".env": True,
        ".env.example": False,
        "deep/server.key": True,
        ".git/HEAD": True,
        ".hypercode-00112233aabbccdd.tmp": True,
    }
    assert {name: world.guard.hidden(world.ws / name, world.ws) for name in names} == names
    assert not world.guard.hidden(world.out / "a.txt", world.out)
    assert world.guard.hidden(world.home / ".ssh/config", world.home)
    assert {".git", ".env", "*.pem", "**/.config/gh", "**/home/hc"} <= set(world.guard.hidden_globs)


def test_search_root_needs_a_grant_outside(world: World) -> None:
    assert world.guard.search_root("grep", ".") == world.ws
    assert world.guard.search_root("glob", "*.py") == world.ws
    with pytest.raises(ToolError, match="refused"):
        world.guard.search_root("grep", "../../out")
    with pytest.raises(ToolError, match="missing_file"):
        world.guard.search_root("grep", "nowhere")
    world.guard.grant("grep", world.out)
    assert world.guard.search_root("grep", "../../out") == world.out


def test_a_program_of_an_environment_whatever_its_folder_is_called(world: World) -> None:
    for name in ("py3/pyvenv.cfg", "py3/bin/activate", "tools/bin/run"):
        (world.ws / name).parent.mkdir(parents=True, exist_ok=True)
        (world.ws / name).write_text("x\n")
    names = ("py3/bin/activate", "py3/bin/new", "tools/bin/run", "py3/x.py")
    asked = {name: world.decide("write", name) for name in names}
    assert asked == {"py3/bin/activate": ALWAYS, "py3/bin/new": ALWAYS, "tools/bin/run": AUTO, "py3/x.py": AUTO}
    assert world.decide("edit", "py3/bin/activate") is ALWAYS
    assert world.decide("read", "py3/bin/activate") is AUTO


def test_a_search_of_another_name_of_a_secret_is_refused_as_reading_it_is(world: World) -> None:
    (world.home / ".ssh").mkdir()
    (world.home / ".ssh/id_rsa").write_text("CANARY\n")
    (world.out / "plain.txt").write_text("x\n")
    os.link(world.home / ".ssh/id_rsa", world.ws / "notes.txt")
    os.link(world.out / "plain.txt", world.ws / "plain.txt")
    assert [world.decide("read", "notes.txt"), world.decide("grep", "notes.txt")] == [DENY, DENY]
    assert [world.decide("read", "plain.txt"), world.decide("grep", "plain.txt")] == [AUTO, AUTO]
    assert world.guard.withheld([world.ws / "notes.txt", world.ws / "plain.txt", world.ws / "gone"]) == {
        world.ws / "notes.txt"
    }
