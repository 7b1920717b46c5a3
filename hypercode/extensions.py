"""What a session takes from outside, and gives there: tools of installed packages, listeners that the person named, traces.

Tools and listeners are code that runs with all rights, so they come from where programs are installed and from nowhere else: a module in
the folder that is worked in could have been put there, or changed, by anybody, the model included.  What is broken is left
out with a notice.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlsplit

from hypercode.agent import Agent
from hypercode.config import Config, Folders
from hypercode.events import Bus, Notice
from hypercode.safety.paths import FileGuard
from hypercode.safety.redact import Redactor
from hypercode.tools.base import Effect, Tool

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from hypercode.trace import Sink, Trace, TraceFiles

__all__ = ["GROUP", "Extensions", "attach_listeners", "own_tools"]

GROUP = "hypercode.tools"
"""The group of entry points under which a package offers a `Tool`, or a list of them."""

_RESERVED = ("skill",)
"""Names of tools that are not in every session."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What servers of the chat-completions API take as the name of a function."""

log = logging.getLogger("hypercode")


class _Unusable(Exception):
    """Why something is left out, to follow its name in a sentence."""


class Extensions:
    """What a session has beside its own parts.

    `environ` says where traces may be sent, `session` tells the id of the conversation, `served`: the configured server
    answers, not a function that was handed over.
    """

    def __init__(
        self,
        config: Config,
        agent: Agent,
        files: FileGuard,
        redactor: Redactor,
        environ: Mapping[str, str],
        *,
        session: Callable[[], str],
        served: bool,
    ) -> None:
        self.tools: list[Tool] = []
        self._config = config
        self._agent = agent
        self._files = files
        self._served = served
        self._loading = threading.Lock()
        self._loaded = False
        self._unsaid: list[Notice] = []
        self._session = session
        self._spans: TraceFiles | None = None
        self._trace = self._open_trace(redactor, environ) if config.trace else None

    def attach(self) -> None:
        """Attach the listeners that the person named; they may need the running event loop.  Have the trace's path said."""
        if self._spans is not None:
            self._unsaid.append(Notice("info", f"trace: {self._spans.path_of(self._session())}"))
        notices = attach_listeners(self._config.listeners, self._agent.bus, self._files.roots)
        self._unsaid += [Notice("warning", text) for text in notices]

    def load(self) -> None:
        """Give the agent the tools of installed packages.  The first call does it, and blocks while they import."""
        with self._loading:
            if self._loaded:
                return
            self._loaded = True
            box = self._agent.tools
            self.tools, notices = own_tools({*box.names, *_RESERVED}, self._files.roots)
            box.add(*self.tools)
            self._unsaid += [Notice("warning", text) for text in notices]

    def tell(self) -> None:
        """Say what is to be said, on the event loop."""
        while self._unsaid:
            self._agent.bus.emit(self._unsaid.pop(0))

    def ready(self) -> None:
        """Load what is not loaded, and tell."""
        self.load()
        self.tell()

    async def aclose(self) -> None:
        """End the trace."""
        if self._trace is not None:
            await self._trace.aclose()

    def _warn(self, text: str) -> None:
        self._agent.bus.emit(Notice("warning", text))

    def _open_trace(self, redactor: Redactor, environ: Mapping[str, str]) -> Trace:
        from hypercode.trace import Trace, TraceFiles
        from hypercode.trace_otel import NotConfigured, open_otel

        self._spans = TraceFiles(Folders.of(environ).state / "traces", self._warn)
        sinks: list[Sink] = [self._spans]
        try:
            elsewhere = open_otel(environ)
        except NotConfigured as problem:
            self._unsaid.append(Notice("warning", f"Spans are only written to the file: {problem}."))
        else:
            sinks = [elsewhere, *sinks] if elsewhere is not None else sinks  # it gives the spans their ids
        return Trace(
            self._agent.bus,
            sinks,
            session=self._session,
            model=self._model,
            redactor=redactor,
            content=self._config.trace_content,
        )

    def _model(self) -> dict[str, Any]:
        """What a span says of the model, by the semantic conventions; of a function that was handed over little is known."""
        asked = {"gen_ai.request.model": self._config.model, "gen_ai.request.stream": True}
        if not self._served:
            return {"gen_ai.provider.name": "_OTHER", **asked}
        server = urlsplit(self._config.base_url)
        host, port = server.hostname or "", server.port or (443 if server.scheme == "https" else 80)
        provider = {"openrouter.ai": "openrouter", "api.openai.com": "openai"}.get(host, host)
        return {"gen_ai.provider.name": provider, **asked, "server.address": host, "server.port": port}


