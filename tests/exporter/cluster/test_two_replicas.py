"""Two watchers with one lease: one exposes what is known of the cluster, and a fail-over changes none of it."""

import time

import pytest

from exporter.cluster.config import ClusterConfig, LeaseName
from exporter.cluster.leadership.election import LEASE_SECONDS
from exporter.cluster.metrics.families import METRICS
from exporter.cluster.pipeline import ClusterPipeline
from simulators import objects
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from tests.clock import Clock
from tests.waiting import until

NAME = LeaseName("gpugauge", "watcher")
GPU = "nvidia.com/gpu"
CREATED = time.time() - 3600
FULL = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def fill(server):
    server.put("namespaces", objects.namespace("team-a"))
    server.put("nodes", objects.node("n1", {GPU: 8}, objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)))
    server.put("pods", objects.running(objects.pod("runs", "team-a", {GPU: 8}, created=CREATED), "n1"))
    for name in ("train-0", "train-1"):
        pending = objects.pod(name, "team-a", {GPU: 4}, created=CREATED)
        server.put("pods", objects.unschedulable(pending, FULL, CREATED + 1))


@pytest.fixture
def servers():
    """Two API servers of one cluster: the same objects, and the same leases."""
    made = [SimulatedApiServer(bookmark_seconds=0.2) for _ in range(2)]
    made[1].leases = made[0].leases
    for each in made:
        each.start()
        fill(each)
    yield made
    for each in made:
        each.stop()


@pytest.fixture
def start():
    """Starts replicas, whose clocks a test may set, that end with the test."""
    running = []

    def started(server, clock=time.monotonic):
        config = ClusterConfig(api_server=server.url, watch_seconds=1.0, tracked_after=-1.0, lease=NAME)
        running.append(ClusterPipeline(config, clock=clock))
        running[-1].start()
        return running[-1]

    yield started
    for each in running:
        each.stop()


def series(pipeline):
    return {
        family.metric.name + labels.text: value
        for family in pipeline.collect(time.time()).families
        for labels, value in family.samples
    }


def leads(pipeline):
    return series(pipeline)["gpugauge_leader"] == 1


def facts(pipeline):
    """What a replica exposes of the cluster: everything but what it counts of itself."""
    return {key: value for key, value in series(pipeline).items() if not key.startswith("gpugauge_watch_")}


@pytest.fixture
def pair(servers, start):
    """A leader and a standby, both ready, at one API server each."""
    first = start(servers[0])
    until(lambda: first.ready() and leads(first))
    second = start(servers[1], clock := Clock())
    until(second.ready)
    return first, second, clock


def test_the_leader_alone_exposes_the_cluster(pair):
    first, second, _ = pair
    assert {"gpugauge_pending_pods", "gpugauge_node_gpu_free"} <= {key.partition("{")[0] for key in series(first)}
    assert series(first)["gpugauge_leader"] == 1
    assert series(second) == {"gpugauge_leader": 0.0}
    health = {each.source: each.up for each in second.collect(time.time()).health}
    assert health == {"kubernetes": True, "lease": True}


def test_without_a_lease_a_replica_exposes_everything_and_no_leader(servers):
    pipeline = ClusterPipeline(ClusterConfig(api_server=servers[0].url))
    pipeline.start()
    try:
        until(pipeline.ready)
        found = {key.partition("{")[0] for key in series(pipeline)}
        assert "gpugauge_node_gpu_free" in found
        assert "gpugauge_leader" not in found
        assert [each.source for each in pipeline.collect(time.time()).health] == ["kubernetes"]
    finally:
        pipeline.stop()


def test_a_leader_that_ends_hands_over_and_no_series_changes(pair):
    first, second, _ = pair
    before = facts(first)
    assert any("since_timestamp" in key for key in before)
    assert any(key.startswith("gpugauge_pending_pod_reason{") for key in before)
    first.stop()
    until(lambda: leads(second))
    assert facts(second) == before


@pytest.mark.slow
def test_the_standby_takes_over_when_the_leader_is_cut_off_which_steps_down_once_it_reads_so(pair, servers):
    first, second, clock = pair
    before = facts(first)
    servers[0].stop(keep_port=True)
    until(lambda: not first.collect(time.time()).health[1].up)
    assert facts(first) == before, "a leader that reads no other leader goes on"

    def taken_over():
        clock.now += 1.0
        return leads(second)

    began = clock.now
    until(taken_over, every=0.3)
    assert clock.now - began > LEASE_SECONDS - 2
    assert facts(second) == before
    servers[0].start()
    until(lambda: not leads(first))
    assert leads(second)
    assert set(series(first)) == {"gpugauge_leader"}


def test_a_workload_whose_pod_is_made_anew_keeps_its_clock_over_a_fail_over(pair, servers):
    """A controller makes the pod of a workload anew: both replicas have seen that it was pending before."""
    first, second, _ = pair
    since = {f"gpugauge_pending_{what}_since_timestamp_seconds": what for what in ("pod", "workload")}
    second.collect(time.time())

    def clocks(pipeline, what):
        return {key: value for key, value in facts(pipeline).items() if since.get(key.partition("{")[0]) == what}

    pods, workloads = clocks(first, "pod"), clocks(first, "workload")
    assert len(pods) == len(workloads) == 2
    for server in servers:
        server.delete("pods", "train-0", "team-a")
        server.put("pods", objects.pod("train-0", "team-a", {GPU: 4}, created=time.time()))
    first.stop()
    until(lambda: leads(second))
    until(lambda: len(found := clocks(second, "pod")) == 2 and found != pods)
    assert clocks(second, "workload") == workloads


def test_a_replica_that_begins_to_lead_announces_it(servers):
    announced = []
    pipeline = ClusterPipeline(ClusterConfig(api_server=servers[0].url, lease=NAME))
    pipeline.start(lambda: announced.append(1))
    try:
        until(lambda: announced == [1])
        assert leads(pipeline)
    finally:
        pipeline.stop()


def test_a_replica_without_permission_exposes_nothing_of_the_cluster_and_is_not_ready(servers, start):
    servers[0].add_fault(ApiFault("lease", times=10**6, status=403))
    pipeline = start(servers[0])
    until(lambda: "neither lead nor take over" in (pipeline.unready() or ""))
    assert series(pipeline) == {"gpugauge_leader": 0.0}
    health = pipeline.collect(time.time()).health[1]
    assert (health.source, health.up, str(health.reason)) == ("lease", False, "forbidden")
    servers[0].clear_faults()
    until(lambda: pipeline.ready() and leads(pipeline))


def test_the_metric_of_leadership_is_in_the_reference():
    assert "gpugauge_leader" in {metric.name for metric in METRICS}
