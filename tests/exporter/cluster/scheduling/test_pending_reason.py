"""The pending reason of a pod, from its condition and from the nodes."""

import pytest

from exporter.cluster.metrics.pending import pending_pods
from exporter.cluster.scheduling.free_capacity import node_groups, requested
from exporter.cluster.scheduling.pending_reason import ClusterState, PendingReason, pending_reason
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, node, pod, view

GPU = "nvidia.com/gpu"
H100 = objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)
A100 = objects.gpu_labels("NVIDIA-A100-SXM4-80GB", 8)
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TEAM = {"key": "team", "value": "a", "effect": "NoSchedule"}
POD = objects.pod("p", requests={GPU: 4}, created=NOW - 1000)
SELECTOR_AND_GPU = (
    "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 Insufficient nvidia.com/gpu."
)
TAINT_AND_GPU = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 Insufficient nvidia.com/gpu."
CPU_AND_GPU = "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu."


def reason_of(given, nodes=None, others=()):
    """The pending reason, with these nodes and the other pods that run on them."""
    one = pod(given)
    if nodes is None:
        return pending_reason(one, ClusterState(GPUS))
    groups = node_groups([node(each) for each in nodes], requested([pod(each) for each in others]), [one])
    return pending_reason(one, ClusterState(GPUS, groups))


def unschedulable(message, given=POD):
    return objects.unschedulable(given, message, NOW - 900)


def selecting(given, **labels):
    return {**given, "spec": {**given["spec"], "nodeSelector": labels}}


def requiring(given, *terms):
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}
    return {**given, "spec": {**given["spec"], "affinity": affinity}}


def tolerating(given, *tolerations):
    return {**given, "spec": {**given["spec"], "tolerations": list(tolerations)}}


def using(name, on, count):
    return objects.running(objects.pod(name, requests={GPU: count}), on)


def test_the_label_values_of_the_reasons_are_these():
    assert {str(reason) for reason in PendingReason} == {
        "gated",
        "not_tried",
        "starting",
        "insufficient_gpu",
        "insufficient_cpu_or_memory",
        "node_selector_or_affinity",
        "taint",
        "other",
    }


def test_a_pod_with_scheduling_gates_is_gated():
    assert reason_of(objects.gated(POD, "kueue.x-k8s.io/admission")) == PendingReason.GATED


def test_a_pod_without_a_scheduled_condition_is_not_tried():
    assert reason_of(POD) == PendingReason.NOT_TRIED


def test_a_pod_whose_scheduling_gate_was_removed_is_not_tried_while_its_condition_is_that_of_the_gate():
    opened = objects.gated(POD, "x")
    opened["spec"]["schedulingGates"] = []
    assert reason_of(opened) == PendingReason.NOT_TRIED


def test_a_pod_with_a_node_is_starting():
    assert reason_of(objects.bound(POD, "n1")) == PendingReason.STARTING


@pytest.mark.parametrize("condition", ["SchedulerError", "NotReadyForScheduling", ""])
def test_a_condition_with_another_reason_than_unschedulable_means_other(condition):
    given = unschedulable("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    given["status"]["conditions"][0]["reason"] = condition
    assert reason_of(given) == PendingReason.OTHER


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", PendingReason.INSUFFICIENT_GPU),
        ("0/1 nodes are available: 1 Insufficient memory.", PendingReason.INSUFFICIENT_CPU_OR_MEMORY),
        ("0/1 nodes are available: 1 node(s) had untolerated taint(s).", PendingReason.TAINT),
        (
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
            PendingReason.NODE_SELECTOR_OR_AFFINITY,
        ),
        (
            "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.",
            PendingReason.NODE_SELECTOR_OR_AFFINITY,
        ),
        ("0/1 nodes are available: 1 node(s) were unschedulable.", PendingReason.OTHER),
        (
            "0/2 nodes are available: 1 node(s) had untolerated taint {a: }, 1 node(s) had no available volume zone.",
            PendingReason.OTHER,
        ),
        (
            "0/2 nodes are available: 1 node(s) had untolerated taint {a: }, 1 Insufficient nvidia.com/gpu.",
            PendingReason.INSUFFICIENT_GPU,
        ),
        ("", PendingReason.OTHER),
    ],
)
def test_without_nodes_the_message_decides(message, expected):
    assert reason_of(unschedulable(message)) == expected


