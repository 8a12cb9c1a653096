"""How many GPUs a pod asks for, by the rule that the scheduler uses."""

from collections.abc import Iterable

from exporter.cluster.kubernetes import quantity
from exporter.cluster.kubernetes.records import Amounts
from exporter.cluster.kubernetes.wire import Container
from exporter.gpu_names import GpuResources

Counts = dict[str, int]


def pod_requests(containers: Iterable[Container], init: Iterable[Container], gpus: GpuResources) -> Amounts:
    """Devices by resource, the resources without any left out.

    Containers run together and add up. So do sidecars, the init containers that are always restarted. Any other
    init container runs alone beside the sidecars started before it, so the pod needs the larger of the two.
    Pod-level resources never speak of GPUs. Raises ValueError when a quantity cannot be read.
    """
    sidecars: Counts = {}
    peak: Counts = {}
    for container in init:
        own = _asked(container, gpus)
        if container.restart_policy == "Always":
            sidecars = _sum(sidecars, own)
        else:
            peak = _larger(peak, _sum(sidecars, own))
    together = sidecars
    for container in containers:
        together = _sum(together, _asked(container, gpus))
    return tuple(sorted((name, count) for name, count in _larger(peak, together).items() if count))


def _asked(container: Container, gpus: GpuResources) -> Counts:
    """One container's GPUs; limits stand in for requests, which for GPUs are always equal."""
    resources = container.resources
    if resources is None:
        return {}
    asked = {**(resources.limits or {}), **(resources.requests or {})}
    return {name: quantity.devices(value) for name, value in asked.items() if name in gpus}


def _sum(one: Counts, other: Counts) -> Counts:
    if not other:
        return one
    return {name: one.get(name, 0) + other.get(name, 0) for name in one.keys() | other.keys()}


def _larger(one: Counts, other: Counts) -> Counts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in one.keys() | other.keys()}
