"""Computes how many GPUs a pod requests, by the rule of the scheduler. No I/O, no state."""

import re
from collections.abc import Callable, Iterable, Mapping

from exporter.cluster.kubernetes.objects import quantity
from exporter.cluster.kubernetes.objects.records import Amounts
from exporter.cluster.kubernetes.objects.wire import WireContainer
from exporter.gpu_names import GPU_FRACTION, GpuResources, share_of

DeviceCounts = dict[str, int]
"""Devices by resource name."""


Count = Callable[[str], str | None]
"""Returns the name under which a resource counts, None for a resource that does not count."""

_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""A resource of this prefix asks for devices of a DeviceClass (Kubernetes 1.34)."""
_FRACTIONS = ("gpu-fraction", "gpu-memory")
"""Annotations with which a pod asks KAI or Run:ai for a part of a GPU."""
_FRACTION_DEVICES = "gpu-fraction-num-devices"
_COUNT = re.compile(r"0{0,9}[1-9]\d{0,3}", re.ASCII)
"""More than 9,999 GPUs in one pod are no number of devices: an annotation may have any digits."""


def pod_requests(containers: Iterable[WireContainer], init: Iterable[WireContainer], gpus: GpuResources) -> Amounts:
    """Return the devices that a pod requests by resource name, leaving out zero amounts.

    Who requests only memory or cores of a virtual GPU gets one: the scheduler's webhook adds it. Raises ValueError
    when a quantity cannot be read.
    """
    every = (tuple(containers), tuple(init))
    found = _requests(*every, lambda name: name if name in gpus else None)
    if found:
        return found
    return tuple((name, 1) for name, _ in _requests(*every, share_of))


def class_requests(containers: Iterable[WireContainer], init: Iterable[WireContainer]) -> Amounts:
    """Return the devices that a pod requests by the names of DeviceClasses. Raises ValueError."""

    def device_class(name: str) -> str | None:
        return name.removeprefix(_CLASS_PREFIX) if name.startswith(_CLASS_PREFIX) else None

    return _requests(containers, init, device_class)


def fraction(annotations: Mapping[str, str | None]) -> Amounts:
    """Return the parts of GPUs that a pod asks a fractional scheduler for; their size does not count."""
    if not any(annotations.get(key) for key in _FRACTIONS):
        return ()
    devices = annotations.get(_FRACTION_DEVICES) or ""
    return ((GPU_FRACTION, int(devices) if _COUNT.fullmatch(devices) else 1),)


def _requests(containers: Iterable[WireContainer], init: Iterable[WireContainer], count: Count) -> Amounts:
    """Return what a pod requests of the resources that count, leaving out zero amounts.

    Containers run together, so their requests add up. So do those of sidecars: init containers with restartPolicy
    Always. Every other init container runs alone beside the sidecars started before it. So the pod requests the larger
    of two sums: the largest of an init container with its sidecars, and all containers with all sidecars. Pod-level
    resources are ignored: Kubernetes allows them for CPU, memory and hugepages only.
    """
    sidecars: DeviceCounts = {}
    peak: DeviceCounts = {}
    for container in init:
        own = _container_requests(container, count)
        if container.restart_policy == "Always":
            sidecars = _sum(sidecars, own)
        else:
            peak = _larger(peak, _sum(sidecars, own))
    together = sidecars
    for container in containers:
        together = _sum(together, _container_requests(container, count))
    return tuple(sorted((name, amount) for name, amount in _larger(peak, together).items() if amount))


def _container_requests(container: WireContainer, count: Count) -> DeviceCounts:
    """Return what one container requests. Without a request its limit counts: for GPUs both are always equal."""
    resources = container.resources
    if resources is None:
        return {}
    amounts = {**(resources.limits or {}), **(resources.requests or {})}
    found: DeviceCounts = {}
    for name, value in amounts.items():
        counted = count(name)
        if counted is not None:
            found[counted] = max(found.get(counted, 0), quantity.devices(value))
    return found


def _sum(one: DeviceCounts, other: DeviceCounts) -> DeviceCounts:
    if not other:
        return one
    return {name: one.get(name, 0) + other.get(name, 0) for name in one.keys() | other.keys()}


def _larger(one: DeviceCounts, other: DeviceCounts) -> DeviceCounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in one.keys() | other.keys()}
