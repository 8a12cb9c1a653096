"""Why a label of DCGM-named series is not in a response, or has another value."""

from exporter.commands.compare.identity import PREFIX, SPELLINGS
from exporter.commands.compare.reasons import CompareReason
from exporter.commands.compare.response import MetricSeries, MetricsResponse
from exporter.node.devices.fields.field import fields_by_name
from exporter.node.devices.series.labels import MIG_LABELS

CONTAINER = ("namespace", "pod", "container")
_HOST = ("hostname", "Hostname")
_BY_NAME = {
    "pod_uid": CompareReason.POD_METADATA,
    "hpc_job": CompareReason.HPC_JOB,
    "vgpu": CompareReason.VIRTUAL_GPUS,
}
_DEVICE = ("gpu", "UUID", "pci_bus_id", "device", "modelName", *MIG_LABELS)


def written(response: MetricsResponse) -> frozenset[str]:
    """Every label that DCGM-named series have, with or without a value."""
    return frozenset(label for each in response.series if each.name.startswith(PREFIX) for label in each.labels)


def absent_label(label: str) -> CompareReason | None:
    """Why no series has a label that dcgm-exporter can write; None where it never writes a label of this name."""
    if label in _HOST:
        return CompareReason.HOST_LABEL
    if label in SPELLINGS:
        return CompareReason.OLD_NAMESPACE
    if label in CONTAINER:
        return CompareReason.NO_ATTRIBUTION
    if label.startswith("dra_"):
        return CompareReason.DRA_LABELS
    if label in fields_by_name():
        return CompareReason.LABEL_ROW
    return _BY_NAME.get(label)


def without_label(label: str, *, names_some: bool, several: bool) -> CompareReason:
    """Why a series of NEW lacks a label that OLD has on the same series.

    `names_some`: whether NEW has a value of that label anywhere. `several`: whether the device has several users in
    one of both, or MIG devices.
    """
    if label in CONTAINER and names_some:
        return CompareReason.SHARED_DEVICE if several else CompareReason.POD_MISSING
    return absent_label(label) or (CompareReason.LABEL_VALUE if label in _DEVICE else CompareReason.OTHER_LABEL)


def other_value(label: str) -> CompareReason:
    """Why a label has two values on the same series."""
    if label == "hostname":
        return CompareReason.HOST_VALUE
    return CompareReason.XID_WORDS if label == "err_msg" else CompareReason.LABEL_VALUE


def spelled(series: MetricSeries, label: str) -> str:
    """The spelling of a label, given in that of today, on a series; empty where it has none."""
    names = (label, *(old for old, new in SPELLINGS.items() if new == label))
    return next((name for name in names if series.labels.get(name)), "")
