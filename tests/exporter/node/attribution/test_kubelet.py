"""The kubelet as a source, against a real gRPC server on a unix socket."""

import itertools
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from exporter.gpu_names import gpu_resources
from exporter.node.attribution.allocation import Allocation, ClaimName, LastKnownAllocations
from exporter.node.attribution.kubelet.client import Kubelet
from exporter.node.attribution.kubelet.reason import ANSWER_BYTES, DEADLINE_SECONDS, MAX_ALLOCATIONS, KubeletReason
from exporter.node.attribution.kubelet_api.podresources_pb2 import (
    ContainerResources,
    DynamicResource,
    ListPodResourcesResponse,
    PodResources,
)
from exporter.node.attribution.kubelet_api.podresources_pb2_grpc import (
    PodResourcesListerServicer,
    add_PodResourcesListerServicer_to_server,
)
from exporter.source import SourceError
from simulators.kubelet import NORMAL, RATE_LIMITED, ListBehavior, SimulatedKubelet
from tests.exporter.node.attribution.large_answer import large_answer

GPU = "nvidia.com/gpu"
TRAIN = ("team-a", "train", "main", GPU, ("GPU-1", "GPU-0"))
SIDE = ("team-a", "train", "side", GPU, ("GPU-2",))
WEB = ("web", "nginx", "nginx", "", ())
ALLOCATED = (
    Allocation("team-a", "train", "main", GPU, "GPU-0"),
    Allocation("team-a", "train", "main", GPU, "GPU-1"),
    Allocation("team-a", "train", "side", GPU, "GPU-2"),
)


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
def server(socket_path):
    with SimulatedKubelet(socket_path, lambda: [TRAIN, SIDE, WEB]) as server:
        yield server


def no_pauses():
    """A clock on which every pause is over at the next read."""
    return itertools.count(0.0, 3600.0).__next__


@pytest.fixture
def kubelet(socket_path):
    kubelet = Kubelet(socket_path, clock=no_pauses())
    yield kubelet
    kubelet.close()


def failure(kubelet):
    with pytest.raises(SourceError) as caught:
        kubelet.read()
    assert isinstance(caught.value.reason, KubeletReason)
    return caught.value.reason


def read_within(kubelet, seconds):
    deadline = time.monotonic() + seconds
    while True:
        try:
            return kubelet.read()
        except SourceError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def test_every_device_of_every_container_is_read_once_and_in_order(server, kubelet):
    for _ in range(20):
        assert kubelet.read() == ALLOCATED
    assert kubelet.name == "kubelet"


def test_one_read_is_one_call(server, kubelet):
    kubelet.read()
    kubelet.read()
    assert server.calls == 2


def test_a_device_near_two_numa_nodes_is_read_once(socket_path, kubelet):
    with SimulatedKubelet(socket_path, lambda: [("n", "p", "c", GPU, ("GPU-0", "GPU-0"))]):
        assert kubelet.read() == (Allocation("n", "p", "c", GPU, "GPU-0"),)


def test_the_devices_of_a_claim_are_read_under_their_drivers_name(socket_path, kubelet):
    with SimulatedKubelet(socket_path, lambda: [("n", "p", "c", "gpu.nvidia.com", ("node-1/gpu-0",))]):
        claim = ClaimName("n", "p-c")
        assert kubelet.read() == (Allocation("n", "p", "c", "gpu.nvidia.com", "node-1/gpu-0", claim=claim),)


def test_a_device_of_a_claim_is_told_by_its_name_and_not_by_cdi_names_that_the_kubelet_repeats(server, kubelet):
    claim = DynamicResource(claim_name="two", claim_namespace="n")
    for number, share in ((0, "s0"), (1, "")):
        device = claim.claim_resources.add(
            driver_name="gpu.nvidia.com", pool_name="node-1", device_name=f"gpu-{number}", share_id=share
        )
        # Field 1, which is not read: a list of messages with a name each. The second device has that of the first too.
        names = b"".join(b"\x0a\x0d\x0a\x0bk8s=x-gpu-%d" % n for n in range(number + 1))
        device.MergeFromString(names)
    pod = PodResources(
        name="p",
        namespace="n",
        containers=[ContainerResources(name="c", dynamic_resources=[claim.SerializeToString()])],
    )
    server.behavior = ListBehavior(response=ListPodResourcesResponse(pod_resources=[pod]))
    read = [(each.device_id, each.claim) for each in kubelet.read()]
    assert read == [("node-1/gpu-0", ClaimName("n", "two", "s0")), ("node-1/gpu-1", ClaimName("n", "two"))]


