"""The numbers that alerts compare with, as recorded constants: change them here or record them elsewhere."""

from alerts.rule import Group, Recording

LOW_UTILIZATION = 0.3
"""Mean share of time busy over 15 minutes under which a pod wastes its GPUs."""

IDLE = 0.01
"""The same under which a GPU is idle; not zero, because engine activity has a noise floor on some systems."""

PENDING_SECONDS = 900.0
"""How long a GPU pod may be schedulable and not run."""


def _constant(alert: str, value: float) -> Recording:
    return Recording("global:gpugauge_threshold:value", f"vector({value:g})", (("alert", alert),))


GROUP = Group(
    "gpugauge-thresholds",
    (
        _constant("GPUPodLowUtilization", LOW_UTILIZATION),
        _constant("GPUPodIdle", IDLE),
        _constant("GPUWorkloadPending", PENDING_SECONDS),
    ),
)
