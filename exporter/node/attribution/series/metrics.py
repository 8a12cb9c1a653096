"""Makes metric families from an `Attribution` (which devices are allocated to which containers), and caches both.

No I/O. The families: allocations, replicas, allocated pods, device ids that match no device, and devices whose
allocations contradict each other.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from exporter.identity_labels import CONTAINER, WORKLOAD, container_labels, workload_labels
from exporter.metric import Family, Kind, Metric, Sample, metric
from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.matching.attribute import Attribution, PodContainer, attribute
from exporter.node.attribution.matching.rules import DEFAULT_RULES, AttributionRules, ReplicaSharing
from exporter.node.devices.entities.device import Device
from exporter.node.devices.series.labels import INSTANCE_IDS, instance_ids
from exporter.node.dra.knowledge import NO_KNOWLEDGE, DraKnowledge
from exporter.node.pods.pod import NodePods

_OPTIONAL = (*INSTANCE_IDS, "gpu_pod_uid", "node")

INFO = metric(
    "gpugauge_allocation_info",
    Kind.GAUGE,
    "Constant 1; one per device and container that the device is allocated to, alone or shared.",
    "gpu",
    "UUID",
    *INSTANCE_IDS,
    "GPU_I_PROFILE",
    *CONTAINER,
    "resource",
    "sharing",
    *WORKLOAD,
    "node",
    optional=(*_OPTIONAL, "GPU_I_PROFILE", *WORKLOAD),
)
REPLICAS = metric(
    "gpugauge_allocation_replicas",
    Kind.GAUGE,
    "Replicas of a shared device that are allocated to a container. A replica is no fixed part of the device.",
    "UUID",
    *INSTANCE_IDS,
    *CONTAINER,
    "node",
    optional=_OPTIONAL,
)
ALLOCATED_PODS = metric(
    "gpugauge_device_allocated_pods",
    Kind.GAUGE,
    "Pods that a device is allocated to; 0 when the kubelet lists no container for it (it lists no init container but "
    "sidecars), absent where that is not known.",
    "gpu",
    "UUID",
    *INSTANCE_IDS,
    "node",
    optional=(*INSTANCE_IDS, "node"),
)
UNMATCHED = metric(
    "gpugauge_unmatched_device_ids",
    Kind.GAUGE,
    "Device ids that the kubelet lists and that match no device; devices of init containers count too, without an id.",
    "resource",
    "reason",
    "node",
    optional=("node",),
)
CONFLICTING = metric(
    "gpugauge_devices_with_conflicting_allocations",
    Kind.GAUGE,
    "Devices whose allocations contradict each other: several pods have one that is not shared (older kubelets list "
    "finished pods too), or some have all of it and others a share. Absent where there is none.",
    "node",
    optional=("node",),
)

METRICS = (INFO, REPLICAS, ALLOCATED_PODS, UNMATCHED, CONFLICTING)


def allocation_families(attribution: Attribution, node: str, pods: NodePods | None = None) -> tuple[Family, ...]:
    """Make the families that have a sample. `node` is the node's name; empty when it is not known.

    `pods` are those of this node, for the workloads that they belong to; None where these are not known.
    """
    samples: tuple[tuple[Metric, Iterator[Sample]], ...] = (
        (INFO, _info(attribution, node, pods or ())),
        (REPLICAS, _replicas(attribution, node)),
        (ALLOCATED_PODS, _allocated_pods(attribution, node)),
        (UNMATCHED, _unmatched(attribution, node)),
        (CONFLICTING, _conflicting(attribution, node)),
    )
    families = (Family(metric, list(found)) for metric, found in samples)
    return tuple(family for family in families if family.samples)


@dataclass(slots=True)
class AttributionCache:
    """Keeps the last attribution and its families, and makes them again only when devices or allocations change.

    In most collections neither has changed; then the objects of the collection before are returned, labels included.
    Not thread-safe.
    """

    node: str
    rules: AttributionRules = DEFAULT_RULES
    _inputs: tuple[object, ...] | None = None
    _results: tuple[Attribution, tuple[Family, ...]] | None = None

    def share_replicas(self, replicas: ReplicaSharing) -> None:
        """Say how the device plugin shares a GPU between replicas from now on."""
        if replicas != self.rules.replicas:
            self.rules, self._results = replace(self.rules, replicas=replicas), None

    def get(
        self,
        inventory: tuple[Device, ...],
        allocations: Allocations | None,
        down: tuple[str, ...] = (),
        pods: NodePods | None = None,
        dra: DraKnowledge = NO_KNOWLEDGE,
    ) -> tuple[Attribution, tuple[Family, ...]]:
        """Return what `attribute` and `allocation_families` give for these devices, allocations, pods and claims."""
        inputs = inventory, allocations, down, pods, dra
        if self._results is None or self._inputs != inputs:
            attribution = attribute(inventory, allocations, self.rules, down, dra)
            self._results = attribution, allocation_families(attribution, self.node, pods)
            self._inputs = inputs
        return self._results


def _container(container: PodContainer) -> dict[str, str]:
    return container_labels(container.namespace, container.pod, container.name, container.pod_uid)


def _info(attribution: Attribution, node: str, pods: NodePods) -> Iterator[Sample]:
    workloads = {(pod.namespace, pod.name): workload_labels(pod.workload, pod.workload_type) for pod in pods}
    for allocation in attribution.allocations:
        device = attribution.inventory[allocation.device]
        yield INFO.sample(
            1,
            gpu=str(device.index),
            UUID=device.uuid,
            **instance_ids(device),
            GPU_I_PROFILE=device.profile,
            **_container(allocation.container),
            resource=allocation.resource,
            sharing=allocation.sharing,
            **workloads.get((allocation.container.namespace, allocation.container.pod), {}),
            node=node,
        )


def _replicas(attribution: Attribution, node: str) -> Iterator[Sample]:
    """One sample per device and container: replicas given through several resources add up."""
    totals: dict[tuple[int, PodContainer], int] = {}
    for allocation in attribution.allocations:
        key = allocation.device, allocation.container
        totals[key] = totals.get(key, 0) + allocation.replicas
    for (position, container), replicas in totals.items():
        device = attribution.inventory[position]
        if replicas:
            labels = {"UUID": device.uuid, **instance_ids(device), **_container(container)}
            yield REPLICAS.sample(replicas, **labels, node=node)


def _allocated_pods(attribution: Attribution, node: str) -> Iterator[Sample]:
    for device, state in zip(attribution.inventory, attribution.states, strict=True):
        if state.pods is not None:
            labels = {"gpu": str(device.index), "UUID": device.uuid, **instance_ids(device)}
            yield ALLOCATED_PODS.sample(state.pods, **labels, node=node)


def _unmatched(attribution: Attribution, node: str) -> Iterator[Sample]:
    for resource, reason, count in attribution.unmatched:
        yield UNMATCHED.sample(count, resource=resource, reason=reason, node=node)


def _conflicting(attribution: Attribution, node: str) -> Iterator[Sample]:
    if count := sum(state.sharing == "unknown" for state in attribution.states):
        yield CONFLICTING.sample(count, node=node)
