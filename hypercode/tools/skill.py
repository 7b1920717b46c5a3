"""The tool `skill`: the body of a skill, read when it is needed.  Made only for a session that has skills."""

from __future__ import annotations

import asyncio

from hypercode.memory.skills import Skills
from hypercode.tools.base import Tool, ToolContext, tool

__all__ = ["skill_tool"]


def skill_tool(skills: Skills) -> Tool | None:
    """The tool over these skills; None where there are none, so that it is not offered."""
    if not skills.found:
        return None

    @tool("read")
    async def skill(ctx: ToolContext, name: str) -> str:
        """Read a skill: instructions for a particular kind of work, by the name it is listed under. Read it before you
        begin with work that fits its description. It names its folder and further files there, which you can read."""
        return await asyncio.to_thread(skills.read, name)

    return skill
