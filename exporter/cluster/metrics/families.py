"""Makes all metric families of the watcher from one view of the cluster. No I/O, so tests need no cluster."""

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.objects.overrides import MalformedOverride
from exporter.cluster.metrics import (
    blocked_work,
    capacity,
    leadership,
    limits,
    maintenance,
    namespaces,
    node_problems,
    nodes,
    pending,
    pods,
    prices,
    reflectors,
)
from exporter.cluster.view import ClusterView
from exporter.metric import AnyFamily

METRICS = (
    *pending.METRICS,
    *blocked_work.METRICS,
    *pods.METRICS,
    *namespaces.METRICS,
    *nodes.METRICS,
    *capacity.METRICS,
    *maintenance.METRICS,
    *node_problems.METRICS,
    *prices.METRICS,
    *limits.METRICS,
    *reflectors.METRICS,
    *leadership.METRICS,
)
"""Every metric that the watcher can expose."""


def families(view: ClusterView, config: ClusterConfig, malformed: list[MalformedOverride]) -> list[AnyFamily]:
    """The families that may have a sample. `malformed` are the overrides that are ignored now."""
    found: list[AnyFamily] = [
        *pending.pending_families(view, config),
        *blocked_work.blocked_work_families(view),
        *pods.pod_families(view, config.limits.pods),
        *namespaces.namespace_families(view),
        pods.failure_family(view),
        pods.failed_workloads_family(view),
        pods.wait_family(view),
        pods.malformed_family(malformed),
        *nodes.node_families(view, config.node_labels, config.limits.nodes),
        *capacity.capacity_families(view),
        *maintenance.maintenance_families(view),
        *node_problems.node_problem_families(view),
        *prices.price_families(view),
        *reflectors.reflector_families(view.stores),
    ]
    found = [limits.limited(family, config.limits) for family in found]
    found.append(limits.left_out_family(found))
    return [family for family in found if family.samples]
