"""One streamed model call over the OpenAI SDK: `Client.complete`.

The only module that imports `openai` (and, behind it, its HTTP library), and only when it is needed: the import takes
half a second.  The SDK does authentication, connections and proxies; bodies are encoded, streams read and errors read
here, because servers do not keep what its typed models promise.  Nothing of the environment's `OPENAI_*` variables
reaches a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from hypercode.errors import ModelError, ModelUnavailable, RequestRejected, StreamInterrupted
from hypercode.events import Event, Notice
from hypercode.llm.assemble import Assembler, forget
from hypercode.llm.errors import brief, http_error, no_stream_error, unreachable_error
from hypercode.llm.oddities import Oddities
from hypercode.llm.outline import log_request
from hypercode.llm.quirks import (
    REFUSABLE,
    attribution,
    encode_body,
    host_of,
    is_loopback,
    is_openrouter,
    refused_field,
    request_body,
)
from hypercode.llm.retry import may_fall_back, may_retry, seconds, wait_before
from hypercode.llm.settings import ModelSettings
from hypercode.llm.sse import parse_object
from hypercode.llm.stream import StreamReader
from hypercode.messages import Message, Reply

if TYPE_CHECKING:
    import httpx2
    import openai

__all__ = ["Client"]

_CLOSE_SECONDS = 0.1
_ERROR_BODY_SECONDS = 2.0
_ERROR_BODY_BYTES = 64 * 1024
_GET_SECONDS = 30.0
_KEEP_ALIVE_SECONDS = 120.0
_NO_KEY = "no-key"

Emit = Callable[[Event], None]


class Client:
    """A connection to one server.  `settings` may be replaced at any time; the next call uses the new ones.

    `last_sign_of_life` is the time (`time.monotonic`) of the last bytes of the current answer, keep-alives included;
    `retries` counts the repetitions of all calls so far, and `retry_at` is the time of the next one while it is waited for.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = settings
        self.last_sign_of_life: float | None = None
        self.retries, self.retry_at = 0, 0.0
        self._oddities = Oddities()
        self._sdk: openai.AsyncOpenAI | None = None
        self._sdk_for: tuple[Any, ...] = ()
        self._refused: dict[tuple[str, str], frozenset[str]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def warm_up(self) -> None:
        """Import what the first call needs.  Blocks for about half a second: call it in a thread."""
        _import_sdk()

    async def aclose(self) -> None:
        """Close all connections.  A later call opens new ones."""
        if self._closing:
            await asyncio.wait(self._closing, timeout=_CLOSE_SECONDS)
        sdk, self._sdk = self._sdk, None
        if sdk is not None:
            await self._bounded(sdk.close())

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], reply: Reply, emit: Emit
    ) -> None:
        """Stream one reply into `reply` and announce its pieces.

        Returns when the turn came to a known end (a finish reason or `[DONE]`).  Passing failures are repeated while
        nothing was shown, then the fallback models are tried, each step with a Notice.  Raises a `ModelError`:
        `StreamInterrupted` where the answer broke off or fell silent, another one where the server reported an error.
        Whatever had arrived by then, or by a cancellation, is in `reply`.
        """
        settings = self.settings
        started = time.monotonic()
        models = [settings.model]
        if not is_openrouter(settings.base_url):
            models += [m for m in settings.fallbacks if m != settings.model]
        for position, model in enumerate(models):
            following = models[position + 1] if position + 1 < len(models) else None
            try:
                await self._persist(model, messages, tools, reply, emit, started, patient=following is None)
            except ModelError as error:
                if following is None or reply.shown or not may_fall_back(error):
                    raise
                emit(Notice("warning", f"{model} cannot answer ({brief(error)}); trying {following} instead."))
            else:
                for notice in self._oddities.of(settings, model, reply, messages):
                    emit(notice)
                return

    async def get_json(self, path: str) -> dict[str, Any]:
        """The JSON object at a path below the base URL (`/models`, `/key`).  Raises a `ModelError`."""
        settings = self.settings
        try:
            async with asyncio.timeout(_GET_SECONDS):
                sdk = await self._connect(settings)
                import httpx2

                response = await sdk.get(path, cast_to=httpx2.Response)
                body = response.content
        except TimeoutError:
            raise ModelUnavailable(
                f"{host_of(settings.base_url)} did not answer within {_GET_SECONDS:.0f} s."
            ) from None
        except Exception as error:  # noqa: BLE001  translated, or raised again
            _raise_translated(error, settings)
        value = parse_object(body.decode("utf-8", "replace"))
        if value is None:
            raise no_stream_error(body, response.headers.get("content-type", ""), host_of(settings.base_url))
        return value

    async def _persist(
        self,
        model: str,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]],
        reply: Reply,
        emit: Emit,
        started: float,
        *,
        patient: bool,
    ) -> None:
        """Ask one model, again and again if need be; with a fallback at hand (not `patient`) only twice."""
        tries = self.settings.max_retries + 1 if patient else min(self.settings.max_retries + 1, 2)
        place = (self.settings.base_url, model)
        attempt = 1
        while True:
            refused = self._refused.get(place, frozenset())
            body = request_body(self.settings, model, messages, tools, refused)
            try:
                await self._attempt(body, reply, emit, started)
                return
            except ModelError as error:
                if reply.shown:
                    raise
                if field := refused_field(error, body, refused):
                    self._refused[place] = refused | {field}
                    told = f"{host_of(self.settings.base_url)} does not take {REFUSABLE[field]}; asking without."
                    emit(Notice("info", told))
                    continue
                if attempt >= tries or not may_retry(error):
                    raise
                attempt += 1
                wait = wait_before(attempt, error)
                emit(Notice("warning", f"retrying in {seconds(wait)} ({brief(error)}), try {attempt} of {tries}"))
            self.retries, self.retry_at = self.retries + 1, time.monotonic() + wait
            forget(reply)
            try:
                await asyncio.sleep(wait)
            finally:
                self.retry_at = 0.0

    async def _attempt(self, body: dict[str, Any], reply: Reply, emit: Emit, started: float) -> None:
        """Send the request once and read its stream."""
        settings = self.settings
        known = frozenset(str(tool.get("function", {}).get("name")) for tool in body.get("tools", ()))
        assembler = Assembler(reply, emit, known, started, host_of(settings.base_url))
        stream = StreamReader(settings, assembler)
        response: httpx2.Response | None = None
        complete = False
        self.last_sign_of_life = None
        try:
            sdk = await self._connect(settings)  # before the clock: the import is not the server's time
            try:
                async with asyncio.timeout(None) as scope:
                    stream.start(scope)
                    log_request(body)
                    response = await _open(sdk, body)
                    self.last_sign_of_life = time.monotonic()
                    async for data in response.aiter_bytes():
                        self.last_sign_of_life = time.monotonic()
                        await stream.take(data)
                    stream.close(response.headers.get("content-type", ""))
            except TimeoutError:
                stream.flush()
                if not assembler.finished:
                    raise stream.silence(answered=response is not None) from None
            except Exception as error:
                if not isinstance(error, ModelError):
                    stream.flush()
                if not assembler.finished or isinstance(error, ModelError):
                    raise
            complete = True
        except Exception as error:  # noqa: BLE001  translated, or raised again
            _raise_translated(error, settings, begun=response is not None)
        finally:
            stream.stop()
            assembler.close(complete=complete)
            if response is not None:
                reply.generation_id = response.headers.get("x-generation-id") or reply.generation_id
                await self._bounded(response.aclose())
        if assembler.lost:
            emit(Notice("warning", f"{assembler.lost} unreadable line(s) of the stream were skipped."))

    async def _connect(self, settings: ModelSettings) -> openai.AsyncOpenAI:
        """The SDK's client for these settings and this event loop."""
        headers = {**attribution(settings.base_url), **settings.headers}
        wanted = (
            settings.base_url,
            settings.api_key,
            tuple(headers.items()),
            settings.connect_timeout,
            id(asyncio.get_running_loop()),
        )
        if self._sdk is None or self._sdk_for != wanted:
            old, self._sdk = self._sdk, None
            if old is not None and self._sdk_for[-1] == wanted[-1]:
                await self._bounded(old.close())
            self._sdk = await asyncio.to_thread(_build_sdk, settings, headers)
            self._sdk_for = wanted
        return self._sdk

    async def _bounded(self, closing: Any) -> None:
        """Let something close, for 100 ms at most, even if the caller is cancelled again meanwhile."""
        task = asyncio.ensure_future(_quietly(closing))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        done, _ = await asyncio.wait({task}, timeout=_CLOSE_SECONDS)
        if not done:
            task.cancel()  # which makes the HTTP library drop the transport