def test_only_resources_that_mean_gpus_are_read(socket_path):
    kubelet = Kubelet(socket_path, gpu_resources(("example.com/gpu",)))
    resources = ("example.com/gpu", "example.com/nic", "nic.example.com", GPU, "nvidia.com/mig-1g.10gb")
    listed = [("n", "p", "c", resource, (f"{resource}/0",)) for resource in resources]
    with SimulatedKubelet(socket_path, lambda: listed):
        assert [allocation.resource for allocation in kubelet.read()] == [
            "example.com/gpu",
            GPU,
            "nvidia.com/mig-1g.10gb",
        ]
    kubelet.close()


def test_an_answer_with_a_device_that_cannot_be_decoded_is_no_answer_at_all(server, kubelet):
    broken = PodResources(name="p", containers=[ContainerResources(name="c", devices=[b"\xff"])])
    server.behavior = ListBehavior(response=ListPodResourcesResponse(pod_resources=[broken]))
    assert failure(kubelet) == "invalid_answer"
    server.behavior = NORMAL
    assert kubelet.read() == ALLOCATED


def test_a_kubelet_that_fails_is_called_less_often(server, socket_path):
    clock = Clock()
    kubelet = Kubelet(socket_path, clock=clock)
    server.behavior = ListBehavior(code=grpc.StatusCode.RESOURCE_EXHAUSTED, details=RATE_LIMITED)
    called_at = []
    for second in range(120):
        calls = server.calls
        assert failure(kubelet) == "rate_limited"
        called_at += [second] * (server.calls - calls)
        clock.now += 1
    assert called_at == [0, 1, 3, 7, 15, 31, 61, 91]
    server.behavior = NORMAL
    clock.now += 1
    assert kubelet.read() == ALLOCATED
    assert kubelet.read() == ALLOCATED
    kubelet.close()


def test_a_pause_ends_when_the_kubelet_makes_a_new_socket(server, socket_path):
    kubelet = Kubelet(socket_path, clock=Clock())
    server.behavior = ListBehavior(code=grpc.StatusCode.RESOURCE_EXHAUSTED, details=RATE_LIMITED)
    assert failure(kubelet) == "rate_limited"
    server.behavior = NORMAL
    assert failure(kubelet) == "rate_limited"
    server.stop()
    server.start()
    deadline = time.monotonic() + 60
    while (found := read_or_none(kubelet)) is None:
        assert time.monotonic() < deadline
        os.utime(socket_path)  # gRPC may still have been connected to the stopped one: one more call
    assert found == ALLOCATED
    kubelet.close()


def read_or_none(kubelet):
    try:
        return kubelet.read()
    except SourceError:
        return None


def test_a_missing_socket_has_the_reason_socket_missing(kubelet):
    assert failure(kubelet) == "socket_missing"


def test_a_file_in_place_of_the_socket_has_the_reason_socket_missing(socket_path, kubelet):
    socket_path.write_text("")
    assert failure(kubelet) == "socket_missing"


def test_a_kubelet_that_comes_later_is_found(socket_path, kubelet):
    assert failure(kubelet) == "socket_missing"
    with SimulatedKubelet(socket_path, lambda: [TRAIN, SIDE]):
        assert read_within(kubelet, 30) == ALLOCATED


def test_a_restarted_kubelet_is_found_on_the_same_channel(server, kubelet):
    assert kubelet.read() == ALLOCATED
    server.stop()
    assert failure(kubelet) == "socket_missing"
    server.start()
    assert read_within(kubelet, 30) == ALLOCATED


def test_a_crashed_kubelet_is_unavailable_and_found_again(server, kubelet):
    assert kubelet.read() == ALLOCATED
    server.stop(leave_socket=True)
    assert failure(kubelet) == "unavailable"
    server.start()
    assert read_within(kubelet, 30) == ALLOCATED


@pytest.mark.slow
def test_a_kubelet_that_was_away_for_long_is_read_again_soon(server, kubelet):
    server.stop(leave_socket=True)
    # Long enough that the pauses which gRPC doubles by default would have reached six seconds.
    deadline = time.monotonic() + 12
    while time.monotonic() < deadline:
        assert failure(kubelet) == "unavailable"
        time.sleep(0.05)
    server.start()
    began = time.monotonic()
    assert read_within(kubelet, 20) == ALLOCATED
    assert time.monotonic() - began < 5


