"""The rows of table.h that say which components (NVSwitches, their NVLinks, CPUs and cores) an engine has."""

from exporter.node.simulation.components import ComponentState
from exporter.node.simulation.script import ScriptedSample

LINK_STATES = {"disabled": 1, "down": 2, "up": 3}
"""States of an NVLink (dcgmNvLinkLinkState_t)."""
MARK = 0
"""The field number of table.h whose sample says that an entity exists."""


def mark(component: ComponentState, t: float) -> ScriptedSample:
    """Return the sample that says that this component exists: its value is the state of a link or the CPU of a core."""
    link, owner = component.spec.link, component.spec.component.owner
    return ScriptedSample(LINK_STATES[link.state] if link else max(owner, 0), t)
