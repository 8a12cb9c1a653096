"""Selects the GPUs and GPU instances that DCGM-named series are exposed of (`--devices`). No I/O, no state.

In: readings and a selection, whose wholes are GPUs by index and whose parts are GPU instances by the number that DCGM
gives them. Out: positions in the inventory, and which of the selected devices are not there.
"""

from collections.abc import Collection, Iterator, Sequence

from exporter.metric import Labels
from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.link import Link
from exporter.node.devices.entities.selection import Selection
from exporter.node.devices.entities.vgpu import Vgpu
from exporter.node.devices.readings.readings import Readings, SampleValue
from exporter.node.devices.series.metrics import EntitySamples
from exporter.reason import Reason

EVERY = Selection()


class GpuSelectionReason(Reason):
    """Label `reason` of `gpugauge_source_problem`, of `--devices`."""

    SELECTED_DEVICE_MISSING = (
        "selected_device_missing",
        "A GPU or GPU instance that --devices selects is not there; the others are exposed.",
        "Check the numbers in --devices; only DCGM numbers GPU instances, by its entity ids (dcgmi discovery -c).",
    )


def selected(readings: Readings, selection: Selection) -> frozenset[int] | None:
    """Positions of the selected devices; None for every one.

    A GPU is selected by its index, or by an instance of it: its quantities (power, temperature) are those of the
    instance too. A compute instance is selected with its GPU instance.
    """
    if selection == EVERY:
        return None
    instances = {
        (device.uuid, device.gi)
        for device, number in _instances(readings)
        if selection.parts is not None and (not selection.parts or number in selection.parts)
    }
    gpus = {uuid for uuid, _ in instances}
    return frozenset(
        position
        for position, device in enumerate(readings.inventory)
        if (device.uuid, device.gi) in instances
        or (device.gi < 0 and (selection.has_whole(device.index) or device.uuid in gpus))
    )


def selection_problems(readings: Readings, selection: Selection) -> Iterator[tuple[str, str]]:
    """Yield (reason, message) where a device is selected by a number that none has. Nothing while there are none."""
    if not readings.inventory:
        return
    indexes = {device.index for device in readings.inventory if device.gi < 0}
    numbers = {number for _, number in _instances(readings)}
    absent = [f"GPU {number}" for number in selection.wholes or () if number not in indexes]
    absent += [f"GPU instance {number}" for number in selection.parts or () if number not in numbers]
    if absent:
        yield GpuSelectionReason.SELECTED_DEVICE_MISSING, f"--devices: not there: {', '.join(absent)}"


def of_devices(samples: EntitySamples, chosen: Collection[int] | None) -> EntitySamples:
    """The samples of the chosen positions; None for every one."""
    if chosen is None:
        return samples
    by_field = {
        field: [_restricted(positions, column, chosen) for positions, column in batches]
        for field, batches in samples.by_field.items()
    }
    return samples._replace(by_field=by_field)


def of_parts(samples: EntitySamples, parts: Sequence[Link | Vgpu], chosen: Collection[int] | None) -> EntitySamples:
    """The samples of the links or vGPUs of the chosen GPUs."""
    if chosen is None:
        return samples
    return of_devices(samples, {position for position, part in enumerate(parts) if part.gpu in chosen})


def labeled(
    inventory: Sequence[Device], labels: Sequence[Labels], chosen: Collection[int] | None
) -> tuple[list[Device], list[Labels]]:
    """The chosen devices and their labels."""
    positions = range(len(inventory)) if chosen is None else sorted(chosen)
    return [inventory[position] for position in positions], [labels[position] for position in positions]


def _instances(readings: Readings) -> Iterator[tuple[Device, int]]:
    """Yield each GPU instance and its number; -1 where the source has none."""
    for position, device in enumerate(readings.inventory):
        if device.gi >= 0 and device.ci < 0:
            yield device, readings.engine_ids[position] if position < len(readings.engine_ids) else -1


def _restricted(
    positions: tuple[int, ...], column: tuple[SampleValue, ...], chosen: Collection[int]
) -> tuple[tuple[int, ...], tuple[SampleValue, ...]]:
    kept = [(position, value) for position, value in zip(positions, column, strict=True) if position in chosen]
    return tuple(position for position, _ in kept), tuple(value for _, value in kept)
