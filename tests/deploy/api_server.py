"""An API server with an empty cluster that records its requests."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass
class RecordedRequests:
    """What the API server was asked for so far."""

    kinds: set[tuple[str, str, str]] = field(default_factory=set)
    """(verb, API group, resource) of each request."""
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when open watches must end."""


def _request(path: str, *, watch: bool) -> tuple[str, str, str]:
    """Read `/api/v1/RESOURCE` or `/apis/GROUP/VERSION/RESOURCE`, either also of one namespace."""
    parts = path.strip("/").split("/")
    return ("watch" if watch else "list"), "" if parts[0] == "api" else parts[1], parts[-1]


@contextmanager
def api_server() -> Iterator[tuple[str, RecordedRequests]]:
    """Serve, and yield the URL and the requests; a watch stays open until the end without an event."""
    recorded = RecordedRequests()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            url = urlsplit(self.path)
            watch = parse_qs(url.query).get("watch", ["0"])[0].lower() in {"1", "true"}
            recorded.kinds.add(_request(url.path, watch=watch))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            if watch:
                self.wfile.flush()
                recorded.stopping.wait(300)
                return
            empty = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}
            self.wfile.write(json.dumps(empty).encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", recorded
    finally:
        recorded.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()
