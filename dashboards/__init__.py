"""The Grafana dashboards, as Python from which `python -m dashboards` writes JSON into deploy/generated/dashboards.

Each dashboard is a module of `boards/` (lower rows of two of them in `breakdown.py`, `health.py`). `panels.py` makes
panels, `queries.py` has the PromQL that panels share.
"""

from dashboards.boards import capacity, efficiency, fleet, namespace, node, workload
from dashboards.style import Dashboard

DASHBOARDS: tuple[Dashboard, ...] = (
    fleet.DASHBOARD,
    node.DASHBOARD,
    workload.DASHBOARD,
    namespace.DASHBOARD,
    capacity.DASHBOARD,
    efficiency.DASHBOARD,
)
"""Every dashboard. Their uids are an interface: links from elsewhere contain them."""
