"""Folder trust: nothing counts before a yes, and a yes holds for exactly the content it was given to."""

import json
import multiprocessing
import os
import re
import socket
import stat
import threading
from pathlib import Path

import pytest

from hypercode.config import Config
from hypercode.errors import ConfigError
from hypercode.parts import configuration
from hypercode.safety.trust import NESTED, SETTINGS_LIMIT, TEXT_LIMIT, Item, Trust, TrustState, project_file

CASES = json.loads((Path(__file__).parents[1] / "cases/security/project-config.json").read_text())["cases"]
UNKNOWN, TRUSTED, CHANGED = TrustState.UNKNOWN, TrustState.TRUSTED, TrustState.CHANGED


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "ws"
    (folder / ".hypercode").mkdir(parents=True)
    (folder / ".git").mkdir()
    return folder


@pytest.fixture
def trust(tmp_path):
    return Trust(tmp_path / "home/state")


def settings(project, text):
    path = project / ".hypercode/config.toml"
    path.write_text(text)
    return path


def effective(trust, project, tmp_path):
    """The configuration as the program takes it: the project's file only where the folder is trusted."""
    return configuration({"HYPERCODE_HOME": str(tmp_path / "home")}, project)


def values(config):
    return {name: getattr(config, name) for name in config.sources if name != "file base_url"}


# -- states ----------------------------------------------------------------------------


def test_unknown_until_granted_and_asked_again_when_something_changes(trust, project):
    file = settings(project, 'model = "a/b"\n')
    (project / "AGENTS.md").write_text("be kind\n")
    seen = [trust.of(project)]
    trust.grant(project)
    seen.append(trust.of(project))
    file.write_text('model = "c/d"\n')
    seen.append(trust.of(project))
    trust.grant(project)
    seen.append(trust.of(project))
    file.write_text('model = "a/b"\n')  # asked once per content
    seen.append(trust.of(project))
    (project / "AGENTS.md").unlink()
    seen.append(trust.of(project))
    assert trust.revoke(project)
    seen.append(trust.of(project))
    assert seen == [UNKNOWN, TRUSTED, CHANGED, TRUSTED, TRUSTED, CHANGED, UNKNOWN]
    assert trust.revoke(project) is False


@pytest.mark.parametrize(
    "add",
    [
        lambda p: settings(p, "vi = true\n"),
        lambda p: (p / "AGENTS.md").write_text("x"),
        lambda p: (p / "CLAUDE.md").write_text("x"),
        lambda p: ((p / ".hypercode/commands").mkdir(), (p / ".hypercode/commands/go.md").write_text("x")),
        lambda p: (
            (p / ".hypercode/skills/s").mkdir(parents=True),
            (p / ".hypercode/skills/s/SKILL.md").write_text("x"),
        ),
    ],
)
def test_whatever_is_added_later_is_asked_about(trust, project, add):
    trust.grant(project)
    assert (trust.of(project), trust.present(project)) == (TRUSTED, [])
    add(project)
    assert trust.of(project) is CHANGED
    assert trust.accepted(project) == []
    assert len(trust.present(project)) == 1


def test_trust_belongs_to_the_resolved_path(trust, project, tmp_path):
    settings(project, "vi = true\n")
    trust.grant(project)
    link = tmp_path / "link"
    link.symlink_to(project)
    twin = tmp_path / "ws-twin"
    (twin / ".hypercode").mkdir(parents=True)
    settings(twin, "vi = true\n")
    moved = tmp_path / "moved"
    assert (trust.of(link), trust.of(twin), trust.of(project / ".hypercode")) == (TRUSTED, UNKNOWN, UNKNOWN)
    project.rename(moved)
    assert (trust.of(moved), trust.of(project)) == (UNKNOWN, TRUSTED)  # nothing is at the old place


def test_what_was_shown_is_what_is_granted(trust, project):
    file = settings(project, 'model = "shown"\n')
    shown = trust.describe(project)
    file.write_text('model = "swapped"\n')
    trust.grant(project, shown)
    assert trust.of(project) is CHANGED
    assert [item.known for item in trust.describe(project)] == [False]
    file.write_text('model = "shown"\n')
    assert trust.of(project) is TRUSTED
    assert [(item.data, item.known) for item in trust.accepted(project)] == [(b'model = "shown"\n', True)]


