"""Which watches remain when devices or fields change. No I/O, no state.

A watch that is made anew has no profiling values at first, and what happens to one GPU should not cost the others
theirs. So a watch remains as long as something of it is wanted; what is no longer wanted of it is just not read.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from exporter.node.dcgm.entities.inventory import EngineInventory
from exporter.node.dcgm.native.live_reader import Entity
from exporter.node.dcgm.targets.components import EngineComponents
from exporter.node.dcgm.targets.links import EngineLinks
from exporter.node.dcgm.targets.targets import WatchTarget

Identities = Mapping[Entity, tuple[object, ...]]
"""What an entity id means: it can mean another MIG device after a change."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A watch as it was made, and what is read of it: positions are those of the current inventory."""

    made: WatchTarget
    read: WatchTarget


def identities_of(inventory: EngineInventory, links: EngineLinks, components: EngineComponents) -> Identities:
    """Return what each entity id means now. Those of events alone, within a GPU instance, are not among them."""
    devices = {
        entity: (device.uuid, device.gi, device.ci, device.profile, device.mig_uuids)
        for device, entity in zip(inventory.devices, inventory.entities, strict=True)
        if entity is not None
    }
    of_links = {
        entity: (inventory.devices[link.gpu].uuid, link.number)
        for link, entity in zip(links.links, links.entities, strict=True)
    }
    of_components = {
        entity: (component,) for component, entity in zip(components.components, components.entities, strict=True)
    }
    return {**devices, **of_links, **of_components}


def kept_watches(
    watched: Sequence[Watched], targets: Sequence[WatchTarget], before: Identities, now: Identities
) -> list[Watched]:
    """Return the watches that remain. All others end first, and with them those that have a sample in common."""
    same = {entity for entity, identity in now.items() if before.get(entity) == identity}
    kept = [found for each in watched for found in _kept(each, targets, same)]
    made = {each.made for each in kept}
    ending = [each.made for each in watched if each.made not in made]
    return [each for each in kept if not any(each.read.overlaps(target) for target in ending)]


def _kept(watched: Watched, targets: Sequence[WatchTarget], same: Collection[Entity]) -> Iterator[Watched]:
    """Yield the watch with what is read of it now, unless that is nothing, or is spread over several targets.

    Nor where a device would be read through two watches: the newest value among its entities is that of an event.
    """
    made = watched.made
    parts = []
    for target in targets:
        if (target.watch, target.interval) == (made.watch, made.interval) and set(made.fields) <= set(target.fields):
            entities = tuple(entity for entity in target.entities if entity in made.entities and entity in same)
            if entities:
                part = target.restricted_to(entities, made.fields)
                parts.append(part)
                others = target.restricted_to(tuple(e for e in target.entities if e not in entities), made.fields)
                if not set(part.devices).isdisjoint(others.devices):
                    return
    if len(parts) == 1:
        yield Watched(made, parts[0])


def not_kept(targets: Sequence[WatchTarget], kept: Sequence[Watched]) -> list[WatchTarget]:
    """Return the parts of the targets that no watch samples."""
    parts = []
    for target in targets:
        own = [each.read for each in kept if each.read.overlaps(target)]
        missing: dict[tuple[int, ...], list[Entity]] = {}
        for entity in target.entities:
            sampled = {number for part in own if entity in part.entities for number in part.fields}
            fields = tuple(number for number in target.fields if number not in sampled)
            missing.setdefault(fields, []).append(entity)
        parts += [target.restricted_to(tuple(entities), fields) for fields, entities in missing.items() if fields]
    return parts
