"""What to watch and read: fields of entities, each beside the device that exposes its values. No I/O, no state."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from exporter.node.dcgm.entities.inventory import EngineInventory
from exporter.node.dcgm.native import layout
from exporter.node.devices.fields.device_source import WantedField, WatchGroup
from exporter.node.devices.fields.read_plan import ReadRequest

Entities = tuple[tuple[int, int], ...]
"""Each a kind and an id."""
_COMPONENT_KINDS = frozenset({layout.ENTITY_SWITCH, layout.ENTITY_CPU, layout.ENTITY_CORE})
"""Kinds of entities that are components, or the owners of links that are."""


@dataclass(frozen=True, slots=True)
class WatchTarget:
    """Fields to watch and read, of one watch group, and the entities to read them of.

    Basic and profiling fields are read of one entity per device. Event fields are watched on a GPU and all of its
    instances, and exposed on the GPU.
    """

    watch: WatchGroup
    entities: Entities
    entity_devices: tuple[int, ...]
    """Per entity, the device that exposes its values, as position in the inventory; of links and components, their own
    position among those."""
    entity_gpus: tuple[str, ...]
    """Per entity, the UUID of its GPU; of components a name of what they are part of, such as `switch0`."""
    fields: tuple[int, ...]
    interval: float | None = None
    """Seconds between samples; None for the collection interval."""

    @property
    def of_links(self) -> bool:
        """Whether the entities are links of GPUs, so that the positions are those of links and not of devices."""
        return self.entities[0][0] == layout.ENTITY_LINK and not self.of_components

    @property
    def of_components(self) -> bool:
        """Whether the entities are components, so that the positions are those of components and not of devices."""
        kind, number = self.entities[0]
        return (layout.link_owner(number) if kind == layout.ENTITY_LINK else kind) in _COMPONENT_KINDS

    @property
    def devices(self) -> tuple[int, ...]:
        """The devices, each once, although several entities of an event field have the same one."""
        return tuple(dict.fromkeys(self.entity_devices))

    @property
    def gpus(self) -> tuple[str, ...]:
        """The UUIDs of the GPUs, each once."""
        return tuple(dict.fromkeys(self.entity_gpus))

    def overlaps(self, other: "WatchTarget") -> bool:
        """Whether the other has one of its fields of one of its entities, in the same watch group."""
        same = self.watch == other.watch
        return (
            same and not set(self.entities).isdisjoint(other.entities) and not set(self.fields).isdisjoint(other.fields)
        )

    def contains(self, other: "WatchTarget") -> bool:
        """Whether every entity and field of the other target is in this one."""
        same = self.watch == other.watch
        return same and set(other.entities) <= set(self.entities) and set(other.fields) <= set(self.fields)

    def restricted_to(self, entities: Entities, fields: tuple[int, ...]) -> "WatchTarget":
        """Return the target of these of its entities and these fields."""
        own = {entity: position for position, entity in enumerate(self.entities)}
        positions = [own[entity] for entity in entities]
        return WatchTarget(
            self.watch,
            entities,
            tuple(self.entity_devices[position] for position in positions),
            tuple(self.entity_gpus[position] for position in positions),
            fields,
            self.interval,
        )

    def device_halves(self) -> tuple["WatchTarget", ...]:
        """Return two parts with half of the GPUs each; nothing for one entity.

        Of one GPU these are halves of its devices, of one device halves of its entities.
        """
        groupings: tuple[Sequence[Hashable], ...] = (self.entity_gpus, self.entity_devices, self.entities)
        keys = next((keys for keys in groupings if len(set(keys)) > 1), None)
        if keys is None:
            return ()
        distinct = list(dict.fromkeys(keys))
        first = set(distinct[: len(distinct) // 2])
        pairs = list(zip(keys, self.entities, strict=True))
        halves = ((entity for key, entity in pairs if (key in first) == in_first) for in_first in (True, False))
        return tuple(self.restricted_to(tuple(half), self.fields) for half in halves)

    def field_halves(self) -> tuple["WatchTarget", ...]:
        """Return two parts with half of the fields each; nothing for one field."""
        middle = len(self.fields) // 2
        halves = (self.fields[:middle], self.fields[middle:]) if middle else ()
        return tuple(self.restricted_to(self.entities, half) for half in halves)

    def split(self, max_entities: int) -> Iterator["WatchTarget"]:
        """Yield the target in pieces of at most `max_entities` entities and as many fields as a field group takes.

        The entities of one device stay together, because the newest of their values is chosen within one read. So a
        piece has more than `max_entities` where one device alone has more.
        """
        for begin in range(0, len(self.fields), layout.FIELDS_PER_CALL):
            fields = self.fields[begin : begin + layout.FIELDS_PER_CALL]
            piece: list[tuple[int, int]] = []
            for device in self.devices:
                own = [
                    e for e, its_device in zip(self.entities, self.entity_devices, strict=True) if its_device == device
                ]
                if piece and len(piece) + len(own) > max_entities:
                    yield self.restricted_to(tuple(piece), fields)
                    piece = []
                piece += own
            yield self.restricted_to(tuple(piece), fields)


def merged(parts: Sequence[WatchTarget], whole: WatchTarget) -> list[WatchTarget]:
    """Return parts of `whole` as few targets: first all fields of the same entities, then all entities of the same."""
    fields_of: dict[Entities, set[int]] = {}
    for part in parts:
        fields_of.setdefault(part.entities, set()).update(part.fields)
    entities_of: dict[tuple[int, ...], set[tuple[int, int]]] = {}
    for entities, numbers in fields_of.items():
        in_order = tuple(field for field in whole.fields if field in numbers)
        entities_of.setdefault(in_order, set()).update(entities)
    return [
        whole.restricted_to(tuple(entity for entity in whole.entities if entity in entities), fields)
        for fields, entities in entities_of.items()
    ]


def targets_of(
    inventory: EngineInventory, requests: Sequence[ReadRequest], wanted: Mapping[int, WantedField]
) -> list[WatchTarget]:
    """Return what to watch and read for these requests, except fields of the node as a whole and unreadable devices."""
    targets = []
    for request in requests:
        fields = tuple(field for field in request.fields if wanted[field].scope != "system")
        pairs = [
            (entity, device) for device in request.devices for entity in _entities(inventory, device, request.watch)
        ]
        if fields and pairs:
            entities, devices = zip(*pairs, strict=True)
            gpus = tuple(inventory.devices[device].uuid for device in devices)
            targets.append(WatchTarget(request.watch, entities, devices, gpus, fields, request.interval))
    return targets


def _entities(inventory: EngineInventory, device: int, watch: WatchGroup) -> Entities:
    entity = inventory.entities[device]
    if entity is None:
        return ()
    # The engine files an event under the smallest entity that the driver named: a compute instance, a GPU instance or
    # the GPU (4.6.0, source). Events are exposed per GPU, so all of its entities are watched.
    return inventory.entities_of_gpu.get(device, (entity,)) if watch == "event" else (entity,)
