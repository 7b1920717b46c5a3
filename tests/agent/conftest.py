"""An agent over a scripted model, with the real tools and the real gate in a temporary folder."""

import os

import pytest

from hypercode import events
from hypercode.app import build
from hypercode.config import Config, setting_names
from hypercode.llm.fake import ScriptedModel


class Harness:
    """A session and everything that was announced in it."""

    def __init__(self, tmp_path, scripts, *, ask=None, piece=1000, **settings):
        self.workspace = tmp_path / "work"
        self.workspace.mkdir(exist_ok=True)
        self.model = ScriptedModel(scripts, piece=piece)
        config = Config(sources=dict.fromkeys(setting_names(), "test"))
        for name, value in settings.items():
            setattr(config, name, value)
        environ = {
            "HOME": str(tmp_path / "home"),
            "HYPERCODE_HOME": str(tmp_path / "hypercode"),
            "PATH": os.environ["PATH"],
        }
        self.app = build(config, cwd=self.workspace, environ=environ, complete=self.model.complete, ask=ask)
        self.agent = self.app.agent
        self.events = []
        self.app.bus.on(None, self.events.append)

    async def run(self, text="go"):
        return await self.agent.run(text)

    def kinds(self):
        """The types of the events, deltas and outputs of the same kind folded into one."""
        names = [type(e).__name__ for e in self.events]
        repeated = ("TextDelta", "ReasoningDelta", "ToolCallDelta", "ToolOutput")
        return [n for i, n in enumerate(names) if i == 0 or n != names[i - 1] or n not in repeated]

    def of(self, kind):
        return [e for e in self.events if isinstance(e, kind)]

    def results(self):
        return {e.call_id: e for e in self.of(events.ToolExecutionEnd)}


@pytest.fixture
def harness(tmp_path):
    def make(scripts, **options):
        return Harness(tmp_path, scripts, **options)

    return make
