"""Makes the families of normalized values: of every device, and of the pod that a device is exclusively allocated to.

In: the normalized values of a collection, and the attribution. Out: families in base units, which rules and panels
read. Labels are made once per device and allocation, so that a collection formats only values.
"""

from collections.abc import Iterator, Sequence

from exporter.identity_labels import CONTAINER, container_labels
from exporter.metric import Family, Kind, Labels, LabelSchema, Metric, Sample
from exporter.node.attribution.matching.attribute import Attribution
from exporter.node.devices.computed.device_state import DeviceColumn
from exporter.node.devices.computed.normalized import DeviceValues
from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields.read_plan import Level, device_levels
from exporter.node.devices.series.labels import INSTANCE_IDS, instance_ids

_DEVICE = LabelSchema(("UUID", *INSTANCE_IDS, "node"), frozenset({*INSTANCE_IDS, "node"}))
_GPU = LabelSchema(("UUID", "node"), frozenset({"node"}))
_ALLOCATION = LabelSchema(
    ("UUID", *INSTANCE_IDS, *CONTAINER, "node"), frozenset({*INSTANCE_IDS, "gpu_pod_uid", "node"})
)


def _of_device(quantity: str, about: str) -> Metric:
    return Metric(f"gpugauge_device_{quantity}", Kind.GAUGE, about, _DEVICE)


def _of_gpu(quantity: str, about: str, kind: Kind = Kind.GAUGE) -> Metric:
    return Metric(f"gpugauge_gpu_{quantity}", kind, about, _GPU)


def _of_pod(quantity: str, about: str) -> Metric:
    return Metric(f"gpugauge_allocation_{quantity}", Kind.GAUGE, about, _ALLOCATION)


BUSY = _of_device(
    "busy_ratio",
    "Share of time in which the busier of the compute and video engines of a GPU or MIG device was active, from 0 to "
    "1; absent while compute activity is unknown.",
)
TENSOR = _of_device("tensor_active_ratio", "Share of cycles in which a tensor pipe was active, from 0 to 1.")
DRAM = _of_device("dram_active_ratio", "Share of cycles in which device memory sent or received data, from 0 to 1.")
SM = _of_device(
    "sm_active_ratio",
    "Share of cycles in which a multiprocessor had work, on average over all of them, from 0 to 1; only where the "
    "counters file has DCGM_FI_PROF_SM_ACTIVE.",
)
MEMORY_USED = _of_device("memory_used_bytes", "Framebuffer in use, without what the driver reserves.")
MEMORY_TOTAL = _of_device("memory_total_bytes", "Framebuffer that can be allocated: without what the driver reserves.")
POWER = _of_gpu("power_watts", "Power draw of the GPU.")
POWER_LIMIT = _of_gpu("power_limit_watts", "Power limit of the GPU that is in force.")
ENERGY = _of_gpu("energy_joules_total", "Energy that the GPU has drawn since its driver was loaded.", Kind.COUNTER)
TEMPERATURE = _of_gpu("temperature_celsius", "Temperature of the GPU.")
MEMORY_TEMPERATURE = _of_gpu("memory_temperature_celsius", "Temperature of the memory of the GPU.")
ALLOCATION_BUSY = _of_pod(
    "busy_ratio",
    "gpugauge_device_busy_ratio of a device under the pod that it is exclusively allocated to; none for a shared one.",
)
ALLOCATION_TENSOR = _of_pod("tensor_active_ratio", "gpugauge_device_tensor_active_ratio in the same way.")
ALLOCATION_MEMORY_USED = _of_pod("memory_used_bytes", "gpugauge_device_memory_used_bytes in the same way.")
METRICS = (
    *(BUSY, TENSOR, DRAM, SM, MEMORY_USED, MEMORY_TOTAL),
    *(POWER, POWER_LIMIT, ENERGY, TEMPERATURE, MEMORY_TEMPERATURE),
    *(ALLOCATION_BUSY, ALLOCATION_TENSOR, ALLOCATION_MEMORY_USED),
)


