"""The embedded model as a session has it; run as a program it says the server's process id and waits to be killed.

python local_victim.py HOME loading|ready
"""

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from hypercode.config import Config
from hypercode.local_model import connect

__all__ = ["BARE", "embedded"]

BARE = {"HYPERCODE_BASE_URL": "", "HYPERCODE_MODEL": "", "HYPERCODE_API_KEY": "", "OPENROUTER_API_KEY": ""}


@asynccontextmanager
async def embedded(home, **flags):
    """The embedded model, not yet started."""
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text("local_ports = []\n")
    environ = {**os.environ, **BARE, "HYPERCODE_HOME": str(home)}
    local = connect(Config.from_environment(environ, local=True, **flags), environ)
    try:
        yield local
    finally:
        await local.client.aclose()


async def main(home, moment):
    async with embedded(Path(home)) as local:
        local.client.begin()
        if moment == "ready":
            await local.client.ready()
        while local.client.engine.pid is None:
            await asyncio.sleep(0)
        print(local.client.engine.pid, flush=True)
        await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
