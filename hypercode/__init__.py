"""hypercode: a coding assistant that lives in the terminal.

The public names load when they are first used, so that importing the package costs nothing::

    from hypercode import Config, TextDelta, build
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypercode.agent import Agent, Complete, Limits, Result, exit_code
    from hypercode.app import App, build
    from hypercode.config import Config
    from hypercode.errors import (
        AuthError,
        ConfigError,
        ContextOverflow,
        HypercodeError,
        LimitReached,
        ModelError,
        ModelUnavailable,
        QuotaError,
        RequestRejected,
        StreamInterrupted,
        ToolError,
    )
    from hypercode.events import (
        AssistantMessage,
        Bus,
        Event,
        Notice,
        ReasoningDelta,
        SessionEnd,
        SessionStart,
        TextDelta,
        ToolCallDelta,
        ToolCallStart,
        ToolExecutionEnd,
        ToolExecutionStart,
        ToolOutput,
        TurnEnd,
        TurnStart,
        UserMessage,
    )
    from hypercode.llm.fake import Call, Reasoning, ScriptedModel, script
    from hypercode.messages import Message, Reply, system, tool_result, user
    from hypercode.safety.approval import Answer, Asker, Mode, Question
    from hypercode.tools.base import Preview, Tool, Toolbox, ToolContext, tool

__version__ = "0.1.0"

_NAMES = {
    "agent": "Agent Complete Limits Result exit_code",
    "app": "App build",
    "config": "Config",
    "errors": "AuthError ConfigError ContextOverflow HypercodeError LimitReached ModelError ModelUnavailable QuotaError"
    " RequestRejected StreamInterrupted ToolError",
    "events": "AssistantMessage Bus Event Notice ReasoningDelta SessionEnd SessionStart TextDelta ToolCallDelta"
    " ToolCallStart ToolExecutionEnd ToolExecutionStart ToolOutput TurnEnd TurnStart UserMessage",
    "llm.fake": "Call Reasoning ScriptedModel script",
    "messages": "Message Reply system tool_result user",
    "safety.approval": "Answer Asker Mode Question",
    "tools.base": "Preview Tool ToolContext Toolbox tool",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Agent",
    "Answer",
    "App",
    "Asker",
    "AssistantMessage",
    "AuthError",
    "Bus",
    "Call",
    "Complete",
    "Config",
    "ConfigError",
    "ContextOverflow",
    "Event",
    "HypercodeError",
    "LimitReached",
    "Limits",
    "Message",
    "Mode",
    "ModelError",
    "ModelUnavailable",
    "Notice",
    "Preview",
    "Question",
    "QuotaError",
    "Reasoning",
    "ReasoningDelta",
    "Reply",
    "RequestRejected",
    "Result",
    "ScriptedModel",
    "SessionEnd",
    "SessionStart",
    "StreamInterrupted",
    "TextDelta",
    "Tool",
    "ToolCallDelta",
    "ToolCallStart",
    "ToolContext",
    "ToolError",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolOutput",
    "Toolbox",
    "TurnEnd",
    "TurnStart",
    "UserMessage",
    "__version__",
    "build",
    "exit_code",
    "script",
    "system",
    "tool",
    "tool_result",
    "user",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hypercode' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"hypercode.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
