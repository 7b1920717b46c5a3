"""A console block of README that a script writes: `<!-- captured by SCRIPT -->` stands above it."""

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def _pattern(script):
    mark = re.escape(f"<!-- captured by tests/e2e/{Path(script).name} -->")
    return re.compile(rf"({mark}\n```console\n)(.*?)(```\n)", re.S)


def shown(script):
    """What README shows at the moment."""
    found = _pattern(script).search(README.read_text())
    return found[2] if found else ""


def write(script, new):
    """Put the text into the block, where README has it, and print it."""
    README.write_text(_pattern(script).sub(lambda found: found[1] + new + found[3], README.read_text()))
    print(new, end="")
