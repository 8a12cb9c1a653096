"""Why the pods of a group are pending, and how node affinity, tolerations and models are evaluated."""

import pytest

from exporter.cluster.scheduling.nodes.node_selection import demanded_model
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from simulators import objects
from tests.exporter.cluster.fixture import NOW, pod, view
from tests.exporter.cluster.scheduling.pending_pod_objects import (
    A100,
    FULL,
    GPU,
    H100,
    POD,
    SELECTOR_AND_GPU,
    TAINT_AND_GPU,
    TEAM,
    reason_of,
    selecting,
    tolerating,
    unschedulable,
    using,
)


def requiring(given, *terms):
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}
    return {**given, "spec": {**given["spec"], "affinity": affinity}}


def in_group(given, name="g"):
    return {**given, "spec": {**given["spec"], "schedulingGroup": {"podGroupName": name}}}


def volcano(given):
    meta = {**given["metadata"], "annotations": {"scheduling.k8s.io/group-name": "g"}}
    return {**given, "metadata": meta}


def test_every_member_of_a_gang_has_the_reason_gang():
    gang = "pod group is unschedulable, minCount (3) is not satisfiable"
    pods = [
        in_group(unschedulable(gang, objects.pod("a"))),
        in_group(unschedulable(FULL, objects.pod("b"))),
        in_group(objects.pod("c")),
        in_group(unschedulable(FULL, objects.pod("d")), "other"),
        unschedulable(FULL, objects.pod("e")),
    ]
    found = {each.pod.name: each.reason for each in view(pods).pending}
    assert found == {
        "a": PendingReason.GANG,
        "b": PendingReason.GANG,
        "c": PendingReason.GANG,
        "d": PendingReason.INSUFFICIENT_GPU,
        "e": PendingReason.INSUFFICIENT_GPU,
    }


def test_the_members_of_a_volcano_group_share_the_reason_only_when_one_waits_for_the_others():
    plain = [volcano(unschedulable(FULL, objects.pod("a"))), volcano(objects.pod("b"))]
    assert {each.reason for each in view(plain).pending} == {PendingReason.INSUFFICIENT_GPU, PendingReason.NOT_TRIED}
    gang = "1/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable"
    waiting = [*plain, volcano(unschedulable(gang, objects.pod("c")))]
    assert {each.reason for each in view(waiting).pending} == {PendingReason.GANG}


def test_a_pod_without_a_verdict_whose_group_is_one_of_kubernetes_waits_for_its_gang():
    reference = {**POD, "spec": {**POD["spec"], "workloadRef": {"name": "w", "podGroup": "g"}}}
    assert view([in_group(POD)]).pending[0].reason == PendingReason.GANG
    assert view([reference]).pending[0].reason == PendingReason.GANG


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
    nodes = [objects.node("n", {GPU: 8}, {**A100, "zone": "a"})]
    given = requiring(unschedulable(SELECTOR_AND_GPU), {"matchExpressions": [expression]})
    assert reason_of(given, nodes, [using("q", "n", 8)]) == (
        PendingReason.INSUFFICIENT_GPU if matches else PendingReason.NODE_SELECTOR_OR_AFFINITY
    )


def test_terms_are_alternatives_and_an_empty_term_matches_nothing():
    nodes = [objects.node("n", {GPU: 8}, A100)]
    used = [using("q", "n", 8)]
    other = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    this = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    assert (
        reason_of(requiring(unschedulable(SELECTOR_AND_GPU), other, this), nodes, used)
        == PendingReason.INSUFFICIENT_GPU
    )
    assert (
        reason_of(requiring(unschedulable(SELECTOR_AND_GPU), {}), nodes, used)
        == PendingReason.NODE_SELECTOR_OR_AFFINITY
    )


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
    nodes = [objects.node("n", {GPU: 8}, A100, [TEAM])]
    expected = PendingReason.INSUFFICIENT_GPU if tolerated else PendingReason.TAINT
    assert reason_of(tolerating(unschedulable(TAINT_AND_GPU), toleration), nodes, [using("q", "n", 8)]) == expected


@pytest.mark.parametrize(
    ("operator", "value", "tolerated"),
    [("Gt", "900", True), ("Gt", "950", False), ("Lt", "1000", True), ("Lt", "950", False), ("Gt", "many", False)],
)
def test_a_toleration_can_compare_the_value_of_the_taint(operator, value, tolerated):
    nodes = [objects.node("n", {GPU: 8}, A100, [{"key": "sla", "value": "950", "effect": "NoSchedule"}])]
    given = tolerating(unschedulable(TAINT_AND_GPU), {"key": "sla", "operator": operator, "value": value})
    expected = PendingReason.INSUFFICIENT_GPU if tolerated else PendingReason.TAINT
    assert reason_of(given, nodes, [using("q", "n", 8)]) == expected


