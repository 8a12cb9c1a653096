"""Counts the series that Prometheus has in its head block after a day on which pods come and go, in each label mode.

The day is simulated: source, pipeline and rendering are real, and every distinct series of every exposition counts.
What dcgm-exporter has for the same pods is computed: its metrics for each device, once for each set of pod labels.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, islice

from bench.fixture import ROOT
from bench.stages import RULES, STYLE, exporter_metrics
from bench.table import BenchSection, Figure
from exporter.exposition.page import plain_page
from exporter.exposition.render import formatted_samples
from exporter.node.attribution.allocation import Allocation, Allocations
from exporter.node.counters_watch import load_counters
from exporter.node.devices.fields.device_source import ReaderConfig
from exporter.node.devices.series.labels import LabelStyle
from exporter.node.pipeline import NodePipeline, NodeSources
from exporter.node.simulation.scenario import Scenario, load
from exporter.node.simulation.source import SimulatedSource

CHANGES = 20
"""How often a pod of each device is replaced by another one, with an unallocated time between them."""
DAY = 86_400.0
EPOCH = 1_800_000_000.0
WARM_UP = 3
"""Collections until every field has a value."""


@dataclass(frozen=True, slots=True)
class DayOfPods:
    """A node and its pods on that day."""

    name: str
    scenario: str
    metrics_of_dcgm_exporter: int
    """Series of one device with its default file, as measured: docs/compared-with-dcgm-exporter.md."""
    replicas: int = 1
    """Pods that each device has at a time."""
    label_budget: bool = True
    """Whether the default may have no more series than dcgm-exporter."""


DAYS = (
    # The labels of dcgm-exporter are on the same metrics here, and series of our own come on top of them.
    DayOfPods("8 GPUs", "whole", 23, label_budget=False),
    DayOfPods("56 MIG devices", str(ROOT / "tests/fakes/scenarios/mig_56.json"), 17),
    DayOfPods("8 GPUs, 4 pods on each through replicas", "whole", 23, replicas=4),
)
MODES = (
    ("default", STYLE),
    ("--allocation-labels=none", replace(STYLE, allocation_labels=False)),
)


class PodsOfADay:
    """A kubelet whose pods are replaced one after another, on all devices at once."""

    name = "kubelet"

    def __init__(self, devices: list[str], replicas: int) -> None:
        self._replicas, self._numbers = replicas, count()
        self._running = {each: deque(islice(self._numbers, replicas)) for each in devices}
        self.label_sets: set[tuple[str, int | None]] = set()
        """What dcgm-exporter's series have had as labels: of each device its pods, or none while it has none.

        It names one pod of a device at a time, in no order: of a shared device in time each of them.
        """

    def read(self) -> Allocations:
        """List every pod, with a replica where they share devices."""
        found = []
        for device, pods in self._running.items():
            self.label_sets.update((device, pod) for pod in pods or (None,))
            for pod in pods:
                device_id = f"{device}::{pod}" if self._replicas > 1 else device
                found.append(Allocation("team", f"train-{pod}", "main", "nvidia.com/gpu", device_id))
        return tuple(sorted(found))

    def close(self) -> None:
        """Do nothing."""

    def end_one(self) -> None:
        """End the oldest pod of every device."""
        for pods in self._running.values():
            pods.popleft()

    def begin_one(self) -> None:
        """Begin a pod on every device."""
        for pods in self._running.values():
            pods.append(next(self._numbers))


def cardinality_section(changes: int = CHANGES) -> BenchSection:
    """Count the series of each day, in each label mode."""
    rows = [row for day in DAYS for row in _rows(day, changes)]
    remarks = (
        f"{changes} pods of each device are replaced, with a time between in which it is unallocated or has one fewer.",
        "dcgm-exporter: computed, from its series of a device and the labels that they have had.",
        "On whole GPUs the default has all of dcgm-exporter's series and, on top, those that it has not.",
    )
    return BenchSection("Series in Prometheus after a day", rows, remarks)


def _rows(day: DayOfPods, changes: int) -> Iterator[Figure]:
    counted = {mode: _series(day, style, changes) for mode, style in MODES}
    computed = next(iter(counted.values()))[1] * day.metrics_of_dcgm_exporter
    yield Figure(f"{day.name}: dcgm-exporter", computed, "")
    for mode, (series, _) in counted.items():
        share = 1.0 if mode == "default" else 0.2
        budget = computed * share if day.label_budget or mode != "default" else None
        yield Figure(f"{day.name}: {mode}", series, "", budget, f"{series / computed:.2f} of dcgm-exporter")


def _series(day: DayOfPods, style: LabelStyle, changes: int) -> tuple[int, int]:
    """How many series there are at the end, and how many sets of pod labels dcgm-exporter's have had."""
    scenario, now = load(day.scenario), [EPOCH]
    kubelet = PodsOfADay(_devices(scenario), day.replicas)
    counters = load_counters(None).counters
    config = ReaderConfig("simulated", counters.wanted, DAY / changes / 2, scenario=day.scenario)
    source = SimulatedSource(config, lambda: now[0])
    pipeline = NodePipeline(NodeSources(source, kubelet), counters, style, RULES, clock=lambda: now[0])
    metrics, found = exporter_metrics(), set[bytes]()

    def collect() -> None:
        now[0] += config.interval
        snapshot = pipeline.collect()
        metrics.observe(snapshot)
        page = plain_page(formatted_samples(snapshot.families, metrics.registry()).text())
        found.update(line.rpartition(b" ")[0] for line in page.splitlines() if not line.startswith(b"#"))

    for _ in range(WARM_UP):
        collect()
    for _ in range(changes):
        kubelet.end_one()
        collect()
        kubelet.begin_one()
        collect()
    return len(found), len(kubelet.label_sets)


def _devices(scenario: Scenario) -> list[str]:
    gpus = scenario.document.devices
    return [
        device
        for gpu in gpus
        for device in [each.uuid for part in gpu.instances for each in part.compute] or [gpu.uuid]
    ]
