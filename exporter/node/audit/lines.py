"""The lines of an audit log: one JSON object each, of a type that its key `event` names. No I/O.

docs/audit.md describes them for readers; `SCHEMA` is the version of that description. A reader ignores keys that it
does not know, so new ones may be added without another version.
"""

from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

SCHEMA = 1


class DeviceId(NamedTuple):
    """What identifies a device over time; -1 for an id that it does not have."""

    uuid: str
    gi: int = -1
    ci: int = -1
    profile: str = ""


class AuditLine(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="event"):
    """What every line has."""

    schema: int
    node: str
    chain: str
    """The chain of lines that this one belongs to."""
    seq: int
    """The number of this line in its chain, from 1 on."""
    prev: str = ""
    """SHA-256 of the line before, without its line break; empty on the first one."""
    time: datetime
    """When the kubelet was asked, or when the line was written where nothing was asked."""
    more: bool = False
    """Whether lines of the same moment follow. If none does, the process ended before it had written all of them."""

    @property
    def at(self) -> float:
        """The time in seconds since the epoch."""
        return self.time.timestamp()


class LogBegun(AuditLine, frozen=True, kw_only=True, tag="begin"):
    """From here on this process, or this file, has the log. A line for each open allocation follows."""

    reason: str
    """`started`, `rotated`, or `continued` in a file that somebody else has moved away or changed."""
    version: str
    open: int
    """How many lines of open allocations follow."""
    repaired_bytes: int = 0
    """How many bytes of a torn last line were cut off."""


class MeasuredValue(msgspec.Struct, frozen=True):
    """Mean and maximum of what was measured of the device while it was allocated."""

    mean: float
    max: float
    observed_seconds: float
    """The time that mean and maximum cover."""


class AllocationUsage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What has added up for an allocation so far."""

    allocation: int
    """The number of the line that began it."""
    observed_seconds: float
    """The time between answers of the kubelet that followed each other and had it."""
    gpu_seconds: float
    """The same, times its share of the device."""
    utilization: MeasuredValue | None = None
    memory_bytes: MeasuredValue | None = None


class AllocationLine(AuditLine, frozen=True, kw_only=True):
    """Which device was given to which container."""

    allocation: int
    """The number of the line that began it."""
    uuid: str
    """Of the GPU."""
    model: str
    gpu_instance_id: int = -1
    compute_instance_id: int = -1
    profile: str = ""
    resource: str
    namespace: str
    pod: str
    pod_uid: str = ""
    container: str
    workload: str = ""
    workload_type: str = ""
    sharing: str
    replicas: int = 0
    from_metadata: bool = False
    """Whether the kubelet does not list it, and the pod's status or its scheduler says so."""
    requested_by: dict[str, str] = {}
    """Annotations of the pod that say who asked for it."""

    @property
    def device(self) -> DeviceId:
        """The device that was given."""
        return DeviceId(self.uuid, self.gpu_instance_id, self.compute_instance_id, self.profile)


class AllocationStarted(AllocationLine, frozen=True, kw_only=True, tag="start"):
    """The kubelet's answer has the allocation for the first time."""

    not_before: datetime | None = None
    """The last answer that did not have it; None where there was none."""


class AllocationOpen(AllocationLine, frozen=True, kw_only=True, tag="open"):
    """An allocation that began in an earlier file or process and goes on."""

    started: datetime
    not_before: datetime | None = None
    usage: AllocationUsage


class AllocationEnded(AllocationLine, frozen=True, kw_only=True, tag="end"):
    """The kubelet's answer does not have the allocation any more."""

    started: datetime
    not_before: datetime | None = None
    last_seen: datetime
    """The last answer that had it."""
    duration_seconds: float
    observed_seconds: float
    gpu_seconds: float
    utilization: MeasuredValue | None = None
    memory_bytes: MeasuredValue | None = None


class Checkpoint(AuditLine, frozen=True, kw_only=True, tag="checkpoint"):
    """The log goes on, and so much has added up for open allocations."""

    allocations: tuple[AllocationUsage, ...] = ()
    stopped: bool = False
    """Whether the exporter was stopped: nothing is observed from here on."""


class ObservationGap(AuditLine, frozen=True, kw_only=True, tag="gap"):
    """For a time it is not known what was allocated: on the node, or of one device where one is named."""

    reason: str
    since: datetime
    """The last time at which it was known."""
    until: datetime | None = None
    """The first time at which it was known again; None while the gap lasts."""
    again: bool = False
    """Whether the line, after `begin`, only names a gap of a device again that lasts."""
    uuid: str = ""
    gpu_instance_id: int = -1
    compute_instance_id: int = -1
    profile: str = ""

    @property
    def device(self) -> DeviceId | None:
        """The device, None where the whole node is meant."""
        if not self.uuid:
            return None
        return DeviceId(self.uuid, self.gpu_instance_id, self.compute_instance_id, self.profile)

    @property
    def observed(self) -> bool:
        """Whether the allocations of the node were known when the line was written."""
        return self.until is not None or (self.device is not None and not self.again)


AnyLine = LogBegun | AllocationStarted | AllocationOpen | AllocationEnded | Checkpoint | ObservationGap
_DECODER: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)


def encode(line: AuditLine) -> bytes:
    """Write a line, without its line break."""
    return msgspec.json.encode(line)


def decode(content: bytes) -> AnyLine | None:
    """Read a line; None where it is no line of an audit log of this schema."""
    try:
        line = _DECODER.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return line if line.schema == SCHEMA else None


def observes(line: AnyLine) -> bool:
    """Whether the allocations of the node were known at the time of the line, and all of that is written with it."""
    if line.more:
        return False
    match line:
        case LogBegun() | AllocationOpen():
            return False
        case ObservationGap():
            return line.observed
    return True


def moment(at: float) -> datetime:
    """A time as it is written: to the millisecond."""
    return datetime.fromtimestamp(round(at, 3), UTC)


def device_keys(device: DeviceId) -> dict[str, Any]:
    """The keys of a line that name a device."""
    ids = {"gpu_instance_id": device.gi, "compute_instance_id": device.ci}
    return {"uuid": device.uuid, **ids, "profile": device.profile}
