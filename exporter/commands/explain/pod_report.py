"""Writes the explanation of one pod, as text and as JSON."""

from collections.abc import Iterable
from dataclasses import replace

from exporter.cluster.kubernetes.converting.events import CLAIM_EVENTS, SANDBOX_EVENTS, VOLUME_EVENTS, events_about
from exporter.cluster.kubernetes.objects.records import Pod
from exporter.cluster.kubernetes.pods.pod_detail import detail
from exporter.cluster.scheduling.explaining.explanation import Explanation, explain
from exporter.cluster.scheduling.explaining.spec_review import SpecFinding
from exporter.cluster.scheduling.explaining.start_findings import StartFinding, start_findings
from exporter.cluster.scheduling.reasons.pending_pods import PendingPod
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.cluster.view import ClusterView, objects_of
from exporter.commands.explain.overview import capacity_facts, capacity_text
from exporter.commands.explain.past.explainer import PastExplainer, PastFindings
from exporter.commands.explain.pod_review import mistakes
from exporter.commands.explain.sources import OTHER_PODS, ObjectSource, RawObject
from exporter.commands.explain.text import amounts, as_json, lines, not_seen_text
from exporter.commands.explain.watcher import WatcherAnswer
from exporter.config import ConfigError
from exporter.time_text import age, utc

_NAMED_NODES = 4
"""How many nodes of a group are named."""


def pod_report(
    source: ObjectSource,
    view: ClusterView,
    name: tuple[str, str],
    answer: WatcherAnswer | None,
    past: PastExplainer | None = None,
    *,
    json: bool,
) -> str:
    """Explain one pod, named by (namespace, name), review its spec, and add what Prometheus knows of it.

    Raises ConfigError for a pod that is not pending, in whose spec no mistake is found, and of which nothing is asked.
    """
    if view.pods is None and source.not_seen:
        raise ConfigError(f"the pods of namespace {name[0]} may not be read")
    given = source.pod(*name)
    found = mistakes(given, view)
    explanation = _explanation(source, view, name, answer)
    pod = next((each for each in view.pods or () if (each.namespace, each.name) == name), None)
    seen = None if past is None or pod is None else _seen(past, pod, view, pending=explanation is not None)
    if explanation is None and not found and seen is None:
        state = "is not pending" if pod is not None else "is no GPU pod that is known here, or has ended"
        raise ConfigError(f"{'/'.join(name)} {state}")
    starts = _start_findings(given, explanation, view)
    if json:
        head = {"namespace": name[0], "pod": name[1]} if explanation is None else _facts(explanation)
        facts = {"start": [each._asdict() for each in starts], "mistakes": [each._asdict() for each in found]}
        past_facts = {} if seen is None else seen.facts
        return as_json({**head, **facts, **past_facts, **_around(source, answer)})
    head_lines = [f"{'/'.join(name)}: not pending"] if explanation is None else _text(explanation, view.now)
    past_lines = [] if seen is None else seen.lines
    around = _around_text(source, answer, name)
    return lines([*head_lines, *past_lines, *_start_text(starts), *_review(found), *around])


def _seen(past: PastExplainer, pod: Pod, view: ClusterView, *, pending: bool) -> PastFindings:
    return past.pending(pod, view) if pending else past.running(pod, view.now)


def _start_findings(given: RawObject | None, explanation: Explanation | None, view: ClusterView) -> list[StartFinding]:
    """Why a bound pod does not start; nothing for others."""
    decoded = None if given is None else detail(given)
    if decoded is None or explanation is None or not explanation.node:
        return []
    found = events_about(view.events, decoded.metadata.namespace, decoded.metadata.uid)
    events = [event.message for event in found if event.reason in SANDBOX_EVENTS | VOLUME_EVENTS | CLAIM_EVENTS]
    return start_findings(decoded, events, None if view.nodes is None else view.gpu_nodes(), explanation.node)


def _start_text(found: list[StartFinding]) -> Iterable[str]:
    if found:
        yield from ("", "What is known of why it does not start:")
    yield from (f"  {each.text}" for each in found)


def _around(source: ObjectSource, answer: WatcherAnswer | None) -> dict[str, object]:
    capacity = None if answer is None else capacity_facts(answer.capacities)
    return {"capacity_by_watcher": capacity, "not_seen": source.not_seen}


def _around_text(source: ObjectSource, answer: WatcherAnswer | None, name: tuple[str, str]) -> Iterable[str]:
    if answer is not None:
        given = "gives the reason" if name in answer.reasons else "has no series of this pod"
        yield from ("", f"The watcher, which sees all namespaces, {given}.", *capacity_text(answer.capacities))
    yield from not_seen_text(source.not_seen)


def _explanation(
    source: ObjectSource, view: ClusterView, name: tuple[str, str], answer: WatcherAnswer | None
) -> Explanation | None:
    """The explanation of a pod, None for one that is not pending."""
    pending = next((each for each in view.pending if (each.pod.namespace, each.pod.name) == name), None)
    rejected = next((each for each in view.rejected if (each.namespace, each.name) == name), None)
    if pending is None and rejected is not None:
        pending = PendingPod(rejected, PendingReason.ADMISSION_FAILED)
    if pending is None:
        return None
    heard = answer.reasons.get(name) if answer is not None else None
    objects = objects_of(view)
    if OTHER_PODS in source.not_seen:
        objects = replace(objects, nodes=None)  # what is free on nodes follows from all their pods
    return explain(PendingPod(pending.pod, heard or pending.reason), objects)


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
