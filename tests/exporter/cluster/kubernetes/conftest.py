"""Simulated API servers and pipelines that end with the test."""

import pytest

from exporter.cluster.pipeline import ClusterPipeline
from simulators.api_server import SimulatedApiServer
from tests.exporter.cluster.kubernetes.reflected import reflector_threads
from tests.waiting import until


@pytest.fixture
def serve():
    """Starts simulated API servers that end with the test."""
    started = []

    def start(**options):
        simulated = SimulatedApiServer(**options)
        started.append(simulated)
        simulated.start()
        return simulated

    yield start
    for simulated in started:
        simulated.stop()


@pytest.fixture
def server(serve):
    return serve(bookmark_seconds=0.2)


@pytest.fixture
def started():
    """Starts pipelines that end with the test."""
    running = []

    def start(config, **options):
        pipeline = ClusterPipeline(config, **options)
        running.append(pipeline)
        pipeline.start()
        assert len(reflector_threads()) >= 1
        return pipeline

    yield start
    for pipeline in running:
        pipeline.stop()
    until(lambda: not reflector_threads())
