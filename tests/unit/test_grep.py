"""The search tool."""

import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path

import pytest

from hypercode.errors import ToolError
from hypercode.process import child_environment
from hypercode.safety import facts
from hypercode.safety.paths import FileGuard
from hypercode.tools import ripgrep
from hypercode.tools.base import ToolContext
from hypercode.tools.glob import glob
from hypercode.tools.grep import COUNTED, SHOWN, grep


@pytest.fixture
def ctx(tmp_path):
    workspace = tmp_path / "work"
    workspace.mkdir()
    guard = FileGuard(workspace, home=tmp_path / "home")
    return ToolContext(guard, tmp_path / "spill", child_environment(os.environ, temp=tmp_path))


@pytest.fixture
def tree(ctx):
    """Files of the workspace, by name."""

    def make(**files):
        for name, text in files.items():
            put(name, text)

    def put(name, text):
        path = ctx.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    make.put = put
    return make


async def call(ctx, pattern, **arguments):
    return await grep.call(ctx, grep.validate({"pattern": pattern, **arguments}))


async def kind(ctx, pattern, **arguments):
    with pytest.raises(ToolError) as caught:
        await call(ctx, pattern, **arguments)
    return caught.value.kind


async def test_path_line_and_text_sorted_by_path(ctx, tree):
    tree.put("b.py", "one\nneedle b\n")
    tree.put("a/z.py", "needle z\n\nneedle again\n")
    tree.put("a/y.txt", "nothing\n")
    assert await call(ctx, "needle") == "a/z.py:1:needle z\na/z.py:3:needle again\nb.py:2:needle b"


async def test_no_match_says_so(ctx, tree):
    tree.put("a.py", "x\n")
    assert await call(ctx, "needle") == "No matches for 'needle' in '.'."
    assert await call(ctx, "needle", path="a.py") == "No matches for 'needle' in 'a.py'."


@pytest.mark.parametrize("path", ["src", "./src/", "src/a.py", "{ws}/src", "src/../src"])
async def test_path_is_a_folder_or_a_file(ctx, tree, path):
    tree.put("src/a.py", "needle\n")
    tree.put("other.py", "needle\n")
    assert await call(ctx, "needle", path=path.format(ws=ctx.workspace)) == "src/a.py:1:needle"


async def test_a_missing_path_is_an_error(ctx):
    assert await kind(ctx, "x", path="gone") == "missing_file"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("-e", "a.txt:1:-e --files x|y a(b"),
        ("--files", "a.txt:1:-e --files x|y a(b"),
        ("-", "a.txt:1:-e --files x|y a(b"),
        (r"x\|y", "a.txt:1:-e --files x|y a(b"),
        (r"a\(b", "a.txt:1:-e --files x|y a(b"),
        (r"^\s*def \w+", "a.txt:2:def f():"),
        ("é€😀", "a.txt:3:é€😀"),
        ("$HOME `id` 'q' \"d\"", "No matches for '$HOME `id` \\'q\\' \"d\"' in '.'."),
    ],
)
async def test_pattern(ctx, tree, pattern, found):
    tree.put("a.txt", "-e --files x|y a(b\ndef f():\né€😀\n")
    assert await call(ctx, pattern) == found


async def test_letter_case(ctx, tree):
    tree.put("a.txt", "Needle\n")
    assert await call(ctx, "needle") == "No matches for 'needle' in '.'."
    assert await call(ctx, "needle", ignore_case=True) == "a.txt:1:Needle"


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", r"\p{Nope}", "(?P<n", "*", r"a\nb", r"(?=look)", r"(a)\1"])
async def test_a_bad_pattern_gets_rg_s_reason(ctx, tree, pattern):
    tree.put("a.txt", "x\n")
    with pytest.raises(ToolError) as caught:
        await call(ctx, pattern)
    assert caught.value.kind == "bad_arguments"
    assert "rror" in str(caught.value) or "not allowed" in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"pattern": ""},
        {"pattern": "a\0"},
        {"pattern": "\ud800"},
        {"pattern": "a", "glob": "\0"},
        {"pattern": "a", "glob": "{a"},
        {"pattern": "a", "glob": "a}"},
        {"pattern": "a", "path": "\ud800"},
    ],
)
async def test_arguments_that_cannot_be_passed_on(ctx, arguments):
    assert await kind(ctx, **arguments) == "bad_arguments"


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.py", "a.py lib/b.py lib/deep/c.py"),
        ("a.*", "a.md a.py"),
        ("[!a].[!m]*", "lib/b.py lib/d.ts lib/deep/c.py"),
        ("![ab].*", "lib/d.ts lib/deep/c.py"),
        ("*.{py,ts}", "a.py lib/b.py lib/d.ts lib/deep/c.py"),
        ("!*.py", "a.md lib/d.ts"),
        ("lib/*.py", "lib/b.py"),
        ("./lib/**/*.py", "lib/b.py lib/deep/c.py"),
        ("lib/**", "lib/b.py lib/d.ts lib/deep/c.py"),
        ("**/deep/*", "lib/deep/c.py"),
        ("!lib/**", "a.md a.py"),
        ("{ws}/lib/*.ts", "lib/d.ts"),
        ("*.rs", ""),
        ("[ab].[mp]*", "a.md a.py lib/b.py"),
    ],
)
async def test_glob(ctx, tree, glob, found):
    for name in ("a.py", "a.md", "lib/b.py", "lib/d.ts", "lib/deep/c.py"):
        tree.put(name, "needle\n")
    tree.put("ignored.py", "needle\n")
    tree.put("lib/ignored.py", "needle\n")
    tree.put(".gitignore", "ignored.py\n")
    text = await call(ctx, "needle", glob=glob.replace("{ws}", str(ctx.workspace)))
    assert text == ("\n".join(f"{name}:1:needle" for name in found.split()) or "No matches for 'needle' in '.'.")


