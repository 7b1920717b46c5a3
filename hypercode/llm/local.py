"""Model servers on this machine: who answers on the usual ports, with which models and windows.

`GET /v1/models` is what OpenAI-compatible servers share.  How much the loaded model takes, some say elsewhere: llama.cpp in
`/props` (`default_generation_settings.n_ctx`), Ollama in `/api/ps` (`context_length`, https://docs.ollama.com/api/ps), LM Studio
in `/api/v0/models` (`loaded_context_length`).  Whatever else listens there is passed over.
"""

from __future__ import annotations

import io
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException, HTTPResponse
from typing import Any

from hypercode.llm.model_entry import Model, parse_models

__all__ = ["PORTS", "SECONDS", "LocalServer", "find_servers"]

PORTS = (11434, 1234, 8080, 8000)
"""Where Ollama, LM Studio, llama-server and vLLM listen when nobody says otherwise."""

SECONDS = 0.5
"""How long all servers together may take."""

_LIMIT = 4 << 20  # bytes of an answer
_HOST = "127.0.0.1"
_BY_PORT = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM"}
_BY_OWNER = {"llamacpp": "llama.cpp", "vllm": "vLLM", "library": "Ollama"}
_NO_CHAT = re.compile(r"embed|rerank|whisper", re.I)


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that answered: what it seems to be, where, and its models that can be talked to; there may be none."""

    kind: str
    port: int
    models: tuple[Model, ...]

    @property
    def base_url(self) -> str:
        """Where requests go."""
        return f"http://{_HOST}:{self.port}/v1"

    @property
    def name(self) -> str:
        """The server for a person: its kind and its place."""
        return f"{self.kind} at {_HOST}:{self.port}"


def find_servers(ports: Iterable[int] = PORTS, seconds: float = SECONDS) -> list[LocalServer]:
    """The servers on these ports of the loopback interface, in the order of the ports.

    All are asked at once; who has not answered after `seconds` is not there.  Never raises.
    """
    until = time.monotonic() + seconds
    found: dict[int, LocalServer] = {}
    wanted = list(dict.fromkeys(ports))

    def ask(port: int) -> None:
        server = _server(port, lambda path: _get_json(port, path, until))
        if server is not None:
            found[port] = server

    threads = [threading.Thread(target=ask, args=(port,), daemon=True) for port in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until + 0.1 - time.monotonic()))
    return [found[port] for port in wanted if port in found]


def _server(port: int, get: Callable[[str], Any]) -> LocalServer | None:
    answer = get("/v1/models")
    if not isinstance(answer, dict) or not any(isinstance(answer.get(key), list) for key in ("data", "models")):
        return None
    entries = _entries(answer)
    kind = _kind(port, entries)
    models = [model for model in parse_models(answer)[0] if not _NO_CHAT.search(model.id)]
    return LocalServer(kind, port, tuple(_with_windows(kind, models, entries, get)) if models else ())


def _kind(port: int, entries: Sequence[Mapping[str, Any]]) -> str:
    owners = {str(entry.get("owned_by")).lower() for entry in entries}
    named = next((kind for owner, kind in _BY_OWNER.items() if owner in owners), None)
    return named or _BY_PORT.get(port, "a model server")


def _with_windows(
    kind: str, models: list[Model], entries: Sequence[Mapping[str, Any]], get: Callable[[str], Any]
) -> list[Model]:
    """The models with the windows they are served with, where the server says so beside its list."""
    if kind == "llama.cpp" and len(models) == 1 and not any(_is_served(entry) for entry in entries):
        settings = (get("/props") or {}).get("default_generation_settings")
        window = settings.get("n_ctx") if isinstance(settings, dict) else None
        return [replace(models[0], context=window)] if _is_window(window) else models
    if kind not in ("Ollama", "LM Studio"):
        return models
    listed = parse_models(get("/api/ps" if kind == "Ollama" else "/api/v0/models") or {})[0]
    windows = {model.id: model.context for model in listed}
    return [replace(model, context=windows.get(model.id) or model.context) for model in models]


def _is_served(entry: Mapping[str, Any]) -> bool:
    """Whether a llama.cpp entry says how much the server takes, not only how much the model was trained on."""
    meta = entry.get("meta")
    return isinstance(meta, dict) and _is_window(meta.get("n_ctx"))


def _is_window(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _entries(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = next((v for v in (answer.get("data"), answer.get("models")) if isinstance(v, list)), [])
    return [entry for entry in listed if isinstance(entry, dict)]


# -- one question ----------------------------------------------------------------------


def _get_json(port: int, path: str, until: float) -> Any:
    """The JSON object at a path; None where there is none, for whatever reason."""
    try:
        body = _body(_exchange(port, path, until))
        value = json.loads(body)
    except (OSError, HTTPException, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _exchange(port: int, path: str, until: float) -> bytes:
    """What the server sends until it closes, the time is over, or it is too much.  Raises OSError."""
    request = f"GET {path} HTTP/1.1\r\nHost: {_HOST}:{port}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    data = bytearray()
    with socket.create_connection((_HOST, port), timeout=_left(until)) as connection:
        connection.sendall(request.encode())
        while len(data) <= _LIMIT and not _is_whole(data):
            try:
                connection.settimeout(_left(until))
                piece = connection.recv(65536)
            except TimeoutError:
                break
            if not piece:
                break
            data += piece
    return bytes(data)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _is_whole(data: bytearray) -> bool:
    """Whether a body of known length is there: not every server closes when it is asked to."""
    head, found, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: *(\d{1,9})\r?$", head, re.I | re.M) if found else None
    return length is not None and len(body) >= int(length[1])


def _body(data: bytes) -> bytes:
    """The body of a response that succeeded.  Raises HTTPException or ValueError for anything else."""
    response = HTTPResponse(_Received(data))  # type: ignore[arg-type]
    response.begin()
    if response.status != 200 or len(data) > _LIMIT:
        raise ValueError(f"status {response.status}")
    return response.read()


class _Received:
    """What `HTTPResponse` wants of a socket."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        """The bytes as a file."""
        return io.BytesIO(self._data)
