"""Finding files by name."""

import os

import pytest

from hypercode.errors import ToolError
from hypercode.process import child_environment
from hypercode.safety.paths import FileGuard
from hypercode.tools.base import ToolContext
from hypercode.tools.glob import SHOWN, below, glob


@pytest.fixture
def ctx(tmp_path):
    workspace = tmp_path / "work"
    workspace.mkdir()
    guard = FileGuard(workspace, home=tmp_path / "home")
    return ToolContext(guard, tmp_path / "spill", child_environment(os.environ, temp=tmp_path))


@pytest.fixture
def tree(ctx):
    """Make files of the workspace, each a second younger than the one before."""

    def make(*names, start=1_000_000):
        for i, name in enumerate(names):
            path = ctx.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            os.utime(path, (start + i, start + i))

    return make


async def call(ctx, pattern, **arguments):
    return await glob.call(ctx, glob.validate({"pattern": pattern, **arguments}))


async def kind(ctx, pattern, **arguments):
    with pytest.raises(ToolError) as caught:
        await call(ctx, pattern, **arguments)
    return caught.value.kind


async def test_the_newest_come_first(ctx, tree):
    tree("b.py", "a.py", "src/c.py", "d.txt")
    assert await call(ctx, "**/*.py") == "src/c.py\na.py\nb.py"
    assert await call(ctx, "**") == "d.txt\nsrc/c.py\na.py\nb.py"


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("*.py", ".", "a.py"),
        ("*.py", "src", "src/b.py"),
        ("*.py", "src/", "src/b.py"),
        ("src/*.py", ".", "src/b.py"),
        ("./src/*.py", ".", "src/b.py"),
        ("src/**/*.py", ".", "src/x/c.py src/b.py"),
        ("**/*.py", "src", "src/x/c.py src/b.py"),
        ("x/../x/*.py", "src", "src/x/c.py"),
        ("../src/x/*", "src", "src/x/c.py"),
        ("{ws}/src/*.py", ".", "src/b.py"),
        ("*.py", "{ws}/src", "src/b.py"),
        ("src/**", ".", "src/x/c.py src/b.py"),
        ("src/b.py", ".", "src/b.py"),
        ("a.py", ".", "a.py"),
        ("**/[bc].{py,js}", ".", "src/x/c.py src/b.py"),
        ("app/[id]/*.tsx", ".", "app/[id]/page.tsx"),
        ("*.tsx", "app/[id]", "app/[id]/page.tsx"),
        (".github/**", ".", ".github/ci.yml"),
        ("**/.github/*", ".", ".github/ci.yml"),
    ],
)
async def test_pattern(ctx, tree, pattern, path, found):
    tree("a.py", "src/b.py", "src/x/c.py", "app/[id]/page.tsx", ".github/ci.yml")
    text = await call(ctx, pattern.replace("{ws}", str(ctx.workspace)), path=path.replace("{ws}", str(ctx.workspace)))
    assert text == "\n".join(found.split())


async def test_nothing_found_says_so(ctx, tree):
    tree("src/a.py")
    assert await call(ctx, "*.py") == "No files match '*.py' in '.'; '**/*.py' also looks in the folders below."
    assert await call(ctx, "**/*.rs") == "No files match '**/*.rs' in '.'."


async def test_a_file_is_no_folder(ctx, tree):
    tree("a.py")
    assert await call(ctx, "*", path="a.py") == "No files match '*' in 'a.py'; '**/*' also looks in the folders below."


@pytest.mark.parametrize(("pattern", "path"), [("*.py", "gone"), ("gone/*.py", ".")])
async def test_a_folder_that_is_missing_is_an_error(ctx, pattern, path):
    assert await kind(ctx, pattern, path=path) == "missing_file"


