"""For a pending pod: which allocated GPUs are idle and would fit it, and how long pods like it have waited."""

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass

from exporter.cluster.kubernetes.objects.records import Pod
from exporter.cluster.scheduling.keeping.waits import size_of
from exporter.cluster.scheduling.nodes.node_selection import ANY_MODEL, demanded_model
from exporter.commands.explain.past import queries
from exporter.commands.prometheus.client import PrometheusClient
from exporter.commands.prometheus.expression import cluster_pattern, exactly, filled
from exporter.gpu_names import resource_label

_FEW = 5
"""Below so many waits in its namespace, those of all namespaces are shown."""


@dataclass(frozen=True, slots=True, order=True)
class IdleGpus:
    """Devices that a pod has and does not use."""

    node: str
    namespace: str
    pod: str
    resource: str
    model: str
    """Empty where it is not known."""
    count: int


@dataclass(frozen=True, slots=True)
class PastWaits:
    """How long pods with as many devices of the same resource waited until they were bound, in 7 days."""

    resource: str
    size: str
    namespace: str
    """Empty for pods of all namespaces."""
    pods: float
    p50: float | None
    p95: float | None
    """Seconds; the upper end of the histogram where more waited longer."""


def idle_gpus(
    client: PrometheusClient, at: float, cluster: str, pod: Pod, nodes: Container[str] | None
) -> list[IdleGpus]:
    """The idle ones of the resources and the model that the pod asks for, the most of one pod first.

    `nodes` are those that the pod may use; None where that is not known. Raises PrometheusError.
    """
    resources = {resource_label(name) for name, _ in pod.requests}
    pattern = cluster_pattern(cluster)
    found = [
        each
        for each in client.query(filled(queries.IDLE, cluster=pattern), at).samples
        if each["resource"] in resources and (nodes is None or each["node"] in nodes)
    ]
    if not found:
        return []
    uuids = exactly(*sorted({each["UUID"] for each in found}))
    known = client.query(filled(queries.MODELS, cluster=pattern, uuids=uuids), at).samples
    models = {each["UUID"]: each["model"] for each in known}
    wanted = demanded_model(pod.constraints)
    counts = Counter(
        (each["node"], each["gpu_namespace"], each["gpu_pod"], each["resource"], models.get(each["UUID"], ""))
        for each in found
        if wanted in (ANY_MODEL, models.get(each["UUID"]))
    )
    rows = [IdleGpus(*key, count) for key, count in counts.items()]
    return sorted(rows, key=lambda row: (-row.count, row))


def past_waits(client: PrometheusClient, at: float, cluster: str, pod: Pod) -> list[PastWaits]:
    """One row for each resource that the pod asks for; none where no pod like it was seen. Raises PrometheusError."""
    found = []
    for name, count in pod.requests:
        resource, size = resource_label(name), size_of(count)
        own = _waits(client, at, cluster, (pod.namespace, resource, size))
        waits = own if own.pods >= _FEW else _waits(client, at, cluster, ("", resource, size))
        found.append(waits if waits.pods >= 1 else own)
    return [each for each in found if each.pods >= 1]


def _waits(client: PrometheusClient, at: float, cluster: str, like: tuple[str, str, str]) -> PastWaits:
    namespace, resource, size = like
    values = {
        "cluster": cluster_pattern(cluster),
        "namespace": exactly(namespace) if namespace else ".+",
        "resource": resource,
        "size": size,
    }

    def one(expression: str, **more: str) -> float | None:
        samples = client.query(filled(expression, **values, **more), at).samples
        return samples[0].value if samples else None

    pods = one(queries.WAITS) or 0.0
    if pods < 1:
        return PastWaits(resource, size, namespace, pods, None, None)
    quantiles = one(queries.WAITED, quantile="0.5"), one(queries.WAITED, quantile="0.95")
    return PastWaits(resource, size, namespace, pods, *quantiles)
