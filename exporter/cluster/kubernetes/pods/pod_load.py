"""Computes what a pod takes of a node besides GPUs: CPUs and memory, by the rule of the scheduler. No I/O, no state."""

from collections.abc import Mapping
from functools import lru_cache
from math import ceil

from exporter.cluster.kubernetes.objects import quantity, wire
from exporter.cluster.kubernetes.objects.records import Load

_CPU, _MEMORY = "cpu", "memory"


def load(spec: wire.PodSpec) -> Load:
    """Sum the requests of the pod. A quantity that cannot be read counts nothing: it must not cost the pod.

    Containers and sidecars run together; every other init container runs alone beside the sidecars started before it.
    Requests of the pod as a whole (Kubernetes 1.34) take the place of that sum, and the runtime's overhead adds to it.
    """
    cpu, memory = (_requests(spec, name) for name in (_CPU, _MEMORY))
    return Load(cpu, memory)


def _requests(spec: wire.PodSpec, name: str) -> int:
    whole = spec.resources.requests if spec.resources is not None else None
    if whole and name in whole:
        return _amount(whole, name) + _amount(spec.overhead, name)
    sidecars = peak = 0
    for container in spec.init_containers or ():
        own = _of_container(container, name)
        if container.restart_policy == "Always":
            sidecars += own
        else:
            peak = max(peak, sidecars + own)
    together = sidecars + sum(_of_container(container, name) for container in spec.containers or ())
    return max(peak, together) + _amount(spec.overhead, name)


def _of_container(container: wire.WireContainer, name: str) -> int:
    return _amount(container.resources.requests, name) if container.resources is not None else 0


def _amount(amounts: Mapping[str, str | int | float] | None, name: str) -> int:
    value = (amounts or {}).get(name)
    return 0 if value is None else _parsed(str(value), name)


@lru_cache(maxsize=4096)
def _parsed(text: str, name: str) -> int:
    """Thousandths of a CPU, or bytes. Cached, because most pods ask for the same few amounts."""
    try:
        return max(0, ceil(quantity.amount(text) * (1000 if name == _CPU else 1)))
    except ValueError:
        return 0


def room(allocatable: Mapping[str, str | int | float] | None) -> Load:
    """What a node has for pods; a part that it does not state, or that cannot be read, is 0 and unknown."""
    return Load(_amount(allocatable, _CPU), _amount(allocatable, _MEMORY), _amount(allocatable, "pods"))
