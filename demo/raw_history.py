"""Raw series of the last hour for the demo's Prometheus: what its exporters would have exposed.

Computed by the pipelines of the exporters themselves (which read every source and make metric families), with a clock
that is set to one time after another.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from demo import cluster, history
from demo.processes import DemoError
from demo.prometheus import CLUSTER_JOB, NODE_JOB, ScrapeTargets
from exporter.cluster.config import ClusterConfig
from exporter.cluster.pipeline import ClusterPipeline
from exporter.metric import AnyFamily
from exporter.node.attribution.matching.rules import AttributionRules
from exporter.node.counters_watch import load_counters
from exporter.node.devices.fields.device_source import ReaderConfig
from exporter.node.devices.series.labels import LabelStyle
from exporter.node.pipeline import NodePipeline, NodeSources
from exporter.node.simulation.kubelet import ScenarioKubelet
from exporter.node.simulation.scenario import load
from exporter.node.simulation.source import SimulatedSource

READY_SECONDS = 20.0
INTERVAL_SECONDS = 10

CollectAt = Callable[[float], Iterable[AnyFamily]]
"""Returns the families of an exporter at a time, in seconds since the epoch."""


class RawHistory:
    """The series that Prometheus would have scraped from the three node exporters and the watcher."""

    def __init__(
        self, scenarios: Mapping[str, Path], targets: ScrapeTargets, api_server: str, now: float, *, honor_labels: bool
    ) -> None:
        """`scenarios` has the scenario file of each node; `now` is the present, in seconds since the epoch."""
        self._scenarios = scenarios
        self._targets = targets
        self._api_server = api_server
        self._now = now
        self._honor_labels = honor_labels

    def samples(self, start: float, end: float) -> Iterator[history.HistorySample]:
        """Every sample between two times, in order of time. Raises DemoError when the watcher cannot be ready."""
        watcher = self._watcher()
        try:
            nodes = [self._node(node.name) for node in cluster.NODES]
            steps = int((end - start) / history.RAW_STEP)
            for step in range(steps + 1):
                at = end - (steps - step) * history.RAW_STEP
                for collect_at, target in nodes:
                    yield from history.scraped_samples(collect_at(at), target, at)
                families = _as_of(watcher.collect(at).families, at, self._now)
                yield from history.scraped_samples(families, self._watcher_target(), at)
        finally:
            watcher.stop()

    def _watcher_target(self) -> history.ScrapeTarget:
        labels = {"job": CLUSTER_JOB, "instance": self._targets.watcher}
        return history.ScrapeTarget(labels, self._honor_labels)

    def _watcher(self) -> ClusterPipeline:
        pipeline = ClusterPipeline(ClusterConfig(api_server=self._api_server))
        pipeline.start()
        limit = time.monotonic() + READY_SECONDS
        while not pipeline.ready():
            if time.monotonic() > limit:
                pipeline.stop()
                raise DemoError("the simulated API server did not answer")
            time.sleep(0.02)
        return pipeline

    def _node(self, name: str) -> tuple[CollectAt, history.ScrapeTarget]:
        """Make a node exporter's pipeline whose clock can be set, and the target that it is scraped as."""
        clock = [self._now]
        path = str(self._scenarios[name])
        counters = load_counters(None).counters
        config = ReaderConfig("simulated", counters.wanted, INTERVAL_SECONDS, scenario=path)
        source = SimulatedSource(config, lambda: clock[0])
        scenario = load(path)
        kubelet = ScenarioKubelet(scenario, scenario.begins(self._now), lambda: clock[0])
        pipeline = NodePipeline(NodeSources(source, kubelet), counters, LabelStyle(name), AttributionRules())

        def collect_at(at: float) -> Iterable[AnyFamily]:
            clock[0] = at
            return pipeline.collect().families

        labels = {"job": NODE_JOB, "instance": self._targets.nodes[name], "node": name}
        return collect_at, history.ScrapeTarget(labels, self._honor_labels)


def _as_of(families: Iterable[AnyFamily], at: float, now: float) -> Iterable[AnyFamily]:
    """Leave out the watcher's pending series at times before the pending pods were created.

    When objects were confirmed last is a time of the present, whatever the time of the collection, and left out too.
    """
    existed = at >= now - cluster.OLDEST_PENDING_AGE_SECONDS
    left_out = ("gpugauge_watch_last_sync",) if existed else ("gpugauge_watch_last_sync", "gpugauge_pending")
    return [family for family in families if not family.metric.name.startswith(left_out)]
