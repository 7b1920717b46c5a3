"""What the person should know of an answer that is complete: who gave it, and that no cache was read for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hypercode.budget import counted
from hypercode.events import Notice
from hypercode.llm.error_bodies import short
from hypercode.llm.quirks import is_openrouter
from hypercode.llm.settings import ModelSettings
from hypercode.messages import EARLIER, Message, Reply, text_of

__all__ = ["Oddities", "same_model"]

_DATE = r"(?<![a-z0-9])(20\d\d([-.]?\d\d){1,2}|\d\d-20\d\d|\d\d-\d\d|\d{6}|\d{4}|\d{3})(?![a-z0-9])"
"""A date or a number of a version at the end of a name: 20250514, 2024-08-06, 08-2024, 05-28, 250414, 0613, 001."""
_CHOOSES = r"^(openrouter/|~|@)|(^|[/:_-])(auto|router|latest)($|[:@_-])|@preset/"
"""A name that stands for whatever model is chosen for the request."""
_ANTHROPIC = r"\b(anthropic|claude)\b"
_LARGE_LEAST = r"haiku|opus-4[.-]?[5-9]"
_NAME_LENGTH = 120


class Oddities:
    """Tells what is odd about answers, and remembers what it has told."""

    def __init__(self) -> None:
        self._answered: set[tuple[str, str]] = set()
        self._settled: set[int] = set()
        self._last = 0, ""

    def of(self, settings: ModelSettings, model: str, reply: Reply, sent: Sequence[Message]) -> list[Notice]:
        """What is to be said of the answer to `sent`, for which `model` was asked."""
        return [*self._change(settings, model, reply.model or model), *self._cache(settings, model, reply, sent)]

    def _change(self, settings: ModelSettings, model: str, answered: str) -> list[Notice]:
        """Another model answered: a fallback each time, as each of its answers may cost more; any other one once.

        OpenRouter names the model that answered.  Other servers also answer with aliases and the names of files (llama.cpp,
        LM Studio, vLLM): only the name of another one of the configured models means something there.
        """
        openrouter, name = is_openrouter(settings.base_url), short(answered, _NAME_LENGTH)
        if same_model(model, answered):
            return []
        listed = any(same_model(other, answered) for other in settings.fallbacks)
        if openrouter and listed:
            return [Notice("warning", f"{model} could not answer; this answer is by {name}.")]
        if openrouter:
            meant = re.search(_CHOOSES, model.lower()) is not None
        else:
            meant = not (settings.fallbacks and (listed or same_model(settings.model, answered)))
        if meant or (model, name) in self._answered:
            return []
        self._answered.add((model, name))
        return [Notice("info", f"Answered by {name}, not {model}.")]

    def _cache(self, settings: ModelSettings, model: str, reply: Reply, sent: Sequence[Message]) -> list[Notice]:
        """Once in a conversation: no cache was ever read for a model that caches only when asked to, from its second call on."""
        answered, replies = reply.model or model, sum(message.get("role") == "assistant" for message in sent)
        conversation, before = self._conversation(sent), self._last
        if not replies:
            self._settled.discard(conversation)
        else:
            self._last = conversation, answered
        tokens, cached = _counts(reply.usage or {})
        if cached:
            self._settled.add(conversation)
        anew = before[0] == conversation and before[1] != answered  # the cache of another model is no use to this one
        named = next((name for name in (model, answered) if re.search(_ANTHROPIC, name.lower())), None)
        if cached != 0 or not replies or anew or named is None or conversation in self._settled:
            return []
        told = f"{short(named, _NAME_LENGTH)} read nothing from its cache"
        advice = 'cache_control = {type = "ephemeral"} in the configuration asks for it'
        if "cache_control" in settings.extra_body:
            if (tokens or 0) < _least(answered):
                return []
            told += ", though cache_control asks for it"
            advice = "a cache lasts for minutes, and at one provider only"
            if is_openrouter(settings.base_url) and "session_id" not in settings.extra_body:
                advice += ", which session_id in the configuration keeps"
        self._settled.add(conversation)
        return [Notice("warning", f"{told}, so the whole request is billed; {advice}.")]

    def _conversation(self, sent: Sequence[Message]) -> int:
        """What tells one conversation from another: its first message; one that was made shorter is the one before."""
        first = next((text_of(message) for message in sent if message.get("role") == "user"), "")
        return self._last[0] if first.startswith(EARLIER) else hash(first)


def _counts(usage: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The tokens of the prompt, and those of them that were read from a cache; None where the server does not say."""
    return counted(usage, "prompt_tokens"), counted(usage, "prompt_tokens_details", "cached_tokens")


def _least(model: str) -> int:
    """The least number of tokens that Anthropic caches (https://docs.claude.com/en/docs/build-with-claude/prompt-caching)."""
    return 4_096 if re.search(_LARGE_LEAST, model.lower()) else 1_024


def same_model(asked: str, answered: str) -> bool:
    """Whether two names are forms of one model's name.

    The provider before the name, a variant such as `:free` behind it, the order of its words, and a date or version that
    only one of the two has make no other model.
    """
    if asked == answered:
        return True
    (words, dates), (others, later) = _parts(asked), _parts(answered)
    return words == others and (not dates or not later or dates.endswith(later) or later.endswith(dates))


def _parts(name: str) -> tuple[list[str], str]:
    """The words of a model's name, and the digits of its date."""
    name = re.sub(r":[a-z]+$|@preset/.*", "", name.lower().strip()).rpartition("/")[2]
    dates = "".join(re.sub(r"\D", "", found[0]) for found in re.finditer(_DATE, name))
    return sorted(re.findall(r"[^\W_]+", re.sub(_DATE, "", name))), dates
