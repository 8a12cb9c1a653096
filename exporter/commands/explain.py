"""`gpugauge explain`: why a GPU pod is pending, node by node, from a cluster or from files of `kubectl get -o json`."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.api import ApiError, KubernetesApi, open_api
from exporter.cluster.kubernetes.kinds import ObjectKind, object_kinds
from exporter.cluster.kubernetes.listing import pages
from exporter.cluster.kubernetes.reasons import WatchReason
from exporter.cluster.kubernetes.records import ClusterObject, Pod
from exporter.cluster.kubernetes.store import ObjectStore, StoreView
from exporter.cluster.scheduling.explanation import Explanation, explain
from exporter.cluster.scheduling.history import ClusterHistory
from exporter.cluster.scheduling.pending_pods import PendingPod
from exporter.cluster.scheduling.pending_reason import PendingReason
from exporter.cluster.view import ClusterView, objects_of, view_of
from exporter.commands.terminal import printable
from exporter.config import ConfigError
from exporter.gpu_names import GpuResources, gpu_resources

_OPTIONAL_REASONS = (WatchReason.FORBIDDEN, WatchReason.NOT_SERVED)
_NAMED_NODES = 4
"""How many nodes of a group are named."""
_HOUR, _LONG = 60, 48 * 60
"""Minutes: of an hour, and from when on a time is given in days."""


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


def report(view: ClusterView, name: str, *, as_json: bool) -> str:
    """Explain one pod, named as namespace/pod, or list all pending GPU pods. Raises ConfigError when there is none."""
    if not name:
        return _table(view)
    found = _explanation(view, name)
    return json.dumps(_as_json(found), indent=2) + "\n" if as_json else _as_text(found, view.now)


def _explanation(view: ClusterView, name: str) -> Explanation:
    namespace, _, pod = name.rpartition("/")
    namespace = namespace or "default"

    def named(each: Pod) -> bool:
        return (each.namespace, each.name) == (namespace, pod)

    pending = next((each for each in view.pending if named(each.pod)), None)
    rejected = next((each for each in view.rejected if named(each)), None)
    if pending is None and rejected is not None:
        pending = PendingPod(rejected, PendingReason.ADMISSION_FAILED)
    if pending is None:
        known = any(named(each) for each in view.pods or ())
        state = "is not pending" if known else "is no GPU pod that is known here, or has ended"
        raise ConfigError(f"{namespace}/{pod} {state}")
    return explain(pending, objects_of(view))


def _as_text(found: Explanation, now: float) -> str:
    asked = ", ".join(f"{count} {name}" for name, count in found.requests)
    lines = [
        f"{found.namespace}/{found.pod}: {found.reason}",
        found.reason.meaning,
        "",
        f"It requests {asked}. Pending since {_time(found.since)}, for {_age(now - found.since)}.",
    ]
    if found.node:
        lines.append(f"It is bound to the node {found.node}.")
    elif found.message:
        lines.append(f"The scheduler wrote: {printable(found.message)}")
    if found.findings:
        lines += ["", "Nodes with GPUs:"]
        lines += [f"  {_nodes(each.nodes)}: {each.text}" for each in found.findings]
    return "\n".join([*lines, "", f"What to do: {found.reason.remedy}", *_checks(found.checks)]) + "\n"


def _checks(checks: Iterable[str]) -> list[str]:
    return ["To see more:", *(f"  {check}" for check in checks)]


def _nodes(names: tuple[str, ...]) -> str:
    some = ", ".join(names[:_NAMED_NODES])
    more = f" and {len(names) - _NAMED_NODES} more" if len(names) > _NAMED_NODES else ""
    return f"1 node ({some})" if len(names) == 1 else f"{len(names)} nodes ({some}{more}), each"


def _as_json(found: Explanation) -> dict[str, object]:
    return {
        "namespace": found.namespace,
        "pod": found.pod,
        "reason": str(found.reason),
        "meaning": found.reason.meaning,
        "remedy": found.reason.remedy,
        "requests": dict(found.requests),
        "pending_since": _time(found.since),
        "node": found.node,
        "message": found.message,
        "nodes": [{"finding": each.text, "names": list(each.nodes)} for each in found.findings],
        "commands": list(found.checks),
    }


def _table(view: ClusterView) -> str:
    if not view.pending:
        return "No GPU pod is pending.\n"
    rows = [("POD", "PENDING FOR", "REASON", "REQUESTS")]
    for each in sorted(view.pending, key=lambda each: each.since):
        asked = ", ".join(f"{count} {name}" for name, count in each.pod.requests)
        rows.append((f"{each.pod.namespace}/{each.pod.name}", _age(view.now - each.since), str(each.reason), asked))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "".join("  ".join(map(str.ljust, row, widths)).rstrip() + "\n" for row in rows)


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _age(seconds: float) -> str:
    minutes = max(0, int(seconds)) // 60
    if minutes < _HOUR:
        return f"{minutes} min"
    if minutes < _LONG:
        return f"{minutes // _HOUR} h {minutes % _HOUR} min"
    return f"{minutes // (24 * _HOUR)} days"


def run(arguments: Any, clock: Callable[[], float]) -> str:
    """Read the objects that the command line names and return the text. Raises ConfigError."""
    gpus, now = gpu_resources(arguments.nvidia_resource_names), clock()
    if len(arguments.operands) > 1:
        raise ConfigError(f"explain takes one NAMESPACE/POD, and was given {' '.join(arguments.operands)}")
    name = arguments.operands[0] if arguments.operands else ""
    if arguments.objects:
        view = view_of_files(arguments.objects, gpus, now)
    else:
        config = ClusterConfig(
            api_server=arguments.api_server or None,
            kubeconfig=arguments.kubeconfig or None,
            context=arguments.context or None,
        )
        view = view_of_cluster(config, gpus, now)
    return report(view, name, as_json=arguments.json)
