"""Discovery: asks an engine for its GPUs, GPU instances and compute instances, and describes them as devices.

In: an open connection. Out: an `EngineInventory`, which has each device beside its entity (DCGM's kind and id of it,
by which fields are read). `read_topology` is cheap, and shows whether anything has changed.
"""

import ctypes
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from exporter.node.dcgm import layout
from exporter.node.dcgm.connection import EngineConnection
from exporter.node.dcgm.library import StatusError
from exporter.node.dcgm.live_reader import Entity, LiveReader, ValuesByEntity
from exporter.node.dcgm.reasons import DcgmReason
from exporter.node.devices import field_ids
from exporter.node.devices.device import Device
from exporter.node.devices.device_source import WantedField
from exporter.node.devices.known_gpus import missing_gpus
from exporter.node.devices.readings import SampleValue

_GPU_FIELDS = (
    WantedField(field_ids.NAME, "string", "gpu", "basic"),
    WantedField(field_ids.NVML_INDEX, "int", "gpu", "basic"),
    WantedField(field_ids.SERIAL, "string", "gpu", "basic"),
    WantedField(field_ids.UUID, "string", "gpu", "basic"),
    WantedField(field_ids.MINOR_NUMBER, "int", "gpu", "basic"),
    WantedField(field_ids.PCI_BUS_ID, "string", "gpu", "basic"),
    WantedField(field_ids.MIG_MODE, "int", "gpu", "basic"),
)
# The name of a GPU instance or compute instance is its profile, such as `1g.10gb`; it has a UUID, `MIG-…`, only where
# there is a compute instance (4.6.0, source).
_INSTANCE_FIELDS = (
    WantedField(field_ids.NAME, "string", "instance", "basic"),
    WantedField(field_ids.UUID, "string", "instance", "basic"),
)


class HierarchyEntry(NamedTuple):
    """One row of the engine's MIG hierarchy: a GPU instance (ci -1) or a compute instance."""

    entity: Entity
    parent: Entity
    gi: int
    ci: int


@dataclass(frozen=True, slots=True)
class EngineTopology:
    """The GPUs and instances that the engine lists.

    Read in every collection: while it is unchanged, groups and watches remain valid.
    """

    gpus: tuple[tuple[int, int], ...]
    """Engine id and state of each GPU."""
    hierarchy: bytes
    """The engine's rows, unchanged.

    They contain the GPU's UUID, the NVML ids and the profile, not only entity ids: an entity id is its GPU's id times
    the number of possible instances plus an index, and is used again after a change of MIG (4.6.0, source).
    """
    problem: str = ""
    """Why the hierarchy cannot be read; empty when it can."""

    @property
    def readable(self) -> tuple[int, ...]:
        """The engine ids of the GPUs that have values."""
        return tuple(gpu_id for gpu_id, state in self.gpus if state not in layout.GPU_UNREADABLE)


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
    """Whether every GPU has a UUID; a GPU without one is not among the devices."""

    @property
    def readable(self) -> tuple[int, ...]:
        """Positions of the devices that can be read."""
        return tuple(index for index, entity in enumerate(self.entities) if entity is not None)


def read_topology(connection: EngineConnection) -> EngineTopology:
    """Read the GPUs and instances that the engine lists now. Raises SourceError."""
    gpus = tuple((gpu_id, connection.gpu_state(gpu_id)) for gpu_id in connection.gpu_ids())
    try:
        rows = connection.hierarchy()
    except StatusError as error:
        if error.reason in (DcgmReason.CONNECTION_LOST, DcgmReason.TIMEOUT):
            raise
        # An engine without root rights answers -29 (4.6.0, source); its GPUs can be read all the same.
        return EngineTopology(gpus, b"", str(error))
    # Only the rows in use: what is behind them in the record is not defined.
    size = layout.Hierarchy.rows.offset + ctypes.sizeof(layout.HierarchyRow) * rows.count
    return EngineTopology(gpus, bytes(memoryview(rows).cast("B")[:size]))


