"""Computes how many GPUs a pod requests, by the rule of the scheduler. No I/O, no state."""

from collections.abc import Iterable

from exporter.cluster.kubernetes import quantity
from exporter.cluster.kubernetes.records import Amounts
from exporter.cluster.kubernetes.wire import WireContainer
from exporter.gpu_names import GpuResources

DeviceCounts = dict[str, int]
"""Devices by resource name."""


def pod_requests(containers: Iterable[WireContainer], init: Iterable[WireContainer], gpus: GpuResources) -> Amounts:
    """Return the devices that a pod requests by resource name, leaving out zero amounts.

    Containers run together, so their requests add up. So do those of sidecars: init containers with restartPolicy
    Always. Every other init container runs alone beside the sidecars started before it. So the pod requests the larger
    of two sums: the largest of an init container with its sidecars, and all containers with all sidecars. Pod-level
    resources are ignored: Kubernetes allows them for CPU, memory and hugepages only. Raises ValueError when a quantity
    cannot be read.
    """
    sidecars: DeviceCounts = {}
    peak: DeviceCounts = {}
    for container in init:
        own = _container_requests(container, gpus)
        if container.restart_policy == "Always":
            sidecars = _sum(sidecars, own)
        else:
            peak = _larger(peak, _sum(sidecars, own))
    together = sidecars
    for container in containers:
        together = _sum(together, _container_requests(container, gpus))
    return tuple(sorted((name, count) for name, count in _larger(peak, together).items() if count))


def _container_requests(container: WireContainer, gpus: GpuResources) -> DeviceCounts:
    """Return what one container requests. Without a request its limit counts: for GPUs both are always equal."""
    resources = container.resources
    if resources is None:
        return {}
    amounts = {**(resources.limits or {}), **(resources.requests or {})}
    return {name: quantity.devices(value) for name, value in amounts.items() if name in gpus}


def _sum(one: DeviceCounts, other: DeviceCounts) -> DeviceCounts:
    if not other:
        return one
    return {name: one.get(name, 0) + other.get(name, 0) for name in one.keys() | other.keys()}


def _larger(one: DeviceCounts, other: DeviceCounts) -> DeviceCounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in one.keys() | other.keys()}
