"""Which series of two exporters say the same of the same device, whatever their names and other labels are."""

from collections.abc import Mapping

from exporter.commands.compare.response import MetricSeries
from exporter.node.devices.fields.field import fields_by_name
from exporter.node.devices.series.labels import INSTANCE_IDS

PREFIX = "DCGM_"
SPELLINGS: Mapping[str, str] = {
    "Hostname": "hostname",
    "uuid": "UUID",
    "pod_name": "pod",
    "pod_namespace": "namespace",
    "container_name": "container",
}
"""Labels with two spellings: the one of older releases, and the one of today."""
_DEVICE = ("UUID", "gpu_uuid", *INSTANCE_IDS, "nvlink", "nvswitch", "cpu", "cpucore", "vgpu_uuid")
_OF_THE_VALUE = ("xid", "clock_event", "health_watch", "peer_gpu")
"""Labels that tell series of one device apart."""

QuantityKey = tuple[str | int, frozenset[tuple[str, str]]]
"""A quantity, and what it is of: equal in both exporters."""


def quantity(name: str) -> str | int:
    """The field of a metric; the name itself where it is none of a field."""
    field = fields_by_name().get(name)
    return name if field is None else field.id


def canonical(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels under the spelling of today."""
    return {SPELLINGS.get(name, name): value for name, value in labels.items()}


def key_of(series: MetricSeries) -> QuantityKey:
    """What the series is about. Series without DCGM names are told apart by all of their labels."""
    labels = canonical(series.written())
    if not series.name.startswith(PREFIX):
        return series.name, frozenset(labels.items())
    wanted = {name: labels[name] for name in (*_DEVICE, *_OF_THE_VALUE) if name in labels}
    if not wanted and "gpu" in labels:
        wanted["gpu"] = labels["gpu"]
    return quantity(series.name), frozenset(wanted.items())


def without_instance(key: QuantityKey) -> QuantityKey:
    """The same quantity of the whole GPU."""
    return key[0], frozenset(pair for pair in key[1] if pair[0] not in INSTANCE_IDS)


def device_of(key: QuantityKey) -> tuple[str, str] | None:
    """The label that names the GPU, NVSwitch or CPU, and its value; None for series of none."""
    return next((pair for name in ("UUID", "gpu_uuid", "nvswitch", "cpu") for pair in key[1] if pair[0] == name), None)
