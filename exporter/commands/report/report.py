"""A report: everything that is added up over the parts of the time. No I/O, no state beside the sums."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from exporter.commands.report.advice import Advice, advice, needs
from exporter.commands.report.devices import ReportDeviceKey, device_table
from exporter.commands.report.fetch import Answers, PartAnswers
from exporter.commands.report.ledger import StateLedger
from exporter.commands.report.period import STEP, Part
from exporter.commands.report.prices import DayPrices
from exporter.commands.report.usage import PodName, UsageEntry, UsageGrouping, UsageRows, entries, grouped

_STEP_HOURS = STEP / 3600
_JOULES = 3.6e6
"""Of a kilowatt-hour."""
_IDLE = 0.01


@dataclass(slots=True)
class ClusterEnergy:
    """What the GPUs of a cluster drew."""

    kwh: float = 0.0
    power_hours: float = 0.0
    """Watt-hours by samples of the power draw, of which the share of idle GPUs is known."""
    idle_power_hours: float = 0.0

    @property
    def idle_share(self) -> float | None:
        """How much of it was drawn while nothing ran on the GPU; None where it is not known."""
        return self.idle_power_hours / self.power_hours if self.power_hours else None


@dataclass(slots=True)
class PendingTime:
    """How long GPU pods of a namespace were pending."""

    pod_hours: float = 0.0
    device_hours: float = 0.0


@dataclass(frozen=True, slots=True)
class PartlyIdlePod:
    """A pod that has several devices and uses only some of them."""

    pod: PodName
    devices: int
    idle: int
    gpu_hours: float
    """Of the idle ones."""


@dataclass(slots=True)
class GpuReport:
    """The sums of a report."""

    parts: list[Part] = field(default_factory=list)
    ledger: StateLedger = field(default_factory=StateLedger)
    entries: list[UsageEntry] = field(default_factory=list)
    energy: dict[str, ClusterEnergy] = field(default_factory=lambda: defaultdict(ClusterEnergy))
    """By cluster."""
    pending: dict[tuple[str, str], PendingTime] = field(default_factory=lambda: defaultdict(PendingTime))
    """By (cluster, namespace)."""
    memories: dict[str, float] = field(default_factory=dict)
    """Bytes of a whole GPU, by model."""
    without_gpus: list[Part] = field(default_factory=list)
    """Parts of the time in which the store has no GPU: there was none, or it does not reach back so far."""
    warnings: dict[str, None] = field(default_factory=dict)
    """What the server said is missing, each once."""

    def add(self, found: PartAnswers, prices: Callable[[Part, Answers], DayPrices]) -> None:
        """Add a part of the time."""
        part, answers = found.part, found.answers
        table = device_table(answers, prices(part, answers))
        self.parts.append(part)
        if not answers["GPUS"]:
            self.without_gpus.append(part)
        self.ledger.add(part, answers, table)
        self.entries.extend(entries(part, answers, table))
        self.warnings.update(dict.fromkeys(found.warnings))
        self._add_energy(answers)
        self._add_pending(answers)
        whole = (facts for key, facts in table.facts.items() if not key.gi and facts.memory and facts.model)
        self.memories.update((facts.model, facts.memory) for facts in whole if facts.memory)

    def _add_energy(self, answers: Answers) -> None:
        counted = {each["cluster"]: each.value for each in answers["ENERGY"]}
        for each in answers["POWER"]:
            energy = self.energy[each["cluster"]]
            energy.power_hours += each.value * _STEP_HOURS
            if each["cluster"] not in counted:
                energy.kwh += each.value * _STEP_HOURS / 1000
        for cluster, joules in counted.items():
            self.energy[cluster].kwh += joules / _JOULES
        for each in answers["POWER_IDLE"]:
            self.energy[each["cluster"]].idle_power_hours += each.value * _STEP_HOURS

    def _add_pending(self, answers: Answers) -> None:
        for each in answers["PENDING_PODS"]:
            self.pending[each["cluster"], each["gpu_namespace"]].pod_hours += each.value * _STEP_HOURS
        for each in answers["PENDING_DEVICES"]:
            self.pending[each["cluster"], each["gpu_namespace"]].device_hours += each.value * _STEP_HOURS

    @property
    def currency(self) -> str | None:
        """The currency of all costs; None where there are several, and empty where nothing has a price."""
        found = self.ledger.currencies
        return None if len(found) > 1 else next(iter(found), "")

    def rows(self, by: UsageGrouping) -> UsageRows:
        """Sums of what was allocated, the most GPU-hours first."""
        return grouped(self.entries, by)

    def idle_workloads(self) -> UsageRows:
        """The workloads that were idle, the most idle GPU-hours first."""
        rows = [(key, row) for key, row in self.rows("workload").items() if row.idle > 0]
        return dict(sorted(rows, key=lambda row: -row[1].idle))

    def advice(self) -> list[Advice]:
        """What would be enough for each workload."""
        return [advice(need, self.memories) for need in needs(self.entries)]

    def partly_idle_pods(self) -> list[PartlyIdlePod]:
        """The pods of which some devices were idle all the time and others were not."""
        pods: dict[PodName, dict[ReportDeviceKey, list[UsageEntry]]] = defaultdict(lambda: defaultdict(list))
        for entry in self.entries:
            if entry.busy is not None:
                pods[entry.pair.pod][entry.pair.device].append(entry)
        found = (_partly_idle(pod, devices.values()) for pod, devices in pods.items())
        return sorted((each for each in found if each), key=lambda each: (-each.gpu_hours, each.pod))


def _partly_idle(pod: PodName, devices: Iterable[list[UsageEntry]]) -> PartlyIdlePod | None:
    idle, number, hours = 0, 0, 0.0
    for own in devices:
        number += 1
        observed = sum(entry.observed_hours for entry in own)
        busy = sum((entry.busy or 0.0) * entry.observed_hours for entry in own) / observed if observed else 0.0
        if busy < _IDLE:
            idle += 1
            hours += sum(entry.gpu_hours for entry in own)
    return PartlyIdlePod(pod, number, idle, hours) if 0 < idle < number else None
