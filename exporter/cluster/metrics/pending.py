"""Families about GPU pods that are not running yet: how many, since when, and why."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from exporter.cluster.kubernetes.records import Pod
from exporter.cluster.scheduling.free_capacity import node_groups, requested
from exporter.cluster.scheduling.node_selection import by_name
from exporter.cluster.scheduling.pending_reason import Cluster, reason
from exporter.cluster.view import View
from exporter.gpu_names import spelled
from exporter.identity_labels import NAMESPACE, POD, of_namespace, of_pod, of_workload
from exporter.metric import Family, Kind, Labels, Metric

PODS = Metric(
    "gpugauge_pending_pods",
    Kind.GAUGE,
    "GPU pods that are not running yet.",
    (*NAMESPACE, "resource", "reason"),
)
DEVICES = Metric(
    "gpugauge_pending_devices",
    Kind.GAUGE,
    "GPUs that pods which are not running yet ask for.",
    (*NAMESPACE, "resource", "reason"),
)
OLDEST = Metric(
    "gpugauge_pending_oldest_timestamp_seconds",
    Kind.GAUGE,
    "Since when the oldest GPU pod that is not running yet has been waiting.",
    (*NAMESPACE, "reason"),
)
SINCE = Metric(
    "gpugauge_pending_pod_since_timestamp_seconds",
    Kind.GAUGE,
    "Since when this GPU pod could have been scheduled, as seen by this watcher; the oldest pods only.",
    (*POD, "resource", "workload", "workload_type"),
)
REASON = Metric(
    "gpugauge_pending_pod_reason",
    Kind.GAUGE,
    "Why this GPU pod is not running yet; the oldest pods only.",
    (*POD, "workload", "workload_type", "reason"),
)
UNTRACKED = Metric(
    "gpugauge_pending_pods_untracked",
    Kind.GAUGE,
    "GPU pods that wait long enough for series of their own but are too many.",
)
METRICS = (PODS, DEVICES, OLDEST, SINCE, REASON, UNTRACKED)

_MOST_JUDGEMENTS = 200_000
"""Pods are judged against groups of nodes at most so often in a pass, which takes about a second; beyond it the
scheduler's message alone decides."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod that is not running yet, and why."""

    pod: Pod
    reason: str

    @property
    def since(self) -> float:
        """When its wait began, seconds since the epoch; a gated pod has waited since it was created."""
        return self.pod.created if self.pod.schedulable_since is None else self.pod.schedulable_since


def pending_families(view: View, tracked: int, after: float) -> list[Family]:
    """Nothing while the pods are not known; `tracked` and `after` bound the series of single pods."""
    if view.pods is None:
        return []
    waiting = waiting_pods(view)
    own, untracked = _tracked(waiting, tracked, view.now - after)
    return [
        *_counts(waiting),
        Family(OLDEST, _oldest(waiting)),
        Family(SINCE, [sample for each in own for sample in _since(each)]),
        Family(REASON, [(_reason_labels(each), 1) for each in own]),
        Family(UNTRACKED, [(Labels(()), untracked)]),
    ]


def waiting_pods(view: View) -> list[Waiting]:
    """GPU pods that are to run and do not run yet. One that is being deleted waits for nothing."""
    pods = [pod for pod in view.pods or () if pod.phase == "Pending" and not pod.deleting]
    cluster = _cluster(view, pods)
    known: dict[object, str] = {}
    found = []
    for pod in pods:
        # Pods of one workload mostly say the same: each different case is judged once.
        case = (bool(pod.node), pod.gated, _said(pod), pod.needs, pod.requests)
        if case not in known:
            known[case] = reason(pod, cluster)
        found.append(Waiting(pod, known[case]))
    return found


def _said(pod: Pod) -> tuple[str, str, str] | None:
    said = pod.scheduled
    return None if said is None else (said.status, said.reason, said.message)


def _cluster(view: View, waiting: list[Pod]) -> Cluster:
    """The nodes to judge by, unless they are unknown or there are too many different cases."""
    judged = [pod for pod in waiting if pod.scheduled and pod.scheduled.reason == "Unschedulable" and not pod.node]
    if view.nodes is None or not judged:
        return Cluster(view.gpus)
    cases = len({(pod.needs, pod.requests, pod.scheduled and pod.scheduled.message) for pod in judged})
    if any(by_name(pod.needs) for pod in judged) and cases * len(view.nodes) > _MOST_JUDGEMENTS:
        return Cluster(view.gpus)
    groups = node_groups(view.nodes, requested(view.pods or ()), judged)
    return Cluster(view.gpus, groups if cases * len(groups) <= _MOST_JUDGEMENTS else None)


def _tracked(waiting: Iterable[Waiting], most: int, before: float) -> tuple[list[Waiting], int]:
    """The oldest schedulable pods that have waited long enough, and how many more there are."""
    old = [each for each in waiting if each.pod.schedulable_since is not None and each.since < before]
    old.sort(key=lambda each: (each.since, each.pod.uid))
    return old[:most], max(0, len(old) - most)


def _counts(waiting: Iterable[Waiting]) -> tuple[Family, Family]:
    pods: Counter[tuple[str, str, str]] = Counter()
    devices: Counter[tuple[str, str, str]] = Counter()
    for each in waiting:
        for resource, count in _by_label(each.pod):
            key = (each.pod.namespace, resource, each.reason)
            pods[key] += 1
            devices[key] += count
    return (
        Family(PODS, [(_count_labels(*key), count) for key, count in sorted(pods.items())]),
        Family(DEVICES, [(_count_labels(*key), count) for key, count in sorted(devices.items())]),
    )


def _by_label(pod: Pod) -> list[tuple[str, int]]:
    """Devices by resource as labels spell it; two names may be spelled alike."""
    devices: Counter[str] = Counter()
    for name, count in pod.requests:
        devices[spelled(name)] += count
    return sorted(devices.items())


def _count_labels(namespace: str, resource: str, why: str) -> Labels:
    return Labels((*of_namespace(namespace), ("resource", resource), ("reason", why)))


def _oldest(waiting: Iterable[Waiting]) -> list[tuple[Labels, int | float]]:
    since: dict[tuple[str, str], float] = defaultdict(lambda: float("inf"))
    for each in waiting:
        key = (each.pod.namespace, each.reason)
        since[key] = min(since[key], each.since)
    return [(Labels((*of_namespace(space), ("reason", why))), at) for (space, why), at in sorted(since.items())]


def _since(each: Waiting) -> Iterable[tuple[Labels, int | float]]:
    for resource, _ in _by_label(each.pod):
        yield Labels((*of_pod(each.pod), ("resource", resource), *of_workload(each.pod))), each.since


def _reason_labels(each: Waiting) -> Labels:
    return Labels((*of_pod(each.pod), *of_workload(each.pod), ("reason", each.reason)))
