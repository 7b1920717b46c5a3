"""The order of roles that strict chat templates ask for.

The API itself lets messages of one side follow each other, as where a turn failed before anything came, or a message was sent
while tools ran.  Some models' templates (Mistral, Gemma and others behind llama.cpp, vLLM, LM Studio, Ollama) raise an exception
there: "Conversation roles must alternate user/assistant/user/assistant/...", which their servers report with status 500 or
400, again for each later request of the conversation.  A message of tool calls and its results do not count for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hypercode.messages import Message, text_of

__all__ = ["ALTERNATION", "SYSTEM", "reordered", "roles_refused"]

ALTERNATION = "alternation"
SYSTEM = "system"
_SYSTEM = r"(system|developer)['\" ]+(roles?|messages?|prompts?|instructions?)"
_REFUSALS = {
    ALTERNATION: r"\balternat(e|es|ing|ion)\b",
    SYSTEM: rf"\b{_SYSTEM} (is |are )?(not |un)(supported|allowed|enabled)|\b(not|n't) support (an? |the |any )?['\"]?{_SYSTEM}",
}
_GAP = "…"
"""What stands for the answer that there was none of between the results of tools and a message of the person's."""


def roles_refused(said: str, messages: Sequence[Message], refused: frozenset[str]) -> str | None:
    """Which order of roles a server's refusal asks for that the request did not have; None where it asks for none."""
    return next(
        (
            name
            for name, pattern in _REFUSALS.items()
            if name not in refused
            and re.search(pattern, said, re.IGNORECASE)
            and reordered(messages, refused | {name}) != list(messages)
        ),
        None,
    )


def reordered(messages: Sequence[Message], refused: frozenset[str]) -> list[Message]:
    """The same conversation for a server that has `refused` messages of one side in a row, or system messages."""
    result = list(messages)
    if SYSTEM in refused:
        result = _without_system(result)
    return _alternating(result) if ALTERNATION in refused else result


def _without_system(messages: list[Message]) -> list[Message]:
    """What the system message says stands at the head of the first message of the person's."""
    told = "\n\n".join(text_of(m) for m in messages if m.get("role") == "system")
    others = [m for m in messages if m.get("role") != "system"]
    at = next((n for n, m in enumerate(others) if m.get("role") == "user"), None)
    if not told or at is None:
        return messages
    return [*others[:at], _joined({"role": "user", "content": told}, others[at]), *others[at + 1 :]]


def _alternating(messages: list[Message]) -> list[Message]:
    result: list[Message] = []
    side = "assistant"  # of the last message that counts: a conversation begins with the person
    for message in messages:
        role = str(message.get("role"))
        if role not in ("user", "assistant") or message.get("tool_calls"):
            result.append(message)
            continue
        if role == side and result and result[-1].get("role") == role and not result[-1].get("tool_calls"):
            result[-1] = _joined(result[-1], message)
            continue
        if role == side:
            result.append({"role": "assistant" if role == "user" else "user", "content": _GAP})
        result.append(message)
        side = role
    return result


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> Message:
    """Two messages of one side as one; of other fields, those of the later one go before."""
    contents = one.get("content"), other.get("content")
    if all(isinstance(content, str) or content is None for content in contents):
        content: Any = "\n\n".join(filter(None, contents))
    else:
        content = [part for c in contents for part in (c if isinstance(c, list) else [{"type": "text", "text": c}])]
    return {**one, **other, "content": content}
