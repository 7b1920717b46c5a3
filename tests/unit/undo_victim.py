"""A process that edits, undoes and does again for ever, to be killed: undo_victim.py BASE."""

import sys
from pathlib import Path

from undo_help import Bench

OLD, NEW = b"old" * 20_000, b"new" * 30_000


def main(base):
    bench = Bench(Path(base))
    turn = 0
    print("ready", flush=True)
    while True:
        turn += 1
        if not bench.undo.steps():
            bench.command("cp ../new a; rm b; mkdir n; cp ../new n/c; cp ../new d/e")
        bench.undo.undo()
        bench.undo.redo()


if __name__ == "__main__":
    main(sys.argv[1])
