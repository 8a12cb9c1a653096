"""DCGM's health checks of whole GPUs: the checks, the result of one of them, and why there are none. No I/O."""

from collections.abc import Mapping

import msgspec

from exporter.reason import Reason

WATCHES: Mapping[str, int] = {
    "PCIE": 0x1, "NVLINK": 0x2, "PMU": 0x4, "MCU": 0x8, "MEM": 0x10, "SM": 0x20, "INFOROM": 0x40, "THERMAL": 0x80,
    "POWER": 0x100, "DRIVER": 0x200,
}  # fmt: skip
"""The checks of a GPU: the label `health_watch`, and the bit of `dcgmHealthSystems_t`."""
ALL = "ALL"
"""The label of the worst result of all checks of a GPU."""
PASSED = 0
"""The result of a check that found nothing; 10 is a warning and 20 a failure (`dcgmHealthWatchResults_t`)."""
NO_ERROR = "DCGM_FR_OK"
"""The label `health_error_code` of such a check."""


class HealthStatus(msgspec.Struct, frozen=True, array_like=True):
    """The result of one check of one GPU."""

    uuid: str
    watch: str
    """A key of WATCHES, or ALL."""
    result: int
    error: str
    """DCGM's name of what was found, such as `DCGM_FR_NVLINK_DOWN`."""


class HealthReason(Reason):
    """Label `reason` of `gpugauge_source_problem` while DCGM_EXP_GPU_HEALTH_STATUS has no series."""

    HEALTH_NOT_IN_SOURCE = (
        "health_not_in_source",
        "The counters file has DCGM_EXP_GPU_HEALTH_STATUS, and only the source dcgm has health checks.",
        "Read the GPUs through DCGM, or remove the row from the counters file.",
    )
    HEALTH_BINDINGS_MISSING = (
        "health_bindings_missing",
        "Health checks need NVIDIA's Python bindings of DCGM, which are not installed or cannot be loaded.",
        "Install datacenter-gpu-manager-4-core in the image, or name the folder of the bindings with --dcgm-bindings.",
    )
    HEALTH_FAILED = (
        "health_failed",
        "The engine does not check the health of the GPUs, or not of all of them; the log has the call and its status.",
        "Check the host engine's log; everything else of the GPUs is exposed.",
    )