def test_describe_shows_everything_in_full_and_in_order(trust, project):
    deep = project / "a/b"
    (deep / ".hypercode/commands").mkdir(parents=True)
    (deep / ".hypercode/skills/x").mkdir(parents=True)
    (deep / ".hypercode/config.toml").write_text("vi = true\n")
    (deep / ".hypercode/commands/two.md").write_text("2")
    (deep / ".hypercode/commands/one.md").write_text("1")
    (deep / ".hypercode/commands/not.txt").write_text("no")
    (deep / ".hypercode/skills/x/SKILL.md").write_text("s")
    (deep / "AGENTS.md").write_text("deep")
    (deep / "CLAUDE.md").write_text("not where there is the other")
    (project / "a/CLAUDE.md").write_text("middle")
    (project / "AGENTS.md").write_text("top")
    (project.parent / "AGENTS.md").write_text("outside the repository")
    got = [(str(i.path.relative_to(project)), i.kind, i.text, i.error, i.known) for i in trust.describe(deep)]
    assert got == [
        ("a/b/.hypercode/config.toml", "settings", "vi = true\n", "", False),
        ("a/b/.hypercode/commands/one.md", "command", "1", "", False),
        ("a/b/.hypercode/commands/two.md", "command", "2", "", False),
        ("a/b/.hypercode/skills/x/SKILL.md", "skill", "s", "", False),
        ("a/b/AGENTS.md", "instructions", "deep", "", False),
        ("a/CLAUDE.md", "instructions", "middle", "", False),
        ("AGENTS.md", "instructions", "top", "", False),
    ]
    assert trust.present(deep) == [item.path for item in trust.describe(deep)]


def test_instructions_further_down_are_shown_and_each_bound_by_itself(trust, project):
    (project / "AGENTS.md").write_text("top")
    for name in ("b/AGENTS.md", "a/CLAUDE.md", "a/AGENTS.md", "a/deep/er/CLAUDE.md", "node_modules/p/AGENTS.md"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(name)
    (project / "c").mkdir()
    (project / "c/AGENTS.md").symlink_to("/etc/hostname")
    (project / "loop").symlink_to(project)
    got = [(str(i.path.relative_to(project)), i.kind, i.text, i.error) for i in trust.describe(project)]
    assert got == [
        ("AGENTS.md", "instructions", "top", ""),
        ("a/AGENTS.md", NESTED, "a/AGENTS.md", ""),
        ("a/deep/er/CLAUDE.md", NESTED, "a/deep/er/CLAUDE.md", ""),
        ("b/AGENTS.md", NESTED, "b/AGENTS.md", ""),
        ("c/AGENTS.md", NESTED, "", "is a link that leads out of the project"),
    ]
    trust.grant(project)
    (project / "b/AGENTS.md").write_text("changed")
    assert trust.of(project) is TRUSTED  # the folder is; that file is not
    assert [item.known for item in trust.describe(project)] == [True, True, True, False, True]
    assert set(trust.known(project)) == {str(project / name) for name, *_ in got}
    assert [item.path for item in trust.accepted(project)] == [project / "AGENTS.md"]


def test_without_a_repository_only_the_folder_itself_counts(trust, tmp_path):
    folder = tmp_path / "plain/inner"
    folder.mkdir(parents=True)
    (folder / "AGENTS.md").write_text("in")
    (tmp_path / "plain/AGENTS.md").write_text("out")
    assert trust.present(folder) == [folder / "AGENTS.md"]


def test_before_trust_nothing_is_opened(trust, project, monkeypatch):
    settings(project, "vi = true\n")
    (project / "AGENTS.md").write_text("x")
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *a, **k: (opened.append(str(path)), real(path, *a, **k))[1])
    assert (trust.of(project), len(trust.present(project)), project_file(project) is None) == (UNKNOWN, 2, False)
    assert [path for path in opened if str(project) in path] == []