def hierarchy_rows(raw: bytes) -> tuple[HierarchyEntry, ...]:
    """Decode the `hierarchy` of an EngineTopology."""
    begin = layout.Hierarchy.rows.offset
    step = ctypes.sizeof(layout.HierarchyRow)
    rows = (layout.HierarchyRow.from_buffer_copy(raw, offset) for offset in range(begin, len(raw), step))
    return tuple(
        HierarchyEntry(
            (row.entity.kind, row.entity.id),
            (row.parent.kind, row.parent.id),
            row.nvml_instance_id,
            ci=_compute_instance_id(row),
        )
        for row in rows
    )


def discover(
    connection: EngineConnection, topology: EngineTopology, known: Mapping[str, Device], driver: str, live: LiveReader
) -> EngineInventory:
    """Describe every device of the topology. GPUs in `known` (by UUID) that are missing now are `down`.

    `live` asks the driver, which takes a few dozen milliseconds. Raises SourceError.
    """
    rows = hierarchy_rows(topology.hierarchy)
    values = live([(layout.ENTITY_GPU, gpu_id) for gpu_id in topology.readable], _GPU_FIELDS)
    values |= live([row.entity for row in rows], _INSTANCE_FIELDS)
    for gpu_id, state in topology.gpus:
        if state in layout.GPU_UNREADABLE:
            values |= _values_of_unreadable(live, gpu_id)
    listing = _DeviceList(values, rows, driver)
    for gpu_id, state in topology.gpus:
        listing.add_gpu(gpu_id, connection.architecture(gpu_id), readable=state not in layout.GPU_UNREADABLE)
    listing.add_missing(known)
    if topology.problem:
        message = f"MIG devices cannot be listed: {topology.problem}"
        listing.problems.append((DcgmReason.HIERARCHY_UNREADABLE, message))
    return listing.inventory()


def _values_of_unreadable(live: LiveReader, gpu_id: int) -> dict[tuple[int, int, int], SampleValue]:
    """Read what a GPU in an unreadable state still has, in a call of its own: this call may fail.

    A detached GPU has its name, UUID and bus id (4.5 and newer, source). A lost GPU has blanks with status OK, also
    for its UUID (4.6.0, measured).
    """
    try:
        return live([(layout.ENTITY_GPU, gpu_id)], _GPU_FIELDS)
    except StatusError as error:
        if error.reason in (DcgmReason.CONNECTION_LOST, DcgmReason.TIMEOUT):
            raise
        return {}


def _compute_instance_id(row: layout.HierarchyRow) -> int:
    """The field is unsigned, but on the row of a GPU instance it contains -1 (4.6.0, source)."""
    return int(ctypes.c_int32(row.nvml_compute_instance_id).value)


class _DeviceList:
    """Collects devices in their order: each GPU, its GPU instances, and the compute instances of a shared one."""

    def __init__(self, values: ValuesByEntity, rows: Iterable[HierarchyEntry], driver: str) -> None:
        self._values, self._rows, self._driver = values, tuple(rows), driver
        self._devices: list[Device] = []
        self._entities: list[Entity | None] = []
        self._entities_of_gpu: dict[int, tuple[Entity, ...]] = {}
        self._down: list[str] = []
        self._complete = True
        self.problems: list[tuple[str, str]] = []

    def add_gpu(self, gpu_id: int, architecture: str, *, readable: bool) -> None:
        """Add a GPU and, when it is readable, its instances."""
        entity = (layout.ENTITY_GPU, gpu_id)
        gpu = self._gpu(entity, architecture)
        if gpu is None:
            self._complete = False
            message = f"the engine lists a GPU (its id {gpu_id}) without a UUID"
            self.problems.append((DcgmReason.DEVICE_UNIDENTIFIED, message))
            return
        if not readable:
            self._down.append(gpu.uuid)
            self._add(gpu, None)
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
        """Add the GPUs that were known before and are missing now, as down."""
        for uuid, device in missing_gpus(known, self._devices).items():
            self._down.append(uuid)
            self._add(device, None)

    def inventory(self) -> EngineInventory:
        return EngineInventory(
            tuple(self._devices),
            tuple(self._entities),
            self._entities_of_gpu,
            tuple(self._down),
            tuple(self.problems),
            self._complete,
        )

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
