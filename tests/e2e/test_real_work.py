"""A scripted model works through this project's own source tree: it greps, reads, edits, runs tests and answers."""

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from stage import answer, call, text

PROJECT = Path(__file__).parents[2]
OLD = "MAX_RESULT_LINES = 2_000\n"
NEW = "MAX_RESULT_LINES = 1_500\n"


def tree(folder):
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink())
    skipped = ("__pycache__", ".pytest_cache", ".hypothesis")
    return {str(p.relative_to(folder)): p.read_bytes() for p in files if not any(s in p.parts for s in skipped)}


def test_the_tree_holds_exactly_the_expected_change(stage):
    run_tests = f"{sys.executable} -m pytest -o addopts= -p no:cacheprovider tests/unit/test_messages.py 2>&1 | tail -3"
    s = stage(
        answer(
            text("Let me find it. "),
            call("grep", {"pattern": "^MAX_RESULT_LINES", "glob": "*.py"}, "g"),
            call("glob", {"pattern": "hypercode/tools/*.py"}, "f", 1),
        ),
        answer(call("read", {"path": "hypercode/tools/base.py", "limit": 60}, "r")),
        answer(call("edit", {"path": "hypercode/tools/base.py", "edits": [{"old": OLD, "new": NEW}]}, "e")),
        answer(call("bash", {"command": run_tests}, "b")),
        answer(text("The limit is 1500 lines now; the tests pass.")),
    )
    for name in ("hypercode", "tests", "pyproject.toml", "README.md"):
        source = PROJECT / name
        target = s.workspace / name
        shutil.copytree(
            source, target, ignore=shutil.ignore_patterns("__pycache__")
        ) if source.is_dir() else shutil.copy(source, target)
    before = tree(s.workspace)
    done = s.run(
        "run",
        "lower the limit to 1500 lines",
        "--no-sandbox",  # this interpreter may lie where the box has a folder of its own
        "--mode",
        "edits",
        "--allow",
        sys.executable,
        "--allow",
        "tail",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("The limit is 1500 lines now; the tests pass.\n")
    after = tree(s.workspace)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {"hypercode/tools/base.py"}
    file = "hypercode/tools/base.py"
    assert after[file] == before[file].replace(OLD.encode(), NEW.encode())
    results = {m["tool_call_id"]: m["content"] for m in s.requests()[-1]["messages"] if m["role"] == "tool"}
    assert "hypercode/tools/base.py" in results["g"]
    assert "hypercode/tools/read.py" in results["f"]
    assert "MAX_RESULT_LINES = 2_000" in results["r"]
    assert "passed" in results["b"], results["b"]
    subprocess.run(
        [sys.executable, "-c", "import hypercode.tools.base as b; assert b.MAX_RESULT_LINES == 1_500"],
        cwd=s.workspace,
        check=True,
    )
