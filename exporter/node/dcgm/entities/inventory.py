"""The devices of an engine: describes them by what was read of them, each beside its entity. No I/O.

An entity is DCGM's kind and id of a device, by which its fields are read.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from exporter.node.dcgm.entities.topology import HierarchyEntry
from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.native.live_reader import Entity, ValuesByEntity
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields import field_ids
from exporter.node.devices.readings.known_gpus import missing_gpus


@dataclass(frozen=True, slots=True)
class EngineInventory:
    """The devices of an engine and what belongs to each of them."""

    devices: tuple[Device, ...]
    entities: tuple[Entity | None, ...]
    """Per device its entity; None on a GPU that cannot be read."""
    entities_of_gpu: Mapping[int, tuple[Entity, ...]]
    """By position of a readable GPU in `devices`: its own entity and those of all its instances."""
    down: tuple[str, ...]
    """UUIDs of GPUs that are known but cannot be read."""
    problems: tuple[tuple[str, str], ...]
    """(reason, message)."""
    complete: bool = True
    """Whether every readable GPU and MIG device could be identified."""
    lacks_uuids: bool = False
    """Whether a compute instance has no UUID now, so that the kubelet's id of it matches no device."""

    @property
    def readable(self) -> tuple[int, ...]:
        """Positions of the devices that can be read."""
        return tuple(index for index, entity in enumerate(self.entities) if entity is not None)


@dataclass(frozen=True, slots=True)
class DescribedGpus:
    """GPUs that were described before: a lost GPU has no identity of its own, not even a UUID (4.6.0, measured)."""

    by_uuid: dict[str, Device]
    by_id: dict[int, Device] = field(default_factory=dict)
    """By engine id, which is valid for one engine: until its connection ends."""

    def remember(self, inventory: EngineInventory) -> None:
        """Remember the GPUs of an inventory, which has the missing ones too, but not those that were replaced."""
        self.by_uuid.clear()
        for device, entity in zip(inventory.devices, inventory.entities, strict=True):
            if device.gi < 0:
                self.by_uuid[device.uuid] = device
                if entity is not None:
                    self.by_id[entity[1]] = device

    def unreadable(self, gpu_id: int, readable: Collection[object]) -> Device | None:
        """Return the GPU that had this engine id, unless its UUID is among those that are readable under another."""
        device = self.by_id.get(gpu_id)
        return None if device is None or device.uuid in readable else device