async def test_ignored_files_are_not_searched_hidden_ones_are(ctx, tree):
    tree.put(".gitignore", "build/\n*.log\n")
    for name in ("build/x.py", "a.log", ".github/workflows/ci.yml", "src/.ignore", "src/skip.py", "src/keep.py"):
        tree.put(name, "needle skip.py\n")
    tree.put("src/.ignore", "skip.py\n")
    assert await call(ctx, "needle") == ".github/workflows/ci.yml:1:needle skip.py\nsrc/keep.py:1:needle skip.py"


@pytest.mark.parametrize("glob", [None, "*", "**", "**/*", ".*", ".env", "*.pem", ".git/**", "{ws}/**"])
async def test_secrets_are_never_searched(ctx, tree, glob):
    for name in (".env", "a/.ENV", "a/.env.local", "k.pem", ".git/config", "sub/.git/hooks/x", "id_rsa", ".ssh/known"):
        tree.put(name, "needle\n")
    glob = glob and glob.replace("{ws}", str(ctx.workspace))
    assert await call(ctx, "needle", **({"glob": glob} if glob else {})) == "No matches for 'needle' in '.'."


async def test_links_are_not_followed(ctx, tree, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("needle\n")
    (ctx.workspace / "folder").symlink_to(outside)
    (ctx.workspace / "file.txt").symlink_to(outside / "secret.txt")
    assert await call(ctx, "needle") == "No matches for 'needle' in '.'."
    assert await kind(ctx, "needle", path="folder") == "refused"
    assert await kind(ctx, "needle", path="file.txt") == "refused"
    assert await kind(ctx, "needle", path="../outside") == "refused"


@pytest.fixture
def keys(tmp_path):
    """A file of the home folder that holds secrets."""
    (tmp_path / "home/.ssh").mkdir(parents=True)
    path = tmp_path / "home/.ssh/id_rsa"
    path.write_text("needle of the key\n" * 300)
    return path


async def test_another_name_of_a_secret_is_left_out_and_counted(ctx, tree, tmp_path, keys):
    os.link(keys, ctx.workspace / "a.txt")
    os.link(keys, ctx.workspace / "b.txt")
    (tmp_path / "plain.txt").write_text("needle\n")
    os.link(tmp_path / "plain.txt", ctx.workspace / "plain.txt")
    tree.put("z.txt", "needle\n")
    left_out = "2 files are left out: another name (hard link) of a file with passwords or keys"
    assert await call(ctx, "needle") == f"plain.txt:1:needle\nz.txt:1:needle\n[{left_out}]"
    assert await call(ctx, "of the key") == f"No matches for 'of the key' in '.'.\n[{left_out}]"
    assert await call(ctx, "needle", glob="z*") == "z.txt:1:needle"
    assert await call(ctx, "nothing") == "No matches for 'nothing' in '.'."
    with pytest.raises(ToolError, match="another name of a file with passwords or keys"):
        await call(ctx, "needle", path="a.txt")


async def test_secrets_that_are_known_by_more_than_a_glob_take_no_room_and_tell_nothing(ctx, tree):
    tree.put("secrets/db_password", "needle\n" * 500)
    tree.put(".env~", "needle\n" * 500)
    tree.put("secrets/load.py", "needle\n")
    tree.put("z.txt", "needle\n")
    assert await call(ctx, "needle") == "secrets/load.py:1:needle\nz.txt:1:needle"


async def test_hard_links_of_packages_are_searched_once_for_what_they_are(ctx, tree, tmp_path, keys, monkeypatch):
    """Package managers link thousands of files to their store; the home folder is looked at once for all of them."""
    looked = []
    nodes = facts.secret_nodes
    monkeypatch.setattr(facts, "secret_nodes", lambda places: looked.append(1) or nodes(places))
    for number in range(50):
        tree.put(f"../store/{number}", "needle\n")
        os.link(tmp_path / f"store/{number}", ctx.workspace / f"{number}.js")
    assert len((await call(ctx, "needle")).split("\n")) == 50
    assert len(looked) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_bytes(b"needle\0\n"),
        lambda path: os.truncate(path, 10 << 30),
        lambda path: (path.write_bytes(b"needle\n"), os.truncate(path, 10 << 30)),
    ],
    ids=["nul", "hole", "text before a hole"],
)
async def test_a_binary_file_that_is_named_is_refused_at_once(ctx, tree, make):
    tree.put("big.bin", "")
    tree.put("a.txt", "needle\n")
    make(ctx.workspace / "big.bin")
    start = time.monotonic()
    with pytest.raises(ToolError, match=r"^binary: big\.bin is not text \(it holds NUL bytes\)"):
        await call(ctx, "needle", path="big.bin")
    assert await call(ctx, "nothing") == "No matches for 'nothing' in '.'."
    assert time.monotonic() - start < 5


