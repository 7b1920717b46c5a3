"""`hypercode policy`: what would be allowed, and why.  Runs nothing, opens nothing, asks nobody."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping
from pathlib import Path

from hypercode.config import Config
from hypercode.errors import ConfigError
from hypercode.parts import gate_for
from hypercode.safety.approval import Mode, decide
from hypercode.safety.command import as_json as verdict_json
from hypercode.safety.paths import Op

__all__ = ["show_command", "show_path"]


def show_command(
    config: Config, command: str, *, cwd: Path, environ: Mapping[str, str], with_mode: bool, as_json: bool
) -> None:
    """Print the class of a command's text; with a mode, what that mode makes of it outside a sandbox."""
    verdict = gate_for(config, cwd=cwd, environ=environ).classify(command)
    answer = verdict_json(verdict)
    if with_mode:
        answer["decision"] = str(decide(Mode(config.mode), "shell", verdict.decision))
    if as_json:
        _print(json.dumps(answer))
        return
    _print(f"{answer['decision']}")
    for part in verdict.parts:
        _print(f"  {part.decision:<10} {part.command}   ({part.rule})")
    if verdict.grant:
        _print(f"  --allow {verdict.grant!r} would let it pass")


def show_path(
    config: Config, operation: str, path: str, *, cwd: Path, environ: Mapping[str, str], as_json: bool
) -> None:
    """Print what the file guard says of a path; `auto` for a write means: only the usual question of the mode."""
    operations = typing.get_args(Op)
    if operation not in operations:
        raise ConfigError(f"must be one of {', '.join(operations)}, not {operation!r}", key="operation")
    verdict = gate_for(config, cwd=cwd, environ=environ).files.decide(operation, path)  # type: ignore[arg-type]
    if as_json:
        _print(json.dumps({"decision": str(verdict.decision), "rule": verdict.rule, "path": str(verdict.path)}))
    else:
        _print(f"{verdict.decision}  {verdict.path}   ({verdict.rule})")


def _print(text: str) -> None:
    print(text)  # noqa: T201
