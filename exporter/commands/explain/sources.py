"""Where `gpugauge explain` gets the objects from: a cluster, or files of `kubectl get -o json`."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

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

RawObject = dict[str, Any]
"""An object as the API server writes it."""


class ObjectSource(Protocol):
    """Reads the objects of a cluster. Every method raises ConfigError."""

    def view(self, gpus: GpuResources, now: float) -> ClusterView:
        """All objects that reasons are found from; `now` is in seconds since the epoch."""
        ...

    def pod(self, namespace: str, name: str) -> RawObject | None:
        """One pod, None where there is none or it may not be read."""
        ...

    def node(self, name: str) -> RawObject | None:
        """One node, None where there is none or it may not be read."""
        ...

    def pods_on(self, node: str) -> list[RawObject] | None:
        """The pods that are bound to a node, None where they may not be read."""
        ...


class FileSource:
    """Objects of files as `kubectl get -o json` writes them. A kind of which no file has an object was not read."""

    def __init__(self, names: Sequence[str]) -> None:
        """Read the files. Raises ConfigError."""
        self._found: dict[str, list[RawObject]] = defaultdict(list)
        for name in names:
            for item in _items(name):
                self._found[str(item.get("kind"))].append(item)

    def view(self, gpus: GpuResources, now: float) -> ClusterView:
        """All objects of the files."""
        views = []
        for kind in object_kinds(gpus):
            records: dict[str, ClusterObject] | None = None
            if kind.object in self._found:
                body = {"metadata": {"resourceVersion": "1"}, "items": self._found[kind.object]}
                records = kind.codec.page(json.dumps(body).encode()).records
            views.append(_view(kind, records, now))
        return view_of(now, gpus, tuple(views), ClusterHistory())

    def pod(self, namespace: str, name: str) -> RawObject | None:
        """The pod, None where no file has it. A manifest may leave its namespace out."""
        return next((each for each in self._found["Pod"] if _named(each, namespace, name)), None)

    def node(self, name: str) -> RawObject | None:
        """The node, None where no file has it."""
        return next((each for each in self._found["Node"] if _part(each, "metadata").get("name") == name), None)

    def pods_on(self, node: str) -> list[RawObject] | None:
        """The pods that are bound to the node, None where no file has pods."""
        pods = self._found["Pod"]
        return [each for each in pods if _part(each, "spec").get("nodeName") == node] if pods else None


def _named(given: RawObject, namespace: str, name: str) -> bool:
    meta = _part(given, "metadata")
    return (meta.get("namespace") or "default", meta.get("name")) == (namespace, name)


def _part(given: RawObject, name: str) -> dict[str, Any]:
    part = given.get(name)
    return part if isinstance(part, dict) else {}


def _items(name: str) -> list[RawObject]:
    try:
        parsed = json.loads(Path(name).read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"--objects: {name!r} cannot be read: {error}") from error
    items = parsed.get("items", [parsed]) if isinstance(parsed, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ConfigError(f"--objects: {name!r} is not what kubectl get -o json writes")
    return items


class ApiSource:
    """Objects of a cluster; optional ones that may not be read are left out."""

    def __init__(self, config: ClusterConfig) -> None:
        """Connect as the configuration specifies. Raises ConfigError."""
        self._config = config
        try:
            self._api = open_api(config)
        except ApiError as error:
            raise ConfigError(str(error)) from error

    def close(self) -> None:
        """Close the connection."""
        self._api.close()

    def view(self, gpus: GpuResources, now: float) -> ClusterView:
        """List all objects."""
        try:
            views = [_view(kind, _records(self._api, kind, self._config), now) for kind in object_kinds(gpus)]
        except ApiError as error:
            raise ConfigError(str(error)) from error
        return view_of(now, gpus, tuple(views), ClusterHistory())

    def pod(self, namespace: str, name: str) -> RawObject | None:
        """Ask for one pod."""
        return self._one(f"/api/v1/namespaces/{quote(namespace)}/pods", name)

    def node(self, name: str) -> RawObject | None:
        """Ask for one node."""
        return self._one("/api/v1/nodes", name)

    def pods_on(self, node: str) -> list[RawObject] | None:
        """List the pods that are bound to one node."""
        return self._objects("/api/v1/pods", f"spec.nodeName={node}")

    def _one(self, path: str, name: str) -> RawObject | None:
        return next(iter(self._objects(path, f"metadata.name={name}") or ()), None)

    def _objects(self, path: str, selector: str) -> list[RawObject] | None:
        """List the objects that a field selector selects; None where they may not be read."""
        try:
            items = json.loads(self._api.page(path, {"fieldSelector": selector})).get("items")
        except ApiError as error:
            if error.reason not in _OPTIONAL_REASONS:
                raise ConfigError(str(error)) from error
            return None
        except (ValueError, AttributeError) as error:
            raise ConfigError(f"the API server's answer cannot be read: {error}") from error
        return [each for each in items or () if isinstance(each, dict)]


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