async def test_text_that_is_named_is_searched_whatever_its_encoding(ctx, tree):
    tree.put("utf16.txt", "needle é\n".encode("utf-16"))
    tree.put("empty.txt", "")
    assert await call(ctx, "needle", path="utf16.txt") == "utf16.txt:1:needle é"
    assert await call(ctx, "needle", path="empty.txt") == "No matches for 'needle' in 'empty.txt'."


async def test_a_secret_that_is_named_is_searched_with_a_person_s_yes(ctx, tree):
    tree.put("secrets/db", "needle\n")
    assert await kind(ctx, "needle", path="secrets/db") == "refused"
    ctx.files.grant("grep", ctx.workspace / "secrets/db")
    assert await call(ctx, "needle", path="secrets/db") == "secrets/db:1:needle"


async def test_own_folders_with_odd_names_are_never_searched(tmp_path):
    work, own = tmp_path / "work", tmp_path / "work/a,b/{x}"
    own.mkdir(parents=True)
    for place in (own / "key.txt", work / "b/y.txt", work / "key,s.txt"):
        place.parent.mkdir(exist_ok=True)
        place.write_text("needle\n")
    guard = FileGuard(work, home=tmp_path / "home", own=[own])
    ctx = ToolContext(guard, tmp_path / "spill", child_environment(os.environ, temp=tmp_path))
    assert await call(ctx, "needle") == "b/y.txt:1:needle\nkey,s.txt:1:needle"


def test_globs_are_joined_where_that_means_the_same():
    options = ripgrep.walk_options(["*.pem", ".env", "**/.config/gh", "**/a b/c", "x/y", "**/{z}/q", "a[1]"])
    assert [option for option in options if option.startswith("--iglob")] == [
        "--iglob=!{*.pem,.env}", "--iglob=!**/{.config/gh,a b/c}", "--iglob=!x/y", "--iglob=!**/{z}/q", "--iglob=!a[1]",
    ]  # fmt: skip


