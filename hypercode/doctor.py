"""`hypercode doctor`: what works here, what does not, and what to do about it; `checkup.py` looks."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hypercode.checkup import examine
from hypercode.findings import verdict
from hypercode.ui.headless import Output, columns
from hypercode.ui.render import finding_lines, wrapped
from hypercode.ui.style import Style

__all__ = ["run"]


def run(
    cwd: Path,
    *,
    environ: Mapping[str, str],
    profile: str | None,
    flags: Mapping[str, Any],
    stream: bool,
    as_json: bool,
) -> int:
    """Examine, print the findings, and return the exit code: 1 where something needed is broken."""
    findings = asyncio.run(examine(cwd, environ=environ, profile=profile, flags=flags, stream=stream))
    healthy, last = verdict(findings)
    out = Output(sys.stdout, lambda: None)
    if as_json:
        out.write(json.dumps({"ok": healthy, "findings": [asdict(f) for f in findings]}, indent=2) + "\n")
    else:
        style, width = Style(plain=True), columns(sys.stdout)
        rows = [row for finding in findings for row in finding_lines(style, finding, width)]
        rows += wrapped(last, width) if width else [last]
        out.write("".join(f"{row}\n" for row in rows))
    return 0 if healthy else 1
