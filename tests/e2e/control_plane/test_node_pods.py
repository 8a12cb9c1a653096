"""The node exporter's pod metadata on a real API server, with the rights of the shipped component and nothing else."""

import pytest

from exporter.gpu_names import GpuResources
from exporter.node.pods.name_patterns import NamePatterns
from exporter.node.pods.options import PodOptions
from exporter.node.pods.sources import pods_of_node
from exporter.node.service_account.account import ServiceAccount
from exporter.node.service_account.reasons import ApiReason
from tests.e2e.control_plane import processes
from tests.e2e.control_plane.plane import control_plane
from tests.e2e.control_plane.shipped import apply_rights, documents

pytestmark = processes.needs("etcd", "kube-apiserver")

GPU, PODS = "nvidia.com/gpu", "/api/v1/namespaces/default/pods"
GIVEN = [{"name": GPU, "resources": [{"resourceID": "GPU-1", "health": "Healthy"}]}]
RUNNING = {
    "phase": "Running",
    "containerStatuses": [
        {
            "name": "main",
            "image": "x",
            "imageID": "x",
            "ready": True,
            "restartCount": 0,
            "containerID": f"containerd://{'a' * 64}",
            "state": {"running": {}},
            "allocatedResourcesStatus": GIVEN,
        }
    ],
}


def pod(name, node="n1"):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name, "other": "x"}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "x", "resources": {"limits": {GPU: "1"}}}],
        },
    }


@pytest.fixture
def plane(tmp_path):
    """One that the test may end."""
    with control_plane(tmp_path) as started:
        apply_rights(started)
        yield started


@pytest.fixture
def source(plane, tmp_path):
    """The pods of node n1, with the token of the node exporter."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text(plane.token("gpugauge", "gpugauge-node"))
    (folder / "ca.crt").write_bytes(plane.ca.read_bytes())
    options = PodOptions("api", labels=NamePatterns.whole(("app",)))
    made = pods_of_node(options, ServiceAccount(plane.url, folder), "n1", GpuResources())
    yield made
    made.close()


def names(source):
    return [each.name for each in source.kept or ()]


def problem(source):
    found = source.state.problem
    return found and found[0]


def test_pods_of_the_node_are_read_with_the_shipped_rights_and_after_a_restart_of_the_api_server(plane, source):
    plane.until(lambda: problem(source) is ApiReason.FORBIDDEN)
    for each in documents("pod-metadata/rbac.yaml"):
        plane.apply(each)
    for name, node in (("a", "n1"), ("far", "n2"), ("b", "n1")):
        plane.call("POST", PODS, pod(name, node))
    plane.until(lambda: names(source) == ["a", "b"])
    plane.patch(f"{PODS}/a/status", {"status": RUNNING})
    running = plane.until(lambda: next((each for each in source.kept if each.phase == "Running"), None))
    (container,) = running.containers
    assert (running.name, dict(running.labels), container.id, container.running) == ("a", {"app": "a"}, "a" * 64, True)
    assert (dict(container.requests), container.device_ids) == ({GPU: 1}, ((GPU, "GPU-1"),))
    plane.delete(f"{PODS}/b", {"gracePeriodSeconds": 0})
    plane.until(lambda: names(source) == ["a"])
    plane.api_server.kill()
    plane.until(lambda: problem(source) is ApiReason.UNREACHABLE)
    assert names(source) == ["a"]
    plane.api_server.start()
    plane.until(plane.ready)
    plane.call("POST", PODS, pod("c"))
    plane.until(lambda: names(source) == ["a", "c"] and problem(source) is None)
