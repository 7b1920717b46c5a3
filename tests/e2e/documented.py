"""Every command that the documentation names, and how a test makes sure that it works.

`commands()` collects them: the lines of console blocks, and inline code that looks like a command line, in the pages, in
the texts of `--help`, and in the head of the container file.  `WAYS` is the table: the first pattern that matches the whole line says how it is executed.
A command that no pattern knows is a failure: give it a row.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from chat_terminal import Chat
from clean_place import ROOT, environment, for_hypercode
from list_server import ListServer
from markdown_it import MarkdownIt
from stage import HYPERCODE, answer, text

from hypercode.cli import application

PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "hypercode/ARCHITECTURE.md", "examples/README.md"]
CONTAINER = ROOT / "examples/container/Containerfile"
PROGRAMS = r"hypercode|uv|uvx|pip|pipx|python3?|apt|apt-get|docker|podman|\.ci/run|\.venv/bin/\S+"
LOOKS_LIKE_A_COMMAND = re.compile(rf"(?:(?:{PROGRAMS}) .+|\.ci/run)")
CAPTURED = "<!-- captured by "
WORDS = "zzanswer"
NO_SERVER = {"HYPERCODE_API_KEY": None, "HYPERCODE_BASE_URL": None, "HYPERCODE_MODEL": None}


# -- what is documented ----------------------------------------------------------


def without_comment(line):
    """A line of a shell without what stands behind a # that is in no quotes, and that comment."""
    quoted = re.match(r"""(?:[^"'#]|"[^"]*"|'[^']*'|(?<=\S)#)*""", line)
    return line[: quoted.end()].strip(), line[quoted.end() :]


def in_text(content):
    """The commands in backticks of a text."""
    return [code for code in re.findall(r"`([^`]+)`", content) if LOOKS_LIKE_A_COMMAND.fullmatch(code)]


def in_console(content):
    """The commands of a console block: its lines, or where it has a prompt those that stand behind one."""
    lines = content.replace("\\\n", "").splitlines()
    prompted = [line[2:] for line in lines if line.startswith("$ ")]
    for line in prompted or lines:
        command, comment = without_comment(line)
        yield from [command] if command else []
        yield from in_text(comment)


def in_page(page):
    """The commands of a Markdown page; the block that is captured from a real run is checked by that run."""
    captured = False
    for token in MarkdownIt().parse(page):
        if token.type == "fence" and token.info.split()[:1] == ["console"] and not captured:
            yield from in_console(token.content)
        elif token.type == "inline":
            spans = [child.content for child in token.children if child.type == "code_inline"]
            yield from (code for code in spans if LOOKS_LIKE_A_COMMAND.fullmatch(code))
        captured = token.type == "html_block" and token.content.startswith(CAPTURED)


def in_help():
    """The commands that the texts of `--help` name."""
    waiting = [typer.main.get_command(application)]
    while waiting:
        command = waiting.pop()
        waiting += getattr(command, "commands", {}).values()
        texts = [command.help, command.epilog, *(getattr(p, "help", "") for p in command.params)]
        yield from (found for one in texts for found in in_text(one or ""))


def in_head(content):
    """The commands of the block that the comment at a file's head has, indented further than its sentences."""
    yield from in_console("\n".join(re.findall(r"^#   +(.*)$", content, re.M)))


def commands():
    """Each documented command once, in the order of the pages."""
    pages = [(ROOT / name).read_text() for name in PAGES if (ROOT / name).exists()]
    found = [command for page in pages for command in in_page(page)]
    found += [*in_help(), *in_text((ROOT / "config.example.toml").read_text())]
    return list(dict.fromkeys([*found, *(in_head(CONTAINER.read_text()) if CONTAINER.exists() else [])]))


# -- where it is executed ----------------------------------------------------------


