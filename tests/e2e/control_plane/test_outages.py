"""An API server that ends and comes back, and history that it no longer has."""

import re
import time
from contextlib import closing

import pytest

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.watching.api import ApiError, open_api
from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.cluster.kubernetes.watching.reasons import WatchReason
from exporter.cluster.pipeline import ClusterPipeline
from exporter.gpu_names import gpu_resources
from simulators import objects
from tests.deploy.running import running
from tests.e2e.control_plane import processes
from tests.e2e.control_plane.plane import control_plane
from tests.e2e.control_plane.shipped import apply_rights
from tests.e2e.control_plane.situation import h100, make, pod

pytestmark = processes.needs("etcd", "kube-apiserver", "kube-scheduler")

RESTART = re.compile(r'^gpugauge_watch_restarts_total\{object="(\w+)",reason="(\w+)"\} (\d+)', re.MULTILINE)
NAMESPACE = "team-a"


@pytest.fixture
def plane(tmp_path):
    """One that a test may end: with a node of eight GPUs and a pod that asks for nine."""
    with control_plane(tmp_path, "kube-scheduler") as started:
        apply_rights(started)
        started.call("POST", "/api/v1/namespaces", objects.namespace(NAMESPACE))
        make(started, h100("n1"), NAMESPACE)
        make(started, pod("p", 9), NAMESPACE)
        yield started


@pytest.fixture
def token(plane, tmp_path):
    """The file of the watcher's token, as the kubelet mounts it."""
    file = tmp_path / "token"
    file.write_text(plane.token("gpugauge", "gpugauge-cluster"))
    return file


@pytest.fixture
def watcher(plane, token):
    kubeconfig = plane.kubeconfig("watcher", token)
    arguments = ["cluster", "--kubeconfig", kubeconfig, "--address", "127.0.0.1:0", "--interval", "1"]
    with running(arguments, {}) as started:
        started.until("/metrics", waits("unsatisfiable_size", 1))
        yield started


def waits(reason, pods):
    labels = f'namespace="{NAMESPACE}",gpu_namespace="{NAMESPACE}",resource="nvidia_com_gpu",model="any"'
    return f'gpugauge_pending_pods{{{labels},reason="{reason}"}} {pods}'


def restarts(watcher):
    """How often each kind was listed or watched again, by reason; without those that it never was."""
    found = RESTART.findall(watcher.get("/metrics")[1])
    return {(name, reason): int(count) for name, reason, count in found if int(count)}


def test_a_restart_of_the_api_server_costs_no_series_and_what_happened_since_is_read(plane, watcher):
    plane.api_server.kill()
    plane.until(lambda: ("pods", "unreachable") in restarts(watcher))
    assert waits("unsatisfiable_size", 1) in watcher.get("/metrics")[1]
    assert 'gpugauge_source_up{source="kubernetes"} 0' in watcher.get("/metrics")[1]
    plane.move_on()
    plane.api_server.start()
    plane.until(plane.ready)
    began = time.monotonic()
    make(plane, pod("q", 16), NAMESPACE)
    plane.until(lambda: waits("unsatisfiable_size", 2) in watcher.get("/metrics")[1])
    plane.until(lambda: 'gpugauge_source_up{source="kubernetes"} 1' in watcher.get("/metrics")[1])
    assert watcher.get("/readyz")[0] == 200
    print(f"read again after {time.monotonic() - began:.1f} s: {restarts(watcher)}")
    # The new process has no history from before its start: a watch from there is answered with 410, and listed anew.
    assert ("pods", "expired") in restarts(watcher)


def test_a_token_that_is_no_longer_accepted_is_read_again(plane, watcher, token):
    plane.delete("/api/v1/namespaces/gpugauge/serviceaccounts/gpugauge-cluster", {})
    # A watch that is open stays so: only a new request needs the token.
    plane.api_server.kill()
    plane.api_server.start()
    plane.until(lambda: ("pods", "unauthorized") in restarts(watcher))
    assert waits("unsatisfiable_size", 1) in watcher.get("/metrics")[1]
    apply_rights(plane)
    token.write_text(plane.token("gpugauge", "gpugauge-cluster"))
    plane.until(lambda: 'gpugauge_source_up{source="kubernetes"} 1' in watcher.get("/metrics")[1])


def test_a_list_whose_token_expires_between_two_pages_is_begun_again_and_loses_nothing(plane):
    for name in ("q", "r", "s"):
        make(plane, pod(name, 16), NAMESPACE)
    broken = []

    def connect(config):
        api = open_api(config)
        requested = api.page

        def page(path, query):
            if path.endswith("/pods") and "continue" in query and not broken:
                broken.append(query["continue"])
                make(plane, pod("late", 16), NAMESPACE)
                # A new process has no page of an older list in its cache, and etcd no longer has its revision.
                plane.api_server.kill()
                plane.forget()
                plane.api_server.start()
                plane.until(plane.ready)
            return requested(path, query)

        api.page = page
        return api

    path = plane.kubeconfig("pages", plane.token("gpugauge", "gpugauge-cluster"))
    pipeline = ClusterPipeline(ClusterConfig(kubeconfig=path, page_size=2), connect=connect)
    pipeline.start()
    try:
        plane.until(pipeline.ready)
        plane.until(lambda: pipeline.ready() and pods_of(pipeline) == {"p", "q", "r", "s", "late"})
        assert broken
        assert restarts_of(pipeline, "expired") == 1
    finally:
        pipeline.stop()


def samples(pipeline, name):
    families = pipeline.collect(time.time()).families
    return [
        (dict(labels.pairs), value) for each in families if each.metric.name == name for labels, value in each.samples
    ]


def pods_of(pipeline):
    return {labels["gpu_pod"] for labels, _ in samples(pipeline, "gpugauge_gpu_pod_info")}


def restarts_of(pipeline, reason):
    """How often the pods were listed or watched again."""
    found = samples(pipeline, "gpugauge_watch_restarts_total")
    return sum(value for labels, value in found if (labels["object"], labels["reason"]) == ("pods", reason))


def test_a_watch_from_before_all_history_is_answered_as_expired(plane):
    plane.api_server.kill()
    plane.move_on()
    plane.api_server.start()
    plane.until(plane.ready)
    (kind,) = (kind for kind in object_kinds(gpu_resources()) if kind.name == "pods")
    config = ClusterConfig(kubeconfig=plane.kubeconfig("old", plane.token("gpugauge", "gpugauge-cluster")))
    query = {**kind.query, "watch": "true", "resourceVersion": "1", "timeoutSeconds": "5"}
    with closing(open_api(config)) as api, api.lines(kind.paths[0], query, 10.0) as lines:
        line = next(lines)
    with pytest.raises(ApiError) as expired:
        kind.codec.change(line)
    assert expired.value.reason == WatchReason.EXPIRED
