"""Asks a cluster watcher what one's own credentials do not show: the reason of a pod, and the free GPUs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

import urllib3
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from exporter.cluster.metrics.leadership import LEADER
from exporter.cluster.metrics.nodes import ALLOCATABLE, FREE, SCHEDULABLE
from exporter.cluster.metrics.pending import REASON
from exporter.cluster.scheduling.nodes.capacity import Capacity
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.config import ConfigError

_SECONDS = 10.0
_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class WatcherAnswer:
    """What a watcher exposes."""

    reasons: Mapping[tuple[str, str], PendingReason]
    """By (namespace, pod); only the oldest pods of a workload have one."""
    capacities: tuple[Capacity, ...]
    """`resource` is spelled as in the label, such as `nvidia_com_gpu`."""


def ask(url: str) -> WatcherAnswer:
    """Read the watcher's /metrics. Raises ConfigError when it cannot be reached, is no watcher or does not lead."""
    samples = _samples(url)
    if any(not each.value for each in samples[LEADER.name]):
        raise ConfigError(f"--watcher: {url} is a standby: the replica whose {LEADER.name} is 1 knows the cluster")
    reasons = {}
    for labels in (each.labels for each in samples[REASON.name]):
        if labels.get("reason") in list(PendingReason):
            reasons[labels.get("gpu_namespace", ""), labels.get("gpu_pod", "")] = PendingReason.of(labels["reason"])
    return WatcherAnswer(reasons, tuple(_capacities(samples)))


def _samples(url: str) -> Mapping[str, list[Sample]]:
    target = url.rstrip("/").removesuffix("/metrics") + "/metrics"
    found: dict[str, list[Sample]] = defaultdict(list)
    try:
        with urllib3.PoolManager() as pool:
            response = pool.request("GET", target, timeout=_SECONDS, retries=False, preload_content=False)
            body = response.read(_MAX_BYTES).decode("utf-8", "replace")
        if response.status != 200:  # noqa: PLR2004 - HTTP's OK
            raise ConfigError(f"--watcher: {target} answered {response.status}")
        for each in chain.from_iterable(family.samples for family in text_string_to_metric_families(body)):
            found[each.name].append(each)
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        raise ConfigError(f"--watcher: {target} cannot be read: {error}") from error
    return found


def _capacities(samples: Mapping[str, list[Sample]]) -> Iterable[Capacity]:
    usable = {each.labels.get("node") for each in samples[SCHEDULABLE.name] if each.value}
    free = {tuple(sorted(each.labels.items())): int(each.value) for each in samples[FREE.name]}
    nodes: dict[tuple[str, str], list[tuple[int, int, bool]]] = defaultdict(list)
    for each in samples[ALLOCATABLE.name]:
        labels, key = each.labels, tuple(sorted(each.labels.items()))
        here = (int(each.value), free.get(key, 0), labels.get("node") in usable)
        nodes[labels.get("model", ""), labels.get("resource", "")].append(here)
    found = (Capacity.of(*key, counts) for key, counts in sorted(nodes.items()))
    return (each for each in found if each.offered)
