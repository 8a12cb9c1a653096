"""What nobody may achieve by what they set on pods, namespaces, nodes and other objects: see docs/threat-model.md."""

from exporter.cluster.config import ClusterConfig
from exporter.cluster.metrics.families import families
from exporter.cluster.scheduling.history import ClusterHistory
from exporter.cluster.view import view_of
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, exposed
from tests.exporter.cluster.store_views import listed

GPU = "nvidia.com/gpu"
H100 = objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)
NODE = objects.node("n1", {GPU: 8}, H100)
FULL = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def series(**kinds):
    """What is exposed of these objects, by series."""
    kinds = {"namespaces": [], "pods": [], "nodes": [NODE], **kinds}
    view = view_of(NOW, GPUS, listed(NOW, **kinds), ClusterHistory())
    return exposed(families(view, ClusterConfig(), []))


def of_team_a(found):
    """The series about team-a, and those of nodes and of the whole cluster."""
    return {key: value for key, value in found.items() if 'namespace="' not in key or 'gpu_namespace="team-a"' in key}


def pending(name, namespace="team-a", **more):
    given = objects.pod(name, namespace, {GPU: 4}, created=NOW - 3000, **more)
    return objects.unschedulable(given, FULL, NOW - 2999)


def event(namespace, reason, uid, message=""):
    return {
        "metadata": {"name": f"{reason}.{uid}", "namespace": namespace, "creationTimestamp": objects.stamp(NOW - 30)},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "p", "uid": uid},
        "reason": reason,
        "message": message,
    }


def test_an_event_of_another_namespace_changes_no_reason():
    full = [objects.running(objects.pod("busy", "team-a", {GPU: 8}), "n1")]
    bound = objects.bound(objects.pod("bound", "team-a", {GPU: 4}), "n1", NOW - 100)
    pods = [*full, pending("p"), bound]
    uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in pods}

    def events(namespace):
        return [
            event(namespace, "TriggeredScaleUp", uids["p"]),
            event(namespace, "FailedMount", uids["bound"]),
        ]

    before = series(pods=pods, events=[])
    assert series(pods=pods, events=events("team-b")) == before
    assert series(pods=pods, events=events("team-a")) != before


def test_an_event_of_another_namespace_blocks_no_work():
    template = {"spec": objects.pod("x", requests={GPU: 2})["spec"]}
    meta = {"name": "j", "namespace": "team-a", "uid": "u", "creationTimestamp": objects.stamp(NOW - 500)}
    job = {"metadata": meta, "spec": {"template": template}, "status": {}}

    def blocked(namespace):
        found = series(jobs=[job], events=[event(namespace, "FailedCreate", "u", "exceeded quota: q")])
        return [value for key, value in found.items() if key.startswith("gpugauge_pending_workloads{")]

    assert blocked("team-a") == [1]
    assert blocked("team-b") == []
