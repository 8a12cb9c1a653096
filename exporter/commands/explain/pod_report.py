"""Writes the explanation of one pod, as text and as JSON."""

from collections.abc import Iterable

from exporter.cluster.scheduling.explanation import Explanation, explain
from exporter.cluster.scheduling.pending_pods import PendingPod
from exporter.cluster.scheduling.pending_reason import PendingReason
from exporter.cluster.scheduling.spec_review import SpecFinding
from exporter.cluster.view import ClusterView, objects_of
from exporter.commands.explain.pod_review import mistakes
from exporter.commands.explain.sources import ObjectSource
from exporter.commands.explain.text import age, amounts, as_json, lines, utc
from exporter.config import ConfigError

_NAMED_NODES = 4
"""How many nodes of a group are named."""


def pod_report(source: ObjectSource, view: ClusterView, name: str, *, json: bool) -> str:
    """Explain one pod, named as namespace/pod, and review its spec.

    Raises ConfigError for a pod that is not pending and in whose spec no mistake is found.
    """
    namespace, _, pod = name.rpartition("/")
    namespace = namespace or "default"
    found = mistakes(source.pod(namespace, pod), view)
    explanation = _explanation(view, namespace, pod)
    if explanation is None and not found:
        known = any((each.namespace, each.name) == (namespace, pod) for each in view.pods or ())
        state = "is not pending" if known else "is no GPU pod that is known here, or has ended"
        raise ConfigError(f"{namespace}/{pod} {state}")
    if json:
        head = {"namespace": namespace, "pod": pod} if explanation is None else _facts(explanation)
        return as_json({**head, "mistakes": [each._asdict() for each in found]})
    head_lines = [f"{namespace}/{pod}: not pending"] if explanation is None else _text(explanation, view.now)
    return lines([*head_lines, *_review(found)])


def _explanation(view: ClusterView, namespace: str, name: str) -> Explanation | None:
    """The explanation of a pod, None for one that is not pending."""
    pods = (each for each in view.pending if (each.pod.namespace, each.pod.name) == (namespace, name))
    pending = next(pods, None)
    rejected = next((each for each in view.rejected if (each.namespace, each.name) == (namespace, name)), None)
    if pending is None and rejected is not None:
        pending = PendingPod(rejected, PendingReason.ADMISSION_FAILED)
    return None if pending is None else explain(pending, objects_of(view))


def _review(found: tuple[SpecFinding, ...]) -> Iterable[str]:
    if found:
        yield from ("", "Mistakes in the pod's spec:")
    for each in found:
        yield from (f"  {each.mistake}: {each.text}", f"    {each.command}")


def _text(found: Explanation, now: float) -> Iterable[str]:
    yield from (f"{found.namespace}/{found.pod}: {found.reason}", found.reason.meaning, "")
    pending = f"Pending since {utc(found.since)}, for {age(now - found.since)}."
    yield f"It requests {amounts(found.requests)}. {pending}"
    if found.node:
        yield f"It is bound to the node {found.node}."
    elif found.message:
        yield f"The scheduler wrote: {found.message}"
    if found.findings:
        yield from ("", "Nodes with GPUs:")
        yield from (f"  {_nodes(each.nodes)}: {each.text}" for each in found.findings)
    yield from ("", f"What to do: {found.reason.remedy}", "To see more:")
    yield from (f"  {check}" for check in found.checks)


def _nodes(names: tuple[str, ...]) -> str:
    some = ", ".join(names[:_NAMED_NODES])
    more = f" and {len(names) - _NAMED_NODES} more" if len(names) > _NAMED_NODES else ""
    return f"1 node ({some})" if len(names) == 1 else f"{len(names)} nodes ({some}{more}), each"


def _facts(found: Explanation) -> dict[str, object]:
    return {
        "namespace": found.namespace,
        "pod": found.pod,
        "reason": str(found.reason),
        "meaning": found.reason.meaning,
        "remedy": found.reason.remedy,
        "requests": dict(found.requests),
        "pending_since": utc(found.since),
        "node": found.node,
        "message": found.message,
        "nodes": [{"finding": each.text, "names": list(each.nodes)} for each in found.findings],
        "commands": list(found.checks),
    }
