"""Where `gpugauge explain` gets the objects from: a cluster, or files of `kubectl get -o json`."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.objects.records import ClusterObject
from exporter.cluster.kubernetes.watching.api import ApiError, open_api
from exporter.cluster.kubernetes.watching.kinds import ObjectKind, object_kinds
from exporter.cluster.kubernetes.watching.listing import pages
from exporter.cluster.kubernetes.watching.permissions import NOT_EXPLAINED
from exporter.cluster.kubernetes.watching.reasons import WatchReason
from exporter.cluster.kubernetes.watching.store import ObjectStore, StoreView
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.view import ClusterView, view_of, with_pending
from exporter.config import Arguments, ConfigError
from exporter.gpu_names import GpuResources

_OPTIONAL_REASONS = (WatchReason.FORBIDDEN, WatchReason.NOT_SERVED)
OTHER_PODS = "pods of other namespaces"
"""What is not seen where a token is for one namespace: then no free GPUs are known either."""
RawObject = dict[str, Any]
"""An object as the API server writes it."""


class ObjectSource(Protocol):
    """Reads the objects of a cluster. Every method raises ConfigError."""

    not_seen: list[str]
    """What the credentials do not allow to read, once `view` was called."""

    def view(self, gpus: GpuResources, now: float, namespace: str) -> ClusterView:
        """All objects that reasons are found from; `now` is in seconds since the epoch.

        Where the objects of all namespaces may not be read, those of the one that is given, if any.
        """
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
        self.not_seen: list[str] = []
        self._found: dict[str, list[RawObject]] = defaultdict(list)
        for name in names:
            for item in _items(name):
                self._found[str(item.get("kind"))].append(item)

    def view(self, gpus: GpuResources, now: float, namespace: str = "") -> ClusterView:  # noqa: ARG002 - see above
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
        self.not_seen: list[str] = []
        try:
            self._api = open_api(config)
        except ApiError as error:
            raise ConfigError(str(error)) from error

    def close(self) -> None:
        """Close the connection."""
        self._api.close()

    def view(self, gpus: GpuResources, now: float, namespace: str) -> ClusterView:
        """List all objects that explain something."""
        self.not_seen.clear()
        kinds = [kind for kind in object_kinds(gpus) if kind.name not in NOT_EXPLAINED]
        try:
            views = [_view(kind, self._records(kind, namespace), now) for kind in kinds]
        except ApiError as error:
            raise ConfigError(str(error)) from error
        view = view_of(now, gpus, tuple(views), ClusterHistory())
        return view if OTHER_PODS not in self.not_seen else _without_sums(view)

    def _records(self, kind: ObjectKind, namespace: str) -> dict[str, ClusterObject] | None:
        """The objects of all namespaces, else of one; None where the API server has none or they may not be read."""
        found, reason = self._list(kind, kind.paths)
        if found is None and reason is WatchReason.FORBIDDEN and kind.namespaced and namespace:
            found, reason = self._list(kind, kind.paths_in(quote(namespace)))
            self.not_seen.append(f"{kind.name} of other namespaces" if found is not None else kind.name)
        elif found is None and (reason is WatchReason.FORBIDDEN or not kind.optional):
            self.not_seen.append(kind.name)
        return found

    def _list(self, kind: ObjectKind, paths: Sequence[str]) -> tuple[dict[str, ClusterObject] | None, str]:
        """List a kind at the first path that is served; where there is none, also the reason of the last failure."""
        reason = ""
        for path in paths:
            records: dict[str, ClusterObject] = {}
            try:
                for page in pages(self._api, kind, path, self._config.page_size):
                    records.update(page.records)
            except ApiError as error:
                if error.reason not in _OPTIONAL_REASONS:
                    raise
                reason = error.reason
            else:
                return records, ""
        return None, reason

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


def api_source(arguments: Arguments) -> ApiSource:
    """Connect to the cluster that the command line names. Raises ConfigError."""
    return ApiSource(
        ClusterConfig(
            api_server=arguments.api_server or None,
            kubeconfig=arguments.kubeconfig or None,
            context=arguments.context or None,
        )
    )


def _view(kind: ObjectKind, records: dict[str, ClusterObject] | None, now: float) -> StoreView:
    store = ObjectStore(kind.name, lambda: now, lambda: 0.0, kind.optional)
    if records is not None:
        store.replace(records, 0.0)
    return store.view(0.0)


def _without_sums(view: ClusterView) -> ClusterView:
    """The view of a cluster of whose pods only some are known: reasons are those that the messages alone give."""
    known = replace(view, nodes=None, devices=replace(view.devices, by_node={}))
    return replace(with_pending(known, ClusterHistory()), nodes=view.nodes, devices=view.devices)
