"""What a scenario says of components (NVSwitches, their NVLinks, CPUs and cores), checked and as plain data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from exporter.node.dcgm.native import layout, listing_layout
from exporter.node.devices.entities.component import Component, ComponentScope
from exporter.node.simulation.document import CpuSpec, Fields, NvlinkSpec, ScenarioDocument, SwitchSpec
from exporter.node.simulation.script import ScriptedSample

NUMBERS: Mapping[ComponentScope, int] = {
    "switch": listing_layout.MAX_SWITCHES,
    "switch_link": listing_layout.SWITCH_LINKS,
    "cpu": listing_layout.MAX_CPUS,
    "core": listing_layout.CPU_CORES,
}
"""How many numbers the components of each scope can have."""


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
    """Yield the components of a scenario: each NVSwitch with its links, then each CPU with its cores."""
    for position, switch in enumerate(document.switches):
        yield from _of_switch(switch, f"$.switches[{position}]")
    for position, cpu in enumerate(document.cpus):
        yield from _of_cpu(cpu, f"$.cpus[{position}]")


def _of_switch(switch: SwitchSpec, place: str) -> Iterator[ComponentSpec]:
    address = f"nvswitch{switch.number}"
    entity = layout.ENTITY_SWITCH, switch.number
    yield ComponentSpec(Component("switch", switch.number), entity, address, place, switch.use, switch.fields)
    for n, link in enumerate(switch.nvlinks):
        component = Component("switch_link", link.number, switch.number)
        entity = layout.ENTITY_LINK, layout.link_id(switch.number, link.number, layout.ENTITY_SWITCH)
        own_address, own_place = f"{address}/nvlink{link.number}", f"{place}.nvlinks[{n}]"
        yield ComponentSpec(component, entity, own_address, own_place, link.use, link.fields, link)


def _of_cpu(cpu: CpuSpec, place: str) -> Iterator[ComponentSpec]:
    address, component = f"cpu{cpu.number}", Component("cpu", cpu.number, serial=cpu.serial)
    yield ComponentSpec(component, (layout.ENTITY_CPU, cpu.number), address, place, cpu.use, cpu.fields)
    for n, core in enumerate(cpu.cores):
        component = Component("core", core.number, cpu.number)
        own_address, own_place = f"{address}/core{core.number}", f"{place}.cores[{n}]"
        yield ComponentSpec(component, (layout.ENTITY_CORE, core.number), own_address, own_place, core.use, core.fields)


def component_errors(document: ScenarioDocument) -> Iterator[str]:
    """Yield the errors that the types of the model do not exclude, as messages with a place."""
    entities = set()
    for spec in component_specs(document):
        limit = NUMBERS[spec.component.scope]
        number = spec.component.number
        if not 0 <= number < limit:
            yield f"number {number} is not one from 0 to {limit - 1} - at `{spec.place}`"
        if spec.entity in entities:
            yield f"number {number!r} is there twice - at `{spec.place}`"
        entities.add(spec.entity)
