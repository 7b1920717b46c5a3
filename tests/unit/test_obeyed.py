"""What programs obey without being asked, anywhere in the workspace: what a boxed command makes or changes of it is noticed."""

import asyncio
import base64
import hashlib
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from box_help import BWRAP, git, left, lies, put

from hypercode.safety import obeyed, sandbox_policy
from hypercode.safety.git_watch import Repositories
from hypercode.safety.obeyed import States, must_not_appear, obeyed_names
from hypercode.safety.path_rules import INSTRUCTS, PINS, RUNS_ALONE, STEERS, UNPACKED

SITE = ".venv/lib/python3/site-packages"


# what appears


@BWRAP
@pytest.mark.parametrize("folder", ["there", "new", "there/deep/er", "target", "target/x"])
@pytest.mark.parametrize(
    "name",
    [
        ".envrc",
        ".vscode/tasks.json",
        "AGENTS.md",
        "claude.md",
        ".cargo/config.toml",
        "sitecustomize.py",
        "x.code-workspace",
    ],
)
async def test_below_a_root_it_is_put_away_but_where_tools_work_only_said(ws, run, folder, name):
    (ws / "there").mkdir()
    (ws / "target").mkdir()
    thing = f"{folder}/{name.split('/')[0] if name != '.cargo/config.toml' else name}"
    reports = await run(f"mkdir -p {Path(folder, name).parent}; echo x > {folder}/{name}")
    if folder.startswith("target"):
        assert (reports, (ws / thing).exists()) == (left(f"{thing} (new)"), True)
        return
    (report,) = reports
    assert report.startswith(f"{thing} appeared; tools would obey it without asking. It was moved to ")
    assert not (ws / thing).exists()
    assert lies(report.rpartition(" moved to ")[2].removesuffix("."))


@BWRAP
@pytest.mark.parametrize(
    "name", ["mise.toml", "usercustomize.py", ".bazelrc", "x.sublime-project", ".cargo/config", ".clinerules"]
)
async def test_at_a_root_the_same_names_count(ws, run, name):
    (report,) = await run(f"mkdir -p {Path(name).parent}; echo x > {name}")
    assert report.startswith(f"{name} appeared; tools would obey it without asking. It was moved to ")
    assert not (ws / name).exists()


@BWRAP
@pytest.mark.parametrize(
    "make",
    [
        "ln -s /etc/passwd a/.envrc",
        "mkfifo a/.envrc",
        "mkdir b; echo x > b/.envrc; mv b/.envrc a; rmdir b",
        "mv a b; echo x > b/.envrc; mv b a",
        "ln -s nowhere a/.envrc",
        "ln a/x a/.envrc",
        "install -m 000 a/x a/.envrc",
    ],
)
async def test_however_it_is_made(ws, run, make):
    put(ws, **{"a/x": "x"})
    (report,) = await run(make)
    assert report.startswith("a/.envrc appeared; tools would obey it without asking. It was moved to ")
    assert not lies(ws / "a/.envrc")


@BWRAP
async def test_what_steers_tools_is_left_and_said(ws, run):
    names = [".npmrc", "a/.gitattributes", "a/.pre-commit-config.yaml", "a/.yarnrc.yml"]
    assert await run(f"mkdir a; touch {' '.join(names)}") == left(*(f"{name} (new)" for name in names))
    assert await run("echo 1 >> a/.yarnrc.yml; touch .npmrc") == left("a/.yarnrc.yml (changed)")


@BWRAP
async def test_other_files_with_such_endings_are_nobody_s_business(run):
    assert await run("mkdir -p out repo; touch out/model.pth repo/config.toml config.toml .pnp.cjs activate") == []


@BWRAP
async def test_many_are_summed_up(ws, run, policy):
    (ws / "a").mkdir()
    reports = await run("for n in $(seq 30); do mkdir -p n$n; echo $n > n$n/.envrc; echo $n > n$n/.npmrc; done")
    assert len(reports) == 12
    assert reports[10] == f"20 more such files or folders appeared and were moved to {policy.quarantine}."
    assert reports[11].count("(new)") == 10
    assert " and 20 more. It was left in place" in reports[11]
    assert (list(ws.rglob(".envrc")), len(list(policy.quarantine.rglob(".envrc")))) == ([], 30)


@BWRAP
async def test_what_the_person_makes_between_commands_is_the_person_s(ws, run):
    assert await run("mkdir a") == []
    put(ws, **{"a/AGENTS.md": "mine", "a/.vscode/tasks.json": "{}"})
    assert await run("true") == []
    assert (ws / "a/AGENTS.md").read_text() == "mine"


