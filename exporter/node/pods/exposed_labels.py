"""Makes labels of series from the labels and annotations of a pod. No I/O.

The author of a pod chooses their names and values: a name never becomes one that the exporter, the rules or a scrape
give a meaning, and number and length are limited.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from exporter.metric import LabelPairs
from exporter.node.pods.options import PodOptions
from exporter.node.pods.pod import NodePod

MAX_LABELS = 24
"""Of one pod."""
MAX_VALUE = 128
"""The longest value, in characters. One of a label has 63 at most, one of an annotation has no limit of its own."""
MAX_NAME = 128
"""The longest name that is given: a longer one is left out."""
UID = "pod_uid"
_RESERVED = frozenset({
    "gpu", "uuid", "UUID", "pci_bus_id", "device", "modelName", "model_name", "model", "hostname", "Hostname",
    "node", "nvlink", "nvswitch", "cpu", "cpucore", "cpu_serial", "namespace", "pod", "container", "pod_namespace",
    "pod_name", "container_name", "pod_uid", "vgpu", "hpc_job", "err_code", "err_msg", "window_size_in_ms", "xid",
    "clock_event", "health_watch", "health_error_code", "peer_gpu", "link_status", "resource", "sharing", "reason",
    "workload", "workload_type", "job", "instance", "cluster", "service", "endpoint", "region", "environment",
    "prometheus", "prometheus_replica", "replica", "team", "severity", "component", "area", "notify", "alertname",
    "alertstate", "le", "quantile",
})  # fmt: skip
"""Names of our labels, of those that a scrape adds or an alert has: with `honor_labels: true` a series' own win."""
_RESERVED_BEGINNINGS = ("_", "exported_", "gpu_", "GPU_", "dra_", "DCGM_", "gpugauge_")
_NOT_IN_NAME = re.compile(r"[^a-zA-Z0-9_]")


class ExposedLabels(NamedTuple):
    """The labels of series that a pod gives."""

    pairs: LabelPairs = ()
    """In the order of their names."""
    left_out: int = 0
    """How many are left out because there are too many, or because a name is too long or given twice."""
    shortened: int = 0
    """How many values are cut because they are too long."""


NO_LABELS = ExposedLabels()


def exposed_labels(pod: NodePod, options: PodOptions) -> ExposedLabels:
    """The labels and annotations of the pod that are meant, as labels of series, and its uid where that is asked for.

    Where several names become one, each gets a number, in the order of the names: the result depends on this pod alone.
    """
    found = sorted(_meant(pod, options))
    names = Counter(label_name(key) for key, _ in found)
    unique: dict[str, str] = {}
    for name, value in _numbered(found, names):  # a name that only looks numbered is left out
        unique.setdefault(name, value)
    usable = sorted((name, value) for name, value in unique.items() if len(name) <= MAX_NAME)[:MAX_LABELS]
    uid = ((UID, pod.uid),) if options.uid and pod.uid else ()
    return ExposedLabels(
        (*uid, *((name, value[:MAX_VALUE]) for name, value in usable)),
        len(found) - len(usable),
        sum(len(value) > MAX_VALUE for _, value in usable),
    )


def _meant(pod: NodePod, options: PodOptions) -> Iterator[tuple[str, str]]:
    """Names and values. Of a label and an annotation of the same name the label counts; empty values are no labels."""
    annotations = {key: value for key, value in pod.annotations.items() if key in options.annotations}
    labels = {key: value for key, value in pod.labels.items() if key in options.labels}
    return ((key, value) for key, value in (annotations | labels).items() if value)


def _numbered(found: Iterable[tuple[str, str]], names: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    seen: Counter[str] = Counter()
    for key, value in found:
        name = label_name(key)
        seen[name] += 1
        yield (f"{name}_conflict{seen[name]}" if names[name] > 1 else name), value


def label_name(key: str) -> str:
    """Spell a name as that of a label of series: as dcgm-exporter does, or behind `label_` where it is reserved."""
    name = _NOT_IN_NAME.sub("_", key)
    if name in _RESERVED or name.startswith(_RESERVED_BEGINNINGS) or name[:1].isdigit():
        return f"label_{name}"
    return name
