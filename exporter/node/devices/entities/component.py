"""The type `Component`: an entity of the node that has fields of its own and that no container is given.

An NVSwitch, one of its NVLinks, a Grace CPU, or one of its cores. A position in `Readings.components` identifies a
component within one collection.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

ComponentScope = Literal["switch", "switch_link", "cpu", "core"]
"""What a field has one value for, where that is no device: an NVSwitch, an NVLink of one, a CPU or a core."""
OWNERS: Mapping[ComponentScope, ComponentScope] = {"switch_link": "switch", "core": "cpu"}
"""Of the scopes whose components are part of another one, that of the other."""


class Component(msgspec.Struct, frozen=True, array_like=True):
    """An NVSwitch, an NVLink of one, a CPU or a core."""

    scope: ComponentScope
    number: int
    """As the engine numbers them; links within their NVSwitch, from 0, and cores as Linux numbers them."""
    owner: int = -1
    """Number of the NVSwitch of a link or the CPU of a core; -1 of others."""
    serial: str = ""
    """Serial number of a CPU; empty where it is not known, and of others."""

    @property
    def whole(self) -> tuple[ComponentScope, int]:
        """Scope and number of the component that this one is part of, or its own."""
        return (OWNERS[self.scope], self.owner) if self.scope in OWNERS else (self.scope, self.number)
