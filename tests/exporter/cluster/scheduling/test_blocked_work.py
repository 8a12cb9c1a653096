"""GPU work that has no pods: held by a queue, or rejected by a quota or the API server."""

import pytest

from exporter.cluster.metrics.blocked_work import blocked_work_families
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.scheduling.reasons.blocked_work import blocked_work
from exporter.cluster.view import view_of
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, exposed
from tests.exporter.cluster.store_views import listed

GPU = "nvidia.com/gpu"
QUOTA = 'pods "x" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=1, used: 8, limited: 8'
LIMIT = 'pods "x" is forbidden: maximum nvidia.com/gpu usage per Container is 1, but limit is 2'
TEMPLATE = {"spec": objects.pod("x", requests={GPU: 2})["spec"]}


def controller(name, spec, status=None, *, labels=None, owner=None):
    meta = {
        "name": name,
        "namespace": "team-a",
        "uid": name,
        "creationTimestamp": objects.stamp(NOW - 500),
        "labels": labels or {},
        "ownerReferences": [owner] if owner else None,
    }
    return {"metadata": meta, "spec": {"template": TEMPLATE, **spec}, "status": status or {}}


def failed(message):
    return {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}


def failed_create(uid, message, at=NOW - 30):
    about = {"kind": "Job", "namespace": "team-a", "name": uid, "uid": uid}
    meta = {"name": f"{uid}.{at}", "namespace": "team-a", "creationTimestamp": objects.stamp(at)}
    times = {"lastTimestamp": objects.stamp(at)}
    return {"metadata": meta, "involvedObject": about, "reason": "FailedCreate", "message": message, **times}


def workload(name, *conditions, owner=None, active=True, count=4):
    meta = {
        "name": name,
        "namespace": "team-a",
        "uid": name,
        "creationTimestamp": objects.stamp(NOW - 500),
        "ownerReferences": [owner or objects.owner("RayCluster", "ray", "team-a")],
    }
    pod_sets = [{"name": "head", "count": 1, "template": TEMPLATE}, {"name": "w", "count": count, "template": TEMPLATE}]
    status = {"conditions": [{"type": each, "status": "True"} for each in conditions]}
    return {"metadata": meta, "spec": {"queueName": "big", "active": active, "podSets": pod_sets}, "status": status}


def view(**kinds):
    return view_of(NOW, GPUS, listed(NOW, **kinds), ClusterHistory())


def blocked(**kinds):
    """(reason, queue, devices) by kind and name."""
    found = view(**kinds)
    return {
        f"{each.kind}/{each.name}": (str(each.reason), each.queue, sum(count for _, count in each.requests))
        for each in blocked_work(found.controllers, found.events, NOW)
    }


@pytest.mark.parametrize(("message", "reason"), [(QUOTA, "quota"), (LIMIT, "admission_failed")])
def test_a_replicaset_says_in_its_status_why_its_pods_are_rejected(message, reason):
    given = controller("rs", {"replicas": 3}, {"replicas": 1, "conditions": [failed(message)]})
    assert blocked(replicasets=[given]) == {"ReplicaSet/rs": (reason, "", 4)}


@pytest.mark.parametrize(
    ("kind", "found", "spec", "status", "devices"),
    [
        ("jobs", "Job/x", {"parallelism": 4}, {"active": 1}, 6),
        ("jobs", "Job/x", {"parallelism": 4, "completions": 3}, {"succeeded": 1}, 4),
        ("jobs", "Job/x", {}, {}, 2),
        ("statefulsets", "StatefulSet/x", {"replicas": 3}, {"replicas": 1}, 4),
        ("daemonsets", "DaemonSet/x", {}, {"desiredNumberScheduled": 5, "currentNumberScheduled": 2}, 6),
    ],
)
def test_of_other_controllers_only_events_say_why_their_pods_are_rejected(kind, found, spec, status, devices):
    given = {kind: [controller("x", spec, status)]}
    assert blocked(**given) == {}
    assert blocked(**given, events=[failed_create("x", QUOTA)]) == {found: ("quota", "", devices)}


def test_the_last_event_counts():
    events = [failed_create("x", LIMIT, NOW - 90), failed_create("x", QUOTA, NOW - 30)]
    assert blocked(jobs=[controller("x", {})], events=events) == {"Job/x": ("quota", "", 2)}


def test_an_event_that_was_not_repeated_no_longer_counts():
    events = [failed_create("x", QUOTA, NOW - 1300)]
    assert blocked(jobs=[controller("x", {})], events=events) == {}


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"replicas": 2}, {"replicas": 2}),
        ({"replicas": 0}, {}),
        ({"replicas": 2, "template": {"spec": objects.pod("x", requests={})["spec"]}}, {}),
        ({"replicas": 2, "template": None}, None),
    ],
)
def test_a_controller_that_lacks_no_gpu_pod_is_not_blocked(spec, status):
    assert blocked(replicasets=[controller("x", spec, status)], events=[failed_create("x", QUOTA)]) == {}


@pytest.mark.parametrize("condition", ["Complete", "Failed"])
def test_a_job_that_has_ended_is_not_blocked(condition):
    ended = controller("x", {}, {"conditions": [{"type": condition, "status": "True"}]})
    assert blocked(jobs=[ended], events=[failed_create("x", QUOTA)]) == {}


def test_a_suspended_job_is_queued_when_it_names_a_queue():
    queued = controller("q", {"suspend": True}, labels={"kueue.x-k8s.io/queue-name": "big"})
    by_hand = controller("h", {"suspend": True})
    assert blocked(jobs=[queued, by_hand]) == {"Job/q": ("queued", "big", 2)}


@pytest.mark.parametrize(
    ("conditions", "active", "is_blocked"),
    [
        ([], True, True),
        (["QuotaReserved"], True, True),
        (["QuotaReserved", "Admitted"], True, False),
        (["Finished"], True, False),
        ([], False, False),
    ],
)
def test_a_workload_is_queued_until_it_is_admitted(conditions, active, is_blocked):
    found = blocked(workloads=[workload("w", *conditions, active=active)])
    assert found == ({"Workload/w": ("queued", "big", 10)} if is_blocked else {})


def test_a_job_is_not_counted_beside_its_workload():
    queued = controller("q", {"suspend": True}, labels={"kueue.x-k8s.io/queue-name": "big"})
    own = workload("w", owner=objects.owner("Job", "q", "team-a"))
    assert blocked(jobs=[queued], workloads=[own]) == {"Workload/w": ("queued", "big", 10)}


def test_a_workload_of_pods_is_counted_as_pods():
    assert blocked(workloads=[workload("w", owner=objects.owner("Pod", "p", "team-a"))]) == {}


def test_blocked_work_is_counted_by_queue_resource_and_reason():
    jobs = [controller(name, {"suspend": True}, labels={"kueue.x-k8s.io/queue-name": "big"}) for name in "ab"]
    series = exposed(blocked_work_families(view(jobs=jobs)))
    labels = '{namespace="team-a",gpu_namespace="team-a",queue="big",resource="nvidia_com_gpu",reason="queued"}'
    assert series == {
        f"gpugauge_pending_workloads{labels}": 2,
        f"gpugauge_pending_workload_devices{labels}": 4,
    }


def test_events_that_nobody_needs_are_not_kept():
    usual = {**failed_create("x", ""), "reason": "Pulled"}
    assert view(events=[usual]).events == {}
