"""The documented container commands, executed: the image is built and run by a real engine, against the tests' server.

The lines stand in the pages as they are run here; only where there is no terminal their `-it` is left out.  The settings of
the engine (`container_engine.py`) say the rest: the machine's network, and which server hypercode asks.
"""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from chat_terminal import Chat, Reader
from clean_place import ROOT, copy_of_repository, for_hypercode
from container_engine import engine, last_line, pip_configuration
from documented import CONTAINER, commands
from stage import answer, call, text

pytestmark = [pytest.mark.soak, pytest.mark.skipif(sys.platform != "linux", reason="podman runs on Linux")]

DOCUMENTED = [line for line in commands() if re.match(r"podman |docker ", line)]
HEAD = " ".join(line.removeprefix("#").strip() for line in CONTAINER.read_text().splitlines() if line.startswith("#"))
KEY = "sk-or-zz-not-a-key"
NOTHING_STARTED = 2
REFUSED = 5


def said(pattern):
    """What the head of the container file says in backticks, in the one place that fits."""
    (found,) = {code for code in re.findall(r"`([^`]+)`", HEAD) if re.fullmatch(pattern, code)}
    return found


BUILD, RUN = DOCUMENTED
TASK = said(r"… hypercode run .+").removeprefix("… hypercode ")
STATE = said(r"-v hypercode-state:.+")
BOXED = said(r"--security-opt unmask=\S+")


def line(behind="", *options):
    """The documented `run` without a terminal, with more options and with this behind the image's name."""
    assert " -it " in RUN
    command, image = RUN.replace(" -it ", " ").rsplit(" ", 1)
    return " ".join([command, *options, image, behind])


@pytest.fixture(scope="module")
def built():
    """An engine that has built the image with the documented line, in a copy of the repository."""
    (base,) = re.findall(r"^FROM (\S+)$", CONTAINER.read_text(), re.M)
    with engine() as one:
        one.with_image(base)
        checkout = one.give(copy_of_repository(one.folder / "checkout"))
        ran = one.run(BUILD, cwd=checkout, volumes=pip_configuration(one.folder), timeout=900)
        assert ran.returncode == 0, f"{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}"
        yield one


class Place:
    """A folder of a person's, and a scripted server; `run` runs the documented line there."""

    def __init__(self, built, stage):
        self.engine = built
        self.stage = stage
        self.folder = built.new_folder("work", **{"greet.py": "print('zzhello')\n"})
        self.inside = for_hypercode(stage)
        del self.inside["HYPERCODE_HOME"]

    def run(self, command, code=0, **more):
        """Run a line that must end with this code; returns its stdout."""
        settings = {"cwd": self.folder, "inside": self.inside, "variables": {"OPENROUTER_API_KEY": KEY}, **more}
        ran = self.engine.run(command, **settings)
        assert ran.returncode == code, f"{command} ended with {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        assert "Traceback" not in ran.stderr
        self.said = ran.stderr
        return ran.stdout

    def result(self):
        """What the model was told of its last call."""
        return self.stage.requests()[-1]["messages"][-1]["content"]


@pytest.fixture
def place(built, stage):
    """Make a place whose server gives these answers."""
    made = []

    def make(*answers):
        made.append(Place(built, stage(*answers)))
        return made[-1]

    yield make
    for one in made:
        one.run("podman volume rm --all --force")
        shutil.rmtree(one.folder)


def shell(command):
    """The model runs this."""
    return answer(call("bash", {"command": command}, "c1"))


def doctor(said):
    """The lines of `hypercode doctor` by what they are about, with what is to do."""
    found = {}
    for level, name, words in re.findall(r"^(ok|warning|problem) +(\w+) +(.+(?:\n +.+)*)$", said, re.M):
        found.setdefault(name, []).append((level, " ".join(words.split())))
    return found


def test_each_documented_command_is_executed_here():
    assert DOCUMENTED == [BUILD, RUN]
    assert BUILD in (ROOT / "examples/README.md").read_text()
    assert BUILD.startswith("podman build ")
    assert RUN.startswith("podman run ")


def test_the_image_starts_hypercode_as_a_user_without_rights(place):
    p = place()
    version = re.search(r'^__version__ = "(.+)"$', (ROOT / "hypercode/__init__.py").read_text(), re.M)[1]
    assert p.run(line("--version")) == f"hypercode {version}\n"
    assert p.run(line("-c 'id -u; id -un; pwd'", "--entrypoint sh")) == "1000\ncoder\n/workspace\n"
    assert p.run("podman run --rm --entrypoint id hypercode -u") == "1000\n"


