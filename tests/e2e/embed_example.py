"""hypercode inside a program, with a tool of its own; the model is scripted, so that it needs no key and no network."""

import asyncio
import os
from pathlib import Path

from hypercode import Call, Config, ScriptedModel, TextDelta, ToolContext, ToolExecutionEnd, build, script, tool


@tool("read")
async def weather(ctx: ToolContext, city: str) -> str:
    """What the weather is like in a city."""
    return f"sunny in {city}"


async def main() -> None:
    model = ScriptedModel([script("Let me look. ", Call("weather", {"city": "Ulm"})), "It is sunny."])
    app = build(Config(), cwd=Path.cwd(), environ=os.environ, complete=model.complete)
    app.agent.tools.add(weather)
    app.bus.on(TextDelta, lambda event: print(event.text, end="", flush=True))
    app.bus.on(ToolExecutionEnd, lambda event: print(f"[{event.name}: {event.output}] ", end=""))
    app.start()
    result = await app.agent.run("How is the weather in Ulm?")
    app.finish(result)
    await app.aclose()


asyncio.run(main())
