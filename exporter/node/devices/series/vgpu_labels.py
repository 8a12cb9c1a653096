"""Makes the labels of the DCGM-named series of vGPUs: the vGPU, and the GPU that it is on. No I/O.

The labels of a container are written empty: a vGPU belongs to a virtual machine, and with `honor_labels: true`
Prometheus would otherwise add the pod of the exporter.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from exporter.metric import LabelPairs, Labels, LabelSchema, labels_of_pairs
from exporter.node.devices.counters.counters_file import Counters
from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.vgpu import Vgpu
from exporter.node.devices.series.labels import (
    NO_CONTAINER,
    LabelStyle,
    allocation_names,
    device_name,
    hostname_names,
    model_name,
)
from exporter.node.devices.series.metrics import SamplesByField

VgpuKey = tuple[Vgpu, Device, LabelPairs]
"""What the labels of a vGPU depend on: itself, its GPU, and the label rows of both."""


@lru_cache(maxsize=16)
def vgpu_schema(style: LabelStyle, label_rows: tuple[str, ...]) -> LabelSchema:
    """The label names of the metrics of vGPUs; `label_rows` are the names of the rows of type label."""
    names = (
        *("vgpu", "vgpu_uuid", "gpu", "uuid" if style.old_namespace else "UUID", "pci_bus_id", "device", "modelName"),
        *hostname_names(style),
        *label_rows,
        *allocation_names(style),
    )
    return LabelSchema(names, frozenset({"vgpu_uuid", *label_rows}))


def vgpu_label_rows(counters: Counters, vgpus: Sequence[Vgpu], by_field: SamplesByField) -> list[LabelPairs]:
    """Return, per vGPU, name and value of each row of type label that is a field of vGPUs, where it has a value."""
    pairs: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for row in (row for row in counters.label_rows if row.field.scope == "vgpu"):
        for positions, column in by_field.get(row.field.id, ()):
            for position, value in zip(positions, column, strict=True):
                pairs[position] += [(row.name, str(value))] if value is not None else []
    return [tuple(pairs[position]) for position in range(len(vgpus))]


class VgpuLabelCache:
    """Makes the labels of every vGPU and keeps those of the last collection; equal inputs give the same objects."""

    def __init__(self, style: LabelStyle, schema: LabelSchema) -> None:
        """`schema` is the one that `vgpu_schema` gives for this style."""
        self._style, self._schema = style, schema
        self._known: dict[VgpuKey, Labels] = {}

    def labels(
        self,
        vgpus: Sequence[Vgpu],
        inventory: Sequence[Device],
        rows_of_devices: Sequence[LabelPairs],
        rows: Sequence[LabelPairs],
    ) -> list[Labels]:
        """Return one `Labels` per vGPU, with the values of its own label rows and those of its GPU."""
        keys = [
            (vgpu, inventory[vgpu.gpu], (*rows_of_devices[vgpu.gpu], *own))
            for vgpu, own in zip(vgpus, rows, strict=True)
        ]
        self._known = {key: self._known.get(key) or self._make(*key) for key in keys}
        return [self._known[key] for key in keys]

    def _make(self, vgpu: Vgpu, gpu: Device, rows: LabelPairs) -> Labels:
        style = self._style
        pairs = (
            ("vgpu", str(vgpu.number)),
            *((("vgpu_uuid", vgpu.uuid),) if vgpu.uuid else ()),
            ("gpu", str(gpu.index)),
            ("uuid" if style.old_namespace else "UUID", gpu.uuid),
            ("pci_bus_id", gpu.pci_bus_id),
            ("device", device_name(gpu)),
            ("modelName", model_name(gpu, style)),
            *((name, style.hostname) for name in hostname_names(style)),
            *rows,
            *zip(allocation_names(style), NO_CONTAINER, strict=False),
        )
        return labels_of_pairs(self._schema, pairs)