def test_an_answer_that_never_comes_costs_no_more_than_the_deadline(server, socket_path):
    server.behavior = ListBehavior(delay=float("inf"))
    kubelet = Kubelet(socket_path, clock=no_pauses(), deadline=0.3)
    assert failure(kubelet) == "timeout"
    server.behavior = NORMAL
    assert read_within(kubelet, 30) == ALLOCATED
    kubelet.close()


@pytest.mark.parametrize(("deadline", "least"), [(DEADLINE_SECONDS, 0.0), (600.0, 500.0)])
def test_each_read_has_the_configured_deadline(socket_path, deadline, least):
    remaining = []

    class Lister(PodResourcesListerServicer):
        def List(self, request, context):  # noqa: N802  # the name of the call
            remaining.append(context.time_remaining())
            return ListPodResourcesResponse()

    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads)
        add_PodResourcesListerServicer_to_server(Lister(), server)
        server.add_insecure_port(f"unix:{socket_path}")
        server.start()
        kubelet = Kubelet(socket_path, deadline=deadline)
        assert kubelet.read() == ()
        kubelet.close()
        server.stop(None).wait()
    assert least < remaining[0] < deadline + 1  # the clocks of both sides differ by milliseconds


def test_a_slow_answer_within_the_deadline_is_an_answer(server, kubelet):
    server.behavior = ListBehavior(delay=0.2)
    assert kubelet.read() == ALLOCATED


@pytest.mark.parametrize(
    ("code", "details", "reason"),
    [
        (grpc.StatusCode.RESOURCE_EXHAUSTED, RATE_LIMITED, "rate_limited"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "trying to send message larger than max (9 vs. 4)", "too_large"),
        (grpc.StatusCode.UNIMPLEMENTED, "unknown service v1.PodResourcesLister", "unimplemented"),
        (grpc.StatusCode.PERMISSION_DENIED, "no", "no_permission"),
        (grpc.StatusCode.UNAVAILABLE, "not now", "unavailable"),
        (grpc.StatusCode.UNKNOWN, "something", "unavailable"),
    ],
)
def test_each_failed_call_has_its_reason(server, kubelet, code, details, reason):
    server.behavior = ListBehavior(code=code, details=details)
    assert failure(kubelet) == reason
    server.behavior = NORMAL
    assert kubelet.read() == ALLOCATED


def test_an_answer_over_grpcs_own_limit_of_4_mib_is_read(server, kubelet):
    server.behavior = ListBehavior(padding=12 * 2**20)
    assert kubelet.read() == ALLOCATED


