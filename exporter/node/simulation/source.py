"""The `simulated` source: readings made from a scenario, a JSON file with GPUs and their values over time.

The read plan (which field is read of which device) and the checks of values are those of the real sources.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations
from typing import TypeVar, get_args

import msgspec

from exporter.node.dcgm.native.values import status_reason
from exporter.node.devices.counters.computed_metrics import P2P_STATUS
from exporter.node.devices.entities.component import Component, ComponentScope
from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.link import Link
from exporter.node.devices.entities.vgpu import Vgpu
from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.device_source import ReaderConfig, SourceChoice, WantedField
from exporter.node.devices.fields.read_plan import fields_of, plan
from exporter.node.devices.fields.validity import age_limit, before_first_event, checked, rejection_to_count, too_old
from exporter.node.devices.readings import p2p
from exporter.node.devices.readings.processes import ProcessReadings
from exporter.node.devices.readings.readings import (
    Batch,
    P2pStatus,
    Readings,
    Rejection,
    RejectionCounts,
    RejectionReason,
    SampleValue,
    XidReport,
)
from exporter.node.simulation.document import CallFault
from exporter.node.simulation.parts import links_of, vgpu_utilization, vgpus_of
from exporter.node.simulation.processes import process_readings
from exporter.node.simulation.scenario import load
from exporter.node.simulation.script import ScriptedSample
from exporter.node.simulation.state import GpuInstanceState, GpuState, SampleMap, ScenarioState
from exporter.reason import Reason
from exporter.source import SourceError

READ_CALLS = frozenset({"*", "read", "dcgmEntitiesGetLatestValues"})
"""Functions of a CallFault that concern a read of this source. Where several do, the first in the file applies."""

LinkOrVgpu = TypeVar("LinkOrVgpu", Link, Vgpu)


class SimulationReason(Reason):
    """Label `reason` of `gpugauge_source_problem{source="simulated"}`: faults that the scenario contains."""

    CONNECTION_LOST = (
        "connection_lost",
        "In the scenario the host engine cannot be reached now.",
        "None: it is simulated.",
    )
    CALL = ("call", "In the scenario a library call fails now.", "None: it is simulated.")


class SimulatedSource:
    """The `DeviceSource` over the scenario `config.scenario`, or the built-in one. `clock` gives Unix seconds.

    Raises ScenarioError (a ValueError) when there is no such scenario or it has an error.
    """

    name = "simulated"
    choice: SourceChoice | None = None

    def __init__(self, config: ReaderConfig, clock: Callable[[], float] = time.time) -> None:
        self._config = config
        self._clock = clock
        self._scenario = load(config.scenario)
        self._begin = self._scenario.begins(clock())
        self._reported_until = float("-inf")

    def read(self) -> Readings:
        """Return the readings of this moment. Raises SourceError where the scenario has a fault that concerns reads."""
        now = self._clock()
        state = self._scenario.at(now - self._begin)
        fault = next((call for call in state.calls if call.about_all and call.function in READ_CALLS), None)
        if fault is not None:
            _apply(fault)
        if not state.connected:
            raise SourceError(SimulationReason.CONNECTION_LOST, "the host engine of the scenario cannot be reached")
        xids = self._new_xids(state)
        return msgspec.structs.replace(readings(state, self._config, now), xids=xids)

    def _new_xids(self, state: ScenarioState) -> tuple[XidReport, ...]:
        """Return the XIDs since the read before. Their times are the same in every process that plays the scenario."""
        new = [event for event in state.xids if event.at > self._reported_until]
        self._reported_until = state.t
        return tuple(XidReport(event.device.partition("/")[0], event.xid, self._begin + event.at) for event in new)

    def want(self, fields: Sequence[WantedField]) -> None:
        """Read these fields from the next read on; the scenario goes on."""
        self._config = msgspec.structs.replace(self._config, fields=tuple(fields))

    def close(self) -> None:
        """Do nothing: there is no library."""


def _apply(fault: CallFault) -> None:
    if fault.crash:
        os.abort()
    if fault.delay or fault.hang:
        threading.Event().wait(None if fault.hang else fault.delay)
    if fault.status:
        raise SourceError(SimulationReason.CALL, f"in the scenario {fault.function} fails with status {fault.status}")


def readings(state: ScenarioState, config: ReaderConfig, now: float) -> Readings:
    """Return the readings that a real source would return in this state; `now` is in Unix seconds."""
    entities = [entity for gpu in state.gpus for entity in _entities(gpu, state)]
    inventory = tuple(device for device, _ in entities)
    wanted = {field.id: field for field in reversed(config.fields)}
    down = tuple(gpu.spec.uuid for gpu in state.gpus if gpu.lost)
    counts: RejectionCounts = Counter()
    oldest = {number: state.t - age_limit(field, config.interval) for number, field in wanted.items()}
    batches = []
    for request in plan(inventory, config.fields):
        if devices := tuple(index for index in request.devices if inventory[index].uuid not in down):
            columns = _columns(request.fields, [entities[index][1] for index in devices], wanted, oldest, counts)
            batches.append(Batch(devices, request.fields, columns))
    links, link_batches = _parts(links_of(state, inventory), fields_of("link", config.fields), wanted, oldest, counts)
    vgpus, vgpu_batches = _parts(vgpus_of(state, inventory), fields_of("vgpu", config.fields), wanted, oldest, counts)
    components, component_batches = _components(state, config, wanted, oldest, counts)
    return Readings(
        source="simulated",
        taken_at=now,
        inventory=inventory,
        batches=tuple(batches),
        rejections=tuple(Rejection(field, reason, n) for (field, reason), n in sorted(counts.items())),
        down=down,
        p2p=tuple(_p2p(state)) if P2P_STATUS in wanted else (),
        versions={"dcgm": state.versions.dcgm, "nvml": state.versions.nvml, "driver": state.versions.driver},
        links=links,
        link_batches=link_batches,
        vgpus=vgpus,
        vgpu_batches=vgpu_batches,
        vgpu_utilization=vgpu_utilization(state, vgpus),
        components=components,
        component_batches=component_batches,
        problems=config.selections.problems(components, _component_scopes(config)),
        processes=_processes(state) if config.processes else None,
    )


def _parts(
    found: Iterable[tuple[LinkOrVgpu, SampleMap]],
    fields: tuple[int, ...],
    wanted: dict[int, WantedField],
    oldest: dict[int, float],
    counts: RejectionCounts,
) -> tuple[tuple[LinkOrVgpu, ...], tuple[Batch, ...]]:
    """Return the links or vGPUs and their batch; none where no field of them is wanted."""
    parts = tuple(found) if fields else ()
    if not parts:
        return (), ()
    columns = _columns(fields, [samples for _, samples in parts], wanted, oldest, counts)
    return tuple(part for part, _ in parts), (Batch(tuple(range(len(parts))), fields, columns),)


def _processes(state: ScenarioState) -> ProcessReadings:
    return process_readings(state.processes, {gpu.spec.uuid: bool(gpu.mig) for gpu in state.gpus if not gpu.lost})


def _component_scopes(config: ReaderConfig) -> tuple[ComponentScope, ...]:
    """Return the scopes of components of which a field is wanted."""
    return tuple(scope for scope in get_args(ComponentScope) if fields_of(scope, config.fields))


def _components(
    state: ScenarioState,
    config: ReaderConfig,
    wanted: dict[int, WantedField],
    oldest: dict[int, float],
    counts: RejectionCounts,
) -> tuple[tuple[Component, ...], tuple[Batch, ...]]:
    """Return the components of which a field is wanted, in the order of their scopes, and a batch for each scope."""
    components: list[Component] = []
    batches = []
    for scope in _component_scopes(config):
        numbers = fields_of(scope, config.fields)
        readable = (each for each in state.components if each.spec.component.scope == scope and each.is_readable)
        own = [each for each in readable if config.selections.has(each.spec.component)]
        if own:
            positions = tuple(range(len(components), len(components) + len(own)))
            components += [each.spec.component for each in own]
            columns = _columns(numbers, [each.samples for each in own], wanted, oldest, counts)
            batches.append(Batch(positions, numbers, columns))
    return tuple(components), tuple(batches)


def _p2p(state: ScenarioState) -> Iterator[P2pStatus]:
    """Yield the status of each pair of GPUs: two of one model reach each other, unless one of them is MIG-enabled."""
    readable = [gpu for gpu in state.gpus if not gpu.lost]
    for gpu, peer in permutations(readable, 2):
        reach = gpu.spec.model == peer.spec.model and not (gpu.mig or peer.mig)
        yield P2pStatus(gpu.spec.uuid, peer.spec.uuid, p2p.OK if reach else p2p.GPU_NOT_SUPPORTED)


def _entities(gpu: GpuState, state: ScenarioState) -> Iterator[tuple[Device, SampleMap]]:
    """Yield the GPU, its GPU instances and, where several share one, compute instances: each with its samples."""
    yield _device(gpu, state), _with_newest_xid(gpu)
    for instance in gpu.instances:
        uuids = tuple(each.spec.uuid for each in instance.compute)
        yield _device(gpu, state, instance, uuids=uuids), instance.samples
        if len(instance.compute) > 1:
            for each in instance.compute:
                profile = each.spec.profile or instance.spec.profile
                yield (
                    _device(gpu, state, instance, ci=each.spec.ci, profile=profile, uuids=(each.spec.uuid,)),
                    each.samples,
                )


def _with_newest_xid(gpu: GpuState) -> SampleMap:
    """Return the samples of the GPU, with the newest XID among those of its instances and its own, as DCGM has it."""
    entities = [gpu.samples]
    for instance in gpu.instances:
        entities += [instance.samples, *(each.samples for each in instance.compute)]
    found = [samples[field_ids.XID] for samples in entities if field_ids.XID in samples]
    return {**gpu.samples, field_ids.XID: max(found, key=lambda sample: sample.stamp)} if found else gpu.samples


def _device(
    gpu: GpuState,
    state: ScenarioState,
    instance: GpuInstanceState | None = None,
    *,
    ci: int = -1,
    profile: str = "",
    uuids: tuple[str, ...] = (),
) -> Device:
    spec = gpu.spec
    return Device(
        uuid=spec.uuid,
        index=spec.index,
        pci_bus_id=spec.pci_bus_id,
        minor=spec.device_minor,
        model=spec.model,
        gi=instance.spec.gi if instance else -1,
        ci=ci,
        profile=profile or (instance.spec.profile if instance else ""),
        mig_uuids=uuids,
        serial=spec.serial,
        architecture=spec.architecture,
        driver_version=state.versions.driver,
        mig_enabled=gpu.mig,
        numa_node=spec.numa_node,
    )


def _columns(
    fields: Sequence[int],
    samples: Sequence[SampleMap],
    wanted: dict[int, WantedField],
    oldest: dict[int, float],
    counts: RejectionCounts,
) -> tuple[tuple[SampleValue, ...], ...]:
    columns = []
    for number in fields:
        results = [validated(wanted[number], entity.get(number), oldest[number]) for entity in samples]
        counts.update((number, reason) for _, reason in results if reason)
        columns.append(tuple(value for value, _ in results))
    return tuple(columns)


def validated(
    field: WantedField, sample: ScriptedSample | None, oldest: float
) -> tuple[SampleValue, RejectionReason | None]:
    """Return the value to expose, or None and why it is rejected; no reason where nothing is wrong.

    `oldest` is the scenario time before which a sample is stale.
    """
    value, reason = _validated(field, sample, oldest)
    return value, rejection_to_count(reason, field)


def _validated(
    field: WantedField, sample: ScriptedSample | None, oldest: float
) -> tuple[SampleValue, RejectionReason | None]:
    if sample is None:
        if field.watch == "event":
            return before_first_event(field), None
        return None, RejectionReason.NOT_SUPPORTED
    if sample.status:
        return None, status_reason(sample.status)
    if sample.sentinel or sample.value is None:
        return None, RejectionReason.of(sample.sentinel or "blank")
    if sample.stamp < oldest:
        return None, too_old(field)
    return checked(sample.value, field)
