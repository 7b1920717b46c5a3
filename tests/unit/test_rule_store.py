"""Stored rules: by project, in the person's folder, whole or not at all."""

import json
import multiprocessing
import os
import re
import stat

import pytest

from hypercode.errors import ConfigError
from hypercode.safety.rule_store import MOST_RULES, RuleStore


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path):
    return RuleStore(tmp_path / "config/rules")


def file_of(store, project):
    store.add(project, "git log")
    return next(store._folder.glob("*.json"))


def test_rules_are_kept_by_project(store, project, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    assert [store.add(project, "git log"), store.add(project, "npm  run 'build all'"), store.add(other, "make")] == [
        True,
        True,
        True,
    ]
    assert store.add(project, "git   log") is False
    again = RuleStore(tmp_path / "config/rules")
    assert again.allow(project) == ["git log", "npm run 'build all'"]
    assert again.list() == {project: ["git log", "npm run 'build all'"], other: ["make"]}
    assert again.allow(tmp_path) == []
    assert [again.remove(project, "npm run 'build  all'"), again.remove(project, "git log")] == [False, True]
    assert again.allow(project) == ["npm run 'build all'"]
    assert again.notices == []


def test_the_project_is_known_by_its_resolved_path(store, project, tmp_path):
    (tmp_path / "link").symlink_to(project)
    store.add(tmp_path / "link", "git log")
    assert store.allow(project) == ["git log"]
    project.rename(tmp_path / "moved")
    assert store.allow(tmp_path / "moved") == []


@pytest.mark.parametrize("rule", ["", "git log; rm", "*", "A=1 x", "git 'log", "ls\x1b[2J", "git *"])
def test_what_is_no_rule_is_not_stored(store, project, rule):
    with pytest.raises(ValueError, match="rule"):
        store.add(project, rule)
    assert store.list() == {}


def test_the_files_are_private_and_nothing_is_written_in_the_project(store, project, tmp_path):
    old = os.umask(0)
    try:
        store.add(project, "git log")
    finally:
        os.umask(old)
    folder = tmp_path / "config/rules"
    modes = {stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()}
    assert (modes, stat.S_IMODE(folder.stat().st_mode), list(project.iterdir())) == ({0o600}, 0o700, [])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[" * 100_000,
        b"\xff",
        b'{"version": 1, "workspace": "WS", "allow": "ls"}',
        b'{"version": 1, "workspace": "WS", "allow": [1]}',
        b'{"version": 9, "workspace": "WS", "allow": ["ls"]}',
        b'{"version": 1, "workspace": "/elsewhere", "allow": ["ls"]}',
        b" " * (2 << 20),
    ],
)
def test_a_damaged_file_is_no_rules_and_a_notice(store, project, content):
    path = file_of(store, project)
    content = content.replace(b"WS", os.fsencode(project))
    path.write_bytes(content)
    again = RuleStore(store._folder)
    assert again.allow(project) == []
    assert len(again.notices) == 1
    assert re.fullmatch(rf"{re.escape(str(path))} .*: this project has no stored rules now\.", again.notices[0])
    assert again.add(project, "make") is True
    assert again.allow(project) == ["make"]
    assert [p.read_bytes() for p in store._folder.glob("*.damaged-*")] == [content]


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "writable by others"])
def test_a_file_that_is_something_else_is_no_rules(store, project, tmp_path, kind):
    path = file_of(store, project)
    real = path.rename(tmp_path / "real")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(real)
    else:
        real.rename(path).chmod(0o606)
    assert store.allow(project) == []
    assert store.list() == {}
    assert len(store.notices) == 2


def test_rules_in_the_file_that_are_none_are_passed_over(store, project):
    path = file_of(store, project)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "allow": ["git log", "*", "a; b", "make"]}))
    assert store.allow(project) == ["git log", "make"]
    assert store.notices == [f"{path}: 2 of its rules cannot be used and are passed over."]


def test_a_copied_file_gives_another_project_nothing(store, project, tmp_path):
    path = file_of(store, project)
    other = tmp_path / "other"
    other.mkdir()
    target = store._path(other)
    target.write_bytes(path.read_bytes())
    target.chmod(0o600)
    assert (store.allow(other), store.list()) == ([], {project: ["git log"]})


def test_too_many_rules_and_an_unwritable_folder_are_errors(store, project, tmp_path):
    path = file_of(store, project)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "allow": [f"make t{n}" for n in range(MOST_RULES)]}))
    with pytest.raises(ConfigError, match="1000 rules are kept for a project"):
        store.add(project, "git log")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"cannot be written \(.*\); nothing was changed"):
        RuleStore(tmp_path / "file/rules").add(project, "git log")
    assert RuleStore(tmp_path / "file/rules").allow(project) == []


def _add_many(folder, project, rules):
    for rule in rules:
        RuleStore(folder).add(project, rule)


def test_several_processes_lose_nothing(store, project):
    rules = [f"make t{n}" for n in range(24)]
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_add_many, args=(store._folder, project, rules[i::3])) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [w.exitcode for w in workers] == [0, 0, 0]
    assert sorted(store.allow(project)) == sorted(rules)
