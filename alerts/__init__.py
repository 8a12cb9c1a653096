"""Recording rules, alerts and their routing, generated as Prometheus and Alertmanager configuration."""

from alerts import attribution, efficiency, exporters, normalize, pending, thresholds
from alerts.rule import Group

GROUPS: tuple[Group, ...] = (
    thresholds.GROUP,
    normalize.GROUP,
    attribution.GROUP,
    efficiency.GROUP,
    pending.GROUP,
    exporters.GROUP,
)
"""Every group, each after the ones whose series it reads."""
