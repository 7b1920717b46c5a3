"""Tab behind `hypercode`: what is offered, at what price, and in the real shells."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from screen_terminal import Terminal
from stage import HYPERCODE, answer, text

from hypercode.cli import COMMANDS

SHELLS = ("bash", "zsh", "fish")
PROMPT = "ready>"
RC = {
    "bash": (".bashrc", f"PS1='{PROMPT} '\n"),
    "zsh": (".zshrc", f"PROMPT='{PROMPT} '\n"),
    "fish": (
        ".config/fish/config.fish",
        f"set -g fish_greeting\nset -g fish_autosuggestion_enabled 0\nfunction fish_prompt; echo '{PROMPT} '; end\n",
    ),
}
INSTALLED = {
    "bash": [".bash_completions/hypercode.sh"],
    "zsh": [".zfunc/_hypercode"],
    "fish": [".config/fish/completions/hypercode.fish"],
}


def offered(stage, line, **environment):
    """What bash is told for the last word of a line."""
    words = line.split(" ")
    asked = {"_HYPERCODE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = stage.run(**asked, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("hypercode se", ["sessions"]),
        ("hypercode sessions ", ["list", "show", "export", "delete"]),
        ("hypercode sessions --all sh", ["show"]),
        ("hypercode run --out", ["--output"]),
        ("hypercode run --output ", ["text", "json", "jsonl"]),
        ("hypercode sessions export x --format ", ["md", "json"]),
        ("hypercode --mo", ["--model", "--mode"]),
        ("hypercode --mode ", ["ask", "edits", "plan", "auto"]),
        ("hypercode --mode p", ["plan"]),
        ("hypercode --mode plan ru", ["run"]),
        ("hypercode --mode plan run --out", ["--output"]),
        ("hypercode -m some/model --mode auto ru", ["run"]),
        ("hypercode a --mode e", ["edits"]),
        ("hypercode policy test --mode a", ["ask", "auto"]),
        ("hypercode --json policy test --mode a", ["ask", "auto"]),
        ("hypercode -cm some/model ru", ["run"]),
        ("hypercode --format md sessions ex", ["export"]),
        ("hypercode policy path ", ["read", "write", "edit", "ls", "glob", "grep"]),
        ("hypercode -- --mo", []),
        ("hypercode --cwd /", []),
        ("hypercode nonsense and ", []),
    ],
)
def test_what_is_offered(stage, line, wanted):
    assert offered(stage(), line) == wanted


def test_every_command(stage):
    s = stage()
    commands = offered(s, "hypercode ")
    assert sorted(commands) == sorted(COMMANDS)
    assert [command for command in commands if f" {command} " not in s.run("--help").stdout] == []


@pytest.mark.parametrize(
    "line", ["replay ", "sessions show ", "sessions delete ", "policy replay ", "-r ", "run --resume "]
)
def test_sessions_of_the_folder(stage, line):
    s = stage(answer(text("one")))
    s.run("run", "zz")
    (path,) = (s.home / "hypercode").glob("state/sessions/*/*.jsonl")
    older, other = path.with_name("20200101-000000-aaaaaa.jsonl"), s.home / "other"
    older.write_bytes(path.read_bytes())
    path.with_name("$(touch oops).jsonl").touch()
    other.mkdir()
    assert offered(s, f"hypercode {line}") == [path.stem, older.stem]
    assert offered(s, f"hypercode {line}2020") == [older.stem]
    assert offered(s, f"hypercode --cwd {other} replay ") == []


def test_nothing_heavy_is_imported_for_it(stage):
    s = stage()
    (s.home / "hypercode").mkdir()
    script = "import sys, hypercode.__main__ as m\nimport os\nos._exit = lambda code: None\nm.main()\nprint(*sys.modules, file=sys.stderr)"
    for line in ("hypercode se", "hypercode replay "):
        words = {"_HYPERCODE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": "1"}
        command = [sys.executable, "-c", script]
        environment = s.environment(**words)
        done = subprocess.run(
            command, cwd=s.workspace, env=environment, capture_output=True, text=True, check=True, timeout=60
        )
        loaded = {name.split(".")[0] for name in done.stderr.split()}
        assert "typer" in loaded
        assert loaded & {"openai", "httpx2", "prompt_toolkit", "pydantic", "rich", "tree_sitter", "asyncio"} == set()


@pytest.fixture(params=SHELLS)
def shell(request):
    program = shutil.which(request.param)
    if program is None:
        pytest.skip(f"there is no {request.param} here")
    return request.param, program


def environment(stage, **more):
    kept = {name: value for name, value in stage.environment().items() if not name.startswith(("XDG_", "ZDOTDIR"))}
    return kept | {"PATH": f"{Path(HYPERCODE).parent}{os.pathsep}{kept['PATH']}", **more}


def installed(stage, name, program):
    """Has the shell's completion installed, as a person would, and returns what lies in the home then."""
    command = [program, "-c", "hypercode --install-completion; true"]
    done = subprocess.run(
        command, cwd=stage.workspace, env=environment(stage), capture_output=True, text=True, timeout=60
    )
    assert "completion installed in" in done.stdout, done.stdout + done.stderr
    files = [path for path in stage.home.rglob("*") if path.is_file()]
    return {str(path.relative_to(stage.home)): path.read_text().strip() for path in files}


