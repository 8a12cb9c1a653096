"""`gpugauge compare` reads addresses as it reads files: compressed or not, and every failure is one message."""

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from exporter import cli
from exporter.commands.compare.command import run
from exporter.config import ConfigError

TEXT = (Path(__file__).parent / "responses" / "whole-new.prom").read_bytes()


@contextmanager
def answering(status, headers, body):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/metrics"
        finally:
            server.shutdown()
            thread.join()


def compared(*targets):
    return run(cli.parse(["compare", *targets], {}))


@pytest.mark.parametrize(
    ("headers", "body"), [({}, TEXT), ({"Content-Encoding": "gzip"}, gzip.compress(TEXT))], ids=["plain", "gzip"]
)
def test_an_address_is_read_as_a_file(headers, body, tmp_path):
    (tmp_path / "file.prom").write_bytes(TEXT)
    with answering(200, headers, body) as address:
        text, harmless = compared(str(tmp_path / "file.prom"), address)
    assert harmless
    assert "MISSING" not in text
    assert f"NEW {address}: 141 series" in text


@pytest.mark.parametrize(
    ("status", "headers", "body", "problem"),
    [
        (401, {}, b"", "answered 401; a file with the response will do"),
        (200, {}, b"", "it has no series"),
        (200, {}, b"<html>", "line 1: '<html>' is no sample"),
        (200, {"Content-Encoding": "gzip"}, b"no gzip", "cannot be read: "),
    ],
    ids=["status", "empty", "page", "broken"],
)
def test_an_answer_that_is_no_response_is_one_message(status, headers, body, problem):
    with answering(status, headers, body) as address, pytest.raises(ConfigError) as error:
        compared(address, address)
    assert str(error.value).startswith(f"{address}: {problem}")
