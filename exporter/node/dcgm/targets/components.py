"""Finds the components of an engine (NVSwitches, their NVLinks, CPUs and cores), and what to watch and read of them.

In: an open connection and the wanted fields. Out: `EngineComponents`, which has each component beside its entity.
Whatever fails here costs the components alone, unless nothing else can be asked either.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

from exporter.node.dcgm.entities.listing import cpus, link_states, switch_ids
from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.native.live_reader import Entity
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.dcgm.native.status_scope import OF_THE_CONNECTION
from exporter.node.dcgm.targets.targets import WatchTarget
from exporter.node.devices.entities.component import Component, ComponentScope
from exporter.node.devices.entities.component_selection import ComponentSelections
from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.fields.read_plan import WATCH_GROUPS

Found = Iterable[tuple[Component, Entity]]
_NONE_HERE = frozenset({layout.NOT_SUPPORTED, layout.FUNCTION_NOT_FOUND, layout.MODULE_NOT_LOADED})
"""Answers of an engine on a machine without such components: its module for them does not start there (4.6.0, source).
"""


@dataclass(frozen=True, slots=True)
class EngineComponents:
    """The components of an engine of which a field is wanted, and the entity of each."""

    components: tuple[Component, ...] = ()
    entities: tuple[Entity, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    """(reason, message)."""


def _switches(connection: EngineConnection) -> Found:
    return [(Component("switch", number), (layout.ENTITY_SWITCH, number)) for number in switch_ids(connection)]


def _switch_links(connection: EngineConnection) -> Found:
    # The engine can list entities of the kind LINK too, but not with every library for NVSwitches that it may use:
    # with that for the NVSwitches of Hopper it answers -6 (4.6.0, source).
    for switch, states in link_states(connection).switches.items():
        for number, state in enumerate(states):
            if state in layout.LINK_READABLE:
                entity = layout.ENTITY_LINK, layout.link_id(switch, number, layout.ENTITY_SWITCH)
                yield Component("switch_link", number, switch), entity


def _cpus(connection: EngineConnection) -> Found:
    for cpu in cpus(connection):
        yield Component("cpu", cpu.number, serial=cpu.serial), (layout.ENTITY_CPU, cpu.number)


def _cores(connection: EngineConnection) -> Found:
    for cpu in cpus(connection):
        for core in cpu.cores:
            yield Component("core", core, cpu.number), (layout.ENTITY_CORE, core)


_LISTS: Mapping[ComponentScope, tuple[Callable[[EngineConnection], Found], DcgmReason, str]] = {
    "switch": (_switches, DcgmReason.SWITCHES_UNREADABLE, "NVSwitches"),
    "switch_link": (_switch_links, DcgmReason.LINKS_UNREADABLE, "NVLinks of NVSwitches"),
    "cpu": (_cpus, DcgmReason.CPUS_UNREADABLE, "CPUs"),
    "core": (_cores, DcgmReason.CPUS_UNREADABLE, "cores"),
}
"""By scope, how its components are listed, and how a failure of that is reported."""


def find_components(
    connection: EngineConnection, wanted: Mapping[int, WantedField], selections: ComponentSelections
) -> EngineComponents:
    """List the selected components of which a field is wanted. Raises StatusError where the connection is lost."""
    found: list[tuple[Component, Entity]] = []
    problems: list[tuple[str, str]] = []
    listed_scopes = []
    scopes = {field.scope for field in wanted.values()}
    for scope, (listed, reason, what) in _LISTS.items():
        if scope in scopes:
            try:
                found += [each for each in listed(connection) if selections.has(each[0])]
                listed_scopes.append(scope)
            except StatusError as error:
                if error.status in OF_THE_CONNECTION:
                    raise
                if error.status in _NONE_HERE:
                    listed_scopes.append(scope)
                else:
                    problems.append((reason, f"{what} cannot be listed: {error}"))
    components, entities = tuple(each for each, _ in found), tuple(entity for _, entity in found)
    return EngineComponents(components, entities, (*problems, *selections.problems(components, listed_scopes)))


def component_targets(found: EngineComponents, wanted: Mapping[int, WantedField]) -> list[WatchTarget]:
    """Return what to watch and read of these components, scope by scope. Positions are those of the components."""
    targets = []
    for scope in get_args(ComponentScope):
        positions = tuple(p for p, component in enumerate(found.components) if component.scope == scope)
        entities = tuple(found.entities[position] for position in positions)
        wholes = tuple("{}{}".format(*found.components[position].whole) for position in positions)
        of_scope = [field for field in wanted.values() if field.scope == scope and field.watch in WATCH_GROUPS]
        for watch, interval in dict.fromkeys((field.watch, field.interval) for field in of_scope) if positions else ():
            fields = tuple(field.id for field in of_scope if (field.watch, field.interval) == (watch, interval))
            targets.append(WatchTarget(watch, entities, positions, wholes, fields, interval))
    return targets
