"""hypercode: a coding assistant that lives in the terminal.

The public names load when they are first used, so that importing the package costs nothing::

    from hypercode import App, Config, build
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Agent": "agent",
    "App": "app",
    "Bus": "events",
    "Config": "config",
    "Limits": "agent",
    "Result": "agent",
    "ScriptedModel": "llm.fake",
    "Tool": "tools.base",
    "ToolContext": "tools.base",
    "ToolError": "errors",
    "Toolbox": "tools.base",
    "build": "app",
    "tool": "tools.base",
}

__all__ = [
    "Agent",
    "App",
    "Bus",
    "Config",
    "Limits",
    "Result",
    "ScriptedModel",
    "Tool",
    "ToolContext",
    "ToolError",
    "Toolbox",
    "__version__",
    "build",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hypercode' has no attribute {name!r}")
    return getattr(importlib.import_module(f"hypercode.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
