"""The cluster watcher as a whole: watches in the background, and a snapshot whenever a pass asks for one."""

import logging
import time
from collections.abc import Callable

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.api import Api, jitter, open_api
from exporter.cluster.kubernetes.decode import object_kinds
from exporter.cluster.kubernetes.overrides import Malformed, malformed
from exporter.cluster.kubernetes.records import Namespace
from exporter.cluster.kubernetes.reflector import KindWatch
from exporter.cluster.kubernetes.store import Table, TableView
from exporter.cluster.metrics.families import families
from exporter.cluster.metrics.label_cache import LabelMemory
from exporter.cluster.view import View, view_of
from exporter.gpu_names import gpu_resources
from exporter.snapshot import Snapshot, SourceHealth

_LOG = logging.getLogger(__name__)
_MOST_NAMED = 1000


class ClusterPipeline:
    """Watches pods, nodes and namespaces; `take` never waits for the API server and never fails because of it."""

    def __init__(
        self,
        config: ClusterConfig,
        connect: Callable[[ClusterConfig], Api] = open_api,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._gpus = gpu_resources(config.resources)
        self._named: set[Malformed] = set()
        self._label = LabelMemory()
        kinds = object_kinds(self._gpus)
        self._tables = tuple(Table(kind.name, wall, clock) for kind in kinds)
        self._watches = tuple(
            KindWatch(kind, table, lambda: connect(config), config, jitter)
            for kind, table in zip(kinds, self._tables, strict=True)
        )

    def start(self) -> None:
        """Begins to watch; returns at once, whether or not there is an API server."""
        for watch in self._watches:
            watch.start()

    def stop(self) -> None:
        """Ends the watches and waits for them, a few seconds at most."""
        for watch in self._watches:
            watch.interrupt()
        for watch in self._watches:
            watch.join()

    def ready(self) -> bool:
        """Whether every kind is known and current."""
        return all(table.records is not None for table in self._views())

    def take(self, now: float) -> Snapshot:
        """What the cluster looks like now, in seconds since the epoch."""
        for watch in self._watches:
            watch.revive()
        tables = self._views()
        view = view_of(now, self._gpus, tables, self._label)
        found = tuple(families(view, self._config, self._ignored(view)))
        self._label.next_pass()
        return Snapshot(now, found, (health(tables),))

    def _views(self) -> tuple[TableView, ...]:
        return tuple(table.view(self._config.stale_after) for table in self._tables)

    def _ignored(self, view: View) -> list[Malformed]:
        """Values that are ignored now; each is named once in the log, and at most a thousand of them."""
        spaces = [Namespace(name, switches) for name, switches in (view.namespaces or {}).items()]
        found = malformed(view.pods or (), spaces, view.now)
        for each in found:
            if each not in self._named and len(self._named) < _MOST_NAMED:
                self._named.add(each)
                where = f"pod {each.namespace}/{each.pod}" if each.pod else f"namespace {each.namespace}"
                _LOG.warning("%s: %r is no value for %s and is ignored", where, each.value, each.key)
        return found


def health(tables: tuple[TableView, ...]) -> SourceHealth:
    """The API server is up when all kinds are current and no last attempt has failed."""
    seconds = max((table.list_seconds for table in tables), default=0.0)
    for table in tables:
        if table.problem is not None:
            return SourceHealth("kubernetes", False, seconds, *table.problem)
    for table in tables:
        if table.records is None:
            late = "stale" if table.synced_at is not None else "connecting"
            return SourceHealth("kubernetes", False, seconds, late, f"the {table.object} are not known yet")
    return SourceHealth("kubernetes", True, seconds)
