"""What users reported of watching GPU pods and nodes, each by its number: what the watcher shows of such objects."""

import pytest

from exporter.cluster.config import ClusterConfig
from exporter.cluster.metrics.families import families
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.view import view_of
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, exposed
from tests.exporter.cluster.store_views import listed

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-2g.20gb"
H100 = objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)
NODE = objects.node("n1", {GPU: 8, MIG: 2}, H100)


def series(*, history=None, now=NOW, **kinds):
    """What is exposed of these objects, by series."""
    kinds = {"namespaces": [], "pods": [], "nodes": [NODE], **kinds}
    view = view_of(now, GPUS, listed(now, **kinds), history or ClusterHistory())
    return exposed(families(view, ClusterConfig(), []))


def values(found, metric, *parts):
    """The values of the metric's series that have all these labels."""
    return [
        value
        for key, value in found.items()
        if key.partition("{")[0] == metric and all(f'{part}"' in key for part in parts)
    ]


def with_containers(given, **groups):
    """The pod with these containers in place of its own: (devices, restart policy) of each, by group."""
    given["spec"] |= {
        group: [
            {**objects.container(f"{group}-{number}", devices), **({"restartPolicy": policy} if policy else {})}
            for number, (devices, policy) in enumerate(each)
        ]
        for group, each in groups.items()
    }
    return given


def ended(given, phase, reason=None):
    """The pod, which ended in this phase."""
    given["status"] |= {"phase": phase, **({"reason": reason} if reason else {})}
    return given


def one(devices, policy=None):
    return [({GPU: str(devices)}, policy)]


def test_report_41_a_watcher_that_is_replaced_changes_neither_series_nor_the_times_that_alerts_count_from():
    waiting = objects.pod("p", "team-a", {GPU: 4}, created=NOW - 3000)
    pods = [objects.unschedulable(waiting, "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", NOW - 2999)]
    of_pods = {key: value for key, value in series(pods=pods).items() if "gpugauge_pending" in key}
    later = series(pods=pods, now=NOW + 900)
    assert of_pods == {key: later[key] for key in of_pods}
    assert values(later, "gpugauge_pending_pod_since_timestamp_seconds") == [NOW - 3000]
    assert values(later, "gpugauge_pending_workload_since_timestamp_seconds") == [NOW - 3000]


def test_report_43_gpus_are_counted_as_the_scheduler_does_and_finished_pods_and_mig_devices_apart():
    limits_only = objects.pod("limits", "team-a", {GPU: 2})
    del limits_only["spec"]["containers"][0]["resources"]["requests"]
    pods = [
        ended(objects.running(objects.pod("done", "team-a", {GPU: 4}), "n1"), "Succeeded"),
        objects.running(with_containers(objects.pod("init", "team-a"), initContainers=one(2), containers=one(1)), "n1"),
        objects.running(limits_only, "n1"),
        objects.running(objects.pod("mig", "team-a", {MIG: 1}), "n1"),
        objects.running(
            with_containers(objects.pod("sidecar", "team-a"), initContainers=one(1, "Always"), containers=one(1)), "n1"
        ),
    ]
    found = series(pods=pods)
    assert values(found, "gpugauge_node_gpu_requested", 'resource="nvidia_com_gpu') == [6]
    assert values(found, "gpugauge_node_gpu_free", 'resource="nvidia_com_gpu') == [2]
    assert values(found, "gpugauge_node_gpu_requested", 'resource="nvidia_com_mig_2g_20gb') == [1]
    assert values(found, "gpugauge_gpu_pod_info", 'gpu_pod="done') == []


