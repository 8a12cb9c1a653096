"""The type `Readings`: the devices, samples and rejected values of one read, the same for every source.

The reader process, which reads DCGM or NVML, sends a `Readings` through its pipe as msgpack. So the parent process,
which makes metrics of it, handles no types of a native library. `RejectionReason` is why a value is not exposed.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from exporter.node.devices.entities.component import Component
from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.link import Link
from exporter.node.devices.entities.vgpu import Vgpu
from exporter.node.devices.readings.health import HealthStatus
from exporter.node.devices.readings.processes import ProcessReadings
from exporter.reason import Reason

SampleValue = int | float | str | None
"""One sample as the library gave it, in the field's own unit; None where there is none to expose."""


class RejectionReason(Reason):
    """Why a value is not exposed: label `reason` of `gpugauge_rejected_values_total`."""

    BLANK = (
        "blank",
        "The library has no value yet, or returned a blank value or NaN.",
        "None needed if it passes after a few intervals; otherwise the device does not measure this field now.",
    )
    NOT_FOUND = (
        "not_found",
        "The library no longer has the device or the field's subject (such as a link).",
        "Check whether the MIG layout or the topology changed; the devices are discovered again without a restart.",
    )
    NOT_SUPPORTED = (
        "not_supported",
        "The device, its driver or the library does not have this field.",
        "Remove the row from the counters file, or use hardware, a driver or a source that has the field.",
    )
    NO_PERMISSION = (
        "no_permission",
        "The process or the host engine may not read this field.",
        "Profiling fields need SYS_ADMIN before Hopper, in the process that embeds the engine or in the host engine.",
    )
    OUT_OF_RANGE = (
        "out_of_range",
        "The value cannot be true for this field, such as a utilization below 0 or above 100 %.",
        "Report it with the field, the GPU model and the driver version.",
    )
    STALE = (
        "stale",
        "The newest value is older than three intervals (at least 5 s): the library no longer updates it.",
        "Check the health of the host engine; the field is watched again without a restart.",
    )


RejectionCounts = Counter[tuple[int, RejectionReason]]
"""How many values were rejected in one collection, by field id and reason."""


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """Samples of one read: `columns[f][d]` is field `fields[f]` of `devices[d]` (positions in the inventory)."""

    devices: tuple[int, ...]
    fields: tuple[int, ...]
    columns: tuple[tuple[SampleValue, ...], ...]


class Rejection(msgspec.Struct, frozen=True, array_like=True):
    """How many values of one field were rejected in this collection, and why."""

    field: int
    reason: RejectionReason
    count: int


class XidReport(msgspec.Struct, frozen=True, array_like=True):
    """XIDs of one code that a GPU or one of its MIG devices has had. Each is in the reports of one read.

    After a restart of the reader process or a lost connection, an engine may report again what it still has stored:
    the times of one code of one GPU only grow, so a report that is not newer than the last is known already.
    """

    uuid: str
    """Of the GPU."""
    code: int
    at: float
    """Unix seconds: by the engine's clock; with NVML, when it was received. Of several, the last."""
    count: int = 1


class P2pStatus(msgspec.Struct, frozen=True, array_like=True):
    """Whether one GPU can reach the memory of another through NVLink."""

    uuid: str
    peer: str
    """UUID of the other GPU."""
    status: int
    """A position in `p2p.STATUSES`."""


class VgpuUtilization(msgspec.Struct, frozen=True, array_like=True):
    """In how much of the time the engines of a GPU worked for one vGPU, in percent."""

    vgpu: int
    """Position in `Readings.vgpus`."""
    sm: int
    memory: int
    encoder: int
    decoder: int


class Readings(msgspec.Struct, frozen=True):
    """The devices, their samples and what was rejected, from one read of a device source."""

    source: str
    """`dcgm`, `nvml` or `simulated`."""
    taken_at: float
    """Seconds since the epoch, when the read began."""
    inventory: tuple[Device, ...]
    batches: tuple[Batch, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    down: tuple[str, ...] = ()
    """UUIDs of GPUs that are known but cannot be read now (lost, reset required, hung)."""
    xids: tuple[XidReport, ...] = ()
    """The XIDs since the read before, in the order of their times."""
    p2p: tuple[P2pStatus, ...] = ()
    """Of each ordered pair of GPUs, where it was asked for."""
    problems: tuple[tuple[str, str], ...] = ()
    """(reason, message): what is wrong while the source as a whole still answers, e.g. profiling unavailable."""
    health: tuple[HealthStatus, ...] | None = None
    """The results of the health checks; None where none were made."""
    versions: dict[str, str] = {}
    """`dcgm`, `nvml`, `driver`: version texts as far as they are known."""
    links: tuple[Link, ...] = ()
    """The NVLinks of the GPUs that can be read, where a field of a link is wanted and the source reads links."""
    engine_ids: tuple[int, ...] = ()
    """By device, the number that DCGM gives it, -1 where it gives none; empty from other sources."""
    link_batches: tuple[Batch, ...] = ()
    """Samples of links: their `devices` are positions in `links`."""
    components: tuple[Component, ...] = ()
    """The components that can be read, where a field of one is wanted and the source reads them."""
    component_batches: tuple[Batch, ...] = ()
    """Samples of components: their `devices` are positions in `components`."""
    vgpus: tuple[Vgpu, ...] = ()
    """The vGPUs of the GPUs that can be read, where a field of one is wanted and the source reads them."""
    vgpu_batches: tuple[Batch, ...] = ()
    """Samples of vGPUs: their `devices` are positions in `vgpus`."""
    processes: ProcessReadings | None = None
    """The processes on the GPUs, where they are wanted and the source reads them."""
    vgpu_utilization: tuple[VgpuUtilization, ...] = ()
    """Of the vGPUs that have a sample since the read before."""


def with_unread_fields(readings: Readings, fields: Sequence[int]) -> Readings:
    """Add that none of the GPUs that can be read has a value of these fields, as far as the source read none of them.

    They are fields that no source reads, and fields of links, vGPUs and components.
    """
    of_parts = (*readings.link_batches, *readings.vgpu_batches, *readings.component_batches)
    read = {field for batch in of_parts for field in batch.fields}
    read |= {rejection.field for rejection in readings.rejections}
    fields = [field for field in fields if field not in read]
    gpus = sum(device.gi < 0 and device.uuid not in readings.down for device in readings.inventory)
    if not fields or not gpus:
        return readings
    unread = (Rejection(field, RejectionReason.NOT_SUPPORTED, gpus) for field in fields)
    return msgspec.structs.replace(readings, rejections=(*readings.rejections, *unread))


def build_labels(readings: Readings) -> dict[str, str]:
    """The labels of `gpugauge_build_info` about the source; a version is empty where its library is not in use."""
    return {
        "dcgm_version": readings.versions.get("dcgm", "") if readings.source != "nvml" else "",
        "nvml_version": readings.versions.get("nvml", ""),
        "source": readings.source,
    }
