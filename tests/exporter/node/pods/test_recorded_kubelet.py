"""The pods that a real kubelet of Kubernetes 1.37 listed at its HTTPS port: static pods, of which one has finished.

Recorded with a device plugin of the test that offered four GPUs, beside what the kubelet's PodResources socket listed.
"""

from pathlib import Path

from exporter.api_objects.decode import separated
from exporter.gpu_names import GpuResources
from exporter.node.attribution.matching.attribute import attribute
from exporter.node.attribution.pods.joined_allocations import joined
from exporter.node.attribution.pods.status_allocations import status_allocations
from exporter.node.pods.decode import PodDecoder
from exporter.node.pods.options import PodOptions
from tests.exporter.node.attribution.node_devices import GPU, allocated, gpu

RECORDED = Path(__file__).parent / "recorded/kubelet-1.37.json"
GPUS = [f"GPU-{number}f9bdf1c-2d0a-4c1e-9d34-0a1b2c3d4e5f" for number in range(4)]
LISTED = allocated("train-node-1", GPUS[1])


def pods():
    decode = PodDecoder(PodOptions("kubelet"), GpuResources())
    return {pod.name: pod for pod in map(decode, separated(RECORDED.read_bytes()).items)}


def states(allocations):
    found = attribute(tuple(gpu(uuid, index) for index, uuid in enumerate(GPUS)), allocations)
    return [(state.pods, state.container.pod) for state in found.states], found.unmatched


def test_what_is_needed_of_the_pods_is_there():
    found = pods()
    assert {name: pod.phase for name, pod in found.items()} == {
        "done-node-1": "Succeeded",
        "prepared-node-1": "Running",
        "train-node-1": "Running",
    }
    train = found["train-node-1"]
    assert train.uid == train.cgroup_uid == "e25081eeb32822cd7317fb86aafd93a2"
    (container,) = train.containers
    assert (container.running, container.requests, container.device_ids) == (True, {GPU: 1}, ((GPU, GPUS[1]),))
    assert len(container.id) == 64
    assert [(each.name, each.kind, each.running) for each in found["prepared-node-1"].containers] == [
        ("prepare", "init", False),
        ("main", "ordinary", True),
    ]


def test_the_device_of_the_init_container_may_be_any_that_the_kubelet_does_not_list():
    found, unmatched = states(joined(LISTED, tuple(pods().values())))
    assert found == [(None, ""), (1, "train-node-1"), (None, ""), (None, "")]
    assert unmatched == (("nvidia_com_gpu", "init_container", 1),)


def test_the_statuses_alone_name_the_same_and_nothing_of_the_pod_that_has_finished():
    assert states(status_allocations(pods().values()))[0] == [(None, ""), (1, "train-node-1"), (None, ""), (None, "")]
