"""Decodes what the kubelet answers: which device of a GPU resource was given to which container, which are offered.

No I/O.
"""

from collections.abc import Iterator

from exporter.gpu_names import GpuResources
from exporter.node.attribution.allocation import Allocation, Allocations, ClaimName
from exporter.node.attribution.kubelet.reason import MAX_ALLOCATIONS, KubeletReason
from exporter.node.attribution.kubelet_api.podresources_pb2 import (
    AllocatableResourcesResponse,
    ContainerDevices,
    ContainerResources,
    DynamicResource,
    ListPodResourcesResponse,
)
from exporter.node.attribution.matching.device_id import names_gpu
from exporter.node.attribution.offer.offer import OfferedIds
from exporter.source import SourceError


def listed_allocations(answer: ListPodResourcesResponse, gpus: GpuResources) -> Allocations:
    """Return the devices and claim allocations of every pod that are GPUs.

    Raises SourceError where there are too many, and google.protobuf.message.DecodeError.
    """
    return _distinct(_allocations(answer, gpus))


def offered_ids(answer: AllocatableResourcesResponse, gpus: GpuResources) -> OfferedIds:
    """Return the ids of GPUs that device plugins offer, those of replicas as their device's.

    Raises SourceError where there are too many, and google.protobuf.message.DecodeError.
    """
    resources = _Resources(gpus)
    ids: set[tuple[str, str]] = set()
    for entry in map(ContainerDevices.FromString, answer.devices):
        if resource := resources[entry.resource_name]:
            ids.update((resource, device_id.partition("::")[0]) for device_id in entry.device_ids)
            if len(ids) > MAX_ALLOCATIONS:
                raise SourceError(
                    KubeletReason.TOO_MANY_ALLOCATIONS, f"the kubelet offers more than {MAX_ALLOCATIONS} GPU devices"
                )
    return frozenset(ids)


def _distinct(found: Iterator[Allocation]) -> Allocations:
    """Sort the allocations and leave out repetitions. Raises SourceError where there are too many.

    A part of them is no answer: the devices of the others would look unallocated.
    """
    distinct: set[Allocation] = set()
    for allocation in found:
        distinct.add(allocation)
        if len(distinct) > MAX_ALLOCATIONS:
            raise SourceError(
                KubeletReason.TOO_MANY_ALLOCATIONS,
                f"the kubelet lists more than {MAX_ALLOCATIONS} allocations of GPU devices",
            )
    return tuple(sorted(distinct))


def _allocations(answer: ListPodResourcesResponse, gpus: GpuResources) -> Iterator[Allocation]:
    """Every allocation, as listed. Allocations have names in common: each access to a field makes a new text."""
    resources = _Resources(gpus)
    for pod in answer.pod_resources:
        namespace, name = pod.namespace, pod.name
        for container in pod.containers:
            if container.devices or container.dynamic_resources:
                container_name = container.name
                for resource, device_id in _devices(container, resources):
                    yield Allocation(namespace, name, container_name, resource, device_id)
                for driver, device_id, claim in _claimed_devices(container, resources):
                    yield Allocation(namespace, name, container_name, driver, device_id, claim=claim)


class _Resources(dict[str, str]):
    """The resources of one answer: each name with itself where it means GPUs, else with an empty text.

    A node lists a thousand devices of few resources: whether a name means GPUs is decided once for each.
    """

    def __init__(self, gpus: GpuResources) -> None:
        self._gpus = gpus

    def __missing__(self, name: str) -> str:
        self[name] = found = name if names_gpu(name, self._gpus) else ""
        return found


def _devices(container: ContainerResources, resources: _Resources) -> Iterator[tuple[str, str]]:
    """Decode one entry after another, so that no more than one of other resources is in memory. Raises DecodeError."""
    for entry in map(ContainerDevices.FromString, container.devices):
        if resource := resources[entry.resource_name]:
            for device_id in entry.device_ids:
                yield resource, device_id


def _claimed_devices(container: ContainerResources, resources: _Resources) -> Iterator[tuple[str, str, ClaimName]]:
    """Driver, device and claim of each device of a ResourceClaim. Raises DecodeError.

    A device is told by driver, pool and name, never by its CDI names: kubelets up to 1.36 at least repeat those of the
    devices before it (source).
    """
    for claim in map(DynamicResource.FromString, container.dynamic_resources):
        for device in claim.claim_resources:
            if driver := resources[device.driver_name]:
                name = ClaimName(claim.claim_namespace, claim.claim_name, device.share_id)
                yield driver, f"{device.pool_name}/{device.device_name}", name
