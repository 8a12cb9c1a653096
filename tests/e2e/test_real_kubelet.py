"""A real kubelet's PodResources socket, with a device plugin of the test: what it lists, and what that means.

Needs root, a kubelet and containerd with runc: on PATH, or named by GPUGAUGE_KUBELET (a file) and GPUGAUGE_CONTAINERD
(folders). With GPUGAUGE_RECORD, the answers are written into that folder; the ordinary tests replay them.
"""

import os
import tempfile
import time
from pathlib import Path

import grpc
import pytest
from google.protobuf import text_format

from exporter.node.attribution.allocation import LastKnownAllocations
from exporter.node.attribution.kubelet.client import Kubelet
from exporter.node.attribution.kubelet_api.podresources_pb2 import ListPodResourcesRequest
from exporter.node.attribution.kubelet_api.podresources_pb2_grpc import PodResourcesListerStub
from exporter.source import SourceError
from tests.e2e.real_kubelet.node import RealNode, container, pod, version, why_not
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]

GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
WHOLE = [f"GPU-{number}f9bdf1c-2d0a-4c1e-9d34-0a1b2c3d4e5f" for number in range(8)]
REPLICAS = [f"GPU-8f9bdf1c-2d0a-4c1e-9d34-0a1b2c3d4e5f::{number}" for number in range(4)]
PODS = (
    pod("train", container("main", gpu=1), container("side", gpu=1)),
    pod("infer-a", container("main", shared=1)),
    pod("infer-b", container("main", shared=2)),
    pod("done", container("main", "done", gpu=1), restart="Never"),
    pod("proxied", container("main"), init=[container("proxy", restart="Always", gpu=1)]),
    pod("prepared", container("main"), init=[container("prepare", "done", gpu=1)]),
    pod("web", container("main")),
)
LISTED = {
    ("train-node-1", "main", GPU, 1),
    ("train-node-1", "side", GPU, 1),
    ("infer-a-node-1", "main", SHARED, 1),
    ("infer-b-node-1", "main", SHARED, 2),
    ("proxied-node-1", "proxy", GPU, 1),
}
"""Of each container how many devices of a resource it has, once everything runs; a finished pod has none."""
LIMIT_SECONDS = 180.0


@pytest.fixture(scope="module")
def node():
    from tests.e2e.real_kubelet.plugin import FakeDevicePlugin  # noqa: PLC0415 - compiles the messages

    # Below /tmp: the path of a socket has at most 107 bytes (unix(7)).
    with tempfile.TemporaryDirectory(prefix="kubelet-", dir="/tmp") as folder:
        real = RealNode(Path(folder))
        try:
            real.wait()
            whole, replicas = dict.fromkeys(WHOLE, (0, 1)), dict.fromkeys(REPLICAS, (1,))
            with FakeDevicePlugin(real.plugins, GPU, whole) as gpus, FakeDevicePlugin(real.plugins, SHARED, replicas):
                yield real, gpus
        finally:
            real.close()


@pytest.fixture
def kubelet(node):
    real, _ = node
    source = Kubelet(real.socket, clock=lambda: time.monotonic() * 100)  # pauses of a hundredth
    yield source
    source.close()


def read(kubelet):
    """What is listed now, or nothing while the kubelet cannot be read."""
    try:
        return kubelet.read()
    except SourceError:
        return ()


def counted(allocations):
    """How many devices of a resource each container has."""
    rows = [(each.pod, each.container, each.resource) for each in allocations]
    return {(*row, rows.count(row)) for row in rows}


def answer(real):
    """What the kubelet lists now, as it is sent; None while it does not answer."""
    with grpc.insecure_channel(f"unix:{real.socket}") as channel:
        try:
            return PodResourcesListerStub(channel).List(ListPodResourcesRequest(), timeout=5)
        except grpc.RpcError:
            return None


def record(listed, name):
    """Write an answer into the folder of GPUGAUGE_RECORD, if that is given."""
    folder = os.environ.get("GPUGAUGE_RECORD")
    if folder:
        head = f"# What a kubelet listed: {version()}. Recorded by tests/e2e/test_real_kubelet.py.\n"
        (Path(folder) / f"{name}.txtpb").write_text(head + text_format.MessageToString(listed))


def test_what_device_plugins_offer_is_what_the_kubelet_offers(node, kubelet):
    offered = {(GPU, each) for each in WHOLE} | {(SHARED, REPLICAS[0].partition("::")[0])}
    until(lambda: kubelet.offered() == offered, LIMIT_SECONDS)
    _, gpus = node
    gpus.call_unhealthy(WHOLE[7])
    until(lambda: kubelet.offered() == offered - {(GPU, WHOLE[7])}, LIMIT_SECONDS)
    gpus.call_unhealthy()
    until(lambda: kubelet.offered() == offered, LIMIT_SECONDS)


def test_containers_have_the_devices_that_they_asked_for_and_finished_ones_none(node, kubelet):
    real, _ = node
    # A static pod that comes before the device plugin's answer is rejected for good.
    until(lambda: len(kubelet.offered()) == 9, LIMIT_SECONDS)
    real.run(*PODS)
    try:
        until(lambda: counted(read(kubelet)) == LISTED, LIMIT_SECONDS)
    except AssertionError as error:
        raise AssertionError(f"{read(kubelet)}\n{real.logs()}") from error
    ids = [each.device_id for each in read(kubelet)]
    assert len(ids) == len(set(ids))
    assert set(ids) <= {*WHOLE, *REPLICAS}
    listed = answer(real)
    assert sum(len(each.devices) for pod in listed.pod_resources for each in pod.containers) == 3 * 2 + 3  # NUMA nodes
    record(listed, "running")


def test_a_device_that_becomes_unhealthy_or_whose_plugin_is_away_keeps_its_container(node, kubelet):
    _, gpus = node
    before = kubelet.read()
    gpus.call_unhealthy(*WHOLE)
    until(lambda: all(resource != GPU for resource, _ in kubelet.offered()), LIMIT_SECONDS)
    assert kubelet.read() == before
    gpus.call_unhealthy()


def test_a_killed_kubelet_costs_no_allocation(node, kubelet):
    real, gpus = node
    before, last_known = kubelet.read(), LastKnownAllocations()
    last_known.latest(before)
    answers, reasons = [], []
    real.kill_kubelet()

    def is_back():
        answers.append(answer(real))
        try:
            fresh = kubelet.read()
        except SourceError as error:
            fresh = None
            reasons.append(str(error.reason))
        # Without an API server that says so, a kubelet does not know at first that a pod has finished.
        assert tuple(each for each in last_known.latest(fresh) if each.pod != "done-node-1") == before
        return fresh is not None and reasons

    until(is_back, LIMIT_SECONDS)
    assert set(reasons) <= {"socket_missing", "unavailable", "starting", "timeout"}
    record(next(each for each in answers if each is not None), "first-after-restart")
    gpus.start()
    until(lambda: len(kubelet.offered()) >= len(WHOLE), LIMIT_SECONDS)
    until(lambda: read(kubelet) == before, LIMIT_SECONDS)
