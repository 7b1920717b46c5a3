"""Any sequence of edits by tools, by commands and by strangers, with undo, redo and restarts in between."""

import hashlib
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from undo_help import Bench

NAMES = ("a", "b", "d/c", "d/e/f")
ACTORS = ("tool", "command", "stranger")

_name = st.sampled_from(NAMES)
_edit = st.tuples(st.sampled_from(ACTORS), st.sampled_from(["write", "write", "delete", "mode"]), _name)
_move = st.tuples(st.sampled_from(["undo", "undo", "redo", "restart"]))
sequences = st.lists(st.one_of(_edit, _edit, _move), max_size=25)


def edit(bench, kind, name, content):
    """What a command or a stranger does."""
    path = bench.ws / name
    if kind == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    elif kind == "delete":
        path.unlink(missing_ok=True)
        if path.parent != bench.ws and path.parent.is_dir() and not any(path.parent.iterdir()):
            path.parent.rmdir()
    elif path.exists():
        path.chmod(0o640 if path.stat().st_mode & 0o7 else 0o755)


def files(bench):
    return {p.relative_to(bench.ws).as_posix(): p.read_bytes() for p in bench.ws.rglob("*") if p.is_file()}


def check(operations):
    """Run a sequence; what must hold is asserted on the way."""
    with tempfile.TemporaryDirectory() as base:
        bench = Bench(Path(base))
        theirs = {}  # what a stranger wrote last, and nobody changed since
        touched = False  # by a stranger
        past, future = [], []
        for number, operation in enumerate(operations):
            content = f"content {number}"
            before = bench.tree()
            if operation[0] == "restart":
                bench.restart()
            elif operation[0] in ("undo", "redo"):
                _move_once(bench, operation[0], theirs, touched, past, future)
            else:
                actor, kind, name = operation
                held = files(bench)
                steps = [s.number for s in bench.undo.steps() if s.undone is None]
                _act(bench, actor, kind, name, content)
                if files(bench) != held:
                    changed = {n for n in {*held, *files(bench)} if held.get(n) != files(bench).get(n)}
                    theirs = {n: c for n, c in theirs.items() if n not in changed}
                    if actor == "stranger":
                        theirs |= {n: c for n, c in files(bench).items() if n in changed}
                if actor == "stranger":
                    touched |= bench.tree() != before
                elif [s.number for s in bench.undo.steps() if s.undone is None] != steps:
                    past.append((before, bench.tree()))
                    future.clear()
        bench.undo.close()


def _act(bench, actor, kind, name, content):
    if actor == "tool" and kind == "write":
        if not (bench.ws / name).is_dir():
            bench.write(name, content)
    elif actor == "stranger":
        edit(bench, kind, name, content)
    else:
        bench.command(lambda: edit(bench, kind, name, content))


def _move_once(bench, move, theirs, touched, past, future):
    held = files(bench)
    outcome = bench.undo.undo() if move == "undo" else bench.undo.redo()
    now = files(bench)
    for name, content in theirs.items():
        assert now.get(name) == content, f"{move} touched what a stranger left in {name}"
    kept = {p.parent.name + p.name for p in bench.base.rglob("contents/*/*")}
    for name, content in held.items():
        if now.get(name) != content:
            assert hashlib.sha256(content).hexdigest() in kept, f"{move} lost what was in {name}"
    if outcome.step is None or touched:
        return
    assert outcome.refused == ()
    here, there = (past, future) if move == "undo" else (future, past)
    trees = here.pop()
    there.append(trees)
    assert bench.tree() == trees[0 if move == "undo" else 1]
