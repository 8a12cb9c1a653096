"""Who had which device for how long, and how much of it was used: entries, and sums of them. No I/O, no state."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from exporter.commands.prometheus.answer import PrometheusSample
from exporter.commands.report.devices import DeviceTable, ReportDeviceKey, ReportedDevice
from exporter.commands.report.fetch import Answers
from exporter.commands.report.period import STEP, Part

_STEP_HOURS = STEP / 3600
_SHARED_BELOW = 0.999
"""A pod that had a smaller part of a device than this in its time shared it."""

UsageGrouping = Literal["cluster", "namespace", "workload", "team", "cost_center", "workload_class", "model"]


class PodName(NamedTuple):
    """A pod of a cluster."""

    cluster: str
    namespace: str
    pod: str


class AllocatedPair(NamedTuple):
    """A device and a pod that had it."""

    device: ReportDeviceKey
    pod: PodName

    @classmethod
    def of(cls, sample: PrometheusSample) -> "AllocatedPair":
        """The pair that a sample is about."""
        pod = PodName(sample["cluster"], sample["gpu_namespace"], sample["gpu_pod"])
        return cls(ReportDeviceKey.of(sample), pod)


class UsageOwner(NamedTuple):
    """Whose pod it is; empty for what is not known."""

    workload: str
    workload_type: str
    workload_class: str
    team: str
    cost_center: str


@dataclass(frozen=True, slots=True)
class UsageEntry:
    """A device that a pod had in a part of the time. Hours are GPU-hours: of MIG and shared devices the part."""

    pair: AllocatedPair
    owner: UsageOwner
    facts: ReportedDevice
    part_start: int
    """When the part of the time begins, in seconds since the epoch."""
    wall_hours: float
    """How long it had the device, whatever part of it."""
    share: float
    """What part of a GPU it had."""
    busy: float | None
    """Mean share of the observed time in which the device was busy; None where nothing is known, as of shared ones."""
    observed_hours: float
    """Wall hours in which activity is known."""
    idle_hours: float
    """Wall hours of those in which it was busy for less than 1 %."""
    busy_p95: float | None
    memory_p99: float | None
    """Bytes."""
    memory_mean: float | None
    memory_hours: float
    """Wall hours in which memory is known."""

    @property
    def gpu_hours(self) -> float:
        """What counts as allocated."""
        return self.wall_hours * self.share

    @property
    def used_hours(self) -> float:
        """GPU-hours in which the device was busy."""
        return (self.busy or 0.0) * self.observed_hours * self.share

    @property
    def shared(self) -> bool:
        """Whether other pods had the device, too."""
        return self.share < self.facts.share * _SHARED_BELOW


def entries(part: Part, answers: Answers, table: DeviceTable) -> Iterator[UsageEntry]:
    """Every device that some pod had in this part of the time."""
    owners = _owners(answers)
    by_pair = {name: {AllocatedPair.of(each): each.value for each in answers[name]} for name in _PAIRS}
    for pair, steps in by_pair["HAD"].items():
        hours = min(steps * _STEP_HOURS, part.hours)
        about = _About(part.start, table.of(pair.device), owners(pair.pod))
        yield _entry(pair, hours, by_pair, about)


_PAIRS = (
    "HAD", "SHARES", "BUSY_SUM", "BUSY_COUNT", "BUSY_P95", "IDLE", "MEMORY_SUM", "MEMORY_COUNT", "MEMORY_P99",
)  # fmt: skip


class _About(NamedTuple):
    start: int
    facts: ReportedDevice
    owner: UsageOwner


def _entry(
    pair: AllocatedPair,
    hours: float,
    values: Mapping[str, Mapping[AllocatedPair, float]],
    about: "_About",
) -> UsageEntry:
    facts = about.facts
    steps = values["HAD"][pair]
    busy_count, memory_count = values["BUSY_COUNT"].get(pair, 0.0), values["MEMORY_COUNT"].get(pair, 0.0)
    part = min(1.0, values["SHARES"].get(pair, steps) / steps)
    return UsageEntry(
        pair,
        about.owner,
        facts,
        about.start,
        hours,
        part * facts.share,
        values["BUSY_SUM"].get(pair, 0.0) / busy_count if busy_count else None,
        min(hours, busy_count * _STEP_HOURS),
        min(hours, values["IDLE"].get(pair, 0.0) * _STEP_HOURS),
        values["BUSY_P95"].get(pair),
        values["MEMORY_P99"].get(pair),
        values["MEMORY_SUM"].get(pair, 0.0) / memory_count if memory_count else None,
        min(hours, memory_count * _STEP_HOURS),
    )


def _owners(answers: Answers) -> Callable[[PodName], UsageOwner]:
    """What finds the owner of a pod: as the watcher knows it, else as the node exporter does, else the pod itself."""
    named: dict[PodName, tuple[str, str, str]] = {}
    for each in (*answers["NODE_WORKLOADS"], *answers["WORKLOADS"]):
        pod = PodName(each["cluster"], each["gpu_namespace"], each["gpu_pod"])
        named[pod] = (each["workload"], each["workload_type"], each["workload_class"])
    paying = {(e["cluster"], e["gpu_namespace"]): (e["team"], e["cost_center"]) for e in answers["OWNERS"]}

    def owner(pod: PodName) -> UsageOwner:
        workload = named.get(pod, (pod.pod, "pod", ""))
        return UsageOwner(*workload, *paying.get((pod.cluster, pod.namespace), ("", "")))

    return owner


@dataclass(slots=True)
class UsageSum:
    """The sum of some entries. Hours are GPU-hours."""

    hours: float = 0.0
    observed: float = 0.0
    """Those in which activity is known: not those of shared devices."""
    used: float = 0.0
    idle: float = 0.0
    cost: float = 0.0
    wasted_cost: float = 0.0
    unpriced: float = 0.0
    unused_gib_hours: float = 0.0
    """Memory of the devices that was not used, where it is known."""
    pods: set[PodName] = field(default_factory=set)
    models: set[str] = field(default_factory=set)

    @property
    def wasted(self) -> float:
        """Observed and not used."""
        return self.observed - self.used

    def add(self, entry: UsageEntry) -> None:
        """Add an entry."""
        observed = entry.observed_hours * entry.share
        self.hours += entry.gpu_hours
        self.observed += observed
        self.used += entry.used_hours
        self.idle += entry.idle_hours * entry.share
        self.pods.add(entry.pair.pod)
        self.models.add(" ".join(filter(None, (entry.facts.model, entry.facts.profile))))
        if entry.facts.memory is not None and entry.memory_mean is not None:
            unused = max(0.0, entry.facts.memory - entry.memory_mean)
            self.unused_gib_hours += unused / (1 << 30) * entry.memory_hours
        if entry.facts.price is None:
            self.unpriced += entry.gpu_hours
        else:
            self.cost += entry.gpu_hours * entry.facts.price
            self.wasted_cost += (observed - entry.used_hours) * entry.facts.price


UsageRows = Mapping[tuple[str, ...], UsageSum]


def grouped(found: Iterable[UsageEntry], by: UsageGrouping) -> UsageRows:
    """Sums by what `by` names, the most GPU-hours first. Keys are as the columns of `key_columns`."""
    sums: dict[tuple[str, ...], UsageSum] = {}
    for entry in found:
        sums.setdefault(_key(entry, by), UsageSum()).add(entry)
    return dict(sorted(sums.items(), key=lambda row: (-row[1].hours, row[0])))


def key_columns(by: UsageGrouping) -> tuple[str, ...]:
    """The names of what a row is about."""
    return {
        "cluster": ("cluster",),
        "namespace": ("cluster", "namespace"),
        "workload": ("cluster", "namespace", "workload", "workload_type"),
        "model": ("model", "profile"),
    }.get(by, (by,))


def _key(entry: UsageEntry, by: UsageGrouping) -> tuple[str, ...]:
    cluster, namespace, _ = entry.pair.pod
    match by:
        case "cluster":
            return (cluster,)
        case "namespace":
            return cluster, namespace
        case "workload":
            return cluster, namespace, entry.owner.workload, entry.owner.workload_type
        case "model":
            return entry.facts.model, entry.facts.profile
    return (str(getattr(entry.owner, by)),)
