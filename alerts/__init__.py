"""Recording rules, alerts and their routing, as Python from which `python -m alerts` writes configuration files.

Each group of rules is a constant GROUP of a module, or one of its GROUPS. `rule.py` defines what a group consists of,
`rulefile.py` how it is written, `expression.py` the PromQL that several groups share.
"""

from alerts import (
    clusters,
    dcgm_exporter,
    efficiency,
    exporters,
    kube_state_metrics,
    namespaces,
    nodes,
    pending,
    pods,
    thresholds,
)
from alerts.rule import Group

ADAPTERS: tuple[Group, ...] = (dcgm_exporter.GROUP, kube_state_metrics.GROUP)
"""The groups that are loaded only where what they read is in use."""

GROUPS: tuple[Group, ...] = (
    thresholds.GROUP,
    *ADAPTERS,
    *pods.GROUPS,
    namespaces.GROUP,
    *nodes.GROUPS,
    clusters.GROUP,
    efficiency.GROUP,
    pending.GROUP,
    exporters.GROUP,
)
"""Every group, each after the groups whose series it reads."""
