"""The cluster watcher: the flow from the API server's objects to a snapshot for each collection, and the program.

Reflectors (threads) keep a store of pods, nodes and namespaces current; a collection makes metric families from these
stores and never waits for the API server. With a lease, only the replica that leads makes them; the others keep their
stores and their history current, to take over with the same knowledge.
"""

import logging
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import replace

from exporter.cluster.config import ClusterConfig, WatcherConfig
from exporter.cluster.kubernetes.objects.overrides import MalformedOverride, malformed
from exporter.cluster.kubernetes.objects.records import Namespace
from exporter.cluster.kubernetes.watching.api import KubernetesApi, jitter, open_api
from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.cluster.kubernetes.watching.reasons import SyncReason
from exporter.cluster.kubernetes.watching.reflector import Reflector
from exporter.cluster.kubernetes.watching.store import ObjectStore, StoreView
from exporter.cluster.leadership.keeper import LeaseKeeper, LeaseView, Surroundings
from exporter.cluster.leadership.reasons import LEASE_SOURCE
from exporter.cluster.metrics.families import families
from exporter.cluster.metrics.leadership import leader_family
from exporter.cluster.prices.watch import PricesWatch
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.scheduling.reasons.pending_pods import unknown_texts
from exporter.cluster.status import cluster_page
from exporter.cluster.view import ClusterView, view_of
from exporter.collection_loop import CollectionLoop
from exporter.exposition.exporter_metrics import ExporterMetrics
from exporter.gpu_names import gpu_resources
from exporter.log import OnceLog
from exporter.metric import AnyFamily
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
        self._leadership_changed: Callable[[], None] = lambda: None
        self._config = config
        self._gpus = gpu_resources(config.resources)
        self._malformed_log = OnceLog(_LOG)
        self._unknown_log = OnceLog(_LOG)
        self._history = ClusterHistory()
        self._prices = PricesWatch(config.prices, clock) if config.prices else None
        kinds = object_kinds(self._gpus, config.namespace_labels)
        self._stores = tuple(ObjectStore(kind.name, wall, clock, kind.optional) for kind in kinds)
        self._reflectors = tuple(
            Reflector(kind, store, lambda: connect(config), config, jitter)
            for kind, store in zip(kinds, self._stores, strict=True)
        )
        around = Surroundings(lambda: connect(config), self._synced, self._announce, wall, clock, jitter)
        self._keeper = None if config.lease is None else LeaseKeeper(config.lease, replica_identity(), around)
        self._threads = (*(() if self._keeper is None else (self._keeper,)), *self._reflectors)

    def start(self, leadership_changed: Callable[[], None] = lambda: None) -> None:
        """Start the threads; returns at once, whether or not there is an API server.

        `leadership_changed` is called from a thread of the pipeline when this replica has begun or ceased to lead.
        """
        self._leadership_changed = leadership_changed
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads and wait for them, a few seconds at most. A replica that leads releases the lease."""
        for thread in self._threads:
            thread.interrupt()
        for thread in self._threads:
            thread.join()

    def ready(self) -> bool:
        """Whether the objects of every needed kind are known and current."""
        return self.unready() is None

    def unready(self) -> str | None:
        """One message while a needed kind is not known or not current, or the lease cannot be used, else None."""
        return self._unsynced() or (None if self._keeper is None else self._keeper.view.unready())

    def _announce(self) -> None:
        self._leadership_changed()

    def _synced(self) -> bool:
        return self._unsynced() is None

    def _unsynced(self) -> str | None:
        """One message while the objects of a needed kind are not known or no longer current, else None."""
        for store in self._views():
            if store.records is None and not store.optional:
                if store.synced_at is None:
                    return f"the {store.object} are not listed yet"
                return f"the API server has not confirmed the {store.object} for {self._config.stale_after:.0f} s"
        return None

    def collect(self, now: float) -> Snapshot:
        """Make a snapshot of the stores; `now` is in seconds since the epoch."""
        for thread in self._threads:
            thread.supervise()
        stores = self._views()
        prices = None if self._prices is None else self._prices.current()
        view = replace(view_of(now, self._gpus, stores, self._history), prices=prices)
        lease = None if self._keeper is None else self._keeper.view
        found = tuple(self._families(view, lease))
        known = (health(stores),) if lease is None else (health(stores), lease_health(lease))
        return Snapshot(now, found, known, problems(stores))

    def _families(self, view: ClusterView, lease: LeaseView | None) -> Iterator[AnyFamily]:
        """The families that this replica exposes; without a lease it is the only one."""
        if lease is not None:
            yield leader_family(leads=lease.leads)
        if lease is None or lease.leads:
            self._log_unknown(view)
            yield from families(view, self._config, self._malformed(view))

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
        pods = (pod for chunk in view.chunks() for pod in chunk.with_overrides)
        found = malformed(pods, namespaces, view.nodes or (), view.now)
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


def replica_identity() -> str:
    """The name of this process in a lease: that of its pod, which is that of its host, and a random part.

    A container that is started again in the same pod is another replica.
    """
    return f"{socket.gethostname()}_{secrets.token_hex(4)}"


def lease_health(lease: LeaseView) -> SourceHealth:
    """Health of the lease: up while the last attempt to read or write it succeeded."""
    return SourceHealth(LEASE_SOURCE, lease.problem is None, lease.seconds, *(lease.problem or ()))


def run(config: WatcherConfig, environment: MutableMapping[str, str]) -> bool:
    """Serve until SIGTERM; returns False when the HTTP server ended by itself.

    Raises ListenError, TlsError or ConfigFileError before anything runs.
    """
    pipeline = ClusterPipeline(config.cluster)
    loop = CollectionLoop(lambda: pipeline.collect(time.time()), ExporterMetrics({}), config.cluster.interval)
    endpoints = ProgramEndpoints(loop, lambda: None, pipeline.unready)
    server = serve("gpugauge cluster watcher", config.web, endpoints, environment, cluster_page)
    pipeline.start(loop.collect_soon)  # what a new leader exposes must not wait for the interval to end
    return run_until_signaled(loop, server, pipeline.stop)
