"""Where `gpugauge explain` gets the objects from: a cluster, or files of `kubectl get -o json`."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.api import ApiError, KubernetesApi, open_api
from exporter.cluster.kubernetes.kinds import ObjectKind, object_kinds
from exporter.cluster.kubernetes.listing import pages
from exporter.cluster.kubernetes.reasons import WatchReason
from exporter.cluster.kubernetes.records import ClusterObject
from exporter.cluster.kubernetes.store import ObjectStore, StoreView
from exporter.cluster.scheduling.history import ClusterHistory
from exporter.cluster.view import ClusterView, view_of
from exporter.config import ConfigError
from exporter.gpu_names import GpuResources

_OPTIONAL_REASONS = (WatchReason.FORBIDDEN, WatchReason.NOT_SERVED)


def view_of_files(names: Sequence[str], gpus: GpuResources, now: float) -> ClusterView:
    """Read objects from files as `kubectl get -o json` writes them. Raises ConfigError.

    A kind of which no file has an object is one that was not read.
    """
    found: dict[str, list[Any]] = defaultdict(list)
    for name in names:
        for item in _items(name):
            found[str(item.get("kind"))].append(item)
    views = []
    for kind in object_kinds(gpus):
        records: dict[str, ClusterObject] | None = None
        if kind.object in found:
            body = {"metadata": {"resourceVersion": "1"}, "items": found[kind.object]}
            records = kind.codec.page(json.dumps(body).encode()).records
        views.append(_view(kind, records, now))
    return view_of(now, gpus, tuple(views), ClusterHistory())


def _items(name: str) -> list[dict[str, Any]]:
    try:
        parsed = json.loads(Path(name).read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"--objects: {name!r} cannot be read: {error}") from error
    items = parsed.get("items", [parsed]) if isinstance(parsed, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ConfigError(f"--objects: {name!r} is not what kubectl get -o json writes")
    return items


def view_of_cluster(config: ClusterConfig, gpus: GpuResources, now: float) -> ClusterView:
    """List the objects of a cluster; optional ones that may not be read are left out. Raises ConfigError."""
    views = []
    try:
        api = open_api(config)
        try:
            views = [_view(kind, _records(api, kind, config), now) for kind in object_kinds(gpus)]
        finally:
            api.close()
    except ApiError as error:
        raise ConfigError(str(error)) from error
    return view_of(now, gpus, tuple(views), ClusterHistory())


def _records(api: KubernetesApi, kind: ObjectKind, config: ClusterConfig) -> dict[str, ClusterObject] | None:
    for path in kind.paths:
        records: dict[str, ClusterObject] = {}
        try:
            for page in pages(api, kind, path, config.page_size):
                records.update(page.records)
        except ApiError as error:
            if not kind.optional or error.reason not in _OPTIONAL_REASONS:
                raise
        else:
            return records
    return None


def _view(kind: ObjectKind, records: dict[str, ClusterObject] | None, now: float) -> StoreView:
    store = ObjectStore(kind.name, lambda: now, lambda: 0.0, kind.optional)
    if records is not None:
        store.replace(records, 0.0)
    return store.view(0.0)
