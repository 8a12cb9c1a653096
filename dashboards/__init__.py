"""The Grafana dashboards, as Python from which `python -m dashboards` writes JSON into deploy/generated/dashboards.

Each dashboard is a module of `boards/`, some with lower rows in modules of their own. `panels.py` makes
panels, `queries.py` has the PromQL that panels share.
"""

from dashboards.boards import (
    alerts_overview,
    capacity,
    device,
    efficiency,
    exporter,
    fleet,
    hardware_health,
    mig_sharing,
    namespace,
    node,
    weekly,
    workload,
)
from dashboards.style import Dashboard

DASHBOARDS: tuple[Dashboard, ...] = (
    fleet.DASHBOARD,
    node.DASHBOARD,
    workload.DASHBOARD,
    namespace.DASHBOARD,
    capacity.DASHBOARD,
    efficiency.DASHBOARD,
    hardware_health.DASHBOARD,
    exporter.DASHBOARD,
    device.DASHBOARD,
    mig_sharing.DASHBOARD,
    alerts_overview.DASHBOARD,
    weekly.DASHBOARD,
)
"""Every dashboard. Their uids are an interface: links from elsewhere contain them."""