async def test_ignored_and_secret_files_are_not_listed(ctx, tree):
    tree("build/x.py", "a.log", ".env", "sub/.ENV", ".git/config", "key.pem", "keep.py")
    (ctx.workspace / ".gitignore").write_text("build/\n*.log\n")
    shown = {pattern: await call(ctx, pattern) for pattern in ("**", "**/*", "*", ".*", "**/.env", "*.pem", "*.log")}
    everything = ".gitignore\nkeep.py"
    assert shown == {
        "**": everything,
        "**/*": everything,
        "*": everything,
        ".*": ".gitignore",
        "**/.env": "No files match '**/.env' in '.'.",
        "*.pem": "No files match '*.pem' in '.'; '**/*.pem' also looks in the folders below.",
        "*.log": "No files match '*.log' in '.'; '**/*.log' also looks in the folders below.",
    }


async def test_the_repository_s_own_folder_is_not_listed(ctx, tree):
    tree(".git/config", ".git/hooks/x")
    assert await call(ctx, "**/config") == "No files match '**/config' in '.'."
    for pattern in (".git/**", ".git/hooks/*"):
        try:
            text = await call(ctx, pattern)
        except ToolError as error:
            text = str(error)
        assert text.startswith(("No files match", "refused: "))


async def test_an_ignored_folder_is_listed_where_it_is_named(ctx, tree):
    tree("build/x.py")
    (ctx.workspace / ".gitignore").write_text("build/\n")
    assert await call(ctx, "*.py", path="build") == "build/x.py"


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("../outside/*", "."),
        ("*", "../outside"),
        ("/etc/*.conf", "."),
        ("*/../../outside/*", "."),
        ("{src,../outside}/*", "."),
        ("~/*", "."),
        ("/**/passwd", "."),
        ("link/*", "."),
        ("*", "link"),
        ("..", "."),
    ],
)
async def test_outside_is_refused(ctx, tree, tmp_path, pattern, path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "outside/secret.txt").touch()
    (ctx.workspace / "link").symlink_to(tmp_path / "outside")
    tree("src/a.py")
    assert await kind(ctx, pattern, path=path) == "refused"


async def test_links_are_not_followed(ctx, tree, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").touch()
    (ctx.workspace / "link").symlink_to(tmp_path / "outside")
    (ctx.workspace / "file.txt").symlink_to(tmp_path / "outside/secret.txt")
    tree("a.txt")
    assert await call(ctx, "**/*.txt") == "a.txt"


async def test_outside_with_a_person_s_yes(ctx, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.txt").touch()
    ctx.files.grant("glob", tmp_path / "outside")
    assert await call(ctx, "../outside/*") == f"{tmp_path}/outside/a.txt"


async def test_more_files_are_counted(ctx, tree):
    tree(*(f"{i}.txt" for i in range(1234)))
    lines = (await call(ctx, "*.txt")).split("\n")
    assert lines[:SHOWN] == [f"{i}.txt" for i in range(1233, 1233 - SHOWN, -1)]
    assert lines[SHOWN:] == [f"[{SHOWN} of 1,234 files; narrow the pattern to see the others]"]


async def test_odd_names(ctx):
    for name in ("with space.py", "é€😀.py", "new\nline.py", "-dash.py", os.fsdecode(b"bad\xff.py")):
        (ctx.workspace / name).touch()
        os.utime(ctx.workspace / name, (1, 1))
    found = await call(ctx, "*.py")
    assert sorted(found.split("\n")) == sorted(
        ["with space.py", "é€😀.py", "new", "line.py", "-dash.py", "bad\ufffd.py"]
    )


@pytest.mark.parametrize(("pattern", "path"), [("a\0", "."), ("*", "\0"), ("\ud800", "."), ("{a", "."), ("", ".")])
async def test_arguments_that_cannot_work(ctx, pattern, path):
    assert await kind(ctx, pattern, path=path) == "bad_arguments"


@pytest.mark.parametrize(
    ("pattern", "rest"),
    [
        ("*.py", "*.py"),
        ("src/*.py", "*.py"),
        ("src/**/x/*", "**/x/*"),
        ("/etc/*", "*"),
        ("a/b", "b"),
        ("a//./*/.//b", "*/b"),
        ("src/", "**"),
        ("a/[id]/b", "[id]/b"),
    ],
)
def test_below(pattern, rest):
    assert below(pattern) == rest
