"""What the tests of the file tools share: a workspace with its guard, and a call the way the agent makes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypercode.errors import ToolError
from hypercode.safety.decision import Decision
from hypercode.safety.paths import FileGuard
from hypercode.tools.base import Tool, ToolContext


def context(workspace: Path, **guard: Any) -> ToolContext:
    """A context for the tools in that folder."""
    home = guard.pop("home", workspace.parent / "no-home")
    return ToolContext(files=FileGuard(workspace, home=home, **guard), spill=workspace.parent / "spill")


async def run(ctx: ToolContext, tool: Tool, person: bool = False, **arguments: Any) -> str:
    """Validate, preview, decide and call, as the agent does; `person` says yes to every question."""
    ready = tool.validate(arguments)
    preview = await tool.preview(ctx, ready)
    verdict = ctx.files.decide(tool.name, ready["path"])
    if preview is not None and preview.confirm and not person:
        raise ToolError("needs_confirmation", preview.confirm)
    if verdict.decision in (Decision.ASK, Decision.ALWAYS_ASK) and person:
        ctx.files.grant(tool.name, verdict.path)
    return await tool.call(ctx, ready)


async def outcome(ctx: ToolContext, tool: Tool, person: bool = False, **arguments: Any) -> tuple[str | None, str]:
    """The error kind (None for success) and the text the model reads."""
    try:
        return None, await run(ctx, tool, person, **arguments)
    except ToolError as error:
        return error.kind, str(error)


def raw(value: Any) -> bytes | None:
    """The bytes a case file means."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, list):
        return b"".join(raw(v) or b"" for v in value)
    if "hex" in value:
        return bytes.fromhex(value["hex"])
    return value["utf8"].encode() * value.get("repeat", 1)


def listing(folder: Path) -> Mapping[str, tuple[int, bytes | str]]:
    """Every name below a folder with its mode and content, to compare before and after."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content: bytes | str = ""
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file() and status.st_size < 1 << 20:
            content = path.read_bytes()
        found[str(path.relative_to(folder))] = (status.st_mode, content)
    return found
