"""The Grafana dashboards, written as Python and generated into deploy/generated/dashboards.

Each dashboard is a module; `panels.py` makes its panels, `queries.py` has the PromQL that panels share.
"""

from dashboards import fleet, node
from dashboards.style import Dashboard

DASHBOARDS: tuple[Dashboard, ...] = (fleet.DASHBOARD, node.DASHBOARD)
"""Every dashboard. Their uids are an interface: links from elsewhere contain them."""
