"""A webhook receiver: keeps what Alertmanager posts, for the demo's view and the end-to-end test."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

LARGEST_POST = 4 * 2**20
KEPT = 1000


class WebhookReceiver:
    """A context manager; `url` is the base address, the last part of a post's path says which route it took."""

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
                """Nothing: the posts are what matters."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="receiver", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def keep(self, route: str, post: dict[str, Any]) -> None:
        """Remember a post; the oldest go first."""
        with self._lock:
            self._posts = [*self._posts[-KEPT:], (route, post)]

    def alerts(self) -> list[tuple[str, dict[str, Any]]]:
        """Every alert that was posted, with the route that it took."""
        with self._lock:
            return [(route, alert) for route, post in self._posts for alert in post["alerts"]]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
