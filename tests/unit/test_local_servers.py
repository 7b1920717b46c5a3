"""Looking for model servers on this machine, among everything else that may listen there."""

import json
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from list_server import ListServer

from hypercode.llm.local import LocalServer, find_servers
from hypercode.llm.model_entry import Model


class Peer:
    """Listens on a free port, reads the request, and does with the connection what a test wants."""

    def __init__(self, talk):
        self.talk = talk
        self.over = threading.Event()
        self.requests = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *exception):
        self.over.set()
        self.socket.close()

    def _serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection):
        with connection:
            self.requests.append(connection.recv(65536))
            try:
                self.talk(self, connection)
            except OSError:
                pass


def says(data):
    return lambda peer, connection: connection.sendall(data)


def response(body, head="HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"):
    return head.encode() + b"\r\n" + body


def keeps_open(data):
    def talk(peer, connection):
        connection.sendall(data)
        peer.over.wait()

    return talk


def drips(data):
    def talk(peer, connection):
        for byte in data:
            connection.sendall(bytes([byte]))
            if peer.over.wait(0.05):
                return

    return talk


def floods(peer, connection):
    connection.sendall(response(b"["))
    while not peer.over.is_set():
        connection.sendall(b" " * 65536)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def port_of(server):
    return server.http.server_address[1]


LIST = {"object": "list", "data": [{"id": "m1", "object": "model", "owned_by": "somebody"}]}
BODY = json.dumps(LIST).encode()
CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)


@pytest.mark.parametrize(
    "talk",
    [
        says(response(BODY)),
        says(response(CHUNKED, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")),
        keeps_open(response(BODY, f"HTTP/1.1 200 OK\r\ncontent-length:{len(BODY)}\r\n")),
        keeps_open(response(CHUNKED, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")),
        says(response(BODY, "HTTP/1.0 200 OK\r\n")),
    ],
    ids=["until the end", "chunks", "kept open", "chunks, kept open", "1.0"],
)
def test_a_list_is_read_however_it_is_framed(talk):
    with Peer(talk) as peer:
        found = find_servers([peer.port], seconds=60)
        assert found == [LocalServer("a model server", peer.port, (Model("m1", "m1"),))]
        assert found[0].base_url == f"http://127.0.0.1:{peer.port}/v1"
        assert found[0].name == f"a model server at 127.0.0.1:{peer.port}"
        assert peer.requests[0].startswith(b"GET /v1/models HTTP/1.1\r\n")
        assert b"authorization" not in peer.requests[0].lower()


@pytest.mark.parametrize(
    "talk",
    [
        says(b"SSH-2.0-OpenSSH_9.2\r\n"),
        says(b"\x00\xff" * 1000),
        says(b""),
        says(response(b"<html><body>a router</body></html>", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")),
        says(response(BODY, "HTTP/1.1 404 Not Found\r\n")),
        says(response(BODY, "HTTP/1.1 302 Found\r\nLocation: http://example.org/v1/models\r\n")),
        says(response(b"[]")),
        says(response(b'{"error": "no"}')),
        says(response(b'{"data": {}}')),
        says(response(b"[" * 200_000)),
        says(response(BODY[:-5])),
        says(response(BODY, "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n")),
        says(response(b"zz\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")),
        keeps_open(b""),
        keeps_open(b"HTTP/1.1 200 OK\r\n"),
        drips(response(BODY)),
        floods,
    ],
    ids=[
        "ssh",
        "bytes",
        "nothing",
        "html",
        "404",
        "elsewhere",
        "a list",
        "no list",
        "an object",
        "deep",
        "cut",
        "short",
        "bad chunk",
        "silent",
        "half a head",
        "slow",
        "flood",
    ],
)
def test_whatever_else_listens_is_passed_over_in_time(talk):
    with Peer(talk) as peer:
        started = time.monotonic()
        assert find_servers([peer.port]) == []
        assert time.monotonic() - started < 20  # the peers that say nothing do so for ever


def test_nobody_there():
    assert find_servers([free_port(), free_port()]) == []
    assert find_servers([]) == []


def test_all_are_asked_at_once_and_stand_in_the_order_of_the_ports():
    everybody = threading.Barrier(3)

    def once_all_are_asked(data):
        def talk(peer, connection):
            everybody.wait(60)
            connection.sendall(data)

        return talk

    with (
        Peer(once_all_are_asked(response(BODY))) as a,
        Peer(once_all_are_asked(b"")) as b,
        Peer(once_all_are_asked(response(BODY))) as c,
    ):
        ports = [c.port, a.port, b.port, free_port(), c.port]
        assert [server.port for server in find_servers(ports, seconds=60)] == [c.port, a.port]


@pytest.mark.parametrize(
    ("answers", "kind", "models"),
    [
        (
            {
                "/models": {
                    "data": [{"id": "q", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072, "n_ctx": 4096}}]
                }
            },
            "llama.cpp",
            [("q", 4096)],
        ),
        (  # an older one says in its list only how the model was trained
            {
                "/models": {"data": [{"id": "q", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}}]},
                "/props": {"default_generation_settings": {"n_ctx": 8192}},
            },
            "llama.cpp",
            [("q", 8192)],
        ),
        (
            {"/models": {"data": [{"id": "q", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}}]}},
            "llama.cpp",
            [("q", 131072)],
        ),
        ({"/models": {"data": [{"id": "v", "owned_by": "vllm", "max_model_len": 32768}]}}, "vLLM", [("v", 32768)]),
        (
            {
                "/models": {
                    "data": [
                        {"id": "a:latest", "owned_by": "library"},
                        {"id": "b:7b", "owned_by": "library"},
                        {"id": "nomic-embed-text:latest", "owned_by": "library"},
                    ]
                },
                "/api/ps": {"models": [{"name": "b:7b", "model": "b:7b", "context_length": 4096}]},
            },
            "Ollama",
            [("a:latest", None), ("b:7b", 4096)],
        ),
        ({"/models": {"data": []}}, "a model server", []),
        ({"/models": {"data": [3, None, {"no": "id"}, {"id": "ok"}]}}, "a model server", [("ok", None)]),
    ],
    ids=["llama.cpp", "props", "no props", "vllm", "ollama", "empty", "odd"],
)
def test_what_a_server_is_and_how_much_its_models_take(answers, kind, models):
    with ListServer(answers) as server:
        [found] = find_servers([port_of(server)], seconds=60)
    assert (found.kind, [(m.id, m.context) for m in found.models]) == (kind, models)