class DeviceList:
    """Collects devices in their order: each GPU, its GPU instances, and the compute instances of a shared one."""

    def __init__(self, values: ValuesByEntity, rows: Iterable[HierarchyEntry], driver: str) -> None:
        self._values, self._rows, self._driver = values, tuple(rows), driver
        self._devices: list[Device] = []
        self._entities: list[Entity | None] = []
        self._entities_of_gpu: dict[int, tuple[Entity, ...]] = {}
        self._down: list[str] = []
        self._complete = True
        self._lacks_uuids = False
        self._unnamed: list[int] = []
        """Engine ids of unreadable GPUs without a UUID."""
        self._problems: list[tuple[str, str]] = []

    def add_unreadable(self, gpu_id: int, architecture: str, known: Device | None) -> None:
        """Add a GPU that cannot be read, as down: as it describes itself, else as it was known under its id."""
        gpu = self._gpu((layout.ENTITY_GPU, gpu_id), architecture) or known
        if gpu is None:
            self._unnamed.append(gpu_id)
        else:
            self._down.append(gpu.uuid)
            self._add(gpu, None)

    def add_gpu(self, gpu_id: int, architecture: str) -> None:
        """Add a GPU and its instances."""
        entity = (layout.ENTITY_GPU, gpu_id)
        gpu = self._gpu(entity, architecture)
        if gpu is None:
            self._complete = False
            self._unidentified(gpu_id)
            return
        position = len(self._devices)
        self._add(gpu, entity)
        entities = [entity]
        for row in self._children(entity):
            entities += [row.entity, *(child.entity for child in self._children(row.entity))]
            for device, own_entity in self._instances(gpu, row):
                self._add(device, own_entity)
        self._entities_of_gpu[position] = tuple(entities)

    def add_missing(self, known: Mapping[str, Device]) -> None:
        """Add the GPUs that were known before and are not among the devices, as down.

        Where unreadable GPUs are listed without a UUID, these are they: then only what is left over is unidentified.
        """
        missing = missing_gpus(known, self._devices)
        for uuid, device in missing.items():
            self._down.append(uuid)
            self._add(device, None)
        for gpu_id in self._unnamed[len(missing) :]:
            self._unidentified(gpu_id)

    def add_problems(self, problems: Iterable[tuple[str, str]]) -> None:
        """Add problems: (reason, message)."""
        self._problems += problems

    def add_rejected(self, rejected: Mapping[Entity, StatusError]) -> None:
        """Note that the identity of these entities cannot be read now, because of the engine's answer."""
        self._complete = self._complete and not rejected
        self._problems += [
            (error.reason, f"identity of the engine's entity {kind}/{number}: {error}")
            for (kind, number), error in rejected.items()
        ]

    def inventory(self) -> EngineInventory:
        return EngineInventory(
            tuple(self._devices),
            tuple(self._entities),
            self._entities_of_gpu,
            tuple(self._down),
            tuple(self._problems),
            self._complete,
            self._lacks_uuids,
        )

    def _unidentified(self, gpu_id: int) -> None:
        message = f"the engine lists a GPU (its id {gpu_id}) without a UUID"
        self._problems.append((DcgmReason.DEVICE_UNIDENTIFIED, message))

    def _add(self, device: Device, entity: Entity | None) -> None:
        self._devices.append(device)
        self._entities.append(entity)

    def _children(self, parent: Entity) -> Iterator[HierarchyEntry]:
        return (row for row in self._rows if row.parent == parent)

    def _gpu(self, entity: Entity, architecture: str) -> Device | None:
        uuid = self._text(entity, field_ids.UUID)
        if not uuid:  # the engine's id cannot stand for it: it can mean another GPU after a restart of the engine
            return None
        mig = self._values.get((*entity, field_ids.MIG_MODE))
        return Device(
            uuid=uuid,
            index=self._number(entity, field_ids.NVML_INDEX, otherwise=entity[1]),
            pci_bus_id=self._text(entity, field_ids.PCI_BUS_ID).upper(),
            minor=self._number(entity, field_ids.MINOR_NUMBER, otherwise=-1),
            model=self._text(entity, field_ids.NAME),
            serial=self._text(entity, field_ids.SERIAL),
            architecture=architecture,
            driver_version=self._driver,
            mig_enabled=None if mig is None else bool(mig),
        )

    def _instances(self, gpu: Device, row: HierarchyEntry) -> Iterator[tuple[Device, Entity]]:
        """Yield a GPU instance and, where several compute instances share it, each of those."""
        compute_instances = list(self._children(row.entity))
        uuids = tuple(filter(None, (self._text(child.entity, field_ids.UUID) for child in compute_instances)))
        self._lacks_uuids |= len(uuids) < len(compute_instances)
        profile = self._text(row.entity, field_ids.NAME)
        yield _instance(gpu, row.gi, -1, profile, uuids), row.entity
        if len(compute_instances) > 1:
            for child in compute_instances:
                own_profile = self._text(child.entity, field_ids.NAME) or profile
                uuid = self._text(child.entity, field_ids.UUID)
                yield _instance(gpu, row.gi, child.ci, own_profile, (uuid,) if uuid else ()), child.entity

    def _text(self, entity: Entity, field: int) -> str:
        value = self._values.get((*entity, field))
        return value if isinstance(value, str) else ""

    def _number(self, entity: Entity, field: int, *, otherwise: int) -> int:
        value = self._values.get((*entity, field))
        return value if isinstance(value, int) else otherwise


def _instance(gpu: Device, gi: int, ci: int, profile: str, uuids: tuple[str, ...]) -> Device:
    return Device(
        uuid=gpu.uuid,
        index=gpu.index,
        pci_bus_id=gpu.pci_bus_id,
        minor=gpu.minor,
        model=gpu.model,
        gi=gi,
        ci=ci,
        profile=profile,
        mig_uuids=uuids,
        serial=gpu.serial,
        architecture=gpu.architecture,
        driver_version=gpu.driver_version,
        mig_enabled=gpu.mig_enabled,
    )
