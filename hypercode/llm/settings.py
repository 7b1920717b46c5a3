"""What one model connection needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["OPENROUTER_URL", "ModelSettings"]

OPENROUTER_URL = "https://openrouter.ai/api/v1"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Where requests go, and with what.

    `key_from` says where the key came from, empty where there is none, None where that is not known.
    `fallbacks` are tried when `model` cannot answer, each change announced; OpenRouter gets them as `models`.
    `first_event_timeout`, `idle_timeout` and `finish_grace` are seconds: to the first event, between two events (comments are none),
    and after a finish reason.  `max_retries` counts further tries after the first.  `extra_body` goes into each request
    as it is (`provider`, `reasoning`, `cache_control`, `session_id`, …).
    """

    base_url: str = OPENROUTER_URL
    api_key: str | None = None
    model: str = "openrouter/auto"
    fallbacks: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    temperature: float | None = None
    connect_timeout: float = 20.0
    first_event_timeout: float = 120.0
    idle_timeout: float = 90.0
    finish_grace: float = 2.0
    max_retries: int = 4
    key_from: str | None = None

    def without_key(self, text: str) -> str:
        """A server's words without the key, however they write it; servers like to repeat the one they refuse."""
        from hypercode.safety.redact import Redactor  # nobody needs it where nothing fails

        return Redactor([self.api_key] if self.api_key else [], patterns=False).text(text)
