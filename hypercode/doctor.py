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
from hypercode.ui.headless import Output
from hypercode.ui.render import finding_lines
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
        out.write("".join(f"{line}\n" for finding in findings for line in finding_lines(Style(plain=True), finding)))
        out.write(last + "\n")
    return 0 if healthy else 1
