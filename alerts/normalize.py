"""The normalizing layer: recording rules that give each quantity one name, one unit and one set of labels.

They read what gpugauge and every generation of dcgm-exporter expose; all other rules and the dashboards read only the
recorded series (`gpu_instance:…` per GPU or MIG device, `gpu:…` per GPU).
"""

from alerts import generations as dcgm
from alerts.expression import DEVICE, GPU, by, indent, one_by, relabel, with_device_labels
from alerts.rule import Group, Recording

MIB = 1048576


def _device(expression: str) -> str:
    return by(DEVICE, with_device_labels(expression))


def _gpu(expression: str) -> str:
    return by(GPU, with_device_labels(expression))


def _mib(expression: str) -> str:
    return f"{_device(expression)} * {MIB}"


def _info() -> str:
    """The info series of gpugauge; for devices without one, the same labels from the series of dcgm-exporter."""
    labels = f"{DEVICE}, gpu, model, GPU_I_PROFILE"
    own = by(labels, "gpugauge_device_info")
    fields = with_device_labels(f'{{__name__=~"{dcgm.COMMON_FIELDS}"}}')
    stock = by(labels, relabel(fields, ("model", "modelName")), "group")
    return one_by(DEVICE, f"{own}\nor on ({DEVICE})\n{stock}")


ACTIVE = f"""{_device(dcgm.ENGINE)}
or
{_device(dcgm.KERNEL_RESIDENT)}"""

BUSY = by(
    DEVICE,
    """gpu_instance:active:ratio
or
label_replace(gpu_instance:video_active:ratio and gpu_instance:active:ratio, "engine", "video", "", "")""",
)
"""The larger of compute and video activity; absent where compute activity is. `engine` keeps the two series apart."""

MEMORY_TOTAL = f"""(
  gpu_instance:memory_used:bytes + gpu_instance:memory_free:bytes
  or
  {indent(_mib(dcgm.MEMORY_TOTAL_MIB))}
  - {indent(_mib(dcgm.MEMORY_RESERVED_MIB))}
) > 0"""
"""Framebuffer that can be allocated: used + free, or total - reserved, which is the same. Absent where a part of both
is missing, and on a GPU without memory of its own."""

MEMORY_RATIO = f"""gpu_instance:memory_used:bytes / gpu_instance:memory_total:bytes
or
{_device(dcgm.MEMORY_USED_RATIO)}"""
"""The share of used framebuffer, everywhere used / (total - reserved)."""

GROUP = Group(
    "gpugauge-normalize",
    (
        Recording("gpu_instance:gpugauge_device:info", _info()),
        Recording("gpu_instance:active:ratio", ACTIVE),
        Recording("gpu_instance:video_active:ratio", f"{_device(dcgm.VIDEO_PERCENT)} / 100"),
        Recording("gpu_instance:busy:ratio", BUSY),
        Recording("gpu_instance:sm_active:ratio", _device(dcgm.SM)),
        Recording("gpu_instance:tensor_active:ratio", _device(dcgm.TENSOR)),
        Recording("gpu_instance:dram_active:ratio", _device(dcgm.DRAM)),
        Recording("gpu_instance:memory_used:bytes", _mib(dcgm.MEMORY_USED_MIB)),
        Recording("gpu_instance:memory_free:bytes", _mib(dcgm.MEMORY_FREE_MIB)),
        Recording("gpu_instance:memory_total:bytes", MEMORY_TOTAL),
        Recording("gpu_instance:memory_used:ratio", MEMORY_RATIO),
        Recording("gpu:temperature:celsius", _gpu(dcgm.TEMPERATURE)),
        Recording("gpu:memory_temperature:celsius", _gpu(dcgm.MEMORY_TEMPERATURE)),
        Recording("gpu:power:watts", _gpu(dcgm.POWER)),
        Recording("gpu:energy_joules:rate5m", f"{_gpu(f'rate({dcgm.ENERGY_MILLIJOULES}[5m])')} / 1000"),
    ),
)