class NormalizedMetrics:
    """Makes the families, and keeps the labels of the last attribution. For use by one thread."""

    def __init__(self, node: str, *, all_of_pods: bool = True) -> None:
        """`node` is the node's name, empty when it is not known.

        Without `all_of_pods`, only the value that rules read is exposed under pods: fewer series change with them.
        """
        self._node, self._all_of_pods = node, all_of_pods
        self._attribution: Attribution | None = None
        self.levels: tuple[Level, ...] = ()
        """Those of the devices of the last attribution that was seen."""
        self._devices: list[Labels] = []
        self._gpus: list[Labels | None] = []
        self._allocations: list[Labels | None] = []
        """By position of the device; None for a MIG device, and where no pod alone has the device."""

    def see(self, attribution: Attribution) -> tuple[Level, ...]:
        """Make the labels of this attribution unless they are made. Returns the levels of its devices."""
        if attribution is not self._attribution:
            self._attribution, self.levels = attribution, device_levels(attribution.inventory)
            self._devices = [self._device(device) for device in attribution.inventory]
            self._gpus = [self._gpu(device) if device.gi < 0 else None for device in attribution.inventory]
            self._allocations = list(self._pods(attribution))
        return self.levels

    def families(self, values: DeviceValues) -> list[Family]:
        """Make the families of the devices of the attribution that was seen last."""
        return [
            Family(BUSY, _samples(self._devices, values.busy_ratio)),
            Family(TENSOR, _samples(self._devices, values.tensor_active_ratio)),
            Family(DRAM, _samples(self._devices, values.dram_active_ratio)),
            Family(SM, _samples(self._devices, values.sm_active_ratio)),
            Family(MEMORY_USED, _samples(self._devices, values.memory_used_bytes)),
            Family(MEMORY_TOTAL, _samples(self._devices, values.memory_total_bytes)),
            Family(POWER, _samples(self._gpus, values.gpu_power_watts)),
            Family(POWER_LIMIT, _samples(self._gpus, values.gpu_power_limit_watts)),
            Family(ENERGY, _samples(self._gpus, values.gpu_energy_joules)),
            Family(TEMPERATURE, _samples(self._gpus, values.gpu_temperature_celsius)),
            Family(MEMORY_TEMPERATURE, _samples(self._gpus, values.gpu_memory_temperature_celsius)),
            Family(ALLOCATION_BUSY, _samples(self._allocations, values.busy_ratio)),
            *(self._others_of_pods(values) if self._all_of_pods else ()),
        ]

    def _others_of_pods(self, values: DeviceValues) -> Iterator[Family]:
        yield Family(ALLOCATION_TENSOR, _samples(self._allocations, values.tensor_active_ratio))
        yield Family(ALLOCATION_MEMORY_USED, _samples(self._allocations, values.memory_used_bytes))

    def _device(self, device: Device) -> Labels:
        return BUSY.labels(UUID=device.uuid, **instance_ids(device), node=self._node)

    def _gpu(self, device: Device) -> Labels:
        return POWER.labels(UUID=device.uuid, node=self._node)

    def _pods(self, attribution: Attribution) -> Iterator[Labels | None]:
        uids = _pod_uids(attribution)
        for device, state in zip(attribution.inventory, attribution.states, strict=True):
            namespace, pod, container = state.container
            if not pod:
                yield None
                continue
            labels = container_labels(namespace, pod, container, uids.get((namespace, pod), ""))
            yield ALLOCATION_BUSY.labels(UUID=device.uuid, **instance_ids(device), **labels, node=self._node)


def _pod_uids(attribution: Attribution) -> dict[tuple[str, str], str]:
    """The uid of each pod, by namespace and name; none where it is not known, or where two pods had the name."""
    found: dict[tuple[str, str], set[str]] = {}
    for allocation in attribution.allocations:
        container = allocation.container
        found.setdefault((container.namespace, container.pod), set()).add(container.pod_uid)
    return {pod: next(iter(uids)) for pod, uids in found.items() if len(uids) == 1}


def _samples(labels: Sequence[Labels | None], column: DeviceColumn) -> list[Sample]:
    """Pair the labels with the values, where there are both."""
    return [
        (label, value) for label, value in zip(labels, column, strict=True) if label is not None and value is not None
    ]
