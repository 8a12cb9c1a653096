"""An HTTP server that answers queries as a test says, and remembers what it was asked."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from exporter.commands.prometheus.access import PrometheusAccess
from exporter.commands.prometheus.client import PrometheusClient


def vector(*samples):
    """The body of an answer with these (labels, value)."""
    result = [{"metric": labels, "value": [0, str(value)]} for labels, value in samples]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


@contextmanager
def answering(answer):
    """Serve `answer(request)`, which gives (status, body); a request has `method`, `path`, `headers` and `fields`.

    Yields the address and the list of requests.
    """
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self):
            length = int(self.headers.get("content-length", 0))
            parts = urlsplit(self.path)
            text = self.rfile.read(length).decode() or parts.query
            fields = {name: values[0] for name, values in parse_qs(text).items()}
            request = {"method": self.command, "path": parts.path, "headers": dict(self.headers), "fields": fields}
            requests.append(request)
            status, body = answer(request)
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = handle_any  # noqa: N815 - as http.server calls them

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def asking(answer, max_bytes=1 << 20, **access):
    """A client of such a server. Yields the client and the list of requests."""
    with answering(answer) as (url, requests):
        client = PrometheusClient(PrometheusAccess(url + access.pop("prefix", ""), **access), max_bytes)
        try:
            yield client, requests
        finally:
            client.close()
