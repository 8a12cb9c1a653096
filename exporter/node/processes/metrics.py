"""Makes the metric families of what pods use of devices, as their processes show it. No I/O, no state."""

from collections.abc import Iterator

from exporter.identity_labels import CONTAINER, container_labels
from exporter.metric import Family, Kind, Metric, Sample, metric
from exporter.node.devices.entities.device import Device
from exporter.node.devices.series.labels import INSTANCE_IDS, instance_ids
from exporter.node.processes.use import DeviceUses, PodUse

_LABELS = ("UUID", *INSTANCE_IDS, *CONTAINER, "node")
_OPTIONAL = (*INSTANCE_IDS, "gpu_pod_uid", "node")

MEMORY = metric(
    "gpugauge_pod_gpu_memory_used_bytes",
    Kind.GAUGE,
    "Framebuffer that the processes of a container use on a device; absent where it is not known.",
    *_LABELS,
    optional=_OPTIONAL,
)
SM = metric(
    "gpugauge_pod_gpu_sm_utilization_ratio",
    Kind.GAUGE,
    "Share of the time since the collection before in which a multiprocessor ran a kernel of the processes of a "
    "container: an estimate from the driver's samples. Absent under MIG and MPS, where it is not measured.",
    *_LABELS,
    optional=_OPTIONAL,
)
UNALLOCATED = metric(
    "gpugauge_pod_gpu_unallocated_use",
    Kind.GAUGE,
    "Constant 1 while a pod has a process on a device that the kubelet does not list for it (it lists no init "
    "container but sidecars); absent where the allocation is not known.",
    *_LABELS,
    optional=_OPTIONAL,
)
UNATTRIBUTED = metric(
    "gpugauge_device_unattributed_memory_used_bytes",
    Kind.GAUGE,
    "Framebuffer that processes outside of pods use on a device; absent where there are none or it is not known.",
    "UUID",
    *INSTANCE_IDS,
    "node",
    optional=(*INSTANCE_IDS, "node"),
)
METRICS = (MEMORY, SM, UNALLOCATED, UNATTRIBUTED)


def process_families(uses: DeviceUses, inventory: tuple[Device, ...], node: str) -> tuple[Family, ...]:
    """Make the families that have a sample. `node` is the node's name; empty when it is not known."""
    families = (
        Family(
            MEMORY, [_of_pod(MEMORY, use.memory, use, inventory, node) for use in uses.pods if use.memory is not None]
        ),
        Family(SM, [_of_pod(SM, use.sm, use, inventory, node) for use in uses.pods if use.sm is not None]),
        Family(UNALLOCATED, [_of_pod(UNALLOCATED, 1, use, inventory, node) for use in uses.pods if use.unallocated]),
        Family(UNATTRIBUTED, list(_unattributed(uses, inventory, node))),
    )
    return tuple(family for family in families if family.samples)


def _of_pod(kind: Metric, value: float, use: PodUse, inventory: tuple[Device, ...], node: str) -> Sample:
    device, (namespace, pod, name, uid) = inventory[use.device], use.container
    identity = container_labels(namespace, pod, name, uid)
    return kind.sample(value, UUID=device.uuid, **instance_ids(device), **identity, node=node)


def _unattributed(uses: DeviceUses, inventory: tuple[Device, ...], node: str) -> Iterator[Sample]:
    for position, memory in sorted(uses.unattributed.items()):
        device = inventory[position]
        yield UNATTRIBUTED.sample(memory, UUID=device.uuid, **instance_ids(device), node=node)
