"""Writes what Prometheus knows of a pod, as lines and as facts for JSON."""

from collections.abc import Container, Iterable
from dataclasses import asdict, dataclass
from statistics import fmean

from exporter.cluster.kubernetes.objects.records import Amounts, Pod
from exporter.cluster.scheduling.nodes.node_selection import available, selected, tolerated
from exporter.cluster.view import ClusterView
from exporter.commands.explain.past.activity import DeviceActivity, PodActivity, pod_activity
from exporter.commands.explain.past.capacity import IdleGpus, PastWaits, idle_gpus, past_waits
from exporter.commands.explain.past.causes import CauseFound, causes
from exporter.commands.prometheus.client import PrometheusClient
from exporter.commands.terminal import aligned
from exporter.gpu_names import resource_label
from exporter.time_text import age

_SHOWN = 10
"""How many rows of idle GPUs are shown."""
_IDLE = ("NODE", "MODEL", "IDLE GPUS", "ALLOCATED TO")
_DEVICES = ("DEVICE", "NODE", "BUSY", "AT MOST", "TENSOR")


@dataclass(frozen=True, slots=True)
class PastFindings:
    """What is added to the explanation of a pod."""

    lines: list[str]
    facts: dict[str, object]


@dataclass(frozen=True, slots=True)
class PastExplainer:
    """Asks Prometheus about pods."""

    client: PrometheusClient
    cluster: str
    """The value of the label `cluster`; empty where the store has one cluster."""

    def pending(self, pod: Pod, view: ClusterView) -> PastFindings:
        """About a pending pod. Raises PrometheusError."""
        nodes = _usable(pod, view)
        found = idle_gpus(self.client, view.now, self.cluster, pod, nodes)
        waits = past_waits(self.client, view.now, self.cluster, pod)
        lines = ["", *_idle_text(found, pod.requests), *_unchecked(nodes), "", *_waits_text(waits)]
        facts: dict[str, object] = {"idle_gpus": [*map(asdict, found)], "waits": [*map(asdict, waits)]}
        return PastFindings(lines, facts)

    def running(self, pod: Pod, now: float) -> PastFindings:
        """About a pod that runs. Raises ConfigError."""
        activity = pod_activity(self.client, now, self.cluster, (pod.namespace, pod.name))
        found = causes(activity)
        known = any(each.busy is not None for each in activity.devices)
        lines = [*_activity_text(activity), "", *_causes_text(found, known=known), *_missing(activity.not_seen)]
        facts: dict[str, object] = {
            "devices": [asdict(each) for each in activity.devices],
            "causes": [_cause_facts(each) for each in found],
            "not_seen_in_prometheus": list(activity.not_seen),
        }
        return PastFindings(lines, facts)


def _usable(pod: Pod, view: ClusterView) -> Container[str] | None:
    """The nodes on which the pod could run if devices were free; None where the nodes are not known."""
    if view.nodes is None:
        return None
    return {
        node.name
        for node in view.nodes
        if selected(pod.constraints, node.name, dict(zip(node.labels[::2], node.labels[1::2], strict=True)))
        and tolerated(pod.constraints, node.taints)
        and available(pod.constraints, node)
    }


def _idle_text(found: list[IdleGpus], requests: Amounts) -> Iterable[str]:
    if not found:
        yield "No allocated GPU that would fit it was idle for the last hour."
        return
    needed = {resource_label(name): count for name, count in requests}
    total = sum(each.count for each in found)
    enough = _enough(found, needed)
    text = "; on one node there are enough for it" if enough else "; on no node there are enough for it"
    yield f"Allocated GPUs that would fit it and were idle for the last hour: {total}{text}"
    rows = [_idle_row(each) for each in found[:_SHOWN]]
    yield from (f"  {line}" for line in aligned([_IDLE, *rows]))
    if len(found) > _SHOWN:
        yield f"  and {len(found) - _SHOWN} more rows"


def _idle_row(each: IdleGpus) -> tuple[str, ...]:
    return each.node, each.model or "unknown", str(each.count), f"{each.namespace}/{each.pod}"


def _enough(found: list[IdleGpus], needed: dict[str, int]) -> bool:
    """Whether some node has as many idle devices as the pod asks for, of each resource."""
    sums: dict[tuple[str, str], int] = {}
    for each in found:
        sums[each.node, each.resource] = sums.get((each.node, each.resource), 0) + each.count
    nodes = {node for node, _ in sums}
    return any(all(sums.get((node, name), 0) >= count for name, count in needed.items()) for node in nodes)


def _unchecked(nodes: Container[str] | None) -> list[str]:
    return ["  The nodes are not known, so it is not checked whether the pod may use them."] if nodes is None else []


def _waits_text(found: list[PastWaits]) -> Iterable[str]:
    if not found:
        yield "No pod like it was scheduled in the last 7 days, so no waits are shown."
    for each in found:
        where = f"namespace {each.namespace}" if each.namespace else "all namespaces"
        quantiles = [
            f"{name} {'at most ' if seconds >= 60 else ''}{age(seconds)}"  # noqa: PLR2004 - a minute
            for name, seconds in (("p50", each.p50), ("p95", each.p95))
            if seconds is not None
        ]
        yield (
            f"In 7 days, {each.pods:.0f} pods of {where} with {each.size} {each.resource} waited: "
            f"{', '.join(quantiles) or 'not known'}"
        )


def _activity_text(found: PodActivity) -> Iterable[str]:
    known = [each.busy for each in found.devices if each.busy is not None]
    if known:
        devices = f"{len(known)} of its {len(found.devices)} GPUs" if len(known) < len(found.devices) else "its GPUs"
        yield f"In the last hour {devices} were busy in {fmean(known):.0%} of the time."
    if found.devices:
        yield ""
        yield from (f"  {line}" for line in aligned([_DEVICES, *map(_device_row, found.devices)]))


def _device_row(each: DeviceActivity) -> tuple[str, ...]:
    return each.device, each.node, *map(_share, (each.busy, each.busiest, each.tensor))


def _share(value: float | None) -> str:
    return "not known" if value is None else f"{value:.1%}"


def _causes_text(found: list[CauseFound], *, known: bool) -> Iterable[str]:
    if not found:
        none = "None of the known causes of low utilization shows in the last hour."
        yield none if known else "How busy its GPUs were in the last hour is not known, and nothing else shows a cause."
        return
    yield "Likely causes of low utilization, the likeliest first:"
    for number, each in enumerate(found, 1):
        yield f"  {number}. {each.cause}: {each.text}"
        yield f"     {each.cause.meaning} To do: {each.cause.remedy}"


def _missing(not_seen: tuple[str, ...]) -> Iterable[str]:
    if not_seen:
        yield from ("", "Not in Prometheus, so that causes which follow from it are not judged:")
    yield from (f"  {each}" for each in not_seen)


def _cause_facts(each: CauseFound) -> dict[str, object]:
    return {
        "cause": str(each.cause),
        "weight": round(each.weight, 3),
        "text": each.text,
        "meaning": each.cause.meaning,
        "remedy": each.cause.remedy,
    }
