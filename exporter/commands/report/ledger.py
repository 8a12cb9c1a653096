"""Every GPU-hour of the fleet in exactly one state, so that the money of all states is the price of all GPUs.

Of each part of the time and each GPU: what the exporter counted itself (`gpugauge_device_state_seconds_total`), else
what samples show. What no state has is unobserved. No I/O, no state.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from exporter.commands.report.devices import DeviceTable, GpuKey, ReportDeviceKey, by_device, by_gpu
from exporter.commands.report.fetch import Answers
from exporter.commands.report.period import STEP, Part

_HOUR = 3600.0
_STEP_HOURS = STEP / _HOUR
STATES = ("busy", "idle", "shared", "activity_unknown", "unallocated", "stranded", "unhealthy", "unobserved")
ALLOCATED = ("busy", "idle", "shared", "activity_unknown")
"""The states of an allocated GPU."""


@dataclass(slots=True)
class StateHours:
    """GPU-hours by state; a MIG device counts by its compute slices."""

    busy: float = 0.0
    idle: float = 0.0
    """Allocated, and busy for less than 1 % of a collection."""
    shared: float = 0.0
    activity_unknown: float = 0.0
    """Allocated, and how busy is not known."""
    unallocated: float = 0.0
    stranded: float = 0.0
    """Unallocated and of no use: the node has no CPU or memory for it, or no MIG device has these slices."""
    unhealthy: float = 0.0
    """Lost, hung, or not offered by the kubelet."""
    unobserved: float = 0.0

    @property
    def allocated(self) -> float:
        """GPU-hours that some pod had."""
        return self.busy + self.idle + self.shared + self.activity_unknown

    @property
    def total(self) -> float:
        """The sum of all states."""
        return float(sum(getattr(self, name) for name in STATES))

    def add(self, other: "StateHours", factor: float = 1.0) -> None:
        """Add the hours of others."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + factor * getattr(other, each.name))


@dataclass(slots=True)
class LedgerRow:
    """The GPU-hours of one model in one cluster, and what they cost."""

    hours: StateHours = field(default_factory=StateHours)
    cost: StateHours = field(default_factory=StateHours)
    gpu_hours: float = 0.0
    """Hours of the GPUs themselves, which the states must add up to."""
    price_of_all: float = 0.0
    """Those hours times their prices."""
    unpriced_hours: float = 0.0
    """Hours of GPUs that have no price; they cost nothing here."""
    surplus_hours: float = 0.0
    """By how much the states were larger than the time of the GPUs before they were made to fit."""


@dataclass(slots=True)
class StateLedger:
    """The fleet in the time of a report."""

    rows: dict[tuple[str, str], LedgerRow] = field(default_factory=lambda: defaultdict(LedgerRow))
    """By (cluster, model)."""
    currencies: set[str] = field(default_factory=set)

    @property
    def total(self) -> LedgerRow:
        """The sum of the rows."""
        found = LedgerRow()
        for row in self.rows.values():
            found.hours.add(row.hours)
            found.cost.add(row.cost)
            found.gpu_hours += row.gpu_hours
            found.price_of_all += row.price_of_all
            found.unpriced_hours += row.unpriced_hours
            found.surplus_hours += row.surplus_hours
        return found

    def add(self, part: Part, answers: Answers, table: DeviceTable) -> None:
        """Add a part of the time."""
        there_of = {gpu: min(n * _STEP_HOURS, part.hours) for gpu, n in by_gpu(answers["GPUS"]).items()}
        hours = _by_gpu(answers, table)
        surplus = {gpu: _close(hours[gpu], there) for gpu, there in there_of.items()}
        _strand(hours, answers)
        for gpu, there in there_of.items():
            facts, states = table.of(ReportDeviceKey(gpu, "", "")), hours[gpu]
            row = self.rows[gpu.cluster, facts.model]
            row.surplus_hours += surplus[gpu]
            row.hours.add(states)
            row.gpu_hours += there
            if facts.price is None:
                row.unpriced_hours += there
            else:
                self.currencies.add(facts.currency)
                row.cost.add(states, facts.price)
                row.price_of_all += there * facts.price


