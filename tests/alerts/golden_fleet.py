"""A fleet as golden expositions show it: whole, MIG-enabled and shared GPUs, scraped, with a watcher beside."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.alerts.promtool import RuleFixture
from tests.alerts.targets import on_watcher

GOLDEN = Path(__file__).parents[1] / "golden"
_LINE = re.compile(r"^(\w+)\{(.*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
KINDS = {"whole": ("nvidia_com_gpu", 8), "mig": ("nvidia_com_mig_1g_10gb", 2), "time_sliced": ("nvidia_com_gpu", 8)}
"""Golden files, with what the node offers."""


def exposed(kind: str, node: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """Name, labels and value of each sample of the golden file, as that of this node."""
    for line in (GOLDEN / f"{kind}.prom").read_text().splitlines():
        if found := _LINE.match(line):
            labels = dict(_LABEL.findall(found[2]))
            renamed = {key: node if value == "node-1" else value for key, value in labels.items()}
            yield found[1], renamed, found[3]


def node(fixture: RuleFixture, kind: str, name: str, samples: int, *, instance: str, begin: int = 0) -> None:
    """Everything that the exporter of this node exposes, for so many samples after the first ones left out."""
    target = {"job": "gpugauge-node", "instance": instance}
    head = f"_x{begin} " if begin else ""
    for metric, labels, value in exposed(kind, name):
        busy = metric.endswith("_busy_ratio")
        plain = "0.9" if busy else "1" if value == "*" else value
        values = f"{30 * begin}+30x{samples}" if "_timestamp_seconds" in metric else f"{plain}x{samples}"
        fixture.add(metric, {**target, **labels}, f"{head}{values} stale")
    fixture.add("up", {**target, "node": name}, f"{head}1x{samples} stale")


def watcher(fixture: RuleFixture, nodes: dict[str, str], samples: int) -> None:
    """A watcher that knows these nodes, by name with their kind, all of them in order."""
    fixture.add("up", {"job": "gpugauge-cluster", "instance": "watcher-0:9410"}, f"1x{samples} stale")
    for kind in ("pods", "nodes", "namespaces"):
        sync = {"object": kind}
        on_watcher(fixture, "gpugauge_watch_last_sync_timestamp_seconds", sync, f"0+30x{samples} stale")
    pod = {"gpu_namespace": "ml", "gpu_pod": "p"}
    on_watcher(fixture, "gpugauge_gpu_pod_start_timestamp_seconds", pod, f"0x{samples} stale")
    on_watcher(fixture, "gpugauge_gpu_pod_phase", {**pod, "phase": "Running"}, f"1x{samples} stale")
    for name, kind in nodes.items():
        resource, number = KINDS[kind]
        sharing = "time-slicing" if kind == "time_sliced" else "unknown"
        info = {"node": name, "pool": "a", "rack": "r1", "sharing": sharing}
        on_watcher(fixture, "gpugauge_node_info", info, f"1x{samples} stale")
        for state in ("schedulable", "device_plugin_registered"):
            metric = f"gpugauge_node_{'gpu_' if state == 'schedulable' else ''}{state}"
            on_watcher(fixture, metric, {"node": name}, f"1x{samples} stale")
        for amount in ("capacity", "allocatable", "requested", "free"):
            value = 0 if amount == "free" else number
            offered = {"node": name, "resource": resource, "model": "H100"}
            on_watcher(fixture, f"gpugauge_node_gpu_{amount}", offered, f"{value}x{samples} stale")
