"""A real Alertmanager on loopback, and sinks for what it sends: HTTP (webhook, chat, pager) and SMTP (mail)."""

import json
import socket
import socketserver
import subprocess
import threading
import urllib.request
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import yaml

from demo.prometheus import PrometheusApi, alertmanager_command
from tests.alerts.promtool import tool
from tests.waiting import until


class MailSink:
    """A mail server on loopback that keeps every message as text."""

    def __init__(self):
        self.messages = []
        sink = self

        class Session(socketserver.StreamRequestHandler):
            def handle(self):
                self.wfile.write(b"220 sink\r\n")
                for line in iter(self.rfile.readline, b""):
                    word = line.strip().upper()
                    if word == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        body = b"".join(iter(self.rfile.readline, b".\r\n"))
                        sink.messages.append(body.decode())
                    if word == b"QUIT":
                        self.wfile.write(b"221 bye\r\n")
                        return
                    self.wfile.write(b"250 sink\r\n")

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class Alertmanager:
    """A running Alertmanager."""

    def __init__(self, port):
        self._url = f"http://127.0.0.1:{port}"
        self.api = PrometheusApi(self._url)

    def post(self, *alerts):
        """Post alerts, each a pair of labels and annotations."""
        body = [{"labels": labels, "annotations": annotations} for labels, annotations in alerts]
        request = urllib.request.Request(
            f"{self._url}/api/v2/alerts", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            assert response.status == 200

    def ready(self):
        with suppress(OSError):
            return self.api.alerts() is not None
        return False


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def running(configuration, folder: Path):
    """Start an Alertmanager with this configuration, as a document."""
    file = folder / "alertmanager.yaml"
    file.write_text(yaml.safe_dump(configuration, sort_keys=False))
    port = free_port()
    command = alertmanager_command(tool("alertmanager"), file, folder / "data", port)
    with ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen(command))
        stack.callback(process.terminate)
        started = Alertmanager(port)
        until(lambda: process.poll() is not None or started.ready())
        assert process.poll() is None, "Alertmanager does not start with this configuration"
        yield started
