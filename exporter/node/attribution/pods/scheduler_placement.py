"""Which GPUs schedulers gave to pods, where the kubelet's device ids do not say it. No I/O, no state.

HAMi and Volcano state it in an annotation: containers are separated by `;`, the devices of one by `:`, and each device
is `UUID,type,memory,cores`. KAI and Run:ai put the pods that have parts of one GPU, and the pod that occupies it, into
one group, which a label of each names.

A pod's author may write the annotation and the label, so neither counts for more than what the kubelet gave: the
annotation moves the fractions of this pod alone, to as many GPUs as the kubelet listed, and never to one that another
pod has as a whole; the label names this pod alone on a GPU that is shared.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from exporter.gpu_names import VOLCANO
from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.matching.device_id import DeviceTarget, parse, placed_by_scheduler
from exporter.node.pods import scheduler_names
from exporter.node.pods.pod import ContainerKind, NodePod

_DASHES_OF_NUMBERED_UUID = 6
"""As in `GPU-<UUID>-<number>`, which HAMi and Volcano write."""
PodsByName = Mapping[tuple[str, str], NodePod]


def placed(allocations: Sequence[Allocation], pods: PodsByName) -> Sequence[Allocation]:
    """Return the allocations, of which those that a scheduler placed have the GPUs that its annotation names."""
    by_pod: dict[tuple[str, str], list[Allocation]] = {}
    for allocation in filter(_by_scheduler, allocations):
        by_pod.setdefault((allocation.namespace, allocation.pod), []).append(allocation)
    if not by_pod:
        return allocations
    others = [each for each in allocations if not _by_scheduler(each)]
    whole = [((each.namespace, each.pod), parse(each.device_id).target) for each in others]
    found = list(others)
    for name, own in by_pod.items():
        found += _moved(own, pods.get(name), {meant for other, meant in whole if other != name})
    return found


def _by_scheduler(allocation: Allocation) -> bool:
    """Whether a scheduler chose the GPU. A node can have 20,000 allocations, of which most are told by a glance."""
    numbered = allocation.device_id.count("-") == _DASHES_OF_NUMBERED_UUID
    share = parse(allocation.device_id).share if numbered else "exclusive"
    return placed_by_scheduler(allocation.resource, share)


def _moved(own: list[Allocation], pod: NodePod | None, taken: Collection[DeviceTarget]) -> list[Allocation]:
    """The fractions of one pod on the GPUs that its annotation names; as listed where it cannot be used."""
    listed: dict[str, list[Allocation]] = {}
    for allocation in own:
        listed.setdefault(allocation.container, []).append(allocation)
    named = _named(pod, own[0].resource) if pod is not None else {}
    numbers = {container: len(ids) for container, ids in listed.items()}
    if {container: len(uuids) for container, uuids in named.items()} != numbers:
        return own
    moved = [
        allocation._replace(device_id=f"{uuid}-{number}", placed=True)
        for container, uuids in named.items()
        for number, (uuid, allocation) in enumerate(zip(uuids, listed[container], strict=True))
    ]
    meant = [parse(each.device_id) for each in moved]
    if all(each.share == "fraction" and each.target not in taken for each in meant):
        return moved
    return own


def _named(pod: NodePod, resource: str) -> dict[str, list[str]]:
    """UUIDs by container, as the annotation has them; containers without a GPU are left out."""
    text = pod.annotations.get(scheduler_names.VOLCANO if resource == VOLCANO else scheduler_names.HAMI, "")
    entries = text.removesuffix(";").split(";")
    ordinary = [each.name for each in pod.containers if each.kind is ContainerKind.ORDINARY]
    # HAMi writes an entry for every container, those that start before the others first; Volcano for the ordinary ones.
    every = [each.name for each in pod.containers if each.kind is not ContainerKind.EPHEMERAL]
    names = every if len(entries) == len(every) else ordinary
    if len(entries) != len(names):
        return {}
    found = {
        name: [device.partition(",")[0] for device in entry.split(":") if "," in device]
        for name, entry in zip(names, entries, strict=True)
    }
    return {name: uuids for name, uuids in found.items() if uuids}


def users_of_fractions(
    allocations: Iterable[Allocation], pods: PodsByName, reservation_namespaces: Collection[str]
) -> Iterator[Allocation]:
    """Yield the allocations of the pods that have parts of a GPU that a reservation pod occupies."""
    occupied: dict[str, list[Allocation]] = {}
    for allocation in allocations:
        pod = pods.get((allocation.namespace, allocation.pod))
        if pod is not None and allocation.namespace in reservation_namespaces:
            for group in _groups(pod):
                occupied.setdefault(group, []).append(allocation)
    for pod in pods.values():
        if pod.namespace not in reservation_namespaces and _has_parts(pod):
            user = _user(pod)
            for gpu in (each for group in _groups(pod) for each in occupied.get(group, ())):
                yield Allocation(pod.namespace, pod.name, user, gpu.resource, gpu.device_id, pod.uid, placed=True)


def _has_parts(pod: NodePod) -> bool:
    return not pod.finished and not pod.annotations.keys().isdisjoint(scheduler_names.FRACTIONS)


def has_group(pod: NodePod) -> bool:
    """Whether the pod occupies a GPU whose parts are given out, or has one of them."""
    return any(map(scheduler_names.is_group, pod.labels))


def _groups(pod: NodePod) -> set[str]:
    return {value for key, value in pod.labels.items() if value and scheduler_names.is_group(key)}


def _user(pod: NodePod) -> str:
    """The container that has the part of the GPU: the one that an annotation names, else the first ordinary one."""
    names = [each.name for each in pod.containers if each.kind is ContainerKind.ORDINARY]
    named = pod.annotations.get(scheduler_names.FRACTION_CONTAINER, "")
    every = {each.name for each in pod.containers}
    return named if named in every else next(iter(names), "")