def test_a_taint_of_effect_prefer_no_schedule_keeps_no_pod_away():
    nodes = [objects.node("n", {GPU: 8}, A100, [{**TEAM, "effect": "PreferNoSchedule"}])]
    assert reason_of(unschedulable(TAINT_AND_GPU), nodes, [using("q", "n", 8)]) == PendingReason.INSUFFICIENT_GPU


def test_pods_that_differ_only_in_their_constraints_can_have_different_reasons():
    nodes = [objects.node("h", {GPU: 8}, H100)]
    pods = [
        using("used", "h", 8),
        unschedulable(SELECTOR_AND_GPU, objects.pod("any", requests={GPU: 4})),
        selecting(unschedulable(SELECTOR_AND_GPU, objects.pod("selective", requests={GPU: 4})), zone="b"),
    ]
    found = {each.pod.name: each.reason for each in view(pods, nodes).pending}
    assert found == {"any": PendingReason.INSUFFICIENT_GPU, "selective": PendingReason.NODE_SELECTOR_OR_AFFINITY}


def test_for_many_pods_that_select_nodes_by_name_on_a_large_cluster_the_message_alone_decides():
    def named(name):
        field = {"key": "metadata.name", "operator": "In", "values": [name]}
        given = unschedulable(TAINT_AND_GPU, objects.pod(f"ds-{name}", requests={GPU: 4}))
        return requiring(given, {"matchFields": [field]})

    nodes = [objects.node(f"n{number}", {GPU: 8}, A100, [TEAM]) for number in range(500)]
    few = view([named("n1")], nodes).pending
    many = view([named(f"n{number}") for number in range(500)], nodes).pending
    assert {each.reason for each in few} == {PendingReason.TAINT}
    assert {each.reason for each in many} == {PendingReason.INSUFFICIENT_GPU}


@pytest.mark.parametrize("key", ["kubernetes.io/hostname", "zone"])
def test_pods_that_select_nodes_one_by_one_do_not_keep_others_from_being_compared(key):
    nodes = [objects.node(f"n{number}", {GPU: 8}, {**A100, key: f"n{number}"}, [TEAM]) for number in range(500)]
    single = [
        selecting(unschedulable(TAINT_AND_GPU, objects.pod(f"p{number}", requests={GPU: 4})), **{key: f"n{number}"})
        for number in range(500)
    ]
    other = unschedulable(TAINT_AND_GPU, objects.pod("other", requests={GPU: 4}))
    found = {each.pod.name: each.reason for each in view([*single, other], nodes).pending}
    expected = PendingReason.TAINT if key == "kubernetes.io/hostname" else PendingReason.INSUFFICIENT_GPU
    assert found["other"] == expected


def test_pods_that_run_or_are_being_deleted_are_not_pending():
    leaving = objects.pod("leaving")
    leaving["metadata"]["deletionTimestamp"] = objects.stamp(NOW)
    assert view([objects.running(POD, "n1"), leaving]).pending == ()


PRODUCT = "nvidia.com/gpu.product"


def product_in(*products, operator="In"):
    return {"matchExpressions": [{"key": PRODUCT, "operator": operator, "values": list(products)}]}


@pytest.mark.parametrize(
    ("given", "model"),
    [
        (POD, "any"),
        (selecting(POD, **{PRODUCT: "NVIDIA-H100-80GB-HBM3"}), "NVIDIA-H100-80GB-HBM3"),
        (selecting(POD, **{PRODUCT: "Tesla-T4-SHARED"}), "Tesla-T4"),
        (selecting(POD, zone="a"), "any"),
        (requiring(POD, product_in("H100")), "H100"),
        (requiring(POD, product_in("H100"), product_in("H100-SHARED")), "H100"),
        (requiring(POD, product_in("H100", "H200")), "any"),
        (requiring(POD, product_in("H100"), {}), "any"),
        (requiring(POD, product_in("H100", operator="NotIn")), "any"),
    ],
)
def test_the_model_that_a_pod_demands_is_the_only_one_that_selector_and_affinity_allow(given, model):
    assert demanded_model(pod(given).constraints) == model
