"""Writes the explanation of one pod, as text and as JSON."""

from collections.abc import Iterable

from exporter.cluster.kubernetes.records import Pod
from exporter.cluster.scheduling.explanation import Explanation, explain
from exporter.cluster.scheduling.pending_pods import PendingPod
from exporter.cluster.scheduling.pending_reason import PendingReason
from exporter.cluster.view import ClusterView, objects_of
from exporter.commands.explain.text import age, amounts, as_json, lines, utc
from exporter.config import ConfigError

_NAMED_NODES = 4
"""How many nodes of a group are named."""


def pod_report(view: ClusterView, name: str, *, json: bool) -> str:
    """Explain one pod, named as namespace/pod. Raises ConfigError when it is not pending."""
    found = _explanation(view, name)
    return as_json(_facts(found)) if json else lines(_text(found, view.now))


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
