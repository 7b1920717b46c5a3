"""Which settings and hooks make git run something, read as git reads them."""

import subprocess

import pytest

from hypercode.safety.git_config import looks_bare, runs

RUNS = [
    ("[core]\n\tfsmonitor = ./x\n", "core.fsmonitor"),
    ("[CORE]\n\tFSMonitor = ./x\n", "core.fsmonitor"),
    ("[core] fsmonitor = ./x\n", "core.fsmonitor"),
    ("[core]\n\tfsmonitor=\\\n./x\n", "core.fsmonitor"),
    ('[core]\n\tfsmonitor = "./x # y"\n', "core.fsmonitor"),
    ("[core]\r\n\thooksPath = h\r\n", "core.hookspath"),
    ("\ufeff[core]\n\tsshCommand = x\n", "core.sshcommand"),
    ('[filter "a b"]\n\tclean = x\n', "filter.a b.clean"),
    ("[filter.lfs]\n\tsmudge = x\n", "filter.lfs.smudge"),
    ('[diff "x"]\n\ttextconv = x\n', "diff.x.textconv"),
    ('[diff "x"]\n\tcommand = x\n', "diff.x.command"),
    ("[diff]\n\texternal = x\n", "diff.external"),
    ("[alias]\n\tst = !x\n", "alias.st"),
    ("[include]\n\tpath = x\n", "include.path"),
    ('[includeIf "gitdir:/"]\n\tpath = x\n', "includeif.gitdir:/.path"),
    ("[credential]\n\thelper = !x\n", "credential.helper"),
    ('[remote "o"]\n\turl = ext::sh -c x\n', "remote.o.url"),
    ('[remote "o"]\n\tuploadpack = x\n', "remote.o.uploadpack"),
    ('[submodule "s"]\n\tupdate = !x\n', "submodule.s.update"),
    ("[gpg]\n\tprogram = x\n", "gpg.program"),
    ('[gpg "ssh"]\n\tdefaultKeyCommand = x\n', "gpg.ssh.defaultkeycommand"),
    ("[core]\n\tpager = x\n", "core.pager"),
    ("[pager]\n\tlog = x\n", "pager.log"),
    ("[interactive]\n\tdiffFilter = x\n", "interactive.difffilter"),
    ("[core]\n\tworktree = /\n", "core.worktree"),
    ("[protocol]\n\tallow = always\n", "protocol.allow"),
    ('[merge "x"]\n\tdriver = x\n', "merge.x.driver"),
    ("[uploadpack]\n\tpackObjectsHook = x\n", "uploadpack.packobjectshook"),
    ("[core\n\tfsmonitor = x\n", "config, which is not written as git writes it"),
    ("fsmonitor = x\n", "config, which is not written as git writes it"),
]
HARMLESS = [
    "",
    "# only a comment\n; and another\n",
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
    "[core]\n\tfsmonitor = false\n[core]\n\tfsmonitor\n",
    '[remote "origin"]\n\turl = git@host.invalid:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
    '[branch "main"] # [alias]\n\tremote = origin\n\tmerge = refs/heads/main ; x = !y\n',
    '[user]\n\tname = A \\"B\\" C\n\temail = a@b.invalid\n[commit]\n\tgpgsign\n[pull]\n\trebase = true\n',
    '[submodule "s"]\n\tactive = true\n\turl = https://host.invalid/s.git\n\tpath = s\n[http]\n\tproxy = x\n',
    "[http]\n\tpostBuffer = 1\n[gc]\n\tauto = 0\n[color]\n\tui = auto\n",
]


@pytest.fixture
def git(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path / ".git"


@pytest.mark.parametrize(("text", "what"), RUNS)
def test_what_runs(git, text, what):
    (git / "config").write_text(text, newline="")
    assert runs(git) == what


@pytest.mark.parametrize("text", HARMLESS)
def test_what_does_not(git, text):
    (git / "config").write_text(text)
    assert runs(git) == ""
    names = subprocess.run(
        ["git", "config", "-f", git / "config", "--list"], capture_output=True, text=True, check=False
    )
    assert names.returncode == 0, "git reads it too"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('[filter "x"]\n\tclean = x\n', "filter.x.clean"),
        ('[diff "x"]\n\ttextconv = x\n', "diff.x.textconv"),
        ("[include]\n\tpath = x\n", "include.path"),
        ("[core]\n\thooksPath = .husky\n[alias]\n\tx = !x\n[core]\n\tsshCommand = x\n\tfsmonitor = x\n", ""),
    ],
)
def test_what_runs_when_a_command_only_looks(git, text, what):
    (git / "config").write_text(text)
    assert runs(git, reading=True) == what


def test_hooks(git):
    hook = git / "hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    assert runs(git) == ""
    hook.chmod(0o755)
    assert (runs(git), runs(git, reading=True)) == ("the hook pre-commit", "")
    hook.rename(git / "hooks/post-index-change")
    assert (runs(git), runs(git, reading=True)) == ("the hook post-index-change",) * 2


def test_pointers_and_borrowed_settings(git, tmp_path):
    (tmp_path / "w").mkdir()
    pointer = tmp_path / "w/.git"
    pointer.write_text("gitdir: ../.git\n")
    assert runs(pointer) == ""
    (git / "config.worktree").write_text("[alias]\nx = !x\n")
    assert (runs(pointer), runs(git)) == ("alias.x", "alias.x")
    (git / "config.worktree").unlink()
    (tmp_path / "e").mkdir()
    (tmp_path / "e/config").write_text("[alias]\nx = !x\n")
    (git / "commondir").write_text("../e\n")
    assert runs(git) == "alias.x"
    pointer.write_text("gitdir: nowhere\n")
    assert runs(pointer) == ""


def test_odd_files(git):
    (git / "config").unlink()
    (git / "config").mkdir()
    assert runs(git) == "config, which is no file"
    (git / "config").rmdir()
    (git / "config").write_text("#" * 1_000_001)
    assert runs(git) == "config, which is too large"


def test_layouts():
    assert looks_bare({"HEAD", "objects", "refs", "x"})
    assert looks_bare({"HEAD", "commondir"})
    assert not looks_bare({"HEAD", "objects"})


def test_a_work_tree_that_is_named_is_harmless_only_where_it_leads_back(tmp_path):
    """So git sets up a submodule; any other tree has git work where nobody called it."""
    module = tmp_path / ".git/modules/lib"
    for name in ("objects", "refs"):
        (module / name).mkdir(parents=True)
    (module / "HEAD").write_text("ref: refs/heads/main\n")
    for name in ("lib", "copy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".git").write_text("gitdir: ../.git/modules/lib\n")
    (tmp_path / "other").mkdir()
    said = {}
    for value in ("../../../lib", str(tmp_path / "lib"), "../../../other", "../../..", "../../../copy"):
        (module / "config").write_text(f"[core]\n\tworktree = {value}\n")
        said[value] = [runs(tmp_path / "lib/.git"), runs(module, reading=True)]
    assert list(said.values()) == [
        ["", ""],
        ["", ""],
        ["core.worktree", "core.worktree"],
        ["core.worktree", "core.worktree"],
        ["core.worktree", ""],
    ]
