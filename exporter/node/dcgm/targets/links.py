"""Finds the NVLinks of an engine's GPUs, and says which fields to watch and read of them.

In: an open connection and the devices that were discovered. Out: `EngineLinks`, which has each link beside its entity.

A link is an entity of its own in fields of the level LINK, since 4.4 (source; not tried on a real engine). A list of
all entities of that kind has only those of NVSwitches (4.6.0, source), so links are taken from their states.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from exporter.node.dcgm.entities.inventory import EngineInventory
from exporter.node.dcgm.entities.listing import link_states
from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.native.live_reader import Entity
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.dcgm.native.status_scope import OF_THE_ENGINE
from exporter.node.dcgm.targets.targets import WatchTarget
from exporter.node.devices.entities.link import Link
from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.fields.read_plan import WATCH_GROUPS


@dataclass(frozen=True, slots=True)
class EngineLinks:
    """The links of an engine's readable GPUs, and the entity of each."""

    links: tuple[Link, ...] = ()
    entities: tuple[Entity, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    """(reason, message)."""


def find_links(
    connection: EngineConnection, inventory: EngineInventory, wanted: Mapping[int, WantedField]
) -> EngineLinks:
    """Find the links of the GPUs that can be read; none where no field of a link is wanted. Raises SourceError."""
    if not any(field.scope == "link" for field in wanted.values()):
        return EngineLinks()
    try:
        states = link_states(connection).gpus
    except StatusError as error:
        if error.status in OF_THE_ENGINE:
            raise
        return EngineLinks(problems=((DcgmReason.LINKS_UNREADABLE, f"NVLinks cannot be listed: {error}"),))
    found = [
        (Link(position, number), (layout.ENTITY_LINK, layout.link_id(entity[1], number)))
        for position, entity in enumerate(inventory.entities)
        if entity is not None and entity[0] == layout.ENTITY_GPU
        for number, state in enumerate(states.get(entity[1], ()))
        if state in layout.LINK_READABLE
    ]
    return EngineLinks(tuple(link for link, _ in found), tuple(entity for _, entity in found))


def link_targets(
    found: EngineLinks, inventory: EngineInventory, wanted: Mapping[int, WantedField]
) -> list[WatchTarget]:
    """Return what to watch and read of these links: every wanted field of a link. Positions are those of the links."""
    positions = tuple(range(len(found.links)))
    gpus = tuple(inventory.devices[link.gpu].uuid for link in found.links)
    targets = []
    of_links = [field for field in wanted.values() if field.scope == "link" and field.watch in WATCH_GROUPS]
    for watch, interval in dict.fromkeys((field.watch, field.interval) for field in of_links) if positions else ():
        fields = tuple(field.id for field in of_links if (field.watch, field.interval) == (watch, interval))
        targets.append(WatchTarget(watch, found.entities, positions, gpus, fields, interval))
    return targets
