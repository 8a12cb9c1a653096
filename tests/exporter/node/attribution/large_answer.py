"""An answer of the kubelet that is nearly as large as one may be."""

import itertools

from exporter.node.attribution.kubelet.reason import ANSWER_BYTES
from exporter.node.attribution.kubelet_api.podresources_pb2 import (
    ContainerDevices,
    ContainerResources,
    ListPodResourcesResponse,
    PodResources,
)
from tests.exporter.node.attribution.node_devices import GPU

DEVICES_PER_POD = 256


def pod(number, resource):
    """A pod with many devices of this resource, each with an id of its own."""
    ids = [f"{resource}-{number:06d}-{n:020d}" for n in range(DEVICES_PER_POD)]
    devices = [ContainerDevices(resource_name=resource, device_ids=[each]).SerializeToString() for each in ids]
    return PodResources(name=f"pod-{number:06d}", containers=[ContainerResources(name="main", devices=devices)])


def large_answer(gpus):
    """Nearly 16 MiB: pods with so many GPUs, or as many as there is room for, then pods with other devices."""
    pods = (pod(n, GPU if n * DEVICES_PER_POD < gpus else "example.com/fuse") for n in itertools.count())
    response, size = ListPodResourcesResponse(), 0
    while (size := size + (more := next(pods)).ByteSize() + 8) < ANSWER_BYTES:
        response.pod_resources.append(more)
    return response
