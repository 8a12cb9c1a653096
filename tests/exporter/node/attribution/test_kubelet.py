"""The kubelet as a source, against a real gRPC server on a unix socket."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import grpc
import pytest

from exporter.node.attribution.allocation import Allocation, HeldAllocations
from exporter.node.attribution.kubelet import REASONS, Kubelet
from exporter.source import SourceError
from simulators.kubelet import RATE_LIMITED, WELL, Behaviour, SimulatedKubelet

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
    # A socket's path may have 107 bytes; pytest's own folders can be longer.
    with tempfile.TemporaryDirectory(prefix="kubelet-") as folder:
        yield Path(folder) / "kubelet.sock"


@pytest.fixture
def server(socket_path):
    with SimulatedKubelet(socket_path, lambda: [TRAIN, SIDE, WEB]) as server:
        yield server


@pytest.fixture
def kubelet(socket_path):
    kubelet = Kubelet(socket_path)
    yield kubelet
    kubelet.close()


def failure(kubelet):
    with pytest.raises(SourceError) as caught:
        kubelet.read()
    assert caught.value.reason in REASONS
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
        assert kubelet.read() == (Allocation("n", "p", "c", "gpu.nvidia.com", "node-1/gpu-0"),)


def test_other_vendors_resources_are_read_too_since_judging_them_is_not_the_sources_business(socket_path, kubelet):
    with SimulatedKubelet(socket_path, lambda: [("n", "p", "c", "example.com/nic", ("nic0",))]):
        assert kubelet.read() == (Allocation("n", "p", "c", "example.com/nic", "nic0"),)


def test_a_missing_socket_is_said_to_be_missing(kubelet):
    assert failure(kubelet) == "socket_missing"


def test_a_file_in_place_of_the_socket_is_said_to_be_no_socket(socket_path, kubelet):
    socket_path.write_text("")
    assert failure(kubelet) == "socket_missing"


def test_a_kubelet_that_comes_later_is_found(socket_path, kubelet):
    assert failure(kubelet) == "socket_missing"
    with SimulatedKubelet(socket_path, lambda: [TRAIN, SIDE]):
        assert read_within(kubelet, 10) == ALLOCATED


def test_a_restarted_kubelet_is_found_on_the_same_channel(server, kubelet):
    assert kubelet.read() == ALLOCATED
    server.stop()
    assert failure(kubelet) == "socket_missing"
    server.start()
    assert read_within(kubelet, 10) == ALLOCATED


def test_a_crashed_kubelet_is_unavailable_and_found_again(server, kubelet):
    assert kubelet.read() == ALLOCATED
    server.stop(leave_socket=True)
    assert failure(kubelet) == "unavailable"
    server.start()
    assert read_within(kubelet, 10) == ALLOCATED


@pytest.mark.slow
def test_a_kubelet_that_was_away_for_long_is_asked_again_soon(server, kubelet):
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
    server.behaviour = Behaviour(delay=float("inf"))
    kubelet = Kubelet(socket_path, deadline=0.3)
    began = time.monotonic()
    assert failure(kubelet) == "timeout"
    assert time.monotonic() - began < 4
    server.behaviour = WELL
    assert kubelet.read() == ALLOCATED
    kubelet.close()


def test_a_slow_answer_within_the_deadline_is_an_answer(server, kubelet):
    server.behaviour = Behaviour(delay=0.2)
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
def test_each_refusal_has_its_reason(server, kubelet, code, details, reason):
    server.behaviour = Behaviour(code=code, details=details)
    assert failure(kubelet) == reason
    server.behaviour = WELL
    assert kubelet.read() == ALLOCATED


def test_more_than_grpcs_own_limit_of_4_mib_is_taken(server, kubelet):
    server.behaviour = Behaviour(padding=12 * 2**20)
    assert kubelet.read() == ALLOCATED


def test_more_than_16_mib_is_refused_as_too_large(server, kubelet):
    server.behaviour = Behaviour(padding=16 * 2**20)
    assert failure(kubelet) == "too_large"
    server.behaviour = WELL
    assert kubelet.read() == ALLOCATED


def test_a_server_of_another_service_is_unimplemented(socket_path, kubelet):
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # only here

    with ThreadPoolExecutor(1) as threads:
        other = grpc.server(threads)
        other.add_insecure_port(f"unix:{socket_path}")
        other.start()
        assert failure(kubelet) == "unimplemented"
        other.stop(None).wait()


def test_an_empty_list_right_after_a_restart_is_not_believed(socket_path):
    clock, held = Clock(), [TRAIN, SIDE]
    kubelet = Kubelet(socket_path, clock=clock)
    with SimulatedKubelet(socket_path, lambda: held):
        assert kubelet.read() == ALLOCATED
        held = []
        clock.now += 30
        assert failure(kubelet) == "starting"
        held = [TRAIN, SIDE]
        assert kubelet.read() == ALLOCATED
        held = []
        clock.now += 61
        assert kubelet.read() == ()
    kubelet.close()


def test_a_node_without_any_pod_is_believed_at_once_when_there_never_was_one(socket_path, kubelet):
    with SimulatedKubelet(socket_path, list):
        assert kubelet.read() == ()


def test_a_path_with_odd_characters_is_the_path_of_the_socket():
    with tempfile.TemporaryDirectory(prefix="kub let%41?#") as folder:
        path = Path(folder) / "kubelet.sock"
        kubelet = Kubelet(path)
        with SimulatedKubelet(path, lambda: [TRAIN, SIDE]):
            assert kubelet.read() == ALLOCATED
        kubelet.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give up its rights, which this needs")
@pytest.mark.parametrize("closed", ["socket", "folder"])
def test_a_socket_that_may_not_be_used_is_no_permission(server, socket_path, closed):
    # The kubelet's socket is writable for root alone (0755), and connecting needs write permission.
    socket_path.parent.chmod(0o755 if closed == "socket" else 0o700)
    socket_path.chmod(0o755)
    code = (
        "import os, sys, pathlib\n"
        "import exporter.node.attribution.kubelet as module\n"
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


def test_the_stubs_live_beside_another_copy_of_the_same_api():
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


def test_a_fresh_answer_is_taken_as_it_is():
    held = HeldAllocations(clock=Clock())
    assert held.latest(ALLOCATED) == ALLOCATED
    assert held.latest(()) == ()


def test_nothing_is_held_before_the_first_answer():
    clock = Clock()
    clock.now = 1.0
    assert HeldAllocations(clock=clock).latest(None) is None


def test_the_last_answer_is_held_for_60_seconds_and_no_longer():
    clock = Clock()
    held = HeldAllocations(clock=clock)
    held.latest(ALLOCATED)
    clock.now += 60
    assert held.latest(None) == ALLOCATED
    clock.now += 1
    assert held.latest(None) is None
    clock.now -= 30
    assert held.latest(None) is None


def test_each_answer_starts_the_minute_anew():
    clock = Clock()
    held = HeldAllocations(clock=clock)
    held.latest(ALLOCATED)
    clock.now += 50
    held.latest(ALLOCATED)
    clock.now += 50
    assert held.latest(None) == ALLOCATED


def test_a_read_can_be_made_from_another_thread_than_the_one_that_opened_it(server, kubelet):
    got = []
    thread = threading.Thread(target=lambda: got.append(kubelet.read()))
    thread.start()
    thread.join(10)
    assert got == [ALLOCATED]
