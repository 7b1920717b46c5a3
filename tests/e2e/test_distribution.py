"""What is built and shipped: the files in it, and that it works where nothing else of this repository is."""

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from clean_place import ROOT, copy_of_repository, done, environment, for_hypercode, once
from stage import answer, call, text

from hypercode import __version__

VERSION = "9.8.7"
JUNK = [
    ".env",
    ".hypothesis/examples/x",
    ".venv/bin/x",
    "dist/hypercode-0.0.1.tar.gz",
    "hypercode/__pycache__/agent.cpython-311.pyc",
    "notes.txt",
    "scratch/x.py",
    "tests/unit/__pycache__/test_cli.cpython-311.pyc",
    "uv.lock",
]
SMALL_FILES = {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "config.example.toml", "pyproject.toml"}


@pytest.fixture(scope="session")
def built(tmp_path_factory, tools):
    """A folder with `tree/`, the sdist and its wheel in `both/`, and in `direct/` the wheel that was made without the sdist."""

    def make(folder):
        tree = copy_of_repository(folder / "tree")
        source = tree / "hypercode/__init__.py"
        source.write_text(source.read_text().replace(f'"{__version__}"', f'"{VERSION}"'))
        for name in JUNK:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text("not to be shipped\n")
        machine = environment(folder / "home", tools / "cache", tools / "bin")
        uv = ["uv", "build", "--quiet", "--python", sys.executable]
        done([*uv, "--out-dir", folder / "both"], machine, cwd=tree)
        done([*uv, "--wheel", "--out-dir", folder / "direct"], machine, cwd=tree)

    return once(tmp_path_factory, "built", make)


def only(folder, pattern):
    (path,) = folder.glob(pattern)
    return path


def below(tree, *folders):
    """The files there that are to be shipped."""
    found = {str(p.relative_to(tree)) for name in folders for p in (tree / name).rglob("*") if p.is_file()}
    return found - set(JUNK)


def members(wheel):
    """Name and content of each file; the list of them holds nothing that the others do not say."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}


def test_the_wheel_is_the_package_and_what_describes_it(built):
    wheel = only(built / "both", "*.whl")
    assert wheel.name == f"hypercode-{VERSION}-py3-none-any.whl"
    about = {
        f"hypercode-{VERSION}.dist-info/{name}"
        for name in ("METADATA", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    }
    found = members(wheel)
    assert set(found) == below(built / "tree", "hypercode") | about
    needed = {"hypercode/py.typed", "hypercode/ARCHITECTURE.md", "hypercode/llm/demo_template.jinja"}
    assert needed <= set(found)
    assert {name: found[name] for name in found if name not in about} == {
        name: (built / "tree" / name).read_bytes() for name in found if name not in about
    }
    assert found[f"hypercode-{VERSION}.dist-info/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    entry = found[f"hypercode-{VERSION}.dist-info/entry_points.txt"].decode()
    assert entry.split() == ["[console_scripts]", "hypercode", "=", "hypercode.__main__:main"]


def test_the_sdist_has_all_that_is_needed_to_build_and_test(built):
    sdist = only(built / "both", "*.tar.gz")
    assert sdist.name == f"hypercode-{VERSION}.tar.gz"
    with tarfile.open(sdist) as archive:
        found = {member.name.removeprefix(f"hypercode-{VERSION}/") for member in archive if member.isfile()}
    assert found == below(built / "tree", "hypercode", "tests", "examples") | SMALL_FILES | {"PKG-INFO", ".gitignore"}


def test_the_sdist_makes_the_same_wheel_as_the_checkout(built):
    assert members(only(built / "both", "*.whl")) == members(only(built / "direct", "*.whl"))


def test_the_version_stands_in_one_place(built):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert ("version" in project, project["dynamic"]) == (False, ["version"])
    metadata = members(only(built / "both", "*.whl"))[f"hypercode-{VERSION}.dist-info/METADATA"].decode()
    assert metadata.splitlines().count(f"Version: {VERSION}") == 1
    assert [str(p) for p in (ROOT / "hypercode").rglob("*.py") if f'"{__version__}"' in p.read_text()] == [
        str(ROOT / "hypercode/__init__.py")
    ]


def with_pip(wheel, machine, home):
    done([sys.executable, "-m", "venv", home / "venv"], machine, cwd=home)
    pip = [home / "venv/bin/pip"]
    done([*pip, "install", "--quiet", "--no-compile", wheel], machine, cwd=home)
    return home / "venv/bin/hypercode", [*pip, "uninstall", "--yes", "--quiet", "hypercode"]


def with_pipx(wheel, machine, home):
    done(["pipx", "install", "--quiet", "--python", sys.executable, wheel], machine, cwd=home)
    return home / ".local/bin/hypercode", ["pipx", "uninstall", "hypercode"]


def with_uv(wheel, machine, home, python=sys.executable):
    done(["uv", "tool", "install", "--quiet", "--python", python, wheel], machine, cwd=home)
    return home / ".local/bin/hypercode", ["uv", "tool", "uninstall", "--quiet", "hypercode"]


def other_python(version):
    """`with_uv` for another Python that this machine has: on the path, or beside the one that runs the tests."""

    def install(wheel, machine, home):
        beside = Path(sys.base_prefix).parent.glob(f"*{version}.*/bin/python{version}")
        there = [path for path in (shutil.which(f"python{version}"), *beside) if path and starts(path)]
        if not there:
            pytest.skip(f"there is no Python {version} here")
        return with_uv(wheel, machine, home, there[0])

    return install


def starts(python):
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    "install",
    [with_pip, with_pipx, with_uv, *(pytest.param(other_python(v), id=v) for v in ("3.12", "3.13", "3.14"))],
)
def test_the_wheel_installs_and_works(install, built, tools, stage, tmp_path):
    s = stage(answer(call("grep", {"pattern": "zzneedle"}, "a")), answer(text("It is in hay.txt.")))
    (s.workspace / "hay.txt").write_text("hay\nzzneedle\n")
    machine = environment(s.home, tools / "cache", tools / "bin", **for_hypercode(s))
    command, uninstall = install(only(built / "both", "*.whl"), machine, s.home)

    assert done([command, "--version"], machine, cwd=s.workspace) == f"hypercode {VERSION}\n"
    usage = done([command, "--help"], machine, cwd=s.workspace)
    assert usage.lstrip().startswith("Usage: hypercode [OPTIONS] COMMAND")
    assert {line.split()[0] for line in usage.splitlines() if line.startswith("  ")} >= {"run", "sessions", "doctor"}
    ran = subprocess.run(
        [command, "run", "where is it?"], env=machine, cwd=s.workspace, capture_output=True, text=True, timeout=120
    )
    assert (ran.returncode, ran.stdout) == (0, "It is in hay.txt.\n"), ran.stderr
    (result,) = [m for m in s.requests()[1]["messages"] if m["role"] == "tool"]
    assert "hay.txt:2:zzneedle" in result["content"]

    done(uninstall, machine, cwd=s.home)
    assert not Path(command).exists()
