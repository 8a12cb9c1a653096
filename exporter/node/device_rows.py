"""The rows of the status page about devices: what a person looks for first, from the families of one snapshot. No I/O.

Nothing is computed that the families do not say, so that page and `/metrics` cannot differ.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from exporter.metric import AnyFamily, Labels, Sample, Value
from exporter.node.attribution.series import metrics as allocation_metrics
from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.field import fields_by_name
from exporter.node.devices.series.metrics import DEVICE_INFO, DEVICE_UP
from exporter.status_page.content import Cell, Mark, absent, text

COLUMNS = ("Device", "State", "Pods", "Utilization", "Memory", "Tensor activity", "Temperature")
_SHOWN = frozenset(
    {
        field_ids.GR_ENGINE_ACTIVE,
        field_ids.GPU_UTIL,
        field_ids.PIPE_TENSOR_ACTIVE,
        field_ids.FB_USED,
        field_ids.FB_FREE,
        field_ids.GPU_TEMP,
    }
)
_MAX_PODS = 8
"""How many pods of one device are named."""
_MIB_PER_GIB = 1024
_PERCENT = 100


class DeviceIdentity(NamedTuple):
    """What identifies a device; the ids are empty where it has none."""

    uuid: str
    gi: str = ""
    ci: str = ""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What the families of one snapshot say of all devices."""

    info: Mapping[DeviceIdentity, Mapping[str, str]]
    """The labels of `gpugauge_device_info`, in its order."""
    up: Mapping[str, Value]
    """By UUID."""
    values: Mapping[int, Mapping[DeviceIdentity, Value]]
    """By field id; a field that is not configured is not there."""
    pods: Mapping[DeviceIdentity, list[Mapping[str, str]]]
    """The labels of each allocation."""
    allocated: Mapping[DeviceIdentity, Value]
    """How many pods each device is allocated to; a device is not there where that is not known."""

    def partitioned(self, key: DeviceIdentity) -> bool:
        """Whether the device consists of smaller ones that are known."""
        return any(
            other != key and other.uuid == key.uuid and (not key.gi or other.gi == key.gi) and not key.ci
            for other in self.info
        )

    def empty(self, key: DeviceIdentity) -> bool:
        """Whether it is a GPU in MIG mode that has no MIG devices, so that nothing of it can be used."""
        return not key.gi and self.info[key].get("mig_mode") == "enabled" and not self.partitioned(key)


def device_facts(families: Iterable[AnyFamily]) -> DeviceFacts:
    """Take what the page shows out of the families."""
    fields = fields_by_name()
    samples: dict[str, list[Sample]] = {}
    values: dict[int, dict[DeviceIdentity, Value]] = {}
    for family in families:
        name = family.metric.name
        if name in _OURS:
            samples[name] = list(family.samples)
        elif name in fields and fields[name].id in _SHOWN:
            values.setdefault(fields[name].id, {_key(labels): value for labels, value in family.samples})
    pods: dict[DeviceIdentity, list[Mapping[str, str]]] = defaultdict(list)
    for labels, _ in samples.get(allocation_metrics.INFO.name, ()):
        pods[_key(labels)].append(dict(labels.pairs))
    return DeviceFacts(
        info={_key(labels): dict(labels.pairs) for labels, _ in samples.get(DEVICE_INFO.name, ())},
        up={_key(labels).uuid: value for labels, value in samples.get(DEVICE_UP.name, ())},
        values=values,
        pods=pods,
        allocated={_key(labels): value for labels, value in samples.get(allocation_metrics.ALLOCATED_PODS.name, ())},
    )


_OURS = frozenset(
    each.name for each in (DEVICE_INFO, DEVICE_UP, allocation_metrics.INFO, allocation_metrics.ALLOCATED_PODS)
)


def device_rows(facts: DeviceFacts, *, attributed: bool) -> list[tuple[Cell, ...]]:
    """One row per GPU and MIG device, as COLUMNS; `attributed` states whether pods are asked for at all."""
    ordered = sorted(facts.info, key=lambda key: (_number(facts.info[key]["gpu"]), _number(key.gi), _number(key.ci)))
    return [
        (
            _name(key, facts.info[key]),
            _state(key, facts),
            _pods(key, facts, attributed=attributed),
            _activity(key, facts, field_ids.GR_ENGINE_ACTIVE, instead=field_ids.GPU_UTIL),
            _memory(key, facts),
            _activity(key, facts, field_ids.PIPE_TENSOR_ACTIVE),
            _temperature(key, facts),
        )
        for key in ordered
    ]


