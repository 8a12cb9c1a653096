"""The bytes of a table file of table.h: one moment of a scenario as fixed-size records."""

import zlib
from collections.abc import Iterator
from struct import Struct

from exporter.node.dcgm.native.layout import link_id
from exporter.node.devices.entities.architecture import NAMES
from exporter.node.devices.fields.field import Field, fields
from exporter.node.devices.fields.field_ids import FB_USED_RATIO, UTILIZATION, XID
from exporter.node.simulation.script import ScriptedSample
from exporter.node.simulation.state import (
    ComputeInstanceState,
    GpuInstanceState,
    GpuState,
    SampleMap,
    ScenarioState,
    field_of,
)
from tests.fakes.component_rows import LINK_STATES, MARK, mark

MAGIC, VERSION = 0x54464747, 1
GPU, VGPU, SWITCH, GI, CI, LINK, CPU, CORE = range(1, 9)
"""Kinds of entities (dcgm_field_entity_group_t)."""
LEVELS = {"link": LINK, "vgpu": VGPU, "switch": SWITCH, "switch_link": LINK, "cpu": CPU, "core": CORE}
"""Kinds of the entities, other than devices, that fields have values of."""
OWN, PARENT, GI_ONLY, BLANK, SYSTEM, UNSUPPORTED = range(6)
"""MIG_… of table.h."""

HEADER = Struct("<5IiqQ24I80s80s80s7I36x")
DEVICE = Struct("<IIiiIiIIiiQQ96s32s96s48s48s")
INSTANCE = Struct("<6I2i2I2Q2I64s128sQ")
SAMPLE = Struct("<IIHHiq8s256s")
FAULT = Struct("<48siIIIQ4I")
FIELD = Struct("<6I48s")
EVENT = Struct("<4IqqQ")
PROCESS = Struct("<6IQ")
PROCESS_KINDS = {"compute": 1, "graphics": 2, "mps": 4}
NO_ID, NO_BYTES = 2**32 - 1, 2**64 - 1

TYPES = {"int": "i", "float": "d", "string": "s"}
SENTINELS = ("blank", "not_found", "not_supported", "no_permission")
BLANK_INT, BLANK_FLOAT = 0x7FFFFFFFFFFFFFF0, float(2**47)
BLANK_TEXT = ("<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>")
ARCHITECTURES = {name: number for number, name in NAMES.items()}


def table(state: ScenarioState, now: float, tick: int = 1) -> bytes:
    """Return the table of a state. `now` is the Unix time of the state, in seconds."""
    rows_of = _TableRows(state, now)
    sections = (
        (DEVICE, [rows_of.device(gpu) for gpu in state.gpus]),
        (INSTANCE, [row for gpu in state.gpus for row in rows_of.instances(gpu)]),
        (SAMPLE, [row for _, row in sorted(rows_of.samples(), key=lambda keyed: keyed[0])]),
        (FAULT, list(rows_of.faults())),
        (FIELD, [field_row(field) for field in known_fields(state.versions.dcgm)]),
        (EVENT, list(rows_of.events())),
        (PROCESS, list(rows_of.processes())),
    )
    section_headers, offset = [], HEADER.size
    for layout, rows in sections:
        section_headers += [offset, len(rows), layout.size, 0]
        offset += len(rows) * layout.size
    versions = state.versions
    header = HEADER.pack(
        MAGIC,
        VERSION,
        state.generation,
        state.connection_generation,
        state.connected,
        versions.cuda,
        round(now * 1e6),
        tick,
        *section_headers[:-4],
        *(raw_text(text) for text in (versions.driver, versions.nvml, versions.dcgm)),
        state.profiling_module,
        state.unbinds,
        state.binds,
        *section_headers[-4:],
    )
    return header + b"".join(row for _, rows in sections for row in rows)


def known_fields(version: str) -> list[Field]:
    """Return the fields that an engine of that version knows, of those that are read, in the order of their ids."""
    known = (f for f in fields().values() if f.is_read and numbers_of(f.since) <= numbers_of(version))
    return sorted(known, key=lambda field: field.id)


def numbers_of(version: str) -> tuple[int, ...]:
    """Return (4, 6, 1) for `4.6.1`."""
    return tuple(int(part) for part in version.split("."))


def field_row(field: Field) -> bytes:
    """Return the table_field record of a field."""
    level, mig = _level(field)
    tag = field.names[0].removeprefix("DCGM_FI_").lower().encode()[:47]
    kind = ord(TYPES[field.kind])
    return FIELD.pack(field.id, kind, level, mig, field.watch == "profiling", field.watch == "event", tag)


