"""Makes from a pod, as the API server writes it, what its spec is reviewed with."""

import msgspec

from exporter.cluster.kubernetes.converting import conversion
from exporter.cluster.kubernetes.converting.events import events_about
from exporter.cluster.kubernetes.objects import wire
from exporter.cluster.kubernetes.objects.records import Pod
from exporter.cluster.kubernetes.pods.pod_detail import detail
from exporter.cluster.scheduling.explaining.spec_review import PodReview, SpecFinding, review
from exporter.cluster.scheduling.nodes.device_claims import with_claims
from exporter.cluster.scheduling.nodes.free_capacity import node_groups, requested
from exporter.cluster.view import ClusterView
from exporter.commands.explain.sources import RawObject

_NOT_CREATED = {"uid": "-", "creationTimestamp": "1970-01-01T00:00:00Z"}
"""What the manifest of a pod lacks that does not exist yet."""


def mistakes(given: RawObject | None, view: ClusterView) -> tuple[SpecFinding, ...]:
    """Find the mistakes in the spec of a pod; none where it cannot be read."""
    found = None if given is None else detail(given)
    if given is None or found is None:
        return ()
    pod = _record(given, view)
    nodes = None if view.nodes is None else view.gpu_nodes()
    groups = () if pod is None else node_groups(nodes or (), requested(view.pods or ()), [pod], view.devices)
    events = events_about(view.events, found.metadata.namespace, found.metadata.uid)
    messages = (found.status.message or "", *(event.message for event in events))
    return review(PodReview(found, view.gpus, pod, nodes, groups, messages, view.gpu_pools))


def _record(given: RawObject, view: ClusterView) -> Pod | None:
    """The record of the pod as if it were pending, None for one that requests no GPU."""
    meta = {**_NOT_CREATED, **{key: value for key, value in given["metadata"].items() if value is not None}}
    status = {"phase": "Pending"} if _ended(given) else given.get("status")
    try:
        decoded = msgspec.convert({**given, "metadata": meta, "status": status}, wire.WirePod)
        record = conversion.pod(decoded, view.gpus)
    except (ValueError, TypeError, AttributeError):
        return None
    return next(iter(with_claims([record], view.devices)), None) if isinstance(record, Pod) else None


def _ended(given: RawObject) -> bool:
    status = given.get("status")
    return isinstance(status, dict) and status.get("phase") in ("Succeeded", "Failed")
