"""The peer-to-peer statuses of two GPUs, by number and name. No I/O."""

STATUSES = (
    "OK",
    "ChipsetNotSupported",
    "GPUNotSupported",
    "TopologyNotSupported",
    "DisabledByRegKey",
    "NotSupported",
    "Unknown",
)
"""By number: those of `nvmlGpuP2PStatus_t` (nvml.h), which DCGM has too, under the names that dcgm-exporter writes."""
OK, GPU_NOT_SUPPORTED, UNKNOWN = 0, 2, 6


def is_known(number: int) -> bool:
    """Whether there is such a status; a newer driver may have others, which are left out."""
    return 0 <= number < len(STATUSES)
