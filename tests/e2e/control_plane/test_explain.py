"""`gpugauge explain` with the rights of one namespace, on the real API server's RBAC."""

import json
import time

import pytest

from exporter.cli import parse
from exporter.commands.explain.command import run
from exporter.config import ConfigError
from tests.e2e.control_plane import processes
from tests.e2e.control_plane.situation import h100, made, pod, situation

pytestmark = processes.needs("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")

NAMESPACE = "tenants-own"
RBAC = "rbac.authorization.k8s.io"
NINE_OF_EIGHT = situation(NAMESPACE, "unsatisfiable_size", h100("n1"), pod("p", 9))
NOT_SEEN = [
    "pods of other namespaces",
    "nodes",
    "events of other namespaces",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourceslices",
    "deviceclasses",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "jobs",
    "nodepools",
    "configmaps",
    "workloads",
]


def tenant(namespace):
    """A role for pods and events of one namespace, and the tenant who has it."""
    metadata = {"name": "tenant", "namespace": namespace}
    rules = [{"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["get", "list"]}]
    yield {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    subject = {"kind": "User", "name": "tenant", "apiGroup": RBAC}
    role = {"kind": "Role", "name": "tenant", "apiGroup": RBAC}
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "subjects": [subject],
        "roleRef": role,
    }


@pytest.fixture
def explained(plane):
    """Explains a pod as the tenant."""
    path = plane.kubeconfig("tenant", processes.TENANT)

    def explain(name, *flags):
        return json.loads(run(parse(["explain", name, "--json", "--kubeconfig", path, *flags], {}), time.time))

    with made(plane, NINE_OF_EIGHT):
        for each in tenant(NAMESPACE):
            plane.apply(each)
        yield explain


def test_the_pod_and_its_message_are_explained_and_what_is_not_seen_is_named(explained):
    found = explained(f"{NAMESPACE}/p")
    assert found["reason"] == "insufficient_gpu"
    assert found["message"].startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    assert found["nodes"] == []
    assert found["not_seen"] == NOT_SEEN
    for other in ("default/p", "gpugauge/p"):
        with pytest.raises(ConfigError, match=f"the pods of namespace {other.partition('/')[0]} may not be read"):
            explained(other)


def test_a_watcher_that_can_be_reached_knows_what_the_tenant_does_not_see(plane, watcher, explained):
    address = f"http://127.0.0.1:{watcher.port}"
    # A watcher has a series of the pod once it has waited for a minute.
    plane.until(lambda: explained(f"{NAMESPACE}/p", "--watcher", address)["reason"] == "unsatisfiable_size")
