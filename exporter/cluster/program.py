"""Runs the cluster watcher: its pipeline, the collection loop and the HTTP server, until a signal."""

import time
from collections.abc import MutableMapping

from exporter.cluster.config import WatcherConfig
from exporter.cluster.pipeline import ClusterPipeline
from exporter.collection_loop import CollectionLoop
from exporter.exposition.exporter_metrics import ExporterMetrics
from exporter.program import ProgramEndpoints, run_until_signaled, serve


def run(config: WatcherConfig, environment: MutableMapping[str, str]) -> None:
    """Serve until SIGTERM. Raises ListenError, TlsError or WebConfigError before anything runs."""
    pipeline = ClusterPipeline(config.cluster)
    loop = CollectionLoop(lambda: pipeline.collect(time.time()), ExporterMetrics({}), config.cluster.interval)
    server = serve("gpugauge cluster watcher", config.web, ProgramEndpoints(loop, lambda: None), environment)
    pipeline.start()
    run_until_signaled(loop, server, pipeline.stop)
