"""The rows of table.h that say which components (NVSwitches and their NVLinks) an engine has."""

from collections.abc import Iterator

from exporter.node.simulation.components import ComponentState
from exporter.node.simulation.script import ScriptedSample

LINK_STATES = {"disabled": 1, "down": 2, "up": 3}
"""States of an NVLink (dcgmNvLinkLinkState_t)."""
MARK = 0
"""The field number of table.h whose sample says that an entity exists."""


def marks(component: ComponentState, t: float) -> Iterator[ScriptedSample]:
    """Yield the sample that says that this component exists: the state of a link, 1 of others."""
    link = component.spec.link
    yield ScriptedSample(LINK_STATES[link.state] if link else 1, t)
