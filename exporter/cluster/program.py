"""Runs the cluster watcher: its pipeline, its sampler and its server, until a signal."""

import time
from collections.abc import MutableMapping

from exporter.cluster.pipeline import ClusterPipeline
from exporter.collection_loop import Sampler
from exporter.config import WatcherConfig
from exporter.exposition.exporter_metrics import SelfMetrics
from exporter.program import ProgramPages, run_until_signalled, serve


def run(config: WatcherConfig, environment: MutableMapping[str, str]) -> None:
    """Serve until SIGTERM. Raises ListenError, TlsError or WebConfigError before anything runs."""
    pipeline = ClusterPipeline(config.cluster)
    sampler = Sampler(lambda: pipeline.take(time.time()), SelfMetrics({}), config.cluster.interval)
    server = serve("gpugauge cluster watcher", config.web, ProgramPages(sampler, lambda: None), environment)
    pipeline.start()
    run_until_signalled(sampler, server, pipeline.stop)
