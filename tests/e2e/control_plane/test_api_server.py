"""The flow of the watcher against a real API server that has no scheduler."""

import time

import pytest

from exporter.cluster.config import ClusterConfig
from exporter.cluster.pipeline import ClusterPipeline
from simulators import objects
from tests.e2e.control_plane import processes
from tests.e2e.control_plane.plane import control_plane, until
from tests.e2e.control_plane.shipped import apply_rights

GPU = "nvidia.com/gpu"
PODS = "/api/v1/namespaces/team-a/pods"
"""Created once and changed by no test."""
CHANGING_PODS = "/api/v1/namespaces/team-b/pods"
SINCE = "gpugauge_pending_pod_since_timestamp_seconds"
FULL = (
    "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available: "
    "1 No preemption victims found for incoming pod."
)
BINDING = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/gpugauge-cluster"

pytestmark = processes.needs("etcd", "kube-apiserver")


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """Without a scheduler: pods stay as they are made."""
    with control_plane(tmp_path_factory.mktemp("plane")) as running:
        apply_rights(running)
        running.create("/api/v1/namespaces", objects.namespace("team-a", {"gpugauge.io/low-utilization": "disabled"}))
        running.create("/api/v1/namespaces", objects.namespace("team-b"))
        add_node(running, "h1", 8)
        for number in range(12):
            running.create(PODS, objects.pod(f"train-{number}", "team-a", {GPU: 4}))
        running.patch(f"{PODS}/train-0/status", objects.unschedulable({"status": {}}, FULL, time.time()))
        running.create(PODS, objects.gated(objects.pod("gated", "team-a"), "example.com/wait"))
        yield running


@pytest.fixture
def pipeline(plane):
    path = plane.kubeconfig("pipeline", plane.token("gpugauge", "gpugauge-cluster"))
    watching = ClusterPipeline(ClusterConfig(kubeconfig=path, page_size=5, watch_seconds=9.0, tracked_after=-1.0))
    watching.start()
    yield watching
    watching.stop()


def add_node(plane, name, count):
    plane.create("/api/v1/nodes", objects.node(name, {GPU: count}, objects.gpu_labels("NVIDIA-H100-80GB-HBM3", count)))
    plane.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})


def series(pipeline):
    return {
        family.metric.name + labels.text: value
        for family in pipeline.collect(time.time()).families
        for labels, value in family.samples
    }


def pending_pods(pipeline, namespace):
    """The names of the pods that have a pending series of their own."""
    start = f'{SINCE}{{namespace="{namespace}",'
    return {key.split('gpu_pod="')[1].split('"')[0] for key in series(pipeline) if key.startswith(start)}


def test_without_rights_the_reason_is_forbidden_until_they_are_back(plane, pipeline):
    until(pipeline.ready)
    plane.delete(BINDING, {})
    try:
        until(lambda: pipeline.collect(time.time()).health[0].reason == "forbidden")
    finally:
        apply_rights(plane)
    until(lambda: pipeline.collect(time.time()).health[0].up)


def test_nodes_pods_and_namespaces_are_exposed(pipeline):
    until(pipeline.ready)
    found = series(pipeline)
    node = '{node="h1",resource="nvidia_com_gpu",model="NVIDIA-H100-80GB-HBM3"}'
    assert found["gpugauge_node_gpu_free" + node] == 8
    assert found['gpugauge_node_gpu_schedulable{node="h1"}'] == 1
    pods = 'gpugauge_pending_pods{namespace="team-a",'
    counts = {key.split('reason="')[1][:-2]: value for key, value in found.items() if key.startswith(pods)}
    assert counts == {"insufficient_gpu": 1, "not_tried": 11, "gated": 1}
    assert pending_pods(pipeline, "team-a") == {f"train-{number}" for number in range(12)}
    exemption = '{namespace="team-a",gpu_namespace="team-a",alert="low-utilization",until=""}'
    assert found["gpugauge_namespace_alert_exemption" + exemption] == 1


def test_the_condition_of_a_gated_pod_has_no_transition_time_or_that_of_its_creation(plane):
    status = plane.call("GET", f"{PODS}/gated")["status"]
    condition = next(each for each in status["conditions"] if each["type"] == "PodScheduled")
    assert condition["reason"] == "SchedulingGated"
    given = objects.gated(objects.pod("new", "team-b"), "a/b")
    given.pop("status")
    created = plane.create(CHANGING_PODS, given)
    written = next(each for each in created["status"]["conditions"] if each["type"] == "PodScheduled")
    assert written["reason"] == "SchedulingGated"
    # 1.36.2 writes the time of creation: a pod that was gated then looks like one that was tried at once.
    assert written.get("lastTransitionTime") in (None, created["metadata"]["creationTimestamp"])
    plane.call("DELETE", f"{CHANGING_PODS}/new?gracePeriodSeconds=0")


def test_changes_arrive_through_the_watch(plane, pipeline):
    add_node(plane, "h2", 8)
    plane.create(CHANGING_PODS, objects.gated(objects.pod("opened", "team-b"), "example.com/wait"))
    for name in ("bound", "deleted"):
        plane.create(CHANGING_PODS, objects.pod(name, "team-b", {GPU: 4}))
    until(pipeline.ready)
    until(lambda: {"bound", "deleted"} <= pending_pods(pipeline, "team-b"))
    assert "opened" not in pending_pods(pipeline, "team-b")
    removed_at = time.time()
    plane.patch(f"{CHANGING_PODS}/opened", {"spec": {"schedulingGates": []}})
    key = until(
        lambda: next((key for key in series(pipeline) if key.startswith(SINCE) and 'gpu_pod="opened"' in key), None)
    )
    assert removed_at - 1 <= series(pipeline)[key] <= time.time()
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "bound"},
        "target": {"kind": "Node", "name": "h2"},
    }
    plane.call("POST", f"{CHANGING_PODS}/bound/binding", binding)
    node = '{node="h2",resource="nvidia_com_gpu",model="NVIDIA-H100-80GB-HBM3"}'
    until(lambda: series(pipeline)["gpugauge_node_gpu_free" + node] == 4)
    plane.call("DELETE", f"{CHANGING_PODS}/deleted?gracePeriodSeconds=0")
    until(lambda: "deleted" not in pending_pods(pipeline, "team-b"))


def test_the_stores_stay_current_over_several_watches(plane, pipeline):
    until(pipeline.ready)
    time.sleep(12)  # a watch lasts nine seconds at most
    plane.create(CHANGING_PODS, objects.pod("late", "team-b"))
    until(lambda: "late" in pending_pods(pipeline, "team-b"))
    assert not {key: value for key, value in series(pipeline).items() if "restarts" in key and value}
    assert pipeline.collect(time.time()).health[0].up
