"""Spans to OpenTelemetry, where its SDK is installed (the extra `otel`).

They go to the tracer provider that a program which embeds hypercode has set up; else to exporters that the standard
`OTEL_…` variables ask for.  Without either nothing is sent anywhere.  `OTEL_TRACES_EXPORTER` names exporters by their entry
points (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/); an endpoint alone means `otlp`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hypercode import __version__
from hypercode.trace import Span

if TYPE_CHECKING:
    from opentelemetry import trace as otel

__all__ = ["NotConfigured", "OtelSpans", "open_otel"]

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_OTLP = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
_GROUP = "opentelemetry_traces_exporter"
_FLUSH_SECONDS = 3.0
"""What a server that takes no spans may cost at the end."""

log = logging.getLogger("hypercode")


class NotConfigured(Exception):
    """The variables ask for an export that cannot be; the text says why, and what to do."""


class OtelSpans:
    """Gives each span to a tracer.  `provider` is a provider of our own, which is shut down at the end."""

    def __init__(self, tracer: otel.Tracer, provider: Any = None) -> None:
        self._tracer = tracer
        self._provider = provider
        self._open: dict[str, otel.Span] = {}

    def begin(self, span: Span) -> None:
        """Begin the span as a child of its parent's, whatever runs around; it takes the ids that it gets there."""
        from opentelemetry import trace
        from opentelemetry.context import Context

        above = self._open.get(span.parent.span_id) if span.parent else None
        around = trace.set_span_in_context(above, Context()) if above else None if span.parent is None else Context()
        kind = trace.SpanKind.CLIENT if span.kind == "client" else trace.SpanKind.INTERNAL
        begun = self._tracer.start_span(span.name, around, kind, start_time=span.start)
        context = begun.get_span_context()
        if context.is_valid:
            span.trace_id, span.span_id = f"{context.trace_id:032x}", f"{context.span_id:016x}"
        self._open[span.span_id] = begun

    def finish(self, span: Span) -> None:
        """End the span with all that is known of it."""
        from opentelemetry.trace import Status, StatusCode

        begun = self._open.pop(span.span_id, None)
        if begun is None:
            return
        begun.set_attributes(span.attributes)
        for event in span.events:
            begun.add_event(event["name"], event["attributes"], event["time"])
        if span.error:
            begun.set_status(Status(StatusCode.ERROR, span.error))
        begun.end(span.end)

    async def aclose(self) -> None:
        """Send what is left, for a few seconds at most."""
        if self._provider is None:
            return
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=_shut_down, args=(self._provider, loop, done), daemon=True)
        thread.start()
        try:
            async with asyncio.timeout(_FLUSH_SECONDS):
                await done.wait()
        except TimeoutError:
            log.warning("the last spans could not be sent within %g s", _FLUSH_SECONDS)


def open_otel(environ: Mapping[str, str]) -> OtelSpans | None:
    """Where the spans go by the global provider or the variables; None where neither asks for them.

    Raises NotConfigured.
    """
    wanted = _exporters(environ)
    try:
        from opentelemetry import trace
    except ImportError:
        if wanted:
            raise NotConfigured(
                "OTEL_… variables ask for an export, and OpenTelemetry is not installed: "
                "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
            ) from None
        return None
    provider = trace.get_tracer_provider()
    if not isinstance(provider, trace.ProxyTracerProvider):
        return OtelSpans(provider.get_tracer("hypercode", __version__))
    return _own(wanted) if wanted else None


def _own(names: Sequence[str]) -> OtelSpans:
    """A provider of our own with these exporters; what they log goes to our log, not on the screen."""
    exporters = [_exporter(name) for name in names]
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    inner = logging.getLogger("opentelemetry")
    inner.propagate = False
    inner.handlers = [_ToOurLog()]
    resource = Resource.create()
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "hypercode", "service.version": __version__}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return OtelSpans(provider.get_tracer("hypercode", __version__), provider)


def _exporters(environ: Mapping[str, str]) -> list[str]:
    """The names of the exporters that the variables ask for.  Raises NotConfigured."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    asked = environ.get("OTEL_TRACES_EXPORTER", "").strip() or ("otlp" if any(map(environ.get, _ENDPOINTS)) else "")
    names = [name.strip() for name in asked.split(",") if name.strip() not in ("", "none")]
    if "console" in names:
        raise NotConfigured(
            "OTEL_TRACES_EXPORTER=console would write between the answers; the trace file has the spans"
        )
    protocol = next((value.strip() for name in _PROTOCOLS if (value := environ.get(name))), "http/protobuf")
    if "otlp" in names and protocol not in _OTLP:
        raise NotConfigured(f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol} is not supported; use {' or '.join(_OTLP)}")
    return [_OTLP[protocol] if name == "otlp" else name for name in names]


def _exporter(name: str) -> Any:
    """An exporter by the name of its entry point.  Raises NotConfigured."""
    from importlib.metadata import entry_points

    found = next(iter(entry_points(group=_GROUP, name=name)), None)
    if found is None:
        package = f"opentelemetry-exporter-{name.replace('_', '-')}"
        raise NotConfigured(f"there is no exporter {name} for OpenTelemetry: pip install {package}, or choose another")
    try:
        return found.load()()
    except Exception as error:  # foreign code, made by what the variables say
        log.exception("an exporter of OpenTelemetry failed")
        raise NotConfigured(f"the exporter {name} cannot be used ({type(error).__name__}: {error})") from None


def _shut_down(provider: Any, loop: asyncio.AbstractEventLoop, done: asyncio.Event) -> None:
    try:
        provider.shutdown()
    finally:
        with contextlib.suppress(RuntimeError):  # nobody waits any more, and the loop is closed
            loop.call_soon_threadsafe(done.set)


class _ToOurLog(logging.Handler):
    """Hands over what OpenTelemetry logs."""

    def emit(self, record: logging.LogRecord) -> None:
        log.handle(record)
