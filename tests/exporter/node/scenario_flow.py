"""Expositions of the whole node exporter for scenarios: any source of devices, its allocations, a fixed clock."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from exporter.exposition.exporter_metrics import ConfigState, ExporterMetrics
from exporter.exposition.exposition import Exposition
from exporter.exposition.render import render
from exporter.node.attribution.matching.rules import AttributionRules
from exporter.node.counters_watch import load_counters
from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.fields.device_source import ReaderConfig
from exporter.node.devices.fields.field import fields
from exporter.node.devices.series.labels import LabelStyle
from exporter.node.pipeline import NodePipeline, NodeSources
from exporter.node.simulation.kubelet import ScenarioKubelet
from exporter.node.simulation.process_finder import ScenarioProcessFinder
from exporter.node.simulation.scenario import builtin, load
from exporter.node.simulation.source import SimulatedSource
from exporter.source import Source, SourceError

EPOCH = 1_800_000_000.0
HOSTNAME = "node-1"
STYLE = LabelStyle(HOSTNAME)
INTERVAL = 10.0
TEST_SCENARIOS = Path(__file__).parents[2] / "fakes" / "scenarios"
SCENARIOS = {name: name for name in builtin()} | {
    path.stem: str(path) for path in sorted(TEST_SCENARIOS.glob("*.json"))
}
"""What `load` takes, by scenario name: the scenarios of the package and those of the tests."""

VOLATILE = (
    (re.compile(r'((?<![a-z_])version|python_version)="[^"]*"'), r'\1="*"'),
    (re.compile(r"^(gpugauge_source_read_duration_seconds\{.*\}) .*$", re.MULTILINE), r"\1 *"),
)
"""What differs from release to release or from run to run, and how it is written in golden files."""

DCGM_COUNTER = re.compile(r"^(# TYPE DCGM_\w+) counter$", re.MULTILINE)

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def default_counters():
    return load_counters(None).counters


def every_counter():
    """A counters file with every known field that can be in one; fields that are text become labels."""
    known = (field for field in fields().values() if field.kind != "binary")
    rows = (f"{f.names[0]}, {'label' if f.kind == 'string' else 'gauge'}, Field {f.id}." for f in known)
    return parse("\n".join(rows), "every.csv")


def config_of(source, counters, **more):
    return ReaderConfig(source, counters.wanted, INTERVAL, **more)


@dataclass
class CollectedFlow:
    """A node exporter without its threads: pipeline, exporter metrics and rendering."""

    pipeline: NodePipeline
    exporter_metrics: ExporterMetrics
    registry: CollectorRegistry

    def exposition(self) -> Exposition:
        """Make one collection, at the time that the clock shows, and render it."""
        snapshot = self.pipeline.collect()
        self.exporter_metrics.observe(snapshot)
        return render(snapshot.families, self.registry)


def flow_over(
    devices,
    kubelet,
    counters,
    clock=lambda: EPOCH,
    *,
    style=STYLE,
    jobs=None,
    known_pods=None,
    processes=None,
    offer=None,
    dra=None,
    **more,
) -> CollectedFlow:
    """A flow over these sources; all but `devices` may be None."""
    sources = NodeSources(devices, kubelet, jobs, known_pods, processes, offer, dra)
    options = {"clock": clock, "monotonic": clock, "interval": INTERVAL} | more
    pipeline = NodePipeline(sources, counters, style, AttributionRules(), lambda: 0, **options)
    config = ConfigState("0" * 64, successful=True, at=EPOCH)
    exporter_metrics = ExporterMetrics({"node": HOSTNAME}, config=lambda: config)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(exporter_metrics)
    return CollectedFlow(pipeline, exporter_metrics, registry)


class FixedSource(NamedTuple):
    """A source that always gives the same answer."""

    name: str
    answer: Any

    def read(self):
        return self.answer

    def close(self): ...


@dataclass
class BreakableSource:
    """A source that fails while a test has set a reason."""

    source: Source[Any]
    reason: str = ""

    @property
    def name(self) -> str:
        return self.source.name

    def read(self):
        if self.reason:
            raise SourceError(self.reason, "this failure was set by a test")
        return self.source.read()

    def close(self):
        self.source.close()


class SimulatedFlow:
    """A flow over the simulated source, at a scenario time (seconds) that a test sets."""

    def __init__(self, name, counters=None, t=0.0, *, attributed=True, processes=False, **more):
        counters = counters or default_counters()
        which = SCENARIOS.get(name, name)
        scenario = load(which)
        self.t = 0.0
        self._begin = scenario.begins(EPOCH)
        source = SimulatedSource(config_of("simulated", counters, scenario=which, processes=processes), self.now)
        self.devices = BreakableSource(source)
        self.kubelet = BreakableSource(ScenarioKubelet(scenario, 0.0, lambda: self.t)) if attributed else None
        finder = ScenarioProcessFinder(scenario, self._begin, self.now) if processes else None
        self.flow = flow_over(self.devices, self.kubelet, counters, self.now, processes=finder, **more)
        self.t = t

    def now(self) -> float:
        return self._begin + self.t

    def exposition(self, t: float | None = None) -> Exposition:
        """The exposition of a collection at scenario time `t`, or at the time set before."""
        self.t = self.t if t is None else t
        return self.flow.exposition()


def without_volatile(text: str) -> str:
    for pattern, instead in VOLATILE:
        text = pattern.sub(instead, text)
    return text


def _series(families) -> Series:
    found: Series = {}
    for family in families:
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def series_of(text: bytes) -> Series:
    """Every series of an exposition in the text format, as prometheus_client parses it; none may be there twice.

    That parser adds `_total` to the name of every counter, which counters with DCGM's names do not have.
    """
    return _series(text_families(DCGM_COUNTER.sub(r"\1 untyped", text.decode())))


def openmetrics_series_of(text: bytes) -> Series:
    """The same of an exposition in the OpenMetrics format."""
    return _series(openmetrics_families(text.decode()))
