"""The type `Component`: an entity of the node that has fields of its own and that no container is given.

An NVSwitch, or one of its NVLinks. A position in `Readings.components` identifies a component within one collection.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

ComponentScope = Literal["switch", "switch_link"]
"""What a field has one value for, where that is no device: an NVSwitch, or an NVLink of one."""
OWNERS: Mapping[ComponentScope, ComponentScope] = {"switch_link": "switch"}
"""Of the scopes whose components are part of another one, that of the other."""


class Component(msgspec.Struct, frozen=True, array_like=True):
    """An NVSwitch or an NVLink of one."""

    scope: ComponentScope
    number: int
    """As the engine numbers them; links within their NVSwitch, from 0."""
    owner: int = -1
    """Number of the NVSwitch of a link; -1 of others."""

    @property
    def whole(self) -> tuple[ComponentScope, int]:
        """Scope and number of the component that this one is part of, or its own."""
        return (OWNERS[self.scope], self.owner) if self.scope in OWNERS else (self.scope, self.number)
