"""The house rules, as tests: layers, who may import what, module length, `__all__`."""

import ast
import importlib
import tokenize
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "hypercode"
MODULES = sorted(p for p in PACKAGE.rglob("*.py"))

LAYERS = [
    {"errors", "messages", "events", "capture", "supervisor", "loop_guard", "findings"},
    {"process", "config_file", "budget"},
    {"safety", "config", "logfile"},
    {"llm", "memory", "testing", "trace"},
    {"tools", "trace_otel"},
    {"execution"},
    {"mentions"},
    {"agent"},
    {"local_model"},
    {"parts", "extensions", "key_file"},
    {"doctor_box", "doctor_model", "doctor_stream"},
    {"checkup"},
    {"ui"},
    {"app", "demo_script"},
    {"oneshot", "policy", "demo", "sessions_command", "models_command"},
    {"doctor"},
    {"cli_words"},
    {"cli_completion"},
    {"cli_sessions", "cli_more"},
    {"cli"},
    {"guard"},
    {"__main__"},
]
FRIENDS = {("logfile", "config"), ("ui", "app"), ("ui.repl", "logfile")}
OUTSIDE = {
    "rich": ("ui",),
    "prompt_toolkit": ("ui",),
    "markdown_it": ("ui",),
    "pygments": ("ui",),
    "openai": ("llm.client",),
    "httpx2": ("llm.client",),
    "typer": ("cli", "cli_completion", "cli_sessions", "cli_more"),
    "pydantic": ("tools.base",),
    "tree_sitter": ("safety",),
    "tree_sitter_bash": ("safety",),
    "platformdirs": ("config",),
    "opentelemetry": ("trace_otel",),
}


def dotted(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(p for p in parts if p != "__init__")


def layer(name):
    top = name.split(".")[0]
    return next((i for i, names in enumerate(LAYERS) if top in names), None)


def imports(path):
    """Every module that a file imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            if node.module == "hypercode":
                yield from (f"hypercode.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_module_stays_in_its_layer(path):
    here = dotted(path)
    if not here:
        return
    assert layer(here) is not None, f"{here} has no layer; give it one in LAYERS"
    for name in imports(path):
        if not name.startswith("hypercode.") or name == "hypercode.__version__":
            continue
        there = name.removeprefix("hypercode.")
        if there.split(".")[0] == here.split(".")[0] or layer(there) is None:
            continue
        friends = {(here, there), (here.split(".")[0], there.split(".")[0]), (here, there.split(".")[0])} & FRIENDS
        assert layer(there) < layer(here) or friends, f"{here} imports {there}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_third_party_packages_stay_in_their_corner(path):
    here = dotted(path)
    for name in imports(path):
        top = name.split(".")[0]
        if top in OUTSIDE:
            assert any(here == home or here.startswith(home + ".") for home in OUTSIDE[top]), f"{here} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_module_is_short(path):
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", [p for p in MODULES if p.name != "__init__.py"], ids=dotted)
def test_all_names_what_is_public(path):
    tree = ast.parse(path.read_text())
    public = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }
    exported = next(
        (
            set(ast.literal_eval(node.value))
            for node in tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        ),
        None,
    )
    assert exported is not None, "no __all__"
    # Their functions are public through Typer or the list of slash commands, not through the module.
    commands = {"cli", "cli_sessions", "ui.commands", "ui.session_commands"}
    if dotted(path) not in commands:
        assert public <= exported, f"public, but not in __all__: {sorted(public - exported)}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_public_functions_and_classes_have_docstrings(path):
    tree = ast.parse(path.read_text())
    assert (
        dotted(path) in ("", *(d for d in map(dotted, MODULES) if "." not in d))
        or ast.get_docstring(tree)
        or path.name == "__init__.py"
    )
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_no_exception_is_swallowed_whole(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"line {node.lineno}: bare except"
            assert getattr(node.type, "id", "") != "BaseException", f"line {node.lineno}: except BaseException"


def test_lazy_names_exist():
    hypercode = importlib.import_module("hypercode")
    for name in hypercode.__all__:
        assert getattr(hypercode, name) is not None


def test_sources_are_utf8_without_leftovers():
    for path in MODULES:
        with tokenize.open(path) as file:
            assert "TODO" not in file.read()
