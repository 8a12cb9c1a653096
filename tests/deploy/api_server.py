"""An API server with an empty cluster, that remembers what it was asked for."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass
class Asked:
    """(verb, API group, resource) of every request so far."""

    requests: set[tuple[str, str, str]] = field(default_factory=set)
    over: threading.Event = field(default_factory=threading.Event)


def _request(path: str, *, watch: bool) -> tuple[str, str, str]:
    """`/api/v1/pods` and `/apis/GROUP/VERSION/RESOURCE`, without namespace."""
    parts = path.strip("/").split("/")
    group, resource = ("", parts[2]) if parts[0] == "api" else (parts[1], parts[3])
    return ("watch" if watch else "list"), group, resource


@contextmanager
def api_server() -> Iterator[tuple[str, Asked]]:
    """Gives its URL and what it was asked; a watch stays open until the end and says nothing."""
    asked = Asked()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            url = urlsplit(self.path)
            watch = parse_qs(url.query).get("watch", ["0"])[0].lower() in {"1", "true"}
            asked.requests.add(_request(url.path, watch=watch))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            if watch:
                self.wfile.flush()
                asked.over.wait(60)
                return
            empty = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}
            self.wfile.write(json.dumps(empty).encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        asked.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
