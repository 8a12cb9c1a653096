"""Programs that run in the test's own process, with a real HTTP server, so that a test can set their clocks."""

import http.client
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from exporter.cluster.config import ClusterConfig, LeaseName
from exporter.cluster.pipeline import ClusterPipeline
from exporter.collection_loop import CollectionLoop
from exporter.exposition.exporter_metrics import ExporterMetrics
from exporter.program import ProgramEndpoints
from exporter.snapshot import Snapshot
from tests.fakes.endpoints import serving
from tests.faults.fault import LIMIT_SECONDS, Get

INTERVAL = 0.2
"""Seconds between the collections of these programs."""
STOP_SECONDS = 10.0


def get_from(port: int) -> Get:
    """Requests paths from the server at this port of this machine."""

    def get(path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    return get


@contextmanager
def collecting(
    collect: Callable[[], Snapshot],
    restart_needed: Callable[[], str | None] = lambda: None,
    unready: Callable[[], str | None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Get]:
    """A program that collects in this way; yields a function that requests a path from it."""
    loop = CollectionLoop(collect, ExporterMetrics({}), INTERVAL, clock)
    with serving(ProgramEndpoints(loop, restart_needed, unready)) as server:
        loop.start()
        try:
            yield get_from(server.port)
        finally:
            loop.stop(STOP_SECONDS)


@contextmanager
def watching(
    api_server: str, clock: Callable[[], float] = time.monotonic, lease: LeaseName | None = None
) -> Iterator[Get]:
    """A watcher of the API server at this address; `clock` decides how old its objects and its lease are."""
    config = ClusterConfig(api_server=api_server, watch_seconds=1.0, lease=lease)
    pipeline = ClusterPipeline(config, clock=clock)
    pipeline.start()
    try:
        with collecting(lambda: pipeline.collect(time.time()), unready=pipeline.unready) as get:
            yield get
    finally:
        pipeline.stop()
