"""Families about GPU pods that are not finished: who they are, and what their owners say about alerts."""

from exporter.cluster.kubernetes.overrides import (
    ALERT,
    CLASS,
    OPTOUT,
    THRESHOLD,
    Malformed,
    namespace_optout,
    pod_class,
    pod_optout,
    threshold,
)
from exporter.cluster.kubernetes.records import Pod, Switches
from exporter.cluster.view import View
from exporter.identity_labels import NAMESPACE, POD, LabelPairs, of_namespace, of_pod, of_workload
from exporter.metric import Family, Kind, Labels, Metric, Value

INFO = Metric(
    "gpugauge_gpu_pod_info",
    Kind.GAUGE,
    "GPU pods that are not finished.",
    (*POD, "node", "workload", "workload_type", "class", "priority_class"),
)
START = Metric(
    "gpugauge_gpu_pod_start_timestamp_seconds",
    Kind.GAUGE,
    "When the kubelet took the pod on, before it pulled any image.",
    POD,
)
PHASE = Metric("gpugauge_gpu_pod_phase", Kind.GAUGE, "The pod's current phase.", (*POD, "phase"))
LOW = Metric(
    "gpugauge_pod_low_utilization_threshold_ratio",
    Kind.GAUGE,
    "Utilization below which this pod counts as under-used, where its owners have said so.",
    POD,
)
POD_OPTOUT = Metric(
    "gpugauge_pod_alert_optout",
    Kind.GAUGE,
    "The pod is excepted from this alert, through the day `until` (UTC).",
    (*POD, "alert", "until"),
)
NAMESPACE_OPTOUT = Metric(
    "gpugauge_namespace_alert_optout",
    Kind.GAUGE,
    "The namespace is excepted from this alert, through the day `until` (UTC) or for good where that is empty.",
    (*NAMESPACE, "alert", "until"),
)
MALFORMED = Metric(
    "gpugauge_switches_malformed",
    Kind.GAUGE,
    "Annotations and labels of ours that are ignored because their values cannot be understood.",
    ("key",),
)
METRICS = (INFO, START, PHASE, LOW, POD_OPTOUT, NAMESPACE_OPTOUT, MALFORMED)

Samples = list[tuple[Labels, Value]]


def pod_families(view: View) -> list[Family]:
    """What is said of single pods; nothing while the pods are not known."""
    if view.pods is None:
        return []
    pods = sorted(view.pods, key=lambda pod: (pod.namespace, pod.name))
    named = [(pod, of_pod(pod)) for pod in pods]
    return [
        Family(INFO, [(view.label((*own, *_info(pod, view))), 1) for pod, own in named]),
        Family(START, [(view.label(own), pod.started) for pod, own in named if pod.started is not None]),
        Family(PHASE, [(view.label((*own, ("phase", pod.phase))), 1) for pod, own in named if pod.phase]),
        Family(LOW, _thresholds(pods, view)),
        Family(POD_OPTOUT, _optouts(pods, view.now)),
    ]


def namespace_families(view: View) -> list[Family]:
    """What is said of whole namespaces; nothing while these are not known."""
    if view.namespaces is None:
        return []
    samples: Samples = []
    for name, switches in sorted(view.namespaces.items()):
        optout = namespace_optout(switches.optout, view.now)
        if optout is not None:
            samples.append((Labels((*of_namespace(name), ("alert", ALERT), ("until", optout.until))), 1))
    return [Family(NAMESPACE_OPTOUT, samples)]


def malformed_family(found: list[Malformed]) -> Family:
    """How many values are ignored now, by key; nought is said too, so that a rule can see the change."""
    counts = {CLASS: 0, OPTOUT: 0, THRESHOLD: 0}
    for each in found:
        counts[each.key] += 1
    return Family(MALFORMED, [(Labels((("key", key),)), count) for key, count in counts.items()])


def _info(pod: Pod, view: View) -> LabelPairs:
    more = (("class", _class(pod, view)), ("priority_class", pod.priority_class))
    return (("node", pod.node), *of_workload(pod), *more)


def _class(pod: Pod, view: View) -> str:
    """Empty where only the namespace could tell and the namespaces are not known."""
    if view.namespaces is not None:
        return pod_class(pod, view.namespaces.get(pod.namespace, Switches()))
    return pod_class(pod, Switches()) if pod.switches.class_ else ""


def _thresholds(pods: list[Pod], view: View) -> Samples:
    samples: Samples = []
    spaces = view.namespaces or {}
    for pod in pods:
        ratio = threshold(pod.switches.threshold)
        if ratio is None:
            ratio = threshold(spaces.get(pod.namespace, Switches()).threshold)
        if ratio is not None:
            samples.append((view.label(of_pod(pod)), ratio))
    return samples


def _optouts(pods: list[Pod], now: float) -> Samples:
    samples: Samples = []
    for pod in pods:
        optout = pod_optout(pod.switches.optout, now)
        if optout is not None:
            samples.append((Labels((*of_pod(pod), ("alert", ALERT), ("until", optout.until))), 1))
    return samples