def test_the_persons_own_folders_are_not_the_projects(tmp_path):
    home = tmp_path / "home"
    (home / ".hypercode").mkdir(parents=True)
    (home / ".hypercode/config.toml").write_text("vi = true\n")
    trust = Trust(home / ".hypercode/state", own=[home / ".hypercode"])
    assert trust.present(home) == []


# -- odd files -------------------------------------------------------------------------


def odd(kind, path, tmp_path):
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        os.chdir(path.parent)
        socket.socket(socket.AF_UNIX).bind(path.name)
    elif kind == "50 MB":
        with path.open("wb") as file:
            file.truncate(50_000_000)
    elif kind == "link out":
        (tmp_path / "outside").write_text("SECRET")
        path.symlink_to(tmp_path / "outside")
    elif kind == "link to secrets":
        (tmp_path / "ws/.env").write_text("SECRET")
        path.symlink_to(tmp_path / "ws/.env")
    elif kind == "link in a circle":
        path.symlink_to(path.name)
    elif kind == "broken link":
        path.symlink_to("nowhere")
    elif kind == "device":
        path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("fifo", "cannot be used: it is a pipe, socket or device, not a regular file"),
        ("folder", "cannot be used: it is a folder"),
        ("socket", "cannot be used: it is a pipe, socket or device, not a regular file"),
        ("50 MB", "is larger than 256 KiB"),
        ("link out", "is a link that leads out of the project"),
        ("link to secrets", "is a link to a file that usually holds secrets"),
        ("link in a circle", "cannot be used: its links lead in a circle, or it was swapped for a link meanwhile"),
        ("broken link", "cannot be used: there is no such file"),
        ("device", "is a link that leads out of the project"),
    ],
)
def test_odd_files_end_in_an_error_text(trust, project, tmp_path, monkeypatch, kind, error):
    monkeypatch.chdir(tmp_path)
    odd(kind, project / "AGENTS.md", tmp_path)
    path = project / "AGENTS.md"
    assert trust.describe(project) == [Item(path, "instructions", None, error)]
    trust.grant(project)
    assert trust.of(project) is TRUSTED
    assert [(item.data, item.text) for item in trust.accepted(project)] == [(None, "")]
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()
    path.write_text("now real")
    assert trust.of(project) is CHANGED


def test_the_limits_are_exact(trust, project):
    file = settings(project, "")
    file.write_bytes(b"#" * SETTINGS_LIMIT)
    (project / "AGENTS.md").write_bytes(b"x" * TEXT_LIMIT)
    assert [(len(i.data or b""), i.error) for i in trust.describe(project)] == [(SETTINGS_LIMIT, ""), (TEXT_LIMIT, "")]
    file.write_bytes(b"#" * (SETTINGS_LIMIT + 1))
    (project / "AGENTS.md").write_bytes(b"x" * (TEXT_LIMIT + 1))
    assert [i.error for i in trust.describe(project)] == ["is larger than 1024 KiB", "is larger than 256 KiB"]


@pytest.mark.parametrize("name", ["commands", "skills"])
def test_a_folder_that_leads_out_or_holds_too_much_is_not_used(trust, project, tmp_path, name):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "evil.md").write_text("x")
    folder = project / ".hypercode" / name
    folder.symlink_to(outside)
    assert [item.error for item in trust.describe(project)] == ["is a link that leads out of the project"]
    folder.unlink()
    folder.mkdir()
    for number in range(201):
        (folder / f"{number}.md").touch()
    assert [item.error for item in trust.describe(project)] == ["holds more than 200 names; none of them is used"]


def test_a_link_inside_the_project_is_followed_and_bound_to_what_it_leads_to(trust, project):
    (project / "docs").mkdir()
    (project / "docs/AGENTS.md").write_text("one")
    (project / "AGENTS.md").symlink_to("docs/AGENTS.md")
    trust.grant(project)
    assert [item.text for item in trust.accepted(project)] == ["one"]
    (project / "docs/AGENTS.md").write_text("two")
    assert trust.of(project) is CHANGED


# -- the store -------------------------------------------------------------------------


