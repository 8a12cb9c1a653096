"""Repeats the quantities of a MIG-enabled GPU on its MIG devices, as dcgm-exporter does. No I/O, no state.

In: samples by field and the devices of the node. Out: the same samples, where those of a GPU with MIG devices are
those of its GPU instances instead. It is an option: a sum over the repeated series counts the GPU once per instance.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from exporter.node.devices.entities.device import Device
from exporter.node.devices.readings.readings import SampleValue
from exporter.node.devices.series.metrics import SamplesByField

Positions = tuple[int, ...]
"""Positions of devices in the inventory."""


@lru_cache(maxsize=4)
def instances_of_gpus(inventory: Sequence[Device]) -> Mapping[int, Positions]:
    """Return the positions of the GPU instances of each MIG-enabled GPU, by the position of the GPU."""
    instances: dict[str, list[int]] = defaultdict(list)
    for position, device in enumerate(inventory):
        if device.gi >= 0 and device.ci < 0:
            instances[device.uuid].append(position)
    gpus = ((position, device.uuid) for position, device in enumerate(inventory) if device.gi < 0)
    return {position: tuple(instances[uuid]) for position, uuid in gpus if uuid in instances}


def repeated_on_instances(
    by_field: SamplesByField, inventory: tuple[Device, ...], chosen: Collection[int] | None = None
) -> SamplesByField:
    """Return the samples, those of a MIG-enabled GPU once for each of its GPU instances and not for the GPU.

    `chosen` are the positions of the selected devices, None for every one: a GPU without a selected instance keeps its
    own samples.
    """
    instances = _chosen(instances_of_gpus(inventory), chosen)
    if not instances:
        return by_field
    return {
        field: [_repeated(positions, column, instances) for positions, column in batches]
        for field, batches in by_field.items()
    }


def _chosen(instances: Mapping[int, Positions], chosen: Collection[int] | None) -> Mapping[int, Positions]:
    if chosen is None:
        return instances
    kept = {gpu: tuple(each for each in own if each in chosen) for gpu, own in instances.items()}
    return {gpu: own for gpu, own in kept.items() if own}


def _repeated(
    positions: Positions, column: tuple[SampleValue, ...], instances: Mapping[int, Positions]
) -> tuple[Positions, tuple[SampleValue, ...]]:
    if instances.keys().isdisjoint(positions):
        return positions, column
    pairs = [
        (target, value)
        for position, value in zip(positions, column, strict=True)
        for target in instances.get(position, (position,))
    ]
    return tuple(target for target, _ in pairs), tuple(value for _, value in pairs)