def _by_gpu(answers: Answers, table: DeviceTable) -> dict[GpuKey, StateHours]:
    """The observed hours of each GPU."""
    counted = _counted(answers)
    allocated, known = by_device(answers["ALLOCATED"]), by_device(answers["ALLOCATION_KNOWN"])
    down, unhealthy = by_gpu(answers["DOWN"]), by_device(answers["UNHEALTHY"])
    mig = table.mig_devices()
    hours: dict[GpuKey, StateHours] = defaultdict(StateHours)
    for key in {**counted, **known}:
        if not key.gi and key.gpu in mig and key not in counted:
            continue  # a partitioned GPU is no device that a pod could have
        share = table.of(key).share if key.gi else 1.0
        hours[key.gpu].add(_device(key, counted, allocated, known, unhealthy), share)
    for gpu in by_gpu(answers["GPUS"]):
        hours[gpu].unhealthy += down.get(gpu, 0.0) * _STEP_HOURS
        hours[gpu].stranded += _without_device(mig.get(gpu, []), table)
    return hours


def _counted(answers: Answers) -> dict[ReportDeviceKey, dict[str, float]]:
    """Hours by state, as the exporter counted them."""
    found: dict[ReportDeviceKey, dict[str, float]] = defaultdict(dict)
    for each in answers["STATES"]:
        found[ReportDeviceKey.of(each)][each["state"]] = each.value / _HOUR
    return found


def _device(
    key: ReportDeviceKey,
    counted: Mapping[ReportDeviceKey, Mapping[str, float]],
    allocated: Mapping[ReportDeviceKey, float],
    known: Mapping[ReportDeviceKey, float],
    unhealthy: Mapping[ReportDeviceKey, float],
) -> StateHours:
    """The hours of a device, as a whole GPU would count."""
    had = allocated.get(key, 0.0) * _STEP_HOURS
    if key in counted:
        of = counted[key]
        found = StateHours(of.get("busy", 0.0), of.get("idle", 0.0), of.get("shared", 0.0))
        # Unknown to the exporter is whether it was busy, or whether it was allocated at all.
        found.activity_unknown = max(0.0, min(of.get("unknown", 0.0), had - found.allocated))
        found.unallocated = of.get("unallocated", 0.0)
    else:
        found = StateHours(activity_unknown=had, unallocated=known.get(key, 0.0) * _STEP_HOURS - had)
    found.unhealthy = min(found.unallocated, unhealthy.get(key, 0.0) * _STEP_HOURS)
    found.unallocated -= found.unhealthy
    return found


def _without_device(devices: list[ReportDeviceKey], table: DeviceTable) -> float:
    """GPU-hours of slices that no MIG device has, while the GPU had some."""
    if not devices:
        return 0.0
    covered = sum(table.steps[key] * table.facts[key].share for key in devices)
    return max(0.0, max(table.steps[key] for key in devices) - covered) * _STEP_HOURS


def _close(found: StateHours, there: float) -> float:
    """Make the states of a GPU add up to the time in which it was there. Returns by how much they were too large.

    What none of them has is unobserved. Counters and samples do not end at the same second, so that their sum may be
    some seconds too large: then all are made smaller in proportion.
    """
    surplus = found.total - there
    if surplus <= 0:
        found.unobserved = -surplus
        return 0.0
    for name in STATES:
        setattr(found, name, getattr(found, name) * there / (there + surplus))
    return surplus


def _strand(hours: Mapping[GpuKey, StateHours], answers: Answers) -> None:
    """Move what the watcher calls stranded from unallocated to stranded, of the GPUs of each node in proportion."""
    stranded = {(each["cluster"], each["node"]): each.value * _STEP_HOURS for each in answers["STRANDED"]}
    nodes: dict[tuple[str, str], list[StateHours]] = defaultdict(list)
    for gpu, states in hours.items():
        nodes[gpu.cluster, gpu.node].append(states)
    for node, wanted in stranded.items():
        free = sum(each.unallocated for each in nodes.get(node, ()))
        part = min(1.0, wanted / free) if free else 0.0
        for each in nodes.get(node, ()):
            each.stranded += each.unallocated * part
            each.unallocated -= each.unallocated * part


def closing_error(row: LedgerRow) -> float:
    """By how much of the price of all GPUs the costs of the states miss it; of hours where nothing has a price."""
    whole, found = (row.price_of_all, row.cost.total) if row.price_of_all else (row.gpu_hours, row.hours.total)
    return abs(found - whole) / whole if whole else 0.0
