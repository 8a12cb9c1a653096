"""Why a pod is pending where the nodes decide: selectors, taints, sizes, what is unavailable."""

import pytest

from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from simulators import objects
from tests.exporter.cluster.scheduling.pending_pod_objects import (
    A100,
    FULL,
    GPU,
    H100,
    SELECTOR_AND_GPU,
    TAINT_AND_GPU,
    TEAM,
    reason_of,
    selecting,
    tolerating,
    unschedulable,
    using,
)

TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


CPU_AND_GPU = "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu."


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", PendingReason.INSUFFICIENT_GPU),
        ("0/1 nodes are available: 1 Insufficient memory.", PendingReason.INSUFFICIENT_CPU_OR_MEMORY),
        ("0/1 nodes are available: 1 Too many pods.", PendingReason.INSUFFICIENT_OTHER),
        ("0/1 nodes are available: 1 node(s) had untolerated taint(s).", PendingReason.TAINT),
        (
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
            PendingReason.NODE_SELECTOR_OR_AFFINITY,
        ),
        (
            "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.",
            PendingReason.NODE_SELECTOR_OR_AFFINITY,
        ),
        ("0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints.", PendingReason.TOPOLOGY),
        ("0/1 nodes are available: 1 node(s) were unschedulable.", PendingReason.NODE_UNAVAILABLE),
        ("no nodes available to schedule pods", PendingReason.NODE_UNAVAILABLE),
        (
            "0/2 nodes are available: 1 node(s) had untolerated taint {a: }, 1 node(s) had no available volume zone.",
            PendingReason.VOLUME,
        ),
        (
            "0/2 nodes are available: 1 node(s) had untolerated taint {a: }, 1 Insufficient nvidia.com/gpu.",
            PendingReason.INSUFFICIENT_GPU,
        ),
        ("0/1 nodes are available: 1 cannot allocate all claims.", PendingReason.INSUFFICIENT_GPU),
        ("0/1 nodes are available: 1 8/8 CardNotHealth.", PendingReason.GPU_UNAVAILABLE),
        ("all nodes are unavailable: 1 node(s) resource fit failed.", PendingReason.INSUFFICIENT_GPU),
        ("queue resource quota insufficient: insufficient nvidia.com/gpu", PendingReason.QUOTA),
        ("1/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable", PendingReason.GANG),
        ("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.", PendingReason.OTHER),
        ("0/1 nodes are available: 1 xyzzy.", PendingReason.OTHER),
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


def test_free_gpus_that_are_scattered_are_fragmentation():
    nodes = [objects.node("a", {GPU: 8}, A100), objects.node("b", {GPU: 8}, A100)]
    used = [using("q", "a", 6), using("r", "b", 6)]
    assert reason_of(unschedulable(CPU_AND_GPU), nodes, used) == PendingReason.FRAGMENTATION
    assert reason_of(unschedulable(CPU_AND_GPU), nodes, [*used, using("s", "b", 1)]) == PendingReason.INSUFFICIENT_GPU


def test_scattered_gpus_count_only_on_nodes_that_are_open_to_the_pod():
    nodes = [objects.node("a", {GPU: 8}, A100), objects.cordoned(objects.node("b", {GPU: 8}, A100))]
    message = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable."
    assert reason_of(unschedulable(message), nodes, [using("q", "a", 6)]) == PendingReason.INSUFFICIENT_GPU


@pytest.mark.parametrize("resource", ["nvidia.com/mig-1g.10gb", "nvidia.com/gpus", "nvidia.com/gpu-h100"])
def test_a_resource_that_no_node_offers_and_none_should_is_unknown(resource):
    message = f"0/2 nodes are available: 2 Insufficient {resource}."
    given = unschedulable(message, objects.pod("p", requests={resource: 1}))
    bare = objects.node("b", {}, A100)
    assert reason_of(given, [objects.node("a", {GPU: 8}, A100), bare]) == PendingReason.UNKNOWN_RESOURCE


def test_more_gpus_than_any_node_has_are_an_unsatisfiable_size():
    nodes = [objects.node("a", {GPU: 8}, A100), objects.node("b", {}, A100)]
    assert reason_of(unschedulable(FULL, objects.pod("p", requests={GPU: 9})), nodes) == (
        PendingReason.UNSATISFIABLE_SIZE
    )


def test_size_counts_among_the_nodes_that_the_pod_may_use():
    nodes = [objects.node("a", {GPU: 2}, {**A100, "zone": "a"}), objects.node("b", {GPU: 8}, {**A100, "zone": "b"})]
    given = selecting(unschedulable(SELECTOR_AND_GPU), zone="a")
    assert reason_of(given, nodes) == PendingReason.UNSATISFIABLE_SIZE


def test_the_only_node_that_is_large_enough_being_tainted_is_a_taint():
    nodes = [objects.node("a", {GPU: 2}, A100), objects.node("b", {GPU: 8}, A100, [TEAM])]
    assert reason_of(unschedulable(TAINT_AND_GPU), nodes) == PendingReason.TAINT


@pytest.mark.parametrize("capacity", [{}, {GPU: 8}])
def test_nodes_that_should_offer_gpus_and_do_not_are_gpus_that_are_unavailable(capacity):
    broken = objects.node("a", capacity, A100)
    broken["status"]["allocatable"].pop(GPU, None)
    assert reason_of(unschedulable(FULL), [broken]) == PendingReason.GPU_UNAVAILABLE


