"""Why a pod is not running yet, from its condition and from the nodes."""

import pytest

from exporter.cluster.metrics.pending import waiting_pods
from exporter.cluster.scheduling.free_capacity import node_groups, requested
from exporter.cluster.scheduling.pending_reason import Cluster, reason
from simulators import objects
from tests.exporter.cluster.fixture import GPUS, NOW, node, pod, view

GPU = "nvidia.com/gpu"
H100 = objects.gpu_labels("NVIDIA-H100-80GB-HBM3", 8)
A100 = objects.gpu_labels("NVIDIA-A100-SXM4-80GB", 8)
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TEAM = {"key": "team", "value": "a", "effect": "NoSchedule"}
WANT = objects.pod("p", requests={GPU: 4}, created=NOW - 1000)
SELECTOR_AND_GPU = (
    "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 Insufficient nvidia.com/gpu."
)
TAINT_AND_GPU = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 Insufficient nvidia.com/gpu."
CPU_AND_GPU = "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu."


def why(given, nodes=None, others=()):
    """The reason given these nodes and the pods that run on them."""
    one = pod(given)
    if nodes is None:
        return reason(one, Cluster(GPUS))
    groups = node_groups([node(each) for each in nodes], requested([pod(each) for each in others]), [one])
    return reason(one, Cluster(GPUS, groups))


def failed(message, given=WANT):
    return objects.unschedulable(given, message, NOW - 900)


def selecting(given, **labels):
    return {**given, "spec": {**given["spec"], "nodeSelector": labels}}


def requiring(given, *terms):
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}
    return {**given, "spec": {**given["spec"], "affinity": affinity}}


def tolerating(given, *tolerations):
    return {**given, "spec": {**given["spec"], "tolerations": list(tolerations)}}


def holding(name, on, count):
    return objects.running(objects.pod(name, requests={GPU: count}), on)


def test_a_pod_with_gates_is_gated():
    assert why(objects.gated(WANT, "kueue.x-k8s.io/admission")) == "gated"


def test_a_pod_that_no_scheduler_has_looked_at_is_not_tried():
    assert why(WANT) == "not_tried"


def test_a_pod_whose_gate_is_gone_is_not_tried_until_the_scheduler_says_otherwise():
    opened = objects.gated(WANT, "x")
    opened["spec"]["schedulingGates"] = []
    assert why(opened) == "not_tried"


def test_a_pod_with_a_node_is_starting():
    assert why(objects.bound(WANT, "n1")) == "starting"


@pytest.mark.parametrize("condition", ["SchedulerError", "NotReadyForScheduling", ""])
def test_an_unknown_reason_of_the_condition_is_other(condition):
    given = failed("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    given["status"]["conditions"][0]["reason"] = condition
    assert why(given) == "other"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", "insufficient_gpu"),
        ("0/1 nodes are available: 1 Insufficient memory.", "insufficient_cpu_or_memory"),
        ("0/1 nodes are available: 1 node(s) had untolerated taint(s).", "taint"),
        ("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.", "node_selector_or_affinity"),
        ("0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.", "node_selector_or_affinity"),
        ("0/1 nodes are available: 1 node(s) were unschedulable.", "other"),
        (
            "0/2 nodes are available: 1 node(s) had untolerated taint {a: }, 1 node(s) had no available volume zone.",
            "other",
        ),
        (
            "0/2 nodes are available: 1 node(s) had untolerated taint {a: }, 1 Insufficient nvidia.com/gpu.",
            "insufficient_gpu",
        ),
        ("", "other"),
    ],
)
def test_without_nodes_the_message_decides(message, expected):
    assert why(failed(message)) == expected


def test_full_nodes_of_the_wanted_model_are_what_matters_not_the_others():
    nodes = [objects.node("h", {GPU: 8}, H100), objects.node("a", {GPU: 8}, A100)]
    wants_h100 = selecting(failed(SELECTOR_AND_GPU), **{"nvidia.com/gpu.product": H100["nvidia.com/gpu.product"]})
    assert why(wants_h100, nodes, [holding("q", "h", 8)]) == "insufficient_gpu"


def test_a_selector_that_no_gpu_node_matches_is_the_cause_though_cpu_nodes_lack_gpus():
    nodes = [objects.node("a", {GPU: 8}, A100)]
    assert why(selecting(failed(SELECTOR_AND_GPU), zone="b"), nodes) == "node_selector_or_affinity"


def test_a_taint_on_the_gpu_nodes_is_the_cause_though_cpu_nodes_lack_gpus():
    nodes = [objects.node("a", {GPU: 8}, A100, [TEAM])]
    assert why(failed(TAINT_AND_GPU), nodes) == "taint"


