"""The cluster autoscaler's status decides between what can never be met and what is being made."""

import pytest

from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.view import view_of
from simulators import objects
from tests.exporter.cluster.autoscaler import GKE, config_map, group, text_status, yaml_status
from tests.exporter.cluster.fixture import GPUS, NOW
from tests.exporter.cluster.store_views import listed

GPU = "nvidia.com/gpu"
POOL = "cloud.google.com/gke-nodepool"
NAME = GKE.format("big")
SHORT = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def node(name, gpus, pool):
    return objects.node(name, {GPU: gpus}, objects.gpu_labels("L4", gpus) | {POOL: pool})


SMALL, BIG = node("small", 2, "small"), node("big", 8, "big")


def reason(status, *, size=8, event=None, history=None, at=NOW):
    """The reason of a pod that fits on no node that is there; events are known where they are given."""
    pod = objects.unschedulable(objects.pod("p", requests={GPU: size}, created=NOW - 60), SHORT, NOW - 60)
    given = {"pods": [pod], "nodes": [SMALL]}
    if status is not None:
        given["configmaps"] = [config_map(status)]
    if event is not None:
        given["events"] = event
    view = view_of(at, GPUS, listed(at, **given), history or ClusterHistory())
    (found,) = view.pending
    return str(found.reason)


def lost():
    """A history of a cluster that has lost its large node."""
    history = ClusterHistory()
    view_of(NOW - 60, GPUS, listed(NOW - 60, pods=[], nodes=[SMALL, BIG]), history)
    return history


def event(why, message="", age=60):
    return [
        {
            "metadata": {"name": "e", "namespace": "default", "creationTimestamp": objects.stamp(NOW - age)},
            "involvedObject": {"kind": "Pod", "name": "p", "uid": objects.uid_of("pod", "default", "p")},
            "reason": why,
            "message": message,
        }
    ]


TRIGGERED = f"pod triggered scale-up: [{{{NAME} 1->2 (max: 3)}}]"


def test_without_a_status_the_order_is_as_before():
    assert reason(None) == "unsatisfiable_size"
    assert reason(None, history=lost()) == "insufficient_gpu"
    assert reason(None, event=event("TriggeredScaleUp", TRIGGERED)) == "scaling_up"


@pytest.mark.parametrize("written", [yaml_status, text_status])
@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([group(NAME)], "insufficient_gpu"),
        ([group(NAME, target=3)], "unsatisfiable_size"),
        ([group(NAME, scale_up="Backoff")], "unsatisfiable_size"),
        ([group(NAME, health="Unhealthy")], "unsatisfiable_size"),
        ([group(NAME, target=3), group(GKE.format("big").replace("zones/z", "zones/y"))], "insufficient_gpu"),
        ([group(GKE.format("bigger"), target=3)], "insufficient_gpu"),
        ([], "insufficient_gpu"),
        ([group(NAME, scale_up="InProgress")], "scaling_up"),
    ],
)
def test_a_lost_kind_of_node_counts_where_its_group_can_still_grow(written, groups, expected):
    assert reason(written(*groups), history=lost()) == expected


def test_a_group_that_grows_is_for_the_pods_that_fit_on_its_nodes():
    growing = yaml_status(group(GKE.format("small"), scale_up="InProgress"))
    assert reason(growing, size=2) == "scaling_up"
    assert reason(growing, size=8) == "unsatisfiable_size"


def test_where_events_are_known_a_pod_without_one_is_not_waited_for():
    growing = yaml_status(group(NAME, scale_up="InProgress"))
    assert reason(growing, history=lost(), event=[]) == "insufficient_gpu"
    assert reason(growing, history=lost(), event=event("NotTriggerScaleUp")) == "unsatisfiable_size"


def test_a_scale_up_that_takes_long_counts_while_its_group_grows():
    old = event("TriggeredScaleUp", TRIGGERED, age=1800)
    assert reason(None, history=lost(), event=old) == "insufficient_gpu"
    assert reason(yaml_status(group(NAME)), history=lost(), event=old) == "insufficient_gpu"
    assert reason(yaml_status(group(NAME, scale_up="InProgress")), history=lost(), event=old) == "scaling_up"


def test_a_scale_up_that_has_failed_no_longer_counts():
    new = event("TriggeredScaleUp", TRIGGERED)
    assert reason(yaml_status(group(NAME, scale_up="Backoff")), event=new) == "unsatisfiable_size"
    other = yaml_status(group(GKE.format("other"), scale_up="Backoff"))
    assert reason(other, event=new) == "scaling_up"


def test_a_status_that_is_old_or_has_no_time_does_not_count():
    full = group(NAME, target=3)
    assert reason(yaml_status(full, at=NOW - 1000), history=lost()) == "insufficient_gpu"
    assert reason(yaml_status(full).replace("time:", "odd:", 1), history=lost()) == "insufficient_gpu"
