"""An HTTP server on loopback that keeps the alerts that Alertmanager posts, for the demo and the end-to-end test."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

LARGEST_POST = 4 * 2**20
"""Bytes that are read of one post."""
MAX_POSTS = 1000


class WebhookReceiver:
    """A context manager; `url` is the base address. The last part of a post's path is the route that it took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._posts: list[tuple[str, dict[str, Any]]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = min(int(self.headers.get("Content-Length", "0")), LARGEST_POST)
                receiver.keep(self.path.rpartition("/")[2], json.loads(self.rfile.read(length)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing: each line would disturb the demo's terminal."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="receiver", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def keep(self, route: str, post: dict[str, Any]) -> None:
        """Keep a post; beyond MAX_POSTS the oldest is dropped."""
        with self._lock:
            self._posts = [*self._posts[-MAX_POSTS + 1 :], (route, post)]

    def posts(self) -> list[tuple[str, dict[str, Any]]]:
        """Everything that was posted, as (route, post)."""
        with self._lock:
            return list(self._posts)

    def alerts(self) -> list[tuple[str, dict[str, Any]]]:
        """Every alert that was posted, as (route, alert)."""
        return [(route, alert) for route, post in self.posts() for alert in post["alerts"]]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
