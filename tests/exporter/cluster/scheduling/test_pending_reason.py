"""Why a pod is pending by its conditions and its scheduler's message: the words, gates, errors and messages."""

import pytest

from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from simulators import objects
from tests.exporter.cluster.scheduling.pending_pod_objects import POD, reason_of, unschedulable


def test_the_label_values_of_the_reasons_are_these():
    assert {str(reason) for reason in PendingReason} == {
        "gated",
        "queued",
        "gang",
        "not_tried",
        "insufficient_gpu",
        "insufficient_cpu_or_memory",
        "insufficient_other",
        "node_selector_or_affinity",
        "taint",
        "topology",
        "volume",
        "node_unavailable",
        "gpu_unavailable",
        "fragmentation",
        "unsatisfiable_size",
        "unknown_resource",
        "claim",
        "quota",
        "preempting",
        "scaling_up",
        "image_pull",
        "start_failed",
        "starting",
        "admission_failed",
        "scheduler_error",
        "other",
    }


@pytest.mark.parametrize(
    ("gates", "reason"),
    [
        (["example.com/wait"], PendingReason.GATED),
        (["kueue.x-k8s.io/admission"], PendingReason.QUEUED),
        (["kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"], PendingReason.QUEUED),
        (["kueue.x-k8s.io/admission", "example.com/wait"], PendingReason.GATED),
    ],
)
def test_a_pod_is_queued_when_all_its_scheduling_gates_are_those_of_a_queue(gates, reason):
    assert reason_of(objects.gated(POD, *gates)) == reason


def test_a_pod_without_a_scheduled_condition_is_not_tried():
    assert reason_of(POD) == PendingReason.NOT_TRIED


def test_a_pod_whose_scheduling_gate_was_removed_is_not_tried_while_its_condition_is_that_of_the_gate():
    opened = objects.gated(POD, "x")
    opened["spec"]["schedulingGates"] = []
    assert reason_of(opened) == PendingReason.NOT_TRIED


def test_a_pod_with_a_node_is_starting():
    assert reason_of(objects.bound(POD, "n1")) == PendingReason.STARTING


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('Post "http://127.0.0.1/filter": connection refused', PendingReason.SCHEDULER_ERROR),
        ('running PreBind plugin "VolumeBinding": binding volumes: timed out', PendingReason.VOLUME),
        ('running "DynamicResources" filter plugin: claim n/c: CEL runtime error', PendingReason.CLAIM),
        ("node n: timed out trying to allocate devices", PendingReason.CLAIM),
    ],
)
def test_an_error_of_the_scheduler_is_about_the_volume_or_claim_that_it_names(text, reason):
    given = unschedulable(text)
    given["status"]["conditions"][0]["reason"] = "SchedulerError"
    assert reason_of(given) == reason


@pytest.mark.parametrize("condition", ["NotReadyForScheduling", "Undetermined", ""])
def test_the_message_counts_whatever_the_reason_of_the_condition(condition):
    given = unschedulable("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    given["status"]["conditions"][0]["reason"] = condition
    assert reason_of(given) == PendingReason.INSUFFICIENT_GPU
