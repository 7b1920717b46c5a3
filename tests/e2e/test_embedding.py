"""hypercode as a library: the public names, the examples, and what a type checker sees of it."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from stage import answer, text

import hypercode
from hypercode import events

ROOT = Path(__file__).parents[2]
EXAMPLE = Path(__file__).with_name("embed_example.py")
PACKAGE = Path(hypercode.__file__)


def python(*arguments, cwd, env=None, **options):
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=300, **options
    )


def home_only(tmp_path):
    """An environment without any key, server or setting."""
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HYPERCODE_HOME": str(tmp_path / "hypercode")}


def test_every_public_name_is_there_lazily_and_for_type_checkers():
    tree = ast.parse(PACKAGE.read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    for_checkers = {
        alias.name: statement.module for statement in block.body for alias in statement.names if not alias.asname
    }
    lazily = {name: f"hypercode.{home}" for name, home in hypercode._HOMES.items()}
    assert for_checkers == lazily
    assert sorted(hypercode.__all__) == sorted({*lazily, "__version__"})
    assert set(hypercode.__all__) <= set(dir(hypercode))
    for name, home in lazily.items():
        assert getattr(hypercode, name) is getattr(sys.modules[home], name)
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        hypercode.Nonsense  # noqa: B018


def test_all_events_and_errors_are_public():
    kinds = {kind.__name__ for kind in events.Event.__args__}
    errors = set(sys.modules["hypercode.errors"].__all__)
    assert kinds | errors | {"Event", "Bus"} <= set(hypercode.__all__)


def test_importing_the_package_loads_nothing_of_it(tmp_path):
    code = "import sys, hypercode; print([m for m in sys.modules if m.startswith('hypercode.')], hypercode.__version__)"
    assert python("-c", code, cwd=tmp_path).stdout == f"[] {hypercode.__version__}\n"


def test_a_program_with_a_tool_of_its_own_needs_no_network(tmp_path):
    done = python(str(EXAMPLE), cwd=tmp_path, env=home_only(tmp_path))
    assert (done.stdout, done.stderr, done.returncode) == (
        "Let me look. [weather: sunny in Ulm] It is sunny.",
        "",
        0,
    )


def blocks():
    """The programs that README shows."""
    found = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    return [block for block in found if "asyncio.run" in block]


def test_the_program_in_readme_runs(stage):
    assert len(blocks()) == 1
    staged = stage(answer(text("It is a demo.")))
    done = python("-c", blocks()[0], cwd=staged.workspace, env=staged.environment())
    assert (done.stdout, done.stderr, done.returncode) == ("It is a demo.\ncomplete\n", "", 0)


def test_the_program_in_readme_says_what_went_wrong(stage):
    staged = stage()
    done = python("-c", blocks()[0], cwd=staged.workspace, env=staged.environment())
    assert (done.stderr, done.returncode) == ("", 0)
    assert "(404)" in done.stdout


def test_the_program_in_readme_says_what_is_missing(tmp_path):
    done = python("-c", blocks()[0], cwd=tmp_path, env=home_only(tmp_path))
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("hypercode.errors.ConfigError: ")
    assert "export OPENROUTER_API_KEY=" in last


TYPED = """
from hypercode import Agent, Bus, Config, Message, ScriptedModel, TextDelta, Toolbox, TurnEnd, build, user

agent: Agent
box: Toolbox
message: Message = user("hi")
bus = Bus()
bus.on(TextDelta, lambda event: print(event.text))
bus.on(TurnEnd, lambda event: print(event.outcome))
model = ScriptedModel(["hello"])
reveal_type(build)
bus.on(TextDelta, lambda event: print(event.outcome))
Config(modell="x")
"""


def test_a_type_checker_sees_the_names(tmp_path):
    (tmp_path / "use.py").write_text(TYPED)
    config = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    done = python("-m", "mypy", *config, "--no-pretty", "--no-error-summary", "use.py", cwd=tmp_path)
    lines = done.stdout.splitlines()
    kinds = [(line.split(":")[1], line.rpartition("[")[2].rstrip("]")) for line in lines if ": error:" in line]
    assert kinds == [("12", "attr-defined"), ("13", "call-arg")], done.stdout + done.stderr
    assert any("-> hypercode.app.App" in line for line in lines)
    assert PACKAGE.with_name("py.typed").is_file()