async def _open(sdk: openai.AsyncOpenAI, body: dict[str, Any]) -> httpx2.Response:
    """The response, its body unread.

    `post` is the SDK's public way to an endpoint without its typed wrappers, which would import twenty more modules
    and walk through the whole history to check it (60 ms a request at 150 turns).
    """
    import openai

    stream = await sdk.post(
        "/chat/completions",
        cast_to=object,
        content=encode_body(body),
        options={"headers": {"Content-Type": "application/json", "Accept": "text/event-stream"}},
        stream=True,
        stream_cls=openai.AsyncStream[object],
    )
    return stream.response


def _import_sdk() -> None:
    """Import the SDK, keeping `OPENAI_LOG` from it, which would let it write on the terminal.

    The garbage collector pauses meanwhile: the import makes a hundred thousand objects and no garbage.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        with _without_openai_variables():
            import httpx2  # noqa: F401
            import openai  # noqa: F401
    finally:
        if collecting:
            gc.enable()


@contextlib.contextmanager
def _without_openai_variables() -> Iterator[None]:
    """The SDK fills what it was not told (organization, project, headers, log level) from these."""
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("OPENAI_")}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _build_sdk(settings: ModelSettings, headers: dict[str, str]) -> openai.AsyncOpenAI:
    """The SDK's client: no retries of its own, no proxy to this machine, no clock but the one for connecting."""
    _import_sdk()
    import httpx2
    import openai

    loopback = is_loopback(settings.base_url)
    # a plain-HTTP server on this machine needs no certificates, and loading them takes 20 ms
    plain = loopback and settings.base_url.startswith("http:")
    verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True

    async def check(response: httpx2.Response) -> None:
        await _check_response(response, settings, loopback=loopback)

    try:
        http_client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=settings.connect_timeout),
            limits=httpx2.Limits(
                max_connections=100, max_keepalive_connections=4, keepalive_expiry=_KEEP_ALIVE_SECONDS
            ),
            trust_env=not loopback,
            verify=verify,
            follow_redirects=True,
            event_hooks={"response": [check]},
        )
        with _without_openai_variables():
            return openai.AsyncOpenAI(
                api_key=settings.api_key or _NO_KEY,
                base_url=settings.base_url,
                max_retries=0,
                timeout=httpx2.Timeout(None, connect=settings.connect_timeout),
                default_headers=headers,
                http_client=http_client,
            )
    except (ImportError, ValueError, openai.OpenAIError) as error:  # a SOCKS proxy without its package, an odd URL
        raise RequestRejected(
            f"cannot connect to {settings.base_url}: {error}. Check the base URL and the proxy."
        ) from None