def test_the_store_is_private_whatever_the_umask(trust, project, tmp_path):
    old = os.umask(0)
    try:
        trust.grant(project)
    finally:
        os.umask(old)
    state = tmp_path / "home/state"
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in [state, *state.iterdir()]}
    assert modes == {"state": 0o700, "trust.json": 0o600, "trust.lock": 0o600}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"version": 2, "folders": {}}',
        b'{"version": 1, "folders": []}',
        b'{"version": 1, "folders": {"FOLDER": true}}',
        b'{"version": 1, "folders": {"FOLDER": {"accepted": "x", "items": {}}}}',
        b'{"version": 1, "folders": {"FOLDER": {"accepted": [], "items": {"a": [1]}}}}',
        b"[" * 100_000,
        b"x" * (9 << 20),
    ],
)
def test_a_damaged_store_trusts_nothing_and_says_so(trust, project, tmp_path, content):
    settings(project, "vi = true\n")
    trust.grant(project)
    path = tmp_path / "home/state/trust.json"
    path.write_bytes(content.replace(b"FOLDER", os.fsencode(project)))
    again = Trust(tmp_path / "home/state")
    assert again.of(project) is UNKNOWN
    assert again.notices == [again.notices[0]]
    assert re.fullmatch(rf"{re.escape(str(path))} .*: no folder counts as trusted\.", again.notices[0])
    again.grant(project)
    assert again.of(project) is TRUSTED
    kept = [p.read_bytes() for p in path.parent.glob("trust.json.damaged-*")]
    assert kept == [content.replace(b"FOLDER", os.fsencode(project))]


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "writable by others"])
def test_a_store_that_is_something_else_trusts_nothing(trust, project, tmp_path, kind):
    settings(project, "vi = true\n")
    trust.grant(project)
    path = tmp_path / "home/state/trust.json"
    real = path.rename(path.with_name("real.json"))
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(real)
    else:
        real.rename(path).chmod(0o666)
    again = Trust(tmp_path / "home/state")
    assert again.of(project) is UNKNOWN
    assert len(again.notices) == 1
    again.grant(project)
    assert again.of(project) is TRUSTED


def test_a_store_that_cannot_be_written_is_an_error_that_names_it(project, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/state").write_text("a file")
    trust = Trust(tmp_path / "home/state")
    with pytest.raises(ConfigError, match=r"trust.json: cannot be written \(.*\); nothing was changed"):
        trust.grant(project)
    assert trust.of(project) is UNKNOWN


def _grant_many(state, folders):
    for folder in folders:
        Trust(state).grant(folder)


def test_several_processes_lose_nothing(tmp_path):
    folders = [tmp_path / f"p{number}" for number in range(24)]
    for folder in folders:
        folder.mkdir()
        (folder / "AGENTS.md").write_text(folder.name)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_grant_many, args=(tmp_path / "home/state", folders[i::3])) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [w.exitcode for w in workers] == [0, 0, 0]
    trust = Trust(tmp_path / "home/state")
    assert {trust.of(folder) for folder in folders} == {TRUSTED}
    assert sorted(trust.folders()) == sorted(folders)


def test_names_that_are_no_text_are_kept(trust, tmp_path):
    folder = tmp_path / os.fsdecode(b"\xff\xfe \x1b[2J")
    folder.mkdir()
    (folder / "AGENTS.md").write_text("x")
    trust.grant(folder)
    assert (trust.of(folder), trust.folders()) == (TRUSTED, [folder])


# -- the cases -------------------------------------------------------------------------

_KEYS = {
    "base_url": "base_url",
    "api_key_env": "api_key",
    "headers": "headers",
    "proxy": "proxy",
    "approval_mode": "mode",
    "sandbox": "sandbox",
    "allow_rules": "allow",
    "deny_rules": "deny",
    "hooks.session_start": "hooks.session_start",
    "mcp.servers.x.command": "mcp.servers.x.command",
    "model": "model",
    "system_prompt_file": "system_prompt_file",
    "pager": "pager",
    "writable_roots": "add_dirs",
}


def toml(value):
    return value if value.startswith("[") else json.dumps(value)


