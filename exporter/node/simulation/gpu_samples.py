"""Samples that follow from what a scenario says of a GPU itself: its identity, and what its framebuffer adds up to."""

from dataclasses import replace

from exporter.node.devices.fields import field_ids
from exporter.node.simulation.document import GpuSpec, ScenarioVersions
from exporter.node.simulation.script import ScriptedSample


def gpu_identity(gpu: GpuSpec, versions: ScenarioVersions, t: float, *, mig: bool | None) -> dict[int, ScriptedSample]:
    """Return the samples of what a GPU is; what the scenario does not give is not supported."""
    major, minor = gpu.compute_capability
    values: dict[int, int | str | None] = {
        field_ids.DRIVER_VERSION: versions.driver,
        field_ids.NVML_VERSION: versions.nvml,
        field_ids.CUDA_DRIVER_VERSION: versions.cuda,
        field_ids.NAME: gpu.model,
        field_ids.NVML_INDEX: gpu.index,
        field_ids.SERIAL: gpu.serial or None,
        field_ids.UUID: gpu.uuid,
        field_ids.MINOR_NUMBER: gpu.device_minor,
        field_ids.PCI_BUS_ID: gpu.pci_bus_id,
        field_ids.CUDA_COMPUTE_CAPABILITY: (major << 16) + minor,
        field_ids.MIG_MODE: None if mig is None else int(mig),
        field_ids.MIG_MAX_SLICES: None if mig is None else gpu.max_slices,
        field_ids.VBIOS_VERSION: gpu.vbios or None,
    }
    unsupported = ScriptedSample(None, t, "not_supported")
    return {number: unsupported if value is None else ScriptedSample(value, t) for number, value in values.items()}


def with_framebuffer(samples: dict[int, ScriptedSample], total: int, t: float) -> dict[int, ScriptedSample]:
    """Add what follows from total, used and reserved framebuffer (MiB), where the scenario does not give it.

    A GPU without any, because it shares the memory of its machine, supports none of these fields.
    """
    if not total:
        return samples | {field: ScriptedSample(None, t, "not_supported") for field in field_ids.FRAMEBUFFER}
    samples.setdefault(field_ids.FB_TOTAL, ScriptedSample(total, t))
    used, reserved = samples.get(field_ids.FB_USED), samples.get(field_ids.FB_RESERVED, ScriptedSample(0, t))
    if used and isinstance(used.value, int) and isinstance(reserved.value, int):
        usable = max(total - reserved.value, 1)
        samples.setdefault(field_ids.FB_FREE, replace(used, value=max(usable - used.value, 0)))
        samples.setdefault(field_ids.FB_USED_RATIO, replace(used, value=used.value / usable))
    return samples
