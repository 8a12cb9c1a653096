"""The simulated kubelet, called through the generated client alone."""

import threading
import time

import grpc
import pytest

from exporter.node.attribution.kubelet_api.podresources_pb2 import (
    AllocatableResourcesRequest,
    ContainerDevices,
    DynamicResource,
    ListPodResourcesRequest,
)
from exporter.node.attribution.kubelet_api.podresources_pb2_grpc import PodResourcesListerStub
from simulators.kubelet import NORMAL, RATE_LIMITED, ListBehavior, SimulatedKubelet

GPU = "nvidia.com/gpu"
ALLOCATIONS = [
    ("team", "train", "main", GPU, tuple(f"GPU-{n}" for n in range(8))),
    ("team", "train", "side", GPU, ("GPU-9", "GPU-9")),
    ("team", "claimed", "main", "gpu.nvidia.com", ("node/gpu-1",)),
    *(("web", f"nginx-{n}", "nginx", "", ()) for n in range(8)),
]


@pytest.fixture
def kubelet(socket_path):
    with SimulatedKubelet(socket_path, lambda: ALLOCATIONS, seed=1) as kubelet:
        yield kubelet


def call(socket_path, timeout=30.0):
    options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"unix:{socket_path}", options) as channel:
        return PodResourcesListerStub(channel).List(ListPodResourcesRequest(), timeout=timeout)


def failure(socket_path, timeout=30.0):
    with pytest.raises(grpc.RpcError) as caught:
        call(socket_path, timeout)
    return caught.value


def contents(answer):
    return sorted(
        (pod.namespace, pod.name, container.name, entry.resource_name, tuple(entry.device_ids))
        for pod in answer.pod_resources
        for container in pod.containers
        for entry in map(ContainerDevices.FromString, container.devices)
    )


def test_each_device_has_an_entry_of_its_own(kubelet, socket_path):
    expected = [("team", "train", "main", GPU, (f"GPU-{n}",)) for n in range(8)]
    assert contents(call(socket_path)) == expected + [("team", "train", "side", GPU, ("GPU-9",))] * 2


def test_every_pod_is_listed_once_with_or_without_devices(kubelet, socket_path):
    pods = sorted((pod.namespace, pod.name) for pod in call(socket_path).pod_resources)
    assert pods == sorted({(namespace, pod) for namespace, pod, *_ in ALLOCATIONS})


def test_containers_without_devices_are_listed(kubelet, socket_path):
    (nginx,) = [pod for pod in call(socket_path).pod_resources if pod.name == "nginx-0"]
    assert [container.name for container in nginx.containers] == ["nginx"]
    assert not nginx.containers[0].devices


def test_a_resource_without_a_slash_is_the_driver_of_a_claim(kubelet, socket_path):
    (pod,) = [pod for pod in call(socket_path).pod_resources if pod.name == "claimed"]
    (device,) = DynamicResource.FromString(pod.containers[0].dynamic_resources[0]).claim_resources
    assert (device.driver_name, device.pool_name, device.device_name) == ("gpu.nvidia.com", "node", "gpu-1")


def test_the_order_changes_from_call_to_call_and_the_contents_do_not(kubelet, socket_path):
    answers = [call(socket_path) for _ in range(8)]
    assert len({answer.SerializeToString() for answer in answers}) > 1
    assert len({tuple(contents(answer)) for answer in answers}) == 1
    assert kubelet.calls == 8


def test_allocations_are_read_anew_at_each_call(socket_path):
    now = []
    with SimulatedKubelet(socket_path, lambda: now):
        assert not call(socket_path).pod_resources
        now.append(ALLOCATIONS[0])
        assert len(call(socket_path).pod_resources) == 1


def test_it_fails_with_the_code_of_its_behavior_and_recovers(kubelet, socket_path):
    kubelet.behavior = ListBehavior(code=grpc.StatusCode.RESOURCE_EXHAUSTED, details=RATE_LIMITED)
    error = failure(socket_path)
    assert (error.code(), error.details()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, RATE_LIMITED)
    kubelet.behavior = NORMAL
    assert call(socket_path).pod_resources


def test_it_is_as_slow_as_its_behavior(kubelet, socket_path):
    kubelet.behavior = ListBehavior(delay=0.2)
    began = time.monotonic()
    assert call(socket_path).pod_resources
    assert time.monotonic() - began >= 0.2


def test_a_call_that_never_ends_does_not_keep_it_from_stopping(kubelet, socket_path):
    kubelet.behavior = ListBehavior(delay=float("inf"))
    assert failure(socket_path, timeout=0.2).code() is grpc.StatusCode.DEADLINE_EXCEEDED
    stopping = threading.Thread(target=kubelet.stop, daemon=True)
    stopping.start()
    stopping.join(60)
    assert not stopping.is_alive()


def test_its_response_is_larger_by_the_padding_of_its_behavior(kubelet, socket_path):
    kubelet.behavior = ListBehavior(padding=5_000_000)
    assert call(socket_path).ByteSize() > 5_000_000


def test_a_stopped_kubelet_removes_its_socket_and_a_crashed_one_does_not(kubelet, socket_path):
    kubelet.stop(leave_socket=True)
    assert socket_path.is_socket()
    assert failure(socket_path).code() is grpc.StatusCode.UNAVAILABLE
    kubelet.start()
    assert call(socket_path).pod_resources
    kubelet.stop()
    kubelet.stop()
    assert list(socket_path.parent.iterdir()) == []


def test_it_says_what_it_offers_once_that_is_set(tmp_path):
    channel = grpc.insecure_channel(f"unix:{tmp_path / 'k.sock'}")
    with SimulatedKubelet(tmp_path / "k.sock", list, seed=1) as server, channel:
        call = PodResourcesListerStub(channel).GetAllocatableResources
        with pytest.raises(grpc.RpcError) as caught:
            call(AllocatableResourcesRequest(), timeout=30)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        server.offered = [(GPU, ("GPU-0", "GPU-1"))]
        entries = map(ContainerDevices.FromString, call(AllocatableResourcesRequest(), timeout=30).devices)
        assert sorted((each.resource_name, *each.device_ids) for each in entries) == [(GPU, "GPU-0"), (GPU, "GPU-1")]
