"""Makes the labels of DCGM-named series: the device, and the container that it is allocated to. No I/O.

In: a device, its container, and the values of the counters file's rows of type label. Out: one `Labels` object per
device, which is reused until one of these changes, so that a collection formats only values. Also the home of the
label names of MIG devices.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from exporter.metric import LabelPairs, Labels, LabelSchema, labels_of_pairs
from exporter.node.devices.entities.device import Device

INSTANCE_IDS = ("GPU_I_ID", "GPU_CI_ID")
"""Labels with the ids of a MIG device: of its GPU instance, and of its compute instance where several share that."""
MIG_LABELS = ("GPU_I_PROFILE", *INSTANCE_IDS)


class ExclusiveContainer(NamedTuple):
    """The container that alone was given a device.

    All texts are empty on an unallocated or shared device and while the allocation is unknown.
    """

    namespace: str = ""
    pod: str = ""
    container: str = ""


NO_CONTAINER = ExclusiveContainer()


@dataclass(frozen=True, slots=True)
class LabelStyle:
    """Options of DCGM-named series, those of dcgm-exporter and our own: names of labels, and on which devices."""

    hostname: str
    hostname_label: Literal["hostname", "Hostname", "both", "none"] = "hostname"
    old_namespace: bool = False
    """Use `uuid`, `pod_name`, `pod_namespace`, `container_name`, as dcgm-exporter 1.x did."""
    allocation_labels: bool = True
    """Whether `namespace`, `pod`, `container` are written at all.

    They are written even when empty: with `honor_labels: true` Prometheus would otherwise add the target's own.
    """
    replace_blanks_in_model: bool = False
    repeat_on_instances: bool = False
    """Whether the quantities of a MIG-enabled GPU are series of each of its GPU instances and not of the GPU."""


@lru_cache(maxsize=16)
def device_schema(style: LabelStyle, label_rows: tuple[str, ...]) -> LabelSchema:
    """The label names of DCGM-named metrics; `label_rows` are the names of the counters file's rows of type label."""
    names = (
        "gpu",
        "uuid" if style.old_namespace else "UUID",
        "pci_bus_id",
        "device",
        "modelName",
        *MIG_LABELS,
        *hostname_names(style),
        *label_rows,
        *allocation_names(style),
    )
    return LabelSchema(names, frozenset({*MIG_LABELS, *label_rows}))


def model_name(device: Device, style: LabelStyle) -> str:
    """The product name as it is written in the label `modelName`."""
    return re.sub(r"\s+", "-", device.model) if style.replace_blanks_in_model else device.model


def device_name(device: Device) -> str:
    """The name of the device file, such as `nvidia3`; empty where the minor number is unknown: no index gives it."""
    return f"nvidia{device.minor}" if device.minor >= 0 else ""


def instance_ids(device: Device) -> dict[str, str]:
    """The labels `GPU_I_ID` and `GPU_CI_ID`, as far as the device has these ids."""
    ids = zip(INSTANCE_IDS, (device.gi, device.ci), strict=True)
    return {name: str(number) for name, number in ids if number >= 0}


def instance_labels(device: Device) -> dict[str, str]:
    """The labels of a MIG device: its profile and its ids. Empty on a GPU."""
    return {"GPU_I_PROFILE": device.profile, **instance_ids(device)} if device.gi >= 0 else {}


def hostname_names(style: LabelStyle) -> tuple[str, ...]:
    """The names of the labels that have the host name."""
    return {"both": ("hostname", "Hostname"), "none": ()}.get(style.hostname_label, (style.hostname_label,))


def allocation_names(style: LabelStyle) -> tuple[str, ...]:
    """The names of the labels of the container that a device is allocated to, in the order of ExclusiveContainer."""
    if not style.allocation_labels:
        return ()
    return ("pod_namespace", "pod_name", "container_name") if style.old_namespace else ExclusiveContainer._fields


class DeviceLabelCache:
    """Makes the labels of every device and keeps those of the last collection; equal inputs give the same objects."""

    def __init__(self, style: LabelStyle, schema: LabelSchema) -> None:
        """`schema` is the one that `device_schema` gives for this style."""
        self._style = style
        self._schema = schema
        self._keys: list[tuple[Device, ExclusiveContainer, LabelPairs]] = []
        self._labels: list[Labels] = []

    def labels(
        self, inventory: Sequence[Device], containers: Sequence[ExclusiveContainer], rows: Sequence[LabelPairs]
    ) -> list[Labels]:
        """Return one `Labels` per device of the inventory; `rows` are the values of the label rows, per device."""
        keys = list(zip(inventory, containers, rows, strict=True))
        if keys != self._keys:
            known = dict(zip(self._keys, self._labels, strict=True))
            self._labels = [known.get(key) or self._make(*key) for key in keys]
            self._keys = keys
        return self._labels

    def _make(self, device: Device, container: ExclusiveContainer, rows: LabelPairs) -> Labels:
        style = self._style
        pairs = (
            ("gpu", str(device.index)),
            ("uuid" if style.old_namespace else "UUID", device.uuid),
            ("pci_bus_id", device.pci_bus_id),
            ("device", device_name(device)),
            ("modelName", model_name(device, style)),
            *instance_labels(device).items(),
            *((name, style.hostname) for name in hostname_names(style)),
            *rows,
            *zip(allocation_names(style), container, strict=False),
        )
        return labels_of_pairs(self._schema, pairs)
