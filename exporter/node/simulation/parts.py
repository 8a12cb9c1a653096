"""The parts of the GPUs of a scenario that have fields of their own: NVLinks and vGPUs. No I/O, no state."""

from collections.abc import Iterator, Sequence

from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.link import Link
from exporter.node.devices.entities.vgpu import Vgpu
from exporter.node.devices.readings.readings import VgpuUtilization
from exporter.node.simulation.state import GpuState, SampleMap, ScenarioState


def _readable(state: ScenarioState, inventory: Sequence[Device]) -> Iterator[tuple[int, GpuState]]:
    """Yield the GPUs that are not lost, each with its position."""
    positions = {device.uuid: position for position, device in enumerate(inventory) if device.gi < 0}
    yield from ((positions[gpu.spec.uuid], gpu) for gpu in state.gpus if not gpu.lost)


def links_of(state: ScenarioState, inventory: Sequence[Device]) -> Iterator[tuple[Link, SampleMap]]:
    """Yield the links of the GPUs that can be read, each with its samples; a disabled one is none."""
    for position, gpu in _readable(state, inventory):
        yield from ((Link(position, n.spec.number), n.samples) for n in gpu.nvlinks if n.spec.state != "disabled")


def vgpus_of(state: ScenarioState, inventory: Sequence[Device]) -> Iterator[tuple[Vgpu, SampleMap]]:
    """Yield the vGPUs of the GPUs that can be read, each with its samples."""
    for position, gpu in _readable(state, inventory):
        yield from ((Vgpu(position, v.spec.number, v.spec.uuid), v.samples) for v in gpu.vgpus)


def vgpu_utilization(state: ScenarioState, vgpus: Sequence[Vgpu]) -> tuple[VgpuUtilization, ...]:
    """Return the utilization of these vGPUs, where they have one."""
    used = {each.spec.number: each.spec.utilization for gpu in state.gpus for each in gpu.vgpus}
    found = ((position, used.get(vgpu.number)) for position, vgpu in enumerate(vgpus))
    return tuple(VgpuUtilization(position, *percentages) for position, percentages in found if percentages)
