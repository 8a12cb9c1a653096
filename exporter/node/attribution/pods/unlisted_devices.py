"""Devices that the kubelet gave to containers and does not list: those that only an init container has. No I/O.

The kubelet gives an ordinary container the devices of the init containers before it, and lists them there. Where no
ordinary container asks for as many, the others stay allocated for as long as the pod exists, and nothing lists them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from exporter.node.attribution.allocation import UNLISTED, Allocation
from exporter.node.pods.pod import ContainerKind, NodeContainer, NodePod


def unlisted(allocations: Iterable[Allocation], pods: Iterable[NodePod]) -> Iterator[Allocation]:
    """Yield an allocation for each such device: with its id where the pod's status has it, else with none."""
    with_init = [pod for pod in pods if not pod.finished and any(map(_asks_at_its_start, pod.containers))]
    listed = Counter((each.namespace, each.pod, each.resource) for each in allocations) if with_init else Counter()
    for pod in with_init:
        init = [each for each in pod.containers if each.kind is ContainerKind.INIT]
        rest = [each for each in pod.containers if each.kind is not ContainerKind.INIT]
        for resource in {name for container in init for name in container.requests}:
            most = max(init, key=lambda container: container.requests.get(resource, 0))
            others = sum(each.requests.get(resource, 0) for each in rest)
            known = max(listed[pod.namespace, pod.name, resource], others)
            yield from _of_container(pod, most, resource, most.requests[resource] - known)


def _asks_at_its_start(container: NodeContainer) -> bool:
    return container.kind is ContainerKind.INIT and bool(container.requests)


def _of_container(pod: NodePod, container: NodeContainer, resource: str, missing: int) -> Iterator[Allocation]:
    ids = [id_ for name, id_ in container.device_ids if name == resource]
    if missing <= 0:
        return
    numbers = [f"{UNLISTED}{pod.uid}/{number}" for number in range(missing - len(ids))]
    for device_id in (*ids, *numbers):
        yield Allocation(pod.namespace, pod.name, container.name, resource, device_id, pod.uid)
