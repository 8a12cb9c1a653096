"""The call that asks which devices the kubelet offers, against a real gRPC server."""

import tempfile
from pathlib import Path

import grpc
import pytest

from exporter.gpu_names import GpuResources
from exporter.node.attribution.kubelet.client import Kubelet
from exporter.node.attribution.kubelet.listed_allocations import offered_ids
from exporter.node.attribution.kubelet.reason import MAX_ALLOCATIONS
from exporter.node.attribution.kubelet_api.podresources_pb2 import AllocatableResourcesResponse, ContainerDevices
from exporter.source import SourceError
from simulators.kubelet import NORMAL, RATE_LIMITED, ListBehavior, SimulatedKubelet
from tests.exporter.node.attribution.node_devices import GPU, UUID, allocated


@pytest.fixture
def running():
    """A kubelet with one allocation, and what reads it."""
    # The path of a socket has at most 107 bytes (unix(7)); pytest's own folders can be longer.
    with tempfile.TemporaryDirectory(prefix="kubelet-") as folder:
        path = Path(folder) / "kubelet.sock"
        with SimulatedKubelet(path, lambda: [("team", "job", "main", GPU, (UUID,))]) as server:
            kubelet = Kubelet(path)
            yield server, kubelet
            kubelet.close()


def failure(kubelet):
    with pytest.raises(SourceError) as caught:
        kubelet.offered()
    return caught.value


def test_replicas_and_repetitions_are_one_id_and_other_resources_none(running):
    server, kubelet = running
    server.offered = [
        (GPU, (f"{UUID}::0", f"{UUID}::1", "GPU-1", "GPU-1")),
        ("example.com/fuse", ("fuse",)),
        ("nvidia.com/mig-1g.10gb", ("MIG-a",)),
    ]
    assert kubelet.offered() == {(GPU, UUID), (GPU, "GPU-1"), ("nvidia.com/mig-1g.10gb", "MIG-a")}


def test_its_failure_costs_no_list_and_has_its_reason(running):
    server, kubelet = running
    server.offered = []
    for code, details, reason in (
        (grpc.StatusCode.RESOURCE_EXHAUSTED, RATE_LIMITED, "rate_limited"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "Received message larger than max", "too_large"),
        (grpc.StatusCode.UNKNOWN, "Pod Resources API GetAllocatableResources disabled", "unavailable"),
    ):
        server.offer_behavior = ListBehavior(code=code, details=details)
        error = failure(kubelet)
        assert error.reason == reason
        assert "GetAllocatableResources failed" in str(error)
        assert kubelet.read() == allocated("job", UUID)
    server.offer_behavior = NORMAL
    assert kubelet.offered() == frozenset()


@pytest.mark.parametrize("v1", [True, False])
def test_a_kubelet_without_the_call_is_unimplemented(running, v1):
    server, kubelet = running
    server.stop()
    server.v1 = v1
    server.start()
    assert failure(kubelet).reason == "unimplemented"


def test_a_call_that_is_never_answered_costs_two_seconds_at_most(running):
    server, kubelet = running
    server.offered, server.offer_behavior = [], ListBehavior(delay=float("inf"))
    assert failure(kubelet).reason == "timeout"


def test_an_answer_with_too_many_devices_is_none():
    ids = [f"GPU-{n}" for n in range(MAX_ALLOCATIONS + 1)]
    large = ContainerDevices(resource_name=GPU, device_ids=ids).SerializeToString()
    with pytest.raises(SourceError) as caught:
        offered_ids(AllocatableResourcesResponse(devices=[large]), GpuResources())
    assert caught.value.reason == "too_many_allocations"
