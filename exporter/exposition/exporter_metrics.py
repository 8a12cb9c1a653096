"""What a program says about itself: sources, passes, rejected values, build. Kept with `prometheus_client`.

Gauges are rebuilt from the last snapshot each time the page is rendered; only true counters live on.
"""

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from exporter import VERSION
from exporter.process_metrics import ProcessMetrics
from exporter.snapshot import Snapshot

CONTRACT = "1"
"""Version of the names that are an interface."""


@dataclass(frozen=True, slots=True)
class ConfigState:
    """Which counters file is in use, and whether the last attempt to take one up worked; `at` in Unix seconds."""

    sha256: str
    successful: bool
    at: float


def _own_versions() -> dict[str, str]:
    return {"version": VERSION, "contract": CONTRACT, "python_version": platform.python_version()}


@dataclass(slots=True, eq=False)  # a registry keeps collectors by identity
class SelfMetrics(Collector):
    """Owned by the sampler thread; `collect` is called only while that thread renders a page."""

    constant: Mapping[str, str]
    """Labels on every series here: `hostname` on node exporters, none on the watcher."""
    config: Callable[[], ConfigState] | None = None
    snapshot: Snapshot | None = None
    build: dict[str, str] = field(default_factory=_own_versions)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    rejected: Counter[tuple[str, str]] = field(default_factory=Counter)
    dropped: int = 0
    passes_failed: int = 0

    def observe(self, snapshot: Snapshot) -> None:
        """Take over what a pass saw."""
        self.snapshot = snapshot
        for health in snapshot.health:
            if not health.up:
                self.errors[health.source, health.reason] += 1
        self.rejected.update(snapshot.rejected)
        # What was learned stays while a source is down: a series that changes its labels then says nothing true.
        self.build.update({name: text for name, text in snapshot.build.items() if text or name not in self.build})

    def registry(self) -> CollectorRegistry:
        """A registry of this alone, and of the process."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        registry.register(ProcessMetrics())
        return registry

    def collect(self) -> Iterator[Metric]:
        yield self._build_info()
        if self.config is not None:
            yield from self._config(self.config())
        if self.snapshot is not None:
            yield from self._sources(self.snapshot)
            yield self._gauge(
                "gpugauge_snapshot_timestamp_seconds", "When the served data were read.", [((), self.snapshot.taken_at)]
            )
        yield self._counter(
            "gpugauge_source_errors_total", "Failed reads of a source.", ("source", "reason"), self.errors.items()
        )
        yield self._counter(
            "gpugauge_rejected_values_total",
            "Values that were read and not shown, by field and reason.",
            ("field", "reason"),
            self.rejected.items(),
        )
        yield self._counter(
            "gpugauge_dropped_samples_total",
            "Samples left out because they would break the page.",
            (),
            [((), self.dropped)],
        )
        yield self._counter(
            "gpugauge_failed_passes_total", "Passes that ended in a defect of ours.", (), [((), self.passes_failed)]
        )

    def _config(self, state: ConfigState) -> Iterator[Metric]:
        yield self._gauge(
            "gpugauge_config_info",
            "Constant 1 with the digest of the counters file.",
            [((state.sha256,), 1.0)],
            ("sha256",),
        )
        yield self._gauge(
            "gpugauge_config_last_reload_successful",
            "Whether the last attempt to read the counters file gave one that can be used.",
            [((), float(state.successful))],
        )
        yield self._gauge(
            "gpugauge_config_last_reload_timestamp_seconds", "When the counters file in use was read.", [((), state.at)]
        )

    def _sources(self, snapshot: Snapshot) -> Iterator[Metric]:
        up = {(h.source,): float(h.up) for h in snapshot.health}
        yield self._gauge(
            "gpugauge_source_up", "Whether the source answered in the last pass.", up.items(), ("source",)
        )
        problems = {(h.source, h.reason): 1.0 for h in snapshot.health if h.reason}
        problems |= {(p.source, p.reason): 1.0 for p in snapshot.problems}
        yield self._gauge(
            "gpugauge_source_problem",
            "Present while a source has this problem.",
            problems.items(),
            ("source", "reason"),
        )
        took = {(h.source,): h.seconds for h in snapshot.health}
        yield self._gauge(
            "gpugauge_source_read_duration_seconds",
            "How long the last read of the source took.",
            took.items(),
            ("source",),
        )

    def _build_info(self) -> Metric:
        return self._gauge(
            "gpugauge_build_info",
            "Constant 1 with the versions of what runs here.",
            [(tuple(self.build.values()), 1.0)],
            tuple(self.build),
        )

    def _gauge(
        self, name: str, text: str, values: Iterable[tuple[tuple[str, ...], float]], names: tuple[str, ...] = ()
    ) -> Metric:
        family = GaugeMetricFamily(name, text, labels=(*names, *self.constant))
        for labels, value in values:
            family.add_metric((*labels, *self.constant.values()), value)
        return family

    def _counter(
        self, name: str, text: str, names: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float]]
    ) -> Metric:
        family = CounterMetricFamily(name.removesuffix("_total"), text, labels=(*names, *self.constant))
        for labels, value in values:
            family.add_metric((*labels, *self.constant.values()), value)
        return family