async def _check_response(response: httpx2.Response, settings: ModelSettings, *, loopback: bool) -> None:
    """Called with each response before it is read, redirects included."""
    if response.has_redirect_location:
        target = response.request.url.join(response.headers["location"])
        source = response.request.url
        upgraded = source.scheme == "http" and target.scheme == "https" and source.host == target.host
        if source.origin != target.origin and (loopback or not upgraded):
            raise RequestRejected(
                f"{host_of(settings.base_url)} redirects to {target.host}, which is not the configured server. "
                "If that is right, set the base URL to it."
            )
        return
    if response.status_code < 400:
        return
    body = b""
    with contextlib.suppress(Exception):  # whatever of the body can be read; the status is known
        async with asyncio.timeout(min(_ERROR_BODY_SECONDS, settings.first_event_timeout / 2)):
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _ERROR_BODY_BYTES:
                    break
    error = http_error(
        response.status_code,
        settings.without_key(body.decode("utf-8", "replace")).encode(),
        {k.lower(): v for k, v in response.headers.items()},
        host=host_of(settings.base_url),
        key=settings.key_from,
        local=loopback,
        redirected=response.request.method == "GET" and response.url.path.endswith("/chat/completions"),
    )
    _raise_translated(error, settings)


def _raise_translated(error: Exception, settings: ModelSettings, *, begun: bool = False) -> NoReturn:
    """Raise what an exception means for the person; the key is in no text.  Unknown exceptions are raised as they are."""
    import httpx2
    import openai

    host = host_of(settings.base_url)
    if isinstance(error, ModelError):
        error.args = (settings.without_key(str(error)),)
        error.__notes__ = [settings.without_key(note) for note in getattr(error, "__notes__", ())]
        raise error
    if isinstance(error, openai.APIStatusError):
        headers = {k.lower(): v for k, v in error.response.headers.items()}
        local, key = is_loopback(settings.base_url), settings.key_from
        raise http_error(error.status_code, b"", headers, host=host, key=key, local=local) from None
    if isinstance(error, openai.APITimeoutError):
        raise ModelUnavailable(
            f"cannot reach {host}: no connection within {seconds(settings.connect_timeout)}."
        ) from None
    if isinstance(
        error, openai.APIConnectionError | httpx2.HTTPError | httpx2.StreamError | httpx2.InvalidURL | ssl.SSLError
    ):
        if begun:
            raise StreamInterrupted(
                f"The connection to {host} broke in the middle of the answer. What came is kept."
            ) from None
        raise unreachable_error(error, settings.base_url) from None
    if isinstance(error, openai.OpenAIError):
        raise RequestRejected(f"The request to {host} could not be made: {error}") from None
    raise error


async def _quietly(closing: Any) -> None:
    with contextlib.suppress(Exception):
        await closing