def test_completion_in_a_real_shell(stage, shell):
    name, program = shell
    s = stage(answer(text("one")))
    s.run("run", "zz")
    (session,) = (path.stem for path in (s.home / "hypercode").glob("state/sessions/*/*.jsonl"))
    rc = s.home / RC[name][0]
    rc.parent.mkdir(parents=True, exist_ok=True)
    rc.write_text(RC[name][1])
    first = installed(s, name, program)
    assert set(INSTALLED[name]) < set(first)
    assert first[RC[name][0]].startswith(RC[name][1].strip())
    assert installed(s, name, program) == first
    shown = subprocess.run(
        [program, "-c", "hypercode --show-completion; true"],
        env=environment(s),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert shown.stdout.strip() == first[INSTALLED[name][0]]

    interactive = {"ZDOTDIR": str(s.home)} if name == "zsh" else {}
    command = ["env", "-C", str(s.workspace), program, "-i"]
    with Terminal(command, 100, 30, env=environment(s, **interactive)) as terminal:
        line = lambda: next((row for row in reversed(terminal.visible) if row.startswith(PROMPT)), "")  # noqa: E731
        terminal.wait(lambda: line() == PROMPT)
        for typed, whole in [
            ("hypercode se", "hypercode sessions"),
            ("hypercode --mode pl", "hypercode --mode plan"),
            ("hypercode run --sch", "hypercode run --schema"),
            ("hypercode replay 2", f"hypercode replay {session}"),
        ]:
            terminal.send(typed)
            terminal.wait(lambda: line() == f"{PROMPT} {typed}")  # noqa: B023
            # The first Tab of a zsh only loads Typer's script for it.
            terminal.send("\t\t" if name == "zsh" and typed == "hypercode se" else "\t")
            terminal.wait(lambda: line() == f"{PROMPT} {whole}")  # noqa: B023
            terminal.send("\x15")
            terminal.wait(lambda: line() == PROMPT)
        terminal.send("hypercode run --\t\t")
        terminal.wait(
            lambda: all(any(o in row for row in terminal.visible) for o in ("--schema", "--mode", "--max-cost"))
        )
        assert not [row for row in terminal.visible if "error" in row.lower() or "Traceback" in row]


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
def test_a_question_of_the_shell_never_starts_a_chat(stage):
    """fish asks whether it should complete with its own terminal as stdin and stdout."""
    s = stage()
    asked = {
        "_HYPERCODE_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "is-args",
        "_TYPER_COMPLETE_ARGS": "hypercode se",
    }
    with Terminal([HYPERCODE], env=s.environment(**asked)) as terminal:
        assert terminal.finish() == 0
        assert terminal.lines == []
