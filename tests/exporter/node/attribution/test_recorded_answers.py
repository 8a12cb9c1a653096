"""What a real kubelet listed, replayed by the simulated one: recorded by tests/e2e/test_real_kubelet.py."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from google.protobuf import text_format

from exporter.node.attribution.allocation import LastKnownAllocations
from exporter.node.attribution.kubelet.client import Kubelet
from exporter.node.attribution.kubelet_api.podresources_pb2 import ListPodResourcesResponse
from exporter.node.attribution.matching.attribute import attribute
from exporter.source import SourceError
from simulators.kubelet import ListBehavior, SimulatedKubelet
from tests.exporter.node.attribution.node_devices import GPU, allocations_of, gpu, state_of

RECORDED = Path(__file__).parent / "recorded"
GPUS = tuple(gpu(f"GPU-{number}f9bdf1c-2d0a-4c1e-9d34-0a1b2c3d4e5f", number) for number in range(9))
SHARED = GPUS[8]
EXCLUSIVE = {("train-node-1", "main"), ("train-node-1", "side"), ("proxied-node-1", "proxy")}


def recorded(name):
    text = (RECORDED / f"{name}.txtpb").read_text()
    return text_format.Parse(text, ListPodResourcesResponse())


@pytest.fixture
def replayed():
    """Reads an answer of this name, from one kubelet after another at the same socket."""
    with tempfile.TemporaryDirectory(prefix="kubelet-") as folder:
        path = Path(folder) / "kubelet.sock"
        with SimulatedKubelet(path, list) as server:
            kubelet = Kubelet(path)

            def read(name):
                server.behavior = ListBehavior(response=recorded(name))
                return kubelet.read()

            yield read
            kubelet.close()


def test_each_container_has_its_devices_and_an_entry_for_each_numa_node_is_one_device(replayed):
    allocations = replayed("running")
    assert Counter((each.pod, each.container, each.resource) for each in allocations) == {
        **{(pod, container, GPU): 1 for pod, container in EXCLUSIVE},
        ("infer-a-node-1", "main", "nvidia.com/gpu.shared"): 1,
        ("infer-b-node-1", "main", "nvidia.com/gpu.shared"): 2,
    }


def test_finished_pods_and_the_devices_of_init_containers_are_unallocated(replayed):
    found = attribute(GPUS, replayed("running"))
    states = [state_of(each, found) for each in GPUS[:8]]
    assert {(s.container.pod, s.container.container) for s in states if s.pods} == EXCLUSIVE
    assert [state.pods for state in states].count(0) == 5
    assert allocations_of(SHARED, found) == {
        ("infer-a-node-1", "main", "time-slicing", 1),
        ("infer-b-node-1", "main", "time-slicing", 2),
    }
    assert found.unmatched == ()


def test_the_first_list_after_a_restart_is_empty_and_costs_no_allocation(replayed):
    last_known = LastKnownAllocations()
    before = last_known.latest(replayed("running"))
    assert list(recorded("first-after-restart").pod_resources) == []
    with pytest.raises(SourceError) as caught:
        replayed("first-after-restart")
    assert caught.value.reason == "starting"
    assert last_known.latest(None) == before
