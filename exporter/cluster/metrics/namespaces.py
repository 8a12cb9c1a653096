"""Metrics of namespaces: who pays for them, and from which alerts they are exempt."""

from exporter.cluster.config import NAMESPACE_NAMES
from exporter.cluster.kubernetes.objects.overrides import ALERT, namespace_exemption
from exporter.cluster.view import ClusterView
from exporter.identity_labels import NAMESPACE, namespace_labels
from exporter.metric import Family, Kind, Sample, metric

INFO = metric(
    "gpugauge_namespace_info",
    Kind.GAUGE,
    "Constant 1; one per namespace that has a label named by --namespace-labels.",
    *NAMESPACE,
    *NAMESPACE_NAMES,
)
EXEMPTION = metric(
    "gpugauge_namespace_alert_exemption",
    Kind.GAUGE,
    "The namespace is exempt from this alert, through the day `until` (UTC), or without end where that is empty.",
    *NAMESPACE,
    "alert",
    "until",
)
METRICS = (INFO, EXEMPTION)


def namespace_families(view: ClusterView) -> list[Family]:
    """The families of whole namespaces; none while these are not known."""
    if view.namespaces is None:
        return []
    samples: list[Sample] = []
    for name, overrides in sorted(view.namespaces.items()):
        exemption = namespace_exemption(overrides.exemption, view.now)
        if exemption is not None:
            labels = {**namespace_labels(name), "alert": ALERT, "until": exemption.until}
            samples.append(EXEMPTION.sample(1, **labels))
    return [Family(INFO, _infos(view)), Family(EXEMPTION, samples)]


def _infos(view: ClusterView) -> list[Sample]:
    return [INFO.ordered(1, name, name, *values) for name, values in sorted(view.owners.items())]
