"""Exporter metrics: what a program exposes about itself (sources, collections, rejected values, build).

They are a custom collector of `prometheus_client`. Gauges are made again from the last snapshot in every collection;
only counters keep their values.
"""

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as MetricFamily
from prometheus_client.registry import Collector

from exporter import VERSION
from exporter.metric import LabelError
from exporter.snapshot import Snapshot

CONTRACT = "1"
"""Version of the metric, label and annotation names, which are an interface."""


@dataclass(frozen=True, slots=True)
class ConfigState:
    """Which counters file is in use, and whether the last attempt to read one succeeded."""

    sha256: str | None
    """Of the content of the file in use; None while no file is in use."""
    successful: bool
    at: float = 0.0
    """When the file in use was read, in seconds since the epoch."""
    rejected_rows: int = 0
    """Rows of the file in use that are left out."""


def _exporter_versions() -> dict[str, str]:
    return {"version": VERSION, "contract": CONTRACT, "python_version": platform.python_version()}


@dataclass(slots=True, eq=False)  # a registry finds a collector by its hash, which eq=True would remove
class ExporterMetrics(Collector):
    """The exporter metrics of one program, as a collector of `prometheus_client`.

    Only the thread of the collection loop uses it.
    """

    constant_labels: Mapping[str, str]
    """Labels on every series here: `node` on node exporters, none on the watcher."""
    config: Callable[[], ConfigState] | None = None
    """Returns the state of the counters file; None on a program without one."""
    snapshot: Snapshot | None = None
    """The result of the last collection; None before the first one and after one that failed."""
    build: dict[str, str] = field(default_factory=_exporter_versions)
    """The labels of `gpugauge_build_info`."""
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Failed reads by (source, reason)."""
    rejected: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Rejected values by (field, reason)."""
    dropped: int = 0
    """Samples that the renderer left out."""
    collection_failures: int = 0

    def observe(self, snapshot: Snapshot) -> None:
        """Keep the result of a collection and add it to the counters."""
        self.snapshot = snapshot
        for health in snapshot.health:
            if not health.up:
                self.errors[health.source, health.reason] += 1
        self.rejected.update(snapshot.rejected)
        # Versions stay while a source is down: otherwise the series of gpugauge_build_info would change its labels.
        self.build.update({name: text for name, text in snapshot.build.items() if text or name not in self.build})

    def registry(self) -> CollectorRegistry:
        """Make a registry with these metrics and the `process_…` metrics."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        ProcessCollector(registry=registry)
        return registry

    def collect(self) -> Iterator[MetricFamily]:
        """The families to expose now; each collection asks for them once."""
        yield self._build_info()
        if self.config is not None:
            yield from self._config(self.config())
        if self.snapshot is not None:
            yield from self._sources(self.snapshot)
            yield self._gauge(
                "gpugauge_last_collection_timestamp_seconds",
                "When the exposed data were read.",
                [((), self.snapshot.taken_at)],
            )
        yield from self._counters()

    def _counters(self) -> Iterator[MetricFamily]:
        yield self._counter(
            "gpugauge_source_errors_total",
            "Reads of a source that failed, by reason.",
            ("source", "reason"),
            self.errors.items(),
        )
        yield self._counter(
            "gpugauge_rejected_values_total",
            "Values that were read and not exposed, by field and reason.",
            ("field", "reason"),
            self.rejected.items(),
        )
        yield self._counter(
            "gpugauge_dropped_samples_total",
            "Samples left out because they would make the exposition invalid.",
            (),
            [((), self.dropped)],
        )
        yield self._counter(
            "gpugauge_collection_failures_total",
            "Collections that failed because of a defect in gpugauge.",
            (),
            [((), self.collection_failures)],
        )

    def _config(self, state: ConfigState) -> Iterator[MetricFamily]:
        yield self._gauge(
            "gpugauge_config_info",
            "Constant 1 with the SHA-256 of the counters file in use.",
            [] if state.sha256 is None else [((state.sha256,), 1.0)],
            ("sha256",),
        )
        yield self._gauge(
            "gpugauge_config_last_reload_successful",
            "Whether the last attempt to read the counters file succeeded.",
            [((), float(state.successful))],
        )
        if state.sha256 is None:  # the others describe the file in use
            return
        yield self._gauge(
            "gpugauge_config_last_reload_timestamp_seconds", "When the counters file in use was read.", [((), state.at)]
        )
        yield self._gauge(
            "gpugauge_config_rejected_rows",
            "Rows of the counters file in use that are left out, because they cannot be used.",
            [((), float(state.rejected_rows))],
        )

    def _sources(self, snapshot: Snapshot) -> Iterator[MetricFamily]:
        up = {(h.source,): float(h.up) for h in snapshot.health}
        yield self._gauge(
            "gpugauge_source_up", "Whether the source answered in the last collection.", up.items(), ("source",)
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

    def _build_info(self) -> MetricFamily:
        return self._gauge(
            "gpugauge_build_info",
            "Constant 1 with the versions of the exporter and of the libraries in use.",
            [(tuple(self.build.values()), 1.0)],
            tuple(self.build),
        )

    def _gauge(
        self, name: str, text: str, values: Iterable[tuple[tuple[str, ...], float]], names: tuple[str, ...] = ()
    ) -> MetricFamily:
        return self._filled(GaugeMetricFamily(name, text, labels=(*names, *self.constant_labels)), names, values)

    def _counter(
        self, name: str, text: str, names: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float]]
    ) -> MetricFamily:
        family = CounterMetricFamily(name.removesuffix("_total"), text, labels=(*names, *self.constant_labels))
        return self._filled(family, names, values)

    def _filled(
        self,
        family: GaugeMetricFamily | CounterMetricFamily,
        names: tuple[str, ...],
        values: Iterable[tuple[tuple[str, ...], float]],
    ) -> MetricFamily:
        for labels, value in values:
            if len(labels) != len(names):  # the library would drop what has no name, without an error
                raise LabelError(f"{family.name}: {len(labels)} label values for {len(names)} names")
            family.add_metric((*labels, *self.constant_labels.values()), value)
        return family