class Place:
    """An empty home with a small repository in it, a scripted server, and `hypercode` on the path.

    `installed()` is a copy of the whole repository, the same one for each kind of installation.
    """

    def __init__(self, stage, tools, copies):
        self.stage = stage(*[answer(text(f"{WORDS}{number}.")) for number in range(4)])
        self.folder = self.stage.workspace
        self.tools = tools
        self.copies = copies
        git = ["git", "-c", "user.name=A Person", "-c", "user.email=person@example.invalid"]
        (self.folder / "greet.py").write_text("print('hello')\n")
        for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "first"]):
            subprocess.run([*git, *arguments], cwd=self.folder, env=self.variables(), check=True, timeout=60)
        (self.folder / "greet.py").write_text("print('good evening')\n")

    def variables(self, **more):
        """The environment of a command, as a fresh machine has it; the paths to uv and pipx only where they are asked for."""
        path = [Path(HYPERCODE).parent]
        return environment(self.stage.home, self.stage.home / "cache", *path, **for_hypercode(self.stage), **more)

    def run(self, line, *, cwd=None, timeout=120, codes=(0,), **more):
        """A line of a shell that must end with one of these codes, without a terminal; returns its stdout."""
        variables = self.variables() | more
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=cwd or self.folder,
            env={name: value for name, value in variables.items() if value is not None},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode in codes, (
            f"{line} ended with {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        )
        assert "Traceback" not in done.stderr
        return done.stdout

    def converse(self):
        """Makes a saved conversation and returns its id."""
        self.run("hypercode run 'zzearlier'")
        (saved,) = json.loads(self.run("hypercode sessions --json"))
        return saved["session"]

    def installing(self, line, kind, *, codes=(0,), **more):
        """A line that installs something, in the copy that is kept for this kind; both tools are on the path."""
        python = self.tools / "python"
        python.mkdir(exist_ok=True)
        if not (python / "python3").exists():
            (python / "python3").symlink_to(sys._base_executable)
        keys = environment(self.stage.home, self.tools / "cache", self.tools / "bin", python, PIP_COMPILE="0")
        keys |= for_hypercode(self.stage)
        return self.run(line, cwd=self.copies(kind), timeout=600, codes=codes, **keys | more)


# -- how ------------------------------------------------------------------------------


def answers(place, line):
    """One task: stdout is the answer, in the form that was asked for."""
    out = place.run(line)
    if "--output jsonl" in line:
        events = [json.loads(one) for one in out.splitlines()]
        assert (events[0]["type"], events[-1]["type"], events[-1]["exit_code"]) == ("session_start", "session_end", 0)
    elif "--output json" in line:
        assert json.loads(out)["text"] == f"{WORDS}0."
    else:
        assert out == f"{WORDS}0.\n"
    if line.startswith("git diff |"):
        assert "good evening" in str(place.stage.requests()[0]["messages"][-1])


def continues(place, line):
    """One task more in the last conversation."""
    place.converse()
    assert place.run(line) == f"{WORDS}1.\n"
    assert "zzearlier" in str(place.stage.requests()[1]["messages"])


def chats(place, line):
    """A chat: it comes up, takes a message or has one, shows the answer, and goes on with what it was told to."""
    base_url = place.stage.server.base_url
    own_server = "http://127.0.0.1:8080/v1" in line
    words = shlex.split(line.replace("http://127.0.0.1:8080/v1", base_url).replace("MODEL", "script/s"))
    goes_on = {"-c", "--continue"} & set(words)
    if goes_on:
        place.converse()
    without = dict.fromkeys(NO_SERVER, "") if own_server else {}
    with Chat(place.stage, *words[1:], **without) as chat:
        chat.prompt()
        if not words[1:] or " " not in words[-1]:
            chat.say("hello")
        chat.shows(f"{WORDS}{1 if goes_on else 0}.")
        chat.idle()
        assert chat.leave() == 0
    assert ("zzearlier" in str(place.stage.requests()[-1]["messages"])) == bool(goes_on)


def prints(place, line):
    """A command that shows something and is over."""
    session = place.converse()
    assert place.run(line.replace("SESSION", session)).strip()


def is_there(place, line):
    """A command that a text only names."""
    assert place.run(f"{line} --help").lstrip().startswith(f"Usage: {line}")


def replays(place, line):
    """A saved conversation, drawn again."""
    shown = place.run(line.replace("SESSION", place.converse()))
    assert "zzearlier" in shown
    assert f"{WORDS}0." in shown


def lists_models(place, line):
    """The models of a server whose names fit, and no others."""
    with ListServer({"/models": {"data": [{"id": "acme/claude-like"}, {"id": "acme/other"}]}}) as server:
        shown = place.run(line, HYPERCODE_BASE_URL=server.base_url)
    assert "acme/claude-like" in shown
    assert ("acme/other" in shown) == (line == "hypercode models")


def starts_configuration(place, line):
    """The file it names is there, and is the example."""
    path = Path(place.run(line).strip())
    assert path.read_text() == (ROOT / "config.example.toml").read_text()


def exports_a_key(place, line):
    """What the line sets is the key of the default server: a session can be built with it, and without it cannot."""
    build = f"""{shlex.quote(sys.executable)} -c '
import os, pathlib, hypercode
try:
    hypercode.build(hypercode.Config.from_environment(os.environ), cwd=pathlib.Path.cwd(), environ=os.environ)
    print("built")
except hypercode.ConfigError as error:
    print(error)'"""
    assert "OPENROUTER_API_KEY" in place.run(build, **NO_SERVER)
    assert place.run(f"{line.replace('…', 'zzkey')}\n{build}", **NO_SERVER) == "built\n"


def answers_with_uv(place, line):
    """The command in an environment that uv makes for it."""
    assert place.installing(line, "uv") == f"{WORDS}0.\n"


def exports_a_server(place, line):
    """After the line a task goes to that server, and to that model."""
    values = iter((place.stage.server.base_url, "zz-own-key", "script/s"))
    line = re.sub(r"(?<==)\S*…\S*", lambda found: next(values), line)
    assert place.run(f"{line}\nhypercode run hello", **NO_SERVER) == f"{WORDS}0.\n"
    assert place.stage.requests()[0]["model"] == "script/s"


def shows_with_uv(place, line):
    """A command that needs no model, in an environment that uv makes for it."""
    assert place.installing(line, "uv").strip()


def answers_without_a_server(place, line):
    """The embedded model says something; what, nobody can know, nor whether it finds an end before a limit (3, 4)."""
    kind = "uv-local" if line.startswith("uv") else "pip-local"
    assert place.installing(_with_uv(line), kind, codes=(0, 3, 4), **NO_SERVER).strip()


def _with_uv(line):
    """The line with uv in the place of the environment's pip: the same installation in a tenth of the time.

    That pip itself can install hypercode is seen in test_distribution.py.
    """
    return line.replace(".venv/bin/pip install", "uv pip install --quiet --python .venv/bin/python")


def knows_the_extra(place, line):
    """There is such an extra, and it can be resolved together with the rest."""
    (extra,) = re.findall(r"\[(\w+)\]", line)
    assert "==" in place.installing(f"uv pip compile --quiet --extra {extra} pyproject.toml", "uv")


def knows_the_group(place, line):
    """There is such a group of dependencies, and it can be resolved together with the rest."""
    place.installing(f"{line.removesuffix('…').replace('uv run', 'uv sync --dry-run')}", "uv")


def tests_with_uv(place, line):
    """pytest in the environment that uv makes: one file of tests, or where a marker chooses them, all are collected."""
    if chosen := re.search(r" -m (\w+)", line):
        collected = place.installing(f"{line} --collect-only tests/{chosen[1]}", "uv")
        assert re.search(r"^\d+(/\d+)? tests collected", collected, re.M), collected[-500:]
    else:
        assert re.search(r"^\d+ passed", place.installing(f"{line} -n 0 tests/unit/test_sse.py", "uv"), re.M)


def checks_with_uv(place, line):
    """A checker is there and says its version; that it finds nothing is for CI to see."""
    assert place.installing(f"{line.removesuffix(' .')} --version", "uv").strip()


def installs_with_pip(place, line):
    """An installation from the checkout, and what follows it in the line."""
    assert "Usage: hypercode" in place.installing(_with_uv(line), "pip")


def installs_a_tool(place, line):
    """A tool from the registry, on a machine that has Python, and pipx for what begins with it."""
    venv = place.stage.home / "venv"
    place.installing(f"python3 -m venv {venv}", "uv")
    home = {"pip": f"{venv}/bin/", "pipx": ""}[line.split()[0]]
    where = venv / "bin" if home else place.stage.home / ".local/bin"
    place.installing(f"{home}{line}", "uv")
    assert place.installing(f"{where}/{line.split()[-1]} --version", "uv").startswith(line.split()[-1])


def installs_itself(place, line):
    """From the checkout, as a command of the person's."""
    place.installing(line, "uv")
    assert place.installing(f"{place.stage.home}/.local/bin/hypercode --version", "uv").startswith("hypercode ")


def could_be_installed(place, line):
    """The system's package manager knows it; nothing is changed."""
    names = line.split()[2:]
    known = shutil.which("apt-cache") and all(
        subprocess.run(["apt-cache", "show", name], capture_output=True, timeout=60, check=False).returncode == 0
        for name in names
    )
    if not known:
        pytest.skip("there is no apt here, or it has no list of packages")
    ran = subprocess.run(["apt-get", "install", "--simulate", *names], capture_output=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr


def is_a_script(place, line):
    """It may be executed, and bash understands it; CI itself is where it runs."""
    assert os.access(ROOT / line, os.X_OK)
    place.run(f"bash -n {ROOT / line}")


def is_for_a_container(place, line):
    """The files it names are there, and the subcommand of hypercode in it is; tests/soak/test_container.py executes it."""
    words = shlex.split(line)
    files = [words[at + 1] for at, word in enumerate(words) if word in ("-f", "--file")]
    assert all((ROOT / name).is_file() for name in files)
    if "run" in words[:2] and "hypercode" in words:
        behind = words[words.index("hypercode") + 1 :]
        if behind and not behind[0].startswith("-"):
            assert place.run(f"hypercode {behind[0]} --help")


def collects(place, line):
    """The table of the matrix example, from two results of real runs."""
    one = "hypercode run one --output json > results/{0}.json; echo $? > results/{0}.exit; "
    place.run("mkdir results; " + one.format("a") + one.format("b"))
    script = shlex.quote(str(ROOT / "examples/matrix/collect.py"))
    shown = place.run(
        line.replace("examples/matrix/collect.py", script).replace("python3", shlex.quote(sys.executable))
    )
    assert [one.split()[:2] for one in shown.splitlines()[1:3]] == [["a", "complete"], ["b", "complete"]]


WAYS = [
    (r"export OPENROUTER_API_KEY=\S+", exports_a_key),
    (r"export( HYPERCODE_\w+=\S+)+", exports_a_server),
    (r"uv run (ruff|mypy)( .*)?", checks_with_uv),
    (r"uv run pytest( .*)?", tests_with_uv),
    (r"uv run hypercode (demo|doctor|config|--help|--version)", shows_with_uv),
    (r"uv run hypercode .+", answers_with_uv),
    (r"uv run (--group|--extra) local hypercode run --local .+", answers_without_a_server),
    (r"uv run --group \w+ …", knows_the_group),
    (r"python3 -m venv .+ -e .+ --local .+", answers_without_a_server),
    (r"python3 -m venv .+ -e .+", installs_with_pip),
    (r"(pip|pipx) install (uv|pipx)", installs_a_tool),
    (r"(uv tool|pipx) install \.", installs_itself),
    (r"pip install '\.\[\w+\]'", knows_the_extra),
    (r"apt(-get)? install [\w -]+", could_be_installed),
    (r"\.ci/run", is_a_script),
    (r"(podman|docker) .+", is_for_a_container),
    (r"python3 examples/matrix/collect\.py .+", collects),
    (r"hypercode run --schema", prints),
    (r"hypercode (run .*(-c|--continue)\b.*|-c run .*)", continues),
    (r"(git diff \| )?hypercode run .+", answers),
    (r"hypercode models.*", lists_models),
    (r"hypercode replay SESSION.*", replays),
    (r"hypercode config init", starts_configuration),
    (r"hypercode( (chat|run|sessions|replay|models|config|policy|doctor|demo))* (-h|--help|--version|-V)", prints),
    (r"hypercode (sessions|config|policy|doctor|demo)\b.*", prints),
    (r"hypercode [a-z]+( [a-z]+)?", is_there),
    (r"hypercode( (--base-url|-m|--mode) \S+| -c| --plain| \"[^\"]* [^\"]*\")*", chats),
]
"""How a documented command is executed: the first pattern that fits the whole line."""


def way(line):
    """How to execute it; None where nobody knows."""
    return next((how for pattern, how in WAYS if re.fullmatch(pattern, line)), None)
