"""What a tool is: a function, its schema made from the signature, and the box that holds them all.

A tool is one async function in a file of its own::

    @tool("read")
    async def read(ctx: ToolContext, path: str, offset: int = 1) -> str:
        \"\"\"What the model is told.\"\"\"

The signature is the schema, the docstring is what the model is told, the return value is what the model reads, and
`ctx.output` is what the person sees meanwhile.  A tool that cannot do what it was asked raises `ToolError`.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from hypercode.errors import ToolError
from hypercode.safety.needs import Passes
from hypercode.safety.paths import FileGuard
from hypercode.safety.private_file import private_folder

if TYPE_CHECKING:
    from hypercode.safety.sandbox import Box

__all__ = [
    "MAX_RESULT_CHARACTERS",
    "MAX_RESULT_LINES",
    "Effect",
    "Ledger",
    "Preview",
    "Tool",
    "ToolContext",
    "Toolbox",
    "cap",
    "tool",
]

Effect = Literal["read", "edit", "shell"]
"""What a tool may do to the machine; approval and concurrency go by it."""

MAX_RESULT_CHARACTERS = 30_000
MAX_RESULT_LINES = 2_000


@dataclass(frozen=True, slots=True)
class Preview:
    """What a call would do, for the person who is asked.

    `text` is a unified diff or a note.  `confirm` demands a person's yes in every mode and says why.
    """

    text: str
    confirm: str | None = None


class Ledger:
    """Which files the model has read, by the hash of what it saw."""

    def __init__(self) -> None:
        self._seen: dict[Path, bytes] = {}

    def saw(self, path: Path, digest: bytes) -> None:
        """Note that the model knows the content with this hash at this real path."""
        self._seen[path] = digest

    def known(self, path: Path) -> bytes | None:
        """The hash of what the model last saw there; None if it never did."""
        return self._seen.get(path)


@dataclass(slots=True)
class ToolContext:
    """What a tool gets beside its arguments.

    `files` resolves and guards paths, `environment` is what child processes get, `spill` is the folder for outputs that
    are too long for the model (`most` characters).  `output` shows the person a piece of what the call prints at once, `tell`
    says a sentence about it, also where no output is shown.  Commands run in the `box`, with what `passes` says was
    approved for them beyond its usual.
    """

    files: FileGuard
    spill: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    box: Box | None = None
    passes: Passes = field(default_factory=Passes)
    output: Callable[[str], None] = lambda text: None
    tell: Callable[[str], None] = lambda text: None
    most: int = MAX_RESULT_CHARACTERS

    @property
    def workspace(self) -> Path:
        """The folder in which relative paths start and commands run."""
        return self.files.workspace


PreviewFunction = Callable[..., Awaitable[Preview | None]]


@dataclass(frozen=True)
class Tool:
    """A function the model can call.  `preview` works out what a call would do, without doing it."""

    name: str
    effect: Effect
    function: Callable[..., Awaitable[str]]
    preview_function: PreviewFunction | None = None

    @cached_property
    def description(self) -> str:
        """What the model is told: the function's docstring."""
        return inspect.cleandoc(self.function.__doc__ or "")

    @cached_property
    def _model(self) -> Any:
        from pydantic import ConfigDict, create_model

        hints = get_type_hints(self.function, include_extras=True)
        parameters = list(inspect.signature(self.function).parameters.values())[1:]
        fields: dict[str, Any] = {
            p.name: (hints[p.name], ... if p.default is inspect.Parameter.empty else p.default) for p in parameters
        }
        return create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The tool in the wire format of the chat-completions API."""
        parameters = _plain(self._model.model_json_schema())
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with the types of the signature.

        Raises ToolError `bad_arguments`, naming each argument that is wrong.
        """
        from pydantic import ValidationError

        try:
            model = self._model.model_validate(arguments)
        except ValidationError as error:
            try:
                model = self._model.model_validate(_decoded(arguments, error))
            except ValidationError:
                raise ToolError("bad_arguments", self._complaint(error)) from None
        return {name: getattr(model, name) for name in type(model).model_fields}

    def _complaint(self, error: Any) -> str:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)]
        names = ", ".join(self._model.model_fields)
        return f"{'; '.join(problems)}. {self.name} takes: {names}."

    async def preview(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> Preview | None:
        """What the call would do; raises ToolError where it could not be done anyway."""
        return await self.preview_function(ctx, **arguments) if self.preview_function else None

    async def call(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        """Run the tool with validated arguments; what comes back is capped for the model."""
        return cap(await self.function(ctx, **arguments), ctx.spill, ctx.most)


def tool(
    effect: Effect, *, name: str | None = None, preview: PreviewFunction | None = None
) -> Callable[[Callable[..., Awaitable[str]]], Tool]:
    """Make a tool of an async function; its name is the function's unless `name` is given."""

    def decorate(function: Callable[..., Awaitable[str]]) -> Tool:
        return Tool(name or function.__name__, effect, function, preview)

    return decorate


class Toolbox:
    """The tools of a session, by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {t.name: t for t in sorted(tools, key=lambda t: t.name)}

    @classmethod
    def discover(cls) -> Toolbox:
        """Every tool that a module of this package defines."""
        package = importlib.import_module("hypercode.tools")
        names = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name != "base"]
        modules = [importlib.import_module(f"hypercode.tools.{name}") for name in names]
        return cls(value for module in modules for value in vars(module).values() if isinstance(value, Tool))

    def plus(self, *tools: Tool | None) -> Toolbox:
        """The box with further tools; None is no tool."""
        return Toolbox([*self._tools.values(), *(t for t in tools if t is not None)])

    def add(self, *tools: Tool) -> None:
        """Put further tools into this box, also for a turn that is going on."""
        self._tools = self.plus(*tools)._tools

    @property
    def names(self) -> list[str]:
        """The names, sorted."""
        return list(self._tools)

    def only(self, *effects: Effect) -> Toolbox:
        """The box with just the tools of these effects."""
        return Toolbox(t for t in self._tools.values() if t.effect in effects)

    def named(self, *names: str) -> Toolbox:
        """The box with just the tools of these names."""
        return Toolbox(t for t in self._tools.values() if t.name in names)

    def schemas(self) -> list[dict[str, Any]]:
        """All tools for a request, sorted by name so that a provider's cache can hit."""
        return [t.schema for t in self._tools.values()]

    def effect(self, name: str) -> Effect | None:
        """What the tool of that name may do; None where there is no such tool."""
        found = self._tools.get(name)
        return found.effect if found else None

    def find(self, name: str) -> Tool:
        """The tool of that name.  Raises ToolError `unknown_tool`."""
        try:
            return self._tools[name]
        except KeyError:
            raise ToolError(
                "unknown_tool", f"There is no tool {name!r}. The tools are: {', '.join(self.names)}."
            ) from None


def cap(text: str, spill: Path, most: int = MAX_RESULT_CHARACTERS) -> str:
    """The text, or its head and tail with the name of the file that has the whole where it is too long for a model."""
    lines = text.split("\n")
    if len(text) <= most and len(lines) <= MAX_RESULT_LINES:
        return text
    path = spill / f"output-{secrets.token_hex(6)}.txt"
    try:
        private_folder(spill)
        with open(path, "x", encoding="utf-8", errors="replace", opener=_private) as file:
            file.write(text)
        where = f"the whole is in {path}"
    except OSError as error:
        where = f"the rest could not be kept: {error.strerror}"
    head = "\n".join(lines[: MAX_RESULT_LINES // 2])[: most // 2]
    tail = "\n".join(lines[-(MAX_RESULT_LINES // 2) :])[-(most // 2) :]
    return f"{head}\n[... {len(text)} characters in {len(lines)} lines; left out here: the middle; {where} ...]\n{tail}"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _plain(schema: Any, definitions: Mapping[str, Any] | None = None) -> Any:
    """The schema as every server takes it: definitions in their place, no titles, no null beside another type."""
    if isinstance(schema, list):
        return [_plain(v, definitions) for v in schema]
    if not isinstance(schema, dict):
        return schema
    definitions = definitions or schema.get("$defs", {})
    if "$ref" in schema:
        return _plain(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    options = [o for o in schema.get("anyOf", []) if o != {"type": "null"}]
    if len(options) == 1:
        schema = options[0] | {k: v for k, v in schema.items() if k not in ("anyOf", "default")}
    kept = {k: v for k, v in schema.items() if k != "$defs" and not (k == "title" and isinstance(v, str))}
    return {k: _plain(v, definitions) for k, v in kept.items()}


def _decoded(arguments: Mapping[str, Any], error: Any) -> dict[str, Any]:
    """The arguments with those that failed as what was probably meant.

    Some models encode lists and numbers twice, or the entries of a list, or send one entry without its list.
    """
    failed = {e["loc"][0] for e in error.errors(include_url=False) if e["loc"]}
    return {name: _meant(value) if name in failed else value for name, value in arguments.items()}


def _meant(value: Any) -> Any:
    value = _parsed(value)
    if isinstance(value, dict):
        return [value]
    return list(map(_parsed, value)) if isinstance(value, list) else value


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
