"""The examples: the matrix workflow's own scripts, run; its table; and what can be seen of the container file without an engine."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from clean_place import ROOT
from stage import HYPERCODE, answer, call, text

MATRIX = ROOT / "examples/matrix"
CONTAINER = ROOT / "examples/container/Containerfile"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "cost": 0.25}


def collect(folder):
    command = [sys.executable, MATRIX / "collect.py", folder]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


# -- the workflow ------------------------------------------------------------------


def workflow():
    return (MATRIX / "hypercode.yml").read_text()


def script(name):
    """The script of a step, as the runner would write it down."""
    (found,) = re.findall(
        rf"      - name: {name}\n(?:        (?!run:).*\n)*        run: \|\n((?:          .*\n)+)", workflow()
    )
    return textwrap.dedent(found)


def test_the_workflow_is_made_of_what_a_runner_knows():
    lines = [line for line in workflow().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert [line for line in lines if "\t" in line or (len(line) - len(line.lstrip())) % 2] == []
    assert [line for line in lines if not line.startswith(" ")] == ["name: hypercode", "on:", "permissions:", "jobs:"]
    assert [line.strip() for line in lines if re.match(r"  \w+:$", line)] == ["workflow_dispatch:", "run:", "collect:"]
    actions = re.findall(r"uses: (\S+)", workflow())
    assert [action for action in actions if not re.fullmatch(r"actions/[a-z-]+@v\d+", action)] == []
    assert {action.split("@")[0] for action in actions} == {
        f"actions/{name}" for name in ("checkout", "setup-python", "upload-artifact", "download-artifact")
    }
    assert workflow().count("persist-credentials: false") == workflow().count("actions/checkout@")


def test_nothing_from_outside_is_pasted_into_a_script():
    """Inputs reach a script as variables; the key is there in one step only."""
    for name in ("Install", "Run", "Collect"):
        assert "${{" not in script(name)
        subprocess.run(["bash", "-n"], input=script(name), text=True, check=True, timeout=60)
    assert workflow().count("secrets.") == 1
    assert {"--output json", "--max-cost 0.50", "--timeout 900"} <= {
        " ".join(p) for p in re.findall(r"(--\S+) (\S+)", script("Run"))
    }


def run_step(stage, repository, **environment):
    """The step of the workflow in a job's folder; what it leaves is kept in `results/`."""
    (stage.workspace / "work").mkdir(exist_ok=True)
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script("Run")],
        cwd=stage.workspace,
        env=stage.environment(
            TASK='--help "$(touch oops)"',
            REPOSITORY=repository,
            PATH=f"{Path(HYPERCODE).parent}{os.pathsep}{os.environ['PATH']}",
            **environment,
        ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_the_workflow_s_run_and_the_table_of_it(stage):
    edit = call("write", {"path": "new.txt", "content": "x"}, "a")
    s = stage(answer(text("All is well."), usage=USAGE), answer(edit), answer(text("Half"), finish="length"))
    run_step(s, "example/one")
    run_step(s, "example/two")
    run_step(s, "example/without-key", HYPERCODE_BASE_URL="", HYPERCODE_API_KEY="", HYPERCODE_MODEL="")
    results = s.workspace / "results"
    assert json.loads((results / "example__one.json").read_text())["text"] == "All is well."
    assert {p.name: p.read_text() for p in results.glob("*.exit")} == {
        "example__one.exit": "0\n",
        "example__two.exit": "4\n",
        "example__without-key.exit": "2\n",
    }
    assert s.requests()[0]["messages"][-1]["content"] == '--help "$(touch oops)"'
    assert not list(s.workspace.rglob("oops")) + list(s.workspace.rglob("new.txt"))
    done = collect(results)
    assert (done.returncode, done.stderr) == (1, "")
    assert [re.split(r"  +", line) for line in done.stdout.splitlines()] == [
        ["repository", "outcome", "exit", "turns", "cost", "error"],
        ["example/one", "complete", "0: done", "1", "$0.2500", "-"],
        ["example/two", "complete", "4: answer cut or broken off", "2", "?", "-"],
        ["example/without-key", "no result", "2: wrong use or configuration", "0", "?", "-"],
        [""],
        ["1 of 3 done, $0.2500"],
    ]


# -- the table ---------------------------------------------------------------------


def put(folder, name, code=None, content=""):
    (folder / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    if code is not None:
        (folder / f"{name}.exit").write_text(f"{code}\n")


def rows(done):
    return [re.split(r"  +", line) for line in done.stdout.splitlines()[1:-2]]


def test_all_done_is_exit_0(tmp_path):
    put(tmp_path, "a__b__c", 0, {"outcome": "complete", "turns": 3, "cost": 0.5, "error": None})
    put(tmp_path, "plain", 0, {"outcome": "complete", "turns": 1, "cost": 1, "error": None})
    done = collect(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert rows(done) == [
        ["a/b__c", "complete", "0: done", "3", "$0.5000", "-"],
        ["plain", "complete", "0: done", "1", "$1.0000", "-"],
    ]
    assert done.stdout.splitlines()[-1] == "2 of 2 done, $1.5000"


@pytest.mark.parametrize(
    ("code", "content", "row"),
    [
        (1, {"outcome": "error", "turns": 1, "error": {"kind": "auth", "message": "a\n::error::\x1b[31mkey"}}, ["error", "1: model or server failed", "1", "?", "a ::error:: [31mkey"]),
        (3, {"outcome": "limit", "turns": 50, "cost": 0.5, "error": {"kind": "limit", "message": ""}}, ["limit", "3: a limit was reached", "50", "$0.5000", "limit"]),
        (5, {"outcome": "complete", "turns": 2, "cost": None, "error": None}, ["complete", "5: done, something was refused", "2", "?", "-"]),
        (77, "not JSON", ["no result", "77: unknown", "0", "?", "-"]),
        (0, "[1]", ["no result", "0: done", "0", "?", "-"]),
        (None, "", ["no result", "none: did not end", "0", "?", "-"]),
        (1, {"outcome": "error", "error": {"message": "x" * 200}}, ["error", "1: model or server failed", "0", "?", "x" * 59 + "…"]),
    ],
)  # fmt: skip
def test_rows(tmp_path, code, content, row):
    put(tmp_path, "o__r", code, content)
    done = collect(tmp_path)
    assert rows(done) == [["o/r", *row]]
    assert (done.returncode, done.stdout.splitlines()[-1].split(",")[0]) == (1, "0 of 1 done")


def test_a_run_without_output_is_no_success_that_is_missed(tmp_path):
    (tmp_path / "o__r.exit").write_text("130\n")
    done = collect(tmp_path)
    assert (done.returncode, rows(done)) == (1, [["o/r", "no result", "130: interrupted", "0", "?", "-"]])


@pytest.mark.parametrize("arguments", [[], ["nowhere"], ["."], ["a", "b"]])
def test_nothing_to_read_is_exit_2(tmp_path, arguments):
    command = [sys.executable, str(MATRIX / "collect.py"), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"collect\.py: .+\n", done.stderr)


def test_exit_codes_mean_what_the_readme_says():
    sys.path.insert(0, str(MATRIX))
    from collect import MEANINGS

    readme = re.search(r"\*\*Exit codes\*\*(.*?)\n\n", (ROOT / "README.md").read_text(), re.S)[1]
    assert set(MEANINGS) == {int(code) for code in re.findall(r"\b\d+\b", readme)}


def test_the_script_is_typed(tmp_path):
    pytest.importorskip("mypy")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--cache-dir",
        tmp_path,
        MATRIX / "collect.py",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "Success: no issues found in 1 source file\n")


# -- the container file --------------------------------------------------------------


def instructions():
    """Each instruction of the container file with its words, continued lines joined."""
    lines = [line for line in CONTAINER.read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    return [tuple(line.split(" ", 1)) for line in joined if line.strip()]


def test_the_container_file_copies_what_there_is_and_ends_without_rights():
    names = [name for name, _ in instructions()]
    assert (names[0], names[-1]) == ("FROM", "ENTRYPOINT")
    assert set(names) == {"FROM", "RUN", "COPY", "USER", "WORKDIR", "ENTRYPOINT"}
    assert names.count("FROM") == 1
    (image,) = [words for name, words in instructions() if name == "FROM"]
    assert re.fullmatch(r"docker\.io/library/python:3\.\d+-slim", image)
    copied = [word for name, words in instructions() if name == "COPY" for word in words.split()[:-1]]
    assert [word for word in copied if not (ROOT / word).exists()] == []
    users = [words for name, words in instructions() if name == "USER"]
    assert users == ["coder"]
    behind = names[names.index("USER") :]
    assert "RUN" not in behind
    assert json.loads(instructions()[-1][1]) == ["hypercode"]
    for name, words in instructions():
        if name == "RUN":
            subprocess.run(["sh", "-n", "-c", words], check=True, timeout=60)
    assert not re.search(r"sk-|API_KEY=", CONTAINER.read_text())


def test_what_the_container_file_copies_is_enough_to_install(tools, tmp_path):
    """Its COPY lines and its `pip install`, the latter with uv into an environment of its own."""
    from clean_place import copy_of_repository, done, environment

    whole, context = copy_of_repository(tmp_path / "whole"), tmp_path / "src"
    context.mkdir()
    for name, words in instructions():
        if name == "COPY":
            *sources, target = words.split()
            into = tmp_path / target.lstrip("/")
            for source in sources:
                there = into if (whole / source).is_dir() else into / source
                (whole / source).rename(there)
    machine = environment(tmp_path / "home", tools / "cache", tools / "bin")
    done(["uv", "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"], machine, cwd=tmp_path)
    done(["uv", "pip", "install", "--quiet", "--python", tmp_path / "venv", context], machine, cwd=tmp_path)
    usage = done([tmp_path / "venv/bin/hypercode", "--help"], machine, cwd=tmp_path)
    assert usage.lstrip().startswith("Usage: hypercode")
