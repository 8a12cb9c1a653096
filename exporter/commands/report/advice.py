"""What would be enough for a workload: a smaller MIG profile or a part of a GPU, and how to share. No I/O, no state."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from exporter.commands.mig.models import MEDIA, MigProfile, model_of
from exporter.commands.report.usage import UsageEntry

NEEDED_HOURS = 72.0
NEEDED_COVERAGE = 0.8
_MARGIN = 0.8
"""What may be used of a smaller device at most: the next run may need more."""
_GIGABYTE = 1e9
_PARTS = (8, 4, 3, 2)
"""Parts of a GPU that are advised where it has no MIG."""


@dataclass(frozen=True, slots=True)
class WorkloadNeed:
    """What a workload used, of devices that it had alone; the day with the largest value counts."""

    name: tuple[str, str, str]
    """(cluster, namespace, workload)."""
    workload_class: str
    model: str
    profile: str
    """Empty for whole GPUs."""
    device_share: float
    """What part of a GPU each of its devices is."""
    hours: float
    """How long it ran: of each part of the time, its longest device."""
    coverage: float
    """Share of the hours in which activity and memory are known."""
    busy_p95: float | None
    memory_p99: float | None
    memory_total: float | None


@dataclass(frozen=True, slots=True)
class Advice:
    """What would be enough, and why; or why nothing is advised."""

    need: WorkloadNeed
    device: str
    """A MIG profile, or a part of a GPU; empty where nothing smaller is advised."""
    other_model: str
    """A GPU with less memory into which it fits; by memory only."""
    sharing: str
    reason: str


def needs(found: Iterable[UsageEntry]) -> list[WorkloadNeed]:
    """What each workload used of one kind of device; a workload with devices of several kinds has several rows."""
    grouped: dict[tuple[str, ...], list[UsageEntry]] = {}
    for entry in found:
        pod, facts = entry.pair.pod, entry.facts
        if not entry.shared and facts.model:
            key = (pod.cluster, pod.namespace, entry.owner.workload, facts.model, facts.profile)
            grouped.setdefault(key, []).append(entry)
    return [_need(key, own) for key, own in sorted(grouped.items())]


def _need(key: tuple[str, ...], own: list[UsageEntry]) -> WorkloadNeed:
    longest: dict[object, float] = {}
    for entry in own:
        longest[entry.part_start] = max(longest.get(entry.part_start, 0.0), entry.wall_hours)
    wall = sum(entry.wall_hours for entry in own)
    known = sum(min(entry.observed_hours, entry.memory_hours) for entry in own)
    facts = own[-1].facts
    return WorkloadNeed(
        (key[0], key[1], key[2]),
        own[-1].owner.workload_class,
        facts.model,
        facts.profile,
        facts.share,
        sum(longest.values()),
        known / wall if wall else 0.0,
        max((e.busy_p95 for e in own if e.busy_p95 is not None), default=None),
        max((e.memory_p99 for e in own if e.memory_p99 is not None), default=None),
        max((e.facts.memory for e in own if e.facts.memory is not None), default=None),
    )


def advice(need: WorkloadNeed, memories: Mapping[str, float]) -> Advice:
    """Advise on one workload. `memories` has the bytes of a whole GPU of each model of the fleet."""
    sharing = _sharing(need)
    if need.hours < NEEDED_HOURS or need.coverage < NEEDED_COVERAGE:
        text = (
            f"no advice: {need.hours:.0f} h of the {NEEDED_HOURS:.0f} h and {need.coverage:.0%} of the "
            f"{NEEDED_COVERAGE:.0%} coverage that it needs"
        )
        return Advice(need, "", "", "", text)
    if need.busy_p95 is None or need.memory_p99 is None:
        return Advice(need, "", "", "", "no advice: activity or memory is not known")
    activity, memory = need.busy_p95 * need.device_share, need.memory_p99
    device = _profile(need, activity, memory) if model_of(need.model) else _part(need, activity, memory)
    other = _other_model(need, memory, memories)
    return Advice(need, device, other, sharing, _reason(need, device))


def _profile(need: WorkloadNeed, activity: float, memory: float) -> str:
    """The smallest profile of the same model that is smaller than what the workload has; empty where none is."""
    model = model_of(need.model)
    assert model is not None
    own = model.profile(need.profile)
    limit = own.memory if own else model.memory
    # A whole GPU is more than its largest profile by little, and to partition it for that gains nothing.
    candidates = [each for each in model.profiles if each.memory < limit and MEDIA not in each.name]
    fitting = (each for each in candidates if _fits(each, model.compute, activity, memory))
    return next((each.name for each in fitting), "")


def _fits(profile: MigProfile, compute: int, activity: float, memory: float) -> bool:
    return activity * compute <= profile.compute * _MARGIN and memory <= profile.gigabytes * _GIGABYTE * _MARGIN


def _part(need: WorkloadNeed, activity: float, memory: float) -> str:
    """The smallest part of a GPU without MIG; empty where half of it is too small or its memory is not known."""
    if need.memory_total is None:
        return ""
    wanted = max(activity, memory / need.memory_total) / _MARGIN
    return next((f"1/{part} of a GPU" for part in _PARTS if wanted <= 1 / part), "")


def _other_model(need: WorkloadNeed, memory: float, memories: Mapping[str, float]) -> str:
    """The model of the fleet with the least memory that is enough, where it has less than the own one."""
    own = memories.get(need.model)
    if own is None or need.profile:
        return ""
    smaller = [(size, name) for name, size in memories.items() if size < own and memory <= size * _MARGIN]
    return min(smaller)[1] if smaller else ""


def _sharing(need: WorkloadNeed) -> str:
    match need.workload_class:
        case "serving":
            return "MIG or a whole GPU: latency does not depend on others there"
        case "interactive":
            return "time-slicing: people pause, and bursts may use a whole GPU"
    return "a whole GPU or MIG"


def _reason(need: WorkloadNeed, device: str) -> str:
    seen = f"p95 busy {need.busy_p95:.0%}, p99 memory {(need.memory_p99 or 0) / (1 << 30):.1f} GiB"
    data = f"of {need.hours:.0f} h with {need.coverage:.0%} coverage"
    fits = f"fits with {1 - _MARGIN:.0%} to spare" if device else "no smaller device has 20 % to spare"
    return f"{seen} {data}: {fits}"
