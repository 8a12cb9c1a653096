"""Makes the labels of the DCGM-named series of NVLinks: the link, its GPU, and the container that has the GPU. No I/O.

The names are those of dcgm-exporter, which spells GPU and model on links otherwise than on GPUs.
"""

from collections.abc import Sequence
from functools import lru_cache

from exporter.metric import LabelPairs, Labels, LabelSchema, labels_of_pairs
from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.link import Link
from exporter.node.devices.series.labels import (
    ExclusiveContainer,
    LabelStyle,
    allocation_names,
    device_name,
    hostname_names,
)

LinkKey = tuple[int, Device, ExclusiveContainer, LabelPairs]
"""What the labels of a link depend on: its number, its GPU, the container and the label rows of that."""


@lru_cache(maxsize=16)
def link_schema(style: LabelStyle, label_rows: tuple[str, ...]) -> LabelSchema:
    """The label names of the metrics of links; `label_rows` are the names of the rows of type label."""
    names = (
        *("nvlink", "gpu", "gpu_uuid", "pci_bus_id", "device", "model_name"),
        *hostname_names(style),
        *label_rows,
        *allocation_names(style),
    )
    return LabelSchema(names, frozenset(label_rows))


class LinkLabelCache:
    """Makes the labels of every link and keeps those of the last collection; equal inputs give the same objects."""

    def __init__(self, style: LabelStyle, schema: LabelSchema) -> None:
        """`schema` is the one that `link_schema` gives for this style."""
        self._style, self._schema = style, schema
        self._known: dict[LinkKey, Labels] = {}

    def labels(
        self,
        links: Sequence[Link],
        inventory: Sequence[Device],
        containers: Sequence[ExclusiveContainer],
        rows: Sequence[LabelPairs],
    ) -> list[Labels]:
        """Return one `Labels` per link. Containers and values of label rows are given per device, and are its GPU's."""
        keys = [(link.number, inventory[link.gpu], containers[link.gpu], rows[link.gpu]) for link in links]
        self._known = {key: self._known.get(key) or self._make(*key) for key in keys}
        return [self._known[key] for key in keys]

    def _make(self, number: int, gpu: Device, container: ExclusiveContainer, rows: LabelPairs) -> Labels:
        pairs = (
            ("nvlink", str(number)),
            ("gpu", str(gpu.index)),
            ("gpu_uuid", gpu.uuid),
            ("pci_bus_id", gpu.pci_bus_id),
            ("device", device_name(gpu)),
            ("model_name", gpu.model),
            *((name, self._style.hostname) for name in hostname_names(self._style)),
            *rows,
            *zip(allocation_names(self._style), container, strict=False),
        )
        return labels_of_pairs(self._schema, pairs)