def _key(labels: Labels) -> DeviceIdentity:
    pairs = dict(labels.pairs)
    # Under --use-old-namespace the label of DCGM-named series is `uuid`.
    return DeviceIdentity(
        pairs.get("UUID") or pairs.get("uuid", ""), pairs.get("GPU_I_ID", ""), pairs.get("GPU_CI_ID", "")
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else -1


def _name(key: DeviceIdentity, info: Mapping[str, str]) -> Cell:
    if not key.gi:
        return text(f"GPU {info['gpu']}", info.get("model", ""), note=key.uuid)
    instance = f"GPU instance {key.gi}" + (f", compute instance {key.ci}" if key.ci else "")
    return text(f"GPU {info['gpu']}, MIG {info.get('GPU_I_PROFILE', '')}".rstrip(), note=instance)


def _down(key: DeviceIdentity, facts: DeviceFacts) -> bool:
    return facts.up.get(key.uuid) == 0


def _state(key: DeviceIdentity, facts: DeviceFacts) -> Cell:
    if _down(key, facts):
        return text("not readable", mark=Mark.BAD)
    if facts.empty(key):
        return text("no MIG devices", mark=Mark.BAD)
    return text("readable", mark=Mark.GOOD) if key.uuid in facts.up else absent()


def _pods(key: DeviceIdentity, facts: DeviceFacts, *, attributed: bool) -> Cell:
    own = facts.pods.get(key, [])
    if own:
        names = [f"{each['namespace']}/{each['pod']} ({each['container']})" for each in own]
        more = [f"and {len(names) - _MAX_PODS} more"] if len(names) > _MAX_PODS else []
        sharing = sorted({each["sharing"] for each in own} - {"exclusive"})
        return text(*names[:_MAX_PODS], *more, note=f"sharing: {', '.join(sharing)}" if sharing else "")
    if facts.partitioned(key):
        return absent("partitioned: see its MIG devices")
    if facts.empty(key):
        return absent("MIG mode without MIG devices: no pod can be given it")
    if not attributed:
        return absent("devices are not attributed to pods")
    return text("unallocated") if facts.allocated.get(key) == 0 else absent("allocation unknown")


def _activity(key: DeviceIdentity, facts: DeviceFacts, field: int, instead: int | None = None) -> Cell:
    """A share of time; `instead` is a field in percent for where the other one has no value."""
    ratio = facts.values.get(field, {}).get(key)
    if ratio is None and instead is not None:
        percent = facts.values.get(instead, {}).get(key)
        ratio = None if percent is None else percent / _PERCENT
    if ratio is None:
        return _missing(key, facts, field, *([] if instead is None else [instead]))
    return Cell((f"{ratio * _PERCENT:.0f} %",), ratio=ratio)


def _memory(key: DeviceIdentity, facts: DeviceFacts) -> Cell:
    used = facts.values.get(field_ids.FB_USED, {}).get(key)
    free = facts.values.get(field_ids.FB_FREE, {}).get(key)
    if used is None:
        if key.ci:
            return absent("counted for the GPU instance")
        return _missing(key, facts, field_ids.FB_USED)
    if free is None or used + free <= 0:
        return text(f"{used / _MIB_PER_GIB:.1f} GiB")
    total = used + free
    return Cell((f"{used / _MIB_PER_GIB:.1f} of {total / _MIB_PER_GIB:.1f} GiB",), ratio=used / total)


def _temperature(key: DeviceIdentity, facts: DeviceFacts) -> Cell:
    value = facts.values.get(field_ids.GPU_TEMP, {}).get(key)
    if value is not None:
        return text(f"{value:.0f} °C")
    return absent("measured for the GPU") if key.gi else _missing(key, facts, field_ids.GPU_TEMP)


def _missing(key: DeviceIdentity, facts: DeviceFacts, *fields: int) -> Cell:
    if _down(key, facts):
        return absent("not readable")
    if not any(field in facts.values for field in fields):
        return absent("not in the counters file")
    if facts.partitioned(key):
        return absent("see its MIG devices")
    return absent("it has no MIG devices" if facts.empty(key) else "no value")
