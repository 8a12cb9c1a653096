"""Recording rules, alerts and their routing, as Python from which `python -m alerts` writes configuration files.

Each group of rules is a module with a constant GROUP. `rule.py` defines what a group consists of, `rulefile.py` how it
is written, `expression.py` the PromQL that several groups share.
"""

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
"""Every group, each after the groups whose series it reads."""
