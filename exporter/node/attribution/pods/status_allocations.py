"""Allocations as statuses of pods name them, from Kubernetes 1.36 on, for while the kubelet's list is unknown. No I/O.

The kubelet writes these statuses. They lag behind and do not have devices of ResourceClaims, so a device that they do
not name may be allocated all the same.
"""

from collections.abc import Iterable

from exporter.gpu_names import WHOLE_GPU
from exporter.node.attribution.allocation import OTHERS_UNKNOWN, Allocation, Allocations
from exporter.node.pods.pod import NodePod


def status_allocations(pods: Iterable[NodePod]) -> Allocations | None:
    """Return what the statuses of pods that have not finished name; None where they name nothing."""
    found = {
        Allocation(pod.namespace, pod.name, container.name, resource, device_id, pod.uid)
        for pod in pods
        if not pod.finished
        for container in pod.containers
        for resource, device_id in container.device_ids
    }
    if not found:
        return None
    return tuple(sorted((*found, Allocation("", "", "", WHOLE_GPU, OTHERS_UNKNOWN))))
