"""The receipt of one workload: what it waited, had, used and cost, its slowest device, and faults that it met."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from exporter.commands.report.devices import GpuKey, ReportDeviceKey
from exporter.commands.report.fetch import Answers, PartAnswers
from exporter.commands.report.report import GpuReport
from exporter.commands.report.sections import ReportColumn, ReportTable, hours_text, share_text
from exporter.commands.report.usage import AllocatedPair, PodName, UsageEntry, UsageSum
from exporter.config import ConfigError
from exporter.time_text import age, utc

_GIB = 1 << 30


@dataclass(slots=True)
class ReceiptFacts:
    """What only the receipt asks for, of all pods."""

    peak: dict[AllocatedPair, float] = field(default_factory=dict)
    """Bytes."""
    started: dict[PodName, float] = field(default_factory=dict)
    pending_since: dict[PodName, float] = field(default_factory=dict)
    xids: dict[tuple[int, GpuKey], dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    """How many of each XID, by (begin of the part of the time, GPU)."""

    def add(self, found: PartAnswers) -> None:
        """Add a part of the time."""
        for each in found.answers["MEMORY_MAX"]:
            pair = AllocatedPair.of(each)
            self.peak[pair] = max(each.value, self.peak.get(pair, 0.0))
        self.started.update(_by_pod(found.answers, "STARTS"))
        for pod, since in _by_pod(found.answers, "PENDING_SINCE").items():
            self.pending_since[pod] = min(since, self.pending_since.get(pod, since))
        for each in found.answers["XIDS"]:
            self.xids[found.part.start, GpuKey.of(each)][each["xid"]] = each.value


def _by_pod(answers: Answers, name: str) -> dict[PodName, float]:
    return {PodName(e["cluster"], e["gpu_namespace"], e["gpu_pod"]): e.value for e in answers[name]}


@dataclass(frozen=True, slots=True)
class WorkloadReceipt:
    """The receipt."""

    name: str
    """As NAMESPACE/WORKLOAD."""
    kind: str
    clusters: tuple[str, ...]
    period: tuple[float, float]
    sum: UsageSum
    currency: str
    devices: int
    waits: tuple[float, ...]
    """Seconds that its pods waited, of those of which it is known."""
    peak: float | None
    """Bytes: the most that one of its devices had in use."""
    slowest: tuple[str, float] | None
    """The device that was busy least, where there are several, with its share of busy time."""
    fastest: float | None
    faults: tuple[str, ...]


def receipt(found: GpuReport, facts: ReceiptFacts, namespace: str, workload: str) -> WorkloadReceipt:
    """Make the receipt. Raises ConfigError for a workload that had no GPU."""
    own = [
        each
        for each in found.entries
        if each.pair.pod.namespace == namespace and workload in (each.owner.workload, each.pair.pod.pod)
    ]
    if not own:
        raise ConfigError(f"{namespace}/{workload} had no GPU in this time, or is not known")
    total = UsageSum()
    for each in own:
        total.add(each)
    ranks = _ranks(own)
    slowest = min(ranks.items(), key=lambda rank: (rank[1], rank[0])) if len(ranks) > 1 else None
    return WorkloadReceipt(
        f"{namespace}/{workload}",
        own[-1].owner.workload_type,
        tuple(sorted({each.pair.pod.cluster for each in own})),
        (found.parts[0].start, found.parts[-1].end),
        total,
        found.currency or "",
        len({each.pair.device for each in own}),
        tuple(_waits(facts, total.pods)),
        max((facts.peak[each.pair] for each in own if each.pair in facts.peak), default=None),
        slowest,
        max(ranks.values()) if len(ranks) > 1 else None,
        _faults(own, facts),
    )


def _ranks(own: Sequence[UsageEntry]) -> dict[str, float]:
    """Share of busy time of each device under each pod."""
    busy: dict[AllocatedPair, float] = defaultdict(float)
    observed: dict[AllocatedPair, float] = defaultdict(float)
    for each in own:
        if each.busy is not None:
            busy[each.pair] += each.busy * each.observed_hours
            observed[each.pair] += each.observed_hours
    return {f"{pair.pod.pod} {_device(pair.device)}": busy[pair] / hours for pair, hours in observed.items() if hours}


def _device(key: ReportDeviceKey) -> str:
    ids = (f"{name} {number}" for name, number in (("GI", key.gi), ("CI", key.ci)) if number)
    return " ".join((key.gpu.uuid, *ids))


def _waits(facts: ReceiptFacts, pods: set[PodName]) -> list[float]:
    known = (pod for pod in pods if pod in facts.started and pod in facts.pending_since)
    return sorted(max(0.0, facts.started[pod] - facts.pending_since[pod]) for pod in known)


def _faults(own: Sequence[UsageEntry], facts: ReceiptFacts) -> tuple[str, ...]:
    found: dict[tuple[str, str], float] = defaultdict(float)
    for part, gpu in {(each.part_start, each.pair.device.gpu) for each in own}:
        for xid, count in facts.xids.get((part, gpu), {}).items():
            found[xid, f"{gpu.node} {gpu.uuid}"] += count
    return tuple(f"{max(1, round(count))} x XID {xid} on {gpu}" for (xid, gpu), count in sorted(found.items()))


def receipt_table(found: WorkloadReceipt) -> ReportTable:
    """The receipt as a table of two columns."""
    total = found.sum
    unknown = "not known"
    waits = f"{age(max(found.waits))} at most, of {len(found.waits)} pods" if found.waits else unknown
    rows = [
        ("kind", found.kind or unknown),
        ("cluster", ", ".join(filter(None, found.clusters)) or "-"),
        ("pods", str(len(total.pods))),
        ("devices", f"{found.devices} of {', '.join(sorted(filter(None, total.models))) or unknown}"),
        ("wait", waits),
        ("GPU-hours", hours_text(total.hours)),
        ("busy", f"{share_text(total.used, total.observed)} of {hours_text(total.observed)} observed GPU-hours"),
        ("wasted", f"{hours_text(total.wasted)} GPU-hours"),
        ("peak memory", unknown if found.peak is None else f"{found.peak / _GIB:.1f} GiB on one device"),
        ("slowest rank", _slowest(found)),
        ("faults on its GPUs, on days on which it had them", "; ".join(found.faults) or "none seen"),
    ]
    if found.currency:
        rows.append(("cost", f"{total.cost:,.2f} {found.currency}, of that wasted {total.wasted_cost:,.2f}"))
    if total.unpriced and found.currency:
        rows.append(("without a price", f"{hours_text(total.unpriced)} GPU-hours"))
    columns = (ReportColumn("", number=False), ReportColumn("", number=False))
    return ReportTable(found.name, columns, rows, "")


def _slowest(found: WorkloadReceipt) -> str:
    if found.slowest is None:
        return "one device alone, or activity is not known"
    name, busy = found.slowest
    return f"{name}: {busy:.0%} busy; the busiest {found.fastest:.0%}"


def receipt_head(found: WorkloadReceipt) -> list[str]:
    """What the receipt is about."""
    return [f"Receipt of {found.name} from {utc(found.period[0])} to {utc(found.period[1])}"]


def receipt_facts(found: WorkloadReceipt) -> dict[str, object]:
    """The same for programs."""
    total = found.sum
    return {
        "workload": found.name,
        "workload_type": found.kind,
        "clusters": list(found.clusters),
        "from": utc(found.period[0]),
        "to": utc(found.period[1]),
        "pods": len(total.pods),
        "devices": found.devices,
        "waits_seconds": list(found.waits),
        "gpu_hours": total.hours,
        "observed_gpu_hours": total.observed,
        "used_gpu_hours": total.used,
        "peak_memory_bytes": found.peak,
        "slowest_rank": None if found.slowest is None else {"name": found.slowest[0], "busy": found.slowest[1]},
        "faults": list(found.faults),
        "currency": found.currency or None,
        "cost": total.cost if found.currency else None,
        "wasted_cost": total.wasted_cost if found.currency else None,
        "unpriced_gpu_hours": total.unpriced,
    }
