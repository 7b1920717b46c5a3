"""A table of what `hypercode run --output json` said in several repositories: `python3 collect.py FOLDER`.

In the folder there is, for each repository, `OWNER__NAME.json` with what the run printed and `OWNER__NAME.exit` with its
exit code.  Exits with 0 when every run was done, with 1 when one was not, with 2 when there is nothing to read.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEANINGS = {
    0: "done",
    1: "model or server failed",
    2: "wrong use or configuration",
    3: "a limit was reached",
    4: "answer cut or broken off",
    5: "done, something was refused",
    129: "hang-up",
    130: "interrupted",
    143: "terminated",
}
HEADINGS = ("repository", "outcome", "exit", "turns", "cost", "error")
WIDEST = 60


@dataclass(frozen=True, slots=True)
class Result:
    """One run: `code` is None where it did not come to an end, `cost` USD or None where nobody said."""

    repository: str
    outcome: str
    code: int | None
    turns: int
    cost: float | None
    error: str

    @property
    def done(self) -> bool:
        """Whether it was done, and said so."""
        return self.code == 0 and self.outcome == "complete"

    @property
    def exit(self) -> str:
        """The exit code and what it means."""
        return "none: did not end" if self.code is None else f"{self.code}: {MEANINGS.get(self.code, 'unknown')}"

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        cost = "?" if self.cost is None else f"${self.cost:.4f}"
        row = (self.repository, self.outcome, self.exit, str(self.turns), cost, self.error or "-")
        return tuple(shown(cell) for cell in row)


def shown(text: str) -> str:
    """A text of somebody else on one line, without control characters, and not too wide."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= WIDEST else plain[: WIDEST - 1] + "…"


def load(path: Path) -> dict[str, Any]:
    """What a run printed; empty where that is no JSON object, as for a run that did not begin."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def read(stem: Path) -> Result:
    """The run whose files are called `stem` with .json and .exit."""
    said = load(stem.parent / f"{stem.name}.json")
    try:
        code = int((stem.parent / f"{stem.name}.exit").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        code = None
    error, turns, cost = said.get("error"), said.get("turns"), said.get("cost")
    return Result(
        repository=stem.name.replace("__", "/", 1),
        outcome=str(said.get("outcome") or "no result"),
        code=code,
        turns=turns if isinstance(turns, int) else 0,
        cost=float(cost) if isinstance(cost, int | float) else None,
        error=str(error.get("message") or error.get("kind") or "") if isinstance(error, dict) else "",
    )


def read_all(folder: Path) -> list[Result]:
    """Every run in the folder, by name."""
    names = {path.stem for suffix in ("json", "exit") for path in folder.glob(f"*.{suffix}")}
    return [read(folder / name) for name in sorted(names)]


def table(results: list[Result]) -> str:
    """Columns as wide as they have to be, a line each, and the sum of what is known to have been paid."""
    rows = [HEADINGS, *(result.cells for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    done = sum(result.done for result in results)
    paid = sum(result.cost or 0.0 for result in results)
    return "\n".join([*lines, "", f"{done} of {len(results)} done, ${paid:.4f}"]) + "\n"


def main(arguments: list[str]) -> int:
    """Print the table of a folder and return the exit code."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        sys.stderr.write("collect.py: give the folder with the results\n")
        return 2
    results = read_all(Path(arguments[0]))
    if not results:
        sys.stderr.write(f"collect.py: there is no result in {arguments[0]}\n")
        return 2
    sys.stdout.write(table(results))
    return 0 if all(result.done for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
