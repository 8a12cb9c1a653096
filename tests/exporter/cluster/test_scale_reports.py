"""What users reported of large clusters, each by its number: how often the watcher asks, and how much it keeps."""

import json
import time
import tracemalloc

import pytest

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.objects.records import Pod
from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.cluster.kubernetes.watching.store import ObjectStore
from exporter.cluster.pipeline import ClusterPipeline
from simulators import objects
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import KINDS
from tests.exporter.cluster.fixture import GPUS
from tests.waiting import until

MIB = 2**20
PAGE = 500
PADDING = {f"example.com/note-{number}": "x" * 100 for number in range(40)}
"""Annotations that make a pod as large as those of real clusters: some 5 KB."""


@pytest.fixture
def server():
    simulated = SimulatedApiServer()
    simulated.start()
    yield simulated
    simulated.stop()


@pytest.fixture
def pipeline(server):
    started = ClusterPipeline(ClusterConfig(api_server=server.url))
    started.start()
    yield started
    started.stop()


def asked(server):
    """(kind, whether it is a watch) of every request for pods, nodes and namespaces."""
    return [(each.kind, each.watch) for each in server.requests if each.kind in KINDS]


def test_report_54_every_kind_is_listed_and_watched_once_however_often_metrics_are_made(server, pipeline):
    server.put("pods", objects.pod("p", "team-a"))
    until(lambda: pipeline.ready() and all((kind, True) in asked(server) for kind in KINDS))
    for _ in range(100):
        pipeline.collect(time.time())
    assert sorted(asked(server)) == sorted((kind, watch) for kind in KINDS for watch in (False, True))


def test_report_54_while_the_api_server_is_away_metrics_are_made_of_what_is_known(server, pipeline):
    server.put("pods", objects.pod("p", "team-a"))
    until(pipeline.ready)
    server.stop(keep_port=True)
    until(lambda: not pipeline.collect(time.time()).health[0].up)
    names = {family.metric.name for family in pipeline.collect(time.time()).families}
    assert "gpugauge_gpu_pod_info" in names
    assert pipeline.ready()


def page_of(start, gpu_pods):
    """A page of a list of pods with `gpu_pods` in front, as the API server sends it."""
    items = [
        objects.running(
            objects.pod(
                f"p{start + number}", "team-a", None if number < gpu_pods else {}, created=1e9, annotations=PADDING
            ),
            f"n{number % 50}",
        )
        for number in range(PAGE)
    ]
    return json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()


def test_report_55_of_pods_that_ask_for_no_gpu_hardly_anything_is_kept():
    kind = object_kinds(GPUS)[0]
    assert kind.query == {"fieldSelector": "status.phase!=Succeeded"}
    store = ObjectStore(kind.name, lambda: 1e9, lambda: 0.0)
    bodies = [page_of(start, gpu_pods=5) for start in range(0, 8 * PAGE, PAGE)]
    assert min(map(len, bodies)) / PAGE > 5_000
    tracemalloc.start()
    records = {key: record for body in bodies for key, record in kind.codec.page(body).records.items()}
    store.replace(records, 0.0)
    kept, peak = tracemalloc.get_traced_memory()
    for body in bodies:
        for key, record in kind.codec.page(body).records.items():
            store.put(key, record)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    pods = [each for each in store.view(60.0).records if isinstance(each, Pod)]
    assert len(pods) == 8 * 5
    assert kept < 2 * MIB  # of 20 MB of JSON
    assert peak < 10 * MIB
    assert after < kept + MIB / 4