RESIDENT = """
import itertools, pathlib, sys
from exporter.node import program
from exporter.node.attribution.kubelet.client import Kubelet
from exporter.source import SourceError
kubelet = Kubelet(pathlib.Path(sys.argv[1]), clock=itertools.count(0.0, 3600.0).__next__)
for _ in range(3):
    try:
        print(len(kubelet.read()))
    except SourceError as error:
        print(error.reason)
status = pathlib.Path("/proc/self/status").read_text().splitlines()
print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""
"""Reads three times; prints the number of allocations or the reason, then the most memory that was resident, in KiB."""


@pytest.mark.process
@pytest.mark.parametrize(
    ("gpus", "result"),
    [(256, "256"), (MAX_ALLOCATIONS, str(MAX_ALLOCATIONS)), (math.inf, "too_many_allocations")],
)
def test_an_answer_of_16_mib_takes_no_more_than_200_mib_of_memory(server, socket_path, gpus, result):
    response = large_answer(gpus)
    assert 0.99 * ANSWER_BYTES < response.ByteSize() < ANSWER_BYTES
    server.behavior = ListBehavior(response=response)
    command = [sys.executable, "-c", RESIDENT, str(socket_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    *results, resident = done.stdout.split()
    assert results == [result] * 3
    assert int(resident) < 200 * 1024


@pytest.mark.parametrize(("more", "result"), [(0, None), (1, "too_many_allocations")])
def test_an_answer_with_too_many_allocations_is_not_used_at_all(socket_path, kubelet, more, result):
    ids = [f"GPU-{n}" for n in range(MAX_ALLOCATIONS + more)]
    with SimulatedKubelet(socket_path, lambda: [("team-a", "train", "main", GPU, [*ids, *ids])]):
        if result:
            assert failure(kubelet) == result
        else:
            assert len(kubelet.read()) == MAX_ALLOCATIONS


def test_the_allocations_of_a_container_share_their_texts(server, kubelet):
    one, other, _ = kubelet.read()
    assert all(one[n] is other[n] for n in range(4))


def test_an_answer_over_16_mib_is_too_large(server, kubelet):
    server.behavior = ListBehavior(padding=16 * 2**20)
    assert failure(kubelet) == "too_large"
    server.behavior = NORMAL
    assert kubelet.read() == ALLOCATED


def test_a_server_of_another_service_is_unimplemented(socket_path, kubelet):
    with ThreadPoolExecutor(1) as threads:
        other = grpc.server(threads)
        other.add_insecure_port(f"unix:{socket_path}")
        other.start()
        assert failure(kubelet) == "unimplemented"
        other.stop(None).wait()


def test_an_empty_list_soon_after_one_with_pods_is_rejected(socket_path):
    clock, listed = Clock(), [TRAIN, SIDE]
    kubelet = Kubelet(socket_path, clock=clock)
    with SimulatedKubelet(socket_path, lambda: listed):
        assert kubelet.read() == ALLOCATED
        listed = []
        clock.now += 30
        assert failure(kubelet) == "starting"
        listed = [TRAIN, SIDE]
        assert kubelet.read() == ALLOCATED
        listed = []
        clock.now += 61
        assert kubelet.read() == ()
    kubelet.close()


def test_an_empty_list_is_an_answer_when_there_never_was_a_pod(socket_path, kubelet):
    with SimulatedKubelet(socket_path, list):
        assert kubelet.read() == ()


def test_a_path_with_odd_characters_is_the_path_of_the_socket():
    with tempfile.TemporaryDirectory(prefix="kub let%41?#") as folder:
        path = Path(folder) / "kubelet.sock"
        kubelet = Kubelet(path)
        with SimulatedKubelet(path, lambda: [TRAIN, SIDE]):
            assert kubelet.read() == ALLOCATED
        kubelet.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change its user")
@pytest.mark.parametrize("closed", ["socket", "folder"])
def test_a_socket_that_may_not_be_used_is_no_permission(server, socket_path, closed):
    # The kubelet's socket is writable for root alone (0755), and connecting needs write permission.
    socket_path.parent.chmod(0o755 if closed == "socket" else 0o700)
    socket_path.chmod(0o755)
    code = (
        "import os, sys, pathlib\n"
        "import exporter.node.attribution.kubelet.client as module\n"
        "from exporter.source import SourceError\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "source = module.Kubelet(pathlib.Path(sys.argv[1]))\n"
        "try:\n"
        "    print(source.read())\n"
        "except SourceError as error:\n"
        "    print(error.reason)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(socket_path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "no_permission"


def test_the_stubs_can_be_loaded_beside_another_copy_of_the_same_api():
    code = (
        "from google.protobuf import descriptor_pb2, descriptor_pool\n"
        "file = descriptor_pb2.FileDescriptorProto(name='other/api.proto', package='v1')\n"
        "file.message_type.add(name='PodResources')\n"
        "descriptor_pool.Default().AddSerializedFile(file.SerializeToString())\n"
        "from exporter.node.attribution.kubelet_api import podresources_pb2\n"
        "print(podresources_pb2.PodResources.DESCRIPTOR.full_name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "v1.PodResources"


def test_a_new_answer_replaces_the_last_known_one():
    last_known = LastKnownAllocations(clock=Clock())
    assert last_known.latest(ALLOCATED) == ALLOCATED
    assert last_known.latest(()) == ()


def test_nothing_is_known_before_the_first_answer():
    clock = Clock()
    clock.now = 1.0
    assert LastKnownAllocations(clock=clock).latest(None) is None


def test_the_last_answer_is_kept_for_60_seconds_and_no_longer():
    clock = Clock()
    last_known = LastKnownAllocations(clock=clock)
    last_known.latest(ALLOCATED)
    clock.now += 60
    assert last_known.latest(None) == ALLOCATED
    clock.now += 1
    assert last_known.latest(None) is None
    clock.now -= 30
    assert last_known.latest(None) is None


def test_each_answer_is_kept_for_a_minute_of_its_own():
    clock = Clock()
    last_known = LastKnownAllocations(clock=clock)
    last_known.latest(ALLOCATED)
    clock.now += 50
    last_known.latest(ALLOCATED)
    clock.now += 50
    assert last_known.latest(None) == ALLOCATED


def test_a_read_can_be_made_from_another_thread_than_the_one_that_opened_it(server, kubelet):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(kubelet.read()))
    thread.start()
    thread.join(30)
    assert answers == [ALLOCATED]