@BWRAP
async def test_commands_side_by_side(ws, run):
    first, second = await asyncio.gather(
        run("mkdir -p a; echo x > a/.envrc; sleep 0.4"), run("mkdir -p b; sleep 0.2; echo y > b/.envrc")
    )
    assert sorted(report.split(" ")[0] for report in first + second) == ["a/.envrc", "b/.envrc"]
    assert list(ws.rglob(".envrc")) == []


# what was there


MONOREPO = {
    "packages/x/AGENTS.md": "rules\n",
    "packages/x/.vscode/tasks.json": "{}\n",
    "packages/x/.envrc": "export A=1\n",
    "AGENTS.md": "root\n",
    "docs/rules.md": "linked\n",
}


@pytest.fixture
def monorepo(ws):
    put(ws, **MONOREPO)
    (ws / "packages/x/CLAUDE.md").symlink_to("../../docs/rules.md")
    (ws / "packages/x/.husky").mkdir()
    (ws / "packages/x/.husky/pre-commit").touch(0o644)
    return ws


@BWRAP
@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("echo more >> packages/x/AGENTS.md", "AGENTS.md"),
        ("sed -i s/rules/obey/ packages/x/AGENTS.md", "AGENTS.md"),
        ("echo '[]' > packages/x/.vscode/tasks.json", ".vscode"),
        (
            "touch -r packages/x/.envrc t; printf 'export A=2\\n' > packages/x/.envrc; touch -r t packages/x/.envrc",
            ".envrc",
        ),
        ("echo > packages/x/.vscode/launch.json", ".vscode"),
        ("chmod +x packages/x/.husky/pre-commit", ".husky"),
        ("echo more >> docs/rules.md", "CLAUDE.md"),
        ("ln -sfn ../../packages/x/.envrc packages/x/CLAUDE.md", "CLAUDE.md"),
        ("rm packages/x/AGENTS.md; echo other > packages/x/AGENTS.md", "AGENTS.md"),
        ("mv packages/x/AGENTS.md a; mkdir packages/x/AGENTS.md", "AGENTS.md"),
    ],
)
async def test_what_was_there_is_left_and_a_change_is_said(monorepo, run, change, what):
    assert await run(change) == left(f"packages/x/{what} (changed)")
    assert lies(monorepo / "packages/x" / what)
    assert await run("true") == []


@BWRAP
@pytest.mark.parametrize(
    "work",
    [
        "find packages -type f -exec touch {} +",
        "for f in packages/x/AGENTS.md packages/x/.vscode/tasks.json; do cp $f t; cat t > $f; rm $f; mv t $f; done",
        "mv packages/x packages/y",
        "cp -r packages/x packages/y",
        "mkdir -p packages/z; cp AGENTS.md packages/z; cp packages/x/.envrc packages/z",
        "rm -r packages/x",
        "tar cf t.tar packages; rm -r packages; tar xf t.tar",
    ],
)
async def test_the_same_content_in_another_place_is_no_alarm(monorepo, run, work):
    assert await run(work) == []


# packages and virtual environments


@BWRAP
@pytest.mark.parametrize("name", [".venv", "env"])
async def test_a_virtual_environment_is_made_and_used(ws, run, name):
    assert await run(f"{sys._base_executable} -m venv --without-pip {name}") == []
    (site,) = (ws / name).glob("lib/*/site-packages")
    assert await run(f"echo 'import os' > {site}/evil.pth") == left(f"{site.relative_to(ws)}/evil.pth (new)")
    assert await run(f"echo 'import sys' > {site}/evil.pth") == left(f"{site.relative_to(ws)}/evil.pth (changed)")
    assert await run(f"echo 'touch pwn' >> {name}/bin/activate; touch {name}/bin/tool") == left(
        f"{name}/bin/activate (changed)"
    )
    assert await run(f"echo x > {site}/sitecustomize.py") == left(f"{site.relative_to(ws)}/sitecustomize.py (new)")


def wheel(path, **files):
    """A package as pip installs it."""
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')},{len(text)}\n"
        for name, text in files.items()
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {
            **files,
            "thing-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: thing\nVersion: 1\n",
            "thing-1.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "thing-1.dist-info/RECORD": record + "thing-1.dist-info/RECORD,,\n",
        }.items():
            archive.writestr(name, text)


