"""What a scenario says of components (NVSwitches and their NVLinks), checked and as plain data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from exporter.node.dcgm import layout
from exporter.node.devices.component import Component
from exporter.node.simulation.document import (
    MAX_SWITCH_LINKS,
    MAX_SWITCHES,
    Fields,
    NvlinkSpec,
    ScenarioDocument,
)
from exporter.node.simulation.script import ScriptedSample


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """A component of a scenario, of whatever scope."""

    component: Component
    entity: tuple[int, int]
    """Kind and id in DCGM."""
    address: str
    """What an event calls it."""
    place: str
    """Where it is in the document, in msgspec's notation."""
    use: tuple[str, ...]
    fields: Fields
    link: NvlinkSpec | None = None
    """Of a link, what the scenario says of it."""


@dataclass(frozen=True, slots=True)
class ComponentState:
    """A component at one time."""

    spec: ComponentSpec
    samples: Mapping[int, ScriptedSample]
    """By field id."""

    @property
    def is_readable(self) -> bool:
        """Whether it has values: a disabled link has none."""
        return self.spec.link is None or self.spec.link.state != "disabled"


def component_specs(document: ScenarioDocument) -> Iterator[ComponentSpec]:
    """Yield the components of a scenario: each NVSwitch, then its links."""
    for position, switch in enumerate(document.switches):
        place, address = f"$.switches[{position}]", f"nvswitch{switch.number}"
        entity = layout.ENTITY_SWITCH, switch.number
        component = Component("switch", switch.number)
        yield ComponentSpec(component, entity, address, place, switch.use, switch.fields)
        for n, link in enumerate(switch.nvlinks):
            yield ComponentSpec(
                Component("switch_link", link.number, switch.number),
                (layout.ENTITY_LINK, layout.link_id(switch.number, link.number, layout.ENTITY_SWITCH)),
                f"{address}/nvlink{link.number}",
                f"{place}.nvlinks[{n}]",
                link.use,
                link.fields,
                link,
            )


def component_errors(document: ScenarioDocument) -> Iterator[str]:
    """Yield the errors that the types of the model do not exclude, as messages with a place."""
    addresses = set()
    for spec in component_specs(document):
        limit = {"switch": MAX_SWITCHES, "switch_link": MAX_SWITCH_LINKS}[spec.component.scope]
        number = spec.component.number
        if not 0 <= number < limit:
            yield f"number {number} is not one from 0 to {limit - 1} - at `{spec.place}`"
        if spec.address in addresses:
            yield f"number {number!r} is there twice - at `{spec.place}`"
        addresses.add(spec.address)
