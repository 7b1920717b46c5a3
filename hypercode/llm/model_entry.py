"""One entry of a server's model list, as far as it can be understood.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Model", "parse_models"]

_MOST = 20_000
_LONGEST_NAME = 300

_CONTEXT = (
    ("loaded_context_length",),  # LM Studio: what the model was loaded with
    ("meta", "n_ctx"),  # llama.cpp
    ("max_model_len",),  # vLLM
    ("context_length",),  # OpenRouter, Together, Fireworks
    ("context_window",),  # Groq
    ("max_context_length",),  # LM Studio, Mistral
    ("max_input_tokens",),  # LiteLLM, Anthropic
    ("inputTokenLimit",),  # Google
    ("top_provider", "context_length"),
    ("details", "context_length"),  # Ollama
    ("meta", "n_ctx_train"),  # llama.cpp, where only the training is known
)
_OUTPUT = (
    ("top_provider", "max_completion_tokens"),  # OpenRouter
    ("max_completion_tokens",),  # Groq
    ("max_output_tokens",),
    ("max_output_length",),
    ("outputTokenLimit",),  # Google
)


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be chosen.

    `context` and `max_output` are tokens, prices USD per token; None is what the server does not say, or what varies.
    `tools` and `reasoning` are None where nothing is said; `efforts` are the levels of reasoning that can be asked for.
    """

    id: str
    name: str
    context: int | None = None
    max_output: int | None = None
    price_prompt: float | None = None
    price_completion: float | None = None
    tools: bool | None = None
    reasoning: bool | None = None
    input_modalities: tuple[str, ...] = ()
    efforts: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


def parse_models(answer: Mapping[str, Any]) -> tuple[list[Model], int]:
    """The models of an answer, each id once, and how many entries could not be understood.

    Entries that are no chat models (embeddings, images out) are passed over.
    """
    entries = next((v for v in (answer.get("data"), answer.get("models")) if isinstance(v, list)), [])
    models: dict[str, Model] = {}
    odd = 0
    for entry in entries[:_MOST]:
        if isinstance(entry, str):
            entry = {"id": entry}
        ident = _id(entry) if isinstance(entry, dict) else None
        if ident is None:
            odd += 1
        elif ident not in models and _talks(entry):
            models[ident] = _model(ident, entry)
    return list(models.values()), odd


def _model(ident: str, entry: Mapping[str, Any]) -> Model:
    name = next(filter(None, (_label(entry.get(key)) for key in ("display_name", "displayName", "name"))), ident)
    pricing = entry.get("pricing")
    pricing = pricing if isinstance(pricing, dict) else {}
    reasoning = entry.get("reasoning")
    efforts = reasoning.get("supported_efforts") if isinstance(reasoning, dict) else None
    return Model(
        ident,
        name,
        _loaded(entry) or _first(entry, _CONTEXT),
        _first(entry, _OUTPUT),
        _price(pricing.get("prompt")),
        _price(pricing.get("completion")),
        _able(entry, "tools", "tool_use", "function_calling", "trained_for_tool_use"),
        _able(entry, "reasoning", "include_reasoning", "thinking"),
        _modalities(entry),
        _words(efforts),
        tuple(a for a in _words(entry.get("aliases")) if a != ident),
    )


def _id(entry: Mapping[str, Any]) -> str | None:
    """The name by which the model is asked for."""
    for key in ("id", "key", "model", "name"):
        value = entry.get(key)
        if isinstance(value, str) and value.strip():
            value = value.strip().removeprefix("models/") if key == "name" else value.strip()
            return value if value.isprintable() and len(value) <= _LONGEST_NAME else None
    return None


def _label(value: Any) -> str:
    text = " ".join(value.split())[:_LONGEST_NAME] if isinstance(value, str) else ""
    return "".join(c if c.isprintable() else "?" for c in text)


def _talks(entry: Mapping[str, Any]) -> bool:
    """Whether the model answers with text, as far as the entry says."""
    if str(entry.get("type")).lower() in (
        "embedding",
        "embeddings",
        "rerank",
        "reranker",
        "image",
        "moderation",
        "audio",
    ):
        return False
    architecture = entry.get("architecture")
    out = _words(architecture.get("output_modalities")) if isinstance(architecture, dict) else ()
    return not out or "text" in out


def _first(entry: Mapping[str, Any], places: tuple[tuple[str, ...], ...]) -> int | None:
    for place in places:
        value: Any = entry
        for key in place:
            value = value.get(key) if isinstance(value, dict) else None
        if (number := _count(value)) is not None:
            return number
    return None


def _loaded(entry: Mapping[str, Any]) -> int | None:
    """LM Studio's newer list: the smallest window of the loaded instances."""
    instances = entry.get("loaded_instances")
    sizes = [
        _count(instance["config"].get("context_length"))
        for instance in (instances if isinstance(instances, list) else [])
        if isinstance(instance, dict) and isinstance(instance.get("config"), dict)
    ]
    return min((size for size in sizes if size is not None), default=None)


def _count(value: Any) -> int | None:
    """A number of tokens: positive, and no flag."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 16:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 1 <= value < 1e12 else None


def _price(value: Any) -> float | None:
    """USD per token; negative means that it varies (a router), which is nothing one can show."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        price = float(value)
    except (ValueError, OverflowError):
        return None
    return price if 0 <= price < 1e3 else None


def _able(entry: Mapping[str, Any], *words: str) -> bool | None:
    """Whether one of the words is among what the model can do; None where there is no such list."""
    known = False
    for key in ("supported_parameters", "capabilities", "supported_features", "features"):
        value = entry.get(key)
        if isinstance(value, dict):
            hits = [value[word] for word in words if isinstance(value.get(word), bool)]
            if any(hits):
                return True
            known = known or bool(hits)
        elif isinstance(value, list):
            if not set(words).isdisjoint(_words(value)):
                return True
            known = True
    return False if known else None


def _modalities(entry: Mapping[str, Any]) -> tuple[str, ...]:
    architecture = entry.get("architecture")
    said = _words(architecture.get("input_modalities")) if isinstance(architecture, dict) else ()
    if said:
        return said
    capabilities = entry.get("capabilities")
    sees = entry.get("type") == "vlm" or (isinstance(capabilities, dict) and capabilities.get("vision") is True)
    return ("text", "image") if sees or "vision" in _words(capabilities) else ()


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(v for v in value if isinstance(v, str) and v and v.isprintable() and len(v) <= _LONGEST_NAME)
