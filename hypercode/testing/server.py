"""A model server that misbehaves on request.

    python -m hypercode.testing.server --port 0        prints {"port": …, "base_url": …}, then serves
    python -m hypercode.testing.server --help          lists the scenarios

The model's name picks the scenario (`cut`, `stall`, `429`, …); `name#tag` is the same one with a counter of its own.
`GET /v1/models` lists them.  Standard library only.  In a test::

    with FaultServer() as server:
        client = Client(ModelSettings(base_url=server.base_url, model="cut"))
        ...
        server.requests          # path, headers (without the key) and body of each request
        server.gone              # how many clients hung up before the end
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import struct
import sys
import threading
from collections import Counter
from types import TracebackType
from typing import Any

from hypercode.testing import scenarios_refused as _scenarios_refused  # noqa: F401  adds to the scenarios
from hypercode.testing.scenarios import SCENARIOS

__all__ = ["FaultServer", "main"]


class FaultServer:
    """The server, in a thread of its own.  A context manager; `host` and `port` as for a socket (0: any free port)."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._host = host
        self._wanted_port = port
        self._turns: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.requests: list[dict[str, Any]] = []
        self.gone = 0
        self.open = 0
        self.port = 0

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://{self._host}:{self.port}/v1"

    def __enter__(self) -> FaultServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listen.  Raises OSError where the port is taken."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Drop all connections and end the thread."""
        if self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(5)

    def wait(self) -> None:
        """Serve until the thread ends."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        try:
            server = await asyncio.start_server(self._connection, self._host, self._wanted_port, limit=2**26)
        except OSError as error:
            self._failure = error
            self._ready.set()
            return
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while await self._request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone += 1
        except asyncio.CancelledError:
            pass  # the server stops
        finally:
            self.open -= 1
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection can be used again."""
        first = await reader.readline()
        if not first:
            return False
        method, path, *_ = first.decode("latin-1").split()
        headers: dict[str, str] = {}
        while (line := (await reader.readline()).decode("latin-1").strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        raw = await reader.readexactly(int(headers.get("content-length") or 0))
        out = _Answer(reader, writer)
        out.key = headers.pop("authorization", "").removeprefix("Bearer ")
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = {}
        self.requests.append({"method": method, "path": path, "headers": headers, "body": body})
        if method == "GET" and path.endswith("/models"):
            return await out.json(200, {"object": "list", "data": [{"id": n, "object": "model"} for n in SCENARIOS]})
        out.model = str(body.get("model", "")) if isinstance(body, dict) else ""
        play = SCENARIOS.get(out.model.partition("#")[0])
        if method != "POST" or not path.endswith("/chat/completions") or play is None:
            return await out.json(
                404, {"error": {"code": 404, "message": f"no such path or model: {path} {out.model}"}}
            )
        self._turns[out.model] += 1
        out.turn, out.body = self._turns[out.model], body
        await out.play(play)
        return out.whole


class _Answer:
    """One answer; see `scenarios.Out`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.model = ""
        self.turn = 0
        self.key = ""
        self.body: dict[str, Any] = {}
        self.whole = False

    async def play(self, scenario: Any) -> None:
        """Play a scenario, and stop as soon as the client hangs up."""
        playing = asyncio.ensure_future(scenario(self))
        watching = asyncio.ensure_future(self._watch())
        try:
            await asyncio.wait({playing, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not playing.done():
                raise ConnectionResetError("the client hung up")
            await playing
        finally:
            playing.cancel()
            watching.cancel()
            await asyncio.gather(playing, watching, return_exceptions=True)

    async def _watch(self) -> None:
        # looked at, not read: reading would take bytes of the next request
        while not self._reader.at_eof() and not self._writer.transport.is_closing():  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def start(self, status: int = 200, **headers: str) -> None:
        fields = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"HTTP/1.1 {status} Test", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        self._writer.write("\r\n".join(lines).encode("latin-1"))
        await self._writer.drain()

    async def write(self, data: bytes) -> None:
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()
        self.whole = True

    async def cut(self, *, reset: bool = False) -> None:
        if reset:
            sock = self._writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
        self._writer.close()

    async def hang(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def json(self, status: int, value: Any) -> bool:
        """A whole JSON answer."""
        await self.start(status, Content_Type="application/json")
        await self.write(json.dumps(value).encode())
        await self.end()
        return True


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    width = max(map(len, SCENARIOS))
    listing = "\n".join(f"  {name:<{width}}  {' '.join((f.__doc__ or '').split())}" for name, f in SCENARIOS.items())
    parser = argparse.ArgumentParser(
        prog="python -m hypercode.testing.server",
        description="A model server that misbehaves on request: the model's name picks the scenario.",
        epilog=f"scenarios:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes any free port")
    options = parser.parse_args(arguments)
    server = FaultServer(options.host, options.port)
    try:
        server.start()
    except OSError as error:
        print(f"cannot listen on {options.host}:{options.port}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    print(json.dumps({"port": server.port, "base_url": server.base_url}), flush=True)  # noqa: T201
    try:
        server.wait()
    except KeyboardInterrupt:
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
