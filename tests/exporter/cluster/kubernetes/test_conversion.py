"""Which objects become records."""

import msgspec
import pytest

from exporter.cluster.kubernetes import conversion, wire
from simulators import objects
from tests.exporter.cluster.fixture import GPUS


def pod_record(given):
    return conversion.pod(msgspec.convert(given, wire.WirePod), GPUS)


def node_record(given):
    return conversion.node(msgspec.convert(given, wire.WireNode), GPUS)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_has_no_record(phase):
    done = objects.running(objects.pod("p"), "n1")
    assert pod_record(done) is not None
    done["status"]["phase"] = phase
    assert pod_record(done) is None


def test_a_pod_without_gpus_has_no_record():
    assert pod_record(objects.pod("cpu", requests={})) is None


def test_a_node_has_a_record_when_it_has_gpus_or_labels_of_gpus():
    assert node_record(objects.node("cpu")) is None
    assert node_record(objects.node("gpu", {"nvidia.com/gpu": 8})) is not None
    assert node_record(objects.node("labeled", {}, objects.gpu_labels("H200", 8))) is not None


@pytest.mark.parametrize("field", ["creationTimestamp", "uid", "name"])
def test_a_pod_without_a_field_that_is_needed_is_a_value_error(field):
    given = objects.pod("p")
    del given["metadata"][field]
    with pytest.raises(ValueError, match="it has no creationTimestamp, uid or name"):
        pod_record(given)
