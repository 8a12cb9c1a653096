"""Recording rules, alerts and their routing, as Python from which `python -m alerts` writes configuration files.

Each group of rules is a constant GROUP of a module, or one of its GROUPS. `adapters/` and `recorded/` record series,
`alerting/` has the alerts, `routing/` who is notified. `rules/` defines what a rule is and how it is written.
"""

from alerts.adapters import dcgm_exporter, kube_state_metrics
from alerts.alerting import (
    allocation,
    blind_exporters,
    efficiency,
    exporter_settings,
    exporters,
    faults,
    idle,
    lost_gpus,
    missing_data,
    node_problems,
    pending,
    rules_health,
    thermal,
    watcher,
    xids,
)
from alerts.alerting import capacity as capacity_alerts
from alerts.alerting import nodes as node_alerts
from alerts.recorded import (
    capacity,
    clusters,
    hardware,
    namespaces,
    nodes,
    pod_states,
    pods,
    reports,
    thresholds,
    workloads,
)
from alerts.recorded import exporters as recorded_exporters
from alerts.recorded import faults as recorded_faults
from alerts.rules.rule import Group

ADAPTERS: tuple[Group, ...] = (dcgm_exporter.GROUP, kube_state_metrics.GROUP)
"""The groups that are loaded only where what they read is in use."""

GROUPS: tuple[Group, ...] = (
    thresholds.GROUP,
    thresholds.IN_FORCE,
    *ADAPTERS,
    *pods.GROUPS,
    pod_states.GROUP,
    namespaces.GROUP,
    *nodes.GROUPS,
    hardware.GROUP,
    *clusters.GROUPS,
    workloads.GROUP,
    capacity.GROUP,
    reports.GROUP,
    efficiency.GROUP,
    idle.GROUP,
    allocation.GROUP,
    capacity_alerts.GROUP,
    pending.GROUP,
    recorded_exporters.GROUP,
    exporters.GROUP,
    blind_exporters.GROUP,
    missing_data.GROUP,
    exporter_settings.GROUP,
    node_alerts.GROUP,
    watcher.GROUP,
    rules_health.GROUP,
    lost_gpus.GROUP,
    recorded_faults.GROUP,
    faults.GROUP,
    xids.GROUP,
    thermal.GROUP,
    node_problems.GROUP,
)
"""Every group, each after the groups whose series it reads."""

COMMON: tuple[Group, ...] = tuple(group for group in GROUPS if group not in ADAPTERS)
"""The groups that everybody loads."""
