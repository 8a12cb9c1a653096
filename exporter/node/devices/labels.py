"""The labels of a device's series: who it is, and who holds it.

Rendered once per device and reused until identity, holder or a label row changes, so that a pass formats
values only.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from exporter.metric import Labels
from exporter.node.devices.readings import Device


class Holder(NamedTuple):
    """The one container that holds a device; empty texts where a device is free, shared, or its holder unknown."""

    namespace: str = ""
    pod: str = ""
    container: str = ""


NOBODY = Holder()


@dataclass(frozen=True, slots=True)
class LabelStyle:
    """The renaming options of dcgm-exporter and ours; they touch DCGM-named series only."""

    hostname: str
    hostname_label: Literal["hostname", "Hostname", "both", "none"] = "hostname"
    old_namespace: bool = False
    """`uuid`, `pod_name`, `pod_namespace`, `container_name` as in the 1.x exporter."""
    holder: bool = True
    """Whether holder labels are written at all; explicitly empty ones keep the target's own labels away."""
    replace_blanks_in_model: bool = False


def model_name(device: Device, style: LabelStyle) -> str:
    """The product name as the `modelName` label wants it."""
    return re.sub(r"\s+", "-", device.model) if style.replace_blanks_in_model else device.model


def canonical_model(model: str) -> str:
    """The model as `gpugauge_device_info` and the watcher spell it: blanks to `-`, no sharing or MIG suffix."""
    joined = re.sub(r"\s+", "-", model.strip())
    return re.sub(r"-(SHARED|MIG-[0-9A-Za-z.+]+)$", "", joined)


def instance_labels(device: Device) -> list[tuple[str, str]]:
    """`GPU_I_PROFILE`, `GPU_I_ID` and `GPU_CI_ID` as far as they apply."""
    pairs: list[tuple[str, str]] = []
    if device.gi >= 0:
        pairs += [("GPU_I_PROFILE", device.profile), ("GPU_I_ID", str(device.gi))]
    if device.ci >= 0:
        pairs.append(("GPU_CI_ID", str(device.ci)))
    return pairs


def _hostname(style: LabelStyle) -> list[tuple[str, str]]:
    names = {"both": ("hostname", "Hostname"), "none": ()}.get(style.hostname_label, (style.hostname_label,))
    return [(name, style.hostname) for name in names]


def _holder(holder: Holder, style: LabelStyle) -> list[tuple[str, str]]:
    if not style.holder:
        return []
    names = ("pod_namespace", "pod_name", "container_name") if style.old_namespace else Holder._fields
    return list(zip(names, holder, strict=True))


def device_labels(device: Device, holder: Holder, rows: Sequence[tuple[str, str]], style: LabelStyle) -> Labels:
    """The labels of every DCGM-named series of one device; `rows` are the label rows of the counters file."""
    minor = str(device.minor) if device.minor >= 0 else str(device.index)
    return Labels(
        (
            ("gpu", str(device.index)),
            ("uuid" if style.old_namespace else "UUID", device.uuid),
            ("pci_bus_id", device.pci_bus_id),
            ("device", f"nvidia{minor}"),
            ("modelName", model_name(device, style)),
            *instance_labels(device),
            *_hostname(style),
            *rows,
            *_holder(holder, style),
        )
    )


class DeviceLabelCache:
    """Remembers the labels of the last pass; equal inputs get the same objects."""

    def __init__(self, style: LabelStyle) -> None:
        self._style = style
        self._keys: list[tuple[Device, Holder, tuple[tuple[str, str], ...]]] = []
        self._labels: list[Labels] = []

    def labels(
        self, inventory: Sequence[Device], holders: Sequence[Holder], rows: Sequence[tuple[tuple[str, str], ...]]
    ) -> list[Labels]:
        """One `Labels` per device of the inventory, in its order."""
        keys = list(zip(inventory, holders, rows, strict=True))
        if keys != self._keys:
            known = dict(zip(self._keys, self._labels, strict=True))
            self._labels = [known.get(key) or device_labels(*key, self._style) for key in keys]
            self._keys = keys
        return self._labels