def test_the_key_is_handed_over_and_not_in_the_image(place):
    p = place()
    assert p.run(line("OPENROUTER_API_KEY", "--entrypoint printenv")) == f"{KEY}\n"
    assert KEY not in p.run("podman image inspect hypercode") + p.run("podman history --no-trunc hypercode")


def test_a_chat_with_the_line_as_it_stands(place):
    p = place(answer(text("zzanswer.")))
    with InContainer(p, RUN) as chat:
        chat.prompt()
        chat.say("zzquestion")
        chat.shows("zzanswer.")
        chat.idle()
        assert chat.leave() == 0
    assert "zzquestion" in str(p.stage.requests()[0]["messages"])


class InContainer(Chat):
    """The chat of a container in a terminal."""

    def __init__(self, place, command):
        settings = {"cwd": place.folder, "inside": place.inside, "variables": {"OPENROUTER_API_KEY": KEY}}
        Reader.__init__(self, place.engine.argv(command, **settings), 80, 24)


def test_a_task_in_the_folder(place):
    p = place(answer(call("read", {"path": "greet.py"}, "c1")), answer(text("zzanswer.")))
    told = json.loads(p.run(line(TASK)))
    assert (told["text"], told["outcome"], told["turns"], told["error"]) == ("zzanswer.", "complete", 2, None)
    assert p.stage.requests()[0]["messages"][-1]["content"] == "a task"
    assert "zzhello" in p.result()


def test_what_is_written_in_the_folder_belongs_to_the_person(place):
    p = place(answer(call("write", {"path": "sub/new.txt", "content": "zznew\n"}, "c1")), answer(text("Done.")))
    p.run(line(f"--mode edits {TASK}"))
    made = p.folder / "sub/new.txt"
    assert (made.read_text(), made.stat().st_uid) == ("zznew\n", p.engine.uid)


def test_conversations_are_kept_in_the_volume_only(place):
    p = place(*[answer(text(f"zzanswer{number}.")) for number in range(3)])
    told = json.loads(p.run(line(TASK, STATE)))
    saved = json.loads(p.run(line("sessions --json", STATE)))
    assert [one["session"] for one in saved] == [told["session"]]
    assert p.run(line("run -c 'and now'", STATE)) == "zzanswer1.\n"
    assert "zzanswer0." in str(p.stage.requests()[1]["messages"])
    p.run(line(TASK))
    assert len(json.loads(p.run(line("sessions --json", STATE)))) == 1
    assert json.loads(p.run(line("sessions --json"))) == []


def test_without_namespaces_it_runs_on_and_says_so(place):
    p = place(shell("touch made"), answer(text("Refused.")))
    ((level, words),) = doctor(p.run(line("doctor")))["sandbox"]
    assert level == "warning"
    assert words.startswith("Sandbox: none — every command asks. ")
    assert BOXED in words
    assert "Install" not in words
    assert p.run(line("--mode auto run hello"), NOTHING_STARTED) == ""
    assert "auto runs commands unasked and needs the sandbox" in p.said
    assert p.stage.requests() == []
    p.run(line("run hello"), REFUSED)
    assert not (p.folder / "made").exists()


def test_with_the_documented_option_the_box_holds(place):
    p = place(shell("""touch made; python3 -c 'open("/home/coder/made", "w")'"""), answer(text("Done.")))
    everything = "--entrypoint bwrap --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
    able = p.engine.run(line("--unshare-all --bind / / --proc /proc true", BOXED, everything), cwd=p.folder)
    if able.returncode:
        pytest.skip(f"no option of the engine lets bubblewrap make namespaces in a container here: {last_line(able)}")
    found = doctor(p.run(line("doctor", BOXED)))["sandbox"]
    assert [level for level, _ in found] == ["ok", "ok"]
    assert found[1][1].startswith("Tried out in a temporary folder: ")
    p.run(line("--mode auto run hello", BOXED))
    assert (p.folder / "made").stat().st_uid == p.engine.uid
    assert "Read-only file system" in p.result()


def test_the_container_as_the_only_wall(place):
    p = place(shell("touch made ~/outside && id -u"), answer(text("Done.")))
    p.run(line("--no-sandbox --mode auto run hello"))
    assert (p.folder / "made").exists()
    assert "1000" in p.result()
