"""A model hub on loopback, with one repository ``org/name`` that holds one file."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FILE = "sub/m.gguf"


@dataclass
class Hub:
    """What the server gives and what it was asked."""

    content: bytes = b""
    status: int = 200
    error: str = ""
    tag: str | None = None
    cut_after: int | None = None
    starts: list[int] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, *_arguments: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        hub = self.hub
        if hub.status != 200 or self.path != f"/org/name/resolve/main/{FILE}":
            self.send_response(hub.status if hub.status != 200 else 404)
            if hub.error:
                self.send_header("X-Error-Code", hub.error)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        left = hub.content[start:]
        self.send_response(206 if asked else 200)
        self.send_header("X-Repo-Commit", "c" * 40)
        self.send_header("X-Linked-Size", str(len(hub.content)))
        self.send_header("X-Linked-Etag", f'"{hub.tag or hashlib.sha256(hub.content).hexdigest()}"')
        self.send_header("Content-Length", str(len(left)))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}")
        self.end_headers()
        if body:
            hub.starts.append(start)
            if hub.cut_after is None:
                self.wfile.write(left)
            else:
                self.wfile.write(left[: hub.cut_after])
                self.close_connection = True


@contextmanager
def served(hub: Hub) -> Iterator[str]:
    """Serve a hub in a thread, and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
