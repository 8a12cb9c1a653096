"""Pages of the whole flow for scenarios: any source of devices, the holders as the kubelet, a fixed clock."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from exporter.exposition.exporter_metrics import ConfigState, SelfMetrics
from exporter.exposition.render import Page, render
from exporter.node.attribution.attribute import AttributionRules
from exporter.node.devices.counters_file import parse
from exporter.node.devices.field import fields
from exporter.node.devices.labels import LabelStyle
from exporter.node.devices.readings import ReaderConfig
from exporter.node.pipeline import NodePipeline, NodeSources
from exporter.node.program import load_counters
from exporter.node.simulation.kubelet import SimulatedHolders
from exporter.node.simulation.scenario import builtin, load
from exporter.node.simulation.source import SimulatedSource
from exporter.source import Source, SourceError

EPOCH = 1_800_000_000.0
HOSTNAME = "node-1"
INTERVAL = 10.0
OWN_FOLDER = Path(__file__).parents[2] / "fakes" / "scenarios"
SCENARIOS = {name: name for name in builtin()} | {path.stem: str(path) for path in sorted(OWN_FOLDER.glob("*.json"))}
"""What `load` takes, by name: those of the package and those of the tests."""

VOLATILE = (
    (re.compile(r'((?<![a-z_])version|python_version)="[^"]*"'), r'\1="*"'),
    (re.compile(r"^(gpugauge_source_read_duration_seconds\{.*\}) .*$", re.MULTILINE), r"\1 *"),
)
"""What differs from release to release or from run to run."""

DCGM_COUNTER = re.compile(r"^(# TYPE DCGM_\w+) counter$", re.MULTILINE)

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def default_counters():
    return load_counters(None).counters


def every_counter():
    """A counters file of every field there is; texts become labels."""
    rows = (f"{f.names[0]}, {'label' if f.kind == 'string' else 'gauge'}, Field {f.id}." for f in fields().values())
    return parse("\n".join(rows), "every.csv")


def config_of(source, counters, **more):
    return ReaderConfig(source, tuple(field.wanted() for field in counters.fields), INTERVAL, **more)


@dataclass
class Played:
    """A node exporter's flow without its threads; `page` takes one pass at the time that its clock shows."""

    pipeline: NodePipeline
    own: SelfMetrics
    registry: CollectorRegistry

    def page(self) -> Page:
        snapshot = self.pipeline.take()
        self.own.observe(snapshot)
        return render(snapshot.families, self.registry)


def played(devices, kubelet, counters, clock=lambda: EPOCH, **more) -> Played:
    sources = NodeSources(devices, kubelet)
    pipeline = NodePipeline(sources, counters, LabelStyle(HOSTNAME), AttributionRules(), lambda: 0, clock=clock, **more)
    own = SelfMetrics({"hostname": HOSTNAME}, config=lambda: ConfigState("0" * 64, successful=True, at=EPOCH))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(own)
    return Played(pipeline, own, registry)


class Fixed(NamedTuple):
    """A source that always answers the same."""

    name: str
    answer: Any

    def read(self):
        return self.answer

    def close(self): ...


@dataclass
class Breakable:
    """A source that fails for as long as a test gives it a reason."""

    source: Source[Any]
    reason: str = ""

    @property
    def name(self) -> str:
        return self.source.name

    def read(self):
        if self.reason:
            raise SourceError(self.reason, "it was broken by a test")
        return self.source.read()

    def close(self):
        self.source.close()


class Simulation:
    """The flow over the simulated source, at a scenario time that the test sets."""

    def __init__(self, name, counters=None, t=0.0, *, attributed=True, **more):
        counters = counters or default_counters()
        scenario = load(SCENARIOS[name])
        self.t = 0.0
        self._begin = scenario.begins(EPOCH)
        source = SimulatedSource(config_of("simulated", counters, scenario=SCENARIOS[name]), self.now)
        self.devices = Breakable(source)
        self.kubelet = Breakable(SimulatedHolders(scenario, 0.0, lambda: self.t)) if attributed else None
        self.played = played(self.devices, self.kubelet, counters, self.now, **more)
        self.t = t

    def now(self) -> float:
        return self._begin + self.t

    def page(self, t: float | None = None) -> Page:
        self.t = self.t if t is None else t
        return self.played.page()


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
    """Every series of a text page, by a parser that is not ours; none may be there twice.

    The parser gives every counter the ending `_total`, which counters with names of DCGM do not have.
    """
    return _series(text_families(DCGM_COUNTER.sub(r"\1 untyped", text.decode())))


def openmetrics_series_of(text: bytes) -> Series:
    """The same of an OpenMetrics page."""
    return _series(openmetrics_families(text.decode()))