async def test_outside_with_a_person_s_yes(ctx, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("needle\n")
    (outside / ".env").write_text("needle\n")
    ctx.files.grant("grep", outside)
    assert await call(ctx, "needle", path="../outside") == f"{outside}/a.txt:1:needle"


async def test_binary_files_are_skipped_and_do_not_spoil_the_rest(ctx, tree):
    tree.put("a.bin", b"\0\1needle\n")
    tree.put("b.bin", b"needle early\n" + b"x" * 200_000 + b"\n\0\n")
    tree.put("c.txt", "needle\n")
    tree.put("d.bin", b"needle early\n" + b"x" * 200_000 + b"\n\0\n")
    tree.put("e.txt", "needle\n")
    lines = (await call(ctx, "needle")).split("\n")
    assert [line for line in lines if ".bin" not in line] == ["c.txt:1:needle", "e.txt:1:needle"]
    assert {line for line in lines if ".bin" in line} <= {"b.bin:1:needle early", "d.bin:1:needle early"}


async def test_odd_names_and_odd_text(ctx, tree):
    tree.put("new\nline.txt", "needle\n")
    tree.put("col:on 1:2.txt", "needle: x\n")
    tree.put("latin.txt", "needle \u00e9\n".encode("latin-1"))
    (ctx.workspace / os.fsdecode(b"bad\xff.txt")).write_bytes(b"needle\r\n")
    tree.put("utf16.txt", "needle é\n".encode("utf-16"))
    assert (await call(ctx, "needle")).split("\n") == [
        "bad\ufffd.txt:1:needle",
        "col:on 1:2.txt:1:needle: x",
        "latin.txt:1:needle \ufffd",
        "new",
        "line.txt:1:needle",
        "utf16.txt:1:needle é",
    ]


async def test_long_lines_are_cut_with_a_note(ctx, tree):
    tree.put("a.js", "needle" + "x" * 5_000_000 + "\n")
    text = await call(ctx, "needle")
    assert text.startswith("a.js:1:needlexxx")
    assert text.endswith(" [... omitted end of long line]")
    assert len(text) < 600


async def test_more_matches_are_counted(ctx, tree):
    tree.put("a.txt", "needle\n" * 1234)
    lines = (await call(ctx, "needle")).split("\n")
    assert lines[:SHOWN] == [f"a.txt:{i}:needle" for i in range(1, SHOWN + 1)]
    assert lines[SHOWN:] == [
        f"[{SHOWN} of 1,234 matching lines; narrow the pattern, the path or the glob to see the others]"
    ]


async def test_far_too_many_matches_end_the_search(ctx, tree):
    for i in range(20):
        tree.put(f"{i}.txt", "needle\n" * 50_000)
    start = time.monotonic()
    lines = (await call(ctx, "needle")).split("\n")
    assert len(lines) == SHOWN + 1
    assert lines[-1].startswith(f"[{SHOWN} of more than {COUNTED:,} matching lines")
    assert time.monotonic() - start < 10


async def test_devices_and_pipes_do_not_hang_it(ctx, tree):
    tree.put("a.txt", "needle\n")
    os.mkfifo(ctx.workspace / "pipe")
    assert await call(ctx, "needle") == "a.txt:1:needle"
    assert await kind(ctx, "needle", path="pipe") in ("not_regular", "refused")


async def test_without_rg_it_says_how_to_get_it(ctx, tree, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    ctx.environment = {"PATH": "/nowhere:."}
    with pytest.raises(ToolError, match="pip install ripgrep") as caught:
        await call(ctx, "x")
    assert caught.value.kind == "no_ripgrep"


async def test_rg_s_own_configuration_is_ignored(ctx, tree, tmp_path):
    tree.put("a.txt", "needle\n")
    (tmp_path / "rc").write_text("--files\n")
    ctx.environment = {**ctx.environment, "RIPGREP_CONFIG_PATH": str(tmp_path / "rc")}
    assert await call(ctx, "needle") == "a.txt:1:needle"


# globs


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.py", "a.py .py", "a/b.py a.pyc py"),
        ("**/*.py", "a.py a/b.py a/b/c.py", "a.pyc"),
        ("src/**", "src/a src/a/b", "src srcs/a a/src/b"),
        ("src/**/t_*.py", "src/t_a.py src/x/y/t_a.py", "src/a.py t_a.py"),
        ("**", "a a/b .x/y", ""),
        ("a?c", "abc a.c", "ac a/c abbc"),
        ("[a-c]x", "ax cx [a-c]x", "dx"),
        ("[!a-c]x", "dx", "ax /x"),
        ("app/[id]/p.tsx", "app/[id]/p.tsx app/i/p.tsx", "app/id/p.tsx"),
        ("[[]x", "[x", "x"),
        ("[]]x", "]x", "x"),
        ("[&&a]~x", "&~x a~x", "b~x"),
        ("*.{ts,tsx}", "a.ts a.tsx", "a.js a.{ts,tsx}"),
        ("{a,b/{c,d}}.x", "a.x b/c.x b/d.x", "b.x"),
        (r"\*.py", "*.py", "a.py"),
        ("a,b", "a,b", "a"),
        ("a.b+(c)", "a.b+(c)", "aXb+(c) a.bb(c)"),
        ("a**b", "ab axb", "a/b"),
        ("a[b", "a[b", "ab"),
        ("é*", "éa", "ea"),
    ],
)
def test_compile_glob(glob, yes, no):
    expression = ripgrep.compile_glob(glob)
    assert [p for p in yes.split() if not expression.match(p)] == []
    assert [p for p in no.split() if expression.match(p)] == []


