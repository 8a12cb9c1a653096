"""The demo's cluster played for any time of the last hour, by the pipelines that serve the present."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from demo import cluster, history
from demo.processes import DemoError
from demo.prometheus import Targets
from exporter.cluster.config import ClusterConfig
from exporter.cluster.pipeline import ClusterPipeline
from exporter.metric import Family
from exporter.node.attribution.attribute import AttributionRules
from exporter.node.devices.labels import LabelStyle
from exporter.node.devices.readings import ReaderConfig
from exporter.node.pipeline import NodePipeline, NodeSources
from exporter.node.program import load_counters
from exporter.node.simulation.kubelet import SimulatedHolders
from exporter.node.simulation.scenario import load
from exporter.node.simulation.source import SimulatedSource

READY_SECONDS = 20.0
INTERVAL_SECONDS = 10

Play = Callable[[float], Iterable[Family]]


class Past:
    """Raw series as they would have been scraped from the three nodes and the watcher."""

    def __init__(
        self, scenarios: Mapping[str, Path], targets: Targets, api_server: str, now: float, *, honor_labels: bool
    ) -> None:
        self._scenarios = scenarios
        self._targets = targets
        self._api_server = api_server
        self._now = now
        self._honor = honor_labels

    def lines(self, start: float, end: float) -> Iterator[history.Line]:
        """Every sample between two times, in order of time."""
        watcher = self._watcher()
        try:
            nodes = [self._node(node.name) for node in cluster.NODES]
            steps = int((end - start) / history.RAW_STEP)
            for step in range(steps + 1):
                at = end - (steps - step) * history.RAW_STEP
                for play, target in nodes:
                    yield from history.page_lines(play(at), target, at)
                families = _before(watcher.take(at).families, at, self._now)
                yield from history.page_lines(families, self._watched(), at)
        finally:
            watcher.stop()

    def _watched(self) -> history.Target:
        return history.Target({"job": "gpugauge-cluster", "instance": self._targets.watcher}, self._honor)

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

    def _node(self, name: str) -> tuple[Play, history.Target]:
        """A node exporter's flow that can be asked for any time, and the target it is scraped as."""
        at = [self._now]
        path = str(self._scenarios[name])
        counters = load_counters(None).counters
        config = ReaderConfig("simulated", tuple(f.wanted() for f in counters.fields), INTERVAL_SECONDS, scenario=path)
        source = SimulatedSource(config, lambda: at[0])
        scenario = load(path)
        kubelet = SimulatedHolders(scenario, scenario.begins(self._now), lambda: at[0])
        pipeline = NodePipeline(NodeSources(source, kubelet), counters, LabelStyle(name), AttributionRules())

        def play(time_: float) -> Iterable[Family]:
            at[0] = time_
            return pipeline.take().families

        labels = {"job": "gpugauge-node", "instance": self._targets.nodes[name], "node": name}
        return play, history.Target(labels, self._honor)


def _before(families: Iterable[Family], at: float, now: float) -> Iterable[Family]:
    """The watcher's families as of a time in the past: nobody waited before the waiting pods were there."""
    waited = at >= now - cluster.PENDING_SINCE
    return [family for family in families if waited or not family.metric.name.startswith("gpugauge_pending")]
