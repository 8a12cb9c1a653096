"""The settings of attribution."""

from dataclasses import dataclass, field
from typing import Literal

from exporter.gpu_names import MONITORING_NAMESPACES, RESERVATION_NAMESPACES, GpuResources, ResourcePatterns

ReplicaSharing = Literal["time-slicing", "mps"]


@dataclass(frozen=True, slots=True)
class AttributionRules:
    """Settings of attribution: what cannot be read from the node."""

    gpus: GpuResources = field(default_factory=GpuResources)
    """Which resource names mean GPUs."""
    replicas: ReplicaSharing = "time-slicing"
    """How the device plugin shares a GPU between replicas: device ids do not show it."""
    indexed: ResourcePatterns = field(default_factory=ResourcePatterns)
    """The resources whose device ids are indices of NVML."""
    reservation_namespaces: frozenset[str] = frozenset(RESERVATION_NAMESPACES)
    """Where reservation pods of schedulers are, which give out parts of the GPUs that these occupy."""
    monitoring_namespaces: frozenset[str] = frozenset(MONITORING_NAMESPACES)
    """Where claims are not read, the namespaces whose claims are for monitoring alone (admin access)."""


DEFAULT_RULES = AttributionRules()
