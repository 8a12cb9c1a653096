"""Which objects become records."""

import msgspec
import pytest

from exporter.cluster.kubernetes.converting import conversion
from exporter.cluster.kubernetes.objects import wire
from simulators import objects
from tests.exporter.cluster.fixture import GPUS


def pod_record(given):
    return conversion.pod(msgspec.convert(given, wire.WirePod), GPUS)


def node_record(given):
    return conversion.node(msgspec.convert(given, wire.WireNode), GPUS)


def test_a_pod_that_succeeded_has_no_record():
    done = objects.running(objects.pod("p"), "n1")
    assert pod_record(done) is not None
    done["status"]["phase"] = "Succeeded"
    assert pod_record(done) is None


def test_a_pod_without_gpus_has_no_record():
    assert pod_record(objects.pod("cpu", requests={})) is None


@pytest.mark.parametrize(
    ("reason", "rejected"),
    [
        ("UnexpectedAdmissionError", True),
        ("OutOfnvidia.com/gpu", True),
        ("OutOfcpu", True),
        ("TopologyAffinityError", True),
        ("NodeShutdown", False),
        ("Evicted", False),
        ("", False),
    ],
)
def test_a_failed_pod_has_a_record_when_a_kubelet_rejected_it(reason, rejected):
    failed = objects.bound(objects.pod("p"), "n1")
    failed["status"] |= {"phase": "Failed", "reason": reason}
    record = pod_record(failed)
    assert (record is not None and record.rejected) is rejected


@pytest.mark.parametrize(
    ("given", "has_gpus"),
    [
        (objects.node("cpu"), False),
        (objects.node("gpu", {"nvidia.com/gpu": 8}), True),
        (objects.node("labeled", {}, objects.gpu_labels("H200", 8)), True),
        (objects.node("gke", {}, {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}), True),
        (objects.node("none", {}, {"nvidia.com/gpu.present": "false", "nvidia.com/gpu.count": "0"}), False),
    ],
)
def test_a_node_has_gpus_when_it_offers_them_or_its_labels_say_so(given, has_gpus):
    assert node_record(given).has_gpus is has_gpus


def test_taints_are_left_out_of_a_message_so_that_it_is_equal_for_many_pods():
    tainted = ", ".join(f"1 node(s) had untolerated taint {{team: t{number}}}" for number in range(500))
    message = f"0/500 nodes are available: {tainted}, 9 Insufficient nvidia.com/gpu."
    scheduled = pod_record(objects.unschedulable(objects.pod("p"), message)).scheduled
    assert scheduled.message.startswith("0/500 nodes are available: 1 node(s) had untolerated taint {}, 1 node(s)")
    assert len(scheduled.message) <= 4096


@pytest.mark.parametrize("field", ["creationTimestamp", "uid", "name"])
def test_a_pod_without_a_field_that_is_needed_is_a_value_error(field):
    given = objects.pod("p")
    del given["metadata"][field]
    with pytest.raises(ValueError, match="it has no creationTimestamp, uid or name"):
        pod_record(given)
