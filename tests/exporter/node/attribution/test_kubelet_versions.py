"""What kubelets of all versions list, and what they list after a restart, against a real gRPC server."""

import os
import tempfile
import time
from pathlib import Path

import pytest

from exporter.node.attribution.allocation import Allocation, LastKnownAllocations
from exporter.node.attribution.kubelet.client import Kubelet
from exporter.node.attribution.kubelet.guards import StartGuard
from exporter.node.attribution.kubelet_api.podresources_pb2 import (
    ContainerDevices,
    ContainerResources,
    ListPodResourcesResponse,
    PodResources,
)
from exporter.node.attribution.matching.attribute import attribute
from exporter.source import SourceError
from simulators.kubelet import ListBehavior, SimulatedKubelet
from tests.exporter.node.attribution.node_devices import GPU, U0, U1, UUID, allocated, state_of

V1, ALPHA = "/v1.PodResourcesLister/List", "/v1alpha1.PodResourcesLister/List"
JOB, WEB = ("team", "job", "main", GPU, (UUID,)), ("web", "nginx", "nginx", "", ())
JOB_ALLOCATED = allocated("job", UUID)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def socket_path():
    # The path of a socket has at most 107 bytes (unix(7)); pytest's own folders can be longer.
    with tempfile.TemporaryDirectory(prefix="kubelet-") as folder:
        yield Path(folder) / "kubelet.sock"


@pytest.fixture
def kubelet(socket_path):
    kubelet = Kubelet(socket_path)
    yield kubelet
    kubelet.close()


def listed(socket_path, kubelet, *rows):
    with SimulatedKubelet(socket_path, lambda: rows):
        return kubelet.read()


def answer_of(kubelet, socket_path):
    """What a restarted kubelet lists, or the error that says why it is not accepted."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return kubelet.read()
        except SourceError as error:
            if error.reason != "unavailable" or time.monotonic() > deadline:
                return error
            os.utime(socket_path)  # gRPC may still have been connected to the stopped one: one more call


def test_of_a_kubelet_without_v1_the_older_version_is_read_and_v1_is_asked_once(socket_path, kubelet):
    with SimulatedKubelet(socket_path, lambda: [JOB, WEB], v1=False) as server:
        assert [kubelet.read() for _ in range(3)] == [JOB_ALLOCATED] * 3
        assert server.methods == [V1, ALPHA, ALPHA, ALPHA]


def test_a_kubelet_that_comes_back_with_v1_is_read_through_v1(socket_path, kubelet):
    with SimulatedKubelet(socket_path, lambda: [JOB], v1=False) as server:
        kubelet.read()
        server.stop()
        server.v1 = True
        server.start()
        assert answer_of(kubelet, socket_path) == JOB_ALLOCATED
        assert set(server.methods) == {V1}


def test_a_failure_of_the_older_version_has_its_own_reason(socket_path, kubelet):
    with SimulatedKubelet(socket_path, lambda: [JOB], v1=False) as server:
        server.behavior = ListBehavior(delay=float("inf"))
        impatient = Kubelet(socket_path, deadline=0.5)
        with pytest.raises(SourceError) as caught:
            impatient.read()
        assert caught.value.reason == "timeout"
        impatient.close()


def test_all_ids_of_one_resource_in_one_entry_are_read_as_kubernetes_1_20_lists_them(socket_path, kubelet):
    entry = ContainerDevices(resource_name=GPU, device_ids=["GPU-1", UUID]).SerializeToString()
    container = ContainerResources(name="main", devices=[entry])
    with SimulatedKubelet(socket_path, list) as server:
        pod = PodResources(name="job", namespace="team", containers=[container])
        server.behavior = ListBehavior(response=ListPodResourcesResponse(pod_resources=[pod]))
        assert kubelet.read() == allocated("job", "GPU-1", UUID)


def test_a_sidecar_has_its_own_device_and_a_static_pod_is_a_pod_like_any(socket_path, kubelet):
    sidecar = ("team", "job", "proxy", GPU, ("GPU-1",))
    static = ("kube-system", "burn-in-node-1", "main", GPU, ("GPU-2",))
    assert listed(socket_path, kubelet, JOB, sidecar, static) == (
        Allocation("kube-system", "burn-in-node-1", "main", GPU, "GPU-2"),
        *JOB_ALLOCATED,
        Allocation("team", "job", "proxy", GPU, "GPU-1"),
    )


def test_pods_without_devices_rejected_pods_and_init_containers_have_no_allocation(socket_path, kubelet):
    rejected = ("team", "rejected", "main", GPU, ())
    # The container whose init container had a device: the kubelet lists the app container alone, without devices.
    after_init = ("team", "prepared", "main", "", ())
    assert listed(socket_path, kubelet, WEB, rejected, after_init) == ()


def test_a_finished_pod_that_an_older_kubelet_lists_makes_its_device_conflicting(socket_path, kubelet):
    both = listed(socket_path, kubelet, JOB, ("team", "service", "main", GPU, (UUID,)))
    state = state_of(U0, attribute((U0, U1), both))
    assert (state.container.pod, state.sharing, state.pods) == ("", "unknown", 2)


def test_a_kubelet_that_lists_only_some_pods_after_its_restart_is_starting(socket_path):
    clock, rows = Clock(), [JOB, WEB]
    kubelet, last_known = Kubelet(socket_path, clock=clock), LastKnownAllocations(clock=clock)
    with SimulatedKubelet(socket_path, lambda: rows) as server:
        assert last_known.latest(kubelet.read()) == JOB_ALLOCATED
        server.stop()
        server.start()
        rows = [WEB]
        error = answer_of(kubelet, socket_path)
        assert error.reason == "starting"
        assert "lacks 1 allocations" in str(error)
        assert last_known.latest(None) == JOB_ALLOCATED
        clock.now += 15
        assert kubelet.read() == ()
    kubelet.close()


def test_a_kubelet_that_restarts_between_the_look_for_its_socket_and_the_call_is_starting_too(socket_path, kubelet):
    rows = []

    def listed_after_a_restart():
        if rows:
            os.utime(socket_path)  # a socket that was made again
        return rows or [JOB, WEB]

    with SimulatedKubelet(socket_path, listed_after_a_restart):
        assert kubelet.read() == JOB_ALLOCATED
        rows.append(WEB)
        with pytest.raises(SourceError) as caught:
            kubelet.read()
        assert caught.value.reason == "starting"


MORE = (*JOB_ALLOCATED, Allocation("team", "new", "main", GPU, "GPU-1"))


def test_a_pod_may_end_at_any_other_time_and_more_is_always_accepted():
    clock = Clock()
    guard = StartGuard(clock)
    for allocations in (MORE, JOB_ALLOCATED, (), MORE):  # soon after the first answer of all
        guard.check((1, 1), 3, allocations)
    guard.check((2, 2), 3, (*MORE, Allocation("team", "third", "main", GPU, "GPU-2")))
    with pytest.raises(SourceError):
        guard.check((2, 2), 3, MORE)
    clock.now += 15
    guard.check((2, 2), 3, MORE)
    guard.check((2, 2), 3, ())
