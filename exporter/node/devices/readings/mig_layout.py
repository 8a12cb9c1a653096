"""Finds MIG layouts that are half made: a GPU or GPU instance that no container can be given. No I/O, no state."""

from collections.abc import Iterator

from exporter.node.devices.entities.device import Device
from exporter.node.devices.readings.readings import Readings
from exporter.reason import Reason


class MigReason(Reason):
    """Label `reason` of `gpugauge_source_problem` while a MIG layout is half made."""

    MIG_WITHOUT_INSTANCES = (
        "mig_without_instances",
        "A GPU is in MIG mode without any GPU instance: no container can be given a part of it.",
        "Create some (nvidia-smi mig -i GPU -cgi PROFILE -C, or nvidia.com/mig.config), or nvidia-smi -i GPU -mig 0.",
    )
    MIG_WITHOUT_COMPUTE_INSTANCES = (
        "mig_without_compute_instances",
        "A GPU instance has no compute instance: no container can be given it.",
        "Create compute instances (nvidia-smi mig -cci), or let the MIG manager apply its layout again.",
    )


def gpus_without_instances(readings: Readings) -> list[Device]:
    """The GPUs in MIG mode that can be read and have no instance."""
    with_instances = {device.uuid for device in readings.inventory if device.gi >= 0}
    return [
        device
        for device in readings.inventory
        if device.mig_enabled
        and device.gi < 0
        and device.uuid not in with_instances
        and device.uuid not in readings.down
    ]


def instances_without_compute(readings: Readings) -> list[Device]:
    """The GPU instances of which no UUID is known: NVML gives one to each compute instance."""
    return [device for device in readings.inventory if device.gi >= 0 and not device.mig_uuids and device.ci < 0]


def mig_problems(readings: Readings) -> Iterator[tuple[Reason, str]]:
    """What is half made. That an instance has no compute instance is certain with NVML alone."""
    if empty := gpus_without_instances(readings):
        names = ", ".join(f"GPU {gpu.index} ({gpu.uuid})" for gpu in empty)
        yield MigReason.MIG_WITHOUT_INSTANCES, f"in MIG mode without instances: {names}"
    if bare := instances_without_compute(readings) if readings.source == "nvml" else []:
        names = ", ".join(f"GPU {device.index} instance {device.gi}" for device in bare)
        yield MigReason.MIG_WITHOUT_COMPUTE_INSTANCES, f"without compute instances: {names}"
