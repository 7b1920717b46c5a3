"""A client of a server on this machine, which may be one that this program starts itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypercode.events import Event
from hypercode.llm.client import Client
from hypercode.llm.local_engine import Engine
from hypercode.llm.settings import ModelSettings
from hypercode.messages import Reply

__all__ = ["LocalClient"]


class LocalClient(Client):
    """`Client` for a model on this machine; with an `engine` the embedded server, started when it is first needed.

    `phase` says what a request waits for before it can be sent.
    """

    def __init__(self, settings: ModelSettings, engine: Engine | None = None) -> None:
        super().__init__(settings)
        self.engine = engine
        self.phase = ""

    def begin(self) -> None:
        """Start the embedded server in the background, where there is one."""
        if self.engine is not None:
            self.engine.begin()

    async def ready(self) -> ModelSettings:
        """The settings to use, once the server can be asked.  Raises ModelUnavailable."""
        if self.engine is not None:
            self.phase = "" if self.engine.ready else "starting the model"
            try:
                address = await self.engine.start()
            finally:
                self.phase = ""
            self.settings = replace(self.settings, base_url=address.base_url, api_key=address.key)
        return self.settings

    async def get_json(self, path: str) -> dict[str, Any]:
        """As `Client.get_json`, once the server is there."""
        await self.ready()
        return await super().get_json(path)

    async def aclose(self) -> None:
        """Close the connections and end the embedded server."""
        await super().aclose()
        if self.engine is not None:
            await self.engine.stop()

    async def _attempt(self, body: dict[str, Any], reply: Reply, emit: Callable[[Event], None], started: float) -> None:
        await self.ready()
        await super()._attempt(body, reply, emit, started)