@BWRAP
async def test_what_pip_installs_is_no_alarm(ws, run):
    pytest.importorskip("pip")
    (ws / SITE).mkdir(parents=True)
    wheel(
        ws / "thing-1-py3-none-any.whl",
        **{"thing.pth": "import thing\n", "thing/__init__.py": "", "thing/AGENTS.md": "x"},
    )
    install = (
        f"{sys._base_executable} -m pip install -q --no-index --no-deps --no-compile --upgrade --target {SITE} *.whl"
    )
    assert await run(install) == left(f"{SITE}/thing.pth (new)")  # of all that only what Python runs at each start
    assert (ws / SITE / "thing.pth").exists()
    assert await run(f"echo 'import other' > {SITE}/thing.pth") == left(f"{SITE}/thing.pth (changed)")
    assert await run(f"cp {SITE}/thing.pth {SITE}/thing2.pth") == left(f"{SITE}/thing2.pth (new)")


@BWRAP
async def test_what_a_package_brings_is_no_alarm_but_what_is_put_into_one_is(ws, run):
    assert await run("mkdir -p node_modules/a/.vscode node_modules/@s/b; touch node_modules/{a,@s/b}/AGENTS.md") == []
    assert await run(
        "mkdir node_modules/c; echo 1 > node_modules/c/AGENTS.md; echo 2 > node_modules/a/AGENTS.md"
    ) == left("node_modules/a/AGENTS.md (changed)")
    assert await run("echo 3 > node_modules/c/.envrc") == left("node_modules/c/.envrc (new)")
    assert await run("echo 4 > node_modules/.envrc") == left("node_modules/.envrc (new)")
    (report,) = await run("mkdir sub; cp node_modules/c/.envrc sub")
    assert report.startswith("sub/.envrc appeared")


@BWRAP
async def test_thousands_of_packages_hide_no_environment(ws, run):
    for number in range(1200):
        (ws / f"node_modules/p{number}").mkdir(parents=True)
    (ws / SITE).mkdir(parents=True)
    assert await run(f"echo 'import os' > {SITE}/evil.pth") == left(f"{SITE}/evil.pth (new)")


# what git brings


@pytest.fixture
def repository(ws):
    git(ws, "init", "-q", "-b", "main")
    put(ws, **{"a/x": "x"})
    git(ws, "add", ".")
    git(ws, "commit", "-qm", "one")
    git(ws, "checkout", "-qb", "other")
    put(ws, **{"a/AGENTS.md": "rules\n", "a/b/.vscode/tasks.json": "{}\n", "a/b/.cargo/config.toml": "x\n"})
    git(ws, "add", ".")
    git(ws, "commit", "-qm", "two")
    git(ws, "checkout", "-q", "main")
    return ws


BROUGHT = ("a/AGENTS.md", "a/b/.cargo/config.toml", "a/b/.vscode")


@BWRAP
@pytest.mark.parametrize("version", ["2", "4"])
async def test_what_git_checks_out_stays_and_is_said(repository, run, version):
    git(repository, "config", "index.version", version)
    git(repository, "update-index", "--index-version", version)
    (report,) = await run("git checkout -q other; echo x > a/.envrc; rm a/.envrc", "git")
    assert sorted(report.partition("ran: ")[2].partition(". It was")[0].split(", ")) == [f"{n} (new)" for n in BROUGHT]
    assert [(repository / name).exists() for name in BROUGHT] == [True] * 3
    (report,) = await run("echo x > a/.envrc; git status -s", "git")
    assert report.startswith("a/.envrc appeared")


@BWRAP
async def test_a_linked_work_tree_stays_whole_and_is_said(repository, run):
    (report,) = await run("git worktree add -q tree other", "git")
    assert [f"tree/{name} (new)" in report for name in BROUGHT] == [True] * 3
    assert await run("git worktree add -q --detach second other", "git") == []
    (report,) = await run("echo x > tree/a/.envrc")
    assert report.startswith("tree/a/.envrc appeared")


@BWRAP
async def test_a_clone_in_a_script_stays_whole_and_is_said(repository, run):
    git(repository, "checkout", "-q", "other")
    shutil.move(repository / ".git", repository.parent / "store")
    for name in ("a", "AGENTS.md"):
        if (repository / name).exists():
            shutil.rmtree(repository / name)
    (report,) = await run(
        'git clone -q ../store new; test -z "$(git -C new status -s)"; echo x > new/a/.envrc; rm new/a/.envrc'
    )
    assert [f"new/{name} (new)" in report for name in BROUGHT] == [True] * 3
    (report,) = await run("echo x > new/a/.envrc")
    assert report.startswith("new/a/.envrc appeared")


