"""A model server on a free port of this machine, as a person might run one: lists models, answers with a text."""

import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from stage import answer, text

__all__ = ["LocalFake"]


class LocalFake:
    """`models` are the entries of its list.  While `reading` is clear a request gets keep-alives and no answer.

    `posts` has the Authorization header and the body of each request, `listed` that header of each list.
    """

    def __init__(self, *models, words="zzhello"):
        self.models = models
        self.posts, self.listed = [], []
        self.reading = threading.Event()
        self.reading.set()
        body = "".join(segment["bytes"] for segment in answer(text(words))["segments"])
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path != "/v1/models":
                    self.send_error(404)
                    return
                outer.listed.append(self.headers.get("Authorization"))
                data = json.dumps({"object": "list", "data": list(outer.models)}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_POST(self):
                sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.posts.append((self.headers.get("Authorization"), sent))
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                with suppress(ConnectionError):
                    while not outer.reading.wait(0.1):
                        self.wfile.write(b":\n\n")
                    self.wfile.write(body.encode())

            def log_message(self, *arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.block_on_close = False
        self.port = self.http.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *exception):
        self.reading.set()
        self.http.shutdown()
        self.http.server_close()
