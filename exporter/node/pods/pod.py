"""The type `NodePod`: what attribution needs to know of a pod beyond what the kubelet's PodResources API lists. No I/O.

Nothing of this exists where pod metadata is off, which is the default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ContainerKind(StrEnum):
    """How the kubelet runs a container."""

    ORDINARY = "ordinary"
    SIDECAR = "sidecar"
    """An init container that stays beside the ordinary ones."""
    INIT = "init"
    """One that must end before the ordinary ones start; the kubelet never lists it."""
    EPHEMERAL = "ephemeral"


@dataclass(frozen=True, slots=True)
class NodeContainer:
    """A container of a pod on this node."""

    name: str
    kind: ContainerKind = ContainerKind.ORDINARY
    id: str = ""
    """64 hexadecimal digits, as in the path of its control group; empty until the container runtime made it."""
    running: bool = False
    requests: Mapping[str, int] = field(default_factory=dict)
    """By name of an extended resource, how many devices it asks for."""
    device_ids: tuple[tuple[str, str], ...] = ()
    """(resource, device id) that the pod's status names, from Kubernetes 1.36 on."""


@dataclass(frozen=True, slots=True)
class NodePod:
    """A pod that is bound to this node."""

    namespace: str
    name: str
    uid: str
    """That of the API; a static pod has another one in the paths of its control groups (`cgroup_uid`)."""
    cgroup_uid: str = ""
    phase: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    workload: str = ""
    workload_type: str = ""
    containers: tuple[NodeContainer, ...] = ()

    @property
    def finished(self) -> bool:
        return self.phase in {"Succeeded", "Failed"}


NodePods = tuple[NodePod, ...]
"""Sorted by namespace and name: equal when nothing changed that attribution needs."""