def _level(field: Field) -> tuple[int, int]:
    if field.scope == "system":
        return 0, SYSTEM
    if field.id in UTILIZATION:
        return GPU, UNSUPPORTED
    if field.scope in LEVELS:
        return LEVELS[field.scope], OWN
    return {"own": (CI, OWN), "gpu_instance": (GI, GI_ONLY), "gpu": (GPU, PARENT), "none": (GPU, BLANK)}[field.mig]


class _TableRows:
    """Makes the records of one state."""

    def __init__(self, state: ScenarioState, now: float) -> None:
        self.state = state
        self.now = now

    def device(self, gpu: GpuState) -> bytes:
        spec = gpu.spec
        return DEVICE.pack(
            gpu.entity_id,
            spec.index,
            spec.device_minor,
            spec.numa_node,
            gpu.state,
            -1 if gpu.mig is None else int(gpu.mig),
            spec.max_slices,
            ARCHITECTURES.get(spec.architecture.lower(), 0),
            *spec.compute_capability,
            spec.memory_mib,
            self._identity(spec.uuid),
            *(raw_text(text) for text in (spec.uuid, spec.pci_bus_id, spec.model, spec.serial, spec.vbios)),
        )

    def instances(self, gpu: GpuState) -> Iterator[bytes]:
        for instance in gpu.instances:
            uuid = instance.spec.compute[0].uuid if len(instance.compute) == 1 else ""
            yield self._instance(gpu, instance, None, uuid)
            for compute in instance.compute:
                yield self._instance(gpu, instance, compute, compute.spec.uuid)

    def _instance(
        self, gpu: GpuState, instance: GpuInstanceState, compute: ComputeInstanceState | None, uuid: str
    ) -> bytes:
        own = compute or instance
        profile = (compute.spec.profile if compute else "") or instance.spec.profile
        return INSTANCE.pack(
            CI if compute else GI,
            own.entity_id,
            GI if compute else GPU,
            instance.entity_id if compute else gpu.entity_id,
            gpu.entity_id,
            instance.spec.gi,
            compute.spec.ci if compute else -1,
            compute.mig_index if compute else -1,
            0 if compute else instance.spec.profile_id,
            compute.spec.slices if compute else instance.spec.slices,
            instance.spec.memory_mib,
            self._identity(own.identity),
            len(instance.compute) > 1,
            0,
            raw_text(profile),
            raw_text(uuid),
            0,
        )

    def _identity(self, text: str) -> int:
        """Return a number that differs when another device has the same entity id, or the engine restarted."""
        return zlib.crc32(raw_text(text)) | self.state.generation << 32

    def samples(self) -> Iterator[tuple[tuple[int, int, int], bytes]]:
        for gpu in self.state.gpus:
            yield from self._rows(GPU, gpu.entity_id, gpu.samples)
            for link in gpu.nvlinks:
                entity = link_id(gpu.entity_id, link.spec.number)
                yield self._mark(LINK, entity, ScriptedSample(LINK_STATES[link.spec.state], self.state.t))
                yield from self._rows(LINK, entity, link.samples)
            for vgpu in gpu.vgpus:
                sample = ScriptedSample(gpu.entity_id, self.state.t)
                yield self._mark(VGPU, vgpu.spec.number, sample, vgpu.spec.uuid)
                yield from self._rows(VGPU, vgpu.spec.number, vgpu.samples)
                if vgpu.spec.utilization is not None:
                    yield self._utilization(vgpu.spec.number, vgpu.spec.utilization)
            for instance in gpu.instances:
                yield from self._rows(GI, instance.entity_id, instance.samples)
                for compute in instance.compute:
                    yield from self._rows(CI, compute.entity_id, compute.samples)

        for component in self.state.components:
            serial = component.spec.component.serial
            yield self._mark(*component.spec.entity, mark(component, self.state.t), serial)
            yield from self._rows(*component.spec.entity, component.samples)

    def _utilization(self, number: int, percentages: tuple[int, ...]) -> tuple[tuple[int, int, int], bytes]:
        """The structure of field 504 as four bytes of its value."""
        field, sample = fields()[504].id, ScriptedSample(0, self.state.t)
        raw = bytes((*percentages, 0, 0, 0, 0))
        return (VGPU, number, field), self._packed(VGPU, number, field, sample, "i", raw, b"")

    def _mark(
        self, kind: int, entity: int, sample: ScriptedSample, serial: str = ""
    ) -> tuple[tuple[int, int, int], bytes]:
        assert isinstance(sample.value, int)
        packed = sample.value.to_bytes(8, "little")
        return (kind, entity, MARK), self._packed(kind, entity, MARK, sample, "i", packed, raw_text(serial))

    def _rows(self, kind: int, entity: int, samples: SampleMap) -> Iterator[tuple[tuple[int, int, int], bytes]]:
        for number, sample in samples.items():
            yield (kind, entity, number), self._sample(kind, entity, number, sample)

    def _sample(self, kind: int, entity: int, number: int, sample: ScriptedSample) -> bytes:
        return self._packed(kind, entity, number, sample, *encode(fields()[number], sample))

    def _packed(
        self, kind: int, entity: int, number: int, sample: ScriptedSample, type_: str, raw: bytes, text: bytes
    ) -> bytes:
        return SAMPLE.pack(kind, entity, number, ord(type_), sample.status, self._timestamp(sample.stamp), raw, text)

    def _timestamp(self, t: float) -> int:
        """Return scenario time `t` in microseconds since the epoch."""
        # When the scenario began is a difference of large numbers: without rounding, the time of one and the same event
        # would be another microsecond in each table.
        return round((round(self.now - self.state.t, 3) + t) * 1e6)

    def faults(self) -> Iterator[bytes]:
        entities = {address: (kind, entity) for address, kind, entity, _ in self._addresses()}
        for call in self.state.calls:
            field = field_of(call.field) if call.field else None
            if not call.device or call.device in entities:
                about = (*entities.get(call.device, (0, 0)), field.id if field else 0, 0)
                gpu = self._identity(call.device) if call.device else 0
                delay = round(call.delay * 1000)
                yield FAULT.pack(call.function.encode(), call.status, delay, call.hang, call.crash, gpu, *about)

    def events(self) -> Iterator[bytes]:
        entities = {address: (kind, entity, gpu_id) for address, kind, entity, gpu_id in self._addresses()}
        for number, xid in enumerate(self.state.xids, start=1):
            if xid.device in entities:
                yield EVENT.pack(*entities[xid.device], XID, self._timestamp(xid.at), xid.xid, number)

    def processes(self) -> Iterator[bytes]:
        gpus = {gpu.spec.uuid: gpu.entity_id for gpu in self.state.gpus}
        for each in self.state.processes:
            kinds = sum(PROCESS_KINDS[kind] for kind in each.spec.kinds)
            memory = NO_BYTES if each.spec.memory_mib is None else each.spec.memory_mib << 20
            if each.gpu in gpus:
                ids = (NO_ID if number < 0 else number for number in (each.gi, each.ci))
                yield PROCESS.pack(gpus[each.gpu], each.spec.pid, *ids, kinds, round(each.sm), memory)

    def _addresses(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield every address that an event can name, with its kind, its entity id and the id of its GPU."""
        for gpu in self.state.gpus:
            uuid, gpu_id = gpu.spec.uuid, gpu.entity_id
            yield uuid, GPU, gpu_id, gpu_id
            for vgpu in gpu.vgpus:
                yield f"{uuid}/vgpu{vgpu.spec.number}", VGPU, vgpu.spec.number, gpu_id
            for link in gpu.nvlinks:
                yield f"{uuid}/nvlink{link.spec.number}", LINK, link_id(gpu_id, link.spec.number), gpu_id
            for instance in gpu.instances:
                yield f"{uuid}/{instance.spec.gi}", GI, instance.entity_id, gpu_id
                for compute in instance.compute:
                    yield f"{uuid}/{instance.spec.gi}/{compute.spec.ci}", CI, compute.entity_id, gpu_id
        for component in self.state.components:
            yield component.spec.address, *component.spec.entity, 0


def raw_text(text: str) -> bytes:
    """Return the bytes of a text. A test can write U+DCFF for a byte 0xFF, which is not UTF-8 (PEP 383)."""
    return text.encode("utf-8", "surrogateescape")


def encode(field: Field, sample: ScriptedSample) -> tuple[str, bytes, bytes]:
    """Return a sample as a library has it: the type of its record, the 8 bytes of its value, its text."""
    type_ = TYPES[field.kind]
    if sample.value is None:
        step = SENTINELS.index(sample.sentinel or "blank")
        if type_ == "s":
            return type_, bytes(8), BLANK_TEXT[step].encode()
        # FB_USED_RATIO is a double whose blank values the engine stores as integers (4.6.0, source).
        if type_ == "i" or field.id == FB_USED_RATIO:
            return "i", (BLANK_INT + step).to_bytes(8, "little"), b""
        return type_, Struct("<d").pack(BLANK_FLOAT + step), b""
    match sample.value:
        case str() as text:
            return "s", bytes(8), raw_text(text)[:255]
        case int() as number:
            return "i", number.to_bytes(8, "little", signed=True), b""
        case float() as number:
            return "d", Struct("<d").pack(number), b""
