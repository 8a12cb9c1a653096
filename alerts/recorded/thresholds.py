"""The thresholds of the alerts, recorded as constant series. To use others, change them here or record them elsewhere.

Where a threshold is not recorded, alerts and dashboards use the default below.
"""

from alerts.rules.rule import Group, Recording

LOW_UTILIZATION = 0.3
"""Share of the window (15 minutes) that a pod's GPUs were busy, below which the pod has low utilization."""

IDLE = 0.01
"""Share of the same window below which a GPU is idle. Not 0: on some systems engine activity never falls to 0."""

PENDING_SECONDS = 900.0
"""How long a GPU pod may be schedulable and not run before the alert."""


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
