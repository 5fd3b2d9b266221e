"""A local HTTP server for the tests of downloads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Server:
    """Serves texts by path; for a path in `broken` it closes the connection halfway."""

    texts: dict[str, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    address: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.removeprefix("/")
        self.asked.append(path)
        if path not in self.texts:
            request.send_error(404)
            return
        body = self.texts[path].encode()
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[: len(body) // 2] if path in self.broken else body)


@contextmanager
def serving(served: Server) -> Iterator[Server]:
    """Run the server on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.answer(self)

        def log_message(self, *words: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.address = f"http://127.0.0.1:{listening.server_port}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield served
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()
