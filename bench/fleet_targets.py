"""Serves the expositions of a fleet as many small scrape targets, one path each, with a past of some minutes.

Prometheus scrapes them faster than once a minute, and every answer of a target has samples of one minute later than the
one before, from some minutes ago until now: rules that look back find samples. With timestamps, samples also stay when
nothing is scraped any more.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bench.fleet_data import (
    FleetSize,
    node_exposition,
    node_names,
    state_exposition,
    stock_exposition,
    watcher_exposition,
)

STEP = 60
"""Seconds between two samples of a series."""


@dataclass(frozen=True, slots=True)
class FleetTarget:
    """One scrape target: its job, its labels, and what it exposes."""

    job: str
    instance: str
    text: Callable[[], str]
    node: str = ""

    @property
    def path(self) -> str:
        """Where it is served."""
        return f"/{self.job}/{self.instance}"


@dataclass(slots=True)
class FleetTargets:
    """The targets by path, and how often each was scraped."""

    targets: dict[str, FleetTarget]
    minutes: int
    began: float = field(default_factory=time.time)
    scraped: dict[str, int] = field(default_factory=dict)

    def answer(self, path: str) -> bytes:
        """The next exposition of a target, with timestamps."""
        number = self.scraped.get(path, 0)
        self.scraped[path] = number + 1
        at = min(self.began + (number - self.minutes) * STEP, time.time())
        return self.targets[path].text().replace("\n", f" {round(at * 1000)}\n").encode()

    def scraped_rounds(self) -> int:
        """How often the target that was scraped least was scraped."""
        return min((self.scraped.get(path, 0) for path in self.targets), default=0)

    def jobs(self, address: str) -> list[dict[str, object]]:
        """The scrape configurations of Prometheus, one for each job."""
        found = []
        for job in sorted({target.job for target in self.targets.values()}):
            targets = [target for target in self.targets.values() if target.job == job]
            configs = [{"targets": [address], "labels": _labels(target)} for target in targets]
            found.append({"job_name": job, "honor_labels": True, "static_configs": configs})
        return found


def _labels(target: FleetTarget) -> dict[str, str]:
    labels = {"__metrics_path__": target.path, "instance": target.instance}
    return labels | ({"node": target.node} if target.node else {})


def own_targets(size: FleetSize) -> list[FleetTarget]:
    """Our exporter on every node, and the watcher."""
    now = time.time()
    watcher = watcher_exposition(size, now)
    nodes = [
        FleetTarget("gpugauge-node", f"{name}:9400", partial(node_exposition, name, kind), name)
        for name, kind in node_names(size)
    ]
    return [*nodes, FleetTarget("gpugauge-cluster", "watcher:9410", lambda: watcher)]


def stock_targets(size: FleetSize) -> list[FleetTarget]:
    """A stock dcgm-exporter on every node, and kube-state-metrics: what the adapters read."""
    now = time.time()
    state = state_exposition(size, now)
    nodes = [
        FleetTarget("dcgm-exporter", f"{name}:9400", partial(stock_exposition, name, kind))
        for name, kind in node_names(size)
    ]
    return [*nodes, FleetTarget("kube-state-metrics", "state:8080", lambda: state)]


@contextmanager
def serving(targets: list[FleetTarget], minutes: int) -> Iterator[tuple[str, FleetTargets]]:
    """Serve the targets on loopback. Yields the address, and the targets."""
    served = FleetTargets({target.path: target for target in targets}, minutes)

    class FleetHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = served.answer(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), FleetHandler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", served
    finally:
        server.shutdown()
        server.server_close()