def in_time(function, seconds=10):
    """The result of a call that must not hang (the promise is 2 s; machines are busy)."""
    got = []

    def run():
        try:
            got.append(function())
        except ConfigError as error:
            got.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert got, "it hangs"
    return got[0]


@pytest.mark.parametrize("case", [c for c in CASES if c["setting"] in _KEYS], ids=lambda c: c["id"])
def test_a_projects_setting_before_and_after_trust(trust, project, tmp_path, case):
    key = _KEYS[case["setting"]]
    plain = values(effective(trust, project, tmp_path))
    settings(project, f"{key} = {toml(case['value'])}\n")
    assert case["before_trust"] == "ignored"
    assert values(effective(trust, project, tmp_path)) == plain
    trust.grant(project)
    config = effective(trust, project, tmp_path)
    if case["after_trust"] == "applied":
        value = json.loads(toml(case["value"]))
        assert values(config) == {**plain, key: value}
    else:
        assert values(config) == plain
        assert len(config.notices) == 1
        assert f": {key.split('.')[0]} is ignored" in config.notices[0]


@pytest.mark.parametrize("case", [c for c in CASES if c["setting"].startswith(".env")], ids=lambda c: c["id"])
def test_a_projects_env_file_is_neither_read_nor_asked_about(trust, project, tmp_path, case):
    plain = values(effective(trust, project, tmp_path))
    (project / ".env").write_text(f"{case['setting'].split(': ')[1]}={case['value']}\n")
    assert (values(effective(trust, project, tmp_path)), trust.present(project)) == (plain, [])
    trust.grant(project)
    assert values(effective(trust, project, tmp_path)) == plain


def test_instructions_are_handed_out_only_after_trust(trust, project):
    text = next(c["value"] for c in CASES if c["setting"] == "AGENTS.md")
    (project / "AGENTS.md").write_text(text)
    assert trust.accepted(project) == []
    trust.grant(project)
    assert [item.text for item in trust.accepted(project)] == [text]


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ("config file of 50 MB", "is larger than 1024 KiB"),
        ("config file that is a FIFO", "cannot be used: it is a pipe, socket or device"),
        ("broken TOML with an escape code", "is not valid TOML: "),
    ],
)
def test_a_broken_settings_file_before_and_after_trust(trust, project, tmp_path, setting, error):
    case = next(c for c in CASES if c["setting"] == setting)
    path = project / ".hypercode/config.toml"
    if "FIFO" in setting:
        os.mkfifo(path)
    elif "50 MB" in setting:
        odd("50 MB", path, tmp_path)
    else:
        path.write_text(case["value"])
    before = in_time(lambda: effective(trust, project, tmp_path))
    assert before.sources["model"] == "default"
    in_time(lambda: trust.grant(project) or True)
    after = in_time(lambda: effective(trust, project, tmp_path))
    assert isinstance(after, ConfigError)
    assert str(after).startswith(f"{path}: {error}")
    assert str(after).isprintable()


def test_hooks_that_change_after_trust_are_asked_about_again(trust, project, tmp_path):
    case = next(c for c in CASES if c["setting"] == "trusted, then hooks changed")
    file = settings(project, 'hooks = {session_start = "true"}\n')
    trust.grant(project)
    file.write_text(f"hooks = {{session_start = {json.dumps(case['value'])}}}\n")
    assert trust.of(project) is CHANGED
    assert [(case["value"] in item.text, item.known) for item in trust.describe(project)] == [(True, False)]
    config = effective(trust, project, tmp_path)
    assert values(config) == values(Config(sources=config.sources))
    assert len(config.notices) == 1
    assert "not trusted" in config.notices[0]


def test_every_case_has_its_test():
    named = {*_KEYS, "AGENTS.md", "config file of 50 MB", "config file that is a FIFO", "trusted, then hooks changed"}
    named |= {"broken TOML with an escape code"}
    elsewhere = {"git config core.fsmonitor of the repository"}  # test_sandbox_probes: own git calls
    rest = {c["setting"] for c in CASES} - named - elsewhere
    assert {s for s in rest if not s.startswith(".env")} == set()
