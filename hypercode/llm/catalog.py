"""The model list of a server: what can be chosen, how much fits in, what it costs.

`GET /models` in the shapes of OpenRouter (https://openrouter.ai/docs/models), OpenAI, llama.cpp (`meta.n_ctx`), vLLM
(`max_model_len`), LM Studio (`max_context_length`, `loaded_context_length`), Ollama, Groq, Mistral and Google.  What a server
does not say is None.  The list is kept per base URL, for a day, and used when the server cannot be asked.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hypercode.errors import ModelError
from hypercode.llm.errors import brief
from hypercode.llm.model_entry import Model, parse_models
from hypercode.llm.quirks import host_of, is_loopback, is_openrouter
from hypercode.safety.private_file import Unusable, private_folder, read_private, replace_private

__all__ = ["COLUMNS", "FRESH_SECONDS", "Catalog", "cached", "load", "rows", "search", "table"]

FRESH_SECONDS = 24 * 3600.0
"""How long a list is taken as it is; a server on this machine, which can load another model at any time, is asked again
after a minute."""

COLUMNS = ("model", "context", "output", "$/M in", "$/M out", "abilities")

_FRESH_LOCAL = 60.0
_LIMIT = 16 << 20
_MOST_PAGES = 20
_VERSION = 1
_VARIANTS = frozenset({"free", "nitro", "floor", "exacto", "online", "extended", "thinking", "beta"})

GetJson = Callable[[str], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Catalog:
    """The models of one server.

    `fetched` is when the list was read (seconds since the epoch); `stale` that it could not be read anew when it should
    have been.  `notices` are sentences for the person.
    """

    base_url: str
    models: tuple[Model, ...]
    fetched: float
    stale: bool = False
    notices: tuple[str, ...] = ()

    def find(self, name: str) -> Model | None:
        """The model of that name, one of its other names, or without a variant like `:nitro`; the only one of a local server.

        None where the list does not say.
        """
        by_name = {other: model for model in self.models for other in (*model.aliases, model.id)}
        by_name |= {model.id: model for model in self.models}
        base, _, variant = name.rpartition(":")
        if found := by_name.get(name) or (by_name.get(base) if variant in _VARIANTS else by_name.get(f"{name}:latest")):
            return found
        return self.models[0] if len(self.models) == 1 and not is_openrouter(self.base_url) else None


def cached(folder: Path, base_url: str) -> Catalog | None:
    """The list as it was kept, however old; None where there is none that can be used.  Asks nobody."""
    try:
        data = read_private(_place(folder, base_url), _LIMIT)
        kept = json.loads(data) if data is not None else {}
        if kept.get("version") != _VERSION or kept.get("base_url") != base_url:
            return None
        return Catalog(base_url, tuple(map(_kept_model, kept["models"])), float(kept["fetched"]))
    except (Unusable, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


async def load(
    get_json: GetJson, base_url: str, folder: Path, *, refresh: bool = False, now: Callable[[], float] = time.time
) -> Catalog:
    """The list: as it was kept while that is fresh, else from the server, else the old one, which is said.

    `get_json` is `Client.get_json`; `folder` the cache folder.  Raises a ModelError only where the server cannot be asked
    and nothing was kept.
    """
    old = cached(folder, base_url)
    fresh_for = _FRESH_LOCAL if is_loopback(base_url) else FRESH_SECONDS
    if old is not None and not refresh and 0 <= now() - old.fetched < fresh_for:
        return old
    try:
        models, odd = await _ask(get_json)
    except ModelError as error:
        if old is None:
            raise
        age = _age(now() - old.fetched)
        said = f"{host_of(base_url)} could not be asked for its models ({brief(error)}); the list is {age}."
        return Catalog(base_url, old.models, old.fetched, stale=True, notices=(said,))
    notices = [f"{odd} entries of the model list could not be understood and are left out."] if odd else []
    catalog = Catalog(base_url, tuple(models), now(), notices=tuple(notices))
    return _keep(folder, catalog)


async def _ask(get_json: GetJson) -> tuple[list[Model], int]:
    """All pages of the list, and how many entries are none."""
    models: dict[str, Model] = {}
    path: str | None = "/models"
    odd, asked = 0, set[str]()
    while path is not None and path not in asked and len(asked) < _MOST_PAGES:
        asked.add(path)
        answer = await get_json(path)
        found, unreadable = parse_models(answer)
        models |= {model.id: model for model in found if model.id not in models}
        odd += unreadable
        path = _next_page(answer)
    return list(models.values()), odd


def _next_page(answer: Mapping[str, Any]) -> str | None:
    """Where the list goes on: the query of `links.next`, at the same place, whatever host it names."""
    links = answer.get("links")
    following = links.get("next") if isinstance(links, dict) else None
    query = urlsplit(following).query if isinstance(following, str) else ""
    return f"/models?{query}" if query else None


def _place(folder: Path, base_url: str) -> Path:
    return folder / "models" / f"{sha256(base_url.encode()).hexdigest()[:24]}.json"


def _keep(folder: Path, catalog: Catalog) -> Catalog:
    """The same catalog, kept for later; where that fails, it says so."""
    place = _place(folder, catalog.base_url)
    content = {
        "version": _VERSION,
        "base_url": catalog.base_url,
        "fetched": catalog.fetched,
        "models": [asdict(model) for model in catalog.models],
    }
    try:
        private_folder(place.parent)
        replace_private(place, json.dumps(content, separators=(",", ":")).encode("ascii"), sync=False)
    except OSError as error:
        said = f"The model list could not be kept in {place.parent} ({error.strerror})."
        return Catalog(catalog.base_url, catalog.models, catalog.fetched, notices=(*catalog.notices, said))
    return catalog


_KINDS: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "name": (str,),
    "context": (int, type(None)),
    "max_output": (int, type(None)),
    "price_prompt": (float, type(None)),
    "price_completion": (float, type(None)),
    "tools": (bool, type(None)),
    "reasoning": (bool, type(None)),
    "input_modalities": (list,),
    "efforts": (list,),
    "aliases": (list,),
}


def _kept_model(entry: dict[str, Any]) -> Model:
    """A model as it was kept.  Raises ValueError for anything that this version would not have written."""
    if entry.keys() != _KINDS.keys() or not all(isinstance(entry[key], kinds) for key, kinds in _KINDS.items()):
        raise ValueError("not a model of this version")
    values: dict[str, Any] = {key: tuple(map(str, v)) if isinstance(v, list) else v for key, v in entry.items()}
    return Model(**values)


def _age(seconds: float) -> str:
    """How old a list is, in words."""
    if seconds < 0:
        return "of unknown age"
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            number = int(seconds // length)
            return f"{number} {unit}{'s' * (number != 1)} old"
    return "less than a minute old"


# -- looking through it ----------------------------------------------------------------


def search(models: Iterable[Model], words: str) -> list[Model]:
    """The models that match every word, best first; all of them, in the server's order, where there are no words.

    A word matches where it stands in the id or the name, or where its letters stand there in order.
    """
    wanted = words.lower().split()
    scored = []
    for place, model in enumerate(models):
        text = f"{model.id} {model.name}".lower()
        scores = [_score(word, text) for word in wanted]
        if all(score is not None for score in scores):
            scored.append((sum(filter(None, scores)), len(model.id) if wanted else 0, place, model))
    return [entry[-1] for entry in sorted(scored, key=lambda entry: entry[:3])]


def _score(word: str, text: str) -> float | None:
    """How well a word matches: 0 is best; None where it does not."""
    place = text.find(word)
    if place >= 0:
        begins = place == 0 or not text[place - 1].isalnum()
        ends = not text[place + len(word) : place + len(word) + 1].isalnum()
        return 0.0 if begins and ends else 1.0 if begins else 2.0
    letters = [c for c in word if c.isalnum()]
    spreads = [_spread(letters, part) for part in re.split(r"[/:\s]", text)] if len(letters) > 1 else []
    return min((10.0 + spread for spread in spreads if spread is not None), default=None)


def _spread(letters: list[str], part: str) -> int | None:
    """How many other characters stand between the letters in a part of a name; None where they are not there in order."""
    places: list[int] = []
    for letter in letters:
        place = part.find(letter, places[-1] + 1 if places else 0)
        if place < 0:
            return None
        places.append(place)
    spread = places[-1] - places[0] + 1 - len(letters)
    return spread if spread <= len(letters) + 2 else None


def rows(models: Iterable[Model]) -> list[tuple[str, ...]]:
    """A row of texts for each model, under `COLUMNS`; prices are USD for a million tokens, `?` is what the server does not say."""
    return [
        (
            model.id,
            _tokens(model.context),
            _tokens(model.max_output),
            _price(model.price_prompt),
            _price(model.price_completion),
            _abilities(model),
        )
        for model in models
    ]


def table(models: Iterable[Model]) -> list[str]:
    """The rows with their heads as aligned lines; the texts hold nothing that a terminal would obey."""
    listed: Sequence[tuple[str, ...]] = [COLUMNS, *rows(models)]
    widths = [max(len(row[i]) for row in listed) for i in range(len(COLUMNS))]
    return [
        "  ".join(
            c.ljust(w) if i in (0, 5) else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in listed
    ]


def _tokens(number: int | None) -> str:
    if number is None:
        return "?"
    if number >= 1_000_000:
        return f"{number / 1e6:.1f}M".replace(".0M", "M")
    return f"{round(number / 1000)}k" if number >= 1000 else str(number)


def _price(price: float | None) -> str:
    if price is None:
        return "?"
    if price == 0:
        return "free"
    million = price * 1e6
    digits = 2 if million >= 0.1 else 1 - math.floor(math.log10(million))
    return f"{million:.{digits}f}"


def _abilities(model: Model) -> str:
    said = [("tools", model.tools), ("reasoning", model.reasoning)]
    words = [word for word, able in said if able] + [m for m in model.input_modalities if m != "text"]
    return " ".join([*words, *(["no tools"] if model.tools is False else [])])