def test_a_selected_node_without_its_gpus_is_not_a_wrong_selector():
    nodes = [objects.node("a", {}, {**A100, "zone": "a"}), objects.node("b", {GPU: 8}, {**A100, "zone": "b"})]
    given = selecting(unschedulable(SELECTOR_AND_GPU), zone="a")
    assert reason_of(given, nodes) == PendingReason.GPU_UNAVAILABLE


def test_unhealthy_gpus_are_unavailable_when_without_them_no_node_has_enough():
    sick = objects.node("a", {GPU: 8}, A100)
    sick["status"]["allocatable"][GPU] = "3"
    assert reason_of(unschedulable(FULL), [sick]) == PendingReason.GPU_UNAVAILABLE
    healthy = objects.node("b", {GPU: 8}, A100)
    assert reason_of(unschedulable(FULL), [sick, healthy], [using("q", "b", 8)]) == PendingReason.INSUFFICIENT_GPU


@pytest.mark.parametrize(
    ("profile", "reason"),
    [("1g.10gb", PendingReason.GPU_UNAVAILABLE), ("4g.40gb", PendingReason.UNKNOWN_RESOURCE)],
)
def test_a_mig_device_that_a_node_is_being_given_is_unavailable(profile, reason):
    labels = {**A100, "nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.config.state": "pending"}
    resource = f"nvidia.com/mig-{profile}"
    given = unschedulable(
        f"0/1 nodes are available: 1 Insufficient {resource}.", objects.pod("p", requests={resource: 1})
    )
    assert reason_of(given, [objects.node("a", {GPU: 8}, labels)]) == reason


def test_a_cause_that_the_message_does_not_name_is_never_the_reason():
    nodes = [objects.node("a", {GPU: 8}, A100, [TEAM])]
    assert reason_of(unschedulable(CPU_AND_GPU), nodes) == PendingReason.INSUFFICIENT_GPU


@pytest.mark.parametrize("state", [objects.cordoned, objects.not_ready])
def test_gpu_nodes_that_are_not_usable_are_no_lack_of_gpus(state):
    nodes = [state(objects.node("a", {GPU: 8}, A100))]
    message = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable."
    assert reason_of(unschedulable(message), nodes) == PendingReason.NODE_UNAVAILABLE


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("node.kubernetes.io/not-ready", PendingReason.NODE_UNAVAILABLE),
        ("node.kubernetes.io/disk-pressure", PendingReason.NODE_UNAVAILABLE),
        ("node.cloudprovider.kubernetes.io/uninitialized", PendingReason.NODE_UNAVAILABLE),
        ("ToBeDeletedByClusterAutoscaler", PendingReason.NODE_UNAVAILABLE),
        ("karpenter.sh/disrupted", PendingReason.NODE_UNAVAILABLE),
        ("node.cilium.io/agent-not-ready", PendingReason.NODE_UNAVAILABLE),
        ("dedicated", PendingReason.TAINT),
        ("nvidia.com/gpu.team", PendingReason.TAINT),
        ("node-role.kubernetes.io/control-plane", PendingReason.TAINT),
    ],
)
def test_a_taint_for_the_state_of_the_node_is_no_taint_of_somebody(key, reason):
    nodes = [objects.node("a", {GPU: 8}, A100, [{"key": key, "effect": "NoSchedule"}])]
    assert reason_of(unschedulable(TAINT_AND_GPU), nodes) == reason
    tolerant = tolerating(unschedulable(TAINT_AND_GPU), {"key": key, "operator": "Exists"})
    assert reason_of(tolerant, nodes, [using("q", "a", 8)]) == PendingReason.INSUFFICIENT_GPU


def test_a_pod_that_tolerates_a_cordon_can_use_the_node():
    nodes = [objects.cordoned(objects.node("a", {GPU: 8}, A100))]
    tolerant = tolerating(unschedulable(FULL), {"operator": "Exists"})
    assert reason_of(tolerant, nodes, [using("q", "a", 8)]) == PendingReason.INSUFFICIENT_GPU


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Insufficient memory", PendingReason.INSUFFICIENT_CPU_OR_MEMORY),
        ("Too many pods", PendingReason.INSUFFICIENT_OTHER),
        ("Insufficient rdma/hca", PendingReason.INSUFFICIENT_OTHER),
        ("node(s) didn't match pod affinity rules", PendingReason.NODE_SELECTOR_OR_AFFINITY),
        ("node(s) didn't match pod topology spread constraints", PendingReason.TOPOLOGY),
        ("node(s) exceed max volume count", PendingReason.VOLUME),
        ("node(s) didn't have free ports for the requested pod ports", PendingReason.OTHER),
    ],
)
def test_beside_free_gpus_the_message_decides(text, reason):
    nodes = [objects.node("a", {GPU: 8}, A100)]
    message = f"0/3 nodes are available: 1 {text}, 2 Insufficient nvidia.com/gpu."
    assert reason_of(unschedulable(message), nodes) == reason


def test_gpus_that_were_freed_since_the_message_are_still_a_lack_of_gpus():
    assert reason_of(unschedulable(FULL), [objects.node("a", {GPU: 8}, A100)]) == PendingReason.INSUFFICIENT_GPU
