"""Since when pods that Kueue has admitted could be scheduled."""

import pytest

from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.view import view_of
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW
from tests.exporter.cluster.store_views import listed

TEMPLATE = {"spec": objects.pod("x")["spec"]}
MANAGED = {"kueue.x-k8s.io/managed": "true"}
GROUP = {**MANAGED, "kueue.x-k8s.io/pod-group-name": "g"}
CREATED, ADMITTED = NOW - 5000, NOW - 900


def workload(name, owner, admitted=ADMITTED):
    condition = {"type": "Admitted", "status": "True", "lastTransitionTime": objects.stamp(admitted)}
    meta = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": objects.stamp(CREATED)}
    pod_sets = [{"count": 1, "template": TEMPLATE}]
    return {
        "metadata": {**meta, "ownerReferences": [{**objects.owner("Pod", owner, "default"), "controller": False}]},
        "spec": {"queueName": "q", "podSets": pod_sets},
        "status": {"conditions": [condition]},
    }


def since(labels, *workloads):
    pod = objects.pod("p", created=CREATED, labels=labels)
    kinds = {"workloads": list(workloads)} if workloads else {}
    found = view_of(NOW, GPUS, listed(NOW, pods=[pod], **kinds), ClusterHistory())
    return found.pods[0].schedulable_since


@pytest.mark.parametrize(
    ("labels", "given"), [(MANAGED, workload("pod-p-abc", "p")), (GROUP, workload("g", "another"))]
)
def test_a_pod_that_kueue_admitted_is_schedulable_since_then(labels, given):
    assert since(labels, given) == ADMITTED


@pytest.mark.parametrize(
    ("labels", "given"),
    [
        (MANAGED, workload("pod-other-abc", "other")),
        (GROUP, workload("other", "p")),
        (MANAGED, workload("pod-p-abc", "p", CREATED - 60)),
    ],
)
def test_without_its_own_workload_a_pod_is_schedulable_since_it_was_first_seen(labels, given):
    assert since(labels, given) == NOW
    assert since(labels) == NOW


def test_a_pod_that_was_never_gated_is_schedulable_since_its_creation():
    assert since({}, workload("pod-p-abc", "p")) == CREATED
