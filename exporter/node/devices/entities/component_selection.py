"""Selects the components that are read, of those that a source lists, and says which selected ones are not there.

No I/O, no state. `SelectionReason` is why one that was selected is missing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from exporter.node.devices.entities.component import OWNERS, Component, ComponentScope
from exporter.node.devices.entities.selection import Ids, Selection
from exporter.reason import Reason

_NAMES: Mapping[ComponentScope, str] = {"switch": "NVSwitch", "switch_link": "NVLink", "cpu": "CPU", "core": "core"}
_FLAGS: Mapping[ComponentScope, str] = {"switch": "--switch-devices", "cpu": "--cpu-devices"}
"""By the scope of the whole components, the flag that selects them and their parts."""


class SelectionReason(Reason):
    """Label `reason` of `gpugauge_source_problem`, of `--switch-devices` and `--cpu-devices`."""

    SELECTED_MISSING = (
        "selected_missing",
        "An NVSwitch, NVLink, CPU or core that a flag selects is not there; the others are read.",
        "Check the numbers in --switch-devices and --cpu-devices against those in the series; the log names them.",
    )


class ComponentSelections(msgspec.Struct, frozen=True, array_like=True):
    """What is read of the NVSwitches and of the CPUs of a node."""

    switches: Selection = Selection()
    cpus: Selection = Selection()

    def of(self, scope: ComponentScope) -> Selection:
        """Return the selection that components of this scope are subject to."""
        return self.switches if OWNERS.get(scope, scope) == "switch" else self.cpus

    def has(self, component: Component) -> bool:
        """Whether this component is read."""
        selection = self.of(component.scope)
        if component.scope in OWNERS:
            return selection.has_part(component.number, component.owner)
        return selection.has_whole(component.number)

    def problems(
        self, selected: Sequence[Component], listed: Collection[ComponentScope]
    ) -> tuple[tuple[str, str], ...]:
        """Return (reason, message) where components that are named are not among the selected ones.

        `listed` has the scopes whose components could be listed: of the others nothing is known.
        """
        missing = "; ".join(self._missing(selected, listed))
        return ((SelectionReason.SELECTED_MISSING, f"not there: {missing}"),) if missing else ()

    def _missing(self, selected: Sequence[Component], listed: Collection[ComponentScope]) -> Iterator[str]:
        for scope in listed:
            selection = self.of(scope)
            named: Ids = selection.parts if scope in OWNERS else selection.wholes
            there = {component.number for component in selected if component.scope == scope}
            numbers = ", ".join(str(number) for number in named or () if number not in there)
            if numbers:
                yield f"{_NAMES[scope]} {numbers} of {_FLAGS[OWNERS.get(scope, scope)]}"
