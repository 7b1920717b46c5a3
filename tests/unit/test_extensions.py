"""Tools of installed packages, and listeners that the person named."""

import importlib
import itertools
import os
import sys

import pytest

from hypercode import events
from hypercode.app import build
from hypercode.config import Config, load, setting_names
from hypercode.errors import ToolError
from hypercode.events import Bus
from hypercode.extensions import attach_listeners, own_tools
from hypercode.llm.fake import Call, ScriptedModel, script
from hypercode.safety.approval import Answer

GOOD = '''
from hypercode import Tool, ToolContext, tool

@tool("read")
async def weather(ctx: ToolContext, city: str) -> str:
    """The weather."""
    return f"sunny in {city}"

@tool("shell")
async def deploy(ctx: ToolContext, target: str) -> str:
    """Deploy."""
    (ctx.workspace / "deployed").write_text(target)
    return "done"
'''
numbers = itertools.count()


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package: a module of its own, and entry points for names in it; its name."""

    def make(source, *names, folder=None, package="pack"):
        where = folder or tmp_path / "site"
        where.mkdir(exist_ok=True)
        module = f"installed_for_a_test_{next(numbers)}"
        (where / f"{module}.py").write_text(source)
        info = where / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        points = "".join(f"{name} = {module}:{name}\n" for name in names)
        (info / "entry_points.txt").write_text(f"[hypercode.tools]\n{points}")
        monkeypatch.syspath_prepend(str(where))
        importlib.invalidate_caches()
        return module

    yield make
    for name in [m for m in sys.modules if m.startswith("installed_for_a_test_")]:
        del sys.modules[name]


def found(tools):
    return {tool.name: tool.effect for tool in tools}


def test_without_packages_there_is_nothing():
    assert own_tools([], []) == ([], [])


def test_tools_and_lists_of_them_are_offered(install):
    install(GOOD + "both = [weather, deploy]\n", "both")
    tools, notices = own_tools(["read"], [])
    assert (found(tools), notices) == ({"weather": "read", "deploy": "shell"}, [])
    assert tools[0].schema["function"]["parameters"]["required"] == ["city"]


BAD = [
    ("raise OSError('no\\nconnection')", "OSError: no; the details are in the log"),
    ("raise SystemExit(3)", "SystemExit: 3; the details are in the log"),
    ("import not_there_at_all", "ModuleNotFoundError: No module named 'not_there_at_all'; the details are in the log"),
    ("", "AttributeError: module '{module}' has no attribute 'bad'; the details are in the log"),
    ("bad = 3", "{module}:bad is int, not a Tool or a list of them"),
    ("bad = Tool('bad', 'network', weather.function)", "its effect is 'network'; it must be one of read, edit, shell"),
    (
        "bad = Tool('a b', 'read', weather.function)",
        "'a b' is no name that servers take: letters, digits, _ and -, at most 64",
    ),
    ("bad = Tool('bash', 'read', weather.function)", "there is a tool bash already"),
    ("bad = Tool('bad', 'read', lambda ctx: 'x')", "its function is not async"),
    ("async def f(ctx, x): ...\nbad = Tool('bad', 'read', f)", "KeyError: 'x'; the details are in the log"),
]


@pytest.mark.parametrize(("source", "reason"), BAD)
def test_a_broken_one_is_left_out_with_its_name_and_the_others_stay(install, source, reason):
    install(GOOD, "weather", package="good")
    module = install(GOOD + source, "bad", package="poor")
    tools, notices = own_tools(["bash"], [])
    assert found(tools) == {"weather": "read"}
    told = reason.replace("{module}", module)
    assert notices == [f"The tool bad of the package poor is left out: {told}."]


def test_of_two_with_one_name_the_first_stays(install):
    install(GOOD, "weather", package="one")
    install(GOOD, "weather", package="two")
    tools, notices = own_tools([], [])
    assert found(tools) == {"weather": "read"}
    assert len(notices) == 1
    assert notices[0].endswith("is left out: there is a tool weather already.")


def test_nothing_is_loaded_from_the_folder_that_is_worked_in(install, tmp_path):
    folder = tmp_path / "work"
    install("raise AssertionError('it was run')", "bad", folder=folder)
    tools, notices = own_tools([], [folder])
    assert tools == []
    assert notices == ["The tool bad of the package pack is left out: it lies in the folder that is worked in."]


def test_a_module_there_is_refused_also_where_its_package_lies_elsewhere(install, tmp_path):
    module = install("bad = 1", "bad")
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "site" / f"{module}.py").rename(folder / f"{module}.py")
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        tools, notices = own_tools([], [folder])
    finally:
        sys.path.remove(str(folder))
    told = f"the module {module} lies in the folder that is worked in; install it"
    assert (tools, notices) == ([], [f"The tool bad of the package pack is left out: {told}."])
    assert module not in sys.modules


def test_an_environment_in_the_folder_is_where_programs_are_installed(install, tmp_path, monkeypatch):
    library = tmp_path / "work" / ".venv" / "lib"
    library.mkdir(parents=True)
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(library))
    install(GOOD, "weather", folder=library)
    assert found(own_tools([], [tmp_path / "work"])[0]) == {"weather": "read"}
    assert found(own_tools([], [library])[0]) == {}, "whoever works on the libraries themselves"


# -- in a session --------------------------------------------------------------------


def session(tmp_path, scripts, *, ask=None, **settings):
    (tmp_path / "work").mkdir(exist_ok=True)
    config = Config(sources=dict.fromkeys(setting_names(), "test"))
    for name, value in settings.items():
        setattr(config, name, value)
    environ = {"HOME": str(tmp_path), "HYPERCODE_HOME": str(tmp_path / "h"), "PATH": os.environ["PATH"]}
    model = ScriptedModel(scripts)
    app = build(config, cwd=tmp_path / "work", environ=environ, complete=model.complete, ask=ask)
    seen = []
    app.bus.on(None, seen.append)
    return app, model, seen


def kinds(seen):
    return {e.call_id: e.kind for e in seen if isinstance(e, events.ToolExecutionEnd)}


async def test_a_tool_is_offered_and_run_and_what_changes_things_asks(install, tmp_path):
    install(GOOD, "weather", "deploy")
    calls = script(Call("weather", {"city": "Ulm"}, "a"), Call("deploy", {"target": "prod"}, "b"))
    app, model, seen = session(tmp_path, [calls, "done"])
    assert not {"weather", "deploy"} & set(app.agent.tools.names), "not before it is needed"
    await app.agent.run("go")
    assert {"weather", "deploy"} <= {t["function"]["name"] for t in model.requests[0].tools}
    assert kinds(seen) == {"a": None, "b": "refused"}
    assert not (tmp_path / "work" / "deployed").exists()
    asked = []

    async def ask(question):
        asked.append((question.tool, question.subject))
        return Answer(True)

    app, model, seen = session(tmp_path, [calls, "done"], ask=ask)
    await app.agent.run("go")
    assert kinds(seen) == {"a": None, "b": None}
    assert asked == [("deploy", '{"target": "prod"}')]
    assert (tmp_path / "work" / "deployed").read_text() == "prod"
    app.undo.undo()
    assert not (tmp_path / "work" / "deployed").exists(), "what it did can be taken back"
    await app.aclose()


async def test_a_tool_of_the_program_wins_and_the_person_is_told_once(install, tmp_path):
    install(
        "from hypercode import Tool, ToolContext\nasync def f(ctx: ToolContext) -> str: ...\nbad = Tool('skill', 'read', f)",
        "bad",
    )
    app, _, seen = session(tmp_path, ["one", "two"])
    await app.agent.run("go")
    await app.agent.run("go")
    told = "The tool bad of the package pack is left out: there is a tool skill already."
    assert [e for e in seen if isinstance(e, events.Notice)] == [events.Notice("warning", told)]
    with pytest.raises(ToolError, match="unknown_tool"):
        app.agent.tools.find("skill")


async def test_a_listener_sees_the_session_from_its_start(install, tmp_path):
    module = install(
        "SEEN = []\nclass Listeners:\n    @staticmethod\n    def attach(bus):\n        bus.on(None, SEEN.append)\n"
    )
    app, _, seen = session(tmp_path, ["hello"], listeners=[f"{module}:Listeners.attach"])
    app.start()
    app.finish(await app.agent.run("go"))
    assert seen == sys.modules[module].SEEN
    assert isinstance(seen[0], events.SessionStart)
    assert isinstance(seen[-1], events.SessionEnd)


async def test_a_broken_listener_is_named_once_and_the_session_goes_on(install, tmp_path):
    module = install("async def slow(bus): ...\ndef bad(bus): raise ValueError('why')\n")
    names = ["os", f"{module}:bad", f"{module}:slow", "not_there_at_all:f", f"{module}:none"]
    app, _, seen = session(tmp_path, ["hello"], listeners=names)
    app.start()
    assert (await app.agent.run("go")).text == "hello"
    reasons = [
        "it must be named as module:function",
        "ValueError: why; the details are in the log",
        "attaching must be a plain function; bus.on(…, queued=True) takes async listeners",
        "there is no installed module not_there_at_all",
        f"AttributeError: module '{module}' has no attribute 'none'; the details are in the log",
    ]
    told = [f"The listener {n} is left out: {r}." for n, r in zip(names, reasons, strict=True)]
    assert [e.text for e in seen if isinstance(e, events.Notice)] == told


def test_a_listener_in_the_folder_that_is_worked_in_is_not_imported(install, tmp_path):
    module = install("raise AssertionError('it was run')", folder=tmp_path / "work")
    told = f"the module {module} lies in the folder that is worked in; install it"
    notices = attach_listeners([f"{module}:attach"], Bus(), [tmp_path / "work"])
    assert notices == [f"The listener {module}:attach is left out: {told}."]


@pytest.mark.parametrize("setting", ['listeners = ["evil:attach"]', "trace = true", "trace_content = true"])
def test_a_project_cannot_bring_them(tmp_path, setting):
    file = tmp_path / "project.toml"
    config = load(flags={}, environ={}, user_file=tmp_path / "none", project=(file, setting.encode()))
    key = setting.split()[0]
    assert not getattr(config, key)
    assert config.notices == [f"{file}: {key} is ignored: a project may only choose model and style, or deny."]