def test_report_80_a_node_that_no_longer_offers_its_gpus_is_named_and_so_are_the_pods_that_want_them():
    waiting = objects.pod("p", "team-a", {GPU: 4}, created=NOW - 3000)
    message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    pods = [objects.unschedulable(waiting, message, NOW - 2999)]
    unhealthy = objects.node("n1", {GPU: 8}, H100)
    unhealthy["status"]["allocatable"][GPU] = "0"
    found = series(nodes=[unhealthy], pods=pods)
    assert values(found, "gpugauge_node_gpu_capacity", 'node="n1') == [8]
    assert values(found, "gpugauge_node_gpu_allocatable", 'node="n1') == [0]
    assert values(found, "gpugauge_pending_pods", 'reason="gpu_unavailable') == [1]
    away = series(nodes=[objects.node("n1", {}, H100)], pods=pods, resourceslices=[])
    assert values(away, "gpugauge_node_device_plugin_registered", 'node="n1') == [0]
    assert values(away, "gpugauge_pending_pods", 'reason="gpu_unavailable') == [1]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            "no nodes with enough resources were found: 2 node(s) didn't have enough resources: GPUs.",
            "insufficient_gpu",
        ),
        ("0/2 nodes are available: 2 Insufficient nvidia.com/gpumem.", "insufficient_gpu"),
        ("0/2 nodes are available: 1 CardInsufficientMemory, 1 NodeUnfitPod.", "insufficient_gpu"),
        ("pod group is not ready, 2 Pending, 2 minAvailable", "gang"),
        ("3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable", "gang"),
    ],
)
def test_report_81_the_words_of_other_schedulers_have_a_reason(message, reason):
    pods = [
        objects.running(objects.pod("busy", "team-a", {GPU: 8}), "n1"),
        objects.unschedulable(objects.pod("p", "team-b", {GPU: 1}, created=NOW - 100), message, NOW - 99),
    ]
    found = series(pods=pods, nodes=[objects.node("n1", {GPU: 8}, H100)])
    assert values(found, "gpugauge_pending_pods", 'gpu_namespace="team-b', f'reason="{reason}') == [1]
    assert values(found, "gpugauge_scheduler_messages_unknown") == [0]


def test_report_81_a_gang_of_which_a_scheduler_says_this_pod_could_run_waits_for_the_others():
    message = (
        "3/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 1 Schedulable"
    )
    waiting = objects.unschedulable(objects.pod("p", "team-b", {GPU: 1}, created=NOW - 100), message, NOW - 99)
    waiting["status"]["conditions"][-1]["reason"] = "Schedulable"
    found = series(pods=[waiting])
    assert values(found, "gpugauge_pending_pods", 'reason="gang') == [1]


def test_report_82_a_bound_pod_whose_image_cannot_be_pulled_has_that_reason_and_takes_its_gpus():
    bound = objects.bound(objects.pod("p", "team-a", {GPU: 4}, created=NOW - 7300), "n1", NOW - 7200)
    state = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
    bound["status"]["containerStatuses"] = [{"name": "main", "state": state}]
    found = series(pods=[bound])
    assert values(found, "gpugauge_pending_pods") == [1]
    assert values(found, "gpugauge_pending_pods", 'reason="image_pull') == [1]
    assert values(found, "gpugauge_pending_pod_reason", 'reason="image_pull') == [1]
    assert values(found, "gpugauge_node_gpu_requested", 'resource="nvidia_com_gpu') == [4]


def test_report_83_a_pod_that_a_kubelet_rejects_is_counted_by_node_and_takes_no_gpus():
    history = ClusterHistory()
    series(history=history)
    rejected = objects.bound(objects.pod("p", "team-a", {GPU: 4}, created=NOW - 60), "n1", NOW - 50)
    found = series(history=history, pods=[ended(rejected, "Failed", "UnexpectedAdmissionError")])
    assert values(found, "gpugauge_pod_admission_failures_total", 'gpu_namespace="team-a', 'node="n1') == [1]
    assert values(found, "gpugauge_node_gpu_requested", 'resource="nvidia_com_gpu') == [0]
    assert values(found, "gpugauge_gpu_pod_failures_total") == []


def suspended_job(name):
    """A Job that Kueue keeps from having pods, with the Workload that Kueue made for it."""
    template = {"spec": objects.pod("x", requests={GPU: 2})["spec"]}
    meta = {"namespace": "team-a", "creationTimestamp": objects.stamp(NOW - 500)}
    job = {
        "metadata": {**meta, "name": name, "uid": name, "labels": {"kueue.x-k8s.io/queue-name": "big"}},
        "spec": {"suspend": True, "parallelism": 4, "completions": 4, "template": template},
    }
    workload = {
        "metadata": {
            **meta,
            "name": f"job-{name}",
            "uid": "w",
            "ownerReferences": [objects.owner("Job", name, "team-a")],
        },
        "spec": {"queueName": "big", "active": True, "podSets": [{"name": "main", "count": 4, "template": template}]},
        "status": {"conditions": [{"type": "QuotaReserved", "status": "False", "reason": "Pending"}]},
    }
    return {"jobs": [job], "workloads": [workload]}


def test_report_84_work_that_a_queue_keeps_from_having_pods_is_counted_once_with_its_devices():
    found = series(**suspended_job("train"))
    assert values(found, "gpugauge_pending_workloads", 'queue="big', 'reason="queued') == [1]
    assert values(found, "gpugauge_pending_workloads") == [1]
    assert values(found, "gpugauge_pending_workload_devices") == [8]
    assert values(found, "gpugauge_pending_pods") == []
