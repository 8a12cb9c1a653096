"""The cluster watcher: the flow from the API server's objects to a snapshot for each collection, and the program.

Reflectors (threads) keep a store of pods, nodes and namespaces current; a collection makes metric families from these
stores and never waits for the API server.
"""

import logging
import re
import time
from collections.abc import Callable, MutableMapping

from exporter.cluster.config import ClusterConfig, WatcherConfig
from exporter.cluster.kubernetes.api import KubernetesApi, jitter, open_api
from exporter.cluster.kubernetes.kinds import object_kinds
from exporter.cluster.kubernetes.overrides import MalformedOverride, malformed
from exporter.cluster.kubernetes.reasons import SyncReason
from exporter.cluster.kubernetes.records import Namespace
from exporter.cluster.kubernetes.reflector import Reflector
from exporter.cluster.kubernetes.store import ObjectStore, StoreView
from exporter.cluster.metrics.families import families
from exporter.cluster.scheduling.history import ClusterHistory
from exporter.cluster.scheduling.pending_pods import unknown_texts
from exporter.cluster.status import cluster_page
from exporter.cluster.view import ClusterView, view_of
from exporter.collection_loop import CollectionLoop
from exporter.exposition.exporter_metrics import ExporterMetrics
from exporter.gpu_names import gpu_resources
from exporter.log import OnceLog
from exporter.program import ProgramEndpoints, run_until_signaled, serve
from exporter.snapshot import Snapshot, SourceHealth, SourceProblem

_LOG = logging.getLogger(__name__)
_DIGITS = re.compile(r"\d+", re.ASCII)
_SOURCE = "kubernetes"
"""The API server in the label `source`."""


class ClusterPipeline:
    """Watches pods, nodes and namespaces. `collect` never waits for the API server and never fails because of it."""

    def __init__(
        self,
        config: ClusterConfig,
        connect: Callable[[ClusterConfig], KubernetesApi] = open_api,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wall` returns seconds since the epoch; `clock` seconds from an arbitrary start, and must be monotonic."""
        self._config = config
        self._gpus = gpu_resources(config.resources)
        self._malformed_log = OnceLog(_LOG)
        self._unknown_log = OnceLog(_LOG)
        self._history = ClusterHistory()
        kinds = object_kinds(self._gpus, config.namespace_labels)
        self._stores = tuple(ObjectStore(kind.name, wall, clock, kind.optional) for kind in kinds)
        self._reflectors = tuple(
            Reflector(kind, store, lambda: connect(config), config, jitter)
            for kind, store in zip(kinds, self._stores, strict=True)
        )

    def start(self) -> None:
        """Start the reflectors; returns at once, whether or not there is an API server."""
        for reflector in self._reflectors:
            reflector.start()

    def stop(self) -> None:
        """Stop the reflectors and wait for them, a few seconds at most."""
        for reflector in self._reflectors:
            reflector.interrupt()
        for reflector in self._reflectors:
            reflector.join()

    def ready(self) -> bool:
        """Whether the objects of every needed kind are known and current."""
        return self.unready() is None

    def unready(self) -> str | None:
        """One message while the objects of a needed kind are not known or no longer current, else None."""
        for store in self._views():
            if store.records is None and not store.optional:
                if store.synced_at is None:
                    return f"the {store.object} are not listed yet"
                return f"the API server has not confirmed the {store.object} for {self._config.stale_after:.0f} s"
        return None

    def collect(self, now: float) -> Snapshot:
        """Make a snapshot of the stores; `now` is in seconds since the epoch."""
        for reflector in self._reflectors:
            reflector.supervise()
        stores = self._views()
        view = view_of(now, self._gpus, stores, self._history)
        self._log_unknown(view)
        found = tuple(families(view, self._config, self._malformed(view)))
        return Snapshot(now, found, (health(stores),), problems(stores))

    def _views(self) -> tuple[StoreView, ...]:
        return tuple(store.view(self._config.stale_after) for store in self._stores)

    def _log_unknown(self, view: ClusterView) -> None:
        """Log each text of a scheduler that no table has once, whatever numbers are in it."""
        for _, text in unknown_texts(view.pods or (), view.gpus):
            words = _DIGITS.sub("N", text)
            self._unknown_log.warning(f"a scheduler names a cause in words that are not known: {words!r}")

    def _malformed(self, view: ClusterView) -> list[MalformedOverride]:
        """Find the overrides that are ignored now, and log each once."""
        namespaces = [Namespace(name, overrides) for name, overrides in (view.namespaces or {}).items()]
        found = malformed(view.pods or (), namespaces, view.nodes or (), view.now)
        for each in found:
            self._malformed_log.warning(f"{each.where}: {each.value!r} is not a value of {each.key} and is ignored")
        return found


def health(stores: tuple[StoreView, ...]) -> SourceHealth:
    """Health of the API server: up while every needed store is current and no last attempt failed."""
    needed = [store for store in stores if not store.optional]
    seconds = max((store.list_seconds for store in needed), default=0.0)
    for store in needed:
        if store.problem is not None:
            return SourceHealth(_SOURCE, False, seconds, *store.problem)
    for store in needed:
        if store.records is None:
            late = SyncReason.STALE if store.synced_at is not None else SyncReason.CONNECTING
            return SourceHealth(_SOURCE, False, seconds, late, f"the {store.object} are not known yet")
    return SourceHealth(_SOURCE, True, seconds)


def problems(stores: tuple[StoreView, ...]) -> tuple[SourceProblem, ...]:
    """What fails of optional objects. That they may not be read is no problem."""
    failing = (store.problem for store in stores if store.optional)
    return tuple(SourceProblem(_SOURCE, *problem) for problem in failing if problem is not None)


def run(config: WatcherConfig, environment: MutableMapping[str, str]) -> bool:
    """Serve until SIGTERM; returns False when the HTTP server ended by itself.

    Raises ListenError, TlsError or ConfigFileError before anything runs.
    """
    pipeline = ClusterPipeline(config.cluster)
    loop = CollectionLoop(lambda: pipeline.collect(time.time()), ExporterMetrics({}), config.cluster.interval)
    endpoints = ProgramEndpoints(loop, lambda: None, pipeline.unready)
    server = serve("gpugauge cluster watcher", config.web, endpoints, environment, cluster_page)
    pipeline.start()
    return run_until_signaled(loop, server, pipeline.stop)