def test_a_tolerated_taint_is_not_the_cause():
    nodes = [objects.node("a", {GPU: 8}, A100, [TAINT]), objects.node("b", {GPU: 8}, A100, [TEAM])]
    assert why(failed(TAINT_AND_GPU), nodes, [holding("q", "a", 6)]) == "insufficient_gpu"


def test_free_gpus_without_cpu_are_a_lack_of_cpu():
    nodes = [objects.node("a", {GPU: 8}, A100), objects.node("b", {GPU: 8}, A100)]
    assert why(failed(CPU_AND_GPU), nodes, [holding("q", "a", 8)]) == "insufficient_cpu_or_memory"


def test_free_gpus_that_are_scattered_are_a_lack_of_gpus():
    nodes = [objects.node("a", {GPU: 8}, A100), objects.node("b", {GPU: 8}, A100)]
    assert why(failed(CPU_AND_GPU), nodes, [holding("q", "a", 6), holding("r", "b", 6)]) == "insufficient_gpu"


def test_a_resource_that_no_node_offers_is_a_lack_of_gpus():
    given = failed(CPU_AND_GPU, objects.pod("p", requests={"nvidia.com/mig-1g.10gb": 1}))
    assert why(given, [objects.node("a", {GPU: 8}, A100)]) == "insufficient_gpu"


def test_what_the_message_does_not_name_is_not_claimed():
    nodes = [objects.node("a", {GPU: 8}, A100, [TEAM])]
    assert why(failed(CPU_AND_GPU), nodes) == "insufficient_gpu"


@pytest.mark.parametrize("state", [objects.cordoned, objects.not_ready])
def test_gpu_nodes_out_of_use_are_no_lack_of_gpus(state):
    nodes = [state(objects.node("a", {GPU: 8}, A100))]
    message = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable."
    assert why(failed(message), nodes) == "other"


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
def test_node_affinity_is_judged_as_the_scheduler_does(expression, matches):
    nodes = [objects.node("n", {GPU: 2}, {**A100, "zone": "a"})]
    given = requiring(failed(SELECTOR_AND_GPU), {"matchExpressions": [expression]})
    assert why(given, nodes) == ("insufficient_gpu" if matches else "node_selector_or_affinity")


def test_terms_are_alternatives_and_an_empty_term_matches_nothing():
    nodes = [objects.node("n", {GPU: 2}, A100)]
    other = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    this = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    assert why(requiring(failed(SELECTOR_AND_GPU), other, this), nodes) == "insufficient_gpu"
    assert why(requiring(failed(SELECTOR_AND_GPU), {}), nodes) == "node_selector_or_affinity"


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
def test_tolerations_are_judged_as_the_scheduler_does(toleration, tolerated):
    nodes = [objects.node("n", {GPU: 2}, A100, [TEAM])]
    expected = "insufficient_gpu" if tolerated else "taint"
    assert why(tolerating(failed(TAINT_AND_GPU), toleration), nodes) == expected


def test_a_taint_that_only_asks_to_be_avoided_keeps_nobody_away():
    nodes = [objects.node("n", {GPU: 2}, A100, [{**TEAM, "effect": "PreferNoSchedule"}])]
    assert why(failed(TAINT_AND_GPU), nodes) == "insufficient_gpu"


def test_pods_that_differ_only_in_where_they_may_run_get_reasons_of_their_own():
    nodes = [objects.node("h", {GPU: 2}, H100)]
    pods = [
        failed(SELECTOR_AND_GPU, objects.pod("any", requests={GPU: 4})),
        selecting(failed(SELECTOR_AND_GPU, objects.pod("picky", requests={GPU: 4})), zone="b"),
    ]
    found = {each.pod.name: each.reason for each in waiting_pods(view(pods, nodes))}
    assert found == {"any": "insufficient_gpu", "picky": "node_selector_or_affinity"}


def test_pods_bound_to_names_on_a_large_cluster_are_judged_by_message_alone():
    def named(name):
        field = {"key": "metadata.name", "operator": "In", "values": [name]}
        given = failed(TAINT_AND_GPU, objects.pod(f"ds-{name}", requests={GPU: 4}))
        return requiring(given, {"matchFields": [field]})

    nodes = [objects.node(f"n{number}", {GPU: 8}, A100, [TEAM]) for number in range(500)]
    few = waiting_pods(view([named("n1")], nodes))
    many = waiting_pods(view([named(f"n{number}") for number in range(500)], nodes))
    assert {each.reason for each in few} == {"taint"}
    assert {each.reason for each in many} == {"insufficient_gpu"}


def test_pods_that_run_or_are_being_deleted_wait_for_nothing():
    leaving = objects.pod("leaving")
    leaving["metadata"]["deletionTimestamp"] = objects.stamp(NOW)
    assert waiting_pods(view([objects.running(WANT, "n1"), leaving])) == []
