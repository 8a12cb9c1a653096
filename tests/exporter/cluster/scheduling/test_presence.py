"""What is counted of a namespace or node ends some time after it."""

from exporter.cluster.config import ClusterConfig
from exporter.cluster.metrics.pending import pending_families
from exporter.cluster.metrics.pods import failure_family, wait_family
from exporter.cluster.scheduling.keeping.history import ClusterHistory, Presence
from exporter.cluster.view import view_of
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, exposed
from tests.exporter.cluster.store_views import listed

GPU = "nvidia.com/gpu"
NODES = [objects.node(name, {GPU: 8}) for name in ("n1", "n2")]
NAMESPACES = [objects.namespace(name) for name in ("team-a", "team-b")]


def ended(name, namespace, node, reason=None):
    given = objects.bound(objects.pod(name, namespace, {GPU: 1}, created=NOW - 60), node, NOW - 30)
    given["status"] |= {"phase": "Failed", **({"reason": reason} if reason else {})}
    return given


def counted(history, at, *, pods=(), nodes=NODES, namespaces=NAMESPACES):
    """The series that count pods, at so many seconds; a kind that is None may not be read."""
    given = {"pods": list(pods), "nodes": nodes, "namespaces": namespaces}
    known = {name: each for name, each in given.items() if each is not None}
    view = view_of(NOW + at, GPUS, listed(NOW + at, **known), history)
    found = [*pending_families(view, ClusterConfig()), failure_family(view), wait_family(view)]
    names = ("gpugauge_pod_admission_failures_total", "gpugauge_gpu_pod_failures_total", "gpugauge_pod_scheduling_wait")
    return sorted(key for key in exposed(found) if key.startswith(names))


def some():
    """A history of two namespaces and nodes, each with a pod that failed, was rejected and was bound."""
    history = ClusterHistory()
    counted(history, 0)
    pods = [
        each
        for namespace, node in (("team-a", "n1"), ("team-b", "n2"))
        for each in (
            ended(f"failed-{node}", namespace, node),
            ended(f"rejected-{node}", namespace, node, "UnexpectedAdmissionError"),
            objects.running(objects.pod(f"ran-{node}", namespace, {GPU: 1}, created=NOW - 60), node, NOW - 30),
        )
    ]
    assert len(counted(history, 30, pods=pods)) == 6
    return history


def test_what_was_counted_stays_while_its_namespace_and_node_are_there():
    history = some()
    assert len(counted(history, 60)) == 6
    assert len(counted(history, 100_000)) == 6


def test_a_namespace_that_is_gone_for_15_minutes_ends_its_series():
    history = some()
    assert len(counted(history, 900, namespaces=NAMESPACES[:1])) == 6
    left = counted(history, 931, namespaces=NAMESPACES[:1])
    assert len(left) == 4
    assert not [key for key in left if "team-b" in key]


def test_a_node_that_is_gone_for_15_minutes_ends_its_series():
    history = some()
    assert len(counted(history, 900, nodes=NODES[:1])) == 6
    left = counted(history, 931, nodes=NODES[:1])
    assert len(left) == 4
    assert not [key for key in left if 'node="n2"' in key]


def test_nothing_ends_while_namespaces_and_nodes_are_not_known():
    history = some()
    assert len(counted(history, 100_000, nodes=None, namespaces=None)) == 6
    assert len(counted(history, 100_030)) == 6


def test_a_pod_that_failed_because_its_node_is_gone_is_counted():
    history = ClusterHistory()
    counted(history, 0, nodes=NODES[:1])
    lost = ended("p", "team-b", "n2")
    lost["status"]["conditions"].append({"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"})
    found = counted(history, 30, nodes=NODES[:1], pods=[lost])
    assert found == ['gpugauge_gpu_pod_failures_total{node="n2",reason="node_lost"}']


def test_a_name_is_there_until_it_has_been_gone_for_15_minutes():
    presence = Presence()
    presence.update(["a", "b"], 0.0)
    presence.update(["a"], 900.0)
    assert "b" in presence
    presence.update(["a"], 901.0)
    assert "b" not in presence
    assert "a" in presence