def own_tools(taken: Collection[str], folders: Sequence[Path]) -> tuple[list[Tool], list[str]]:
    """The tools that installed packages offer, and what is to be said of those that are left out.

    `taken` are names that are in use, `folders` those that are worked in.  Blocks for as long as the packages import: some
    5 ms where there are none.
    """
    from importlib.metadata import entry_points

    tools: dict[str, Tool] = {}
    notices = []
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (e.name, e.value)):
        try:
            for tool in _offered(entry, folders):
                _check(tool, {*taken, *tools})
                tools[tool.name] = tool
        except (_Unusable, AttributeError) as problem:  # the latter for an entry that names nothing
            package = entry.dist.name if entry.dist is not None else "that offers it"
            notices.append(f"The tool {entry.name} of the package {package} is left out: {problem}.")
    return list(tools.values()), notices


def attach_listeners(names: Iterable[str], bus: Bus, folders: Sequence[Path]) -> list[str]:
    """Call each `module:attach` with the bus; what is to be said of those that could not be attached.

    `folders` are those that are worked in.
    """
    notices = []
    for name in names:
        try:
            _attach(name, bus, folders)
        except _Unusable as problem:
            notices.append(f"The listener {name} is left out: {problem}.")
    return notices


def _attach(name: str, bus: Bus, folders: Sequence[Path]) -> None:
    module, _, path = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
        raise _Unusable("it must be named as module:function")
    _refuse_near(module, folders)

    def attach() -> Any:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        return found(bus)

    result = _safely(attach)
    if inspect.iscoroutine(result):
        result.close()
        raise _Unusable("attaching must be a plain function; bus.on(…, queued=True) takes async listeners")


def _offered(entry: EntryPoint, folders: Sequence[Path]) -> Iterator[Tool]:
    if entry.dist is not None and _is_near(Path(str(entry.dist.locate_file(""))), folders):
        raise _Unusable("it lies in the folder that is worked in")
    _refuse_near(entry.module, folders)
    offered = _safely(entry.load)
    for tool in offered if isinstance(offered, list | tuple) else [offered]:
        if not isinstance(tool, Tool):
            raise _Unusable(f"{entry.value} is {type(tool).__name__}, not a Tool or a list of them")
        yield tool


def _check(tool: Tool, taken: Collection[str]) -> None:
    """Raise _Unusable for a tool that could not be offered to a model, or whose calls could not be judged."""
    if tool.effect not in get_args(Effect):
        raise _Unusable(f"its effect is {tool.effect!r}; it must be one of {', '.join(get_args(Effect))}")
    if not _NAME.fullmatch(tool.name):
        raise _Unusable(f"{tool.name!r} is no name that servers take: letters, digits, _ and -, at most 64")
    if tool.name in taken:
        raise _Unusable(f"there is a tool {tool.name} already")
    if not inspect.iscoroutinefunction(tool.function):
        raise _Unusable("its function is not async")
    _safely(lambda: tool.schema)


def _safely(action: Callable[[], Any]) -> Any:
    """What foreign code returns.  Raises _Unusable for whatever it raises; the details go to the log."""
    try:
        return action()
    except (Exception, SystemExit) as error:  # a script without a guard ends itself when it is imported
        log.exception("an extension failed")
        first = next(iter(str(error).splitlines()), "")
        raise _Unusable(f"{type(error).__name__}: {first}; the details are in the log") from None


def _refuse_near(module: str, folders: Sequence[Path]) -> None:
    """Raise _Unusable for a module that is not there, or lies in a folder that is worked in; nothing is imported."""
    top = module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise _Unusable(f"there is no installed module {top}")
    places = [spec.origin] if spec.has_location and spec.origin else []
    if any(_is_near(Path(place), folders) for place in (*places, *(spec.submodule_search_locations or ()))):
        raise _Unusable(f"the module {top} lies in the folder that is worked in; install it")


def _is_near(place: Path, folders: Sequence[Path]) -> bool:
    """Whether a place is in a folder that is worked in, an environment with installed programs in it excepted."""
    import sysconfig

    real = place.resolve()
    libraries = [Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib", "stdlib")]
    return any(
        real.is_relative_to(folder)
        and not any(real.is_relative_to(library) and folder in library.parents for library in libraries)
        for folder in folders
    )
