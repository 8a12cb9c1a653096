"""Every family of the watcher's page, from one view: pure, so that a page can be tested without a cluster."""

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.overrides import Malformed
from exporter.cluster.metrics import maintenance, nodes, pending, pods, reflectors
from exporter.cluster.view import View
from exporter.metric import Family

METRICS = (*pending.METRICS, *pods.METRICS, *nodes.METRICS, *maintenance.METRICS, *reflectors.METRICS)
"""Every metric that the watcher can expose."""


def families(view: View, config: ClusterConfig, ignored: list[Malformed]) -> list[Family]:
    """The page's families; one without samples is left out."""
    found = [
        *pending.pending_families(view, config.tracked_pods, config.tracked_after),
        *pods.pod_families(view),
        *pods.namespace_families(view),
        pods.malformed_family(ignored),
        *nodes.node_families(view),
        *maintenance.maintenance_families(view),
        *reflectors.watch_families(view.tables),
    ]
    return [family for family in found if family.samples]