# bounds, names


@BWRAP
async def test_the_folders_are_walked_once_before_and_once_after(run, monkeypatch):
    walks, real = [], Repositories.places
    monkeypatch.setattr(Repositories, "places", lambda self: walks.append(1) or real(self))
    assert await run("test 1") == []
    assert len(walks) == 2


@BWRAP
async def test_large_settings_have_a_bound(ws, run, monkeypatch):
    monkeypatch.setattr(obeyed, "_MOST_IN_ALL", 5)
    put(ws, **{f"a/.idea/{n}": "" for n in range(3)})
    assert await run("echo x > a/.idea/1") == left("a/.idea (changed)")
    assert await run("mkdir build; for n in $(seq 6); do mkdir build/$n; echo $n > build/$n/.envrc; done") == [
        *left(*(f"build/{n}/.envrc (new)" for n in range(1, 6))),
        "There are more folders or repositories here now than are looked at after a command: look for a git repository or "
        "settings that you did not make before you call git or open an editor in one.",
    ]


@BWRAP
async def test_too_many_are_said_once_and_nothing_that_was_there_is_taken_for_new(ws, run, monkeypatch):
    monkeypatch.setattr(obeyed, "_MOST_THINGS", 3)
    for number in (2, 4, 6):
        put(ws, **{f"{number}/.envrc": f"{number}"})
    assert await run("true") == []
    told, many = await run("mkdir build; for n in $(seq 4); do mkdir build/$n; echo $n > build/$n/.npmrc; done")
    assert told.count("(new)") == 3
    assert many.partition(" than are looked at")[0] == "There are more folders or repositories here now"
    put(ws, **{"8/.envrc": "8"})
    (away,) = await run("rm -r 2; mkdir 3; echo x > 3/.envrc")
    assert away.startswith("3/.envrc appeared")
    assert await run("rm -r 4") == []
    assert sorted(path.parent.name for path in ws.rglob(".envrc")) == ["6", "8"]


def test_every_name_that_the_file_tools_ask_about_counts():
    """But for what ordinary commands make all the time."""
    examples = {row: "/".join(row).replace("*", "x") for row in (*RUNS_ALONE, *INSTRUCTS, *STEERS)}
    seen = {
        row: obeyed_names("/ws/" + "/".join(name.split("/")[:-1]), {name.split("/")[-1]}) != ()
        for row, name in examples.items()
    }
    made = {*UNPACKED, *PINS, (".pnp.cjs",)} - {("pyvenv.cfg",)}
    assert {row for row, found in seen.items() if not found} == made
    assert {("*.pth",), ("venv*", "bin"), ("node_modules", ".bin"), (".python-version",)} < made
    assert all(seen[row] for row in ((".lefthook*.y*ml",), ("rust-toolchain.toml",), (".ycm_extra_conf.py",)))
    assert all(must_not_appear(f"/ws/sub/{name}") for name in sandbox_policy._PROTECTED)
    assert not any(must_not_appear(f"/ws/{name}") for row, name in examples.items() if row in STEERS)
    assert obeyed_names("/ws/.hg", {"hgrc", "store"}) == ("hgrc",)
    assert obeyed_names("/v/lib/site-packages", {"x.pth", "y.py"}) == ("x.pth",)


def test_what_has_not_changed_is_not_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(obeyed, "_SLACK", -(10**9))
    put(tmp_path, **{".vscode/a": "1", ".vscode/b": "2"})
    states, path = States(), str(tmp_path / ".vscode")
    first = states.look([path])
    read = []
    monkeypatch.setattr(obeyed, "_read", lambda place, most: read.append(place) or b"")
    assert (states.look([path]), read) == (first, [])
    put(tmp_path, **{".vscode/a": "3"})
    assert states.look([path]) != first
    assert read == [f"{path}/a", f"{path}/b"]


def test_what_lies_in_another_is_part_of_it(tmp_path):
    put(tmp_path, **{".claude/AGENTS.md": "x", ".claude/skills/.envrc": "x", "kept/.vscode/a": "x"})
    walk = Repositories([tmp_path])
    walk.look()
    assert list(walk.obeyed([f"{tmp_path}/kept"])) == [f"{tmp_path}/.claude"]
