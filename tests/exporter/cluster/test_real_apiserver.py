"""The watcher against a real kube-apiserver, where the machine has one."""

import time

import pytest

from exporter.cluster.config import ClusterConfig
from exporter.cluster.pipeline import ClusterPipeline
from simulators import objects
from tests.exporter.cluster import control_plane

GPU = "nvidia.com/gpu"
PODS = "/api/v1/namespaces/team-a/pods"
SINCE = "gpugauge_pending_pod_since_timestamp_seconds"
FULL = (
    "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available: "
    "1 No preemption victims found for incoming pod."
)
RBAC = "/apis/rbac.authorization.k8s.io/v1"
RIGHTS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "gpugauge"},
    "rules": [{"apiGroups": [""], "resources": ["pods", "nodes", "namespaces"], "verbs": ["list", "watch"]}],
}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "gpugauge"},
    "subjects": [{"kind": "User", "name": "watcher", "apiGroup": "rbac.authorization.k8s.io"}],
    "roleRef": {"kind": "ClusterRole", "name": "gpugauge", "apiGroup": "rbac.authorization.k8s.io"},
}
MISSING = [
    name for name, path in zip(("kube-apiserver", "etcd"), control_plane.binaries(), strict=True) if path is None
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(MISSING),
        reason=f"not on PATH: {', '.join(MISSING)} (GPUGAUGE_KUBE_APISERVER and GPUGAUGE_ETCD may name them)",
    ),
]


def until(what, seconds=40.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := what():
            return answer
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with control_plane.running(tmp_path_factory.mktemp("plane")) as running:
        running.create("/api/v1/namespaces", objects.namespace("team-a", {"gpugauge.io/low-utilization": "disabled"}))
        running.create(f"{RBAC}/clusterroles", RIGHTS)
        running.create(f"{RBAC}/clusterrolebindings", BINDING)
        add_node(running, "h1", 8)
        for number in range(12):
            running.create(PODS, objects.pod(f"train-{number}", "team-a", {GPU: 4}))
        running.patch(f"{PODS}/train-0/status", objects.unschedulable({"status": {}}, FULL, time.time()))
        running.create(PODS, objects.gated(objects.pod("held", "team-a"), "example.com/wait"))
        yield running


@pytest.fixture
def pipeline(plane, tmp_path):
    path = plane.kubeconfig(tmp_path / "config", control_plane.WATCHER)
    watching = ClusterPipeline(ClusterConfig(kubeconfig=path, page=5, watch_seconds=9.0, tracked_after=-1.0))
    watching.start()
    yield watching
    watching.stop()


def add_node(plane, name, count):
    plane.create("/api/v1/nodes", objects.node(name, {GPU: count}, objects.gpu_labels("NVIDIA-H100-80GB-HBM3", count)))
    plane.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})


def series(pipeline):
    return {
        family.metric.name + labels.text: value
        for family in pipeline.take(time.time()).families
        for labels, value in family.samples
    }


def names(pipeline, metric):
    return {key.split('gpu_pod="')[1].split('"')[0] for key in series(pipeline) if key.startswith(metric + "{")}


def test_it_says_that_it_is_forbidden_and_goes_on_once_it_may(plane, pipeline):
    until(pipeline.ready)
    plane.call("DELETE", f"{RBAC}/clusterrolebindings/gpugauge")
    until(lambda: pipeline.take(time.time()).health[0].reason == "forbidden")
    plane.create(f"{RBAC}/clusterrolebindings", BINDING)
    until(lambda: pipeline.take(time.time()).health[0].up)


def test_what_the_cluster_holds_is_on_the_page(pipeline):
    until(pipeline.ready)
    page = series(pipeline)
    node = '{node="h1",resource="nvidia_com_gpu",model="NVIDIA-H100-80GB-HBM3"}'
    assert page["gpugauge_node_gpu_free" + node] == 8
    assert page['gpugauge_node_gpu_schedulable{node="h1"}'] == 1
    counts = {
        key.split('reason="')[1][:-2]: value for key, value in page.items() if key.startswith("gpugauge_pending_pods{")
    }
    assert counts == {"insufficient_gpu": 1, "not_tried": 11, "gated": 1}
    assert names(pipeline, SINCE) == {f"train-{number}" for number in range(12)}
    optout = '{namespace="team-a",gpu_namespace="team-a",alert="low-utilization",until=""}'
    assert page["gpugauge_namespace_alert_optout" + optout] == 1


def test_the_condition_of_a_gated_pod_has_no_transition_time_or_that_of_its_creation(plane):
    status = plane.call("GET", f"{PODS}/held")["status"]
    condition = next(each for each in status["conditions"] if each["type"] == "PodScheduled")
    assert condition["reason"] == "SchedulingGated"
    given = objects.gated(objects.pod("gated", "team-a"), "a/b")
    given.pop("status")
    fresh = plane.create(PODS, given)
    written = next(each for each in fresh["status"]["conditions"] if each["type"] == "PodScheduled")
    assert written["reason"] == "SchedulingGated"
    # 1.36.2 writes the time of creation: then nothing tells a pod that was gated from one that was tried at once.
    assert written.get("lastTransitionTime") in (None, fresh["metadata"]["creationTimestamp"])
    plane.call("DELETE", f"{PODS}/gated?gracePeriodSeconds=0")


def test_changes_arrive_through_the_watch(plane, pipeline):
    until(pipeline.ready)
    opened_at = time.time()
    plane.patch(f"{PODS}/held", {"spec": {"schedulingGates": []}})
    key = until(
        lambda: next((key for key in series(pipeline) if key.startswith(SINCE) and 'gpu_pod="held"' in key), None)
    )
    assert opened_at - 1 <= series(pipeline)[key] <= time.time()
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "train-1"},
        "target": {"kind": "Node", "name": "h1"},
    }
    plane.call("POST", f"{PODS}/train-1/binding", binding)
    node = '{node="h1",resource="nvidia_com_gpu",model="NVIDIA-H100-80GB-HBM3"}'
    until(lambda: series(pipeline)["gpugauge_node_gpu_free" + node] == 4)
    plane.call("DELETE", f"{PODS}/train-2?gracePeriodSeconds=0")
    until(lambda: "train-2" not in names(pipeline, SINCE))


def test_it_stays_current_over_several_watches(plane, pipeline):
    until(pipeline.ready)
    end = time.time() + 12
    until(lambda: time.time() > end)
    plane.create(PODS, objects.pod("late", "team-a"))
    until(lambda: "late" in names(pipeline, SINCE))
    page = series(pipeline)
    assert not {key: value for key, value in page.items() if "restarts" in key and value}
    assert pipeline.take(time.time()).health[0].up
