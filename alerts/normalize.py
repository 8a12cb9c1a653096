"""The normalising layer: one name, one unit and one set of keys per quantity, from pages of every generation."""

from alerts import generations as dcgm
from alerts.expression import BOARD, DEVICE, by, located, one_by, ours, relabel
from alerts.rule import Group, Recording

MIB = 1048576


def _device(expression: str) -> str:
    return by(DEVICE, located(expression))


def _board(expression: str) -> str:
    return by(BOARD, located(expression))


def _mib(expression: str) -> str:
    return f"{_device(expression)} * {MIB}"


def _info() -> str:
    """Our own info series, and for devices without one what stock pages say in their labels."""
    labels = f"{DEVICE}, gpu, model, GPU_I_PROFILE"
    own = by(labels, ours("gpugauge_device_info"))
    stock = by(labels, relabel(located(f'{{__name__=~"{dcgm.SEEN}"}}'), ("model", "modelName")), "group")
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
"""The busier of compute and video engines; unknown while compute activity is. `engine` keeps the two apart."""

MEMORY_TOTAL = f"""{_mib(dcgm.MEMORY_TOTAL_MIB)}
or
gpu_instance:memory_used:bytes + gpu_instance:memory_free:bytes + {_mib(dcgm.MEMORY_RESERVED_MIB)}
or
gpu_instance:memory_used:bytes + gpu_instance:memory_free:bytes"""
"""The sum where the total is not exported; a page without the reserved part gives what a pod can use."""

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
        Recording(
            "gpu_instance:memory_used:ratio",
            "gpu_instance:memory_used:bytes / (gpu_instance:memory_used:bytes + gpu_instance:memory_free:bytes)",
        ),
        Recording("gpu:temperature:celsius", _board(dcgm.TEMPERATURE)),
        Recording("gpu:memory_temperature:celsius", _board(dcgm.MEMORY_TEMPERATURE)),
        Recording("gpu:power:watts", _board(dcgm.POWER)),
        Recording("gpu:energy_joules:rate5m", f"{_board(f'rate({dcgm.ENERGY_MILLIJOULES}[5m])')} / 1000"),
    ),
)
