"""A server on this machine that answers GET with what a test gives it, and keeps what it was asked."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ListServer:
    """`answers` maps a path below /v1 to a JSON value, to (status, value), or to None for a server that stays silent."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []
        self.keys = []
        self.silent = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.keys.append(self.headers.get("Authorization"))
                outer.answer(self)

            def log_message(self, *arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.block_on_close = False
        self.base_url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def answer(self, request):
        path = request.path.removeprefix("/v1")
        self.asked.append(path)
        answer = self.answers.get(path, (404, {"error": {"message": "no such path", "code": 404}}))
        if answer is None:
            self.silent.wait()
            return
        status, value = answer if isinstance(answer, tuple) else (200, answer)
        data = json.dumps(value).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *exception):
        self.silent.set()
        self.http.shutdown()
        self.http.server_close()
