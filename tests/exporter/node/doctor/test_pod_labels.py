"""Checks of what the kubelet offers to pods, and of why series have no labels of a pod."""

import pytest

from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.kubelet.reason import KubeletReason
from exporter.node.attribution.matching.device_lookup import UnmatchedReason
from exporter.node.doctor import pod_labels
from exporter.node.doctor.label_reasons import PodLabelReason
from exporter.node.doctor.reasons import DoctorReason
from exporter.source import SourceError
from tests.exporter.node.doctor.nodes import GPU_UUID, examination, finding, findings, gpu, read

K, GPU = "--kubernetes", "nvidia.com/gpu"
U0, U1 = f"{GPU_UUID[:-1]}0", f"{GPU_UUID[:-1]}1"


def allocation(device, pod="train", container="main", namespace="team", resource=GPU):
    return Allocation(namespace, pod, container, resource, device)


TWO = (gpu(0), gpu(1))


def found(node, *listed, gpus=TWO):
    """Of each reason the detail; the first finding has none."""
    examined = examination(node, K, kubelet=tuple(listed), attempts=(read(*gpus),))
    return {each.reason: each.detail for each in findings(pod_labels, "pod labels", examined)}


@pytest.mark.parametrize(
    ("words", "kubelet", "reason"),
    [
        ((), None, PodLabelReason.ATTRIBUTION_OFF),
        ((K,), SourceError(KubeletReason.NO_PERMISSION, "denied"), PodLabelReason.KUBELET_DOWN),
        ((K, "--allocation-labels=none"), (), PodLabelReason.LABELS_OFF),
    ],
)
def test_why_no_series_at_all_has_the_labels_is_named(node, words, kubelet, reason):
    examined = examination(node, *words, kubelet=kubelet, attempts=(read(gpu()),))
    assert finding(pod_labels, "pod labels", examined) == ("note", reason, "no series has them")


def test_a_device_with_a_pod_and_one_without_are_told_apart(node):
    assert found(node, allocation(U0)) == {
        None: "1 of 2 devices have those of a container",
        PodLabelReason.UNALLOCATED: "1 of 2: GPU 1",
    }


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        ((allocation(f"{U0}::0"), allocation(f"{U0}::1", "infer")), PodLabelReason.SHARED),
        ((allocation(U0, namespace="kai-resource-reservation"),), PodLabelReason.RESERVED),
        ((allocation(U0), allocation(U0, "finished")), PodLabelReason.CONFLICTING),
        ((allocation(U0), allocation(U0, container="side")), PodLabelReason.SEVERAL_CONTAINERS),
    ],
)
def test_each_reason_of_an_allocated_device_is_named(node, listed, reason):
    assert found(node, *listed)[reason] == "1 of 2: GPU 0"


def test_an_id_that_may_mean_any_device_makes_those_without_a_pod_uncertain(node):
    result = found(node, allocation(U0), allocation("odd", "other"))
    assert result[PodLabelReason.UNCERTAIN] == "1 of 2: GPU 1"
    assert PodLabelReason.UNALLOCATED not in result


def test_a_gpu_with_mig_devices_has_none_and_many_devices_are_counted(node):
    partitioned = [gpu(0, mig_enabled=True), *(gpu(0, gi=n, mig_enabled=True) for n in range(5))]
    assert found(node, gpus=partitioned) == {
        None: "0 of 6 devices have those of a container",
        PodLabelReason.PARTITIONED: "1 of 6: GPU 0",
        PodLabelReason.UNALLOCATED: "5 of 6: GPU 0 instance 0, GPU 0 instance 1, GPU 0 instance 2 and 2 more",
    }


def test_without_readings_nothing_is_said_of_devices(node):
    assert finding(pod_labels, "pod labels", examination(node, K, kubelet=()))[0] == "skipped"
    assert finding(pod_labels, "offered devices", examination(node, K, kubelet=(), offered=frozenset()))[0] == "skipped"


def offered(node, *ids):
    ids = frozenset(each if isinstance(each, tuple) else (GPU, each) for each in ids)
    examined = examination(node, K, kubelet=(), offered=ids, attempts=(read(*TWO),))
    return [(str(each.status), each.reason, each.detail) for each in findings(pod_labels, "offered devices", examined)]


def test_a_gpu_that_is_not_offered_is_named(node):
    assert offered(node, U0, U1) == [("ok", None, "2 devices are offered to pods")]
    assert offered(node, U0) == [("note", DoctorReason.DEVICES_NOT_OFFERED, "1 of 2: GPU 1")]


def test_an_offered_id_that_matches_no_device_is_known_before_a_pod_has_it(node):
    assert offered(node, U0, U1, "1", "2", ("amd.com/gpu", "0000:07:00.0")) == [
        ("note", UnmatchedReason.OTHER_VENDOR, "amd.com/gpu: 1 id without a device, such as 0000:07:00.0"),
        ("failed", UnmatchedReason.UNKNOWN_FORM, "nvidia.com/gpu: 2 ids without a device, such as 1"),
    ]


def test_where_the_kubelet_does_not_say_what_it_offers_that_is_not_examined(node):
    assert finding(pod_labels, "offered devices", examination(node))[0] == "skipped"
    assert finding(pod_labels, "offered devices", examination(node, K, kubelet=()))[0] == "skipped"
    error = SourceError(KubeletReason.TIMEOUT, "it took too long")
    examined = examination(node, K, kubelet=(), offered=error)
    assert finding(pod_labels, "offered devices", examined) == (
        "note",
        KubeletReason.ALLOCATABLE_UNREADABLE,
        "it took too long",
    )
