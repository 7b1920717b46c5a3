"""Where what programs obey can be hidden: behind links, in folders that cannot be listed, in numbers, in other spellings."""

import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from box_help import BWRAP, git, left, lies, put

from hypercode.safety import git_watch, obeyed
from hypercode.safety.git_named import named
from hypercode.safety.git_watch import Repositories
from hypercode.safety.obeyed import Records, States, came_whole, must_not_appear, obeyed_names, state_of

SITE = ".venv/lib/python3/site-packages"


def looked(walk):
    """What a look finds of settings."""
    walk.look()
    return walk.obeyed()


def new_in(before, after):
    return sorted(Path(name).name for name in after if after[name] != before.get(name))


# folders that can be entered but not listed


@contextmanager
def without_privileges(*places):
    """As somebody whom the modes of these places bind: root may list everything."""
    if os.geteuid():
        yield
        return
    for place in places:
        for path in (place, *place.rglob("*")):
            os.chown(path, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def tree(policy):
    folder = policy.workspace / "tree"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("known", [False, True])
def test_a_folder_that_cannot_be_listed_counts_itself(tree, known):
    walk = Repositories([tree])
    with without_privileges(tree):
        if known:
            put(tree, **{"sub/AGENTS.md": "x"})
        before = looked(walk)
        put(tree, **{"sub/AGENTS.md": "x"})
        (tree / "sub").chmod(0o311)
        after = looked(walk)
        assert new_in(before, after) == ["sub"]
        assert looked(walk) == after
        put(tree, **{"sub/.envrc": "x"})
        assert looked(walk) == after  # said once
        (tree / "sub").chmod(0o755)
        assert new_in(before, looked(walk)) == [".envrc"] if known else [".envrc", "AGENTS.md"]


def test_an_obeyed_folder_that_cannot_be_listed_has_changed(tree):
    walk = Repositories([tree])
    (tree / "sub/.claude/empty").mkdir(parents=True)
    with without_privileges(tree):
        before = looked(walk)
        (tree / "sub/.claude/empty").chmod(0o311)
        assert new_in(before, looked(walk)) == [".claude"]


def test_hooks_that_cannot_be_listed_are_hooks(tree):
    git(tree, "init", "-q", "r")
    walk = Repositories([tree])
    with without_privileges(tree):
        assert walk.look() == {f"{tree}/r/.git": ""}
        (tree / "r/.git/hooks").chmod(0o311)
        (said,) = walk.look().values()
        assert said.partition("\n")[0] == "hooks, which cannot be listed"
        assert walk.look() == {f"{tree}/r/.git": said}
        (tree / "r/.git/hooks").chmod(0o755)
        put(tree, **{"r/.git/config": "[alias]\nx = !ls\n"})
        before = looked(walk)
        (tree / "r/.git/hooks").chmod(0o311)
        assert new_in(before, looked(walk)) == ["hooks"]


def test_a_path_that_is_too_long_to_be_looked_at_is_more_than_is_looked_at(tree):
    walk = Repositories([tree])
    walk.look()
    assert (walk.beyond, walk.unseen) == (False, 0)
    here = os.getcwd()
    os.chdir(tree)
    try:
        for _ in range(25):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
    finally:
        os.chdir(here)
    walk.look()
    assert (walk.beyond, walk.unseen) == (True, 1)


# what the settings of a repository name


@BWRAP
@pytest.mark.parametrize(
    ("setting", "files", "change", "said"),
    [
        (
            ("core.hooksPath", "tools/hooks"),
            {"tools/hooks/pre-commit": "#!/bin/sh\n"},
            "echo x >> tools/hooks/pre-commit",
            "tools/hooks (changed)",
        ),
        (
            ("core.hooksPath", "tools/hooks"),
            {"tools/hooks/README": "x"},
            "echo x > tools/hooks/post-merge; chmod +x tools/hooks/post-merge",
            "tools/hooks (changed)",
        ),
        (
            ("core.hooksPath", "tools/hooks"),
            {"x": "x"},
            "mkdir -p tools/hooks; echo > tools/hooks/x",
            "tools/hooks (new)",
        ),
        (("core.hooksPath", "."), {"pre-push": "x", "y": "x"}, "echo y > y; echo x >> pre-push", "pre-push (changed)"),
        (("include.path", "../.gitconfig"), {".gitconfig": ""}, "echo '[a]' > .gitconfig", ".gitconfig (changed)"),
        (("include.path", "../.gitconfig"), {"x": "x"}, "echo '[a]' > .gitconfig", ".gitconfig (new)"),
        (
            ("includeIf.onbranch:main.path", "../b"),
            {"b": "[include]\npath = c\n", "c": ""},
            "echo '[a]' > c",
            "c (changed)",
        ),
        (
            ("filter.f.clean", "python3 'tools/f.py' %f"),
            {"tools/f.py": ""},
            "echo > tools/f.py",
            "tools/f.py (changed)",
        ),
        (("core.fsmonitor", "tools/watch"), {"x": ""}, "mkdir tools; echo > tools/watch", "tools/watch (new)"),
        (("alias.st", "!./st.sh --all"), {"st.sh": ""}, "echo x > st.sh", "st.sh (changed)"),
    ],
)
async def test_what_a_repository_is_already_told_to_run(ws, run, setting, files, change, said):
    git(ws, "init", "-q")
    git(ws, "config", *setting)
    put(ws, **files)
    for name in ("pre-commit", "pre-push"):
        for hook in ws.rglob(name):
            hook.chmod(0o755)
    assert await run("echo > harmless") == []
    assert await run(change) == left(said)
    assert (ws / ".git/config").exists()
    assert await run("echo > harmless") == []


def test_what_settings_name_is_found_as_git_finds_it(tmp_path):
    git(tmp_path, "init", "-q", "r")
    place = f"{tmp_path}/r/.git"
    put(tmp_path, **{"r/.git/worktree-x": "", "r/less": ""})
    text = "[core]\n\tpager = less\n\thooksPath = ~/h\n\tworktree = ../../w\n\tsshCommand = ssh -i bin/key\n"
    text += '[remote "o"]\n\turl = a/b\n[branch "less"]\n\tmerge = refs/heads/less\n[include]\n\tpath = broken\n'
    put(tmp_path, **{"r/.git/config": text, "r/.git/broken": "[core\n"})
    files, found = named(place)
    assert files == [f"{place}/config", f"{place}/config.worktree", f"{place}/broken"]
    assert found == [
        f"{tmp_path}/r/less",
        os.path.expanduser("~/h"),
        *(f"{base}/bin/key" for base in (f"{tmp_path}/r", place, f"{tmp_path}/w")),
        f"{place}/broken",
    ]


def test_settings_that_include_each_other_come_to_an_end(tmp_path):
    git(tmp_path, "init", "-q", "r")
    place = f"{tmp_path}/r/.git"
    for number in range(40):
        put(tmp_path, **{f"r/.git/{number}": f"[include]\npath = {number + 1}\npath = config\n"})
    put(tmp_path, **{"r/.git/config": "[include]\npath = 0\n"})
    files, found = named(place)
    assert (len(files), len(found)) == (20, 20)


def test_what_a_hostile_repository_names_is_soon_found(tmp_path):
    git(tmp_path, "init", "-q", "r")
    lines = [f"worktree = w{number}\n" for number in range(100)]
    lines += [f"sshCommand = {'a/b ' * 2000}\n" for _ in range(20)] + ['hooksPath = "a\0b"\n', "editor = \0/x\n"]
    (tmp_path / "r/.git/config").write_text("[core]\n" + "".join(lines))
    _, found = named(f"{tmp_path}/r/.git")
    assert len(found) == 8
    assert States().look(found) == {}


@BWRAP
async def test_hooks_that_are_links_are_left_and_said(ws, run):
    put(ws, **{"tools/pre-commit": "#!/bin/sh\n", "more/post-merge": "#!/bin/sh\n", "b/x": ""})
    for name in ("tools/pre-commit", "more/post-merge"):
        (ws / name).chmod(0o755)
    git(ws, "init", "-q")
    git(ws, "init", "-q", "b")
    (ws / ".git/hooks/pre-commit").symlink_to("../../tools/pre-commit")
    shutil.rmtree(ws / "b/.git/hooks")
    (ws / "b/.git/hooks").symlink_to("../../more")
    assert await run("echo x > tools/other; echo >> tools/pre-commit") == left("tools/pre-commit (changed)")
    assert await run("echo >> more/post-merge") == left("more (changed)")
    assert (ws / ".git/hooks/pre-commit").exists()
    assert (ws / "b/.git/HEAD").exists()


def test_hooks_of_every_repository_are_looked_into(tree):
    names = [f"r{number:02}" for number in range(12)]
    for name in names:
        git(tree, "init", "-q", name)
        put(tree, **{f"{name}/.git/hooks/pre-commit": "#!/bin/sh\n"})
        (tree / name / ".git/hooks/pre-commit").chmod(0o755)
    walk = Repositories([tree])
    places, before = walk.look(), walk.obeyed()
    put(tree, **{"r11/.git/hooks/pre-commit": "#!/bin/ls\n"})
    assert walk.look() == places  # nobody loses a repository for it
    after = walk.obeyed()
    assert [name.removeprefix(f"{tree}/") for name in after if after[name] != before[name]] == ["r11/.git/hooks"]
    git(tree / "r10", "config", "alias.x", "!ls")
    put(tree, **{"r10/.git/hooks/pre-commit": "#!/bin/ls\n"})
    assert new_in(after, looked(walk)) == ["hooks"]


def test_what_a_pointed_to_repository_runs_is_looked_into(tree):
    git(tree, "init", "-q", "--separate-git-dir", f"{tree}/kept", f"{tree}/work")
    (tree / "kept/HEAD").rename(tree / "HEAD")  # so that it is found by the file that points to it alone
    walk = Repositories([tree])
    put(tree, **{"kept/config": "[alias]\nx = !ls\n"})
    before = looked(walk)
    put(tree, **{"kept/config": "[alias]\nx = !ls\ny = !ls\n"})
    assert new_in(before, looked(walk)) == ["config"]


# pyvenv.cfg


MADE = "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.7\ncommand = /usr/bin/python3 -m venv x\n"


@pytest.mark.parametrize(
    "text",
    [
        f"\x0chome = /evil\n{MADE}",
        f"{MADE}home = /evil\n",
        f"HOME=/evil\n{MADE}",
        f"\xa0home = /evil\n{MADE}",
        MADE.replace("3.11.7", "3.11.7\rhome = /evil"),
        MADE.replace("home", "version=1\x0b\nhome"),
        MADE.replace("home = /usr/bin", "home = /usr/bin "),
        MADE.replace("home = /usr/bin\n", ""),
        f"x = y\n{MADE}",
        MADE.replace("= false", "= true"),
    ],
)
def test_what_python_may_read_of_an_environment_counts(tmp_path, text):
    place = tmp_path / "pyvenv.cfg"
    place.write_text(MADE)
    before = state_of(str(place))
    place.write_bytes(text.encode())
    assert state_of(str(place)) != before


def test_how_an_environment_was_made_last_does_not_count(tmp_path):
    place = tmp_path / "pyvenv.cfg"
    place.write_text(MADE)
    before = state_of(str(place))
    place.write_text(MADE.replace("3.11.7", "3.11.9").replace("-m venv", "-m venv --upgrade") + "uv = 0.9\nprompt = ä")
    assert state_of(str(place)) == before


# packages


@pytest.mark.parametrize(
    "name",
    [
        "sitecustomize.py",
        "sitecustomize.pyc",
        "sitecustomize.cpython-311-x86_64-linux-gnu.so",
        "usercustomize.abi3.so",
        "sitecustomize/__init__.py",
        "usercustomize/__init__.pyc",
        "__pycache__/sitecustomize.cpython-311.pyc",
        "x.pth",
    ],
)
@BWRAP
async def test_what_python_imports_by_itself_is_said_in_whatever_form(ws, run, name):
    put(ws, **{".venv/pyvenv.cfg": MADE, f"{SITE}/__pycache__/x.pyc": "x"})
    place = name.partition("/")[0] if name.startswith(("site", "user")) else name
    assert await run(f"cd {SITE}; mkdir -p {os.path.dirname(name) or '.'}; echo > {name}") == left(
        f"{SITE}/{place} (new)"
    )


@BWRAP
async def test_a_list_that_a_command_forged_does_not_count_for_what_python_runs(ws, run):
    put(ws, **{f"{SITE}/thing/__init__.py": "", ".venv/pyvenv.cfg": MADE})
    forge = (
        "import base64, hashlib, os, sys; names = ['evil.pth', 'sitecustomize.py', 'thing/AGENTS.md']; os.mkdir('e.dist-info')\n"
        "hashed = base64.urlsafe_b64encode(hashlib.sha256(b'x').digest()).decode().rstrip('=')\n"
        "[open(name, 'w').write('x') for name in names]\n"
        "open('e.dist-info/RECORD', 'w').writelines(f'{name},sha256={hashed},1\\n' for name in names)\n"
    )
    put(ws, **{"forge.py": forge})
    assert await run(f"cd {SITE}; {sys._base_executable} ../../../../forge.py") == left(
        f"{SITE}/evil.pth (new)", f"{SITE}/sitecustomize.py (new)"
    )
    assert Records().hold(f"{ws}/{SITE}/thing/AGENTS.md")


def test_the_list_of_a_package_is_read_within_bounds(tmp_path, monkeypatch):
    place = tmp_path / "site-packages"
    put(place, **{"thing/AGENTS.md": "x", "a.dist-info/RECORD": "y" * 50})
    put(
        place,
        **{"thing-1.dist-info/RECORD": "thing/AGENTS.md,sha256=LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE,1\n"},
    )
    assert Records().hold(f"{place}/thing/AGENTS.md")
    monkeypatch.setattr(obeyed, "_MOST_RECORDS", 40)
    monkeypatch.setattr(os, "listdir", lambda folder: ["a.dist-info", "thing-1.dist-info"])
    assert not Records().hold(f"{place}/thing/AGENTS.md")


def test_a_folder_in_the_place_of_another_is_not_new(tmp_path):
    there = {f"{tmp_path}/node_modules/a", f"{tmp_path}/site-packages"}
    assert came_whole(f"{tmp_path}/node_modules/b/.envrc", there, Records())
    assert not came_whole(f"{tmp_path}/node_modules/a/.envrc", there, Records())
    assert not came_whole(f"{tmp_path}/site-packages/__pycache__/sitecustomize.x.pyc", there, Records())


# links


@BWRAP
@pytest.mark.parametrize(
    "make",
    [
        "mkdir x; echo > x/config.toml; ln -s x .cargo",
        "mkdir x; ln -s x .cargo; echo > x/config",
        "mkdir x y; ln -s ../x y/link; ln -s y/link .cargo; echo > x/config",
    ],
)
async def test_a_link_with_the_name_of_a_folder_that_is_obeyed(ws, run, make):
    (report,) = await run(make)
    assert report.startswith(".cargo appeared; tools would obey it without asking. It was moved to ")
    assert (lies(ws / ".cargo"), lies(ws / "x")) == (False, True)


@BWRAP
async def test_what_is_behind_such_a_link_is_looked_at_each_time(ws, run):
    put(ws, **{"x/config.toml": "a", "x/registry/y": "", "z/hgrc": "a", "h/y": ""})
    for name, target in ((".cargo", "x"), (".hg", "z"), (".mvn", "h")):
        (ws / name).symlink_to(target)
    assert await run("echo > x/registry/y; echo > x/z; echo > h/other") == []
    assert await run("echo b > x/config.toml; echo b > z/hgrc") == left(".cargo (changed)", ".hg (changed)")
    (report,) = await run("echo > h/jvm.config")
    assert report.startswith(".mvn appeared")


@BWRAP
async def test_links_in_an_environment(ws, run):
    put(ws, **{".venv/pyvenv.cfg": MADE, "b/activate": "x", "s/x": ""})
    (ws / ".venv/bin").symlink_to("../b")
    (ws / ".venv/lib").mkdir()
    (ws / ".venv/lib/site-packages").symlink_to("../../s")
    assert await run("echo > b/tool; echo > s/y.py") == []
    assert await run("echo evil > b/activate; echo 'import os' > s/evil.pth") == left(
        ".venv/bin (changed)", ".venv/lib/site-packages (new)"
    )


@BWRAP
async def test_a_linked_folder_in_an_obeyed_one(ws, run):
    put(ws, **{"tools/hooks/x": "x", "p/.claude/settings.json": "{}", "p/q": "x"})
    for name, target in (("hooks", "../../tools/hooks"), ("all", "../.."), ("self", "."), ("gone", "nowhere")):
        (ws / "p/.claude" / name).symlink_to(target)
    assert await run("echo > p/q; echo > tools/y") == []
    assert await run("echo evil > tools/hooks/x") == left("p/.claude (changed)")


@BWRAP
@pytest.mark.parametrize("target", ["z/.git/x", "z/../z/.git/x", "{ws}/z/.git/x", "y/x"])
async def test_a_link_into_a_git_folder_leads_to_more(ws, run, target):
    (report,) = await run(
        f"mkdir -p z/.git/x/deep; echo > z/.git/x/deep/AGENTS.md; ln -s z/.git y; ln -s {target.format(ws=ws)} sub"
    )
    assert report.startswith("z/.git/x/deep/AGENTS.md appeared")


@BWRAP
async def test_links_into_a_git_folder_are_harmless_by_themselves(ws, run):
    git(ws, "init", "-q")
    (ws / "hooks").symlink_to(".git/hooks")
    (ws / "all").symlink_to(".git")
    assert await run("ln -s .git/objects o; ln -s ../.git/info x; git status -s") == []


def test_a_repository_behind_a_link_into_a_git_folder_is_left_and_said(tree):
    git(tree, "init", "-q", "z")
    git(tree, "init", "-q", "--bare", "z/.git/modules/x")
    walk = Repositories([tree])
    before = looked(walk)
    (tree / "sub").symlink_to("z/.git/modules/x")
    git(tree, "--git-dir", "z/.git/modules/x", "config", "core.fsmonitor", "touch x")
    assert walk.look() == {f"{tree}/z/.git": ""}
    assert new_in(before, walk.obeyed()) == ["config", "hooks"]
    assert [name for name in walk.obeyed() if must_not_appear(name)] == []


def test_links_to_other_places_that_a_command_writes_to(policy):
    tree, temp = policy.workspace, policy.temp
    walk = Repositories([tree], [temp])
    put(temp, **{"y/.envrc": "x"})
    (tree / "sub").symlink_to(temp / "x")
    assert looked(walk) == {}
    put(temp, **{"x/deep/AGENTS.md": "x"})
    before = looked(walk)
    assert list(before) == [f"{temp}/x/deep/AGENTS.md"]
    put(temp, **{"x/deep/AGENTS.md": "changed"})
    assert new_in(before, looked(walk)) == ["AGENTS.md"]
    (tree / "all").symlink_to("../../temp")
    assert new_in({}, looked(walk)) == [".envrc", "AGENTS.md"]


def test_a_link_to_what_is_no_stored_folder_is_not_followed(tmp_path):
    put(tmp_path, **{".claude/x": "x"})
    for name, target in (("p", "/proc/self"), ("d", "/dev"), ("s", "/sys")):
        (tmp_path / ".claude" / name).symlink_to(target)
    assert state_of(f"{tmp_path}/.claude") == state_of(f"{tmp_path}/.claude")
    assert len(obeyed._entries(f"{tmp_path}/.claude")) == 5


def test_many_links_into_git_folders_have_a_bound(tree, monkeypatch):
    monkeypatch.setattr(git_watch, "_MOST_PLACES", 5)
    for number in range(9):
        put(tree, **{f"z/.git/{number}/.envrc": "x"})
        (tree / f"{number}").symlink_to(f"z/.git/{number}")
    walk = Repositories([tree])
    assert (len(looked(walk)), walk.beyond) == (5, True)


# numbers


def test_a_crowd_hides_no_others(tree, monkeypatch):
    monkeypatch.setattr(git_watch, "_MOST_FOLDERS", 60)
    monkeypatch.setattr(git_watch, "_CROWD", 20)
    for number in range(70):
        (tree / f"data/{number:02}/x").mkdir(parents=True)
    put(tree, **{"src/a/b/c/d/.envrc": "x"})
    walk = Repositories([tree])
    assert new_in({}, looked(walk)) == [".envrc"]
    assert (walk.beyond, walk.own_beyond) == (True, True)


def test_new_folders_push_no_known_ones_out(tree, monkeypatch):
    monkeypatch.setattr(git_watch, "_MOST_FOLDERS", 20)
    monkeypatch.setattr(git_watch, "_MORE_FOLDERS", 10)
    for number in range(19):
        put(tree, **{f"{number:02}/.envrc": f"{number}"})
    walk = Repositories([tree])
    before = looked(walk)
    assert (len(before), walk.beyond) == (19, False)
    for number in range(30):
        put(tree, **{f"00-{number:02}/x": ""})
    put(tree, **{"18/.envrc": "changed"})
    assert looked(walk)[f"{tree}/18/.envrc"] != before[f"{tree}/18/.envrc"]


def test_what_appears_where_nobody_looks_is_counted(tree, monkeypatch):
    monkeypatch.setattr(git_watch, "_MOST_FOLDERS", 10)
    monkeypatch.setattr(git_watch, "_MORE_FOLDERS", 0)
    for number in range(40):
        (tree / f"{number:02}").mkdir()
    walk = Repositories([tree])
    for _ in range(3):
        walk.look()
        assert (walk.beyond, walk.unseen) == (True, 0)
    put(tree, **{"zz/.envrc": "x"})
    walk.look()
    assert walk.unseen == 1
    walk.look()
    assert walk.unseen == 1


def test_packages_hide_no_other_kind_of_folder_that_tools_fill(tree, monkeypatch):
    monkeypatch.setattr(git_watch, "_MOST_TOOL_FOLDERS", 30)
    for number in range(40):
        (tree / f"node_modules/p{number}/dist").mkdir(parents=True)
    put(tree, **{"src/build/a/b/.envrc": "x", "src/dist/build/AGENTS.md": "x", ".venv/pyvenv.cfg": MADE})
    walk = Repositories([tree])
    assert new_in({}, looked(walk)) == [".envrc", "AGENTS.md", "pyvenv.cfg"]
    assert (walk.beyond, walk.own_beyond) == (True, False)


def test_new_settings_hide_no_change_of_known_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(obeyed, "_MOST_THINGS", 3)
    put(tmp_path, **{f"{number}/.envrc": "x" for number in range(10)})
    paths = [f"{tmp_path}/{number}/.envrc" for number in range(10)]
    states = States()
    assert len(states.look(paths[5:8])) == 3
    put(tmp_path, **{"7/.envrc": "y"})
    assert list(states.look(paths)) == paths[:3] + paths[5:8]
    assert (states.beyond, states.unseen) == (True, 4)
    states.look(paths)
    assert states.unseen == 4


def test_large_files_hide_no_small_ones(tmp_path):
    put(tmp_path, **{".idea/a.xml": "x" * 1_000_001, ".idea/b.xml": "y" * 900_000, ".idea/z.xml": "good"})
    path = str(tmp_path / ".idea")
    for name, text in (("z.xml", "evil"), ("a.xml", "z" * 1_000_001), ("b.xml", "z" * 900_000)):
        before, status = state_of(path), (tmp_path / ".idea" / name).stat()
        put(tmp_path, **{f".idea/{name}": text})
        os.utime(tmp_path / ".idea" / name, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert state_of(path) != before


def test_large_folders_hide_no_small_ones(tmp_path):
    put(tmp_path, **{f".claude/zz/{number:04}": "x" for number in range(1100)})
    put(tmp_path, **{"deep/.claude/a/x": "x", ".claude/a/x": "x", ".claude/settings.json": "x", ".claude/zzz/y": "y"})
    path = str(tmp_path / ".claude")
    for name in ("settings.json", "a/x", "zzz/y", "zz/a", "zz/0900", "zz/zz"):
        before = state_of(path)
        put(tmp_path, **{f".claude/{name}": "evil"})
        assert state_of(path) != before


# names


RUN = """
    .helix/languages.toml .lazy.lua .vim/coc-settings.json .dir-locals-2.el .theia/tasks.json .nova/Configuration.json
    .opencode/plugins/x.js opencode.json opencode.jsonc .crush.json crush.json .qwen/settings.json .amazonq/mcp.json
    .junie/mcp/mcp.json .trae/mcp.json .kilocode/mcp.json .factory/hooks.json .augment/settings.json .github/hooks/x.json
    mise.local.toml .mise.dev.toml .mise/config.toml .config/mise/config.toml .config/mise/config.local.toml .config/mise.toml
    .mvn/jvm.config .mvn/extensions.xml .Rprofile .Renviron .irbrc .pryrc .iex.exs .ghci .ocamlinit .octaverc
    sitecustomize/__init__.py usercustomize.pyc
"""
TOLD = """
    AGENT.md QWEN.md WARP.md .rules .roomodes .roorules-code .kilocodemodes .goosehints .augment-guidelines
    .github/copilot-instructions.md .github/instructions/x.instructions.md .github/agents/x.md .github/skills/x/SKILL.md
"""
ORDINARY = """
    .tool-versions .github/workflows/ci.yml .github/dependabot.yml .mvn/wrapper/maven-wrapper.properties config.toml
    jvm.config src/mise/config.py conftest.py .config/app/config.toml docs/agents/x.md x.rules vim/x sitecustomizer.py
"""


@pytest.mark.parametrize(("names", "found"), [(RUN, True), (TOLD, True), (ORDINARY, False)])
@pytest.mark.parametrize("folder", ["", "packages/x/"])
def test_well_known_names_are_found(tmp_path, names, found, folder):
    for name in names.split():
        put(tmp_path, **{f"{name.strip('.').replace('/', '-')}.d/{folder}{name}": "x"})
        walk = Repositories([tmp_path])
        states = looked(walk)
        assert (name, bool(states)) == (name, found)
        assert all(map(must_not_appear, states))
        shutil.rmtree(tmp_path / f"{name.strip('.').replace('/', '-')}.d")


def test_a_link_to_nothing_of_interest_is_none(tmp_path):
    put(tmp_path, **{"x/y": ""})
    (tmp_path / ".cargo").symlink_to("x")
    assert obeyed_names(str(tmp_path), [".cargo", "x"], [".cargo"]) == ()
    put(tmp_path, **{"x/config": ""})
    assert obeyed_names(str(tmp_path), [".cargo", "x"], [".cargo"]) == (".cargo",)
    assert must_not_appear(f"{tmp_path}/.cargo")
    assert not must_not_appear(f"{tmp_path}/sub/.cargo")


# ordinary work


@BWRAP
async def test_ordinary_work_raises_no_alarm(ws, run):
    git(ws, "init", "-q", "-b", "main", "one")
    put(ws, **{"one/a/x": "x", "one/.github/workflows/ci.yml": "x", "one/tools/x.py": ""})
    git(ws / "one", "add", ".")
    git(ws / "one", "commit", "-qm", "1")
    git(ws / "one", "branch", "other")
    assert await run("git clone -q one two; cd two; git checkout -q -b new; git status -s") == []
    assert await run("cp -r one three; cp -r two/a b; mv three four; rm -rf four") == []
    assert await run("mkdir -p node_modules/{a,b}/{.vscode,dist}; touch node_modules/{a,b}/{.npmrc,AGENTS.md}") == []
    assert await run("rm -r node_modules/a; mkdir -p node_modules/a; touch node_modules/a/index.js") == []
    assert await run(f"{sys._base_executable} -m venv --without-pip .venv; .venv/bin/python -c 'import json'") == []
    assert await run(f"{sys._base_executable} -m venv --without-pip --upgrade .venv") == []
    assert await run("mkdir -p target/debug build/lib dist; touch target/debug/x; chmod 555 dist") == []


def test_a_wide_folder_costs_little():
    """What was not there is told from what was without a search through all the names for each of them."""
    wide = "/ws/wide"

    class Name(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Name.compared += 1
            return str.__eq__(self, other)

    names = tuple(Name(f"{number:04}") for number in range(2_000))
    known = {wide: git_watch.Folder(0, 0, names)}
    listings = {}
    found = [git_watch._is_new(f"{wide}/{name}", known, listings) for name in (*map(str, names), "new")]
    assert found == [False] * 2_000 + [True]
    assert Name.compared < 10_000


def test_a_look_that_reaches_further_is_no_news(tree, monkeypatch):
    monkeypatch.setattr(git_watch, "_MOST_FOLDERS", 10)
    monkeypatch.setattr(git_watch, "_MORE_FOLDERS", 5)
    monkeypatch.setattr(obeyed, "_MOST_THINGS", 2)
    put(tree, **{f"{number:02}/{deep}/.envrc": "x" for number in range(12) for deep in "ab"})
    walk = Repositories([tree])
    for _ in range(6):
        looked(walk)
        assert (walk.beyond, walk.unseen) == (True, 0)
    put(tree, **{"00/new/.envrc": "x", "00/a/.npmrc": "x"})
    looked(walk)
    assert walk.unseen >= 1


def test_each_list_of_a_package_is_read_once(tmp_path, monkeypatch):
    place = tmp_path / "site-packages"
    put(place, **{f"p{number}/AGENTS.md": "x" for number in range(20)})
    put(place, **{"a.dist-info/RECORD": "y\n" * 50, "b.dist-info/RECORD": "p0/AGENTS.md,sha256=no,1\n"})
    read = []
    real = obeyed._read
    monkeypatch.setattr(obeyed, "_read", lambda name, most: read.append(name) or real(name, most))
    records = Records()
    assert not any(records.hold(f"{place}/p{number}/AGENTS.md") for number in range(20))
    assert sorted(name for name in read if name.endswith("RECORD")) == [
        f"{place}/{name}.dist-info/RECORD" for name in "ab"
    ]
