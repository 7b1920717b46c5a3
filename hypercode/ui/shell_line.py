"""`!command`: a command of the person's own, drawn like a tool's call; `!!command` keeps it from the model."""

from __future__ import annotations

import time

from hypercode import events
from hypercode.agent import Agent
from hypercode.errors import ToolError
from hypercode.messages import ran

__all__ = ["run_shell_line"]

_TOLD = 10_000


async def run_shell_line(agent: Agent, line: str) -> None:
    """Run it with the person's own rights.  Cancelled, it ends the command; what that had printed is kept."""
    mark = "!!" if line.startswith("!!") else "!"
    command = line.removeprefix(mark).strip()
    if not command:
        return
    tool = agent.tools.find("bash")
    call_id = f"shell-{time.monotonic_ns()}"
    printed: list[str] = []

    def show(text: str) -> None:
        printed.append(text)
        agent.bus.emit(events.ToolOutput(call_id, text))

    agent.bus.emit(events.ToolExecutionStart(call_id, mark, {"command": command}))
    started = time.monotonic()
    output, kind = "", "aborted"
    try:
        output, kind = await tool.call(agent.shell_context(show), tool.validate({"command": command})), ""
    except ToolError as error:
        output, kind = str(error), error.kind
    finally:
        if kind == "aborted":
            output = "".join(printed)[-_TOLD:] + "[stopped]"
        seconds = round(time.monotonic() - started, 3)
        agent.bus.emit(events.ToolExecutionEnd(call_id, mark, output, bool(kind), kind or None, seconds))
        if mark == "!":
            shell = {"command": command, "kind": kind or None, "seconds": seconds}
            agent.tell(ran(command, output), shell=shell)