@pytest.mark.parametrize("glob", ["{a", "a}", "{a,{b}", "}{", "[z-a]"])
def test_an_unbalanced_glob_is_bad_arguments(glob):
    with pytest.raises(ToolError, match="not a valid glob"):
        ripgrep.compile_glob(glob)


ODD = {
    "pipe": os.mkfifo,
    "link to a pipe": lambda path: (os.mkfifo(f"{path}.pipe"), os.symlink(f"{path}.pipe", path)),
    "device": lambda path: os.symlink("/dev/zero", path),
    "huge": lambda path: (path.touch(), os.truncate(path, 2**31)),
}


IN_FOLDERS = (".gitignore", ".ignore", ".rgignore", ".git/info/exclude", "a/b/.gitignore", "a/b/.git/info/exclude")


@pytest.mark.parametrize(("name", "kind"), [(".git", "huge"), *((name, kind) for name in IN_FOLDERS for kind in ODD)])
async def test_a_file_in_which_the_search_would_be_stuck_is_named(ctx, tree, monkeypatch, name, kind):
    """Never "no matches", which would be false."""
    monkeypatch.setattr(ripgrep, "_PATIENCE", 0.1)
    if "a/" in name and kind in ("huge", "device"):
        monkeypatch.setattr(ripgrep, "_PATIENCE", 0.0)  # ripgrep comes to an end here, with gigabytes in memory
    tree.put("a.txt", "needle")
    place = ctx.workspace / name
    place.parent.mkdir(parents=True, exist_ok=True)
    ODD[kind](place)
    started = time.monotonic()
    for tool, arguments in ((grep, {"pattern": "needle"}), (glob, {"pattern": "**/*"})):
        with pytest.raises(ToolError) as caught:
            await tool.call(ctx, tool.validate(arguments))
        assert caught.value.kind == "io"
        assert f"the search cannot be finished: '{place}' is a pipe, a device or far too large" in str(caught.value)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("name", [".gitignore", ".git/info/exclude", "a/.ignore"])
async def test_an_ignore_file_that_leads_nowhere_or_to_nothing_is_no_matter(ctx, tree, name):
    tree.put("a/a.txt", "needle")
    place = ctx.workspace / name
    place.parent.mkdir(parents=True, exist_ok=True)
    for target in (os.devnull, "nowhere"):
        place.symlink_to(target)
        assert await call(ctx, "needle") == "a/a.txt:1:needle"
        place.unlink()


async def test_a_linked_work_tree_is_searched_unless_it_leads_into_a_pipe(ctx, tree):
    tree.put("a.txt", "needle")
    tree.put("store/commondir", "../common\n")
    (ctx.workspace / "common/info").mkdir(parents=True)
    tree.put(".git", "gitdir: store\n")
    assert await call(ctx, "needle") == "a.txt:1:needle"
    os.mkfifo(ctx.workspace / "common/info/exclude")
    assert await kind(ctx, "needle") == "io"
    os.unlink(ctx.workspace / "store/commondir")
    os.mkfifo(ctx.workspace / "store/commondir")
    assert await kind(ctx, "needle") == "io"


async def test_a_search_that_is_ended_early_claims_nothing(ctx, tree, monkeypatch):
    monkeypatch.setattr(ripgrep, "LONGEST", 0.3)
    monkeypatch.setattr(ripgrep, "stuck_below", lambda *_: None)
    (ctx.workspace / "a").mkdir()
    os.mkfifo(ctx.workspace / "a/.gitignore")
    for tool, arguments in ((grep, {"pattern": "needle"}), (glob, {"pattern": "*.none"})):
        assert await tool.call(ctx, tool.validate(arguments)) == ripgrep.UNFINISHED


async def test_a_search_that_is_cancelled_leaves_nothing_running(ctx, tree, monkeypatch):
    monkeypatch.setattr(ripgrep, "_PATIENCE", 0.05)
    monkeypatch.setattr(ripgrep, "stuck_below", lambda _, ended: ended.wait(30))
    (ctx.workspace / "a").mkdir()
    os.mkfifo(ctx.workspace / "a/.gitignore")
    task = asyncio.create_task(call(ctx, f"needle{os.getpid()}"))
    done, _ = await asyncio.wait([task], timeout=0.4)
    assert not done
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    mark = f"needle{os.getpid()}".encode()
    assert not running(mark)


def running(mark):
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [path] if path.parent.name != str(os.getpid()) and mark in path.read_bytes() else []
    return found
