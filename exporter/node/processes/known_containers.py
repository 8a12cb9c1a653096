"""The type `KnownContainers`: which containers run on this node, by the ids that control groups have. No I/O.

It is made of pod metadata, or of the kubelet's links to logs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from exporter.node.attribution.matching.attribute import PodContainer
from exporter.node.pods.pod import ContainerKind, NodePods
from exporter.node.processes.cgroup import ContainerPlace, plain_uid


@dataclass(frozen=True, slots=True)
class KnownContainers:
    """The pods and containers of this node."""

    by_uid: Mapping[str, PodContainer]
    """By uid in control groups (`plain_uid`), each pod, without a container."""
    by_place: Mapping[ContainerPlace, PodContainer]
    """By uid and id, each container: an id counts only in its own pod, since a pod's status can state any."""
    containers: frozenset[tuple[str, str, str]]
    """Namespace, pod and name of every container."""
    init: frozenset[PodContainer] = frozenset()
    """Init containers that end before the others start: the kubelet never lists what is allocated to them."""

    @classmethod
    def of_containers(cls, by_id: Mapping[str, PodContainer]) -> Self:
        """Make them of the containers by id, each with the uid of its pod."""
        by_uid = {plain_uid(each.pod_uid): each._replace(name="") for each in by_id.values()}
        by_place = {ContainerPlace(plain_uid(each.pod_uid), id_): each for id_, each in by_id.items()}
        return cls(by_uid, by_place, frozenset(each[:3] for each in by_id.values()))

    @classmethod
    def of_pods(cls, pods: NodePods) -> Self:
        """Make them of pod metadata. The uid of a pod comes before what another one says of its control groups."""
        by_uid = {plain_uid(pod.uid): PodContainer(pod.namespace, pod.name, "", pod.uid) for pod in pods if pod.uid}
        by_place: dict[ContainerPlace, PodContainer] = {}
        names: set[tuple[str, str, str]] = set()
        init: set[PodContainer] = set()
        for pod in pods:
            own = PodContainer(pod.namespace, pod.name, "", pod.uid)
            uids = {plain_uid(uid) for uid in (pod.uid, pod.cgroup_uid) if uid}
            mine = [uid for uid in uids if by_uid.setdefault(uid, own) == own]
            for each in pod.containers:
                container = own._replace(name=each.name)
                names.add(container[:3])
                by_place |= {ContainerPlace(uid, each.id): container for uid in mine if each.id}
                init |= {container} if each.kind is ContainerKind.INIT else set()
        return cls(by_uid, by_place, frozenset(names), frozenset(init))

    def find(self, place: ContainerPlace) -> PodContainer | None:
        """Return the container of a process; without a name where only the pod is known, None for an unknown pod."""
        return self.by_place.get(place) or self.by_uid.get(place.pod_uid)