def test_a_pod_that_selects_a_model_lacks_gpus_when_the_nodes_of_that_model_are_full():
    nodes = [objects.node("h", {GPU: 8}, H100), objects.node("a", {GPU: 8}, A100)]
    selects_h100 = selecting(
        unschedulable(SELECTOR_AND_GPU), **{"nvidia.com/gpu.product": H100["nvidia.com/gpu.product"]}
    )
    assert reason_of(selects_h100, nodes, [using("q", "h", 8)]) == PendingReason.INSUFFICIENT_GPU


def test_a_selector_that_no_gpu_node_matches_is_the_reason_although_other_nodes_lack_gpus():
    nodes = [objects.node("a", {GPU: 8}, A100)]
    assert (
        reason_of(selecting(unschedulable(SELECTOR_AND_GPU), zone="b"), nodes)
        == PendingReason.NODE_SELECTOR_OR_AFFINITY
    )


def test_a_taint_on_the_gpu_nodes_is_the_reason_although_other_nodes_lack_gpus():
    nodes = [objects.node("a", {GPU: 8}, A100, [TEAM])]
    assert reason_of(unschedulable(TAINT_AND_GPU), nodes) == PendingReason.TAINT


def test_a_tolerated_taint_is_not_the_reason():
    nodes = [objects.node("a", {GPU: 8}, A100, [TAINT]), objects.node("b", {GPU: 8}, A100, [TEAM])]
    assert reason_of(unschedulable(TAINT_AND_GPU), nodes, [using("q", "a", 6)]) == PendingReason.INSUFFICIENT_GPU


def test_free_gpus_without_cpu_are_a_lack_of_cpu():
    nodes = [objects.node("a", {GPU: 8}, A100), objects.node("b", {GPU: 8}, A100)]
    assert (
        reason_of(unschedulable(CPU_AND_GPU), nodes, [using("q", "a", 8)]) == PendingReason.INSUFFICIENT_CPU_OR_MEMORY
    )


def test_free_gpus_that_are_scattered_are_a_lack_of_gpus():
    nodes = [objects.node("a", {GPU: 8}, A100), objects.node("b", {GPU: 8}, A100)]
    assert (
        reason_of(unschedulable(CPU_AND_GPU), nodes, [using("q", "a", 6), using("r", "b", 6)])
        == PendingReason.INSUFFICIENT_GPU
    )


def test_a_resource_that_no_node_offers_is_a_lack_of_gpus():
    given = unschedulable(CPU_AND_GPU, objects.pod("p", requests={"nvidia.com/mig-1g.10gb": 1}))
    assert reason_of(given, [objects.node("a", {GPU: 8}, A100)]) == PendingReason.INSUFFICIENT_GPU


def test_a_cause_that_the_message_does_not_name_is_never_the_reason():
    nodes = [objects.node("a", {GPU: 8}, A100, [TEAM])]
    assert reason_of(unschedulable(CPU_AND_GPU), nodes) == PendingReason.INSUFFICIENT_GPU


