"""Computes the state of a scenario at one time: its GPUs with all their samples, as plain data.

The simulated source makes readings from it, and the fake libraries of the tests make their table from it.

Entity ids follow DCGM: the id of a GPU is its position, plus one with each restart of the engine, so that an id from
before a restart is wrong after it. The id of an instance is the GPU's id times 8 plus its position on the GPU, so that
ids are used again after a MIG reconfiguration.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from exporter.node.dcgm.native import layout
from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.field import Field, fields, fields_by_name
from exporter.node.devices.fields.read_plan import GPU_INSTANCE_ONLY
from exporter.node.simulation.components import ComponentState, component_specs
from exporter.node.simulation.document import (
    CallFault,
    ComputeInstanceSpec,
    Disconnect,
    EngineRestart,
    Fields,
    GpuInstanceSpec,
    GpuLoss,
    GpuSpec,
    MigChange,
    NvlinkSpec,
    SampleFault,
    ScenarioAllocation,
    ScenarioDocument,
    ScenarioEvent,
    ScenarioVersions,
    VgpuSpec,
    XidEvent,
)
from exporter.node.simulation.gpu_samples import gpu_identity, with_framebuffer
from exporter.node.simulation.processes import ProcessState, processes_at
from exporter.node.simulation.script import Script, ScriptedSample, blank, typed, value_at

ENTITIES_PER_GPU = 8
"""DCGM_MAX_INSTANCES_PER_GPU."""
IDENTITY = field_ids.SYSTEM | {
    field_ids.NAME,
    field_ids.NVML_INDEX,
    field_ids.SERIAL,
    field_ids.UUID,
    field_ids.MINOR_NUMBER,
    field_ids.PCI_BUS_ID,
    field_ids.CUDA_COMPUTE_CAPABILITY,
    field_ids.MIG_MODE,
    field_ids.MIG_MAX_SLICES,
    field_ids.VBIOS_VERSION,
}
"""Fields of identity: they can still be read of a lost GPU, and a SampleFault changes them only if it lists them."""

SampleMap = Mapping[int, ScriptedSample]
"""Samples by field id."""


@dataclass(frozen=True, slots=True)
class ComputeInstanceState:
    """A compute instance at one time."""

    spec: ComputeInstanceSpec
    entity_id: int
    identity: str
    """Differs where another compute instance has the same entity id."""
    mig_index: int
    """Index of the MIG device on its GPU, as NVML counts it."""
    samples: SampleMap


@dataclass(frozen=True, slots=True)
class GpuInstanceState:
    """A GPU instance at one time."""

    spec: GpuInstanceSpec
    entity_id: int
    identity: str
    """Differs where another GPU instance has the same entity id."""
    samples: SampleMap
    compute: tuple[ComputeInstanceState, ...]


@dataclass(frozen=True, slots=True)
class NvlinkState:
    """An NVLink at one time."""

    spec: NvlinkSpec
    samples: SampleMap


@dataclass(frozen=True, slots=True)
class VgpuState:
    """A vGPU at one time."""

    spec: VgpuSpec
    samples: SampleMap


@dataclass(frozen=True, slots=True)
class GpuState:
    """A GPU at one time."""

    spec: GpuSpec
    entity_id: int
    mig: bool | None
    lost: bool
    state: int
    """A state of layout.GPU_STATES."""
    samples: SampleMap
    instances: tuple[GpuInstanceState, ...]
    nvlinks: tuple[NvlinkState, ...] = ()
    vgpus: tuple[VgpuState, ...] = ()


@dataclass(frozen=True, slots=True)
class ScenarioState:
    """Everything that a scenario contains at time `t`."""

    t: float
    generation: int
    """How many restarts of the engine have begun."""
    connection_generation: int
    """How many restarts and disconnections have begun: a connection made under another number is dead."""
    connected: bool
    versions: ScenarioVersions
    gpus: tuple[GpuState, ...]
    calls: tuple[CallFault, ...]
    allocations: tuple[ScenarioAllocation, ...]
    profiling_module: bool
    unbinds: int
    """How often the driver was unbound from a GPU so far."""
    binds: int
    """How often it was bound to one again."""
    xids: tuple[XidEvent, ...]
    """Those so far, in the order of time; none from before the last restart of the engine, which forgets them."""
    components: tuple[ComponentState, ...] = ()
    processes: tuple[ProcessState, ...] = ()


def field_of(key: str) -> Field | None:
    """Return the field of that name or id, or None."""
    return fields().get(int(key)) if key.isdecimal() else fields_by_name().get(key)


def state_at(document: ScenarioDocument, t: float) -> ScenarioState:
    """Return the state t seconds after the scenario began, which depends on t alone."""
    restarts = [event for event in document.events if isinstance(event, EngineRestart) and event.at <= t]
    breaks = [event for event in document.events if isinstance(event, Disconnect) and event.at <= t]
    restarted_at = max((event.at + event.for_ for event in restarts), default=float("-inf"))
    xids = [e for e in document.events if isinstance(e, XidEvent) and restarted_at <= e.at <= t]
    xids.sort(key=lambda event: event.at)
    builder = _StateBuilder(document, t, len(restarts), tuple(xids))
    unbound = [event for event in document.events if isinstance(event, GpuLoss) and event.is_unbinding]
    return ScenarioState(
        t=t,
        generation=len(restarts),
        connection_generation=len(restarts) + len(breaks),
        connected=t >= restarted_at and not any(_active(event, t) for event in breaks),
        versions=document.versions,
        gpus=tuple(builder.gpus()),
        calls=tuple(e for e in document.events if isinstance(e, CallFault) and _active(e, t)),
        allocations=tuple(a for a in document.allocations if a.from_ <= t and (a.until is None or t < a.until)),
        profiling_module=document.profiling_module,
        unbinds=sum(event.at <= t for event in unbound),
        binds=sum(event.for_ is not None and event.at + event.for_ <= t for event in unbound),
        xids=builder.xids,
        components=tuple(builder.components()),
        processes=tuple(processes_at(document.processes, t)),
    )


def _active(event: ScenarioEvent, t: float) -> bool:
    if isinstance(event, XidEvent):
        return event.at <= t
    return event.at <= t and (event.for_ is None or t < event.at + event.for_)


@dataclass(frozen=True, slots=True)
class _StateBuilder:
    """Builds the GPUs and components of a state."""

    document: ScenarioDocument
    t: float
    generation: int
    xids: tuple[XidEvent, ...]

    def gpus(self) -> Iterator[GpuState]:
        for position, spec in enumerate(self.document.devices):
            lost = self._last(GpuLoss, spec.uuid)
            if not (isinstance(lost, GpuLoss) and lost.seen == "absent"):
                yield self._gpu(spec, (position + self.generation) % layout.MAX_GPUS, lost)

    def components(self) -> Iterator[ComponentState]:
        for spec in component_specs(self.document):
            yield ComponentState(spec, self._with_faults(spec.address, self._scripted(spec.use, spec.fields), None))

    def _last(self, kind: type[GpuLoss | MigChange], uuid: str) -> GpuLoss | MigChange | None:
        active = [e for e in self.document.events if isinstance(e, kind) and e.device == uuid and _active(e, self.t)]
        return max(active, key=lambda event: event.at, default=None)

    def _gpu(self, spec: GpuSpec, entity_id: int, lost: GpuLoss | MigChange | None) -> GpuState:
        change = self._last(MigChange, spec.uuid)
        mig, instances = (change.mig, change.instances) if isinstance(change, MigChange) else (spec.mig, spec.instances)
        since = change.at if change else 0.0
        samples = self._scripted(spec.use, spec.fields) | gpu_identity(spec, self.document.versions, self.t, mig=mig)
        samples[field_ids.GPU_COUNT] = ScriptedSample(len(self.document.devices), self.t)
        # As on a real GPU: the driver measures no utilization while MIG mode is on.
        samples |= {i: ScriptedSample(None, self.t, "not_supported") for i in field_ids.UTILIZATION} if mig else {}
        seen = lost.seen if isinstance(lost, GpuLoss) else None
        return GpuState(
            spec=spec,
            entity_id=entity_id,
            mig=mig,
            lost=lost is not None,
            state=layout.GPU_STATES[lost.state] if isinstance(lost, GpuLoss) else layout.GPU_OK,
            samples=self._with_faults(spec.uuid, with_framebuffer(samples, spec.memory_mib, self.t), seen),
            instances=tuple(self._instances(spec, entity_id, instances, since, seen)),
            nvlinks=tuple(NvlinkState(n, self._part(f"{spec.uuid}/nvlink{n.number}", n, seen)) for n in spec.nvlinks),
            vgpus=tuple(VgpuState(v, self._part(f"{spec.uuid}/vgpu{v.number}", v, seen)) for v in spec.vgpus),
        )

    def _part(self, address: str, part: NvlinkSpec | VgpuSpec, seen: str | None) -> SampleMap:
        return self._with_faults(address, self._scripted(part.use, part.fields), seen)

    def _instances(
        self, gpu: GpuSpec, gpu_id: int, instances: Iterable[GpuInstanceSpec], since: float, seen: str | None
    ) -> Iterator[GpuInstanceState]:
        mig_index = 0
        for position, spec in enumerate(instances):
            samples = self._instance_samples(spec)
            address = f"{gpu.uuid}/{spec.gi}"
            identity = f"{address}/{spec.profile}/{since}"
            compute = tuple(
                ComputeInstanceState(
                    spec=each,
                    entity_id=gpu_id * ENTITIES_PER_GPU + mig_index + offset,
                    identity=f"{identity}/{each.ci}/{each.uuid}",
                    mig_index=mig_index + offset,
                    samples=self._with_faults(f"{address}/{each.ci}", self._compute_samples(each, spec, samples), seen),
                )
                for offset, each in enumerate(spec.compute)
            )
            mig_index += len(compute)
            own = self._with_faults(address, samples, seen)
            yield GpuInstanceState(spec, gpu_id * ENTITIES_PER_GPU + position, identity, own, compute)

    def _instance_samples(self, spec: GpuInstanceSpec) -> dict[int, ScriptedSample]:
        samples = self._scripted(spec.use, spec.fields)
        samples[field_ids.NAME] = ScriptedSample(spec.profile, self.t)
        samples = with_framebuffer(samples, spec.memory_mib, self.t)
        if not spec.compute:  # as DCGM: without a compute instance it has nothing but the profile name
            return {field: blank(self.t) for field in samples} | {field_ids.NAME: samples[field_ids.NAME]}
        samples[field_ids.UUID] = ScriptedSample(spec.compute[0].uuid, self.t)
        return samples

    def _compute_samples(
        self, spec: ComputeInstanceSpec, gpu_instance: GpuInstanceSpec, inherited: SampleMap
    ) -> dict[int, ScriptedSample]:
        samples = dict(inherited) | self._scripted(spec.use, spec.fields)
        samples[field_ids.NAME] = ScriptedSample(spec.profile or gpu_instance.profile, self.t)
        samples[field_ids.UUID] = ScriptedSample(spec.uuid, self.t)
        samples |= {field: blank(self.t) for field in GPU_INSTANCE_ONLY}
        return samples

    def _scripted(self, use: Iterable[str], own: Fields) -> dict[int, ScriptedSample]:
        """Return the samples of the value sets, in order, and of the own fields, which replace those of the sets."""
        scripts: dict[int, tuple[Field, Script]] = {}
        for value_set in (*(self.document.values[name] for name in use), own):
            for key, script in value_set.items():
                field = field_of(key)
                assert field is not None  # checked when the scenario was parsed
                scripts[field.id] = field, script
        return {number: typed(field, value_at(script, self.t)) for number, (field, script) in scripts.items()}

    def _with_faults(self, address: str, samples: dict[int, ScriptedSample], seen: str | None) -> SampleMap:
        """Return the entity's samples as its XIDs, faults and loss change them; `seen` is that of its GpuLoss."""
        for xid in self.xids:
            if xid.device == address:
                samples[field_ids.XID] = ScriptedSample(xid.xid, xid.at)
        for event in self.document.events:
            if isinstance(event, SampleFault) and _active(event, self.t) and address in (event.devices or (address,)):
                for number in {f.id for f in map(field_of, event.fields) if f} or samples.keys() - IDENTITY:
                    samples[number] = _faulty(event, samples.get(number), self.t)
        if seen:
            lost = ScriptedSample(None, self.t, status=layout.GPU_LOST) if seen == "status" else blank(self.t)
            return {number: sample if number in IDENTITY else lost for number, sample in samples.items()}
        return samples


def _faulty(event: SampleFault, sample: ScriptedSample | None, t: float) -> ScriptedSample:
    if event.stale:
        return replace(sample, stamp=min(sample.stamp, event.at)) if sample else blank(event.at)
    return ScriptedSample(None, t, event.sentinel, event.status)