@pytest.mark.parametrize("state", [objects.cordoned, objects.not_ready])
def test_gpu_nodes_that_are_not_usable_are_no_lack_of_gpus(state):
    nodes = [state(objects.node("a", {GPU: 8}, A100))]
    message = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable."
    assert reason_of(unschedulable(message), nodes) == PendingReason.OTHER


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"key": "zone", "operator": "In", "values": ["a", "b"]}, True),
        ({"key": "zone", "operator": "In", "values": ["c"]}, False),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "nowhere", "operator": "NotIn", "values": ["a"]}, True),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "nowhere", "operator": "Exists"}, False),
        ({"key": "nowhere", "operator": "DoesNotExist"}, True),
        ({"key": "nvidia.com/gpu.count", "operator": "Gt", "values": ["7"]}, True),
        ({"key": "nvidia.com/gpu.count", "operator": "Gt", "values": ["8"]}, False),
        ({"key": "nvidia.com/gpu.count", "operator": "Lt", "values": ["9"]}, True),
        ({"key": "zone", "operator": "Gt", "values": ["1"]}, False),
        ({"key": "zone", "operator": "Near", "values": ["a"]}, False),
    ],
)
def test_node_affinity_is_evaluated_as_the_scheduler_does(expression, matches):
    nodes = [objects.node("n", {GPU: 2}, {**A100, "zone": "a"})]
    given = requiring(unschedulable(SELECTOR_AND_GPU), {"matchExpressions": [expression]})
    assert reason_of(given, nodes) == (
        PendingReason.INSUFFICIENT_GPU if matches else PendingReason.NODE_SELECTOR_OR_AFFINITY
    )


def test_terms_are_alternatives_and_an_empty_term_matches_nothing():
    nodes = [objects.node("n", {GPU: 2}, A100)]
    other = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    this = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    assert reason_of(requiring(unschedulable(SELECTOR_AND_GPU), other, this), nodes) == PendingReason.INSUFFICIENT_GPU
    assert reason_of(requiring(unschedulable(SELECTOR_AND_GPU), {}), nodes) == PendingReason.NODE_SELECTOR_OR_AFFINITY


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "team", "operator": "Exists"}, True),
        ({"key": "team", "value": "a"}, True),
        ({"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}, True),
        ({"key": "team", "operator": "Equal", "value": "b"}, False),
        ({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"value": "a"}, False),
    ],
)
def test_tolerations_are_evaluated_as_the_scheduler_does(toleration, tolerated):
    nodes = [objects.node("n", {GPU: 2}, A100, [TEAM])]
    expected = PendingReason.INSUFFICIENT_GPU if tolerated else PendingReason.TAINT
    assert reason_of(tolerating(unschedulable(TAINT_AND_GPU), toleration), nodes) == expected


def test_a_taint_of_effect_prefer_no_schedule_keeps_no_pod_away():
    nodes = [objects.node("n", {GPU: 2}, A100, [{**TEAM, "effect": "PreferNoSchedule"}])]
    assert reason_of(unschedulable(TAINT_AND_GPU), nodes) == PendingReason.INSUFFICIENT_GPU


def test_pods_that_differ_only_in_their_constraints_can_have_different_reasons():
    nodes = [objects.node("h", {GPU: 2}, H100)]
    pods = [
        unschedulable(SELECTOR_AND_GPU, objects.pod("any", requests={GPU: 4})),
        selecting(unschedulable(SELECTOR_AND_GPU, objects.pod("selective", requests={GPU: 4})), zone="b"),
    ]
    found = {each.pod.name: each.reason for each in pending_pods(view(pods, nodes))}
    assert found == {"any": PendingReason.INSUFFICIENT_GPU, "selective": PendingReason.NODE_SELECTOR_OR_AFFINITY}


def test_for_many_pods_that_select_nodes_by_name_on_a_large_cluster_the_message_alone_decides():
    def named(name):
        field = {"key": "metadata.name", "operator": "In", "values": [name]}
        given = unschedulable(TAINT_AND_GPU, objects.pod(f"ds-{name}", requests={GPU: 4}))
        return requiring(given, {"matchFields": [field]})

    nodes = [objects.node(f"n{number}", {GPU: 8}, A100, [TEAM]) for number in range(500)]
    few = pending_pods(view([named("n1")], nodes))
    many = pending_pods(view([named(f"n{number}") for number in range(500)], nodes))
    assert {each.reason for each in few} == {PendingReason.TAINT}
    assert {each.reason for each in many} == {PendingReason.INSUFFICIENT_GPU}


def test_pods_that_run_or_are_being_deleted_are_not_pending():
    leaving = objects.pod("leaving")
    leaving["metadata"]["deletionTimestamp"] = objects.stamp(NOW)
    assert pending_pods(view([objects.running(POD, "n1"), leaving])) == []
